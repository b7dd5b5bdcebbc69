"""Scores against the one number in which configurations differ, checked against hand calculations."""

from __future__ import annotations

from typing import Any

import pytest

from core.results.figures import against_chart
from core.results.series import ScoresAgainst, number_series, scores_against
from core.store import Conditions
from tests.pages.compared import config, score, succeeded


def against(*made: tuple[dict[str, Any], dict[str, dict[str, float]]]) -> list[ScoresAgainst]:
    """Of runs with these fields, and their scores by split and task."""
    runs = succeeded([config(**fields) for fields, _ in made])
    scores = [
        score(run.id, task, value, split)
        for run, (_, by_split) in zip(runs, made, strict=True)
        for split, by_task in by_split.items()
        for task, value in by_task.items()
    ]
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
