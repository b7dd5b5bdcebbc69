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
from importlib import resources
from typing import Any

import numpy as np

from core.errors import MRNLabError
from core.transfer.gains import Pair
from core.transfer.predictors import COSINE, GainModel, Pairs, gain_model, single_number

HELPS, HURTS, NO_EVIDENCE = "likely to help", "likely to hurt", "no evidence"
ERRORS = 2
"""By how many standard errors the AUC of a predictor that speaks lies above 0.5."""
NEAR_HALF = 0.1
"""A probability that is no further than this from one half is no evidence."""


@dataclass(frozen=True)
class Prediction:
    """What is expected of a pair (main, aux): the probability of a gain, NaN where nothing is known.

    `is_outside`: the cosine lies beyond those of all the study's pairs.
    """

    verdict: str = NO_EVIDENCE
    probability: float = math.nan
    is_outside: bool = False


@dataclass(frozen=True)
class Lessons:
    """What a study's pairs teach: how many were measured of how many tasks, how many gain, the model."""

    tasks: int
    pairs: int
    gaining: int
    model: GainModel

    @property
    def speaks(self) -> bool:
        """Whether the cosine is better than chance for tasks that it has not seen."""
        auc = self.model.judgement.auc
        least = auc.value - ERRORS * auc.sd
        return math.isfinite(least) and least > 0.5

    def predict(self, cosines: Mapping[Pair, float]) -> dict[Pair, Prediction]:
        """What is expected of these pairs by the cosine of their tasks' gradients, NaN where unknown."""
        if not self.speaks:
            return dict.fromkeys(cosines, Prediction())
        values = np.array([[cosine] for cosine in cosines.values()], dtype=np.float64)
        seen = self.model.predictor.values[np.isfinite(self.model.predictor.values)]
        expected = {}
        for (pair, cosine), probability in zip(
            cosines.items(), self.model.probability(values).tolist(), strict=True
        ):
            is_near = math.isnan(probability) or abs(probability - 0.5) <= NEAR_HALF
            verdict = NO_EVIDENCE if is_near else HELPS if probability > 0.5 else HURTS
            is_outside = math.isfinite(cosine) and not seen.min() <= cosine <= seen.max()
            expected[pair] = Prediction(verdict, probability, is_outside)
        return expected


def lessons(document: Mapping[str, Any]) -> Lessons:
    """What the evidence of a study (`jobs.reports.evidence.Evidence.document`) teaches."""
    rows = {(row["main"], row["aux"]): row for row in document["pairs"]}
    pairs = Pairs.of({pair: row["gain"] for pair, row in rows.items()})
    cosines = {pair: row[COSINE] for pair, row in rows.items() if row.get(COSINE) is not None}
    model = gain_model(pairs, single_number(COSINE, pairs, cosines))
    return Lessons(len(pairs.tasks), len(pairs.names), int((pairs.gains > 0).sum()), model)


def packaged(part: str) -> Mapping[str, Any]:
    """The evidence of that part of the study `transfer` that comes with the installation."""
    file = resources.files("core.transfer").joinpath(f"data/{part}.json")
    try:
        document: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MRNLabError(
            f"This installation lacks the evidence of the study transfer, part {part}."
        ) from None
    return document
