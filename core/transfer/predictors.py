"""Predictors of the gain of MTL, all judged alike by how well they find the pairs that gain.

Every predictor is a logistic regression of "the gain is above 0" on its numbers for a pair: many features, a
single number, or none. L2 penalty and C = 1, as Bingel and Søgaard (2017) took them. A missing value is the
median of the training fold. Features are scaled to [0, 1] by the training fold, those of tested pairs cut off
there; a single number counts by its rank among the judged pairs, so that none far off sets the scale. A pair
for which a predictor has no number at all is left out for it.

CROSS_VALIDATION is the paper's scheme: 5 random folds of the pairs, 100 times. The tasks of a tested pair
were seen in other pairs, so a predictor that remembers which tasks gain does well. LEFT_OUT asks for new
tasks: for every two tasks a and b, train on the pairs that have neither, and test on (a, b) and (b, a). Each
pair is tested once, by a regression that has seen neither of its tasks: pairs that share a task are not
independent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from core.transfer.features import (
    CURVE_FEATURES,
    DATA_FEATURES,
    FEATURES,
    Features,
    pair_values,
)
from core.transfer.gains import Pair

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Scheme = Literal["cross-validation", "tasks left out"]
CROSS_VALIDATION: Scheme = "cross-validation"
LEFT_OUT: Scheme = "tasks left out"

AMI, CORRELATION = "label AMI", "MRN's task correlation"
COSINE, PLANTED = "gradient cosine", "planted AMI"
"""The predictors that are a single number for a pair."""
ALL_FEATURES = "all features"

FOLDS, REPEATS = 5, 100
# Bootstraps: for standard errors, and for intervals.
DRAWS, INTERVAL_DRAWS = 300, 1000


@dataclass(frozen=True)
class Pairs:
    """P ordered pairs (main, aux) and the gain (P,) of each main task by its auxiliary task."""

    names: tuple[Pair, ...]
    gains: Floats

    def __post_init__(self) -> None:
        if len(self.names) != len(self.gains) or not np.isfinite(self.gains).all():
            raise ValueError("each pair needs a finite gain")

    @staticmethod
    def from_gains(gains: Mapping[Pair, float]) -> Pairs:
        """The pairs (main, aux) of a mapping to gains."""
        return Pairs(tuple(gains), np.array(list(gains.values()), dtype=np.float64))

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks, in order of first appearance."""
        return tuple(dict.fromkeys(task for pair in self.names for task in pair))

    def counts(self, draws: int) -> NDArray[np.int64]:
        """(draws, P) how often each pair counts when tasks are drawn with replacement, as many as there are.

        A pair counts as often as its main task was drawn, times its auxiliary task.
        """
        tasks = self.tasks
        even = np.full(len(tasks), 1 / len(tasks))
        times = np.random.default_rng(0).multinomial(len(tasks), even, draws)
        main, aux = ([tasks.index(pair[role]) for pair in self.names] for role in (0, 1))
        return np.asarray(times[:, main] * times[:, aux])


@dataclass(frozen=True)
class Predictor:
    """The features of each pair that are known without training it: (P, F) values, NaN where missing.

    `seconds` is what the values of all pairs cost to compute, where known. With `always`, a gain is predicted
    for every pair, whatever the regression says.
    """

    name: str
    values: Floats
    features: tuple[str, ...] = ()
    seconds: float | None = None
    always: bool = False

    @property
    def has_value(self) -> Mask:
        """(P,) which pairs have a value."""
        return np.asarray(np.isfinite(self.values).any(axis=1))

    def scaled(self, values: Floats) -> Floats:
        """Values (Q, F) as the regression takes them: of a single number the share of all pairs' below it."""
        if self.values.shape[1] != 1:
            return values
        from scipy.stats import percentileofscore  # here as below: the page imports this module

        below = percentileofscore(
            self.values[self.has_value, 0], values[:, 0], kind="mean", nan_policy="omit"
        )
        return np.asarray(below, dtype=np.float64)[:, None] / 100


def baselines(pairs: Pairs) -> tuple[Predictor, Predictor]:
    """The majority of the training pairs; always a gain.

    The published majority baseline is of both kinds: its accuracy .555 is that of never a gain (50 of 90
    pairs), its F1 .615 that of always a gain.
    """
    nothing = np.zeros((len(pairs.names), 1))
    return (
        Predictor("majority", nothing, seconds=0.0),
        Predictor("always a gain", nothing, seconds=0.0, always=True),
    )


