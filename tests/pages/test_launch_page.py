"""Launch: runs that are there already, filling in from runs and links, the command, the preview of labels."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.corpora import save_upload, summarise
from core.corpora.loading import proposed_columns
from core.corpora.readers import Source
from core.corpora.tables import read_table
from core.corpora.uploads import uploads
from core.store import RunState, Store
from dashboard.launch.launched import headline
from dashboard.launch.plan import launch_warnings
from dashboard.launch.samples import SAMPLES, zipped
from dashboard.runs.controls import with_task_added
from dashboard.shared.presets import TRY_IT
from dashboard.theme import STATES
from jobs.engines.local import LocalEngine
from jobs.queue.estimates import Cost, Disk
from tests.making import claimed, corpus_folder
from tests.pages.conftest import APP, App, Open, labels, press, sent, table, words

_TRAIN = "Anna B-PER NNP\nsings O VBZ\n\nin O IN\nRome B-LOC NNP\n\n"
_TEST = "Mars B-PLANET NNP\nshines O VBZ\n\n"
_BASE: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "encoder_training": "frozen"}


def listed(app: AppTest) -> list[tuple[str, str]]:
    """The configurations of the plan, each with its runs."""
    rows = app.table[0].value
    plain = rows.map(lambda text: text.replace("\\", ""))
    return [(row["Configuration"], row["Runs"]) for _, row in plain.iterrows() if row["Runs"]]


def heading(app: AppTest) -> str:
    return next(line.value for line in app.subheader if line.value.startswith("This makes"))


def on_card(app: AppTest) -> list[Any]:
    """The headline of the card of launched runs, and how many of them are in each state."""
    (bar,) = app.get("progress")
    states = {look.word.lower(): state for state, look in STATES.items()}
    parts = [part.split(" ") for part in bar.proto.text.split(", ")]
    return [app.subheader[0].value, {states[word]: int(count) for count, word in parts}]


def query(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def done(**values: Any) -> int:
    """A run that has succeeded in the store of this test."""
    return claimed(Store.open(), RunState.SUCCEEDED, **{**_BASE, **values})


def own_data(app: AppTest, folder: str = "") -> AppTest:
    """The form with a corpus of one's own, and that folder."""
    app.selectbox(key="launch_corpus").select("Your own data").run()
    if folder:
        app.segmented_control(key="launch_own_how").set_value("A folder on this machine").run()
        app.text_input(key="launch_own_folder").set_value(folder).run()
    return app


def upload(app: AppTest, **files: str) -> AppTest:
    """The form with these files uploaded, `__` in their names for a dot."""
    contents = [(name.replace("__", "."), text.encode(), "") for name, text in files.items()]
    app.file_uploader(key="launch_own_files").set_value(contents).run()
    return app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(corpus_folder(tmp_path / "mine", {"train.conll": _TRAIN * 4, "test.conll": _TEST}))


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


def test_runs_that_are_there_are_used_and_the_others_launched(open_page: Open, workers: list[str]) -> None:
    first, second = done(seed=1), done(seed=2)
    app = open_page("launch")
    assert heading(app).startswith("This makes 3 runs, 1 of them new")
    assert listed(app) == [("MRN 0.003", "3 seeds, 2 in the store")]
    assert app.toggle(key="launch_reuse").label == "Use the 2 of 3 that are in the store"
    app.button(key="launch").click().run()
    assert [run.config.seed for run in Store.open().runs()] == [3, 2, 1]
    assert workers
    # The card of all three takes the plan's place, here and where the same form is opened later.
    assert query(app)["run"] == f"{first},{second},3"
    for opened in (app, open_page("launch")):
        assert on_card(opened) == ["1 run queued", {RunState.SUCCEEDED: 2, RunState.QUEUED: 1}]
        assert "launch" not in [button.key for button in opened.button]
    assert not [line for line in labels(app, "page_link") if line == "Compare"]
    app.button(key="launched_stop").click().run()
    assert Store.open().state(3) is RunState.CANCELLED
    assert on_card(app)[0] == "2 of 3 runs done"
    assert "Compare" in labels(app, "page_link")
    # To train all anew is still possible.
    app.button(key="launch_again").click().run()
    assert listed(app) == [("MRN 0.003", "3 seeds")]
    app.button(key="launch").click().run()
    assert sorted(run.config.seed for run in Store.open().runs()) == [1, 1, 2, 2, 3, 3]
    assert on_card(app)[0] == "3 runs queued"


