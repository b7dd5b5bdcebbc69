"""Predictors of the gain of MTL, all judged alike: how well do they tell the pairs that gain?

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from core.transfer.features import (
    CURVE_FEATURES,
    DATA_FEATURES,
    FEATURES,
    TaskFeatures,
    pair_features,
    pair_values,
)
from core.transfer.regression import Floats, Mask, Regressions, logistic, regressions

Scheme = Literal["cross-validation", "tasks left out"]
CROSS_VALIDATION: Scheme = "cross-validation"
LEFT_OUT: Scheme = "tasks left out"

AMI, CORRELATION = "label AMI", "MRN's task correlation"
COSINE, AFFINITY = "gradient cosine", "lookahead affinity"
"""The predictors that are a single number for a pair."""

FOLDS, REPEATS = 5, 100
# Bootstraps: for standard errors, and for intervals.
DRAWS, INTERVAL_DRAWS = 300, 1000


@dataclass(frozen=True)
class Pairs:
    """P ordered pairs (main, aux) and the gain (P,) of each main task by its auxiliary task."""

    names: tuple[tuple[str, str], ...]
    gains: Floats

    def __post_init__(self) -> None:
        if len(self.names) != len(self.gains) or not np.isfinite(self.gains).all():
            raise ValueError("each pair needs a finite gain")

    @staticmethod
    def of(gains: Mapping[tuple[str, str], float]) -> Pairs:
        """The pairs (main, aux) of a mapping to gains."""
        return Pairs(tuple(gains), np.array(list(gains.values()), dtype=np.float64))

    @property
    def tasks(self) -> tuple[str, ...]:
        """All tasks, in the order in which they come."""
        return tuple(dict.fromkeys(task for pair in self.names for task in pair))

    @property
    def places(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """(P, 2) the places of main and auxiliary task in `tasks`."""
        place = {task: number for number, task in enumerate(self.tasks)}
        return np.array([[place[main], place[aux]] for main, aux in self.names], np.int64).reshape(-1, 2)

    def counts(self, draws: int, seed: int) -> Floats:
        """(draws, P) how often each pair counts when tasks are drawn with replacement, as many as there are.

        A pair counts as often as its main task was drawn, times its auxiliary task.
        """
        tasks = len(self.tasks)
        times = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), draws)
        return np.asarray(times[:, self.places].prod(axis=2), dtype=np.float64)


@dataclass(frozen=True)
class Predictor:
    """What is known of each pair without training it: values (P, F), NaN where missing, of F features.

    `seconds` is what the values of all pairs cost to compute, where known. With `always`, nothing is fitted:
    a gain is predicted for every pair.
    """

    name: str
    values: Floats
    features: tuple[str, ...] = ()
    seconds: float | None = None
    always: bool = False

    @property
    def known(self) -> Mask:
        """(P,) which pairs have a value, or all of them if the predictor uses none."""
        return has_value(self.values)


def has_value(values: Floats) -> Mask:
    """(P,) which rows of values (P, F) have one that is not missing; all where F is 0."""
    return np.asarray(np.isfinite(values).any(axis=1) | (values.shape[1] == 0))


def _ranked(values: Floats, among: Floats) -> Floats:
    """A single number (Q, 1) as the share of `among` (P, 1) below it and half of those equal."""
    if values.shape[1] != 1:
        return values
    ordered = np.sort(among[np.isfinite(among)])
    below, up_to = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.where(np.isfinite(values), (below + up_to) / (2 * len(ordered)), np.nan)


def baselines(pairs: Pairs) -> tuple[Predictor, Predictor]:
    """The majority of the training pairs; always a gain.

    The published majority baseline is of both kinds: its accuracy .555 is that of never a gain (50 of 90
    pairs), its F1 .615 that of always a gain.
    """
    nothing = np.zeros((len(pairs.names), 0))
    return (
        Predictor("majority", nothing, seconds=0.0),
        Predictor("always a gain", nothing, seconds=0.0, always=True),
    )


def feature_predictors(
    pairs: Pairs,
    features: Mapping[str, TaskFeatures],
    data_seconds: float | None = None,
    curve_seconds: float | None = None,
) -> tuple[Predictor, ...]:
    """The paper's: data features, curve features, all 42. Raises KeyError for a task without features."""
    known = data_seconds is not None and curve_seconds is not None
    costs = (data_seconds, curve_seconds, (data_seconds or 0) + (curve_seconds or 0) if known else None)
    return tuple(
        Predictor(name, feature_values(pairs.names, features, chosen), pair_features(chosen), seconds)
        for name, chosen, seconds in zip(
            ("data features", "curve features", "all features"),
            (DATA_FEATURES, CURVE_FEATURES, FEATURES),
            costs,
            strict=True,
        )
    )


