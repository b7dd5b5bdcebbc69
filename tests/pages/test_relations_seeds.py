"""Configurations on the Relations page: beside each other, over their seeds, with verdicts and controls."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest

from core.events import Snapshot
from core.mrn.relations import Relations
from core.results.relations import seeds_of
from core.store import RunState, Store
from tests.making import OWNER, run_facts
from tests.pages.conftest import Open, figures, words
from tests.pages.filled_store import Filled
from tests.pages.launching import query
from tests.pages.matrices import learned_run, listed, matrix, of_tasks, shown

LOOKS = {"1": "undecided", "2": "related", "3": "opposed", "4": "none that matters"}


def three_tasks(correlations: tuple[float, float, float], seed: int, **values: Any) -> int:
    """A finished run of three tasks that learned these correlations of 0 and 1, 0 and 2, 1 and 2."""
    plain = run_facts().tasks
    tasks = (*plain, dataclasses.replace(plain[0], name="chunk"))
    meet = ((True,) * 3,) * 3
    facts = run_facts(tasks=tasks, alignment="exact", meet=meet, label_owners=(("pos", "ner", "chunk"),) * 4)
    learned = of_tasks(matrix(3, **dict(zip(("_01", "_02", "_12"), correlations, strict=True))))
    names = ("pos", "ner", "chunk")
    values = {"alignment": "exact", "encoder_training": "frozen", "tasks": names, **values}
    run_id = learned_run(learned, facts, seed=seed, **values)
    store = Store.open()
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1)
    store.close()
    return run_id


def five_seeds(**values: Any) -> str:
    """Five seeds: related, none that matters, undecided."""
    drawn = [(0.5, 0.01, 0.3), (0.52, 0.02, -0.2), (0.48, 0.0, 0.1), (0.51, 0.01, 0.4), (0.49, 0.02, 0.0)]
    return ",".join(str(three_tasks(each, seed, **values)) for seed, each in enumerate(drawn, 1))


def verdicts_shown(app: Any) -> list[str]:
    """The verdicts of the mean's cells above the diagonal, row by row."""
    codes = shown(app).frame["panels"][0]["verdicts"]["codes"]
    assert [codes[place] for place in (0, 3, 5)] == ["5"] * 3
    return [LOOKS[codes[place]] for place in (1, 2, 4)]


# Configurations beside each other, and their means


def test_a_sweep_has_a_matrix_a_configuration_and_a_chart(open_page: Open) -> None:
    of_lambda = [five_seeds(**{"lambda": value}) for value in (0.1, 0.001, 0.01)]
    app = open_page("relations", run=",".join(of_lambda))
    assert len(app.multiselect[0].value) == 3  # a chip a configuration
    seen = shown(app)
    titles = [f"MRN λ={value}" for value in ("0.001", "0.01", "0.1")]
    assert seen.titles == titles
    assert {panel["note"] for panel in seen.frame["panels"]} == {"mean of 5 seeds"}
    assert all(panel["verdicts"] for panel in seen.frame["panels"])
    assert "in all 3 configurations: pos and ner; 1 pair has no relation that matters in any of 3." in words(
        app
    )
    assert "over 5 seeds of each configuration" in words(app)
    assert list(listed(app).columns) == ["First", "Second", "λ=0.001", "λ=0.01", "λ=0.1"]
    assert listed(app).iloc[0, 2] == "0.50 ●"
    (against,) = figures(app, "relations_against")
    assert against["layout"]["xaxis"]["ticktext"] == ["0.001", "0.01", "0.1"]
    assert against["data"][0]["marker"]["symbol"] == ["circle"] * 3
    course = open_page("relations", run=",".join(of_lambda), chart="Over training")
    assert "One snapshot is stored" in words(course)
    # One matrix of them, and one seed.
    alone = open_page("relations", run=",".join(of_lambda), matrices=titles[1])
    (panel,) = shown(alone).frame["panels"]
    assert (panel["title"], panel["note"]) == ("MRN λ=0.01", "mean of 5 seeds")
    seed = open_page("relations", run=",".join(of_lambda), seed="Seed 2")
    assert {panel["note"] for panel in shown(seed).frame["panels"]} == {"seed 2"}
    assert shown(seed).panels[0][-1, 0, 1] == pytest.approx(0.52, abs=1e-4)
    assert "Nothing is decided by seed 2 alone." in words(seed)


