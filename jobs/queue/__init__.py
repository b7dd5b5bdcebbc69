"""The queue: checks, submits, controls and repairs runs."""
