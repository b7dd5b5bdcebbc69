"""Transfer between tasks: measured gains over pairs of tasks, and their predictors. Needs no torch."""