@pytest.mark.parametrize(
    ("states", "left", "text"),
    [
        ({RunState.QUEUED: 8}, 125.0, "8 runs queued, about 2 min"),
        ({RunState.QUEUED: 1, RunState.SUCCEEDED: 2}, None, "1 run queued"),
        ({RunState.QUEUED: 4, RunState.RUNNING: 1, RunState.SUCCEEDED: 3}, 125.0,
         "3 of 8 runs done, about 2 min left"),
        ({RunState.RUNNING: 1}, None, "0 of 1 run done"),
        ({RunState.SUCCEEDED: 7, RunState.FAILED: 1}, None, "7 of 8 runs done"),
        ({RunState.SUCCEEDED: 8}, None, "8 runs done"),
    ],
)  # fmt: skip
def test_what_the_card_of_a_launch_says(states: dict[RunState, int], left: float | None, text: str) -> None:
    assert headline(states, left) == text


def test_a_link_from_a_run_fills_the_form_in(open_page: Open) -> None:
    run = done(seed=7, epochs=3, dropout=0.3, paradigm="mtl", batch_size=8)
    app = open_page("launch", clone=str(run))
    assert [label for label in labels(app, "page_link") if "Filled" in label] == [f"Filled in from run {run}"]
    assert app.pills(key="launch_paradigm").value == ["mtl"]
    assert app.text_input(key="launch_dropout").value == "0.3"
    assert on_card(app) == ["1 run done", {RunState.SUCCEEDED: 1}]
    # What is edited stays edited, and the address is then that of the form.
    app.text_input(key="launch_seed").set_value("8").run()
    app.run()
    assert app.text_input(key="launch_seed").value == "8"
    assert "clone" not in query(app)
    assert (query(app)["seed"], query(app)["dropout"]) == ("8", "0.3")


