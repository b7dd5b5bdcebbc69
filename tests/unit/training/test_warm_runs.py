"""What a process keeps from one run to the next changes no number of it, and a best model waits in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.events import Event, Note, Saved
from core.metrics import EpochMetrics
from core.training import checkpoints
from tests.tiny import tiny_bert
from tests.toys import corpus
from tests.unit.cut_trainings import STEPS, Laboratory, assert_same, toy

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A laboratory whose caches hold nothing yet."""
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "home"))


def laboratory(folder: Path, **changes: object) -> Laboratory:
    if not (encoder := folder / "encoder").exists():
        tiny_bert(encoder)
    config = toy(f"{encoder}+bilstm", encoder_training="frozen", bilstm_hidden=8, dropout=0.3, **changes)
    return Laboratory(config, folder / str(len(list(folder.iterdir()))), corpus(), every=1e9)


def computed(run: Laboratory) -> bool:
    return any(note.message.startswith("Computing") for note in run.record.notes)


def test_a_second_run_without_the_encoder_is_the_same(tmp_path: Path) -> None:
    first, second = laboratory(tmp_path), laboratory(tmp_path)
    first.attempt()
    # Nothing of the encoder could be loaded any more; what is known of it is for the files as they are.
    weights = tmp_path / "encoder" / "model.safetensors"
    before = weights.stat()
    weights.write_bytes(b"0" * before.st_size)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    second.folder = tmp_path / "second"
    second.attempt()
    assert (computed(first), computed(second)) == (True, False)
    assert_same(second, first)


@pytest.mark.parametrize(("select_by", "best"), [("score", 1), ("loss", 3)])
def test_a_best_model_in_memory_is_that_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select_by: str, best: int
) -> None:
    """Also where the last epoch is the best one."""
    small = laboratory(tmp_path, select_by=select_by)
    written: list[str] = []

    def look(event: Event) -> None:
        if isinstance(event, EpochMetrics):
            written.extend(path.name for path in tmp_path.glob("*.states/*/best-*"))

    ended = small.attempt(look)
    assert written == []
    assert ended.best_epoch == best
    large = laboratory(tmp_path, select_by=select_by)
    monkeypatch.setattr(checkpoints, "_MOST_IN_MEMORY", 0)
    large.attempt(look)
    assert written != []
    assert_same(large, small)


def test_a_state_has_the_best_model_beside_it(tmp_path: Path) -> None:
    run = laboratory(tmp_path)
    # Asked three times while features are computed.
    assert run.attempt(stop_at=3 + 8).best_epoch == 1
    run.record.settle()
    assert [type(event) for event in run.record.saved] == [Saved]
    (best,) = tmp_path.glob("*.states/*/best-*")
    assert best.name == "best-00000005"
    assert run.attempt().steps == STEPS
    assert Note("Resumed from step 7.") in run.record.notes
