"""Predictors of gain on data whose answer is known, against scikit-learn and scipy."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from core.transfer import predictors
from core.transfer.features import FEATURES, Features
from core.transfer.predictors import (
    AMI,
    CORRELATION,
    COSINE,
    CROSS_VALIDATION,
    LEFT_OUT,
    PUBLISHED,
    PUBLISHED_COEFFICIENTS,
    Pairs,
    Predictor,
    Scheme,
    baselines,
    coefficients,
    feature_predictors,
    flat_beside_steep,
    judge,
    single_number,
)

Floats = NDArray[np.float64]
TASKS = tuple(f"t{number}" for number in range(12))
NAMES = tuple(permutations(TASKS, 2))
SCHEMES = (CROSS_VALIDATION, LEFT_OUT)


def _numbers(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _of_tasks(values: Floats, role: int) -> Floats:
    """Of each pair the value of its main (0) or auxiliary task (1), from one value a task."""
    return np.array([values[TASKS.index(pair[role])] for pair in NAMES])


def test_the_judgements_of_a_real_study_are_found_again() -> None:
    """The regression is as it was for the part `scarce-minilm` of the study `transfer`."""
    path = Path(__file__).parents[2] / "assets" / "scarce-minilm.json"
    study = json.loads(path.read_text(encoding="utf-8"))
    pairs = Pairs.from_gains({(row["main"], row["aux"]): row["gain"] for row in study["pairs"]})
    features = {
        task: Features({name: np.nan if value is None else value for name, value in known.items()})
        for task, known in study["features"].items()
    }
    numbers = {
        name: {(row["main"], row["aux"]): row[name] for row in study["pairs"] if row[name] is not None}
        for name in (AMI, CORRELATION, COSINE)
    }
    predictors_of_pairs = [
        *baselines(pairs),
        *feature_predictors(pairs, features),
        *(single_number(name, pairs, known) for name, known in numbers.items()),
    ]
    by_name = {judged["predictor"]: judged for judged in study["judgements"] if judged["scheme"] == LEFT_OUT}
    assert by_name.keys() == {predictor.name for predictor in predictors_of_pairs}
    for predictor in predictors_of_pairs:
        judged, recorded = judge(pairs, predictor, LEFT_OUT), by_name[predictor.name]
        assert (judged.pairs, judged.gaining) == (recorded["pairs"], recorded["gaining"])
        for name in ("accuracy", "f1", "auc", "rank"):
            known, figure = recorded[name], getattr(judged, name)
            measured = [np.nan if known[key] is None else known[key] for key in ("value", "sd")]
            assert [figure.value, figure.sd] == pytest.approx(measured, abs=2e-3, nan_ok=True)


def test_figures_are_those_of_scikit_learn_and_scipy() -> None:
    gains = _numbers().normal(size=40)
    for row in range(3):
        score = np.round(gains + _numbers(row).normal(size=40), 1)  # rounded: there are ties
        probability = 1 / (1 + np.exp(-score))
        assert predictors._figures(probability, score, gains) == pytest.approx(
            [
                accuracy_score(gains > 0, probability > 0.5),
                f1_score(gains > 0, probability > 0.5),
                roc_auc_score(gains > 0, score),
                spearmanr(score, gains).statistic,
            ]
        )


def test_cross_validation_is_that_of_scikit_learn() -> None:
    values = _numbers().random((132, 6))
    gains = values @ [1, -1, 0.5, 0, 0, 0] + 0.3 * _numbers(1).normal(size=132) - 0.3
    accuracies = []
    for repeat in range(20):
        predicted = np.zeros(132)
        for train, test in KFold(5, shuffle=True, random_state=repeat).split(values):
            model = make_pipeline(MinMaxScaler(clip=True), LogisticRegression())
            predicted[test] = model.fit(values[train], gains[train] > 0).predict(values[test])
        accuracies.append((predicted == (gains > 0)).mean())
    judged = judge(Pairs(NAMES, gains), Predictor("six", values), CROSS_VALIDATION, repeats=40)
    assert judged.accuracy.value == pytest.approx(np.mean(accuracies), abs=0.01)
    assert judged.accuracy.sd == pytest.approx(np.std(accuracies, ddof=1), rel=0.5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_features_tell_nothing(scheme: Scheme) -> None:
    figures = []
    for seed in range(10):
        pairs = Pairs(NAMES, _numbers(seed).normal(size=132))
        values = _numbers(100 + seed).normal(size=(132, 10))
        judged = judge(pairs, Predictor("random", values), scheme, repeats=5, draws=2)
        figures.append((judged.auc.value, judged.rank.value))
    assert np.mean(figures, axis=0) == pytest.approx([0.5, 0], abs=0.05)


def test_leaving_tasks_out_exposes_a_predictor_that_remembers_tasks() -> None:
    """Some main tasks gain by every other; the features only tell which task the main task is."""
    in_folds, left_out = [], []
    for seed in range(4):
        effect, features = _numbers(seed).normal(size=12), _numbers(50 + seed).normal(size=(12, 14))
        pairs = Pairs(NAMES, _of_tasks(effect, 0) + 0.3 * _numbers(seed).normal(size=132))
        remembers = Predictor("remembers", np.array([_of_tasks(column, 0) for column in features.T]).T)
        in_folds.append(judge(pairs, remembers, CROSS_VALIDATION, repeats=3).auc.value)
        left_out.append(judge(pairs, remembers, LEFT_OUT, draws=2).auc.value)
    assert np.mean(in_folds) > 0.8
    assert np.mean(left_out) < 0.55


def test_two_tasks_left_out_are_in_no_training_pair() -> None:
    left_out = set()
    for trained, tested in predictors._folds_of_tasks(Pairs(NAMES, np.ones(132))):
        seen = {task for name, is_trained in zip(NAMES, trained, strict=True) if is_trained for task in name}
        left_out.add(frozenset(set(TASKS) - seen))
        assert (trained.sum(), tested.sum()) == (90, 2)
    assert left_out == {frozenset(pair) for pair in NAMES}


def test_baselines_by_hand() -> None:
    gains = np.where(np.arange(132) < 44, 1.0, -1.0)  # a third of the pairs gain
    pairs = Pairs(NAMES, gains)
    majority, always = (
        judge(pairs, predictor, CROSS_VALIDATION, repeats=3) for predictor in baselines(pairs)
    )
    assert (majority.accuracy.value, majority.f1.value) == pytest.approx((2 / 3, 0))
    assert (always.accuracy.value, always.f1.value) == pytest.approx((1 / 3, 1 / 2))
    assert majority.auc.value == always.auc.value == 0.5
    assert np.isnan(majority.rank.value)
    assert (majority.pairs, majority.gaining) == (132, 44)
    # Both figures of the published majority, of 40 gains in 90 pairs.
    assert PUBLISHED["majority"] == pytest.approx((50 / 90, 2 * 40 / (90 + 40)), abs=6e-4)


def test_a_number_for_some_pairs_is_judged_on_those() -> None:
    gains = _numbers().normal(size=132)
    pairs = Pairs(NAMES, gains)
    known = dict(zip(NAMES[:60], (-(gains[:60] ** 3)).tolist(), strict=True))
    judged = judge(pairs, single_number("opposite", pairs, known, seconds=3.0), CROSS_VALIDATION, repeats=3)
    assert (judged.pairs, judged.gaining, judged.seconds) == (60, int((gains[:60] > 0).sum()), 3.0)
    assert judged.direct_rank == pytest.approx(-1)  # of the number itself
    assert judged.auc.value > 0.95  # of the regression, which learns the sign


@pytest.mark.parametrize("scheme", SCHEMES)
def test_too_few_pairs_tell_nothing(scheme: Scheme) -> None:
    pairs = Pairs.from_gains({("a", "b"): 1.0, ("b", "a"): -1.0, ("a", "c"): 1.0})
    judged = judge(pairs, single_number("number", pairs, {("a", "b"): 1.0}), scheme)
    assert judged.pairs == 1
    assert np.isnan([judged.accuracy.value, judged.auc.sd, judged.direct_rank]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_missing_and_constant_features_and_a_single_class_do_no_harm(scheme: Scheme) -> None:
    values = _numbers().normal(size=(132, 4))
    values[:, 1], values[5, 2], values[:, 3] = 7.0, np.nan, np.nan
    judged = judge(Pairs(NAMES, values[:, 0]), Predictor("few", values), scheme, repeats=3, draws=5)
    assert judged.pairs == 132
    assert judged.auc.value > 0.95
    gaining = judge(Pairs(NAMES, np.ones(132)), Predictor("few", values), scheme, repeats=3, draws=5)
    assert (gaining.accuracy.value, gaining.f1.value) == (1, 1)
    assert np.isnan([gaining.auc.value, gaining.rank.value]).all()


def test_a_missing_value_is_the_median_of_the_training_pairs_and_others_are_cut_off() -> None:
    values = np.array([[0.0], [1.0], [np.nan], [4.0], [100.0]])
    regression = predictors.fit(values[:4], np.array([False, True, False, True]))
    assert regression.scaled(values)[:, 0].tolist() == [0, 0.25, 0.25, 1, 1]


def test_coefficients_have_intervals_over_tasks() -> None:
    """A property of main tasks decides; intervals over 12 tasks hold it apart from zero, and no noise."""
    decisive_values = _of_tasks(_numbers().normal(size=12), 0)
    values = np.column_stack([decisive_values, _numbers(1).normal(size=(132, 2))])
    pairs = Pairs(NAMES, values[:, 0])
    three = Predictor("three", values, ("decisive", "noise", "more"))
    decisive, *noise = coefficients(pairs, three, draws=200)
    assert decisive.feature == "decisive"
    assert 0 < decisive.low < decisive.value < decisive.high
    for coefficient in noise:
        assert coefficient.low < coefficient.value < coefficient.high
        assert coefficient.low < 0 < coefficient.high


def test_predictors_of_the_paper_have_21_21_and_42_features() -> None:
    features = {
        task: Features(dict(zip(FEATURES, _numbers(place).random(14), strict=True)))
        for place, task in enumerate(TASKS)
    }
    made = feature_predictors(Pairs(NAMES, np.ones(132)), features, data_seconds=1.0, curve_seconds=20.0)
    assert [(len(each.features), each.seconds) for each in made] == [(21, 1), (21, 20), (42, 21)]
    main, aux = (features[task].values["size"] for task in NAMES[0])
    row = dict(zip(made[0].features, made[0].values[0], strict=True))
    assert (row["main size"], row["aux size"], row["main/aux size"]) == pytest.approx((main, aux, main / aux))
    assert PUBLISHED_COEFFICIENTS.keys() <= set(made[2].features)


def test_pairs_need_finite_gains() -> None:
    with pytest.raises(ValueError, match="finite gain"):
        Pairs.from_gains({("a", "b"): float("nan")})


def test_a_planted_gain_of_flat_main_tasks_beside_steep_ones_is_found() -> None:
    steepness = dict(zip(TASKS, np.linspace(0, 1, len(TASKS)).tolist(), strict=True))
    features = {
        task: Features({"gradient_20": -value, "gradient_30": -value}) for task, value in steepness.items()
    }
    noise = dict(zip(NAMES, _numbers().normal(0, 0.5, len(NAMES)).tolist(), strict=True))
    planted = {
        (main, aux): 2.0 * (steepness[main] < 0.5 < steepness[aux]) + noise[main, aux] for main, aux in NAMES
    }
    contrast = flat_beside_steep(Pairs.from_gains(planted), features)
    unrelated = flat_beside_steep(Pairs.from_gains(noise), features)
    assert contrast is not None
    assert unrelated is not None
    assert contrast.count == 36
    assert 1.5 < contrast.low < contrast.difference < contrast.high < 2.5
    assert unrelated.low < 0 < unrelated.high

    # A curve of few points has no gradients: its pairs are of neither kind.
    short = {task: known for task, known in features.items() if task not in TASKS[:2]}
    short |= dict.fromkeys(TASKS[:2], Features(dict.fromkeys(("gradient_20", "gradient_30"), np.nan)))
    without = {pair: gain for pair, gain in planted.items() if not {*pair} & {*TASKS[:2]}}
    left_out = flat_beside_steep(Pairs.from_gains(planted), short)
    never_there = flat_beside_steep(Pairs.from_gains(without), features)
    assert left_out is not None
    assert never_there is not None
    assert left_out.count == never_there.count
    assert left_out.other_gain == pytest.approx(never_there.other_gain)


@pytest.mark.parametrize("gradient", [-1.0, np.nan])
def test_without_a_steep_curve_there_is_no_contrast(gradient: float) -> None:
    """Runs of three epochs have curves of too few points, whose gradients are not known."""
    even = {task: Features({"gradient_20": gradient, "gradient_30": gradient}) for task in TASKS}
    assert flat_beside_steep(Pairs.from_gains(dict.fromkeys(NAMES, 1.0)), even) is None