def test_groups_of_tasks_on_corpora_whose_options_are_lists(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch", corpus="demo", task_groups="pairs", paradigm="stl,mtl", seed="1,2")
    assert heading(app).startswith("This makes 12 runs")
    assert listed(app) == [
        ("STL", "3 tasks × 2 seeds"),
        *((f"MTL · {pair}", "2 seeds") for pair in ("pos, chunk", "pos, ner", "chunk, ner")),
    ]
    app.selectbox(key="launch_task_groups").set_value("written").run()
    assert "Task groups: '' makes no group of pos, chunk, ner; write all, each" in words(app)
    app.text_input(key="launch_groups_written").set_value("ner,pos").run()
    assert [name for name, _ in listed(app)] == ["STL", "MTL"]
    assert query(app)["task_groups"] == "ner,pos"
    assert "--task-groups ner,pos" in app.code[0].value

    own_data(app, "simulated:demo?alpha={0.2|0.9}&tasks={1|2}")
    assert "Shown: simulated:demo?alpha=0.2&tasks=2, one of 4 corpora." in words(app)
    app.selectbox(key="launch_task_groups").set_value("pairs").run()
    # On each corpus STL of the real task, and it with each simulated one.
    assert heading(app).startswith(f"This makes {2 * (2 + 3) * 2} runs")
    app.button(key="launch").click().run()
    runs = Store.open().runs()
    assert len(runs) == 20
    cloned = open_page("launch", clone=",".join(str(run.id) for run in reversed(runs)))
    assert "The form holds one corpus" not in words(cloned)
    assert cloned.text_input(key="launch_own_folder").value == app.text_input(key="launch_own_folder").value
    assert cloned.selectbox(key="launch_task_groups").value == "pairs"
    cloned.text_input(key="launch_own_folder").set_value("simulated:demo?alpha={0.2|0.9").run()
    assert "has braces that are no list" in words(cloned)


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
        "asks for prior best, which this form does not offer.",
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
    assert on_card(app) == ["1 run queued", {RunState.QUEUED: 1}]


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


def test_an_edit_that_arrives_with_an_older_address_is_kept(open_page: Open) -> None:
    app = open_page("launch", paradigm="mtl", seed="1")
    older = query(app)
    app.text_input(key="launch_seed").set_value("1-4").run()
    assert query(app)["seed"] == "1-4"
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


def test_labels_are_counted(open_page: Open, folder: Path) -> None:
    """Of spans their types, each where it begins; the commonest in training first."""
    (folder / "dev.conll").write_text("New B-LOC NNP\nYork I-LOC NNP\n")
    app = open_page("launch", corpus=str(folder))
    app.session_state["launch_more_data"] = True
    app.run()
    spans = table(app, "Type of spans")
    assert list(spans) == ["Type of spans", "Train", "Dev", "Test"]
    assert spans.to_numpy().tolist() == [["LOC", 4, 1, 0], ["PER", 4, 0, 0], ["PLANET", 0, 0, 1]]
    tags = table(app, "Label")[["Label", "Train"]]
    assert tags.to_numpy().tolist() == [["NNP", 8], ["VBZ", 4], ["IN", 4]]
    assert words(app).count("B-PLANET in test") == 1, "beside the corpus alone"


def test_an_upload_is_previewed_and_its_mistakes_are_told_with_file_and_line(open_page: Open) -> None:
    app = upload(own_data(open_page("launch")), my__train=_TRAIN * 3, my__test=_TEST)
    assert any(list(frame.value.get("2", ())) == ["B-PER", "O"] for frame in app.dataframe)
    assert "6 train and 1 test sentences" in words(app)
    upload(app, my__train=_TRAIN + "Rome B-LOC\n", my__test=_TEST)
    assert "my.train, line 7: expected 3 columns" in words(app)
    assert "Fix the file above first." in words(app)
    assert "uploads" not in words(app)
    assert len(uploads()) == 1, "nothing is kept of what was refused"


def test_the_split_of_a_file_is_asked_for_where_its_name_tells_none(open_page: Open) -> None:
    app = upload(own_data(open_page("launch")), first__conll=_TRAIN * 2, my__test=_TEST)
    assert "Cannot tell whether first.conll is train, dev or test" in words(app)
    assert uploads() == {}
    next(box for box in app.selectbox if box.label == "Split of first\\.conll").set_value("train").run()
    assert "4 train and 1 test sentences" in words(app)
    (path,) = uploads()
    assert {file.stem for file in path.iterdir()} == {"train", "test"}


def test_what_is_left_of_an_upload_is_kept_on_a_click(open_page: Open) -> None:
    app = own_data(open_page("launch"))
    files = {"train.conll": _TRAIN, "dev.conll": _TEST, "test.conll": _TEST}
    field = app.file_uploader(key="launch_own_files")
    field.set_value([(name, text.encode(), "") for name, text in files.items()])
    given: Any = field._files
    field.run()
    (first,) = uploads()
    field = app.file_uploader(key="launch_own_files")
    field._files = [file for file in given if file[1] != "dev.conll"]  # set_value would make new files
    field.run()
    app.text_input(key="launch_own_name").set_value("smaller").run()
    assert list(uploads()) == [first]
    assert "2 train, 1 dev and 1 test sentences" in words(app)
    press(app, "Keep 2 files as smaller")
    assert len(uploads()) == 2
    assert "2 train and 1 test sentences" in words(app)


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_sample_files_are_a_corpus(kind: str, laboratory: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped(SAMPLES[kind]))) as archive:
        path = save_upload({name: archive.read(name) for name in archive.namelist()}, "sample")
    proposal = proposed_columns(str(path))
    summary = summarise(str(path), None if proposal is None else proposal.columns)
    assert list(summary.splits) == ["train", "dev", "test"]
    assert not any(task.unseen for task in summary.tasks)


def test_a_clone_of_try_it_stays_among_the_corpora(open_page: Open) -> None:
    ids = Store.open().add_runs(TRY_IT.configs)
    app = open_page("launch", clone=",".join(map(str, ids)))
    assert app.selectbox(key="launch_corpus").value == TRY_IT.configs[0].corpus
    assert on_card(app) == ["20 runs queued", {RunState.QUEUED: 20}]
    app.text_input(key="launch_epochs").set_value("3").run()
    assert heading(app).startswith("This makes 20 runs")
    app.selectbox(key="launch_corpus").set_value("demo").run()
    assert "demo-both" not in words(app)


def test_an_upload_of_texts_has_no_columns_to_name(open_page: Open) -> None:
    rows = "text1,text2,score\n" + '"One, two","A\nB",3.5\nC,D,1\n' * 2
    row = '{"text1": "a", "text2": "b", "score": 1}'
    app = upload(own_data(open_page("launch")), my__train__csv=rows, dev__jsonl=row)
    assert "4 train and 1 test pairs" in words(app)
    assert "There is no test file: dev.jsonl is the test split." in words(app)
    assert not [field for field in app.text_input if field.label.startswith("Columns")]
    upload(app, train__csv=rows.replace("3.5", "high"), test__csv=rows)
    assert "train.csv, line 2: score must be a number, not 'high'." in words(app)
    assert len(uploads()) == 1


