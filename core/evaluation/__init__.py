"""Scores of predictions and statistics over seeds. Needs no torch."""
