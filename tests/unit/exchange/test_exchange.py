"""A run leaves a laboratory as a folder that stands alone, and is the same run in another."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
import sqlite3
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from huggingface_hub import ModelCard
from transformers import AutoModelForTokenClassification, pipeline

from core.checkpoints.sealed import digest_of
from core.corpora.readers.splitting import joined_words
from core.errors import MRNLabError, RunNotFound
from core.foreign import child
from core.foreign.child import Refused
from core.paths import checkpoint_dir
from core.store import RunState, Store
from core.tagging import TaggedSentence, load_tagger, spans_in
from jobs.exchange import Exported, Imported, export_run, export_zip, import_, import_run, import_zip
from jobs.exchange.export import _datasets
from tests.making import OWNER, assert_same, claimed
from tests.patience import PATIENCE_S
from tests.trained import toy_config, train_runs
from tests.unit.spoiled_exports import FILES, RUN, TABLES, Spoil

_SENTENCE = ["German", "lamb", "rejects", "EU", "."]
_HOSTILE = "a|<img src=x>`b`*c*[d](http://e)"

Trained = tuple[Path, dict[str, int]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A laboratory with runs of six kinds: MRN, over a frozen encoder (one task's name is hostile), with a
    BiLSTM, over word vectors and contextual ones, with a CRF over word vectors, and with
    the last layer trained.
    """
    home = tmp_path_factory.mktemp("from")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        patch.delenv("MRNLAB_DB", raising=False)
        few = {"epochs": 2, "seed": 3}
        vectors = home / "vectors.txt"
        vectors.write_text("german 1 0 0\nlamb 0 1 0\nunseen 0 0 9\n", encoding="utf-8")
        hostile = {"columns": f"tokens,{_HOSTILE},ner", "tasks": f"{_HOSTILE},ner"}
        configs = [
            toy_config(home, paradigm="mrn", alignment="cooccurrence", snapshots=3, update_every=4, **few),
            toy_config(home, encoder_training="frozen", lr_encoder=None, **few, **hostile),
            toy_config(home, encoder=f"{home / 'encoder'}+bilstm", bilstm_hidden=4, **few),
            toy_config(home, encoder="bilstm", context_encoder=str(home / "encoder"), **few),
            toy_config(home, encoder="sc-lstm", head="crf", vectors=str(vectors), bilstm_hidden=4, **few),
            toy_config(home, encoder_training="top:1", **few),
        ]
        with contextlib.closing(Store.open()) as store:
            ids = train_runs(store, configs)
            store.add_keywords([ids[0]], ["paper"])
    kinds = ("mrn", "frozen", "bilstm", "context", "words", "top")
    return home, dict(zip(kinds, ids, strict=True))


@pytest.fixture
def source(trained: Trained) -> Iterator[Store]:
    """The store of that laboratory."""
    with contextlib.closing(Store.open(f"sqlite:///{trained[0] / 'runs.db'}")) as store:
        yield store


@pytest.fixture
def target(laboratory: Path) -> Iterator[Store]:
    """The store of another, empty one: this test's."""
    with contextlib.closing(Store.open()) as store:
        yield store


@pytest.fixture(scope="module")
def exported(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The MRN run's export; tests that change it take a copy."""
    return export(trained, "mrn", tmp_path_factory.mktemp("exports") / "mrn").folder


def export(trained: Trained, kind: str, folder: Path, **options: Any) -> Exported:
    """Exports that laboratory's run, in that laboratory."""
    home, ids = trained
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open()) as store:
            return export_run(store, ids[kind], folder, **options)


def tagged(checkpoint: str | Path | None) -> list[TaggedSentence]:
    assert checkpoint is not None
    return load_tagger(checkpoint).tag([_SENTENCE])


