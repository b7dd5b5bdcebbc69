"""Scores of predictions and statistics over seeds. Needs no torch."""

from core.evaluation.statistics import holm, paired_difference, randomisation_test, summary

__all__ = ["holm", "paired_difference", "randomisation_test", "summary"]
