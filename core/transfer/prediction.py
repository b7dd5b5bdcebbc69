"""What a study says of pairs that were never trained, by the cosine of their gradients in one joint run.

The cosine is a logistic regression's only feature. It holds for tasks that the study has not seen: it is
judged on the study's pairs with tasks left out (`predictors.LEFT_OUT`), and speaks only where its ROC AUC
lies more than two standard errors above 0.5. The choice of this predictor among nine was made on the same
pairs, so its hit rate is a little too good.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from core.errors import MRNLabError
from core.transfer.gains import Pair
from core.transfer.predictors import (
    COSINE,
    LEFT_OUT,
    Judgement,
    Pairs,
    Predictor,
    Regression,
    fit,
    judge,
    single_number,
)

HELPS, HURTS, EVEN, NO_EVIDENCE = "likely to help", "likely to hurt", "about even", "no evidence"
ERRORS = 2
"""By how many standard errors the AUC of a predictor that speaks lies above 0.5."""
NEAR_HALF = 0.1
"""A probability that is no further than this from one half is about even."""


def verdict(probability: float) -> str:
    """What a probability of a gain means in words, by the two digits that are shown; NaN is no evidence."""
    if math.isnan(probability):
        return NO_EVIDENCE
    above_half = round(probability - 0.5, 2)
    return EVEN if abs(above_half) <= NEAR_HALF else HELPS if above_half > 0 else HURTS


@dataclass(frozen=True)
class Lessons:
    """What a study's pairs teach: the regression of gains on cosines, judged with tasks left out."""

    tasks: int
    predictor: Predictor
    regression: Regression
    judgement: Judgement

    @property
    def speaks(self) -> bool:
        """Whether the cosine is better than chance for tasks that it has not seen."""
        auc = self.judgement.auc
        return auc.value - ERRORS * auc.sd > 0.5

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest cosine of the study's pairs; beyond, the nearest counts."""
        return float(np.nanmin(self.predictor.values)), float(np.nanmax(self.predictor.values))

    def probabilities(self, cosines: Mapping[Pair, float]) -> dict[Pair, float]:
        """The probability of a gain of these pairs by their cosine; NaN where nothing is known."""
        values = np.array([[cosine] for cosine in cosines.values()], dtype=np.float64).reshape(-1, 1)
        probability, _ = self.regression.predict(self.predictor.scaled(values))
        known = np.isfinite(values[:, 0]) & self.speaks
        return dict(zip(cosines, np.where(known, probability, np.nan).tolist(), strict=True))


def lessons(document: Mapping[str, Any]) -> Lessons:
    """What the evidence of a study (`jobs.reports.pairs.pairs_document`) teaches."""
    rows = {(row["main"], row["aux"]): row for row in document["pairs"] if row.get(COSINE) is not None}
    pairs = Pairs.of({pair: row["gain"] for pair, row in rows.items()})
    predictor = single_number(COSINE, pairs, {pair: row[COSINE] for pair, row in rows.items()})
    regression = fit(predictor.scaled(predictor.values), pairs.gains > 0)
    return Lessons(len(pairs.tasks), predictor, regression, judge(pairs, predictor, LEFT_OUT))


def packaged_study(part: str) -> Mapping[str, Any]:
    """The evidence of that part of the study `transfer` that comes with the installation."""
    file = resources.files("core.transfer").joinpath(f"data/{part}.json")
    try:
        document: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MRNLabError(
            f"This installation lacks the evidence of the study transfer, part {part}."
        ) from None
    return document


@lru_cache
def packaged(part: str) -> Lessons:
    """What that evidence teaches."""
    return lessons(packaged_study(part))