@pytest.mark.parametrize("kind", ["mrn", "frozen", "bilstm", "context", "words", "top"])
def test_there_and_back(kind: str, trained: Trained, source: Store, target: Store, tmp_path: Path) -> None:
    run_id = trained[1][kind]
    made = export(trained, kind, tmp_path / "out")
    how = {"frozen": "frozen", "top": "its last layer fine-tuned", "context": "trained", "words": "trained"}
    assert f"`, {how.get(kind, 'fine-tuned')}) with a" in (made.folder / "README.md").read_text("utf-8")
    # The encoder's folder goes: what was exported stands alone.
    aside = (trained[0] / "encoder").rename(trained[0] / "away")
    try:
        taken = import_run(target, tmp_path / "out")
        assert not taken.was_there
        run = target.run(taken.run_id)
        assert tagged(run.checkpoint) == tagged(made.folder / "checkpoint")
    finally:
        aside.rename(trained[0] / "encoder")
    assert tagged(run.checkpoint) == tagged(source.run(run_id).checkpoint)
    assert run.checkpoint == str(checkpoint_dir(taken.run_id))
    left, right = source.record(run_id), target.record(taken.run_id)
    assert set(right.run.keywords) == {*left.run.keywords, "imported"}
    target.remove_keywords([taken.run_id], ["imported"])
    assert_same(left, target.record(taken.run_id))
    assert left.run.configuration_id == right.run.configuration_id
    assert right.history[-1].message.startswith(f"Imported from {tmp_path / 'out'}")
    weights = Path(str(source.run(run_id).checkpoint)) / "weights.safetensors"
    assert (checkpoint_dir(taken.run_id) / "weights.safetensors").read_bytes() == weights.read_bytes()
    # Nothing else stayed behind in the laboratory.
    assert [path.name for path in checkpoint_dir(1).parent.iterdir()] == [str(taken.run_id)]


