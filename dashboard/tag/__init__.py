"""The Tag page."""
