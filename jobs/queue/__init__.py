"""The queue: runs are checked, submitted, controlled and repaired."""
