"""Launch: runs that are there already, filling in from runs and links, the command, the preview of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.config.sweep import expand
from core.corpora import save_upload
from core.corpora.uploads import uploads
from core.store import RunState, Store
from dashboard.launch.plan import launch_warnings
from dashboard.runs.bar import with_task_added
from jobs.engines.local import LocalEngine
from jobs.queue.estimates import Cost, Disk
from tests.making import claimed
from tests.pages.conftest import APP, Open, labels, words

_TRAIN = "Anna B-PER NNP\nsings O VBZ\n\nin O IN\nRome B-LOC NNP\n\n"
_TEST = "Mars B-PLANET NNP\nshines O VBZ\n\n"
_BASE: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "encoder_training": "frozen"}


def listed(app: AppTest) -> list[tuple[str, str]]:
    """The configurations of the plan, each with its runs."""
    rows = app.table[0].value
    plain = rows.map(lambda text: text.replace("\\", ""))
    return [(row["Configuration"], row["Runs"]) for _, row in plain.iterrows() if row["Runs"]]


def heading(app: AppTest) -> str:
    return next(one.value for one in app.subheader if one.value.startswith("This makes"))


def query(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def done(**values: Any) -> int:
    """A run that has succeeded in the store of this test."""
    store = Store.open()
    try:
        return claimed(store, RunState.SUCCEEDED, **{**_BASE, **values})
    finally:
        store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    (made / "train.conll").write_text(_TRAIN * 4)
    (made / "test.conll").write_text(_TEST)
    return made


def test_a_worker_is_got_ready_once_something_is_changed(
    laboratory: Path, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[str] = []
    monkeypatch.setattr(LocalEngine, "expect_run", lambda _engine, store: expected.append(store.name))
    app = AppTest.from_file(str(APP), default_timeout=30).run()
    assert expected == []
    for epochs in ("2", "3"):
        next(one for one in app.text_input if one.label == "Epochs").set_value(epochs)
        app.run()
        assert not app.exception
    assert len(expected) == 1, "once in half a minute is enough"
    assert str(laboratory) in expected[0]
    assert workers == []


def test_runs_that_are_there_are_used_and_the_others_launched(open_page: Open, workers: list[str]) -> None:
    first, second = done(seed=1), done(seed=2)
    app = open_page("launch")
    assert heading(app).startswith("This makes 3 runs, 1 of them new")
    assert listed(app) == [("MRN λ 0.003", "3 seeds, 2 in the store")]
    assert app.toggle(key="launch_reuse").label == "Use the 2 of 3 that are in the store"
    app.button(key="launch").click().run()
    assert not app.exception
    assert [run.config.seed for run in Store.open().runs()] == [3, 2, 1]
    assert workers
    assert "1 run queued, 2 used from the store." in words(app)
    assert query(app)["run"] == f"{first},{second},3"
    # All are there now, and the button is a link to them.
    assert heading(app) == "This makes 3 runs, none of them new"
    assert listed(app) == [("MRN λ 0.003", "3 seeds, all in the store")]
    assert "launch" not in [button.key for button in app.button]
    (link,) = (one.proto for one in app.get("page_link") if one.proto.label == "Go to these 3 runs")
    assert link.query_string == f"run={first}%2C{second}%2C3"
    app.toggle(key="launch_reuse").set_value(False).run()
    assert heading(app).startswith("This makes 3 runs")
    assert listed(app) == [("MRN λ 0.003", "3 seeds")]
    app.button(key="launch").click().run()
    assert sorted(run.config.seed for run in Store.open().runs()) == [1, 1, 2, 2, 3, 3]


def test_a_link_from_a_run_fills_the_form_in(open_page: Open) -> None:
    run = done(seed=7, epochs=3, dropout=0.3, paradigm="mtl", batch_size=8)
    app = open_page("launch", clone=str(run))
    assert [label for label in labels(app, "page_link") if "Filled" in label] == [f"Filled in from run {run}"]
    assert app.pills(key="launch_paradigm").value == ["mtl"]
    assert app.text_input(key="launch_dropout").value == "0.3"
    assert heading(app).startswith("This makes 1 run")
    assert listed(app) == [("MTL", "1 seed, all in the store")]
    # What is edited stays edited, and the address is then that of the form.
    app.text_input(key="launch_seed").set_value("8").run()
    app.run()
    assert app.text_input(key="launch_seed").value == "8"
    assert "clone" not in query(app)
    assert query(app)["seed"] == "8"
    assert query(app)["dropout"] == "0.3"


def test_groups_of_tasks_on_corpora_whose_options_are_lists(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch", corpus="demo", task_groups="pairs", paradigm="stl,mtl", seed="1,2")
    assert heading(app).startswith("This makes 12 runs")
    assert listed(app) == [
        ("STL", "3 tasks × 2 seeds"),
        *((f"MTL · tasks {pair}", "2 seeds") for pair in ("pos, chunk", "pos, ner", "chunk, ner")),
    ]
    app.selectbox(key="launch_task_groups").set_value("written").run()
    assert "Task groups: '' makes no group of pos, chunk, ner; write all, each" in words(app)
    app.text_input(key="launch_groups_written").set_value("ner,pos").run()
    assert [name for name, _ in listed(app)] == ["STL", "MTL"]
    assert query(app)["task_groups"] == "ner,pos"
    assert "--task-groups ner,pos" in app.code[0].value

    app.selectbox(key="launch_corpus").set_value("Your own data").run()
    app.segmented_control(key="launch_own_how").set_value("A folder on this machine").run()
    app.text_input(key="launch_own_folder").set_value("simulated:demo?alpha={0.2|0.9}&tasks={1|2}").run()
    assert "This is simulated:demo?alpha=0.2&tasks=2, one of 4 corpora." in words(app)
    app.selectbox(key="launch_task_groups").set_value("pairs").run()
    # On each corpus STL of the real task, and it with each simulated one.
    assert heading(app).startswith(f"This makes {2 * (2 + 3) * 2} runs")
    app.button(key="launch").click().run()
    assert not app.exception
    runs = Store.open().runs()
    assert len(runs) == 20
    cloned = open_page("launch", clone=",".join(str(run.id) for run in reversed(runs)))
    assert "The form holds one corpus" not in words(cloned)
    assert cloned.text_input(key="launch_own_folder").value == app.text_input(key="launch_own_folder").value
    assert cloned.selectbox(key="launch_task_groups").value == "pairs"
    cloned.text_input(key="launch_own_folder").set_value("simulated:demo?alpha={0.2|0.9").run()
    assert "has braces that are no list" in words(cloned)


def test_a_link_from_several_runs_makes_them_all(open_page: Open) -> None:
    sweep = expand(_BASE, {"paradigm": ["stl", "mrn"], "lambda": [0.01, 0.1], "seed": [4, 5]})
    runs = Store.open().add_runs(sweep)
    app = open_page("launch", clone=",".join(map(str, runs)))
    assert app.text_input(key="launch_lambda").value == "0.01, 0.1"
    assert app.text_input(key="launch_seed").value == "4, 5"
    assert len(sweep) == 10
    assert listed(app) == [
        ("STL", "3 tasks × 2 seeds, all in the store"),
        ("MRN λ 0.01", "2 seeds, all in the store"),
        ("MRN λ 0.1", "2 seeds, all in the store"),
    ]


def test_a_clone_with_other_values_and_what_cannot_be_is_named(open_page: Open) -> None:
    """The first is what the advice for a run that found no memory links to."""
    run = done(seed=7, batch_size=32, dropout=0.3)
    app = open_page("launch", clone=f"{run},99,twelve", batch_size="8", prior="best,map")
    assert app.text_input(key="launch_batch_size").value == "8"
    assert app.text_input(key="launch_dropout").value == "0.3"
    assert app.pills(key="launch_prior").value == ["map"]
    assert heading(app).startswith("This makes 1 run")
    for sentence in (
        "There is no run 99.",
        "There is no run twelve.",
        "asks for prior best, which is not possible.",
    ):
        assert sentence in words(app)


def test_a_link_from_a_run_of_own_data(open_page: Open, folder: Path) -> None:
    config = RunConfig.build(
        corpus=str(folder), columns="tokens,ner,tags", tasks="tags,ner", encoder_training="frozen"
    )
    (run,) = Store.open().add_runs([config])
    app = open_page("launch", clone=str(run))
    assert app.selectbox(key="launch_corpus").value == "Your own data"
    assert app.text_input(key=f"launch_columns_{folder}").value == "tokens, ner, tags"
    assert app.pills(key=f"launch_tasks_{folder}").value == ["tags", "ner"]
    assert listed(app) == [("MRN λ 0.003", "1 seed, all in the store")]


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
    assert heading(app).startswith("This makes 40 runs")  # encoders × shares × seeds × (MTL + alignments × λ)
    app.text_input(key="launch_epochs").set_value("4").run()
    assert query(app) == {**link, "epochs": "4"}
    app.switch_page("runs/page.py").run()
    app.switch_page("launch/page.py").run()
    assert app.text_input(key="launch_epochs").value == "4"
    assert query(app)["epochs"] == "4"
    app.button(key="launch_fresh").click().run()
    assert app.text_input(key="launch_epochs").value == "5"
    assert app.selectbox(key="launch_corpus").value == "demo"


def test_how_runs_wait_and_come_back(open_page: Open) -> None:
    link = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl", "seed": "1", "priority": "3"}
    app = open_page("launch", **link)
    assert app.number_input(key="launch_priority").value == 3
    app.number_input(key="launch_retries").set_value(2).run()
    assert (query(app)["priority"], query(app)["retries"]) == ("3", "2")
    assert app.code[0].value.splitlines()[-2:] == ["  --priority 3 \\", "  --retries 2"]
    app.button(key="launch").click().run()
    assert not app.exception
    (run,) = Store.open().runs()
    assert (run.priority, run.retries) == (3, 2)
    app.button(key="launch_fresh").click().run()
    assert app.number_input(key="launch_priority").value == 0
    assert "retries" not in query(app)


def test_labels_are_counted(open_page: Open, folder: Path) -> None:
    """Of spans their types, each where it begins; the commonest in training first."""
    (folder / "dev.conll").write_text("New B-LOC NNP\nYork I-LOC NNP\n")
    app = open_page("launch", corpus=str(folder))
    app.session_state["launch_more_data"] = True
    app.run()
    spans = next(one.value for one in app.dataframe if "Type of spans" in one.value.columns)
    assert spans.to_dict("list") == {
        "Type of spans": ["LOC", "PER", "PLANET"],
        "Train": [4, 4, 0],
        "Dev": [1, 0, 0],
        "Test": [0, 0, 1],
    }
    words_of_tags = next(one.value for one in app.dataframe if "Label" in one.value.columns)
    assert list(words_of_tags["Label"]) == ["NNP", "VBZ", "IN"]
    assert list(words_of_tags["Train"]) == [8, 4, 4]
    assert "training never shows (B-PLANET)" in words(app)


def test_an_upload_is_previewed_and_its_mistakes_are_told_with_file_and_line(open_page: Open) -> None:
    app = open_page("launch")
    app.selectbox(key="launch_corpus").select("Your own data").run()
    app.file_uploader(key="launch_own_files").set_value(
        [("my.train", (_TRAIN * 3).encode(), ""), ("my.test", _TEST.encode(), "")]
    ).run()
    assert not app.exception
    assert any(list(one.value.get("2", ())) == ["B-PER", "O"] for one in app.dataframe)
    assert "6 train and 1 test sentences" in words(app)
    bad = _TRAIN + "Rome B-LOC\n"
    app.file_uploader(key="launch_own_files").set_value(
        [("my.train", bad.encode(), ""), ("my.test", _TEST.encode(), "")]
    ).run()
    assert not app.exception
    assert "my.train, line 7: expected 3 columns" in words(app)
    assert "Fix the file above first." in words(app)
    assert "uploads" not in words(app)
    assert len(uploads()) == 1, "nothing is kept of what was refused"


def test_an_upload_of_texts_has_no_columns_to_name(open_page: Open) -> None:
    app = open_page("launch")
    app.selectbox(key="launch_corpus").select("Your own data").run()
    rows = "text1,text2,score\n" + '"One, two","A\nB",3.5\nC,D,1\n' * 2
    app.file_uploader(key="launch_own_files").set_value(
        [("my.train.csv", rows.encode(), ""), ("dev.jsonl", b'{"text1": "a", "text2": "b", "score": 1}', "")]
    ).run()
    assert not app.exception
    assert "4 train and 1 test pairs" in words(app)
    assert "There is no test file: dev.jsonl is the test split." in words(app)
    assert not [field for field in app.text_input if field.label.startswith("Columns")]
    app.file_uploader(key="launch_own_files").set_value(
        [("train.csv", rows.replace("3.5", "high").encode(), ""), ("test.csv", rows.encode(), "")]
    ).run()
    assert not app.exception
    assert "train.csv, line 2: score must be a number, not 'high'." in words(app)
    assert len(uploads()) == 1


def test_an_earlier_upload_is_offered_again_and_can_be_deleted(open_page: Open) -> None:
    files = {"train.conll": _TRAIN.encode(), "test.conll": _TEST.encode()}
    one, other = (str(save_upload(files, name)) for name in ("one", "other"))
    for state in (RunState.SUCCEEDED, RunState.QUEUED):
        claimed(Store.open(), state, corpus=one, tasks=("ner", "pos"))
    app = open_page("launch")
    app.selectbox(key="launch_corpus").select("Your own data").run()
    offered = app.radio(key="launch_own_path")
    assert offered.value is None
    captions = dict(zip(offered.options, offered.proto.captions, strict=True))
    assert captions[Path(one).name.replace("-", "\\-")].startswith("3 sentences · ")
    assert [caption.rpartition(" · ")[2] for caption in captions.values()] == [
        "used by no run",
        "used by 2 runs",
    ]
    offered.set_value(one).run()
    assert not app.exception
    assert "2 train and 1 test sentences" in words(app)
    app.session_state["launch_own_delete"] = True
    app.run()
    button = next(one for one in app.button if one.label == "Delete these files")
    assert button.disabled
    assert "1 run on it queued or in progress. Stop them first." in words(app)
    app.radio(key="launch_own_path").set_value(other).run()
    next(one for one in app.button if one.label == "Delete these files").click().run()
    assert not app.exception
    assert list(map(str, uploads())) == [one]
    assert app.radio(key="launch_own_path").value is None
    # A clone of a run on an upload finds it there.
    clone = open_page("launch", clone="1")
    assert clone.radio(key="launch_own_path").value == one


def test_what_is_said_before_a_launch() -> None:
    counts = dict.fromkeys(RunState, 0)
    quick = Cost((60.0,), 1, 3)
    (now,) = launch_warnings(quick, Disk(1e6, 1e12), counts)
    assert now.endswith("Starts now.")
    long = Cost((7200.0,), 1, 3)
    waiting = {**counts, RunState.RUNNING: 2, RunState.QUEUED: 1}
    short, hours, before = launch_warnings(long, Disk(21e9, 14e9), waiting)
    assert "about 21.0 GB, and 14.0 GB are free" in short
    assert "More than an hour in all." in hours
    assert before.endswith("Starts after 3 runs queued or in progress.")
    (_, _, timed) = launch_warnings(long, Disk(21e9, 14e9), waiting, 185.0)
    assert timed.endswith("Starts after 3 runs queued or in progress, in about 3 min.")
    (paused,) = launch_warnings(quick, Disk(1e6, 1e12), waiting, paused=True)
    assert "The queue is paused: they wait until it is resumed." in paused
    (among,) = launch_warnings(quick, Disk(1e6, 1e12), waiting, 185.0, priority=2)
    assert among.endswith("Starts after 3 runs queued or in progress; higher priorities start first.")
    _, room = launch_warnings(quick, Disk(5e8, 1e12), counts)
    assert room.endswith("They will keep about 500 MB on disk.")


def drawn_blocks(app: AppTest) -> list[Any]:
    """The sentences that the page draws."""
    sent = [json.loads(one.proto.json or "{}") for one in app.get("bidi_component")]
    return [block for one in sent for block in one.get("blocks", ())]


def test_of_a_sentence_without_end_the_beginning_is_drawn(open_page: Open, folder: Path) -> None:
    (folder / "train.conll").write_text("Anna B-PER NNP\nLee I-PER NNP\n" * 10_000 + "\n" + _TRAIN)
    app = open_page("launch", corpus=str(folder))
    drawn = next(block for block in drawn_blocks(app) if block["more"])
    assert drawn["more"] == "… and 19,920 more words, not drawn"
    assert len(drawn["tokens"]) == 80
    assert {len(lane["cells"]) for lane in drawn["lanes"]} == {80}
    assert "20,006 words" in words(app)


def test_a_task_is_added_to_a_finished_run(open_page: Open) -> None:
    """The button of a run leads to a form that lacks the data alone."""
    run_id = done(encoder="minilm", max_length=128)
    store = Store.open()
    run = store.run(run_id)
    store.close()
    assert "Add a task to this run" in labels(open_page("run", id=str(run_id)), "page_link")
    app = open_page("launch", **with_task_added(run), tasks="ner", seed="1")
    assert app.text_input(key="launch_added_to").value == str(run_id)
    assert "is no finished run" in words(app)  # the store of this test has no models
    app.text_input(key="launch_added_to").set_value("").run()
    assert "Added to run" in words(app)


def test_a_task_is_added_over_the_corpus_of_the_run(open_page: Open, folder: Path) -> None:
    """One task is chosen that the run has not learned, and the page says what it does."""
    run_id = done(
        corpus=str(folder), columns=("tokens", "ner", "pos"), tasks=("ner",), paradigm="stl", max_length=128
    )
    store = Store.open()
    link = with_task_added(store.run(run_id))
    store.close()
    app = open_page("launch", **link)
    assert app.pills(key=f"launch_tasks_{folder}").value == ["pos"]
    assert "Task to add" in labels(app, "button_group")
    assert f"Adding a task to run {run_id}, over its corpus" in labels(app, "page_link")
    assert f"Run {run_id} has learned ner." in words(app)
    assert "Tasks: choose one" not in words(app)
    # Another corpus, of which it has learned all tasks by name but one; then of two chosen ones.
    app.selectbox(key="launch_corpus").set_value("demo").run()
    assert app.pills(key="launch_tasks_demo").value == ["pos"]
    assert f"Adding a task to run {run_id}" in labels(app, "page_link")
    app.pills(key="launch_tasks_demo").set_value(["pos", "chunk"]).run()
    assert "Tasks: choose one task. You can add another afterwards." in words(app)


def test_where_the_run_has_learned_all_tasks_of_its_corpus_none_is_chosen(open_page: Open) -> None:
    run_id = done(paradigm="mtl", max_length=128)
    store = Store.open()
    app = open_page("launch", **with_task_added(store.run(run_id)))
    store.close()
    assert app.pills(key="launch_tasks_demo").value == []
    assert "Tasks: choose one. You can add another afterwards." in words(app)
    assert f"Run {run_id} has learned pos, chunk and ner: all of demo. Another corpus has others." in words(
        app
    )


def test_runs_that_no_task_can_be_added_to(open_page: Open) -> None:
    for changes in ({"encoder_training": "full"}, {"head": "crf"}):
        app = open_page("run", id=str(done(**changes)))
        assert "Clone" in labels(app, "page_link")
        assert "Add a task to this run" not in labels(app, "page_link")


def test_cards_fold_once_there_are_runs(open_page: Open) -> None:
    first = open_page("launch")
    pictures = len(first.get("image"))
    folded = "Questions that one click answers, and published tables"
    assert folded not in [fold.label for fold in first.expander]
    Store.open().add_runs([RunConfig.build(corpus="demo", tasks=("pos",), paradigm="stl", encoder="minilm")])
    later = open_page("launch")
    assert folded in [fold.label for fold in later.expander]
    assert len(later.get("image")) == pictures - 3
    assert later.button(key="preset_Try it").label == "Try it"
