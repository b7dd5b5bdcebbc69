"""Scores of predictions and statistics over seeds. Needs no torch."""

from core.evaluation.comparison import Comparison as Comparison
from core.evaluation.comparison import compare as compare
