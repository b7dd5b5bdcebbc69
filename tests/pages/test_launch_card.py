"""Launch: the plan, the card of launched runs, runs that are there already, cards that answer a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import PRESETS
from core.config.typed import value_text
from core.store import RunState, Store
from dashboard.launch.launched import headline
from dashboard.launch.plan import launch_warnings
from dashboard.shared.presets import SCARCE, TRY_IT
from jobs.engines.local import LocalEngine
from jobs.queue.estimates import Cost, Disk
from tests.making import finished
from tests.pages.conftest import APP, App, Open, press, run_tables, sent, words
from tests.pages.launching import done, listed, on_card, planned, query


def test_a_worker_is_got_ready_once_something_is_changed(
    laboratory: Path, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[str] = []
    monkeypatch.setattr(LocalEngine, "expect_run", lambda _engine, store: expected.append(store.name))
    app = App(APP, default_timeout=30).run()
    assert expected == []
    for epochs in ("2", "3"):
        next(field for field in app.text_input if field.label == "Epochs").set_value(epochs).run()
    assert len(expected) == 1, "once in half a minute is enough"
    assert str(laboratory) in expected[0]
    assert workers == []


_MRN_ALONE = {"paradigm": "mrn", "encoder": "minilm"}


def test_runs_that_are_there_are_used_and_the_others_launched(open_page: Open, workers: list[str]) -> None:
    first, second = done(seed=1), done(seed=2)
    app = open_page("launch", **_MRN_ALONE)
    assert planned(app) == 3
    assert listed(app) == [("MRN λ=0.003", "3 seeds, 2 in the store")]
    app.button(key="launch").click().run()
    assert [run.config.seed for run in Store.open().runs()] == [3, 2, 1]
    assert workers
    # The card of all three takes the plan's place, here and where the same form is opened later.
    assert query(app)["run"] == f"{first},{second},3"
    for opened in (app, open_page("launch", **_MRN_ALONE)):
        assert on_card(opened) == ["2 of 3 runs done", {RunState.SUCCEEDED: 2, RunState.QUEUED: 1}]
        assert "launch" not in [button.key for button in opened.button]
    assert "Compare" not in [button.label for button in app.button]
    app.button(key="launched_stop").click().run()
    assert Store.open().state(3) is RunState.CANCELLED
    assert app.button(key="to_answer").proto.type == "primary"
    # To train all anew is still possible.
    app.button(key="launch_again").click().run()
    assert listed(app) == [("MRN λ=0.003", "3 seeds")]
    app.button(key="launch").click().run()
    assert sorted(run.config.seed for run in Store.open().runs()) == [1, 1, 2, 2, 3, 3]
    assert on_card(app)[0] == "3 runs queued"


@pytest.mark.parametrize(
    ("states", "left", "text"),
    [
        ({RunState.QUEUED: 8}, 125.0, "8 runs queued, about 2 min"),
        ({RunState.QUEUED: 4, RunState.RUNNING: 1, RunState.SUCCEEDED: 3}, 125.0,
         "3 of 8 runs done, about 2 min left"),
        ({RunState.QUEUED: 4, RunState.SUCCEEDED: 4}, 125.0, "4 of 8 runs done, about 2 min left"),
        ({RunState.RUNNING: 1}, None, "0 of 1 run done"),
        ({RunState.SUCCEEDED: 7, RunState.FAILED: 1}, None, "7 of 8 runs done"),
        ({RunState.SUCCEEDED: 8}, None, "8 runs done"),
    ],
)  # fmt: skip
def test_the_headline_of_launched_runs(states: dict[RunState, int], left: float | None, text: str) -> None:
    assert headline(states, left) == text


_QUICK, _LONG = Cost((60.0,), 1, 3), Cost((7200.0,), 1, 3)
_ROOM, _NO_ROOM = Disk(1e6, 1e12), Disk(21e9, 14e9)
_IDLE = dict.fromkeys(RunState, 0)
_BUSY = _IDLE | {RunState.RUNNING: 2, RunState.QUEUED: 1}


@pytest.mark.parametrize(
    ("cost", "disk", "counts", "queue", "warnings"),
    [
        (_QUICK, _ROOM, _IDLE, {}, ["Starts now."]),
        (Cost((60.0,) * 9, 1, 3, "Only 1 run at once."), _ROOM, _IDLE, {},
         ["Only 1 run at once.", "Starts now."]),
        (_LONG, _NO_ROOM, _BUSY, {"left": 185.0}, ["about 21.0 GB, and 14.0 GB are free", "More than an hour",
         "Starts after 3 runs queued or in progress, in about 3 min."]),
        (_QUICK, _ROOM, _BUSY, {"paused": True}, ["The queue is paused: they wait until it is resumed.]"]),
        (_QUICK, _ROOM, _BUSY, {"left": 185.0, "priority": 2},
         ["Starts after 3 runs queued or in progress; higher priorities start first."]),
        (_QUICK, Disk(5e8, 1e12), _IDLE, {}, ["", "They will use about 500 MB on disk."]),
    ],
)  # fmt: skip
def test_warnings_before_a_launch(
    cost: Cost, disk: Disk, counts: dict[RunState, int], queue: dict[str, Any], warnings: list[str]
) -> None:
    sentences = launch_warnings(cost, disk, counts, **queue)
    for sentence, text in zip(sentences, warnings, strict=True):
        assert text in sentence
    assert sentences[-1].endswith(warnings[-1])


@pytest.mark.parametrize(("slots", "said"), [("1", False), ("2", True), ("8", True)])
def test_the_plan_says_how_many_runs_train_at_once(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, slots: str, said: bool
) -> None:
    monkeypatch.setenv("MRNLAB_SLOTS", slots)
    text = words(open_page("launch", seed="1-3", **_MRN_ALONE)).lower()
    assert f"{min(3, int(slots))} at once" in text or not said
    assert ("at once" in text) == said


def test_an_encoder_that_is_not_here_can_be_replaced(open_page: Open) -> None:
    app = open_page("launch", encoder="bert-base-cased,bert-base-cased+bilstm,roberta-base,sc-lstm")
    offered = app.multiselect(key="launch_encoder").options
    assert {"minilm", "sc-lstm", "roberta-base (needs download)"} <= {*offered}
    assert words(app).count("The encoder 'bert-base-cased' is not on this machine") == 2
    assert app.button(key="launch").disabled
    press(app, "Use minilm instead")
    assert app.multiselect(key="launch_encoder").value == ["minilm", "minilm+bilstm", "sc-lstm"]
    assert not app.button(key="launch").disabled


def test_try_it_queues_its_runs_and_a_second_time_shows_them(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch")
    pictures = len(app.get("image"))
    # In an empty store this is the one thing to do, and the form says why its runs have no time.
    assert [button.key for button in app.button if button.proto.type == "primary"] == [
        "preset_Does sharing help?"
    ]
    assert "No estimate yet: the first run will measure it." in words(app)
    assert "Here auto takes cooccurrence: the 3 pairs of tasks share all of their words" in words(app)
    assert app.text_input(key="launch_fraction").value == "100%"
    # Who fills in the form is about to launch that.
    app.run()
    assert [button.key for button in app.button if button.proto.type == "primary"] == ["launch"]
    app.button(key="preset_Does sharing help?").click().run()
    runs = Store.open().runs()
    assert [run.state for run in runs] == [RunState.QUEUED] * 20
    # Each seed is complete before the next begins.
    first = [run.config for run in runs[::-1][:4]]
    assert [config.paradigm for config in first] == ["mrn", "mtl", "stl", "stl"]
    assert {config.seed for config in first} == {1}
    assert len({run.sweep for run in runs}) == 1
    assert workers
    assert app.title[0].value == "Runs"
    assert query(app)["run"] == ",".join(map(str, range(1, 21)))
    # The pictures of the paradigms are in their fold alone once there are runs; the cards stay.
    app.switch_page("launch/page.py").run()
    assert len(app.get("image")) == pictures - 3
    again = app.button(key="preset_Does sharing help?")
    assert again.label == "Show 20 runs"
    assert "20 runs are stored or queued." in words(app)
    again.click().run()
    assert len(Store.open().runs()) == 20
    assert app.title[0].value == "Runs"


def test_a_card_says_what_of_its_runs_is_still_to_train(open_page: Open, workers: list[str]) -> None:
    *first, last = SCARCE.configs
    for config in first:
        finished(Store.open(), config)
    app = open_page("launch")
    assert app.button(key=f"preset_{SCARCE.title}").label == "Launch 1 more run"
    assert app.button(key=f"preset_{TRY_IT.title}").label == "Launch 20 runs"
    finished(Store.open(), last)
    app = open_page("launch")
    assert SCARCE.description not in words(app)
    assert "MRN with and without relations, and MTL. 15 runs are stored: nothing to train." in words(app)
    app.button(key=f"stored_{SCARCE.title}").click().run()
    assert app.title[0].value == "Compare"
    assert query(app)["run"] == ",".join(map(str, range(1, 16)))
    assert workers == []


def test_the_plan_repeats_what_stands_at_the_end_of_the_form(open_page: Open) -> None:
    app = open_page("launch", seed="1-3", epochs="7", fraction="20%", **_MRN_ALONE)
    assert "Encoder minilm, frozen; 7 epochs over 20% of the data; seeds 1-3" in words(app)


def test_cards_of_pairs_and_of_published_tables_fill_the_form(open_page: Open) -> None:
    app = open_page("launch", tasks="pos,chunk,ner")
    app.button(key="fill_in_pairs").click().run()
    assert planned(app) == 30
    assert query(app)["task_groups"] == "pairs"
    app.button(key="launch_fresh").click().run()
    tables = app.menu_button(key="fill_table")
    chosen = {option.split(":")[0]: option for option in tables.options}
    tables.click(chosen["Chang (2022), Table 3"]).run()
    assert app.selectbox(key="launch_corpus").value == "both-pos"
    assert app.pills(key="launch_alignment").value == ["exact"]
    assert app.pills(key="launch_prior").value == ["paper"]
    assert "published" in app.pills(key="launch_prior").options
    assert "**published** The published procedure" in words(app)
    assert "Commands name it `paper`." in words(app)
    assert planned(app) == 20
    app.menu_button(key="fill_table").click(chosen["Lu et al. (2019), Table 3"]).run()
    assert app.multiselect(key="launch_encoder").value == ["bilstm", "lstm-d", "sc-lstm"]
    preset = PRESETS["sc-lstm"]
    for field in ("bilstm_hidden", "clip_norm", "lr_encoder", "dropout"):
        assert app.text_input(key=f"launch_{field}").value == value_text(preset[field])
    for field in ("characters", "optimiser", "draw_tasks", "paradigm"):
        assert app.pills(key=f"launch_{field}").value == [preset[field]]


def test_long_names_of_tasks_lose_what_all_share(open_page: Open, tmp_path: Path) -> None:
    """On the form, in the drawn sentences and as heads of columns, where the full name comes on hover."""
    names = [f"morphological_feature_{name}_of_the_treebank" for name in ("case", "mood")]
    folder = tmp_path / "long"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.conll").write_text("Anna N V\nsings V N\n\n" * 4)
    columns = ",".join(["tokens", *names])
    app = open_page("launch", corpus=str(folder), columns=columns, paradigm="mtl", seed="1")
    pills = app.pills(key=f"launch_tasks_{folder}")
    assert [option.rpartition(" ")[2] for option in pills.options] == ["case", "mood"]
    assert all(name in pills.help.replace("\\", "") for name in names)
    assert {lane["short"] for lane in sent(app, "blocks")["blocks"][0]["lanes"]} == {"case", "mood"}
    app.button(key="launch").click().run()
    assert Store.open().runs()[0].config.tasks == tuple(names)
    (shown,) = run_tables(open_page("runs"))
    by_name = {column["name"]: column for column in shown["columns"]}
    assert [by_name[f"{name}, test"]["head"] for name in names] == ["case", "mood"]
    assert all(name in by_name[f"{name}, test"]["help"] for name in names)