def test_over_training_each_configuration_has_a_line(open_page: Open, finished: Filled) -> None:
    with contextlib.closing(Store.open()) as store:
        groups = {tuple(seeds_of(store, run)) for run in finished.mrn[:4]}
    runs = ",".join(str(run) for group in groups for run in group)
    app = open_page("relations", run=runs, chart="Over training", pair=["ner", "chunk"])
    (lines,) = figures(app, "relations_course")
    assert [f"MRN {line['name']}" for line in lines["data"]] == shown(app).titles
    assert len(lines["data"]) == len(groups) > 1
    assert "ner and chunk over training" in words(app).replace("**", "")


def test_more_matrices_than_are_read_beside_each_other_are_a_click_away(open_page: Open) -> None:
    strengths = [0.001 * 2**place for place in range(8)]
    runs = [three_tasks((0.5, 0.0, 0.1), 1, **{"lambda": value}) for value in strengths]
    chosen = ",".join(map(str, runs))
    app = open_page("relations", run=chosen)
    assert len(shown(app).panels) == 6
    assert "Nothing is decided: each configuration has one seed." in words(app)
    assert len(shown(open_page("relations", run=chosen, part="7 to 8")).panels) == 2


def test_a_sweep_in_two_fields_asks_against_which(open_page: Open) -> None:
    runs = [
        five_seeds(dropout=dropout, **{"lambda": value}) for dropout in (0.0, 0.1) for value in (0.001, 0.01)
    ]
    app = open_page("relations", run=",".join(runs))
    settings = next(box for box in app.selectbox if box.label == "Setting").options
    assert len(settings) == 4
    assert sum(name.startswith("λ") for name in settings) == 2
    assert len(shown(app).panels) == 4


def test_the_page_opens_on_the_configurations_of_the_newest_sweep(open_page: Open) -> None:
    three_tasks((0.9, 0.0, 0.0), 1)
    store = Store.open()
    configs = [
        store.runs()[0].config.with_(seed=seed, **{"lambda": value})
        for value in (0.1, 0.2)
        for seed in (1, 2)
    ]
    for run_id in store.add_runs(configs):
        store.claim(OWNER, run_id=run_id)
        store.set_facts(run_id, run_facts(meet=((True, True), (True, True))))
        store.set_progress(run_id, 10, 1.0, 10)
        store.add_snapshot(run_id, Snapshot(10, 1.0, of_tasks(np.eye(2))))
        store.finish(run_id, RunState.SUCCEEDED, best_epoch=1)
    store.close()
    assert shown(open_page("relations")).titles == ["MRN λ=0.1", "MRN λ=0.2"]


def test_a_run_that_did_not_succeed_is_left_out_beside_others(open_page: Open, filled: Filled) -> None:
    """It would take all others back to its last snapshot."""
    both = open_page("relations", run=f"{filled.mrn[0]},{filled.failed[0]}")
    assert shown(both).frame["steps"][-1] > 127
    assert "Left out beside those that succeeded: 1 run that has not succeeded." in words(both)
    alone = open_page("relations", run=str(filled.failed[0]))
    assert shown(alone).frame["steps"][-1] == 127
    assert "Nothing is decided by runs that ended early." in words(alone)
    store = Store.open()
    (without_snapshot,) = store.add_runs([store.run(filled.mrn[0]).config.model_copy(update={"seed": 77})])
    store.request_stop(without_snapshot)
    store.close()
    assert "ended before its first snapshot" in words(open_page("relations", run=str(without_snapshot)))
    both = open_page("relations", run=f"{filled.mrn[0]},{without_snapshot}")
    assert "is left out. This run ended before its first snapshot" in words(both)
    assert len(shown(both).panels) == 1


def test_a_mean_over_seeds_and_a_button_that_chooses_all(open_page: Open, finished: Filled) -> None:
    store = Store.open()
    first = store.run(finished.mrn[0])
    seeds = seeds_of(store, first.id)
    one = open_page("relations", run=str(first.id))
    assert "Nothing is decided: there is one seed." in words(one)
    app = one.button(key="all_seeds").click().run()
    seen = shown(app)
    assert [panel["note"] for panel in seen.frame["panels"]] == ["mean of 3 seeds"]
    app.session_state["relations_in_numbers"] = True
    assert "Dev scores at this step: " in words(app.run())
    values = [store.relations(run_id)[1].correlation("task")[0, 1] for run_id in seeds]
    assert seen.panels[0][-1, 0, 1] == pytest.approx(np.mean(values), abs=1e-4)
    (lines,) = figures(app, "relations_course")
    assert [line["name"] for line in lines["data"] if "name" in line] == [
        "pos – chunk", "pos – ner", "chunk – ner"
    ]  # fmt: skip
    app.session_state["how_to_read"] = True
    (equation,) = app.run().latex
    assert r"\bar R_{ij}" in equation.value


