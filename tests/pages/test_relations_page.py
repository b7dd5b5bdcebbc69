"""A run on the Relations page: its matrix at every step, its numbers, what it could not learn."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

from core.corpora.types import Planted
from core.events import Snapshot, SplitResult
from core.metrics import EpochMetrics, StepMetrics
from core.mrn.relations import Relations
from core.store import RunState, Store
from core.transfer.cosines import gradient_curve
from dashboard.relations.views import planted, rows_of
from tests.making import relations, run_facts, task_score
from tests.pages.conftest import Open, figures, table, words
from tests.pages.filled_store import FEATURES, LABELS, Filled
from tests.pages.matrices import learned_run, listed, number, of_tasks, shown

ROWS = sum(map(len, LABELS.values()))
ALPHAS = {"pos": 1.0, "sim-1": 0.9, "sim-2": 0.5, "sim-3": 0.1}
AMI = (1.0, 0.8, 0.3, 0.02)


def simulated(correlations: tuple[float, ...]) -> tuple[int, Relations]:
    """A run of pos and three simulated tasks, with these learned correlations with pos."""
    pos = run_facts().tasks[0]
    tasks = tuple(dataclasses.replace(pos, name=name, auxiliary=name != "pos") for name in ALPHAS)
    ami, task = np.eye(4), np.eye(4)
    ami[0] = ami[:, 0] = AMI
    task[0, 1:] = task[1:, 0] = correlations
    facts = Planted(tuple(ALPHAS), tuple(ALPHAS.values()), tuple(map(tuple, ami.tolist())))
    learned = dataclasses.replace(relations(), task=task)
    return learned_run(learned, run_facts(tasks=tasks, planted=facts), tasks=tuple(ALPHAS)), learned


# A run's matrix, and its numbers


@pytest.mark.parametrize(("mode", "size"), [("Labels", ROWS), ("Features", FEATURES)])
def test_each_mode_sends_all_steps_at_once_with_variances_and_numbers(
    mode: str, size: int, open_page: Open, finished: Filled
) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode=mode)
    seen, store, is_of_features = shown(app), Store.open(), mode == "Features"
    rows = size // 2 if is_of_features else size
    steps = [key.step for key in store.snapshots(finished.mrn[0])]
    assert seen.frame["steps"] == steps
    (matrices,) = seen.panels
    assert matrices.shape == (len(steps), rows, rows)
    if not is_of_features:  # blocks of features are tested by themselves
        learned = store.relations(finished.mrn[0], steps[4])[1].correlation("label")
        np.testing.assert_allclose(matrices[4], learned, atol=2e-5)
    covariance = store.relations(finished.mrn[0])[1].covariance(seen.frame["mode"])
    assert bool(seen.variances[0].size) == is_of_features  # the variances of labels are equal
    if is_of_features:
        relative = np.diagonal(covariance) / np.diagonal(covariance).mean()
        np.testing.assert_allclose(seen.variances[0][-1], relative.reshape(rows, -1).mean(axis=1), rtol=1e-4)
    assert seen.frame["most_variance"] == pytest.approx(seen.variances[0].max(initial=1))
    numbers = table(app, "Effective rank").iloc[0]
    assert numbers["Trace"] == pytest.approx(np.trace(covariance), rel=1e-4)
    (rank,) = [part.value for part in app.caption if "Effective rank" in part.value]
    assert f"Effective rank {numbers['Effective rank']:.1f} of {size}" in rank
    assert rank.endswith("It is the number of directions that share the variance.")
    assert any("bars" in (caption.help or "") for caption in app.caption) == is_of_features
    assert not app.warning


def test_a_link_to_a_step_shows_that_step(open_page: Open, finished: Filled) -> None:
    steps = [key.step for key in Store.open().snapshots(finished.mrn[0])]
    link: dict[str, Any] = {"run": str(finished.mrn[0]), "mode": "Labels"}
    newest, early = (
        open_page("relations", **link, pair=["pos:DT", "pos:NN"], **more)
        for more in ({}, {"step": str(steps[3])})
    )
    ((row, column), (other_row, other_column)) = shown(early).frame["pair"]
    assert shown(early).frame["rows"]["names"][row] == "pos:DT" != shown(early).frame["rows"]["names"][column]
    assert (other_row, other_column) == (column, row)
    assert "pos:DT and pos:NN over training" in words(early).replace("**", "")
    assert shown(newest).frame["step"] is None
    assert shown(early).frame["step"] == steps[3]
    learned = Store.open().relations(finished.mrn[0], steps[3])[1].correlation("label")
    strongest = np.abs(np.triu(learned, 1)).max()
    texts = [
        listed(open_page("relations", **query, pairs="All"))
        for query in (link | {"step": str(steps[3])}, link)
    ]
    before, after = (abs(number(text["Correlation"][0])) for text in texts)
    assert before == pytest.approx(strongest, abs=0.006)
    assert after > strongest


def test_a_part_in_the_link_is_exact(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode="Features", zoom="10,200")
    seen = shown(app)
    learned = Store.open().relations(finished.mrn[0])[1].correlation("feature")
    np.testing.assert_allclose(seen.panels[0][-1], learned[10:74, 200:264], atol=2e-5)
    assert seen.frame["zoomed"]
    assert seen.frame["rows"]["names"][0] == "feature 10"


def test_one_snapshot_has_no_line_over_training(open_page: Open) -> None:
    """Its chart was empty, under "over training: 0.185"."""
    app = open_page("relations", run=str(learned_run(of_tasks(np.array([[1, 0.185], [0.185, 1]])))))
    assert listed(app).to_numpy().tolist() == [["pos", "ner", "0.19"]]
    assert "there is no line over training" in words(app)
    assert not figures(app, "relations_course")


def test_measured_gradients_beside(open_page: Open) -> None:
    run = learned_run(of_tasks(np.eye(2)), affinity_every=5)
    assert len(shown(open_page("relations", run=str(run))).panels) == 1
    store = Store.open()
    for step, value in ((5, 0.1), (10, 0.4)):
        measured = {gradient_curve("ner", "pos"): value}
        store.add_metrics(run, [StepMetrics(step, 1.0, 1.0, measured)])
    store.close()
    seen = shown(open_page("relations", run=str(run), gradients="true"))
    assert seen.titles == ["Learned", "Gradient cosine"]
    np.testing.assert_allclose(seen.panels[1], [[[1, 0.25], [0.25, 1]]], atol=1e-4)


def test_a_head_that_has_learned_nothing_is_warned_of(open_page: Open) -> None:
    run = learned_run(of_tasks(np.array([[1, 0.97], [0.97, 1]])))
    store = Store.open()
    store.add_metrics(run, [EpochMetrics(10, 1, 1.0, {("pos", "score"): 0.9, ("ner", "score"): 0.0})])
    other = learned_run(of_tasks(np.eye(2)), seed=2)
    app = open_page("relations", run=f"{run},{other}")
    assert len(app.warning) == 1
    # A run that has ended tells how frequent each label is.
    report = {label: {"precision": 0.9, "recall": 0.9, "f1": 0.9, "support": 5} for label in ("NN", "VB")}
    for value, warnings in ((0.9, 0), (0.5, 1)):
        run = learned_run(of_tasks(np.eye(2)), seed=int(10 * value))
        store.add_metrics(run, [EpochMetrics(10, 1, 1.0, {("pos", "score"): value, ("ner", "score"): 0.9})])
        store.add_result(run, SplitResult("dev", 1, (task_score("pos", value, report=report),), {}, {}))
        store.finish(run, RunState.SUCCEEDED, best_epoch=1)
        app = open_page("relations", run=str(run))
        assert [warning.value.count("most frequent label") for warning in app.warning] == [1] * warnings


def test_gold_labels_beside(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode="Labels", gold="true")
    seen = shown(app)
    assert seen.titles == ["Learned", "Gold labels", "Learned − gold"]
    np.testing.assert_allclose(seen.panels[2][-1], seen.panels[0][-1] - seen.panels[1][0], atol=2e-4)
    assert re.search(r"learned and gold: \*\*−?0\.\d\d\*\* over [\d,]+ pairs of labels; ", words(app))
    assert list(listed(app).columns) == ["First", "Second", "Correlation", "Gold", "Beyond"]


def test_a_live_run_gains_a_step(open_page: Open, filled: Filled) -> None:
    (live,) = filled.live
    app = open_page("relations", run=str(live))
    before = shown(app)
    store = Store.open()
    key, learned = store.relations(live)
    store.add_snapshot(live, Snapshot(key.step + 5, key.epoch, learned))
    store.close()
    after = shown(app.run())
    assert after.frame["steps"] == [*before.frame["steps"], key.step + 5]
    assert after.frame["id"] != before.frame["id"]


# What cannot be related, or is not


def test_what_one_of_two_configurations_cannot_learn_is_said_of_it(open_page: Open, finished: Filled) -> None:
    related, apart = finished.mrn[0], finished.disjoint[0]
    both = open_page("relations", run=f"{related},{apart}")
    assert sorted(len(panel["impossible"]) for panel in shown(both).frame["panels"]) == [0, 6]
    assert len(listed(both)) == 3
    (info,) = both.info
    assert "shares no label between tasks" in info.value
    facts = run_facts(alignment="disjoint", impossible=("task",))
    two = [learned_run(of_tasks(np.eye(2)), facts, alignment="disjoint", seed=seed) for seed in (1, 2)]
    neither = open_page("relations", run=",".join(map(str, two)))
    assert "No pair can be related here." in words(neither)


def test_groups_of_tasks_that_never_meet_are_hatched_and_named(open_page: Open) -> None:
    plain = run_facts().tasks
    facts = run_facts(
        alignment="exact",
        tasks=(*plain, dataclasses.replace(plain[0], name="chunk")),
        meet=((True, False, True), (False, True, False), (True, False, True)),
    )
    run_id = learned_run(relations(tasks=3), facts, alignment="exact", tasks=("pos", "ner", "chunk"))
    app = open_page("relations", run=str(run_id))
    (info,) = app.info
    assert "(pos, chunk; ner)" in info.value
    # ner with pos and with chunk, on both sides of the diagonal.
    (panel,) = shown(app).frame["panels"]
    assert len(panel["impossible"]) == 4


def test_what_was_not_learned_is_no_matrix_but_how_to_learn_it(open_page: Open) -> None:
    run_id = learned_run(of_tasks(relations().task), learn=("task",))
    for mode in ("Labels", "Features"):
        app = open_page("relations", run=str(run_id), mode=mode)
        assert not app.get("bidi_component")
        (link,) = (link.proto.query_string for link in app.get("page_link") if link.proto.query_string)
        assert link == f"clone={run_id}&learn=task%2Clabel%2Cfeature"
        assert not app.get("button_group")[2:]  # no order, no gold labels
        (why,) = [caption.help for caption in app.caption if caption.value == "Why?"]
        assert why.startswith("Relations of labels and features were not learned (as configured).")
    assert len(shown(open_page("relations", run=str(run_id))).panels) == 1


def test_beside_a_run_that_learned_labels_one_that_did_not_is_named(open_page: Open) -> None:
    alone, both = (learned_run(relations(), learn=learn) for learn in (("task",), ("task", "label")))
    app = open_page("relations", run=f"{both},{alone}", mode="Labels")
    assert len(shown(app).panels) == 2
    assert any("did not learn the label covariance" in info.value for info in app.info)


def test_before_anything_is_related(open_page: Open) -> None:
    run_id = learned_run(of_tasks(np.eye(2), math.nan))
    assert listed(open_page("relations", run=str(run_id))).to_numpy().tolist() == [["pos", "ner", "0.00"]]
    features = open_page("relations", run=str(run_id), mode="Features")
    assert "The covariance holds values that are not numbers." in words(features)
    assert np.isnan(table(features, "Effective rank").loc[0, "Effective rank"])


def test_planted_beside_learned(open_page: Open) -> None:
    run_id, _ = simulated((0.7, 0.3, -0.1))
    app = open_page("relations", run=str(run_id))
    beside = table(app, "Planted AMI")
    assert list(beside["Task"]) == ["sim-1", "sim-2", "sim-3"]
    assert list(beside["α"]) == [0.9, 0.5, 0.1]
    assert list(beside["Planted AMI"]) == list(AMI[1:])
    assert list(beside["Learned"]) == pytest.approx([0.7, 0.3, -0.1], abs=1e-3)
    assert "each simulated task and pos" in words(app)
    assert "Rank correlation of planted and learned: **1.00** over 3 tasks" in words(app)
    assert "Planted and learned" not in words(open_page("relations", run=str(run_id), mode="Labels"))


@pytest.mark.parametrize(
    ("correlations", "agreement"),
    [((0.1, 0.3, 0.7), -1.0), ((0.2, 0.2, 0.2), None), ((0.3, 0.7, 0.1), 0.5)],
)
def test_agreement_is_of_ranks(correlations: tuple[float, ...], agreement: float | None) -> None:
    run_id, learned = simulated(correlations)
    run = Store.open().run(run_id)
    beside = planted(run, rows_of(run, "task", learned), learned.correlation("task"))
    assert beside is not None
    assert beside[2] == (agreement if agreement is None else pytest.approx(agreement))


def test_relations_say_when_the_penalty_has_vanished(open_page: Open, finished: Filled) -> None:
    for run_id, has_vanished in ((finished.vanished[0], True), (finished.mrn[0], False)):
        warnings = [warning.value for warning in open_page("relations", run=str(run_id)).warning]
        assert any("The penalty has vanished" in warning for warning in warnings) == has_vanished
