"""Damaged binary files and hostile copies of datasets are refused: nothing crashes, nothing else is read."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpora import load, loading
from core.errors import CorpusError
from core.foreign import arrow, child, inside
from core.foreign.child import Refused
from core.foreign.tables import Limits, unreadable_table
from core.paths import cache_dir
from tests import mutants

pa: Any = pytest.importorskip("pyarrow")
datasets: Any = pytest.importorskip("datasets")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SECRET = "a secret word"
ROWS = f"text,label\n{SECRET},x\nb,y\n"
LABELLED = "text,label\na b,x\nc d,y\n"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Secrets in the formats of a copy, which each test has beside one."""
    folder = tmp_path_factory.mktemp("secrets")
    for split in ("train", "test"):
        (folder / f"{split}.csv").write_text(ROWS)
    table = datasets.Dataset.from_dict({"text": [SECRET, "b"], "label": ["x", "y"]})
    datasets.DatasetDict(train=table, test=table).save_to_disk(folder / "saved")
    return folder


@pytest.fixture
def copy(secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a dataset in the one folder that may be read, beside secrets in the same formats."""
    folder = tmp_path / "allowed" / "copy"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        (folder / f"{split}.csv").write_text(LABELLED)
    shutil.copytree(secrets, tmp_path / "secret")
    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(tmp_path / "allowed"))
    return folder


@pytest.fixture(autouse=True, scope="module")
def left_open() -> Iterator[None]:
    """`datasets` leaves files open where it fails, which in a child is of no consequence."""
    yield
    gc.collect()


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the child process refuses by itself, before its limits and its gate do."""
    monkeypatch.setattr(child, "run", inside.run_here)
    monkeypatch.setattr(arrow, "_refusals", {})


def refused(folder: Path) -> str:
    with pytest.raises(CorpusError) as raised:
        load(f"hub:{folder}")
    message = str(raised.value)
    assert SECRET not in message
    assert "\n" not in message
    assert not [*cache_dir("datasets").iterdir()]
    return message


def card(folder: Path, configs: Any, name: str = "README.md") -> Path:
    """JSON is YAML."""
    block = json.dumps({"configs": configs})
    (folder / name).write_text(block if name != "README.md" else f"---\n{block}\n---\n")
    return folder


SECRETS = (
    "{secret}/train.csv", "../../secret/train.csv", "data/../../../secret/*.csv", "/**/train.csv",
    "~/train.csv",
    "file://{secret}/train.csv", "http://localhost:1/train.csv", "zip://train.csv::{secret}/x.zip", "hf://datasets/a/b.csv",
    "{secret}", "..", "C:\\train.csv", "..\\secret\\train.csv",
)  # fmt: skip
CARDS: dict[str, Callable[[str], Any]] = {
    "data_files": lambda path: {"data_files": path},
    "data_files list": lambda path: {"data_files": ["train.csv", path]},
    "data_files path": lambda path: {"data_files": [{"split": "train", "path": path}]},
    "data_files paths": lambda path: {"data_files": [{"split": "train", "path": ["train.csv", path]}]},
    "data_dir": lambda path: {"data_dir": path},
}


@pytest.mark.parametrize("name", ["README.md", ".huggingface.yaml"])
@pytest.mark.parametrize("key", CARDS)
def test_a_card_leads_nowhere_else(key: str, name: str, copy: Path, in_process: None) -> None:
    for text in SECRETS:
        path = text.format(secret=copy.parents[1] / "secret")
        card(copy, [{"config_name": "default", **CARDS[key](path)}], name)
        assert "names a file outside of it, which is not read" in refused(copy)


def test_the_name_of_a_configuration_or_a_split_is_no_path(copy: Path, in_process: None) -> None:
    secret = copy.parents[1] / "secret"
    card(copy, [{"config_name": f"{secret}/x", "data_files": "train.csv"}])
    assert "a config_name must be a plain name" in refused(copy)
    card(copy, [{"config_name": "x", "data_files": [{"split": f"{secret}/x", "path": "train.csv"}]}])
    assert "which is no plain name" in refused(copy)


@pytest.mark.parametrize(
    "split",
    ["{secret}/saved/train", "../../secret/saved/train", "", ".", "..", "a/b", 3, None, ["train"], "a\0"],
)
def test_a_split_is_one_plain_name(split: Any, copy: Path, in_process: None) -> None:
    if isinstance(split, str):
        split = split.format(secret=copy.parents[1] / "secret")
    (copy / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    assert "which is no plain name" in refused(copy)


@pytest.mark.parametrize("place", ["train", "a/train"])
@pytest.mark.parametrize(
    "file", ["{secret}", "../../../secret/saved/train/data-00000-of-00001.arrow", "..", "", "link"]
)
def test_a_state_names_files_beside_it(place: str, file: str, copy: Path, in_process: None) -> None:
    secret = copy.parents[1] / "secret" / "saved" / "train"
    folder = copy / place
    folder.mkdir(parents=True)
    state = json.loads((secret / "state.json").read_text())
    state["_data_files"] = [{"filename": file.format(secret=secret / "data-00000-of-00001.arrow")}]
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text((secret / "dataset_info.json").read_text())
    (folder / "link").symlink_to(secret / "data-00000-of-00001.arrow")
    (copy / "dataset_dict.json").write_text(json.dumps({"splits": [place]}))
    assert any(words in refused(copy) for words in ("outside of", "no plain name"))


@pytest.mark.parametrize("target", ["train.csv", "saved", "."])
def test_a_link_leads_nowhere_else(target: str, copy: Path, in_process: None) -> None:
    (copy / "more").symlink_to(copy.parents[1] / "secret" / target)
    assert "outside of the folders that this laboratory reads" in refused(copy)


GATE = """
import sys
from core.foreign import child, inside
file, folder, target = sys.argv[1:4]
sys.addaudithook(inside._gate([file], folder, target))
open(file).read()
open(target + "/new", "w").close()
import os, json, glob, socket, subprocess
assert child.opened == [file]
assert "copy" in os.path.basename(folder) and os.listdir(folder)
for act in (
    lambda: open(sys.argv[4]), lambda: os.listdir("/"), lambda: os.scandir(os.path.dirname(sys.argv[4])),
    lambda: open(folder + "/../../secret/train.csv"), lambda: open(folder + "/link"),
    lambda: open("/etc/passwd"),
    lambda: open(folder + "/written", "w"), lambda: os.open(sys.argv[4], os.O_RDONLY),
    lambda: socket.create_connection(("127.0.0.1", 1)), lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
):
    try:
        act()
    except PermissionError:
        continue
    raise SystemExit("read")
print("refused")
"""


def test_python_opens_no_other_file_in_the_child(copy: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "train.csv"
    (copy / "link").symlink_to(secret)
    paths = [copy / "train.csv", copy, tmp_path / "new", secret]
    paths[2].mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", GATE, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.returncode) == ("refused\n", 0), ended.stderr


def test_a_copy_is_read_by_a_child_once(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "picture.csv").write_text("no table")
    card(copy, [{"config_name": "default", "data_files": [
        {"split": "train", "path": "train.csv"}, {"split": "test", "path": "test.*"}
    ]}])  # fmt: skip
    first = load(f"hub:{copy}")
    assert [sentence.tokens for sentence in first.train] == [("a", "b"), ("c", "d")]
    (kept,) = cache_dir("datasets").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["about.json", "tables"]
    monkeypatch.setattr(child, "run", None)
    loading._read.cache_clear()
    assert load(f"hub:{copy}").train == first.train


@pytest.mark.parametrize("layout", ["saved", "parquet", "jsonl"])
def test_a_child_reads_what_this_process_reads(
    layout: str, copy: Path, request: pytest.FixtureRequest
) -> None:
    """A child may open the files of the copy alone, and answers in JSON. All other tests read copies here."""
    for path in copy.iterdir():
        path.unlink()
    rows = datasets.Dataset.from_dict({"text": ["a b", "c d"], "label": ["x", "y"]})
    if layout == "saved":
        datasets.DatasetDict(train=rows, test=rows).save_to_disk(copy)
    for split in ("train", "test"):
        if layout == "parquet":
            rows.to_parquet(copy / f"{split}.parquet")
        elif layout == "jsonl":
            rows.to_json(copy / f"{split}.jsonl")
    by_child = load(f"hub:{copy}")
    request.getfixturevalue("in_process")
    loading._read.cache_clear()
    shutil.rmtree(cache_dir("datasets"))
    assert load(f"hub:{copy}").train == by_child.train
    assert [sentence.tokens for sentence in by_child.train] == [("a", "b"), ("c", "d")]


def test_a_child_reads_tables_and_names_the_one_that_is_none(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(pa.table({"text": ["a"], "number": [1]}), paths[0])
    paths[1].write_bytes(paths[0].read_bytes())
    limits = Limits(bytes=10_000, values=10)
    assert unreadable_table(paths, limits) is None
    paths[1].write_bytes(b"PAR1 no table")
    named, reason = unreadable_table(paths, limits) or ("", "")
    assert named == "b.parquet"
    assert reason.startswith("it cannot be read (")


# Wrong cards and states.

WRONG_CARDS = (
    "[]", "3", "text", "configs: 3", "configs: [3]", "configs: {a: b}", "configs: [{}]",
    "configs: [{config_name: 3}]",
    "configs: [{config_name: a, data_files: 3}]", "configs: [{config_name: a, data_files: {train: x}}]",
    "configs: [{config_name: a, data_files: [[x]]}]",
    "configs: [{config_name: a, data_files: [{split: train}]}]",
    "configs: [{config_name: a, data_files: [{split: 3, path: x.csv}]}]",
    "configs: [{config_name: a, data_files: none.csv}]", "configs: [{config_name: a}, {config_name: a}]",
    "configs: [{config_name: a, sep: [1]}]",
    "configs: [{config_name: a, features: 3}]",
    "configs: [{config_name: a, features: [{name: x, dtype: y}]}]",
    "configs: [{config_name: a, encoding: klingon}]", "configs: [{config_name: a, names: 3}]",
    "configs: [{config_name: a, version: x}]",
    "configs: [{config_name: a, default: true}, {config_name: b, default: true}]",
    "dataset_info: 3", "dataset_info: [3]", "dataset_info: {features: 3}",
    "dataset_info: {features: [{name: a}]}",
    "dataset_info: {features: [{name: text, dtype: int32}, {name: label, dtype: string}]}",
    "dataset_info: {splits: 3}", "dataset_info: {splits: [{name: x, num_examples: y}]}",
    "a: [", "a: b: c", "\ta: b", "a: *b", "a: !!python/object:os.system {}", "? [a]\n: b", "a: 1\na: 2",
    f"a: {'[' * 1000}", f"a: {'{b: ' * 300}", "a: 2026-99-99", "a: \x07", "language: {a: [b]}",
    "configs: [{config_name: ''}]",
)  # fmt: skip


def sentence(folder: Path) -> str:
    """The sentence that refuses a copy; empty where it is read."""
    try:
        load(f"hub:{folder}")
    except CorpusError as error:
        return str(error)
    return ""


HARMLESS = frozenset(
    [
        "language: {a: [b]}", "dataset_info: {splits: 3}", "dataset_info: 3", "a: 1\na: 2",
        "configs: [{config_name: a}, {config_name: a}]",
    ]
)  # fmt: skip
"""What `datasets` takes no notice of."""


@pytest.mark.parametrize("wrong", WRONG_CARDS)
def test_a_wrong_card_is_a_sentence(wrong: str, copy: Path, in_process: None) -> None:
    (copy / "README.md").write_text(f"---\n{wrong}\n---\n")
    message = sentence(copy)
    assert "copy" in message or (wrong in HARMLESS and not message)
    assert "\n" not in message
    assert not message or not [*cache_dir("datasets").iterdir()]


STATE_VALUES: tuple[Any, ...] = (None, "x", [3], [{"filename": 3}], {"a": {"b": []}})


@pytest.mark.parametrize("file", ["dataset_dict.json", "train/state.json", "train/dataset_info.json"])
def test_a_wrong_state_is_a_sentence(file: str, tmp_path: Path, in_process: None) -> None:
    table = datasets.Dataset.from_dict({"text": ["a b", "c"], "label": ["x", "y"]})
    datasets.DatasetDict(train=table, test=table).save_to_disk(tmp_path / "saved")
    path = tmp_path / "saved" / file
    right = json.loads(path.read_text())
    wrong: list[bytes] = [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        *(json.dumps(value).encode() for value in STATE_VALUES),
    ]
    wrong += [json.dumps({**right, key: value}).encode() for key in right for value in STATE_VALUES]
    for content in wrong:
        path.write_bytes(content)
        message = sentence(tmp_path / "saved")
        assert not message or str(tmp_path / "saved") in message
        assert "\n" not in message


# Limits after decompression.


@pytest.mark.parametrize("name", ["train.csv", "train.jsonl", "train.parquet"])
@pytest.mark.parametrize("kind", ["zip", "gzip", "tar"])
def test_no_archive_in_a_copy_is_unpacked(name: str, kind: str, copy: Path, in_process: None) -> None:
    path = copy / name
    (copy / "train.csv").unlink()
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("train.csv", LABELLED)
    else:
        path.write_bytes(
            b"\x1f\x8b" + b"\0" * 600 if kind == "gzip" else b"\0" * 257 + b"ustar" + b"\0" * 300
        )
    (copy / "test.csv").rename(copy / f"test{path.suffix}")
    assert f"is packed ({kind}), and no archive is unpacked; unpack it" in refused(copy)


def parquet(folder: Path, **columns: Any) -> Path:
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    table = pa.table(columns)
    for split in ("train", "test"):
        pq.write_table(table, folder / f"{split}.parquet", compression="zstd")
    return folder


def _sentence_of(count: int) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.repeat("word", count))


def test_a_small_file_of_a_large_sentence_is_refused(tmp_path: Path) -> None:
    folder = parquet(tmp_path / "large", tokens=_sentence_of(3_000_000), ner_tags=_sentence_of(3_000_000))
    assert (folder / "train.parquet").stat().st_size < 50_000
    with pytest.raises(
        CorpusError, match=r"train.parquet .*row 1: tokens has 3,000,000 values, and the most"
    ):
        load(str(folder))


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("MOST_UNPACKED", 100_000, "unpacked it holds more than 0 MB"),
        ("MOST_ROWS", 10, "has more than 10 rows"),
        ("MOST_AT_ONCE", 100_000, "rows 1 to 1000 hold more than 0 MB"),
    ],
)
def test_sizes_are_counted_while_a_file_is_unpacked(
    limit: str, value: int, problem: str, in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"some words {limit} " * 20
    folder = parquet(tmp_path / "many", text=pa.repeat(text, 5000), label=pa.repeat("x", 5000))
    monkeypatch.setattr(arrow, limit, value)
    with pytest.raises(CorpusError, match=problem):
        load(str(folder))


# Damaged files.


def _ipc(array: Any) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array, array], ["tokens", "ner_tags"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _wild(array: Any = None) -> bytes:
    """A file whose offsets lead out of it: pyarrow writes none, so they are put in place of its own."""
    right, wrong = (pa.array(offsets, pa.int32()) for offsets in ([0, 11, 24], [0, 2**30, 2**31 - 1]))
    content = _ipc(pa.array(["a" * 11, "b" * 13]) if array is None else array)
    before, after = (offsets.buffers()[1].to_pybytes()[:12] for offsets in (right, wrong))
    assert before in content
    return content.replace(before, after)


def _nothing_often() -> Any:
    return pa.ListArray.from_arrays(pa.array([0, 30_000_000], pa.int32()), pa.nulls(30_000_000))


DAMAGED: dict[str, tuple[Callable[[], Any], str]] = {
    "offsets": (_wild, "ArrowInvalid"),
    "list offsets": (lambda: _wild(pa.array([["a"] * 11, ["b"] * 13])), "ArrowInvalid"),
    "no UTF-8": (
        lambda: pa.Array.from_buffers(pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1],
        pa.py_buffer(b"\xff\xfe")]),
        "ArrowInvalid",
    ),
    "time zone": (lambda: pa.array([0], pa.timestamp("s", "Mars/Olympus")), "the zone 'Mars/Olympus'"),
    "far date": (lambda: pa.array([2**60], pa.timestamp("s")), "(OverflowError|ValueError|ArrowInvalid)"),
    "far day": (lambda: pa.array([2**30], pa.date32()), "(OverflowError|ValueError)"),
    "dictionary": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), pa.array(["a"]), safe=False),
        "ArrowIndexError|ArrowInvalid",
    ),
    "too much memory": (
        lambda: pa.StructArray.from_arrays([_nothing_often()], ["a"]), "200 MB of memory"
    ),
    "nothing, often": (
        lambda: pa.ListArray.from_arrays(pa.array([0, 10**7], pa.int32()), pa.nulls(10**7)),
        "10,000,000 values"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_is_a_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MEMORY", 200_000_000)
    make, problem = DAMAGED[kind]
    content = made if isinstance(made := make(), bytes) else _ipc(made)
    for split in ("train", "test"):
        (tmp_path / f"{split}.arrow").write_bytes(content)
    with pytest.raises(CorpusError, match=rf"train.arrow cannot be read as Arrow \(.*{problem}"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        (b"", -11, "it is damaged: reading it ended a process by SIGSEGV"),
        (b"", -6, "ended a process by SIGABRT"),
        (b"", -9, "takes more than 1,500 MB of memory"),
        (b"{", 1, "with exit code 1"),
        (b'{"reason": "why"}', 0, "why"),
    ],
)
def test_the_end_of_a_child_is_a_reason(answer: bytes, code: int, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        child._result(answer, code)


def test_a_child_has_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SECONDS", 0)
    with pytest.raises(Refused, match="takes longer than 0 seconds"):
        child.run("arrow", {"kind": "Arrow"}, b"ARROW1")


def test_what_is_proved_is_remembered_and_changed_content_is_proved_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def run(task: str, given: Any, content: bytes) -> None:
        asked.append(content)
        inside.run_here(task, given, content)

    monkeypatch.setattr(child, "run", run)
    monkeypatch.setattr(arrow, "_refusals", {})
    good, bad = _ipc(pa.array(["a"])), _wild()
    for _ in range(2):
        arrow.check(good, "Arrow")
    assert len(asked) == 1
    for _ in range(2):
        with pytest.raises(Refused, match="out of bounds"):
            arrow.check(bad, "Arrow")
    assert len(asked) == 2


def test_the_child_imports_no_heavy_library() -> None:
    code = "from core.foreign import inside; import pyarrow.parquet"
    script = f"import sys; {code}; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "streamlit", "pandas", "datasets", "sqlalchemy", "pydantic"} & {*modules}


def test_mutants_are_read_or_refused(in_process: None, tmp_path: Path) -> None:
    """A few, in this process; `python -m tests.fuzz --files 900 --cards 200` reads more, with children."""
    aside = tmp_path / "mutants"
    aside.mkdir()
    numbered = mutants.drawn(2, 39, 25, mutants.secrets(aside / "outside"))
    ends = [*mutants.read_all(iter(numbered), aside)]
    assert len(ends) == 64
    assert [end for end in ends if end.wrong] == []
    assert {end.outcome.partition(":")[0] for end in ends} == {"read", "refused"}
