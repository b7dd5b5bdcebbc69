"""Scores against the one number in which configurations differ, checked against hand calculations."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from scipy import stats

from core.evaluation.statistics import MeanSD
from core.results.figures import against_chart
from core.results.series import ScoresAgainst, Series, baselines, number_series, scores_against
from core.store import Conditions, Run, StoredScore
from tests.pages.compared import config, score, succeeded

Made = tuple[dict[str, Any], dict[str, dict[str, float]]]
"""The fields of a run, and its scores by split and task."""


def width(mean: MeanSD) -> float:
    assert mean.low is not None
    assert mean.high is not None
    return mean.high - mean.low


def scored(*made: Made) -> tuple[list[Run], list[StoredScore]]:
    """Successful runs with these fields, and their scores."""
    runs = succeeded([config(**fields) for fields, _ in made])
    return runs, [
        score(run.id, task, value, split)
        for run, (_, by_split) in zip(runs, made, strict=True)
        for split, by_task in by_split.items()
        for task, value in by_task.items()
    ]


def against(*made: Made) -> list[ScoresAgainst]:
    """The scores of each series of such runs."""
    runs, scores = scored(*made)
    return [
        scores_against(series, [of for of in scores if of.run_id in series.run_ids])
        for series in number_series(runs)
    ]


def on_texts(*made: tuple[float, str | None]) -> list[tuple[list[float], set[int]]]:
    """The values and runs of the series of runs with these λ, each on this text (None: not recorded)."""
    runs = succeeded([config(lambda_=value) for value, _ in made])
    conditions = {run.id: Conditions(text) for run, (_, text) in zip(runs, made, strict=True)}
    found = number_series(runs, conditions)
    return [(list(series.runs), set(series.run_ids)) for series in found]


def test_scores_on_older_text_are_a_series_of_their_own() -> None:
    """The first text has most values; a run that did not record its text may have seen either."""
    assert on_texts((0.1, "a"), (0.2, "a"), (0.3, "b")) == [([0.1, 0.2], {1, 2})]
    both_texts = [(0.1, "a"), (0.2, "a"), (0.3, "a"), (0.1, "b"), (0.3, "b")]
    assert on_texts(*both_texts) == [([0.1, 0.2, 0.3], {1, 2, 3}), ([0.1, 0.3], {4, 5})]
    assert on_texts((0.1, None), (0.2, "a"), (0.3, None)) == [([0.1, 0.2, 0.3], {1, 2, 3})]
    assert on_texts((0.1, "a"), (0.2, None), (0.3, "b")) == []


def both(test: float, dev: float) -> dict[str, dict[str, float]]:
    """Scores of both tasks: those of NER are 0.2 lower."""
    return {split: {"pos": value, "ner": value - 0.2} for split, value in (("test", test), ("dev", dev))}


def test_means_intervals_and_the_dev_choice_over_seeds() -> None:
    (view,) = against(
        ({"lambda": 0.1, "seed": 1}, both(0.8, 0.9)),
        ({"lambda": 0.001, "seed": 1}, both(0.6, 0.7)),
        ({"lambda": 0.001, "seed": 2}, both(0.7, 0.9)),
        ({"lambda": 0.1, "seed": 2}, both(0.8, 0.9)),
        ({"lambda": 0.01, "seed": 2}, both(0.5, 0.95)),
    )
    # Seed 2 is all that the three have in common: 0.8, 0.85 and 0.8.
    assert (view.series.title, list(view.series.runs), view.dev_choice) == ("λ", [0.001, 0.01, 0.1], 0.01)
    lines = {(line.task, line.split): line.points for line in view.lines}
    assert lines.keys() == {(task, split) for task in ("", "pos", "ner") for split in ("test", "dev")}
    # Two seeds, 0.6 and 0.7: SD 0.0707, and t with one degree of freedom is 12.706.
    pos, whole = (lines[task, "test"][0.001] for task in ("pos", ""))
    assert (pos.mean, pos.sd, pos.n) == pytest.approx((0.65, 0.0707107, 2))
    assert (pos.low, pos.high) == pytest.approx((0.65 - 0.63531024, 0.65 + 0.63531024))
    assert (whole.mean, whole.sd) == pytest.approx((0.55, 0.0707107))
    assert lines["", "test"][0.01].low is None
    chart = against_chart(view, {}, of_tasks=True)
    assert (chart.layout["xaxis"]["type"], chart.layout["shapes"][0]["x0"]) == ("log", 0.01)
    assert chart.data[0]["y"] == pytest.approx((65, 50, 80))
    assert {trace["yaxis"] for trace in chart.data} == {"y", "y2"}
    (first, second) = against_chart(view, {}, of_tasks=False).data
    assert (first["y"], second["y"]) == (pytest.approx((55, 40, 70)), pytest.approx((70, 85, 80)))


@pytest.mark.parametrize("number", range(2, 25))
def test_a_panel_for_each_of_so_many_tasks(number: int) -> None:
    tasks = [f"task {place}" for place in range(number)]
    scores = {"test": dict.fromkeys(tasks, 0.5)}
    (view,) = against(
        *(({"lambda": value, "seed": 1, "tasks": tuple(tasks)}, scores) for value in (0.1, 0.01))
    )
    chart = against_chart(view, {}, of_tasks=True)
    axes = [chart.layout[f"yaxis{place or ''}"]["domain"] for place in [0, *range(2, number + 1)]]
    assert all(0 <= low < high <= 1 for low, high in axes)


def test_the_mean_over_tasks_has_the_seeds_that_have_all_of_them() -> None:
    (view,) = against(
        ({"paradigm": "stl", "tasks": ("pos",), "lr_heads": 0.01, "seed": 1}, {"test": {"pos": 0.9}}),
        ({"paradigm": "stl", "tasks": ("ner",), "lr_heads": 0.01, "seed": 1}, {"test": {"ner": 0.7}}),
        ({"paradigm": "stl", "tasks": ("pos",), "lr_heads": 0.01, "seed": 2}, {"test": {"pos": 0.1}}),
        ({"paradigm": "stl", "tasks": ("pos",), "lr_heads": 0.03, "seed": 1}, {"test": {"pos": 0.8}}),
    )
    means = {line.task: {value: of.mean for value, of in line.points.items()} for line in view.lines}
    assert means["pos"] == {0.01: pytest.approx(0.5), 0.03: pytest.approx(0.8)}
    assert means[""] == {0.01: pytest.approx(0.8)}
    assert view.dev_choice is None
    assert against_chart(view, {}, of_tasks=False).layout["xaxis"]["type"] is None


def test_dev_chooses_on_the_seeds_and_tasks_that_all_values_have() -> None:
    """λ 0.1 is better on each seed that both have; 0.2 was trained with the two easy seeds alone."""
    hard = [({"lambda": 0.1, "seed": seed}, both(0.5, 0.61)) for seed in (1, 2, 3)]
    easy = [({"lambda": 0.1, "seed": seed}, both(0.5, 0.70)) for seed in (4, 5)]
    other = [({"lambda": 0.2, "seed": seed}, both(0.5, 0.68)) for seed in (4, 5)]
    (view,) = against(*hard, *easy, *other)
    assert view.dev_choice == 0.1
    (view,) = against(*hard, *other)
    assert view.dev_choice is None
    (view,) = against(
        ({"lambda": 0.1}, {"dev": {"pos": 0.9}}), ({"lambda": 0.2}, {"dev": {"pos": 0.8, "ner": 0.99}})
    )
    assert view.dev_choice == 0.1


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([{}, {"seed": 2}], []),
        ([{"lambda": 0.1}, {"lambda": 0.2, "epochs": 9}], []),
        ([{"lambda": 0.1}, {"paradigm": "mtl"}], []),
        (
            [{"lambda": 0.1}, {"lambda": 0.2}, {"paradigm": "mtl"}, {"paradigm": "stl"}],
            [("λ", ["0.1", "0.2"])],
        ),
        ([{"fraction": 0.05}, {"fraction": 1.0}], [("Share", ["5%", "100%"])]),
        (
            [{"corpus": f"simulated:demo?task=ner&alpha={alpha}&dev=9"} for alpha in (0.5, 1.0)],
            [("α", ["0.5", "1"])],
        ),
        ([{"corpus": f"demo?test={words}"} for words in (10, 20)], []),
        # The rate of the heads is ten times that of the encoder.
        (
            [{"encoder_training": "full", "lr_encoder": rate} for rate in (1e-5, 1e-4, 2e-4)],
            [("Learning rate, encoder", ["1e-5", "1e-4", "2e-4"])],
        ),
        (
            [{"lambda": λ} for λ in (0.1, 0.2)] + [{"epochs": epochs, "lambda": 0.1} for epochs in (7, 8)],
            [("Epochs", ["5", "7", "8"]), ("λ", ["0.1", "0.2"])],
        ),
    ],
)
def test_a_picture_needs_configurations_that_differ_in_one_number_alone(
    fields: list[dict[str, Any]], found: list[tuple[str, list[str]]]
) -> None:
    views = against(*((values, both(0.8, 0.8)) for values in fields))
    assert [(of.series.title, list(map(of.series.value_text, of.series.runs))) for of in views] == found


def brute_differences(
    minuends: dict[int, float], base: dict[int, float]
) -> tuple[float, float, float, float]:
    """Mean, SD and the 95% interval of the differences by seed, computed with scipy's own functions."""
    values = [minuends[seed] - base[seed] for seed in minuends if seed in base]
    mean, sd = statistics.mean(values), statistics.stdev(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=sd / len(values) ** 0.5)
    return mean, sd, float(low), float(high)


