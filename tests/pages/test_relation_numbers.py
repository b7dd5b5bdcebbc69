"""Relations in numbers: the table under the matrix, and planted beside learned relatedness."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.types import Planted as PlantedFacts
from core.mrn.relations import Relations, covariance_statistics
from core.records import Snapshot, relation_metrics
from core.store import MetricSeries, SnapshotKey, Store
from dashboard.relations.views import in_numbers, number_keys, planted, relations
from tests.making import claimed, run_facts, step_metrics
from tests.making import relations as random_relations
from tests.pages.conftest import Open, words
from tests.pages.filled_store import FEATURES, LABELS, Filled

ALPHAS = {"pos": 1.0, "sim-1": 0.9, "sim-2": 0.5, "sim-3": 0.1}
AMI = (1.0, 0.8, 0.3, 0.02)


def table(app: AppTest, column: str) -> Any:
    return next(one.value for one in app.dataframe if column in one.value.columns)


def simulated(learned: tuple[float, ...]) -> tuple[int, Relations]:
    """A run of pos and three simulated tasks, with these learned correlations with pos."""
    pos = run_facts().tasks[0]
    tasks = tuple(dataclasses.replace(pos, name=name, auxiliary=name != "pos") for name in ALPHAS)
    ami = np.eye(4)
    ami[0] = ami[:, 0] = AMI
    facts = PlantedFacts(tuple(ALPHAS), tuple(ALPHAS.values()), tuple(map(tuple, ami.tolist())))
    task = np.eye(4)
    task[0, 1:] = task[1:, 0] = learned
    store = Store.open()
    run_id = claimed(store, tasks=tuple(ALPHAS))
    store.set_facts(run_id, run_facts(tasks=tasks, planted=facts))
    found = dataclasses.replace(random_relations(), task=task)
    store.add_snapshot(run_id, Snapshot(10, 1.0, found))
    store.close()
    return run_id, found


@pytest.mark.parametrize(
    ("mode", "size"), [("Tasks", 3), ("Labels", sum(map(len, LABELS.values()))), ("Features", FEATURES)]
)
def test_every_mode_is_told_in_numbers(mode: str, size: int, open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode=mode)
    shown = table(app, "At this step").set_index("Number")
    titles = ["Effective rank", "Trace", "Condition", "Strongest pair", "Penalty", "Objective J"]
    assert list(shown.index) == titles
    assert shown.loc["Effective rank", "At this step"].endswith(f" of {size}")
    best = table(app, "r").iloc[0]
    assert f"({best['First']}, {best['Second']})" in shown.loc["Strongest pair", "At this step"]
    assert f"from 1 to {size}" in words(app)


def test_a_run_that_logged_no_numbers_is_measured(open_page: Open) -> None:
    store = Store.open()
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    found = random_relations()
    store.add_metrics(run_id, [step_metrics(1)])
    store.add_snapshot(run_id, Snapshot(1, 0.1, found))
    store.close()
    shown = table(open_page("relations", run=str(run_id)), "At this step").set_index("Number")
    assert list(shown.index) == ["Effective rank", "Trace", "Condition", "Strongest pair"]
    assert shown.loc["Trace", "At this step"] == f"{covariance_statistics(found, 'task').trace:.4g}"


def test_infinity_and_missing_values_are_written_not_drawn() -> None:
    run_id, found = simulated((0.5, 0.2, 0.1))
    store = Store.open()
    singular = dataclasses.replace(found, task=np.ones((4, 4)))
    logged = [relation_metrics(5, 0.5, 1.0, found), relation_metrics(10, 1.0, 2.0, singular)]
    store.add_metrics(run_id, [*logged, step_metrics(10)])
    run = store.run(run_id)
    series: list[MetricSeries] = [one for key in number_keys("task") for one in store.metrics([run_id], key)]
    view = relations(run, "task", SnapshotKey(10, 1.0), singular)
    rows = in_numbers(view, singular, series)
    assert rows["Condition"] == "∞"
    assert rows["Strongest pair"] == "1.000 (pos, sim-1)"
    assert "Penalty" not in rows


def test_a_negative_strongest_pair_has_its_sign() -> None:
    run_id, found = simulated((-0.5, 0.2, 0.1))
    view = relations(Store.open().run(run_id), "task", SnapshotKey(10, 1.0), found)
    rows = in_numbers(view, found, [])
    assert rows["Strongest pair"] == "−0.500 (pos, sim-1)"


def test_planted_beside_learned(open_page: Open) -> None:
    run_id, _ = simulated((0.7, 0.3, -0.1))
    app = open_page("relations", run=str(run_id))
    shown = table(app, "Planted AMI")
    assert list(shown["Task"]) == ["sim-1", "sim-2", "sim-3"]
    assert list(shown["α"]) == [0.9, 0.5, 0.1]
    assert list(shown["Planted AMI"]) == list(AMI[1:])
    assert list(shown["Learned"]) == pytest.approx([0.7, 0.3, -0.1], abs=1e-3)
    told = words(app)
    assert "each simulated task and pos" in told
    assert "Rank correlation of planted and learned: **1.00** over 3 tasks" in told
    assert "Planted and learned" not in words(open_page("relations", run=str(run_id), mode="Labels"))


@pytest.mark.parametrize(
    ("learned", "agreement"), [((0.1, 0.3, 0.7), -1.0), ((0.2, 0.2, 0.2), None), ((0.3, 0.7, 0.1), 0.5)]
)
def test_agreement_is_of_ranks(learned: tuple[float, ...], agreement: float | None) -> None:
    run_id, found = simulated(learned)
    run = Store.open().run(run_id)
    seen = planted(run, relations(run, "task", SnapshotKey(10, 1.0), found))
    assert seen is not None
    assert seen[2] == (agreement if agreement is None else pytest.approx(agreement))


def test_what_was_not_learned_is_said_in_every_mode(open_page: Open) -> None:
    store = Store.open()
    run_id = claimed(store, learn=("task",))
    store.set_facts(run_id, run_facts())
    nothing = Relations(random_relations().task, np.eye(4), np.zeros((16, 0)), 1.0)
    store.add_snapshot(run_id, Snapshot(1, 0.1, nothing))
    store.close()
    for mode in ("Labels", "Features"):
        app = open_page("relations", run=str(run_id), mode=mode)
        assert any("was not learned in this run" in one.value for one in app.info)
        assert "No pair can be related here." in words(app)
        assert table(app, "At this step").set_index("Number").loc["Strongest pair", "At this step"] == "none"
    assert not open_page("relations", run=str(run_id)).info


def test_before_anything_is_related(open_page: Open) -> None:
    store = Store.open()
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    store.add_snapshot(run_id, Snapshot(1, 0.1, Relations(np.eye(2), np.eye(4), np.zeros((16, 0)), math.nan)))
    store.close()
    app = open_page("relations", run=str(run_id))
    assert "No pair is related at this step." in words(app)
    features = table(open_page("relations", run=str(run_id), mode="Features"), "At this step")
    assert list(features["At this step"])[:3] == ["not a number"] * 3
