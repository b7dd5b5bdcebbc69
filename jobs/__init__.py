"""Runs in the background: queueing, workers, engines, and the command line. Imports core, never dashboard."""
