"""The Relations page in every state and view: what it draws, what it says, what its link reproduces."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.mrn.relations import Relations
from core.records import Snapshot
from core.store import RunState, Store
from tests.making import claimed, run_facts
from tests.pages.conftest import Open, words
from tests.pages.filled_store import FEATURES, LABELS, Filled
from tests.pages.matrices import shown

ROWS = sum(map(len, LABELS.values()))


def table(app: AppTest, column: str) -> Any:
    return next(one.value for one in app.dataframe if column in one.value.columns)


def seeds_of(run_id: int) -> list[int]:
    store = Store.open()
    kind = store.run(run_id).configuration_id
    return sorted(run.id for run in store.runs() if run.configuration_id == kind)


@pytest.mark.parametrize(("mode", "rows"), [("Tasks", 3), ("Labels", ROWS), ("Features", FEATURES // 2)])
def test_each_mode_sends_all_steps_at_once(mode: str, rows: int, open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode=mode)
    seen = shown(app)
    store = Store.open()
    steps = [key.step for key in store.snapshots(finished.mrn[0])]
    assert seen.frame["steps"] == steps
    (matrices,) = seen.panels
    assert matrices.shape == (len(steps), rows, rows)
    if rows < 100:
        learned = store.relations(finished.mrn[0], steps[4])[1].correlation(seen.frame["mode"])
        np.testing.assert_allclose(matrices[4], learned, atol=2e-5)
    assert not app.exception


def test_a_link_to_a_step_shows_that_step(open_page: Open, finished: Filled) -> None:
    steps = [key.step for key in Store.open().snapshots(finished.mrn[0])]
    newest, early = (
        open_page("relations", run=str(finished.mrn[0]), mode="Labels", pair=["pos:DT", "pos:NN"], **more)
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
    assert abs(table(early, "r")["r"][0]) == pytest.approx(strongest)
    assert abs(table(newest, "r")["r"][0]) > strongest


def test_two_runs_side_by_side_and_their_difference(open_page: Open, finished: Filled) -> None:
    a, b = finished.mrn[:2]
    app = open_page("relations", run=f"{b},{a}", view="Side by side")
    seen = shown(app)
    assert [title.split(" · ")[0] for title in seen.titles] == [f"A: {b}", f"B: {a}", "A − B"]
    np.testing.assert_allclose(seen.panels[2], seen.panels[0] - seen.panels[1], atol=1e-4)
    assert list(table(app, "A − B").columns) == ["First", "Second", f"Run {b}", f"Run {a}", "A − B"]
    assert list(table(app, "Number").columns) == ["Number", f"Run {b}", f"Run {a}"]
    three = shown(open_page("relations", run=",".join(map(str, finished.mrn[:3])), view="Side by side"))
    assert len(three.panels) == 3
    assert not [title for title in three.titles if "−" in title]


def test_one_of_several_runs_is_shown(open_page: Open, finished: Filled) -> None:
    a, b, c = finished.mrn[:3]
    alone = open_page("relations", run=f"{a},{b},{c}", a=str(b))
    assert f"run-{b}" in shown(alone).frame["filename"]
    single = open_page("relations", run=str(a), view="Side by side")
    assert "One run is chosen" in words(single)
    assert len(shown(single).panels) == 1


def test_mean_over_all_seeds_of_a_configuration(open_page: Open, finished: Filled) -> None:
    seeds = seeds_of(finished.mrn[0])
    app = open_page("relations", run=str(finished.mrn[0]), view="Mean over seeds")
    seen = shown(app)
    assert seen.titles == ["Mean over 3 seeds", "SD over 3 seeds"]
    values = [Store.open().relations(run_id)[1].correlation("task")[0, 1] for run_id in seeds]
    assert seen.panels[0][-1, 0, 1] == pytest.approx(np.mean(values), abs=1e-4)
    assert seen.panels[1][-1, 0, 1] == pytest.approx(np.std(values, ddof=1), abs=1e-4)
    assert seen.frame["interval"] == pytest.approx(4.302653 / np.sqrt(3))
    assert f"Seeds of run {finished.mrn[0]}'s configuration: runs {', '.join(map(str, seeds))}." in words(app)
    assert list(table(app, "SD").columns) == ["First", "Second", "Mean", "SD"]


def test_a_seed_that_still_waits_does_not_cut_the_mean_short(open_page: Open, filled: Filled) -> None:
    store = Store.open()
    twin = store.run(filled.mrn[0]).config.model_copy(update={"seed": 77})
    (waiting,) = store.add_runs([twin])
    store.close()
    app = open_page("relations", run=str(filled.mrn[0]), view="Mean over seeds")
    assert shown(app).titles[0] == "Mean over 2 seeds"
    assert str(waiting) not in shown(app).frame["filename"].split("-")


def test_gold_labels_beside(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode="Labels", gold="true")
    seen = shown(app)
    assert seen.titles == ["Learned", "Gold labels", "Learned − gold"]
    np.testing.assert_allclose(seen.panels[2][-1], seen.panels[0][-1] - seen.panels[1][0], atol=2e-4)
    assert re.search(r"learned and gold: \*\*−?0\.\d\d\*\* over [\d,]+ pairs of labels; ", words(app))
    assert list(table(app, "Gold").columns) == ["First", "Second", "r", "Gold", "Beyond"]


def test_what_is_impossible_is_hatched_and_said(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.disjoint[0]))
    assert any("stay at zero whatever the data say" in one.value for one in app.info)
    assert len(shown(app).frame["panels"][0]["impossible"]) == 6
    assert "No pair can be related here." in words(app)
    both = open_page("relations", run=f"{finished.mrn[0]},{finished.disjoint[0]}", view="Side by side")
    assert [len(panel["impossible"]) for panel in shown(both).frame["panels"]] == [0, 6, 6]


def test_a_part_in_the_link_is_exact(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.mrn[0]), mode="Features", zoom="10,200")
    seen = shown(app)
    learned = Store.open().relations(finished.mrn[0])[1].correlation("feature")
    np.testing.assert_allclose(seen.panels[0][-1], learned[10:74, 200:264], atol=2e-5)
    assert seen.frame["zoomed"]
    assert seen.frame["rows"]["names"][0] == "feature 10"


def test_seeds_that_met_other_labels_are_aligned_too(open_page: Open) -> None:
    """A share of the data, drawn anew by each seed, need not have every label."""
    store = Store.open()
    ids = []
    for seed, names in (
        (1, ("pos:NN", "pos:VB", "ner:O", "ner:B-PER")),
        (2, ("pos:NN", "ner:O", "ner:B-PER")),
    ):
        run_id = claimed(store, seed=seed, learn=("task", "label"))
        gold = np.eye(len(names)) * 0.6 + 0.1 * np.arange(len(names))
        owners = tuple((name.split(":")[0],) for name in names)
        facts = run_facts(
            label_names=names, label_owners=owners, cooccurrence=tuple(map(tuple, gold.tolist()))
        )
        store.set_facts(run_id, facts)
        label = np.asarray(np.corrcoef(np.random.default_rng(seed).normal(size=(len(names), 9))))
        store.add_snapshot(run_id, Snapshot(10, 1.0, Relations(np.eye(2), label, np.zeros((6, 0)), 1.0)))
        ids.append(run_id)
    store.close()
    app = open_page(
        "relations", run=",".join(map(str, ids)), view="Mean over seeds", mode="Labels", gold="true"
    )
    seen = shown(app)
    assert seen.titles == ["Mean over 2 seeds", "SD over 2 seeds", "Gold labels", "Learned − gold"]
    assert seen.frame["rows"]["names"] == ["pos:NN", "ner:O", "ner:B-PER"]
    assert f"Of run {ids[0]} 1 are left out: pos:VB." in words(app)
    assert "over 3 pairs of labels" in words(app)


def test_saturated_relations_carry_a_warning(open_page: Open, finished: Filled) -> None:
    store = Store.open()
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    task = np.array([[1, 0.999], [0.999, 1]])
    store.add_snapshot(run_id, Snapshot(10, 1.0, Relations(task, np.eye(4), np.zeros((6, 0)), 1.0)))
    store.close()
    app = open_page("relations", run=str(run_id))
    assert any("100% of the correlations are all but ±1" in one.value for one in app.warning)
    assert not open_page("relations", run=str(finished.mrn[0])).warning


def test_a_failed_run_shows_what_it_had_learned(open_page: Open, filled: Filled) -> None:
    app = open_page("relations", run=str(filled.failed[0]))
    assert "failed. Shown is what it learned up to step 140." in words(app)
    assert shown(app).panels
    both = open_page("relations", run=f"{filled.mrn[0]},{filled.failed[0]}", view="Side by side")
    assert "Shown up to step 127: not all of these runs have got further." in words(both)
    assert shown(both).frame["steps"][-1] == 127


def test_a_run_that_ended_before_its_first_snapshot(open_page: Open, finished: Filled) -> None:
    store = Store.open()
    run_id = claimed(store, RunState.FAILED)
    store.close()
    assert "ended before its first snapshot" in words(open_page("relations", run=str(run_id)))
    both = open_page("relations", run=f"{finished.mrn[0]},{run_id}", view="Side by side")
    assert "has no relations yet and is left out" in words(both)
    assert len(shown(both).panels) == 1


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


def test_the_fold_has_the_equation_of_the_view(open_page: Open, finished: Filled) -> None:
    def equation(**query: str) -> str:
        app = open_page("relations", run=str(finished.mrn[0]), **query)
        app.session_state["how_to_read"] = True
        (found,) = app.run().latex
        return str(found.value)

    assert r"\Omega_\text{task}" in equation()
    assert r"\bar R_{ij}" in equation(mode="Features", view="Mean over seeds")