def test_an_earlier_upload_is_offered_again_and_can_be_deleted(open_page: Open) -> None:
    files = {"train.conll": _TRAIN.encode(), "test.conll": _TEST.encode()}
    used, unused = (str(save_upload(files, name)) for name in ("used", "unused"))
    for state in (RunState.SUCCEEDED, RunState.QUEUED):
        claimed(Store.open(), state, corpus=used, tasks=("ner", "pos"))
    app = own_data(open_page("launch"))
    offered = app.radio(key="launch_own_path")
    assert offered.value is None
    captions = dict(zip(offered.options, offered.proto.captions, strict=True))
    assert captions[Path(used).name.replace("-", "\\-")].startswith("3 sentences · ")
    use = [caption.rpartition(" · ")[2] for caption in captions.values()]
    assert use == ["used by no run", "used by 2 runs"]
    offered.set_value(used).run()
    assert "2 train and 1 test sentences" in words(app)
    app.session_state["launch_own_delete"] = True
    app.run()
    assert next(button for button in app.button if button.label == "Delete these files").disabled
    assert "1 run on it queued or in progress. Stop them first." in words(app)
    app.radio(key="launch_own_path").set_value(unused).run()
    press(app, "Delete these files")
    assert list(map(str, uploads())) == [used]
    assert app.radio(key="launch_own_path").value is None
    # A clone of a run on an upload finds it there.
    assert open_page("launch", clone="1").radio(key="launch_own_path").value == used


_QUICK, _LONG = Cost((60.0,), 1, 3), Cost((7200.0,), 1, 3)
_ROOM, _NO_ROOM = Disk(1e6, 1e12), Disk(21e9, 14e9)
_IDLE = dict.fromkeys(RunState, 0)
_BUSY = _IDLE | {RunState.RUNNING: 2, RunState.QUEUED: 1}


@pytest.mark.parametrize(
    ("cost", "disk", "counts", "queue", "warnings"),
    [
        (_QUICK, _ROOM, _IDLE, {}, ["Starts now."]),
        (_LONG, _NO_ROOM, _BUSY, {}, ["about 21.0 GB, and 14.0 GB are free", "More than an hour in all.",
         "Starts after 3 runs queued or in progress."]),
        (_LONG, _NO_ROOM, _BUSY, {"left": 185.0}, ["GB", "hour", "in progress, in about 3 min."]),
        (_QUICK, _ROOM, _BUSY, {"paused": True}, ["The queue is paused: they wait until it is resumed.]"]),
        (_QUICK, _ROOM, _BUSY, {"left": 185.0, "priority": 2},
         ["Starts after 3 runs queued or in progress; higher priorities start first."]),
        (_QUICK, Disk(5e8, 1e12), _IDLE, {}, ["", "They will use about 500 MB on disk."]),
    ],
)  # fmt: skip
def test_what_is_said_before_a_launch(
    cost: Cost, disk: Disk, counts: dict[RunState, int], queue: dict[str, Any], warnings: list[str]
) -> None:
    sentences = launch_warnings(cost, disk, counts, **queue)
    for sentence, text in zip(sentences, warnings, strict=True):
        assert text in sentence
    assert sentences[-1].endswith(warnings[-1])


def test_of_a_sentence_without_end_the_beginning_is_drawn(open_page: Open, folder: Path) -> None:
    (folder / "train.conll").write_text("Anna B-PER NNP\nLee I-PER NNP\n" * 10_000 + "\n" + _TRAIN)
    app = open_page("launch", corpus=str(folder))
    drawn = next(block for block in sent(app, "blocks")["blocks"] if block["more"])
    assert drawn["more"] == "… and 19,920 more words, not drawn"
    assert len(drawn["tokens"]) == 80
    assert {len(lane["cells"]) for lane in drawn["lanes"]} == {80}
    assert "20,006 words" in words(app)


def test_a_task_is_added_to_a_finished_run(open_page: Open) -> None:
    """The button of a run leads to a form that lacks the data alone."""
    run_id = done(encoder="minilm", max_length=128)
    assert "Add a task to this run" in labels(open_page("run", id=str(run_id)), "page_link")
    app = open_page("launch", **with_task_added(Store.open().run(run_id)), tasks="ner", seed="1")
    assert app.text_input(key="launch_added_to").value == str(run_id)
    assert "is no finished run" in words(app)  # the store of this test has no models
    app.text_input(key="launch_added_to").set_value("").run()
    assert "Added to run" in words(app)