def feature_predictors(
    pairs: Pairs,
    features: Mapping[str, Features],
    data_seconds: float | None = None,
    curve_seconds: float | None = None,
) -> tuple[Predictor, ...]:
    """The paper's: data features, curve features, all 42. Raises KeyError for a task without features."""
    both = None if data_seconds is None or curve_seconds is None else data_seconds + curve_seconds
    return tuple(
        Predictor(name, values.to_numpy(), tuple(values.columns), seconds)
        for name, chosen, seconds in (
            ("data features", DATA_FEATURES, data_seconds),
            ("curve features", CURVE_FEATURES, curve_seconds),
            (ALL_FEATURES, FEATURES, both),
        )
        for values in [pair_values(pairs.names, features, chosen)]
    )


def single_number(
    name: str, pairs: Pairs, numbers: Mapping[Pair, float], seconds: float | None = None
) -> Predictor:
    """A predictor with one number for a pair (main, aux), missing for pairs that are not in `numbers`."""
    values = np.array([[numbers.get(pair, np.nan)] for pair in pairs.names], dtype=np.float64)
    return Predictor(name, values.reshape(-1, 1), (name,), seconds)


@dataclass(frozen=True)
class Regression:
    """A logistic regression on F features.

    It has their lowest value and range in training, the median and the mean of the scaled ones, and their
    weights.
    """

    low: Floats
    width: Floats
    median: Floats
    mean: Floats
    weights: Floats
    intercept: float

    def scaled(self, values: Floats) -> Floats:
        """Values (Q, F) in [0, 1] by the range in training; a missing one is the median."""
        inputs = np.clip((values - self.low) / self.width, 0, 1)
        return np.where(np.isfinite(inputs), inputs, self.median)

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Probability and score (Q,) of pairs with values (Q, F).

        The score is what the features of a pair add to the log-odds, over their mean on the training pairs.
        It leaves out the share of training pairs that gain: that is smaller where pairs that gain are left
        out, so log-odds from several folds rank the tested pairs the wrong way round.
        """
        from scipy.special import expit

        inputs = self.scaled(values)
        # Rounded, so that the last digits of the solution do not rank pairs with equal features.
        score = np.round((inputs - self.mean) @ self.weights, 6)
        return expit(inputs @ self.weights + self.intercept), score


def fit(values: Floats, gained: Mask) -> Regression:
    """The regression of gained (P,) on values (P, F), scaled by these pairs."""
    finite = np.where(np.isfinite(values).any(axis=0), values, 0.0)
    low, high, median = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0), np.nanmedian(finite, axis=0)
    width = np.where(high > low, high - low, 1.0)
    unfitted = Regression(low, width, (median - low) / width, median, median, 0.0)
    inputs = unfitted.scaled(values)
    weights, intercept = logistic(inputs, gained)
    return replace(unfitted, mean=inputs.mean(axis=0), weights=weights, intercept=intercept)


def logistic(inputs: Floats, gained: Mask, counts: NDArray[np.int64] | None = None) -> tuple[Floats, float]:
    """Weights (F,) and intercept of scikit-learn's regression, where pair p counts `counts[p]` times.

    No feature has a weight where all pairs gain, or none does.
    """
    from sklearn import config_context
    from sklearn.linear_model import LogisticRegression

    if counts is not None:
        kept = counts > 0
        inputs, gained, counts = inputs[kept], gained[kept], counts[kept]
    if gained.all() or not gained.any():
        return np.zeros(inputs.shape[1]), math.inf if gained.all() else -math.inf
    with config_context(assume_finite=True, skip_parameter_validation=True):  # half of the time
        model = LogisticRegression(solver="newton-cholesky", tol=1e-8).fit(inputs, gained, counts)
    return model.coef_[0], float(model.intercept_[0])


@dataclass(frozen=True)
class Measure:
    """A figure and its spread; NaN where it cannot be known.

    In CROSS_VALIDATION the mean and the SD over repeats. In LEFT_OUT the figure over all pairs, and its
    standard error by a bootstrap over tasks (`Pairs.counts`), in which predictions stay as they are.
    """

    value: float
    sd: float


@dataclass(frozen=True)
class Judgement:
    """The quality of a predictor of the pairs that gain, in one scheme.

    `pairs` were judged; `gaining` of them gain. `accuracy` and `f1` (of the class "gain") are of the
    predicted class, a gain where the probability is above 0.5. `auc` (ROC) and `rank` (Spearman's, with the
    measured gain) are of the score (`Regression.predict`). `direct_rank` is Spearman's of a single number
    itself, without a regression; NaN for other predictors.
    """

    predictor: str
    scheme: Scheme
    pairs: int
    gaining: int
    accuracy: Measure
    f1: Measure
    auc: Measure
    rank: Measure
    direct_rank: float
    seconds: float | None


def judge(
    pairs: Pairs, predictor: Predictor, scheme: Scheme, *, repeats: int = REPEATS, draws: int = DRAWS
) -> Judgement:
    """The quality of a predictor in that scheme; NaN for fewer than 5 pairs, or 4 tasks in LEFT_OUT."""
    judged, values = _judged(pairs, predictor)
    if scheme == CROSS_VALIDATION:
        measures = _cross_validated(judged, values, predictor.always, repeats)
    else:
        measures = _left_out(judged, values, predictor.always, draws)
    accuracy, f1, auc, rank = measures
    direct_rank = rank_correlation(values[:, 0], judged.gains) if values.shape[1] == 1 else math.nan
    gaining = int((judged.gains > 0).sum())
    counted = (predictor.name, scheme, len(values), gaining)
    return Judgement(*counted, accuracy, f1, auc, rank, direct_rank, predictor.seconds)


def _judged(pairs: Pairs, predictor: Predictor) -> tuple[Pairs, Floats]:
    """The pairs for which the predictor has a value, and their values as the regression takes them."""
    with_value = np.flatnonzero(predictor.has_value)
    judged = Pairs(tuple(pairs.names[index] for index in with_value), pairs.gains[with_value])
    return judged, predictor.scaled(predictor.values[with_value])


Folds = Iterable[tuple[NDArray[Any], NDArray[Any]]]
"""The pairs that train, and the pairs that are tested, of each fold."""


def _folds_of_tasks(pairs: Pairs) -> Folds:
    """Every two tasks with a pair that some pair without either can be trained for."""
    for couple in combinations(pairs.tasks, 2):
        shared = np.array([len({*couple} & {*pair}) for pair in pairs.names])
        if (shared == 2).any() and (shared == 0).any():
            yield shared == 0, shared == 2


def _predicted(pairs: Pairs, values: Floats, folds: Folds, always: bool) -> tuple[Floats, Floats]:
    """Probability and score (P,) of each pair by the regression that tests it; NaN where none does."""
    probability, score = np.full((2, len(values)), np.nan)
    for trained, tested in folds:
        probability[tested], score[tested] = fit(values[trained], pairs.gains[trained] > 0).predict(
            values[tested]
        )
        if always:
            probability[tested] = 1.0
    return probability, score


def _cross_validated(pairs: Pairs, values: Floats, always: bool, repeats: int) -> list[Measure]:
    """Each repeat's figures are of all its folds together."""
    numbers = np.random.default_rng(0)
    figures = []
    for _ in range(repeats if len(values) >= FOLDS else 0):
        fold = numbers.permutation(len(values)) % FOLDS
        folds = ((fold != number, fold == number) for number in range(FOLDS))
        figures.append(_figures(*_predicted(pairs, values, folds, always), pairs.gains))
    table = pd.DataFrame(figures, columns=range(4), dtype=np.float64)
    return list(map(Measure, table.mean(), table.std()))