def test_a_packaged_encoder_does_not_travel(trained: Trained, target: Store, tmp_path: Path) -> None:
    """Every installation has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(trained[0]))
        frozen = {"encoder": "minilm", "encoder_training": "frozen", "lr_encoder": None, "max_length": 128}
        with contextlib.closing(Store.open()) as store:
            (run_id,) = train_runs(store, [toy_config(trained[0], epochs=1, **frozen)], "packaged")
            made = export_run(store, run_id, tmp_path / "out", [])
            before = tagged(checkpoint_dir(run_id))
    assert not (made.folder / "checkpoint" / "encoder").exists()
    assert tagged(target.run(import_run(target, made.folder).run_id).checkpoint) == before


def test_what_an_export_holds(exported: Path, source: Store, trained: Trained) -> None:
    run_id = trained[1]["mrn"]
    files = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
    assert {name for name in files if "/" not in name} == {
        "README.md", "manifest.json", "run.json", "metrics.parquet", "scores.parquet",
        "predictions.parquet", "snapshots.parquet",
    }  # fmt: skip
    assert {name.split("/")[0] for name in files if "/" in name} == {"checkpoint", "pos", "ner"}
    assert {Path(name).suffix for name in files} <= {".json", ".txt", ".md", ".parquet", ".safetensors"}
    listed = json.loads((exported / "manifest.json").read_text())["files"]
    assert set(listed) == files - {"manifest.json"}
    for name, file in listed.items():
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == file["sha256"]
    labels_of = {task.name: list(task.labels) for task in source.run(run_id).task_facts}
    for task in ("pos", "ner"):
        model = AutoModelForTokenClassification.from_pretrained(exported / task)
        assert list(model.config.id2label.values()) == labels_of[task]

    scores = pd.read_parquet(exported / "scores.parquet")
    stored = {(score.split, score.task): score.score for score in source.scores([run_id])}
    assert {(row.split, row.task): row.score for row in scores.itertuples()} == stored
    labels = pd.read_parquet(exported / "predictions.parquet")
    gold, predicted = source.predictions(run_id, "test")["ner"]
    test = labels[(labels["split"] == "test") & (labels["task"] == "ner")]
    assert [list(row) for row in test["gold"]] == gold
    assert [list(row) for row in test["predicted"]] == predicted

    # Corpora have licences of their own. (What the tokenizer knows is the encoder's.)
    for name in ("run.json", "predictions.parquet", "scores.parquet", "checkpoint/run.json"):
        content = (exported / name).read_bytes()
        if name.endswith(".parquet"):
            content = str(pd.read_parquet(exported / name).to_dict()).encode()
        for word in (b"rejects", b"boycott", b"British"):
            assert word not in content, name


def test_the_card(
    exported: Path, source: Store, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = ModelCard.load(exported / "README.md")
    data = card.data.to_dict()
    assert data["pipeline_tag"] == "token-classification"
    assert "mrn" in data["tags"]
    results = {result.task_name: result for result in card.data.eval_results}
    scores = {score.task: score for score in source.scores([trained[1]["mrn"]], "test")}
    assert {task: result.metric_value for task, result in results.items()} == {
        task: round(score.score, 6) for task, score in scores.items()
    }
    assert {task: result.metric_type for task, result in results.items()} == {"pos": "accuracy", "ner": "f1"}
    assert f"{100 * scores['ner'].score:.2f}%" in card.text
    for words in ("n = 1", "chosen by them", "long2017learning", "No licence is claimed", "first subword"):
        assert words in card.text
    # No path of this machine is told.
    assert str(trained[0]) not in card.content

    hostile = ModelCard.load(export(trained, "frozen", tmp_path / "hostile").folder / "README.md").text
    outside_code = "".join(hostile.split("```")[::2])
    assert r"| a\|&lt;img src=x&gt;\`b\`\*c\*\[d\]\(http\://e\) | accuracy |" in outside_code
    for markup in ("<img", "`b`", "*c*", "[d]", "http://e"):
        assert markup not in outside_code

    examples = card.text.split("```python\n")[1:]
    assert len(examples) == 3
    assert 'aggregation_strategy="first"' in examples[1]
    monkeypatch.chdir(exported)
    for example in examples:
        exec(example.split("```")[0], {})


def test_the_pipeline_gives_the_spans_of_the_run_by_first_subwords(exported: Path) -> None:
    """As the card says. `simple` splits spans whose words have several subwords."""
    tagger = load_tagger(exported / "checkpoint")
    tags = {
        strategy: pipeline("token-classification", str(exported / "ner"), aggregation_strategy=strategy)
        for strategy in ("first", "simple")
    }
    split = 0
    for words in itertools.product(("EUwanted", "Germanwanted", "lambwanted"), ("lamb", "Britishwanted")):
        sentence = [*words, "rejects", words[0], "."]
        text = " ".join(sentence)
        (answer,) = tagger.tag([sentence])
        of_run = spans_in(*joined_words(sentence), answer, tagger.schemes)["ner"]
        expected = [(span.label, span.start, span.end) for span in of_run]
        answers = {strategy: tag(text) for strategy, tag in tags.items()}
        found = {
            strategy: [(each["entity_group"], each["start"], each["end"]) for each in given]
            for strategy, given in answers.items()
        }
        assert found["first"] == expected
        assert [each["score"] for each in answers["first"]] == pytest.approx([span.score for span in of_run])
        split += found["simple"] != expected
    assert split > 0


def test_the_card_names_the_datasets_of_a_corpus(tmp_path: Path) -> None:
    joined = f"joined:hub:nyu-mll/glue?config=cola+conll2003+demo+hub:{tmp_path}?train=3"
    assert _datasets(joined) == ["eriktks/conll2003", "nyu-mll/glue"]
    assert _datasets(str(tmp_path)) == []


def test_which_tasks(source: Store, trained: Trained, tmp_path: Path) -> None:
    made = export(trained, "mrn", tmp_path / "out", tasks=["ner"])
    assert made.folders == {"ner": "ner"}
    assert not (tmp_path / "out" / "pos").exists()
    with pytest.raises(MRNLabError, match="no task 'chunk'; it has pos, ner"):
        export(trained, "mrn", tmp_path / "other", tasks=["chunk"])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("kind", "lacks"),
    [("bilstm", "a BiLSTM on top"), ("words", "an encoder that reads words")],
)
def test_what_transformers_cannot_load_has_no_folders(
    kind: str, lacks: str, trained: Trained, tmp_path: Path
) -> None:
    made = export(trained, kind, tmp_path / kind)
    assert made.folders == {}
    card = (tmp_path / kind / "README.md").read_text()
    assert f"Transformers has no class for token classification with {lacks}, " in card
    assert str(made.no_folders_because) in card
    assert "library_name" not in card
    assert not (tmp_path / kind / "ner").exists()
    assert str(trained[0]) not in card


def test_words_that_a_file_elsewhere_has_vectors_of(trained: Trained, target: Store, tmp_path: Path) -> None:
    """An import has the vectors of its corpus. Those of other words are not taken from a file of another
    dimension that has the same name there.
    """
    made = export(trained, "words", tmp_path / "out")
    card = (made.folder / "README.md").read_text()
    assert "Those of other words are looked up in `vectors.txt`, which is not among these files" in card
    assert "the files hold its words, each once" in card
    checkpoint = target.run(import_run(target, made.folder).run_id).checkpoint
    assert checkpoint is not None
    known, unknown = [["German", "lamb", "lamb"]], [["German", "unseen", "lamb"]]
    here = load_tagger(checkpoint).tag(unknown)
    vectors = trained[0] / "vectors.txt"
    there = vectors.read_text(encoding="utf-8")
    try:
        vectors.write_text("unseen 1 2 3 4\n", encoding="utf-8")
        elsewhere = load_tagger(checkpoint)
        assert elsewhere.tag(unknown) != here
        assert elsewhere.tag(known) == load_tagger(checkpoint).tag(known)
    finally:
        vectors.write_text(there, encoding="utf-8")


def test_only_runs_that_succeeded(source: Store, target: Store, tmp_path: Path) -> None:
    for state in (RunState.RUNNING, RunState.FAILED, RunState.LOST):
        run_id = claimed(target, state)
        with pytest.raises(MRNLabError, match=f"Run {run_id} is {state}; only a run that has succeeded"):
            export_run(target, run_id, tmp_path / "out")
    gone = claimed(target)
    target.finish(gone, RunState.SUCCEEDED, checkpoint=str(tmp_path / "nowhere"), owner=OWNER)
    with pytest.raises(MRNLabError, match="not there any more"):
        export_run(target, gone, tmp_path / "out")
    with pytest.raises(RunNotFound):
        export_run(target, 99, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_kept(trained: Trained, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    (tmp_path / "empty").mkdir()
    assert export(trained, "frozen", tmp_path / "empty", tasks=[]).folder == tmp_path / "empty"
    before = sorted(tmp_path.rglob("*"))
    for place, words in ((tmp_path / "empty", "not empty"), (tmp_path, "not empty"), (thesis, "is a file")):
        with pytest.raises(MRNLabError, match=words):
            export(trained, "frozen", place)
    assert sorted(tmp_path.rglob("*")) == before
    assert thesis.read_text() == "years of work"


def test_the_same_export_twice(
    exported: Path, source: Store, target: Store, trained: Trained, tmp_path: Path
) -> None:
    first = import_run(target, exported)
    assert import_run(target, exported) == type(first)(first.run_id, True)
    assert len(target.runs()) == 1
    another = import_run(target, exported, again=True)
    assert not another.was_there
    assert another.run_id != first.run_id
    # The laboratory that it came from knows it too.
    assert import_run(source, exported) == type(first)(trained[1]["mrn"], True)
    # And the imported run can be exported again.
    export_run(target, first.run_id, tmp_path / "again", ["pos"])
    for name in ("metrics.parquet", "predictions.parquet", "snapshots.parquet", "pos/model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (exported / name).read_bytes()


def test_four_imports_of_one_export_at_once_make_one_run(
    exported: Path, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have found that the run is not there before the first has written it."""
    barrier = threading.Barrier(4)
    check = import_._check_model

    def checked(*arguments: Any) -> None:
        check(*arguments)
        barrier.wait(PATIENCE_S)

    monkeypatch.setattr(import_, "_check_model", checked)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: import_run(target, exported), range(4)))
    (run,) = target.runs()
    assert {each.run_id for each in made} == {run.id}
    assert sorted(each.was_there for each in made) == [False, True, True, True]
    assert [path.name for path in checkpoint_dir(1).parent.iterdir()] == [str(run.id)]