def test_a_task_is_added_over_the_corpus_of_the_run(open_page: Open, folder: Path) -> None:
    """One task is chosen that the run has not learned, and the page says what it does."""
    run_id = done(
        corpus=str(folder), columns=("tokens", "ner", "pos"), tasks=("ner",), paradigm="stl", max_length=128
    )
    app = open_page("launch", **with_task_added(Store.open().run(run_id)))
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


def test_where_the_run_has_learned_all_tasks_another_corpus_is_asked_for(open_page: Open) -> None:
    run_id = done(paradigm="mtl", max_length=128)
    app = open_page("launch", **with_task_added(Store.open().run(run_id)))
    assert app.pills(key="launch_tasks_demo").value == []
    assert f"Choose a corpus with a task that run {run_id} has not learned." in words(app)
    assert "[Go to field](#problem-corpus)" in words(app)
    assert "#problem-tasks" not in words(app)


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


def test_try_it_queues_its_runs_and_a_second_time_shows_them(open_page: Open, workers: list[str]) -> None:
    app = open_page("launch")
    app.button(key="preset_Try it").click().run()
    runs = Store.open().runs()
    assert [run.state for run in runs] == [RunState.QUEUED] * 20
    # Each seed is complete before the next begins.
    first = [run.config for run in runs[::-1][:4]]
    assert [config.paradigm for config in first] == ["mrn", "mtl", "stl", "stl"]
    assert {config.seed for config in first} == {1}
    assert len({run.launch for run in runs}) == 1
    assert workers
    assert app.title[0].value == "Runs"
    ids = ",".join(map(str, range(1, 21)))
    assert app.query_params["run"] in ([ids], ids)
    app.switch_page("launch/page.py").run()
    app.button(key="preset_Try it").click().run()
    assert len(Store.open().runs()) == 20
    assert app.title[0].value == "Runs"
    assert any("20 runs from the store" in toast.value for toast in app.toast)


def test_launch_lists_what_the_form_makes(open_page: Open) -> None:
    app = open_page("launch")
    assert heading(app).startswith("This makes 3 runs")
    app.text_input(key="launch_seed").set_value("1-4").run()
    app.text_input(key="launch_lambda").set_value("0.001, 0.01").run()
    assert heading(app).startswith("This makes 8 runs")
    assert listed(app) == [("MRN 0.001", "4 seeds"), ("MRN 0.01", "4 seeds")]
    assert "Starts now." in words(app)
    app.button(key="launch").click().run()
    assert len(Store.open().runs()) == 8
    assert on_card(app) == ["8 runs queued", {RunState.QUEUED: 8}]
    # Another experiment waits for them.
    app.text_input(key="launch_seed").set_value("9").run()
    assert "Starts after 8 runs queued or in progress" in words(app)


def test_an_encoder_that_is_not_here_can_be_replaced(open_page: Open) -> None:
    app = open_page("launch", encoder="bert-base-cased,bert-base-cased+bilstm,roberta-base,sc-lstm")
    offered = app.multiselect(key="launch_encoder").options
    assert {"minilm", "sc-lstm", "roberta-base (needs download)"} <= {*offered}
    assert words(app).count("The encoder 'bert-base-cased' is not on this machine") == 2
    assert app.button(key="launch").disabled
    press(app, "Use minilm instead")
    assert app.multiselect(key="launch_encoder").value == ["minilm", "minilm+bilstm", "sc-lstm"]
    assert not app.button(key="launch").disabled


