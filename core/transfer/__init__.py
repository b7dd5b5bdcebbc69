"""Which task helps which: gains measured over pairs of tasks, and what predicts them. Needs no torch."""
