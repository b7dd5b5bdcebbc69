"""Shared by pages: the store, live parts, page states, the run picker, downloads."""