def test_launch_looks_inside_a_joined_corpus_whose_folders_are_here(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("launch", corpus="both-pos")
    assert "the folders `conll2003` and `conll2000`" in "".join(caption.value for caption in app.caption)
    assert "look" in "".join(toggle.key or "" for toggle in app.toggle)
    for name, row in (("conll2003", "Anna NNP B-NP B-PER\n\n"), ("conll2000", "sings VBZ B-VP\n\n")):
        corpus_folder(tmp_path / name, dict.fromkeys(("train.txt", "test.txt"), row * 3))
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    app.run()
    assert "Comes from the Hugging Face Hub" not in words(app)
    assert "6 train and 6 test sentences, 12 words" in words(app)


def test_launch_takes_a_folder_or_a_derived_corpus(open_page: Open, tmp_path: Path) -> None:
    files = dict.fromkeys(("train.conll", "test.conll"), "Anna B-PER\nsings O\n\n" * 3)
    app = own_data(open_page("launch"), corpus_folder(tmp_path / "<b>mine *x*", files))
    assert "3 train" in words(app)
    derived = "simulated:demo?tasks=2&samples=500&tokens=100"
    for name, sentence in (
        (str(tmp_path / "nowhere"), "nowhere"),
        ("simulated:demo?tasks=none", "tasks must be a whole number from 1 to 50"),
        (derived, "2 artificial tasks on"),
    ):
        app.text_input(key="launch_own_folder").set_value(name).run()
        assert sentence in words(app)
    assert app.pills(key=f"launch_tasks_{derived}").value == ["ner", "sim-1", "sim-2"]


def test_the_form_shows_what_each_column_was_taken_for(open_page: Open, tmp_path: Path) -> None:
    files = dict.fromkeys(("train.conll", "test.conll"), "Anna S-PER NN\nsings O nn\n\n" * 3)
    app = own_data(open_page("launch"), corpus_folder(tmp_path / "mine", files))

    def names() -> list[str]:
        return next(list(frame.value["Name"]) for frame in app.dataframe if "Read as" in frame.value.columns)

    assert names() == ["tokens (guessed)", "ner (guessed)", "pos (guessed)"]
    assert "written in IOBES in the train and test splits" in words(app)
    assert "labels differ only in case: NN and nn" in words(app)
    app.text_input(key=f"launch_columns_{tmp_path / 'mine'}").set_value("tokens,entity,_").run()
    assert names() == ["tokens", "entity", "_"]


def test_the_form_takes_a_dataset_and_other_columns_of_it(open_page: Open, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada", "ran"]] * 4, "ner_tags": [["B-PER", "O"]] * 4, "tag": [["N", "V"]] * 4}
    table = datasets.Dataset.from_dict(rows)
    datasets.DatasetDict(train=table, test=table).save_to_disk(tmp_path / "mine")
    name = f"hub:{tmp_path / 'mine'}"
    app = own_data(open_page("launch"), name)

    def names() -> list[str]:
        return next(list(frame.value["Name"]) for frame in app.dataframe if "Read as" in frame.value.columns)

    assert names() == ["tokens", "ner (column ner_tags)", "tag"]
    columns = app.text_input(key=f"launch_columns_{name}")
    assert columns.value == "tokens, ner_tags:ner, tag"
    assert app.pills(key=f"launch_tasks_{name}").value == ["ner", "tag"]
    columns.set_value("tokens, ner_tags:entity").run()
    assert names() == ["tokens", "entity"]
    chosen = f"{name}?columns=tokens,ner_tags:entity"
    assert app.pills(key=f"launch_tasks_{chosen}").value == ["entity"]
    assert query(app)["corpus"] == chosen
    again = open_page("launch", **query(app))
    assert again.text_input(key="launch_own_folder").value == chosen
    assert not again.button(key="launch").disabled
    app.text_input(key="launch_own_folder").set_value("hub:nowhere/at-all?config=").run()
    assert "config is empty; give it a value, or leave it out" in words(app)


def test_table_preset_fills_the_form(open_page: Open) -> None:
    app = open_page("launch")
    app.button(key="fill_Table 3").click().run()
    assert app.selectbox(key="launch_corpus").value == "both-pos"
    assert app.pills(key="launch_alignment").value == ["exact"]
    assert app.pills(key="launch_prior").value == ["paper"]
    assert heading(app).startswith("This makes 20 runs")


def test_the_card_of_pairs_prices_every_pair(open_page: Open) -> None:
    app = open_page("launch", tasks="pos,chunk,ner")
    app.button(key="fill_in_pairs").click().run()
    assert heading(app).startswith("This makes 30 runs")
    assert query(app)["task_groups"] == "pairs"


def test_an_upload_is_in_memory_once_and_read_no_more_when_the_page_runs_again(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(source: Source, *arguments: Any, **options: Any) -> Any:
        if source.name.endswith(".conll"):  # not the demo corpus
            read.append(source.name)
        return read_table(source, *arguments, **options)

    monkeypatch.setattr("core.corpora.folder.read_table", counted)
    app = upload(own_data(open_page("launch")), train__conll=_TRAIN * 7, test__conll=_TEST)
    assert "14 train and 1 test sentences" in words(app)
    # To check it, to name its columns, and to keep it.
    assert read == ["train.conll", "test.conll", "train.conll", "train.conll", "test.conll"]
    app.run()
    assert len(read) == 5