def feature_values(
    pairs: Sequence[tuple[str, str]], features: Mapping[str, TaskFeatures], chosen: Iterable[str] = FEATURES
) -> Floats:
    """(P, 3F) values of `pair_features(chosen)` for pairs (main, aux)."""
    names = tuple(chosen)
    values = [pair_values(features[main], features[aux], names) for main, aux in pairs]
    return np.array(values, dtype=np.float64).reshape(len(pairs), 3 * len(names))


def single_number(
    name: str, pairs: Pairs, numbers: Mapping[tuple[str, str], float], seconds: float | None = None
) -> Predictor:
    """A predictor with one number for a pair (main, aux), missing for pairs that are not in `numbers`."""
    values = np.array([[numbers.get(pair, np.nan)] for pair in pairs.names], dtype=np.float64)
    return Predictor(name, values.reshape(-1, 1), (name,), seconds)


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
    """How well a predictor tells the pairs that gain, in one scheme.

    `pairs` were judged; `gaining` of them gain. `accuracy` and `f1` (of the class "gain") are of the
    predicted class, a gain where the probability is above 0.5. `auc` (ROC) and `rank` (Spearman's, with the
    measured gain) are of the score (`Regressions.predict`). `direct_rank` is Spearman's of a single number
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
    pairs: Pairs,
    predictor: Predictor,
    scheme: Scheme,
    *,
    repeats: int = REPEATS,
    draws: int = DRAWS,
    seed: int = 0,
) -> Judgement:
    """How well the predictor does in that scheme; NaN for fewer than 5 pairs, or than 4 tasks in LEFT_OUT."""
    known = predictor.known
    judged = Pairs(
        tuple(name for name, is_known in zip(pairs.names, known, strict=True) if is_known), pairs.gains[known]
    )
    values = _ranked(predictor.values[known], predictor.values[known])
    if scheme == CROSS_VALIDATION:
        accuracy, f1, auc, rank = _cross_validated(judged, values, predictor.always, repeats, seed)
    else:
        accuracy, f1, auc, rank = _left_out(judged, values, predictor.always, draws, seed)
    is_number = values.shape[1] == 1 and len(values) > 2
    return Judgement(
        predictor=predictor.name,
        scheme=scheme,
        pairs=len(values),
        gaining=int((judged.gains > 0).sum()),
        accuracy=accuracy,
        f1=f1,
        auc=auc,
        rank=rank,
        direct_rank=float(_spearman(values.T, judged.gains)[0]) if is_number else float("nan"),
        seconds=predictor.seconds,
    )


_UNKNOWN = Measure(float("nan"), float("nan"))


def _cross_validated(
    pairs: Pairs, values: Floats, always: bool, repeats: int, seed: int
) -> tuple[Measure, ...]:
    """Each repeat's figures are of all its folds together."""
    count = len(values)
    if count < FOLDS:
        return (_UNKNOWN,) * 4
    numbers = np.random.default_rng(seed)
    fold = np.stack([numbers.permutation(count) % FOLDS for _ in range(repeats)])  # (R, P)
    trained = (fold[:, None] != np.arange(FOLDS)[:, None]).reshape(repeats * FOLDS, count)
    tester = FOLDS * np.arange(repeats)[:, None] + fold  # the regression that tests the pair
    probability, score = _tested(pairs, values, trained, tester, always)
    return tuple(Measure(_mean(figure), _sd(figure)) for figure in _figures(probability, score, pairs.gains))