def _left_out(pairs: Pairs, values: Floats, always: bool, draws: int) -> list[Measure]:
    probability, score = _predicted(pairs, values, _folds_of_tasks(pairs), always)
    tested = np.flatnonzero(np.isfinite(score))
    if not len(tested):
        return [Measure(math.nan, math.nan)] * 4

    def figures(chosen: NDArray[np.int64]) -> list[float]:
        return _figures(probability[chosen], score[chosen], pairs.gains[chosen])

    drawn = (np.repeat(tested, counts[tested]) for counts in pairs.counts(draws))
    table = pd.DataFrame([figures(places) for places in drawn if len(places)], columns=range(4))
    return list(map(Measure, figures(tested), table.std()))


def left_out_probabilities(pairs: Pairs, predictor: Predictor) -> dict[Pair, float]:
    """By pair, the probability of a gain by the regression that has seen neither of its tasks (LEFT_OUT).

    Without the pairs for which the predictor has no value, or of which no such regression can be fitted.
    """
    judged, values = _judged(pairs, predictor)
    probability, _ = _predicted(judged, values, _folds_of_tasks(judged), predictor.always)
    by_pair = zip(judged.names, probability.tolist(), strict=True)
    return {pair: value for pair, value in by_pair if not math.isnan(value)}


def _figures(probability: Floats, score: Floats, gains: Floats) -> list[float]:
    """Accuracy, F1, ROC AUC and Spearman's correlation of predictions (P,) for gains (P,)."""
    from scipy.stats import rankdata

    gained, predicted = gains > 0, probability > 0.5
    gaining, losing = int(gained.sum()), int((~gained).sum())
    f1 = 2 * int((predicted & gained).sum()) / max(int(predicted.sum()) + gaining, 1)
    auc = math.nan
    if gaining and losing:  # the rank sum of Mann and Whitney
        auc = (rankdata(score)[gained].sum() - gaining * (gaining + 1) / 2) / (gaining * losing)
    return [float((predicted == gained).mean()), f1, float(auc), rank_correlation(score, gains)]


