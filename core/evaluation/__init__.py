"""Scores of predictions and statistics over seeds. Needs no torch."""

from core.evaluation.scores import PlainScore, averages, rarer_half_f1, score_name, score_task
from core.evaluation.spans import Span, spans
from core.evaluation.statistics import (
    MeanSD,
    PairedDifference,
    Randomised,
    holm,
    paired_difference,
    randomisation_test,
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
