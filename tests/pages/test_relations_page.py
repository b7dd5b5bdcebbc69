"""The Relations page in every state and view: what it draws, what it says, what its link reproduces."""

from __future__ import annotations

import contextlib
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
from core.results.relations import seeds_of
from core.store import RunState, Store
from core.transfer.cosines import gradient_curve
from dashboard.relations.views import planted, rows_of
from tests.making import OWNER, relations, run_facts, task_score
from tests.pages.conftest import Open, figures, table, words
from tests.pages.filled_store import FEATURES, LABELS, Filled
from tests.pages.matrices import learned_run, listed, matrix, number, shown

ROWS = sum(map(len, LABELS.values()))
ALPHAS = {"pos": 1.0, "sim-1": 0.9, "sim-2": 0.5, "sim-3": 0.1}
AMI = (1.0, 0.8, 0.3, 0.02)


def of_tasks(task: np.ndarray, diagonal: float = 1.0) -> Relations:
    """These relations of tasks; nothing else is related."""
    return Relations(task, np.eye(4), np.zeros((16, 0)), diagonal)


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


def test_seeds_have_verdicts_and_the_headline_names_decided_pairs(open_page: Open) -> None:
    app = open_page("relations", run=five_seeds())
    assert verdicts_shown(app) == ["related", "none that matters", "undecided"]
    text = words(app)
    assert "Of 3 pairs 1 is related: pos and ner (0.50 [0.48, 0.52]); 1 has no relation" in text
    assert listed(app).iloc[0].tolist() == ["pos", "ner", "0.50", "[0.48, 0.52]", "● related"]
    assert (
        "**Verdicts**: against ±0.1 over 5 seeds, corrected over all pairs tested; no controls with" in text
    )
    assert shown(app).frame["foot"] == (
        "● related   – none that matters   pale: undecided   grey: a row with itself"
    )
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
    assert "A smaller λ can show how strongly." in text
    links = [link.proto.query_string for link in app.get("page_link")]
    assert any("lambda=0.001" in link and "clone=" in link for link in links)
    assert not any("relation_list" in part.proto.component_name for part in app.get("bidi_component"))
    assert shown(app).frame["pair"] == [[0, 1], [1, 0]]


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
