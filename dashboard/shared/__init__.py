"""What several pages use: the store, live parts, page states, the run picker, downloads."""
