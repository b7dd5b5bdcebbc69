"""The Compare page in its states: what it says first, what can be chosen, what is shown closer and copied."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.records import SplitResult, Usage
from core.store import RunState, Store
from dashboard.compare import answer, scope
from jobs.cli import app as command_line
from tests.making import OWNER, run_facts, task_score
from tests.pages.conftest import Open, words
from tests.pages.filled_store import TASKS, Filled
from tests.pages.test_pages import figures, table


def finished_run(config: RunConfig, value: float, labels: dict[str, Any] | None = None) -> int:
    """A run that ended well, with that score on all its tasks and these gold labels, predicted rightly."""
    store = Store.open()
    (run_id,) = store.add_runs([config])
    while (claimed := store.claim(OWNER, due_in=60)) is not None and claimed.id != run_id:
        pass
    for split in ("dev", "test"):
        scores = tuple(task_score(task, value) for task in config.tasks)
        store.add_result(run_id, SplitResult(split, 1, scores, labels or {}, labels or {}))
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1)
    return run_id


def mtl(seed: int = 1, **more: Any) -> RunConfig:
    values = {"corpus": "demo", "encoder_training": "frozen", "tasks": ("pos", "ner"), **more}
    return RunConfig.build(paradigm=values.pop("paradigm", "mtl"), seed=seed, **values)


def captions(app: AppTest) -> str:
    return "\n".join(one.value for one in app.caption).replace("\\", "")


def test_the_answer_comes_first(open_page: Open, finished: Filled) -> None:
    app = open_page("compare")
    shown = words(app)
    assert "is above MTL on ner (+1.08); no difference is shown on pos and chunk." in shown
    assert "3 seeds, p 0." in shown.replace("\\", "")
    assert "What sharing did" in shown
    assert "MTL − STL" in shown
    rows = app.table[0].value
    assert list(rows.index)[:2] == ["STL", "MTL"]
    assert len(figures(app, "sharing")[0]["data"]) == len(TASKS)
    (forest,) = figures(app, "compare_forest")
    assert [trace["name"] for trace in forest["data"]] == list(TASKS)


def test_one_seed_is_told_to_be_one_seed(open_page: Open, filled: Filled) -> None:
    store = Store.open()
    one = [run.id for run in store.runs(ids=filled.finished) if run.config.seed == 1]
    app = open_page("compare", run=",".join(map(str, one)))
    shown = words(app)
    assert "one seed each, so no interval" in shown
    assert "One seed cannot tell a difference from chance." in shown
    assert "Some differences rest on one or two seeds." in shown
    assert "No interval over seeds is drawn" in shown
    assert "One seed in common has no interval" in shown
    assert "includes zero" not in shown


def test_a_chosen_unfinished_run_is_explained(open_page: Open, filled: Filled) -> None:
    app = open_page("compare", run=str(filled.live[0]))
    assert not app.exception
    assert "None of the chosen runs has finished." in captions(app)
    assert app.table


def test_the_tests_answer_two_questions(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", to="MTL")
    assert "would another training differ the same way" in captions(app)
    found = table(app, "p sentences")
    assert set(found["Task"]) == set(TASKS)
    assert "MTL" not in set(found["Configuration"])
    assert all(found["p sentences"] != "")
    app.selectbox(key="to").select("STL").run()
    assert not app.exception
    assert any(one.value == "Differences to STL" for one in app.subheader)


def test_many_predictions_are_read_only_when_asked_for(
    open_page: Open, finished: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "_MANY", 3)
    app = open_page("compare")
    assert app.toggle(key="sentences").label.startswith("Test over sentences (")
    assert set(table(app, "p sentences")["p sentences"]) == {""}
    app.toggle(key="sentences").set_value(True).run()
    assert not app.exception
    assert "" not in set(table(app, "p sentences")["p sentences"])


def test_a_link_holds_pair_task_and_view(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", of="MTL", to="STL", closer="Per seed", task="chunk", on="Dev sentences")
    assert "MTL − STL" in words(app)
    assert (app.selectbox(key="of").value, app.selectbox(key="to").value) == ("MTL", "STL")
    seeds = table(app, "seed")
    assert set(seeds["seed"]) == {1, 2, 3}
    assert {"STL", "MTL"} < set(seeds.columns)


def test_a_row_that_is_gone_leaves_the_page_whole(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", of="MRN λ 77", to="nothing", task="srl")
    assert not app.exception
    assert app.selectbox(key="to").value == "MTL"


def test_label_by_label(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", task="ner", of="MTL", to="STL")
    found = table(app, "Annotated")
    assert set(found["Label"]) == {"PER", "ORG", "LOC", "MISC"}
    assert list(found["Annotated"]) == sorted(found["Annotated"], reverse=True)
    store = Store.open()
    runs = [run.id for run in store.runs() if run.config.paradigm == "mtl"]
    scores = [one for one in store.scores(runs, "test") if one.task == "ner"]
    mean = sum(one.report["MISC"]["f1"] for one in scores) / len(scores)
    row = found[found["Label"] == "MISC"].iloc[0]
    assert row["A F1"] == pytest.approx(100 * mean)
    assert row["A − B"] == pytest.approx(row["A F1"] - row["B F1"])


def test_mistakes_and_their_sentences(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", task="ner", closer="Mistakes")
    (drawn,) = figures(app, "confusion")
    assert len(drawn["data"][1]["customdata"]) == 5
    listed = table(app, "Mistake")
    app.session_state["mistakes"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    assert not app.exception
    assert f"**{listed['Mistake'][0]}**" in words(app)
    assert "Outlined: not as annotated." in captions(app)
    app.session_state["of_whom"] = "MTL"
    app.run()
    assert not app.exception


def test_runs_without_predictions_are_told(open_page: Open) -> None:
    for seed, (value, other) in enumerate([(0.8, 0.83), (0.81, 0.85)], 1):
        finished_run(mtl(seed), value)
        finished_run(mtl(seed, paradigm="mrn"), other)
    app = open_page("compare", closer="Mistakes")
    assert "no predictions are stored" in captions(app)
    assert "its mistakes are unknown" in captions(app)


def test_other_sentences_are_not_exchanged(open_page: Open) -> None:
    one = {"pos": [["NN", "VB"]], "ner": [["O", "O"]]}
    other = {"pos": [["VB", "NN"]], "ner": [["O", "O"]]}
    finished_run(mtl(), 0.8, one)
    finished_run(mtl(paradigm="mrn"), 0.9, other)
    assert "tested on different sentences" in captions(open_page("compare"))


def test_words_are_those_the_run_was_scored_on(finished: Filled) -> None:
    run = Store.open().run(finished.mrn[0])
    gold, _ = Store.open().predictions(run.id, "test", "ner")["ner"]
    found = scope.words(run.config, "test", "ner", gold)
    assert found is not None
    assert [len(one) for one in found] == [len(labels) for labels in gold]
    assert scope.words(run.config, "test", "ner", gold[1:]) is None


def test_other_data_is_not_mixed_in(open_page: Open) -> None:
    finished_run(mtl(fraction=0.05), 0.5)
    finished_run(mtl(), 0.8)
    finished_run(mtl(paradigm="mrn"), 0.9)
    app = open_page("compare")
    assert app.selectbox(key="data").options == ["demo, 100% of the data", "demo, 5% of the data"]
    assert "Comparing all 2 finished runs on demo, 100% of the data." in captions(app)
    app.selectbox(key="data").select("demo, 5% of the data").run()
    assert not app.exception
    assert "One configuration only." in app.info[0].value
    assert len(app.table[0].value) == 1


def as_published(seed: int, **more: Any) -> RunConfig:
    """MTL as in the dissertation's table 1."""
    same = {"corpus": "conll2003", "tasks": TASKS, "encoder_training": "full", "pos_score": "seqeval_f1"}
    return mtl(seed, **(same | more))


