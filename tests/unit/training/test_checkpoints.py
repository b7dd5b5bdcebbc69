"""Checkpoint folders on real disks: full ones, damaged ones, and how often states are due."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from core.checkpoints import Checkpoint, Damaged
from core.checkpoints.sealed import seal, verified
from core.checkpoints.shared_storage import Artefacts, model_folder, shared_artefacts
from core.errors import NoRoom, TrainingError
from core.events import Event, Saved
from core.paths import checkpoint_dir
from core.store import RunState, Store
from jobs.queue import control
from jobs.worker.reaper import record_worker_exit
from tests.making import OWNER, Clock, NoWorkers, claimed, step_metrics
from tests.small_disk import fill, small_disk
from tests.tiny import tiny_bert
from tests.toys import corpus
from tests.unit.cut_trainings import Laboratory, assert_same, toy


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 4) as folder:
        yield folder


def test_a_state_that_does_not_fit_leaves_nothing(disk: Path) -> None:
    """Where it is known before, and where the disk fills up while it is written."""
    kept = Checkpoint(disk / "7")
    kept.resume("run", print)
    for needs in (5_000_000, 1000):
        with pytest.raises(NoRoom, match=r"no space left .* needs .* MB in .*, where .* MB are free"):
            kept.save_state(1, needs, lambda folder: (folder / "numbers").write_bytes(b"1" * 5_000_000))
        assert [path for path in disk.rglob("*") if path.is_file() or ".new-" in path.name] == []
    with pytest.raises(NoRoom):  # safetensors raises an error of its own, no OSError
        seal(disk / "big", {}, 0, lambda to: save_file({"x": torch.zeros(2_000_000)}, to / "x"))
    assert not list(disk.glob("big*"))
    assert kept.save_state(1, 1000, lambda folder: (folder / "numbers").write_bytes(b"1" * 1000)) == 1000


def test_a_disk_that_fills_up_and_is_tidied(disk: Path, tmp_path: Path) -> None:
    """States are left out with one note while the training goes on; with room again they are saved again."""
    config = toy(str(tiny_bert(tmp_path / "encoder")))
    whole = Laboratory(config, tmp_path / "whole", corpus())
    whole.attempt()
    states: list[int] = []
    ballast: list[Path] = []

    def tell(event: Event) -> None:
        if isinstance(event, Saved):
            states.append(event.step)
            if event.step == 2:
                ballast.append(fill(disk, 1000))

    full = Laboratory(config, disk / "7", corpus())
    with pytest.raises(NoRoom, match="The model of epoch 1, the best so far, could not be saved"):
        full.attempt(tell)
    full.record.settle()
    assert states == [1, 2]
    (note,) = [note.message for note in full.record.notes if "could not be saved" in note.message]
    assert note.startswith("The training state of step 3 could not be saved. There is no space left")
    assert "MB are free. The training goes on" in note
    ballast[0].unlink()
    assert full.attempt().steps == 15
    assert "Resumed from step 2." in [note.message for note in full.record.notes]
    assert_same(full, whole)


def test_other_errors_of_the_disk_are_not_taken_for_a_full_one(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        seal(tmp_path / "folder", {}, 0, fail)
    assert list(tmp_path.glob("folder*")) == []


def test_resuming_names_the_state_that_it_uses(laboratory: Path) -> None:
    """A worker may die between writing a state and recording it. A state ahead of the metrics is not used."""
    store = Store.open()
    run_id = claimed(store)
    store.add_metrics(run_id, [step_metrics(step) for step in (10, 20, 25)])
    states = laboratory / "checkpoints" / f"{run_id}.states"
    for name in ("step-00000010", "attempt-00001/step-00000020", "attempt-00001/step-00000030"):
        seal(states / name, {}, 0, lambda to: None)
    store.set_saved_step(run_id, 10)
    store.mark_lost(run_id, "It went away.")
    (answer,) = control.resume(store, [run_id], NoWorkers())
    assert answer.message == f"Run {run_id} goes on from step 20."
    assert (store.run(run_id).saved_step, store.run(run_id).step) == (20, 20)
    store.close()


def test_a_byte_that_changed_is_noticed(tmp_path: Path) -> None:
    sealed = seal(tmp_path / "folder", {"step": 3}, 10, lambda to: (to / "numbers").write_bytes(b"123"))
    assert verified(tmp_path / "folder") == sealed
    assert (sealed.about, sealed.size) == ({"step": 3}, 3)
    for name in ("numbers", "manifest.json"):
        path = tmp_path / "folder" / name
        content = path.read_bytes()
        flipped = (content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content)))
        for damaged in (*flipped, content[:-1]):
            path.write_bytes(damaged)
            with pytest.raises(Damaged, match=r"is not as it was written|cannot be read"):
                verified(tmp_path / "folder")
        path.write_bytes(content)
    assert verified(tmp_path / "folder") == sealed


def saved(kept: Checkpoint, step: int) -> None:
    kept.save_state(step, 10, lambda to: (to / "numbers").write_text(str(step)))


def test_states_beyond_the_record_are_not_taken(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "7", recorded=0)
    assert kept.resume("run", print) is None
    for step in (10, 20):
        saved(kept, step)
    taken = Checkpoint(tmp_path / "7", recorded=19).resume("run", print)
    assert taken is not None
    assert taken.name == "step-00000010"
    assert [path.name for path in (tmp_path / "7.states").glob("*/*")] == ["step-00000010"]
    with pytest.raises(TrainingError, match=r"not what it was when it was begun\. Retry it"):
        Checkpoint(tmp_path / "7", recorded=19).resume("another run", print)
    assert Checkpoint(tmp_path / "7", recorded=0).resume("another run", print) is None
    assert list((tmp_path / "7.states").glob("*/*")) == []


def test_what_a_killed_process_left_goes_when_the_run_is_claimed_again(tmp_path: Path) -> None:
    """A model fetched by half, and a state and a best model written by half."""
    runs = tmp_path / "runs"
    kept = Checkpoint(runs / "7")
    kept.resume("run", print)
    saved(kept, 10)
    first, second = (f"7.states/attempt-0000{number}" for number in (1, 2))
    left = ["7.new-a1b2", f"{first}/step-00000020.new-a1b2", f"{first}/best-00000020.new-a1b2"]
    others = [runs / "70.new-a1b2", runs / "17.states"]
    for folder in (*(runs / name for name in left), *others):
        (folder / "new").mkdir(parents=True)
    state = Checkpoint(runs / "7", attempt=2, recorded=10).resume("run", print)
    assert state == runs / second / "step-00000010"
    assert sorted(runs.iterdir()) == sorted([runs / "7.states", *others])
    assert list((runs / "7.states").glob("*/*")) == [state]


def test_a_machine_that_was_only_asleep_leaves_what_its_successor_has_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has asked the store for the last time before it fell asleep, and goes on to its end."""
    monkeypatch.setenv("MRNLAB_ARTEFACTS", str(tmp_path / "shared"))

    def machine(attempt: int, recorded: int) -> Checkpoint:
        folder = tmp_path / f"machine {attempt}" / "7"
        return Checkpoint(folder, attempt=attempt, recorded=recorded, shared=shared_artefacts())

    def finish(kept: Checkpoint, step: int) -> None:
        kept.save_best(step, 10, lambda to: (to / "numbers").write_text(str(step)))
        saved(kept, step)
        kept.publish()

    asleep, successor = machine(1, 0), machine(2, 10)
    asleep.resume("run", print)
    saved(asleep, 10)
    state = successor.resume("run", print)
    assert state is not None
    assert state.name == "step-00000010"
    finish(successor, 20)
    finish(asleep, 15)
    asleep.forget_states()
    resumed = machine(3, 20).resume("run", print)
    assert resumed is not None
    assert resumed.name == "step-00000020"
    assert (model_folder(Path("7")) / "numbers").read_text() == "20"
    successor.forget_states()
    assert Artefacts(str(tmp_path / "shared")).names("states/") == []


def test_states_of_a_run_that_has_succeeded_go_with_its_worker() -> None:
    """Where it died between the end of the run and their removal."""
    with contextlib.closing(Store.open()) as store:
        run_id = claimed(store, RunState.SUCCEEDED)
        checkpoint = Checkpoint(checkpoint_dir(run_id))
        saved(checkpoint, 10)
        (states,) = checkpoint_dir(run_id).parent.iterdir()
        assert record_worker_exit(store, OWNER, -9, forced=False)
        assert not states.exists()
        assert store.state(run_id) is RunState.SUCCEEDED


def test_saving_takes_a_twentieth_of_the_time_at_most(tmp_path: Path) -> None:
    clock = Clock(0.0)
    step, costs = 0, [1.0, 10.0, 0.1]

    def settle() -> None:
        clock.now += costs[step]

    kept = Checkpoint(tmp_path / "7", every_s=60, clock=clock, settle=settle)
    kept.resume("run", print)
    clock.now += 60
    for step, pause_s in enumerate([60, 190, 60]):
        assert kept.is_due
        saved(kept, step + 1)
        clock.now += pause_s - 0.5
        assert not kept.is_due
        clock.now += 0.5
