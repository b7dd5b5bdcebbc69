"""Foreign binary files and copies of datasets, which a child process reads first."""
