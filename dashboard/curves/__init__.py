"""The Curves page."""