MTL = {1: 0.60, 2: 0.72, 3: 0.66, 4: 0.9}
SWEPT = {
    0.001: {1: 0.61, 2: 0.74, 3: 0.665},
    0.01: {1: 0.63, 2: 0.75, 3: 0.70},
    0.1: {2: 0.70, 3: 0.65, 5: 0.2},
}


def swept(*more: Made) -> tuple[Series, list[Run], list[StoredScore]]:
    """A sweep of λ beside MTL, with seeds in common: the series, all runs, all scores."""
    of_mrn = [
        ({"lambda": value, "seed": seed}, both(score, score + 0.05))
        for value, by_seed in SWEPT.items()
        for seed, score in by_seed.items()
    ]
    of_mtl = [({"paradigm": "mtl", "seed": seed}, both(score, score + 0.04)) for seed, score in MTL.items()]
    runs, scores = scored(*of_mrn, *of_mtl, *more)
    return number_series(runs)[0], runs, scores


def test_differences_from_mtl_are_paired_by_seed() -> None:
    """Seeds spread by 6 points, their differences by less than 1: the interval is that of the latter."""
    series, runs, scores = swept()
    mtl = baselines(series, runs)[0]
    assert mtl.name == "MTL"
    view = scores_against(series, scores, mtl)
    drawn = {(line.task, line.split): line.points for line in view.differences}
    assert drawn.keys() == {(task, split) for task in ("", "pos", "ner") for split in ("test", "dev")}
    for value, by_seed in SWEPT.items():
        mean, sd, low, high = brute_differences(by_seed, MTL)
        for task in ("", "pos", "ner"):
            point = drawn[task, "test"][value]
            assert (point.mean, point.sd, point.low, point.high) == pytest.approx((mean, sd, low, high))
            assert point.n == len(by_seed.keys() & MTL.keys())
            assert drawn[task, "dev"][value].mean == pytest.approx(mean + 0.01)
    test, dev = against_chart(view, {}, of_tasks=False, differences=True).data
    assert test["y"] == pytest.approx([100 * brute_differences(SWEPT[value], MTL)[0] for value in SWEPT])
    narrow = drawn["", "test"][0.01]
    wide = next(line for line in view.lines if (line.task, line.split) == ("", "test")).points[0.01]
    assert width(narrow) < width(wide) / 3
    # Dev and test have different places, and dev is not at the place of another value.
    assert list(test["x"]) == list(SWEPT)
    assert all(place < value for place, value in zip(dev["x"], SWEPT, strict=True))
    assert all(dev["x"][place + 1] > value for place, value in enumerate(list(SWEPT)[:-1]))