def test_encoders_stand_in_blocks_with_published_figures_beside(open_page: Open) -> None:
    for seed in (1, 2):
        finished_run(as_published(seed, encoder="bert-base-cased"), 0.9)
        finished_run(as_published(seed, encoder="roberta-base"), 0.9)
        mrn = {"paradigm": "mrn", "alignment": "disjoint", "prior": "paper"}
        finished_run(as_published(seed, encoder="bert-base-cased", **mrn), 0.9)
    frozen = finished_run(as_published(1, encoder="bert-base-cased", encoder_training="frozen"), 0.9)
    app = open_page("compare", published="true", run=str(frozen))
    assert "No figure of the dissertation stands beside these rows" in captions(app)
    app = open_page("compare", published="true", run=",".join(map(str, range(1, frozen))))
    rows = [row.replace("\\", "") for row in app.table[0].value.index]
    assert rows == [
        "**bert-base-cased, fine-tuned**",
        "MTL",
        "MRN λ 0.05",
        ":gray[MTL, published (table 1)]",
        ":gray[MRN, published (table 1)]",
        "**roberta-base, fine-tuned**",
        "MTL",
        ":gray[MTL, published (table 1)]",
    ]
    app.session_state["scores_copy"] = True
    app.run()
    copied = next(one.value for one in app.code if "tabular" in one.value)
    assert r"MRN, published (table 1) & 93.16 $\pm$ 0.07 & 91.49 $\pm$ 0.06 & 90.82 $\pm$ 0.11" in copied


def test_what_a_configuration_costs_stands_beside_on_demand(open_page: Open) -> None:
    told = finished_run(mtl(1), 0.9)
    finished_run(mtl(1, epochs=7), 0.9)
    usage = Usage(95.0, 3 * 2**29, "gpu")
    facts = run_facts(parameters=108_300_000, trained_parameters=7_800, usage=usage, device="cuda:0")
    Store.open().set_facts(told, facts)
    app = open_page("compare", published="true")
    assert "Parameters" not in app.table[0].value.columns
    app.toggle(key="cost").set_value(True).run()
    assert not app.exception
    shown = app.table[0].value[["Parameters", "Trained", "Peak memory", "Time per seed"]]
    assert [[text.replace("\u00a0", " ") for text in row] for row in shown.to_numpy().tolist()] == [
        ["108.3M", "7,800", "1.50 GB (cuda)", "2 min"],
        ["–"] * 4,
    ]
    assert "summed over tasks" in captions(app)
    app.session_state["scores_copy"] = True
    app.run()
    assert any("1.50 GB (cuda)" in one.value for one in app.code)


def test_what_is_copied_is_the_text_of_the_command_line(
    open_page: Open, finished: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    app = open_page("compare")
    app.session_state["scores_copy"] = True
    app.run()
    assert not app.exception
    copied = next(one.value for one in app.code if "tabular" in one.value)
    told = CliRunner().invoke(command_line, ["results", "--format", "latex"])
    assert told.exit_code == 0, told.output
    assert copied.strip() == told.stdout.strip()


def test_many_configurations_are_cut_and_said_to_be(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "_MOST_ROWS", 3)
    for epochs in range(1, 6):
        finished_run(mtl(epochs=epochs), 0.5)
    app = open_page("compare")
    assert "Comparing the newest 3 of 5 configurations on demo" in captions(app)
    assert len(app.table[0].value) == 3
