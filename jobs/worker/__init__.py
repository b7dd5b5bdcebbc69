"""Worker processes, which claim and train runs, and the supervisors that watch them."""
