"""Launch: the data of the form: uploads, folders, datasets, derived corpora and mappings, and their views."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import save_upload, summarise
from core.corpora.catalogue.uploads import uploads
from core.corpora.loading import proposed_columns
from core.corpora.readers.conll import read_table
from core.corpora.readers.lines import Source
from core.mrn.alignments.mapping import template
from core.registry import parse_alignment
from core.store import RunState, Store
from dashboard.launch.samples import SAMPLES, zipped
from tests.making import claimed, config, corpus_folder
from tests.pages.conftest import Open, press, sent, table, words
from tests.pages.launching import TEST, TRAIN, own_data, query


def upload(app: AppTest, **files: str) -> AppTest:
    """The form with these files uploaded, `__` in their names for a dot."""
    contents = [(name.replace("__", "."), text.encode(), "") for name, text in files.items()]
    app.file_uploader(key="launch_own_files").set_value(contents).run()
    return app


def read_as(app: AppTest) -> list[str]:
    """What each column was taken for."""
    return next(list(frame.value["Name"]) for frame in app.dataframe if "Read as" in frame.value.columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(corpus_folder(tmp_path / "mine", {"train.conll": TRAIN * 4, "test.conll": TEST}))


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


def test_of_a_sentence_without_end_the_beginning_is_drawn(open_page: Open, folder: Path) -> None:
    (folder / "train.conll").write_text("Anna B-PER NNP\nLee I-PER NNP\n" * 10_000 + "\n" + TRAIN)
    app = open_page("launch", corpus=str(folder))
    drawn = next(block for block in sent(app, "blocks")["blocks"] if block["more"])
    assert drawn["more"] == "… and 19,920 more words, not drawn"
    assert len(drawn["tokens"]) == 80
    assert {len(lane["cells"]) for lane in drawn["lanes"]} == {80}


# Uploads


def test_an_upload_is_previewed_and_its_mistakes_are_told_with_file_and_line(open_page: Open) -> None:
    app = upload(own_data(open_page("launch")), my__train=TRAIN * 3, my__test=TEST)
    assert read_as(app) == ["tokens (guessed)", "ner (guessed)", "pos (guessed)"]
    assert "6 train and 1 test sentences" in words(app)
    assert not app.radio, "nothing else was uploaded"
    columns = next(field for field in app.text_input if field.label.startswith("Columns"))
    columns.set_value("tokens, ner").run()
    assert any(list(frame.value.get("2", ())) == ["B-PER", "O"] for frame in app.dataframe)
    columns.set_value("").run()
    upload(app, my__train=TRAIN + "Rome B-LOC\n", my__test=TEST)
    assert "my.train, line 7: expected 3 columns" in words(app)
    assert "#problem-corpus" in words(app)
    assert len(uploads()) == 1, "nothing is kept of what was refused"


def test_the_split_of_a_file_is_asked_for_where_its_name_tells_none(open_page: Open) -> None:
    app = upload(own_data(open_page("launch")), first__conll=TRAIN * 2, my__test=TEST)
    assert uploads() == {}
    next(box for box in app.selectbox if box.label == "Split of first\\.conll").set_value("train").run()
    assert "4 train and 1 test sentences" in words(app)
    (path,) = uploads()
    assert {file.stem for file in path.iterdir()} == {"train", "test"}


def test_what_is_left_of_an_upload_is_kept_on_a_click(open_page: Open) -> None:
    app = own_data(open_page("launch"))
    files = {"train.conll": TRAIN, "dev.conll": TEST, "test.conll": TEST}
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
    press(app, "Keep 2 files as smaller")
    assert "2 train and 1 test sentences" in words(app)
    (second,) = uploads()
    assert second != first, "what no run was launched on goes when other files take its place"


def test_an_upload_that_runs_use_stays_when_other_files_take_its_place(open_page: Open) -> None:
    app = upload(own_data(open_page("launch")), my__train=TRAIN * 3, my__test=TEST)
    (first,) = uploads()
    Store.open().add_runs([config(corpus=str(first))])
    upload(app, my__train=TRAIN * 4, my__test=TEST)
    (second,) = uploads().keys() - {first}
    upload(app, my__train=TRAIN * 5, my__test=TEST)
    assert first in uploads()
    assert second not in uploads()
    assert len(uploads()) == 2


def test_the_same_files_are_stored_once_whatever_their_name(open_page: Open) -> None:
    def again(name: str) -> AppTest:
        app = own_data(open_page("launch"))
        app.text_input(key="launch_own_name").set_value(name).run()
        return upload(app, my__train=TRAIN * 3, my__test=TEST)

    again("first")
    again("second")
    (kept,) = uploads()
    assert kept.name.startswith("second-"), "no run was launched on the first"
    Store.open().add_runs([config(corpus=str(kept))])
    assert again("third").radio(key="launch_own_path").value == str(kept)
    assert list(uploads()) == [kept]


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_sample_files_are_a_corpus(kind: str, laboratory: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped(SAMPLES[kind]))) as archive:
        path = save_upload({name: archive.read(name) for name in archive.namelist()}, "sample")
    proposal = proposed_columns(str(path))
    summary = summarise(str(path), None if proposal is None else proposal.columns)
    assert list(summary.splits) == ["train", "dev", "test"]
    assert not any(task.unseen for task in summary.tasks)


def test_an_upload_of_texts_has_no_columns_to_name(open_page: Open) -> None:
    rows = "text1,text2,score\n" + '"One, two","A\nB",3.5\nC,D,1\n' * 2
    row = '{"text1": "a", "text2": "b", "score": 1}'
    app = upload(own_data(open_page("launch")), my__train__csv=rows, dev__jsonl=row)
    assert "4 train and 1 test pairs" in words(app)
    assert not [field for field in app.text_input if field.label.startswith("Columns")]
    upload(app, train__csv=rows.replace("3.5", "high"), test__csv=rows)
    assert "train.csv, line 2: score must be a number, not 'high'." in words(app)
    assert len(uploads()) == 1


def test_an_earlier_upload_is_offered_again_and_can_be_deleted(open_page: Open) -> None:
    used, unused = (
        str(save_upload({"train.conll": (TRAIN * times).encode(), "test.conll": TEST.encode()}, name))
        for name, times in (("used", 1), ("unused", 2))
    )
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
    app.session_state["launch_own_delete"] = True
    app.run()
    assert next(button for button in app.button if button.label == "Delete these files").disabled
    app.radio(key="launch_own_path").set_value(unused).run()
    press(app, "Delete these files")
    assert list(map(str, uploads())) == [used]
    assert app.radio(key="launch_own_path").value is None
    # A clone of a run on an upload finds it there.
    assert open_page("launch", clone="1").radio(key="launch_own_path").value == used


def test_an_upload_is_in_memory_once_and_read_no_more_when_the_page_runs_again(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def counted(source: Source, *arguments: Any, **options: Any) -> Any:
        if source.name.endswith(".conll"):  # not the demo corpus
            read.append(source.name)
        return read_table(source, *arguments, **options)

    monkeypatch.setattr("core.corpora.readers.files.read_table", counted)
    app = upload(own_data(open_page("launch")), train__conll=TRAIN * 7, test__conll=TEST)
    # To check it, to name its columns, and to keep it.
    assert read == ["train.conll", "test.conll", "train.conll", "train.conll", "test.conll"]
    app.run()
    assert len(read) == 5


# Folders, datasets, derived corpora


def test_a_joined_corpus_is_looked_into_once_its_folders_are_here(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("launch", corpus="both-pos")
    assert "look" in "".join(toggle.key or "" for toggle in app.toggle)
    for name, row in (("conll2003", "Anna NNP B-NP B-PER\n\n"), ("conll2000", "sings VBZ B-VP\n\n")):
        corpus_folder(tmp_path / name, dict.fromkeys(("train.txt", "test.txt"), row * 3))
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    app.run()
    assert "look" not in "".join(toggle.key or "" for toggle in app.toggle)
    assert "6 train and 6 test sentences, 12 words" in words(app)


def test_the_form_takes_a_folder_or_a_derived_corpus(open_page: Open, tmp_path: Path) -> None:
    files = dict.fromkeys(("train.conll", "test.conll"), "Anna S-PER NN\nsings O nn\n\n" * 3)
    folder = corpus_folder(tmp_path / "<b>mine *x*", files)
    app = own_data(open_page("launch"), folder)
    assert read_as(app) == ["tokens (guessed)", "ner (guessed)", "pos (guessed)"]
    assert "written in IOBES in the train and test splits" in words(app)
    assert "labels differ only in case: NN and nn" in words(app)
    app.text_input(key=f"launch_columns_{folder}").set_value("tokens,entity,_").run()
    assert read_as(app) == ["tokens", "entity", "_"]
    derived = "simulated:demo?tasks=2&samples=500&tokens=100"
    for name, is_wrong in (
        (str(tmp_path / "nowhere"), True),
        ("simulated:demo?tasks=none", True),
        ("hub:nowhere/at-all?config=", True),
        (derived, False),
    ):
        app.text_input(key="launch_own_folder").set_value(name).run()
        assert ("#problem-corpus" in words(app)) == is_wrong, name
    assert app.pills(key=f"launch_tasks_{derived}").value == ["ner", "sim-1", "sim-2"]


def test_the_form_takes_a_dataset_and_other_columns_of_it(open_page: Open, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada", "ran"]] * 4, "ner_tags": [["B-PER", "O"]] * 4, "tag": [["N", "V"]] * 4}
    table = datasets.Dataset.from_dict(rows)
    datasets.DatasetDict(train=table, test=table).save_to_disk(tmp_path / "mine")
    name = f"hub:{tmp_path / 'mine'}"
    app = own_data(open_page("launch"), name)
    assert read_as(app) == ["tokens", "ner (column ner_tags)", "tag"]
    columns = app.text_input(key=f"launch_columns_{name}")
    assert columns.value == "tokens, ner_tags:ner, tag"
    assert app.pills(key=f"launch_tasks_{name}").value == ["ner", "tag"]
    columns.set_value("tokens, ner_tags:entity").run()
    assert read_as(app) == ["tokens", "entity"]
    chosen = f"{name}?columns=tokens,ner_tags:entity"
    assert query(app)["corpus"] == chosen
    again = open_page("launch", **query(app))
    assert again.text_input(key="launch_own_folder").value == chosen
    assert not again.button(key="launch").disabled


# Mappings of labels

CSV = b"task,label,general,weight\nchunk,B-NP,NP,0.5\nchunk,I-NP,NP,0.5\nner,B-PER,NP,1\n"


@pytest.fixture
def form(open_page: Open) -> AppTest:
    """The launch form on the demo corpus, with the alignment mapping chosen."""
    app = open_page("launch")
    app.pills(key="launch_alignment").set_value(["mapping"]).run()
    return app


def upload_mapping(app: AppTest, content: bytes, name: str = "my labels.csv") -> AppTest:
    app.file_uploader(key="launch_mapping").set_value((name, content, "text/csv")).run()
    return app


def test_a_mapping_is_asked_for_and_its_template_fits_as_it_is(form: AppTest) -> None:
    assert "start from the template" in words(form)
    assert "Not ready yet" in words(form)
    assert not form.download_button(key="launch_template").disabled
    tasks = [(task.name, task.labels) for task in summarise("demo").tasks]
    upload_mapping(form, template(tasks).encode("utf-8-sig"))
    assert "general rows of their own" not in words(form)
    assert form.button(key="launch")


def test_an_uploaded_mapping_is_shown_and_launched(form: AppTest, workers: list[str]) -> None:
    upload_mapping(form, CSV)
    assert "**my-labels-" in words(form)
    assert "keep general rows of their own" in words(form)
    form.button(key="launch").click().run()
    runs = Store.open().runs()
    assert len(runs) == 15
    name, file = parse_alignment(str(runs[0].config.alignment))
    assert (name, Path(file).read_bytes()) == ("mapping", CSV)
    assert Path(file).name.startswith("my-labels-")
    assert workers


def test_what_is_wrong_with_a_mapping_is_said_in_its_place(form: AppTest) -> None:
    for content, sentence in (
        (CSV + b"ner,B-LOC,NP,none\n", "my labels.csv, row 5: has the weight 'none'"),
        (b"task,label,general\nsrl,A0,NP\n", "no row, from row 2 on, names a task and a label of this run"),
    ):
        upload_mapping(form, content)
        assert words(form).count(sentence) == 2, "beside the field, and in the plan"
        assert "Not ready yet" in words(form)
    upload_mapping(form, CSV)
    assert sentence not in words(form)
    assert form.button(key="launch")
    # It is kept while one looks at another page.
    form.switch_page("runs/page.py").run()
    form.switch_page("launch/page.py").run()
    assert form.pills(key="launch_alignment").value == ["mapping"]
    assert "**my-labels-" in words(form)
