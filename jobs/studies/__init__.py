"""Studies: what has become of their runs, what is still to be queued, and what they say."""