def rank_correlation(values: ArrayLike, others: ArrayLike) -> float:
    """Spearman's; NaN for fewer than three values, and where all are equal."""
    first, second = np.asarray(values), np.asarray(others)
    if len(first) < 3 or not np.ptp(first) or not np.ptp(second):
        return math.nan
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


@dataclass(frozen=True)
class Contrast:
    """The mean gain of `count` pairs of a kind, that of the others, and the difference's 95% interval."""

    count: int
    kind_gain: float
    other_gain: float
    low: float
    high: float

    @property
    def difference(self) -> float:
        """Mean gain of the kind less that of the others."""
        return self.kind_gain - self.other_gain


def flat_beside_steep(
    pairs: Pairs, features: Mapping[str, Features], *, draws: int = INTERVAL_DRAWS
) -> Contrast | None:
    """The gain where the main task's loss curve is flat and the auxiliary task's steep, and of other pairs.

    The hypothesis of Bingel and Søgaard, 2017; None where there is no pair of either kind.

    A curve's steepness is minus its mean gradient after 20 and 30% of the steps; above the median of all
    tasks it is steep, else flat. Pairs with a task whose curve has no gradients are left out. The interval is
    a bootstrap over tasks (`Pairs.counts`).
    """
    steepness = {
        task: -(curve.values["gradient_20"] + curve.values["gradient_30"]) / 2
        for task, curve in features.items()
        if task in pairs.tasks
    }
    finite = [value for value in steepness.values() if math.isfinite(value)]
    median = np.median(finite) if finite else math.nan
    main, aux = np.array([[steepness[task] for task in pair] for pair in pairs.names]).reshape(-1, 2).T
    kind = (main <= median) & (median < aux)
    others = np.isfinite(main) & np.isfinite(aux) & ~kind
    if not kind.any() or not others.any():
        return None

    def mean(chosen: Mask, counts: NDArray[np.int64]) -> float:
        return float(np.average(pairs.gains, weights=counts * chosen))

    drawn = [counts for counts in pairs.counts(draws) if (counts * kind).any() and (counts * others).any()]
    low, high = np.percentile([mean(kind, counts) - mean(others, counts) for counts in drawn], (2.5, 97.5))
    once = np.ones(len(kind), dtype=np.int64)
    return Contrast(int(kind.sum()), mean(kind, once), mean(others, once), float(low), float(high))


@dataclass(frozen=True)
class Coefficient:
    """A feature's weight in the regression on all pairs, features scaled to [0, 1], and its 95% interval."""

    feature: str
    value: float
    low: float
    high: float


def coefficients(
    pairs: Pairs, predictor: Predictor, *, draws: int = INTERVAL_DRAWS
) -> tuple[Coefficient, ...]:
    """The weights of the predictor's regression on all pairs; 2.5 and 97.5% of a bootstrap over tasks.

    The bootstrap is `Pairs.counts`. Scales and imputed values stay those of all pairs, so that weights
    have the same unit in every draw. Pairs for which the predictor has no value are left out.
    """
    has_value, gained = predictor.has_value, pairs.gains > 0
    fitted = fit(predictor.values[has_value], gained[has_value])
    inputs = fitted.scaled(predictor.values[has_value])
    drawn = [logistic(inputs, gained[has_value], counts[has_value])[0] for counts in pairs.counts(draws)]
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    rows = zip(predictor.features, fitted.weights.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Coefficient(*row) for row in rows)


_published = json.loads((Path(__file__).parent / "data" / "published.json").read_text(encoding="utf-8"))
PUBLISHED: Mapping[str, Sequence[float]] = _published["accuracy and F1 of gain (Table 3)"]
"""The results by predictor of Bingel and Søgaard (2017): 90 pairs of 10 tasks.

Their best two rows are of features that were chosen on the same folds; they scaled by all pairs, and took the
mean of F1 over folds.
"""
PUBLISHED_COEFFICIENTS: Mapping[str, float] = _published["coefficients of all features (Table 4)"]
"""Where their text has them. That of `main gradient_10` is as printed; by its place, 6e-3 is meant."""
