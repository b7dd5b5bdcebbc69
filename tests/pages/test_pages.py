"""Every page in every state: nothing yet, live, finished, failed. Title, key text, key controls."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.store import RunState, Store
from core.store.records import MetricKey
from dashboard.runs.dev_curves import dev_curves
from dashboard.shared import resources
from tests.pages.conftest import Open, words
from tests.pages.filled_store import Filled


def figures(app: AppTest, key: str = "") -> list[dict[str, Any]]:
    """The Plotly figures on the page whose component key begins so, checked by Plotly's Python package."""
    found = []
    for one in app.get("bidi_component"):
        data = json.loads(one.proto.json or "{}")
        if "figure" in data and data["filename"].startswith(key):
            drawn = json.loads(data["figure"])
            go.Figure(drawn)  # a ValueError names a property or value that Plotly does not know
            found.append(drawn)
    return found


def table(app: AppTest, column: str) -> Any:
    """The data frame on the page that has this column."""
    return next(one.value for one in app.dataframe if column in one.value.columns)


def test_try_it_queues_its_runs_and_a_second_time_shows_them(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch")
    app.button(key="preset_Try it").click().run()
    assert not app.exception
    runs = Store.open().runs()
    assert [run.state for run in runs] == [RunState.QUEUED] * 20
    # Each seed is complete before the next begins.
    first = [run.config for run in runs[::-1][:4]]
    assert [config.paradigm for config in first] == ["mrn", "mtl", "stl", "stl"]
    assert {config.seed for config in first} == {1}
    assert len({run.sweep for run in runs}) == 1
    assert workers
    assert app.title[0].value == "Runs"
    ids = ",".join(map(str, range(1, 21)))
    assert app.query_params["run"] in ([ids], ids)
    app.switch_page("launch/page.py").run()
    app.button(key="preset_Try it").click().run()
    assert not app.exception
    assert len(Store.open().runs()) == 20
    assert app.title[0].value == "Runs"
    assert any("20 runs from the store" in one.value for one in app.toast)


def test_launch_lists_what_the_form_makes(open_page: Open) -> None:
    app = open_page("launch")
    assert any(one.value.startswith("This makes 3 runs") for one in app.subheader)
    app.text_input(key="launch_seed").set_value("1-4").run()
    app.text_input(key="launch_lambda").set_value("0.001, 0.01").run()
    assert any(one.value.startswith("This makes 8 runs") for one in app.subheader)
    rows = app.table[0].value
    assert list(rows["Configuration"]) == ["MRN λ 0\\.001", "MRN λ 0\\.01"]
    assert list(rows["Runs"]) == ["4 seeds", "4 seeds"]
    assert "Starts now." in words(app)
    app.button(key="launch").click().run()
    assert not app.exception
    assert len(Store.open().runs()) == 8
    assert "8 runs queued." in words(app)
    # Another experiment waits for them.
    app.text_input(key="launch_seed").set_value("9").run()
    assert "Starts after 8 runs queued or in progress" in words(app)


def test_launch_says_all_that_is_wrong_and_leads_to_each_field(open_page: Open) -> None:
    app = open_page("launch")
    for key, value, sentence in (
        ("launch_lambda", "-1", "λ must be above 0"),
        ("launch_lambda", "much", "λ: 'much' is not a number"),
        ("launch_seed", "", "Seeds: write a number."),
        ("launch_seed", "5-1", "smallest first"),
        ("launch_fraction", "1.5", "Share must be above 0 and at most 1, not 1.5."),
        ("launch_dropout", "2", "Dropout must be"),
    ):
        right = app.text_input(key=key).value
        app.text_input(key=key).set_value(value).run()
        assert not app.exception
        shown = words(app)
        assert shown.count(sentence) == 2, "beside the field, and in the plan"
        assert f"[Go to field](#problem-{key.removeprefix('launch_')})" in shown
        assert "Not ready yet" in shown
        assert "launch" not in [button.key for button in app.button]
        app.text_input(key=key).set_value(right)
    app.text_input(key="launch_seed").set_value("abc")
    app.pills(key="launch_paradigm").set_value([])
    app.text_input(key="launch_epochs").set_value("0").run()
    for sentence in (
        "Seeds: 'abc' is not a seed",
        "Paradigm: choose one or more.",
        "Epochs must be at least 1",
    ):
        assert sentence in words(app)


def test_an_encoder_that_is_not_here_can_be_replaced(open_page: Open) -> None:
    app = open_page("launch", encoder="bert-base-cased,bert-base-cased+bilstm,roberta-base,sc-lstm")
    assert words(app).count("The encoder 'bert-base-cased' is not on this machine") == 2
    assert app.button(key="launch").disabled
    next(one for one in app.button if one.label == "Use minilm instead").click().run()
    assert app.multiselect(key="launch_encoder").value == ["minilm", "minilm+bilstm", "sc-lstm"]
    assert not app.button(key="launch").disabled


def test_table_preset_fills_the_form(open_page: Open) -> None:
    app = open_page("launch")
    app.button(key="fill_Table 3").click().run()
    assert not app.exception
    assert app.selectbox(key="launch_corpus").value == "both-pos"
    assert app.pills(key="launch_alignment").value == ["exact"]
    assert app.pills(key="launch_prior").value == ["paper"]
    assert any(one.value.startswith("This makes 20 runs") for one in app.subheader)


def test_launch_looks_inside_a_joined_corpus_whose_folders_are_here(
    open_page: Open, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("launch", corpus="both-pos")
    assert "the folders `conll2003` and `conll2000`" in "".join(one.value for one in app.caption)
    assert "look" in "".join(one.key or "" for one in app.toggle)
    for name, row in (("conll2003", "Anna NNP B-NP B-PER\n\n"), ("conll2000", "sings VBZ B-VP\n\n")):
        (tmp_path / name).mkdir()
        for split in ("train", "test"):
            (tmp_path / name / f"{split}.txt").write_text(row * 3)
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    app.run()
    assert not app.exception
    assert "Comes from the Hugging Face Hub" not in words(app)
    assert "6 train and 6 test sentences, 12 words" in words(app)


def test_launch_takes_a_folder_or_a_derived_corpus(open_page: Open, tmp_path: Any) -> None:
    folder = tmp_path / "<b>mine *x*"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.conll").write_text("Anna B-PER\nsings O\n\n" * 3, encoding="utf-8")
    app = open_page("launch")
    app.selectbox(key="launch_corpus").select("Your own data").run()
    app.session_state["launch_own_how"] = "A folder on this machine"
    app.run()
    derived = "simulated:demo?tasks=2&samples=500&tokens=100"
    for name, sentence in (
        (str(folder), "3 train"),
        (str(tmp_path / "nowhere"), "nowhere"),
        ("simulated:demo?tasks=none", "tasks must be a whole number from 1 to 50"),
        (derived, "2 artificial tasks on"),
    ):
        app.text_input(key="launch_own_folder").set_value(name).run()
        assert not app.exception
        assert sentence in words(app)
    assert app.pills(key=f"launch_tasks_{derived}").value == ["ner", "sim-1", "sim-2"]


def test_runs_shows_what_runs_now(open_page: Open, filled: Filled) -> None:
    app = open_page("runs", order="Each run")
    (live,) = filled.live
    assert "**1 in progress, 2 queued**" in words(app)
    progress = [str(one.proto.text) for one in app.main.get("progress")]
    assert len(progress) == 1
    assert progress[0].startswith(f"**Run {live} ")
    assert "epoch 4 of 8" in progress[0]
    listed = table(app, "Run")["Run"]
    assert list(listed) == sorted(listed, reverse=True)
    assert len(listed) == len(Store.open().runs())


def test_failed_run_tells_cause_and_next_step(open_page: Open, filled: Filled) -> None:
    app = open_page("run", id=str(filled.failed[0]))
    said = " ".join(one.value for one in app.warning).replace("\\", "")
    assert "The loss of chunk is not a number at step 140" in said
    assert "Clone it with lower rates" in said
    assert "Traceback" not in said
    assert any("Traceback" in one.value for one in app.code)
    by_label = {button.label: button for button in app.button}
    assert "Resume" not in by_label
    by_label["Retry"].click().run()
    assert not app.exception
    assert Store.open().run(filled.failed[0]).state is RunState.QUEUED


def test_run_in_full(open_page: Open, filled: Filled) -> None:
    app = open_page("run", id=str(filled.finished[0]), run_part="Configuration")
    assert "lambda" in list(table(app, "Meaning")["Field"])
    app.segmented_control(key="run_part").set_value("History").run()
    assert "succeeded" in list(table(app, "What")["What"])
    app.segmented_control(key="run_part").set_value("Log").run()
    assert any("read corpus demo" in one.value for one in app.code)


def test_a_runs_dev_scores_stand_beside_its_seeds(open_page: Open, finished: Filled) -> None:
    store, run_id = Store.open(), finished.finished[0]
    run = store.run(run_id)
    seeds = [
        other.id
        for other in store.runs_of([run.configuration_id], {RunState.SUCCEEDED})
        if other.config.seed != run.config.seed
    ]
    series = resources.curve_series(store.runs([run_id, *seeds]), [MetricKey("ner", "dev", "score")])
    (ner,) = dev_curves(run, series)
    ends = {curve.run_id: 100 * curve.value[-1] for curve in series}
    assert len(ends) == len(seeds) + 1 > 2
    assert ner.run.iloc[-1] == pytest.approx(ends[run_id])
    assert ner.mean.iloc[-1] == pytest.approx(np.mean(list(ends.values())))
    assert ner.sd.iloc[-1] == pytest.approx(np.std(list(ends.values()), ddof=1))
    app = open_page("run", id=str(run_id))
    assert f"mean ± SD of its {len(ends)} seeds" in words(app)
    assert [len(figures(app, f"dev_{task}")) for task in run.config.tasks] == [1] * len(run.config.tasks)


def test_curves_of_what_was_learned_in_numbers(open_page: Open, finished: Filled) -> None:
    run = str(finished.mrn[0])
    app = open_page("curves", run=run, metric="Relations", number="Effective rank of labels")
    assert "Effective rank of labels" in words(app)
    (total,) = figures(app, "curve_large")
    line = next(trace for trace in total["data"] if "name" in trace)
    steps = np.frombuffer(base64.b64decode(line["x"]["bdata"]), np.dtype(line["x"]["dtype"]))
    assert list(steps) == [key.step for key in Store.open().snapshots(finished.mrn[0])]
    assert figures(open_page("curves", run=run, metric="Objective"), "curve_large")
    mtl = next(run.id for run in Store.open().runs() if run.config.paradigm == "mtl")
    assert "Relations" not in open_page("curves", run=str(mtl)).segmented_control(key="metric").options


def test_relations_say_when_the_penalty_has_vanished(open_page: Open, finished: Filled) -> None:
    app = open_page("relations", run=str(finished.vanished[0]))
    assert any("The penalty has vanished" in one.value for one in app.warning)
    other = open_page("relations", run=str(finished.mrn[0]))
    assert not any("The penalty has vanished" in one.value for one in other.warning)


def test_relations_wait_for_a_queued_run(open_page: Open, filled: Filled) -> None:
    queued = filled.queued[1]
    app = open_page("relations", run=str(queued))
    assert "No relations yet" in words(app)


def test_tag_with_a_damaged_checkpoint_is_one_sentence(open_page: Open, finished: Filled) -> None:
    run_id = finished.finished[0]
    app = open_page("tag", run=str(run_id), text="<script>alert(1)</script> **sings** .")
    assert len(app.warning) == 1
    assert f"Run {run_id}" in app.warning[0].value


def test_chosen_runs_are_carried_to_the_next_page(open_page: Open, finished: Filled) -> None:
    app = open_page("runs", run="3,1")
    app.switch_page("curves/page.py").run()
    assert not app.exception
    assert app.multiselect(key="curves_runs").value == ["3", "1"]
