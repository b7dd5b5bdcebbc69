"""The Transfer page: gains of pairs of tasks."""
