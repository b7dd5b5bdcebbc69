"""What the pairs of a study say of pairs that were never trained: likely to help, to hurt, or no evidence.

Every predictor that is cheap to compute for new tasks is judged on the study's pairs with tasks left out
(`predictors.LEFT_OUT`). Those whose ROC AUC lies more than two standard errors above 0.5 may speak; of those
with a value for a pair, the one whose AUC less two standard errors is largest. The choice is made on the
pairs that the judgement is of, so the judgement of the chosen one is a little too good.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from core.errors import MRNLabError
from core.transfer.features import CURVE_FEATURES, DATA_FEATURES, FEATURES, TaskFeatures
from core.transfer.gains import Pair
from core.transfer.predictors import (
    GainModel,
    Judgement,
    Pairs,
    Predictor,
    feature_predictors,
    feature_values,
    gain_model,
    single_number,
)
from core.transfer.regression import Floats

HELPS, HURTS, NO_EVIDENCE = "likely to help", "likely to hurt", "no evidence"

AMI, CORRELATION = "label AMI", "MRN's task correlation"
"""The predictors that are a single number for a pair, of those that new tasks have."""

ERRORS = 2
"""By how many standard errors the AUC of a predictor that speaks lies above 0.5."""
NEAR_HALF = 0.1
"""A probability that is no further than this from one half is no evidence."""


@dataclass(frozen=True)
class Prediction:
    """What is expected of a pair (main, aux): `probability` of a gain by that predictor.

    NaN and "" where none speaks. `outside` names the features whose value lies beyond all that the study's
    pairs have.
    """

    verdict: str = NO_EVIDENCE
    probability: float = math.nan
    predictor: str = ""
    outside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lessons:
    """What a study's pairs teach: the judged predictors, the largest AUC less two standard errors first.

    `pairs` is how many were measured, `tasks` of how many tasks, `gaining` how many of the pairs gain.
    """

    tasks: int
    pairs: int
    gaining: int
    models: tuple[GainModel, ...]

    @property
    def speaking(self) -> tuple[GainModel, ...]:
        """The predictors that are better than chance for tasks they have not seen."""
        return tuple(model for model in self.models if _least_auc(model.judgement) > 0.5)

    def predict(
        self,
        pairs: Sequence[Pair],
        features: Mapping[str, TaskFeatures],
        numbers: Mapping[str, Mapping[Pair, float]],
    ) -> dict[Pair, Prediction]:
        """What is expected of these pairs by features of their tasks and the numbers of each predictor."""
        expected = dict.fromkeys(pairs, Prediction())
        for model in reversed(self.speaking):  # so that the first has the last word
            name = model.predictor.name
            values = (
                np.array([[numbers.get(name, {}).get(pair, np.nan)] for pair in pairs], dtype=np.float64)
                if name in (AMI, CORRELATION)
                else feature_values(pairs, features, _FEATURES_OF[name])
            )
            for pair, row, probability in zip(pairs, values, model.probability(values).tolist(), strict=True):
                if not math.isnan(probability):
                    verdict = HELPS if probability > 0.5 else HURTS
                    is_near = abs(probability - 0.5) <= NEAR_HALF
                    outside = _outside(model.predictor, row)
                    expected[pair] = Prediction(
                        NO_EVIDENCE if is_near else verdict, probability, name, outside
                    )
        return expected


_FEATURES_OF: Mapping[str, Mapping[str, str]] = {
    "data features": DATA_FEATURES,
    "curve features": CURVE_FEATURES,
    "all features": FEATURES,
}


def _least_auc(judgement: Judgement) -> float:
    """The AUC less two standard errors; 0 where it is not known."""
    least = judgement.auc.value - ERRORS * judgement.auc.sd
    return least if math.isfinite(least) else 0.0


def lessons(document: Mapping[str, Any]) -> Lessons:
    """What the evidence of a study (`jobs.reports.evidence.Evidence.document`) teaches."""
    rows = {(row["main"], row["aux"]): row for row in document["pairs"]}
    features = {
        task: TaskFeatures(
            task, {name: math.nan if (value := known.get(name)) is None else value for name in FEATURES}
        )
        for task, known in document["features"].items()
    }
    pairs = Pairs.of({pair: row["gain"] for pair, row in rows.items() if features.keys() >= set(pair)})
    numbers = {
        name: {pair: row[name] for pair, row in rows.items() if row.get(name) is not None}
        for name in (AMI, CORRELATION)
    }
    predictors = (
        *feature_predictors(pairs, features),
        *(single_number(name, pairs, known) for name, known in numbers.items() if known),
    )
    models = [gain_model(pairs, predictor) for predictor in predictors if predictor.known.any()]
    models.sort(key=lambda model: -_least_auc(model.judgement))
    return Lessons(len(pairs.tasks), len(pairs.names), int((pairs.gains > 0).sum()), tuple(models))


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


def _outside(predictor: Predictor, row: Floats) -> tuple[str, ...]:
    names = []
    for name, seen, value in zip(predictor.features, predictor.values.T, row.tolist(), strict=True):
        known = seen[np.isfinite(seen)]
        if math.isfinite(value) and len(known) and not known.min() <= value <= known.max():
            names.append(name)
    return tuple(names)