def test_a_line_at_zero_of_differences_and_one_for_the_baseline_of_scores() -> None:
    series, runs, scores = swept()
    view = scores_against(series, scores, baselines(series, runs)[0])
    differences = against_chart(view, {}, of_tasks=True, differences=True)
    levels = [(line["yref"], line["y0"]) for line in differences.layout["shapes"] if line["y0"] == line["y1"]]
    assert levels == [("y", 0), ("y2", 0)]
    assert differences.layout["yaxis"]["title"]["text"] == "pos, points"
    of_scores = against_chart(view, {}, of_tasks=False)
    of_mtl = {trace["name"]: trace["y"] for trace in of_scores.data if "MTL" in trace["name"]}
    mean = 100 * (statistics.mean(MTL.values()) - 0.1)
    assert of_mtl["MTL, test"] == pytest.approx([mean] * 3)
    assert of_mtl["MTL, dev"] == pytest.approx([mean + 4] * 3)


def test_the_baselines_of_a_series_are_those_on_its_data_the_nearest_first() -> None:
    series, runs, scores = swept(
        ({"paradigm": "mtl", "epochs": 9}, both(0.5, 0.5)),
        ({"paradigm": "stl", "tasks": ("pos",)}, {"test": {"pos": 0.5}}),
        ({"paradigm": "stl", "tasks": ("ner",)}, {"test": {"ner": 0.4}}),
        ({"paradigm": "mtl", "fraction": 0.5}, both(0.99, 0.99)),
        ({"paradigm": "mtl", "corpus": "demo?train=9"}, both(0.99, 0.99)),
        ({"lambda": 0.01, "prior": "map", "alignment": "exact"}, both(0.5, 0.5)),
    )
    names = [base.name for base in baselines(series, runs)]
    assert (
        names == ["MTL · 5 epochs", "MTL · 9 epochs", "STL", "MRN λ=0.01", "λ 0.001", "λ 0.01", "λ 0.1"]
        or names
    )
    stl = next(base for base in baselines(series, runs) if base.name == "STL")
    assert len(stl.run_ids) == 2
    of_stl = {
        line.task: line for line in scores_against(series, scores, stl).differences if line.split == "test"
    }
    assert of_stl["ner"].by_seed[0.01] == {1: pytest.approx(0.43 - 0.4)}
    own = scores_against(series, scores, baselines(series, runs)[-1])
    zero = next(line for line in own.differences if (line.task, line.split) == ("pos", "test"))
    assert set(zero.by_seed[0.1].values()) == {0}
    assert zero.by_seed[0.01] == {2: pytest.approx(0.05), 3: pytest.approx(0.05)}


