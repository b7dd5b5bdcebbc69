"""One script per page: widgets and calls, nothing else."""
