"""Real workers killed with SIGKILL or stopped with SIGSTOP, in the write of a checkpoint too: the run ends as
if none had been.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.config import RunConfig
from core.errors import LossCause
from core.paths import checkpoint_dir, log_path
from core.store import RunState, Store
from jobs.worker.reaper import reap
from tests import soak
from tests.benchmarks._loops import random_encoder
from tests.cut_off import Workers, workers
from tests.supervised import wait_for
from tests.trained import toy_config

WRITES_OF_MODELS = 15
"""Folders of best models, the published one too, that a worker makes or renames in two epochs that
both improve.
"""


@pytest.fixture
def store(laboratory: Path) -> Iterator[Store]:
    opened = Store.open()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def forked() -> Iterator[Workers]:
    """Workers that save a state at each step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_CHECKPOINT_S", "0")
        with workers() as forked:
            yield forked


def train(store: Store, forked: Workers, config: RunConfig, kills: Sequence[int] = ()) -> int:
    """A run whose workers are killed: at so many writes to the disk, or (0) in a training step."""
    (run_id,) = store.add_runs([config], retries=len(kills))
    for write in kills:
        before = store.run(run_id).step
        pid = forked.start(write)
        if not write:
            wait_for(lambda before=before: store.run(run_id).step > before)  # type: ignore[misc]
            os.kill(pid, signal.SIGKILL)
        assert forked.ended(pid) == -signal.SIGKILL
        claimed = store.state(run_id) is not RunState.QUEUED
        assert reap(store) == ([run_id] if claimed else [])
        assert store.state(run_id) is RunState.QUEUED
    assert forked.ended(forked.start()) == 0
    return run_id


def everything(store: Store, run_id: int) -> dict[str, Any]:
    """All that a run has recorded but its clock, and the bytes of its checkpoint."""
    folder = checkpoint_dir(run_id)
    return {
        "rows": soak.recorded(store, run_id),
        "files": {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()},
        "best epoch": store.run(run_id).best_epoch,
    }


def compare(store: Store, killed: int, whole: int) -> None:
    assert store.state(killed) is RunState.SUCCEEDED, store.run(killed).error
    recorded, expected = everything(store, killed), everything(store, whole)
    for part, value in expected.items():
        assert recorded[part] == value, part
    losses = sorted(key[-1] for key in recorded["rows"] if key[:4] == ("metrics", "", "train", "loss"))
    assert losses == list(range(1, 1 + (store.run(whole).total_steps or 0)))


@pytest.mark.slow
def test_killed_again_and_again(store: Store, forked: Workers, laboratory: Path) -> None:
    """A toy, killed at several writes, and an encoder in a write of its state, a hundred times larger."""
    small = toy_config(
        laboratory, paradigm="mrn", epochs=3, dropout=0.2, update_every=3, snapshots=5, batch_size=16
    )
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    encoder = random_encoder(laboratory / "larger", "bert-base", **sizes)
    large = toy_config(laboratory, encoder=encoder, epochs=1, batch_size=32, device="cpu")
    for config, kills in ((small, [29, 0, 3, 22]), (large, [26])):
        whole = train(store, forked, config)
        killed = train(store, forked, config, kills)
        assert any(event.message.startswith("Resumed from step") for event in store.events(killed))
        compare(store, killed, whole)
    # What is left beside the checkpoints is nothing.
    folders = {path.name for path in checkpoint_dir(1).parent.iterdir()}
    assert folders == {str(run.id) for run in store.runs()}


def asleep(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


@pytest.mark.slow
def test_a_worker_that_was_only_asleep_leaves_the_files_of_its_successor(
    store: Store, forked: Workers, laboratory: Path
) -> None:
    """It falls asleep at each of its writes of a best model, the published one too. Its successor goes on to
    the end of the run, or until it falls asleep in such a write itself.
    """
    config = toy_config(laboratory, epochs=2, dropout=0.2, batch_size=16)
    whole = train(store, forked, config)
    for write in range(1, WRITES_OF_MODELS + 1):
        wakes_in_between = write % 2 == 0
        (run_id,) = store.add_runs([config], retries=1)
        first = forked.start(write, "/best-", signal.SIGSTOP)
        wait_for(lambda pid=first: asleep(pid))  # type: ignore[misc]
        store.mark_lost(run_id, "It fell silent.", cause=LossCause.SILENT)
        if wakes_in_between:
            second = forked.start(1 + write % 3, "/best-", signal.SIGSTOP)
            wait_for(lambda pid=second: asleep(pid))  # type: ignore[misc]
        else:
            assert forked.ended(forked.start()) == 0
        os.kill(first, signal.SIGCONT)
        assert forked.ended(first) == 0
        if wakes_in_between:
            os.kill(second, signal.SIGCONT)
            assert forked.ended(second) == 0
        compare(store, run_id, whole)
        log = log_path(run_id).read_text()
        assert f"no longer belongs to process {first} " in log
        assert "Traceback" not in log


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({}, {"lost": 2}),
        ({("metrics", 1): (0.5,), ("metrics", 2): (0.25,), ("metrics", 3): (0.1,)}, {"doubled": 1}),
        ({("metrics", 1): (0.5,), ("metrics", 2): (0.25000000000000006,)}, {"different": 1}),
        ({("metrics", 1): (0.5,), ("metrics", 2): (0.25,)}, {}),
    ],
)
def test_what_a_soak_counts(found: soak.Rows, problem: dict[str, int]) -> None:
    counted = soak.compared({("metrics", 1): (0.5,), ("metrics", 2): (0.25,)}, found)
    assert {name: number for name in soak.PROBLEMS if (number := counted[name])} == problem


@pytest.mark.slow
def test_a_soak_loses_nothing() -> None:
    """Each fault once, beside launches from two processes at a time; on a machine of two cores or more."""
    command = [sys.executable, "-m", "tests.soak", "--quick"]
    environ = os.environ | {"OMP_NUM_THREADS": "2"}  # the soak itself sees to its threads
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counted = json.loads(ended.stdout.splitlines()[-1])
    assert counted["faults"] >= len(soak.FAULTS) - 2  # one takes a minute, and one needs a disk that may fill
    assert counted["rows_found"] == counted["rows_expected"] > 0
