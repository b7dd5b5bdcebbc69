"""What a store, an upload, a form or a visitor names stays within the laboratory's or the allowed folders."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from core.config import RunConfig
from core.corpora import save_upload
from core.corpora.catalogue.folders import detect_columns
from core.corpora.catalogue.names import find_folder, locate
from core.corpora.loading import load
from core.corpora.readers import lines as readers
from core.errors import ConfigError, CorpusError, EncoderError, MRNLabError
from core.models import sources
from core.models.trained_heads import trained_heads
from core.models.word_vectors import check_vectors
from core.mrn.alignments.mapping import read_mapping
from core.paths import checkpoint_dir, home, own_checkpoint, own_log, upload_dir
from core.store import RunState, Store
from core.transfer.features import read_loss_log
from jobs.cli.app import app
from jobs.exchange.export import folder_names
from jobs.exchange.format import FolderName
from jobs.queue import control
from jobs.worker.logs import to_log_file
from jobs.worker.loop import Worker
from tests.making import OWNER, config, conll_folder
from tests.tiny import tiny_bert

HOSTILE = ("/etc/passwd", "../../outside", "/", "..", "a/../..", "", ".", "/etc/..")


@pytest.mark.parametrize("path", HOSTILE)
def test_what_a_store_names_lies_in_the_laboratory(path: str) -> None:
    assert own_checkpoint(path).resolve().parent == home() / "checkpoints"
    log = own_log(path)
    assert log is not None
    assert log.resolve().parent == home() / "logs"
    assert own_log(None) is None


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is not the laboratory's, with a file that nobody may touch."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("a secret line")
    return folder


def _hostile_run(store: Store, outside: Path) -> int:
    """A finished run of a store that names a checkpoint and a log elsewhere."""
    (run_id,) = store.add_runs([config()])
    store.claim(OWNER)
    store.finish(run_id, RunState.SUCCEEDED, checkpoint=str(outside))
    with store.transaction() as connection:
        connection.exec_driver_sql("UPDATE runs SET log = ?", (str(outside / "secret.txt"),))
    return run_id


def test_nothing_outside_is_shown_loaded_or_deleted(outside: Path) -> None:
    store = Store.open()
    run_id = _hostile_run(store, outside)
    runner = CliRunner()
    shown = runner.invoke(app, ["show", str(run_id), "--log", "5", "--json"])
    assert "a secret line" not in shown.output
    assert json.loads(shown.output)["log_tail"] == ""
    refused = runner.invoke(app, ["tag", str(run_id), "A sentence ."])
    assert refused.exit_code == 2
    assert "is not there any more" in refused.output
    other = checkpoint_dir(12)  # which begins with the number of this run
    other.mkdir(parents=True)
    assert run_id == 1
    (answer,) = control.delete(store, [run_id], now=True)
    assert answer.done
    assert other.is_dir()
    assert (outside / "secret.txt").read_text() == "a secret line"


def test_a_worker_writes_no_log_outside(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open()
    (run_id,) = store.add_runs([config()])
    with store.transaction() as connection:
        connection.exec_driver_sql("UPDATE runs SET log = ?", (str(outside / "secret.txt"),))
    written: list[str] = []

    def noted(path: str):  # type: ignore[no-untyped-def]
        written.append(path)
        return to_log_file(path)

    def fails(_config: object) -> object:
        raise CorpusError("no corpus here")

    Worker(store, OWNER, prepare=fails, log_to=noted).train_next()  # type: ignore[arg-type]
    assert store.state(run_id) is RunState.FAILED
    assert [Path(path).parent for path in written] == [home() / "logs"]
    assert (outside / "secret.txt").read_text() == "a secret line"


@pytest.mark.parametrize("task", ["../../etc", "/etc/passwd", "..", ".", "a/../..", "..\\..\\etc", "a\0b"])
def test_a_task_has_its_folder_inside_an_export(task: str, tmp_path: Path) -> None:
    (name,) = folder_names([task]).values()
    assert (tmp_path / name).resolve().parent == tmp_path
    TypeAdapter(FolderName).validate_python(name)
    if task != name:
        with pytest.raises(ValidationError):
            TypeAdapter(FolderName).validate_python(task)


@pytest.mark.parametrize("name", ["../../train.conll", "/etc/train.conll", "..\\..\\train.conll"])
def test_uploads_stay_among_uploads(name: str) -> None:
    content = b"a N\n"
    folder = save_upload({name: content, "test.conll": content}, "../../../evil/$(x)")
    assert folder.parent == upload_dir()
    assert sorted(path.name for path in folder.iterdir()) == ["test.conll", "train.conll"]
    assert not [path for path in home().rglob("*") if ".." in path.name]


# A laboratory may read in named folders only


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_laboratory_may_read_in_named_folders_only(
    tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "data" / "inside", tmp_path / "outside"
    inside.parent.mkdir()
    for folder in (inside, outside):
        conll_folder(folder)
    (laboratory / "uploads").mkdir()
    conll_folder(laboratory / "uploads" / "mine")
    encoder = tiny_bert(tmp_path / "encoder")
    mapping = _written(tmp_path / "secret.csv", "a,secret,header\n")
    link = tmp_path / "data" / "link"
    link.symlink_to(outside)
    assert find_folder(str(outside)) == outside  # whoever sets nothing reads everywhere

    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(inside.parent))
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path / "data"))
    for allowed in (str(inside), "inside", str(laboratory / "uploads" / "mine")):
        assert locate(allowed).is_dir()
    for folder in (outside, link, inside / ".." / ".." / "outside", tmp_path / "not there"):
        with pytest.raises(CorpusError, match="outside of the folders that this laboratory reads"):
            locate(str(folder))
    with pytest.raises(CorpusError, match="outside of the folders"):
        locate("../outside")
    with pytest.raises(EncoderError, match="outside of the folders"):
        sources.locate(str(encoder))
    assert Path(sources.locate("minilm")).is_dir()
    assert load("demo").test
    with pytest.raises(ConfigError, match="outside of the folders") as refused:
        read_mapping(mapping)
    assert "secret,header" not in str(refused.value)


SECRET = "root:x:0:0:secret"


def _added_to(folder: Path) -> RunConfig:
    return RunConfig.build(
        corpus="demo", tasks=("ner",), paradigm="mrn", prior="predicted", added_to=str(folder),
        encoder_training="frozen",
    )  # fmt: skip


READERS: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(
        [f"corpus/train.{ending}" for ending in ("conll", "conllu", "tsv", "csv", "jsonl")],
        lambda file: load(str(file.parent)),
    ),
    "columns/train.conll": lambda file: detect_columns(file.parent),
    "columns/train.tsv": detect_columns,
    "losses.txt": read_loss_log,
    "mapping.csv": read_mapping,
    "vectors.txt": lambda file: check_vectors(str(file)),
    "vectors/vectors.vec": lambda file: check_vectors(str(file.parent)),
    **dict.fromkeys(
        [f"encoder/{name}" for name in ("config.json", "vocab.txt", "model.safetensors", "more/chat.jinja")],
        lambda file: sources.locate(str(file.parents[file.parent.name == "more"])),
    ),
    "run/run.json": lambda file: trained_heads(_added_to(file.parent)),
    "run/weights.safetensors": lambda file: trained_heads(_added_to(file.parent)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_link_to_a_file_leads_out_of_no_allowed_folder(
    name: str, tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, secret = tmp_path / "allowed" / name, _written(tmp_path / "passwd", f"{SECRET}\n")
    file.parent.mkdir(parents=True)
    if "train" in name:
        _written(file.with_name(f"test{file.suffix}"), "a N\n")
    if "encoder" in name:
        tiny_bert(tmp_path / "allowed" / "encoder")
    file.unlink(missing_ok=True)
    file.symlink_to(secret)
    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(tmp_path / "allowed"))
    with pytest.raises(MRNLabError, match="outside of the folders that this laboratory reads") as refused:
        READERS[name](file)
    assert "x:0:0" not in str(refused.value)


def test_a_link_put_in_place_of_a_file_that_was_checked_is_not_followed(
    tmp_path: Path, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "train.conll"
    link.symlink_to(_written(tmp_path / "passwd", SECRET))
    assert readers.read_bytes(link) == SECRET.encode()
    monkeypatch.setattr("os.path.realpath", os.path.abspath)  # the link is put there after it was resolved
    with pytest.raises(CorpusError, match="cannot be read"):
        readers.read_bytes(link)