def test_a_table_that_ends_a_process_ends_a_child(
    exported: Path, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What crashed there is not opened here."""
    asked: list[str] = []

    def crash(task: str, given: dict[str, Any], **limits: Any) -> None:
        asked.extend(Path(path).name for path in given["paths"])
        raise Refused("it is damaged: reading it ended a process by SIGSEGV")

    monkeypatch.setattr(child, "run", crash)
    monkeypatch.setattr(pq, "ParquetFile", None)
    with pytest.raises(
        MRNLabError, match=r"a table is not as an export has it .*SIGSEGV.*Nothing was changed"
    ):
        import_run(target, exported)
    assert asked == ["metrics.parquet", "scores.parquet", "predictions.parquet", "snapshots.parquet"]
    assert target.runs() == []


@pytest.mark.parametrize("cases", [FILES, RUN, TABLES], ids=["files", "run.json", "tables"])
def test_a_folder_that_is_none_is_refused(
    cases: list[tuple[Spoil, str]], exported: Path, target: Store, tmp_path: Path, laboratory: Path
) -> None:
    for number, (spoil, message) in enumerate(cases):
        folder = shutil.copytree(exported, tmp_path / f"given {number}" / "export")
        spoil(folder)
        with pytest.raises(MRNLabError, match=message) as refused:
            import_run(target, folder)
        assert "\n" not in str(refused.value).strip()
        shutil.rmtree(folder)
    assert target.runs() == []
    checkpoints = laboratory / "checkpoints"
    assert not checkpoints.exists() or list(checkpoints.iterdir()) == []


def _zip(*names: str, text: str = "{}") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, text)
    return file.getvalue()


def test_a_zip_file_of_an_export_is_imported(
    source: Store, trained: Trained, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = os.environ["MRNLAB_HOME"]
    monkeypatch.setenv("MRNLAB_HOME", str(trained[0]))
    made = export_zip(source, trained[1]["frozen"])
    monkeypatch.setenv("MRNLAB_HOME", home)
    run_id = import_zip(target, io.BytesIO(made), "run.zip").run_id
    target.remove_keywords([run_id], ["imported"])
    assert_same(source.record(trained[1]["frozen"]), target.record(run_id))
    assert import_zip(target, io.BytesIO(made), "run.zip") == Imported(run_id, was_there=True)


def _bomb(*files: tuple[str, int], said: int | None = None) -> bytes:
    """A zip file of zeros, with a manifest that lists these files with their sizes, or with `said`."""
    sizes = {name: {"size": said or size, "sha256": "0" * 64} for name, size in files}
    manifest = {"format": 1, "about": {"export": 1}, "files": sizes}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, size in files:
            with archive.open(name, "w", force_zip64=True) as member:
                for _ in range(size // _MB):
                    member.write(bytes(_MB))
        if "manifest.json" not in sizes:
            archive.writestr("manifest.json", json.dumps(manifest | {"sha256": digest_of(manifest)}))
    return file.getvalue()


_MB = 1024**2


@pytest.mark.parametrize(
    ("files", "said", "message"),
    [
        (
            [(f"pos/{number}.json", 100 * _MB) for number in range(6)], None,
            r"it unpacks to 629\.1 MB, and an export of 2\.\d MB has 29\d\.\d MB at most",
        ),
        ([("metrics.parquet", 600 * _MB)], None, "it unpacks to 629.1 MB"),
        ([("metrics.parquet", 40 * _MB)], 1000, "has more than the 1,000 bytes that it may have"),
        ([("manifest.json", 40 * _MB)], None, "manifest.json has more than the 16,777,216 bytes"),
    ],
)  # fmt: skip
def test_a_bomb_is_refused_before_it_is_unpacked(
    files: list[tuple[str, int]], said: int | None, message: str, target: Store, laboratory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    written = 0
    unpack = import_._unpack

    def measured(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, most: int) -> None:
        nonlocal written
        try:
            unpack(archive, member, path, most)
        finally:
            written += path.stat().st_size

    monkeypatch.setattr(import_, "_unpack", measured)
    content = _bomb(*files, said=said)
    with pytest.raises(MRNLabError, match=message):
        import_zip(target, io.BytesIO(content), "given.zip")
    assert written <= 17 * _MB
    assert target.runs() == []
    assert list((laboratory / "checkpoints").iterdir()) == []


_ENCRYPTED = _zip("run.json").replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zip", "damaged, or no zip file"),
        (_zip("run.json", text="{}" * 99)[:-40], "damaged, or no zip file"),
        (_zip("manifest.json", text="content").replace(b"content", b"CONTENT"), "damaged, or no zip file"),
        (_ENCRYPTED, "it is encrypted"),
        (_zip("../../run.json"), "leads out of the folder"),
        (_zip("/run.json"), "leads out of the folder"),
        (_zip("run.py"), "run.py is a kind of file that no export holds"),
        (_zip(*(f"{index}.json" for index in range(10_001))), "10,001 files, more than an export has"),
        (_zip("run.json"), "given.zip is not an export of MRN Lab"),
    ],
)  # fmt: skip
def test_a_hostile_zip_file_is_refused(content: bytes, message: str, target: Store, laboratory: Path) -> None:
    with pytest.raises(MRNLabError, match=message) as refused:
        import_zip(target, io.BytesIO(content), "given.zip")
    assert str(laboratory) not in str(refused.value)
    assert target.runs() == []
    assert list((laboratory / "checkpoints").iterdir()) == []


def test_nothing_is_half_imported(exported: Path, target: Store, laboratory: Path) -> None:
    """A folder that is in the way makes the whole import undone, and stays."""
    place = laboratory / "checkpoints" / "1"
    place.mkdir(parents=True)
    (place / "precious").write_text("of whom?")
    with pytest.raises(MRNLabError, match="left behind by a run"):
        import_run(target, exported)
    assert target.runs() == []
    assert [path.name for path in place.parent.iterdir()] == ["1"]
    assert (place / "precious").read_text() == "of whom?"
    shutil.rmtree(place)
    assert tagged(target.run(import_run(target, exported).run_id).checkpoint)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("config", lambda text: json.dumps(json.loads(text) | {"encoder_training": "lora:8"})),
        ("config", lambda text: text[: len(text) // 2]),
        ("facts", lambda text: text[: len(text) // 2]),
    ],
    ids=["another version", "truncated description", "truncated facts"],
)
def test_a_run_that_cannot_be_read_is_exported_as_it_is(
    table: str, change: Callable[[str], str], trained: Trained, source: Store, target: Store, tmp_path: Path
) -> None:
    home, ids = trained
    place = {"config": ("runs", "id"), "facts": ("facts", "run_id")}[table]
    connected = sqlite3.connect(home / "runs.db")
    query = f"SELECT {table} FROM {place[0]} WHERE {place[1]} = {ids['mrn']}"
    (stored,) = connected.execute(query).fetchone()
    write = f"UPDATE {place[0]} SET {table} = ? WHERE {place[1]} = {ids['mrn']}"
    try:
        with connected:
            connected.execute(write, (change(stored),))
        made = export(trained, "mrn", tmp_path / "out")
    finally:
        with connected:
            connected.execute(write, (stored,))
        connected.close()
    file = json.loads((made.folder / "run.json").read_text(encoding="utf-8"))
    assert "this version may not import it" in (made.folder / "README.md").read_text(encoding="utf-8")
    if table == "facts":
        assert file["facts"] == {}
    else:
        assert file["config"] in (
            json.loads(stored) | {"encoder_training": "lora:8"},
            {"stored": change(stored)},
        )
        with pytest.raises(MRNLabError, match="its description does not hold here"):
            import_run(target, made.folder)
    assert tagged(made.folder / "checkpoint") == tagged(source.run(ids["mrn"]).checkpoint)