def _left_out(pairs: Pairs, values: Floats, always: bool, draws: int, seed: int) -> tuple[Measure, ...]:
    trained, tester = _couples(pairs)
    tested = np.flatnonzero(np.asarray(trained.any(axis=1))[tester])
    if not len(tested):
        return (_UNKNOWN,) * 4
    predicted = _tested(pairs, values, trained, tester[None], always)

    def figures(chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[float]:
        probability, score = (rows[:, chosen] for rows in predicted)
        return [float(figure[0]) for figure in _figures(probability, score, pairs.gains[chosen])]

    counted = (np.repeat(tested, row[tested].astype(np.int64)) for row in pairs.counts(draws, seed))
    drawn = np.array([figures(chosen) for chosen in counted if len(chosen)]).reshape(-1, 4)
    return tuple(
        Measure(figure, _sd(spread)) for figure, spread in zip(figures(tested), drawn.T, strict=True)
    )


def _couples(pairs: Pairs) -> tuple[Mask, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """(couples, P) which pairs have neither of two tasks, and (P,) the couple of each pair."""
    places = pairs.places
    couples, tester = np.unique(np.sort(places, axis=1), axis=0, return_inverse=True)
    shared = (places[None, :, :, None] == couples[:, None, None, :]).any(axis=(2, 3))
    apart: Mask = np.logical_not(shared)
    return apart, tester


def left_out_probabilities(pairs: Pairs, predictor: Predictor) -> dict[tuple[str, str], float]:
    """By pair, the probability of a gain by the regression that has seen neither of its tasks (LEFT_OUT).

    Without the pairs for which the predictor has no value, or of which no such regression can be fitted.
    """
    known = np.flatnonzero(predictor.known)
    judged = Pairs(tuple(pairs.names[place] for place in known), pairs.gains[known])
    if not len(known):
        return {}
    trained, tester = _couples(judged)
    values = _ranked(predictor.values[known], predictor.values[known])
    probability, _ = _tested(judged, values, trained, tester[None], predictor.always)
    if not trained.any():
        return {}
    fitted = np.asarray(trained.any(axis=1))[tester]
    return {name: float(probability[0, row]) for row, name in enumerate(judged.names) if fitted[row]}


def _tested(
    pairs: Pairs,
    values: Floats,
    trained: Mask,
    tester: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    always: bool,
) -> tuple[Floats, Floats]:
    """Probability and score (R, P) of each pair by the regression that tests it, tester (R, P)."""
    predicted = regressions(values, pairs.gains > 0, trained).predict(values)
    probability, score = (rows[tester, np.arange(len(values))] for rows in predicted)
    return np.ones_like(probability) if always else probability, score


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _sd(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")


def _figures(probability: Floats, score: Floats, gains: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Accuracy, F1, ROC AUC and Spearman's correlation of each row of predictions (R, P) for gains (P,).

    AUC is that of Mann and Whitney's rank sum. All rows at once take a hundredth of scikit-learn's time.
    """
    gained, predicted = gains > 0, probability > 0.5
    hits = (predicted & gained).sum(axis=1)
    f1 = 2 * hits / np.maximum(predicted.sum(axis=1) + gained.sum(), 1)
    gaining, losing = int(gained.sum()), int((~gained).sum())
    auc = np.full(len(score), np.nan)
    if gaining and losing:
        ranks = rankdata(score, axis=1)[:, gained].sum(axis=1)
        auc = (ranks - gaining * (gaining + 1) / 2) / (gaining * losing)
    return (predicted == gained).mean(axis=1), f1, auc, _spearman(score, gains)


def _spearman(score: Floats, gains: Floats) -> Floats:
    """(R,) rank correlation of each row of scores (R, P) with gains (P,); NaN where either is constant."""
    first, second = rankdata(score, axis=1), rankdata(gains)
    first, second = first - first.mean(axis=1, keepdims=True), second - second.mean()
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum())
    rho = np.full(len(first), np.nan)
    np.divide(first @ second, spread, out=rho, where=spread > 0)
    return rho


@dataclass(frozen=True)
class GainModel:
    """A predictor's regression on all pairs that were measured, for pairs that were not.

    `judgement` says what to expect of it for new tasks (LEFT_OUT).
    """

    predictor: Predictor
    judgement: Judgement
    regressions: Regressions = field(repr=False)

    def probability(self, values: Floats) -> Floats:
        """(Q,) the probability of a gain for pairs with values (Q, F); NaN for one without any value."""
        ranked = _ranked(values, self.predictor.values)
        return np.where(has_value(values), self.regressions.predict(ranked)[0][0], np.nan)


def gain_model(pairs: Pairs, predictor: Predictor) -> GainModel:
    """The predictor's regression on all pairs. Raises ValueError where it has a value for none of them."""
    known = predictor.known
    if not known.any():
        raise ValueError(f"{predictor.name} has a value for no pair")
    values = _ranked(predictor.values, predictor.values)
    fitted = regressions(values, pairs.gains > 0, known[None])
    return GainModel(predictor, judge(pairs, predictor, LEFT_OUT), fitted)


@dataclass(frozen=True)
class Coefficient:
    """A feature's weight in the regression on all pairs, features scaled to [0, 1], and its 95% interval."""

    feature: str
    value: float
    low: float
    high: float


def coefficients(
    pairs: Pairs, predictor: Predictor, *, draws: int = INTERVAL_DRAWS, seed: int = 0
) -> tuple[Coefficient, ...]:
    """The weights of the predictor's regression on all pairs; 2.5 and 97.5% of a bootstrap over tasks.

    The bootstrap is `Pairs.counts`. Scales and imputed values stay those of all pairs, so that weights
    have the same unit in every draw. Pairs for which the predictor has no value are left out.
    """
    known, gained = predictor.known, pairs.gains > 0
    fitted = regressions(predictor.values, gained, known[None])
    scaled = fitted.scales.apply(predictor.values)
    counts = pairs.counts(draws, seed) * known
    drawn = logistic(np.broadcast_to(scaled, (draws, *scaled.shape[1:])), gained, counts)[0]
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    rows = zip(predictor.features, fitted.weights[0].tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Coefficient(*row) for row in rows)


PUBLISHED = {
    "majority": (0.555, 0.615),
    "all features": (0.749, 0.669),
    "data features": (0.665, 0.542),
    "best combination": (0.785, 0.713),
}
"""Accuracy and F1 of gain by predictor (Bingel and Søgaard 2017, Table 3), 90 pairs of 10 tasks, 100 × 5
folds.

Their best two rows are of features that were chosen on the same folds; they scaled by all pairs, and took the
mean of F1 over folds.
"""

PUBLISHED_COEFFICIENTS = {
    "main gradient_30": -1.566,
    "main gradient_20": -1.164,
    "main curve_c": 1.007,
    "main labels": 0.828,
    "aux label_entropy": 0.798,
    "aux gradient_30": 0.791,
    "main gradient_50": 0.781,
    "main oov_rate": 0.697,
    "main/aux oov_rate": 0.678,
    "aux gradient_20": 0.575,
    "main frobenius_norm": -0.516,
    "main/aux labels": 0.504,
    "aux gradient_50": -0.099,
    "main/aux gradient_50": 0.076,
    "aux oov_rate": 0.061,
    "main/aux gradient_30": -0.060,
    "main size": -0.032,
    "main curve_a": 0.027,
    "main/aux gradient_10": 0.023,
    "main jsd": 0.019,
    "main/aux jsd": -0.015,
    "main gradient_10": 6e-2,  # as printed; by its place in the table, 6e-3 is meant
    "main/aux size": -6e-3,
    "main/aux gradient_70": -4e-4,
}
"""The published coefficients of all features (their Table 4), where their text has them."""
