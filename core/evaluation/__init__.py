"""Scores of predictions and statistics over seeds. Needs no torch."""

from core.evaluation.comparison import Comparison, compare
from core.evaluation.statistics import holm, paired_difference, randomisation_test, summary

__all__ = ["Comparison", "compare", "holm", "paired_difference", "randomisation_test", "summary"]