def test_a_mean_says_where_it_leaves_runs_out(open_page: Open) -> None:
    runs = [three_tasks((0.5, 0.0, 0.1), seed) for seed in (1, 2, 2)]
    app = open_page("relations", run=",".join(map(str, runs)))
    assert "on the newest text and precision: 1 run left out." in words(app)
    (panel,) = shown(app).frame["panels"]
    assert panel["note"] == "mean of 2 seeds"
    assert not panel["variances"]  # bars of equal ones are none


def test_seeds_that_met_other_labels_are_aligned_too(open_page: Open) -> None:
    """A share of the data, drawn anew by each seed, need not have every label."""
    ids = []
    for seed, names in (
        (1, ("pos:NN", "pos:VB", "ner:O", "ner:B-PER")),
        (2, ("pos:NN", "ner:O", "ner:B-PER")),
    ):
        gold = np.eye(len(names)) * 0.6 + 0.1 * np.arange(len(names))
        facts = run_facts(
            label_names=names,
            label_owners=tuple((name.split(":")[0],) for name in names),
            cooccurrence=tuple(map(tuple, gold.tolist())),
        )
        label = np.asarray(np.corrcoef(np.random.default_rng(seed).normal(size=(len(names), 9))))
        learned = Relations(np.eye(2), label, np.zeros((6, 0)), 1.0)
        ids.append(learned_run(learned, facts, seed=seed, learn=("task", "label")))
    chosen = ",".join(map(str, ids))
    app = open_page("relations", run=chosen, mode="Labels", gold="true")
    seen = shown(app)
    assert seen.titles == ["Learned", "Gold labels", "Learned − gold"]
    assert seen.frame["rows"]["names"] == ["pos:NN", "ner:O", "ner:B-PER"]
    assert "pos:VB" in words(app)
    assert "over 3 pairs of labels" in words(app)
    assert "Nothing is decided while these seeds train." in words(app)


def test_long_names_and_many_tasks_leave_a_short_answer(open_page: Open) -> None:
    """Nine lines of them stood in the headline once."""
    tasks = tuple(f"{'the relation of a word to its head in part' + ' of it' * 3} {n}" for n in range(12))
    plain = run_facts().tasks[0]
    facts = run_facts(
        tasks=tuple(dataclasses.replace(plain, name=task) for task in tasks),
        alignment="exact",
        meet=((True,) * 12,) * 12,
        label_owners=(tasks,) * 4,
    )
    runs = []
    store = Store.open()
    for seed in (1, 2, 3):
        random = np.random.default_rng(seed).normal(scale=0.01, size=(12, 12))
        learned = of_tasks(0.5 + (random + random.T) / 2 + (0.5 - random) * np.eye(12))
        runs.append(learned_run(learned, facts, seed=seed, alignment="exact", tasks=tasks))
        store.finish(runs[-1], RunState.SUCCEEDED, best_epoch=1)
    store.close()
    app = open_page("relations", run=",".join(map(str, runs)))
    answer = next(line for line in words(app).splitlines() if line.startswith("Of 66 pairs"))
    assert "related, the strongest" in answer
    assert len(answer) < 240
    assert len(listed(app)) == 12
    assert not figures(app, "relations_against")


# Verdicts over seeds, and their controls


def test_seeds_have_verdicts_and_the_headline_names_decided_pairs(open_page: Open) -> None:
    app = open_page("relations", run=five_seeds())
    assert verdicts_shown(app) == ["related", "none that matters", "undecided"]
    text = words(app)
    assert "Of 3 pairs 1 is related: pos and ner (0.50 [0.48, 0.52]); 1 has no relation" in text
    assert listed(app).iloc[0].tolist() == ["pos", "ner", "0.50", "[0.48, 0.52]", "● related"]
    assert (
        "**Verdicts**: against ±0.1 over 5 seeds, corrected over all pairs tested; no controls with" in text
    )
    assert shown(app).frame["faint"] == "undecided"
    assert shown(app).frame["foot"] == ("● related   – none that matters   grey: a row with itself")
    low, high = (shown(app).frame["panels"][0]["verdicts"][side][1] / 1000 for side in ("low", "high"))
    assert 0.47 < low < 0.5 < high < 0.53


