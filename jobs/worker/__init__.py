"""Worker processes: they claim runs and train them, and a supervisor watches each one."""
