"""Studies: the progress of their runs, the runs still to be queued, and their reports."""