def test_one_pair_at_the_limit_is_told_once_with_a_smaller_lambda_to_launch(open_page: Open) -> None:
    runs = []
    facts = run_facts(
        alignment="exact", meet=((True, True), (True, True)), label_owners=(("pos", "ner"),) * 4
    )
    with contextlib.closing(Store.open()) as store:
        for seed, value in enumerate((0.999, 0.998, 0.9995), 1):
            learned = of_tasks(matrix(2, _01=value))
            runs.append(learned_run(learned, facts, seed=seed, alignment="exact", **{"lambda": 0.01}))
            store.add_snapshot(runs[-1], Snapshot(20, 2.0, learned))
            store.finish(runs[-1], RunState.SUCCEEDED, best_epoch=1)
    app = open_page("relations", run=",".join(map(str, runs)))
    text = words(app)
    assert "related; how strongly is not known. λ=0.01 drove their correlation above 0.99 in all" in text
    assert "Controls with shuffled labels show whether this λ makes unrelated tasks look related." in text
    assert app.button(key="smaller").label == "Launch these runs with λ=0.001"
    assert not any("relation_list" in part.proto.component_name for part in app.get("bidi_component"))
    assert shown(app).frame["pair"] == [[0, 1], [1, 0]]
    app.button(key="smaller").click().run()
    assert query(app)["lambda"] == "0.001"
    assert query(app)["clone"] == ",".join(map(str, runs))


def test_one_seed_decides_nothing(open_page: Open) -> None:
    app = open_page("relations", run=str(three_tasks((0.9, 0.0, 0.0), 1)))
    assert shown(app).frame["panels"][0]["verdicts"] is None
    assert "Nothing is decided: there is one seed." in words(app)
    assert "launch this configuration with more seeds" in words(app)


def test_a_control_takes_a_verdict_away(open_page: Open) -> None:
    runs = five_seeds()
    five_seeds(permuted="ner")  # the same is learned without a relation
    app = open_page("relations", run=runs)
    assert verdicts_shown(app) == ["undecided", "none that matters", "undecided"]
    assert "2 of 3 against controls too: ner permuted (5 seeds)." in words(app)


def test_controls_are_launched_with_the_same_seeds(open_page: Open, workers: list[str]) -> None:
    runs = five_seeds()
    app = open_page("relations", run=runs)
    assert app.multiselect(key="controls_tasks").value == ["ner", "chunk"]
    app.multiselect(key="controls_tasks").set_value(["ner"]).run()
    assert "5 runs" in words(app)
    store = Store.open()
    before = {run.id for run in store.runs()}
    app.button(key="launch_controls").click().run()
    queued = [run for run in store.runs() if run.id not in before]
    assert sorted((run.config.seed, run.config.permuted) for run in queued) == [
        (n, "ner") for n in range(1, 6)
    ]
    assert {run.configuration_id for run in queued} == {
        store.run(int(runs[0])).config.with_(permuted="ner").configuration_id
    }
    store.close()
    assert workers
    # The page goes on with the runs that are controlled, and says what is on its way.
    assert app.query_params["run"] == [runs] or "5 seeds" in words(app)
    assert "5 controls queued or in progress" in words(app)


def test_labels_have_their_gains_once_a_reader_asks(open_page: Open, finished: Filled) -> None:
    with contextlib.closing(Store.open()) as store:
        runs = seeds_of(store, finished.mrn[0])
    app = open_page("relations", run=",".join(map(str, runs)), mode="Labels")
    assert "relation and gain" not in words(app)
    app.session_state["relation_gains"] = True
    app.run()
    assert "Rank correlation of relation and gain: " in words(app) or "No MTL run" in words(app)


def test_the_page_opens_on_runs_and_not_on_their_controls(open_page: Open) -> None:
    runs = five_seeds()
    five_seeds(permuted="ner")
    assert "control" not in " ".join(open_page("relations").multiselect[0].value)
    assert runs
