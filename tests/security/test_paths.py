"""What a store, an upload or a form names stays within the laboratory's folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from core.corpora import save_upload
from core.errors import CorpusError
from core.paths import checkpoint_dir, home, own_checkpoint, own_log, upload_dir
from core.store import RunState, Store
from jobs.cli.app import app
from jobs.exchange.export import folder_names
from jobs.exchange.format import FolderName
from jobs.queue import control
from jobs.worker.logs import to_log_file
from jobs.worker.loop import Worker
from tests.making import OWNER, config

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
