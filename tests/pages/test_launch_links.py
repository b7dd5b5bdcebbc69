"""Launch: the form filled in from runs and links, and the address, the command and the runs that it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.store import RunState, Store
from dashboard.runs.controls import with_task_added
from dashboard.shared.presets import TRY_IT
from tests.making import corpus_folder
from tests.pages.conftest import Open, labels, sheets, words
from tests.pages.launching import TEST, TRAIN, done, listed, on_card, own_data, planned, query


def test_a_clone_with_other_values_and_what_cannot_be_is_named(open_page: Open) -> None:
    """The first is what the advice for a run that found no memory links to."""
    run = done(seed=7, batch_size=32, dropout=0.3, epochs=3)
    app = open_page("launch", clone=f"{run},99,twelve", batch_size="8", prior="best,map")
    assert f"Filled in from run {run}" in labels(app, "page_link")
    values = {
        name: app.text_input(key=f"launch_{name}").value for name in ("batch_size", "dropout", "epochs")
    }
    assert values == {"batch_size": "8", "dropout": "0.3", "epochs": "3"}
    assert app.pills(key="launch_prior").value == ["map"]
    assert planned(app) == 1
    for sentence in (
        "There is no run 99.",
        "There is no run twelve.",
        "asks for prior best, which this form does not offer.",
    ):
        assert sentence in words(app)
    # What is edited stays edited, and the address is then that of the form.
    app.text_input(key="launch_seed").set_value("8").run()
    app.run()
    assert (query(app)["seed"], query(app)["dropout"]) == ("8", "0.3")
    assert "clone" not in query(app)


_SC_LSTM = {"encoder": "lstm-d", "paradigm": "mtl", "task_order": "ner,pos,chunk", "head": "crf"}


def test_clones_of_waiting_runs_show_their_card(open_page: Open, tmp_path: Path) -> None:
    folder = corpus_folder(tmp_path / "mine", {"train.conll": TRAIN * 4, "test.conll": TEST})
    mine = {"corpus": folder, "columns": "tokens,ner,tags", "tasks": "tags,ner"}
    over_words = {"corpus": "demo", "tasks": "pos,chunk,ner", **_SC_LSTM}
    cases: tuple[tuple[list[RunConfig], dict[str, Any]], ...] = (
        ([RunConfig.build(**mine, encoder_training="frozen")],
         {"corpus": "Your own data", f"columns_{folder}": "tokens, ner, tags",
          f"tasks_{folder}": ["tags", "ner"]}),
        (list(TRY_IT.configs), {"corpus": TRY_IT.configs[0].corpus}),
        ([RunConfig.build(**over_words)], {"task_order": "ner, pos, chunk", "head": ["crf"]}),
    )  # fmt: skip
    for configs, held in cases:
        ids = Store.open().add_runs(configs)
        app = open_page("launch", clone=",".join(map(str, ids)))
        assert {name: app.session_state[f"launch_{name}"] for name in held} == held
        assert on_card(app)[1] == {RunState.QUEUED: len(configs)}
    # From an encoder over words back to a transformer, the form is ready.
    app.multiselect(key="launch_encoder").set_value(["minilm"]).run()
    assert app.multiselect(key="launch_encoder_training").value == ["frozen"]
    assert not app.button(key="launch").disabled


def test_a_link_makes_the_same_form(open_page: Open) -> None:
    link = {
        "corpus": "demo-both-pos",
        "tasks": "pos-a,pos-b",
        "encoder": "minilm,minilm+bilstm",
        "encoder_training": "frozen",
        "paradigm": "mtl,mrn",
        "alignment": "disjoint,exact",
        "lambda": "0.01, 0.1",
        "seed": "1-2",
        "epochs": "3",
        "fraction": "0.1, 0.2",
        "learn": "task",
        "truecase": "yes",
    }
    app = open_page("launch", **link)
    assert query(app) == link
    assert planned(app) == 40  # encoders × shares × seeds × (MTL + alignments × λ)
    assert app.session_state["launch_alignment_fold"]  # what is not the default is in sight
    app.text_input(key="launch_epochs").set_value("4").run()
    assert query(app) == {**link, "epochs": "4"}
    app.switch_page("runs/page.py").run()
    app.switch_page("launch/page.py").run()
    assert query(app) == {**link, "epochs": "4"}
    app.button(key="launch_fresh").click().run()
    assert app.text_input(key="launch_epochs").value == "5"
    assert not app.session_state["launch_alignment_fold"]
    assert app.selectbox(key="launch_corpus").value == "demo"


def test_an_edit_that_arrives_with_an_older_address_is_kept(open_page: Open) -> None:
    app = open_page("launch", paradigm="mtl", seed="1")
    older = query(app)
    app.text_input(key="launch_seed").set_value("1-4").run()
    # What a browser sends that has not received the new address yet.
    app.query_params.clear()
    app.query_params.update(older)
    app.text_input(key="launch_epochs").set_value("2").run()
    assert [app.text_input(key=f"launch_{name}").value for name in ("seed", "epochs")] == ["1-4", "2"]
    assert [query(app)[name] for name in ("seed", "epochs")] == ["1-4", "2"]
    # Back sends an older address too, without an edit.
    app.query_params.clear()
    app.query_params.update(older)
    app.run()
    assert app.text_input(key="launch_seed").value == "1"
    assert query(app) == older


def test_how_runs_wait_and_come_back(open_page: Open) -> None:
    link = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl", "seed": "1", "priority": "3"}
    app = open_page("launch", **link)
    assert app.number_input(key="launch_priority").value == 3
    app.number_input(key="launch_retries").set_value(2).run()
    assert (query(app)["priority"], query(app)["retries"]) == ("3", "2")
    assert app.code[0].value.splitlines()[-2:] == ["  --priority 3 \\", "  --retries 2"]
    app.button(key="launch").click().run()
    (run,) = Store.open().runs()
    assert (run.priority, run.retries) == (3, 2)
    app.button(key="launch_fresh").click().run()
    assert app.number_input(key="launch_priority").value == 0
    assert "retries" not in query(app)


def test_groups_of_tasks_on_corpora_whose_options_are_lists(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch", corpus="demo", task_groups="pairs", paradigm="stl,mtl", seed="1,2")
    assert planned(app) == 12
    assert listed(app) == [
        ("STL", "3 tasks × 2 seeds"),
        *((f"MTL · {pair}", "2 seeds") for pair in ("pos, chunk", "pos, ner", "chunk, ner")),
    ]
    assert sheets(app)[0]["Runs"].tolist() == ["6", "2", "2", "2"]
    app.selectbox(key="launch_task_groups").set_value("written").run()
    assert "[Go to field](#problem-task_groups)" in words(app)
    app.text_input(key="launch_groups_written").set_value("ner,pos").run()
    assert [name for name, _ in listed(app)] == ["STL", "MTL"]
    assert query(app)["task_groups"] == "ner,pos"
    assert "--task-groups ner,pos" in app.code[0].value

    own_data(app, "simulated:demo?alpha={0.2|0.9}&tasks={1|2}")
    app.selectbox(key="launch_task_groups").set_value("pairs").run()
    # On each corpus STL of the real task, and it with each simulated one.
    assert planned(app) == 2 * (2 + 3) * 2
    app.button(key="launch").click().run()
    runs = Store.open().runs()
    assert len(runs) == 20
    cloned = open_page("launch", clone=",".join(str(run.id) for run in reversed(runs)))
    assert "The form holds one corpus" not in words(cloned)
    assert cloned.text_input(key="launch_own_folder").value == app.text_input(key="launch_own_folder").value
    assert cloned.selectbox(key="launch_task_groups").value == "pairs"
    cloned.text_input(key="launch_own_folder").set_value("simulated:demo?alpha={0.2|0.9").run()
    assert "[Go to field](#problem-corpus)" in words(cloned)


# A task that is added to a finished run


@pytest.mark.parametrize("changes", [{}, {"encoder_training": "full"}, {"head": "crf"}])
def test_a_task_is_added_where_heads_alone_were_trained(open_page: Open, changes: dict[str, str]) -> None:
    """The button of a run leads to a form that lacks the data alone."""
    run_id = done(encoder="minilm", max_length=128, **changes)
    page = labels(open_page("run", id=str(run_id)), "page_link")
    assert "Clone" in page
    assert ("Add a task to this run" in page) == (not changes)
    if not changes:
        app = open_page("launch", **with_task_added(Store.open().run(run_id)), tasks="ner", seed="1")
        assert app.text_input(key="launch_added_to").value == str(run_id)
        assert "is no finished run" in words(app)  # the store of this test has no models
        app.text_input(key="launch_added_to").set_value("").run()
        assert "#problem-added_to" in words(app)


def test_one_task_is_chosen_that_the_run_has_not_learned(open_page: Open, tmp_path: Path) -> None:
    folder = corpus_folder(tmp_path / "mine", {"train.conll": TRAIN * 4, "test.conll": TEST})
    columns = ("tokens", "ner", "pos")
    run_id = done(corpus=folder, columns=columns, tasks=("ner",), paradigm="stl", max_length=128)
    app = open_page("launch", **with_task_added(Store.open().run(run_id)))
    assert app.pills(key=f"launch_tasks_{folder}").value == ["pos"]
    assert "Task to add" in labels(app, "button_group")
    assert f"Adding a task to run {run_id}, over its corpus" in labels(app, "page_link")
    assert "#problem-tasks" not in words(app)
    # Another corpus, of which it has learned all tasks by name but one; then of two chosen ones.
    app.selectbox(key="launch_corpus").set_value("demo").run()
    assert app.pills(key="launch_tasks_demo").value == ["pos"]
    assert f"Adding a task to run {run_id}" in labels(app, "page_link")
    app.pills(key="launch_tasks_demo").set_value(["pos", "chunk"]).run()
    assert "#problem-tasks" in words(app)
    # Where a run has learned all tasks another corpus is asked for.
    run_id = done(paradigm="mtl", max_length=128)
    app = open_page("launch", **with_task_added(Store.open().run(run_id)))
    assert f"Run {run_id} has learned all tasks of this corpus: pos, chunk and ner." in words(app)
    assert "Still to choose" in words(app)
    assert "Task to add" not in labels(app, "button_group")