def test_a_baseline_that_varies_too_is_compared_at_equal_values() -> None:
    made = [
        ({"paradigm": paradigm, "epochs": epochs, "seed": seed}, both(0.5 + 0.01 * epochs + gain, 0.6))
        for paradigm, gain in (("mtl", 0.0), ("mrn", 0.03))
        for epochs in (2, 4, 8)[: 3 if paradigm == "mrn" else 2]
        for seed in (1, 2)
    ]
    runs, scores = scored(*made)
    series = next(found for found in number_series(runs) if found.config.paradigm == "mrn")
    (mtl, *own) = baselines(series, runs)
    assert (mtl.name, [base.name for base in own]) == ("MTL", ["Epochs 2", "Epochs 4", "Epochs 8"])
    pos = next(line for line in scores_against(series, scores, mtl).differences if line.task == "pos")
    assert {value: point.mean for value, point in pos.points.items()} == pytest.approx({2: 0.03, 4: 0.03})
    # Shares of the data are on other data: only a baseline with the same share is compared.
    made_of = [config(paradigm, fraction=share) for paradigm in ("mtl", "mrn") for share in (0.5, 1.0)]
    runs = succeeded([*made_of, config("stl")])
    series = next(found for found in number_series(runs) if found.config.paradigm == "mrn")
    assert [base.name for base in baselines(series, runs)] == ["MTL"]
