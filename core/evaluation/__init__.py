"""Scores of predictions and statistics over seeds. Needs no torch."""

from core.evaluation.label_report import averages
from core.evaluation.randomisation import Randomised, randomisation_test
from core.evaluation.rare_labels import rarer_half_f1
from core.evaluation.scores import PlainScore, score_name, score_task
from core.evaluation.spans import Span, spans
from core.evaluation.statistics import (
    MeanSD,
    PairedDifference,
    holm,
    paired_difference,
    significant,
    summary,
)

__all__ = [
    "MeanSD",
    "PairedDifference",
    "PlainScore",
    "Randomised",
    "Span",
    "averages",
    "holm",
    "paired_difference",
    "randomisation_test",
    "rarer_half_f1",
    "score_name",
    "score_task",
    "significant",
    "spans",
    "summary",
]
