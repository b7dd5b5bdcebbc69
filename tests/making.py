"""Small values and runs for tests of the store and of jobs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.config import RunConfig
from core.corpora import loading, summary
from core.events import (
    Event,
    RunFacts,
    TaskFacts,
)
from core.recording.heartbeat import StopSignal
from core.recording.sink import StoreSink
from core.store import ErrorInfo, Owner, Run, RunState, RunWithFacts, Store
from core.store.exchange import RunRecord
from core.testing.values import OWNER as OWNER
from core.testing.values import claimed as claimed
from core.testing.values import config as config
from core.testing.values import epoch_metrics as epoch_metrics
from core.testing.values import relations as relations
from core.testing.values import snapshot as snapshot
from core.testing.values import split_result as split_result
from core.testing.values import step_metrics as step_metrics
from core.testing.values import task_score as task_score

OTHER = Owner(host="here", pid=4243, process_started=1001.5, boot_id="boot-1")


class NoWorkers:
    """An engine that starts none, and counts how often it is asked for them."""

    def __init__(self, name: str = "none") -> None:
        self.name, self.asked = name, 0

    def ensure_workers(self, store: Store) -> int:
        self.asked += 1
        return 0

    def expect_run(self, store: Store) -> None:
        """Nothing: no worker is started."""

    def live_workers(self, store: Store) -> int:
        return 0


class Clock:
    """Seconds since 1970 that stand still until a test moves them."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def corpus_folder(folder: Path, files: Mapping[str, str]) -> str:
    """A new folder with these files (name → text)."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


_CONLL = "EU B-ORG X\nrejects O Y\n\nIt O X\nwas O Y\n\n"


def conll_folder(folder: Path) -> Path:
    """A folder of CoNLL files with 20 sentences of two words in each split; columns tokens, ner and toy."""
    corpus_folder(folder, {f"{split}.conll": _CONLL * 10 for split in ("train", "dev", "test")})
    return folder


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No corpus may be read from now on, nor taken from those in memory."""

    def refuse(*args: object) -> None:
        raise AssertionError(f"a corpus is read: {args}")

    monkeypatch.setattr(loading, "_read", refuse)
    monkeypatch.setattr(summary, "_summarised", refuse)


def conll_config(folder: Path, **values: Any) -> RunConfig:
    """A run on such a folder."""
    defaults = {"corpus": str(folder), "columns": "tokens,ner,toy", "tasks": "ner,toy"}
    return RunConfig.build(**(defaults | values))


def facts_of(run: Run) -> RunFacts:
    """The facts of a run that has begun, read with them."""
    assert isinstance(run, RunWithFacts)
    assert run.facts is not None
    return run.facts


def run_facts(total_steps: int = 20, **values: Any) -> RunFacts:
    """Facts of a run of two tasks."""
    defaults: dict[str, Any] = {
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "versions": {"mrnlab": "test"},
        "tasks": (
            TaskFacts("pos", "plain", ("NN", "VB"), "accuracy", train_sentences=40, train_tokens=400),
            TaskFacts("ner", "iob2", ("O", "B-PER"), "f1_conll", train_sentences=40, train_tokens=400),
        ),
        "total_steps": total_steps,
        "steps_per_epoch": 10,
        "features": 16,
        "dev_from_train": False,
        "selected_by": "score",
        "alignment": "cooccurrence",
        "alignment_reason": "the tasks share sentences",
        "label_names": ("pos:NN", "pos:VB", "ner:O", "ner:B-PER"),
        "label_owners": (("pos",), ("pos",), ("ner",), ("ner",)),
    }
    return RunFacts(**(defaults | values))


def finished(
    store: Store,
    run: RunConfig,
    *events: Event,
    sweep: str | None = None,
    owner: Owner = OWNER,
    checkpoint: str | None = None,
) -> int:
    """A run that has succeeded, with these events of its training."""
    (run_id,) = store.add_runs([run], sweep)
    assert store.claim(owner, run_id=run_id) is not None
    sink = StoreSink(store, run_id, owner, StopSignal())
    for event in events:
        sink(event)
    sink.settle()
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, checkpoint=checkpoint, owner=owner)
    return run_id


def stopped_halfway(store: Store) -> int:
    """A run that was stopped at step 12, with a state of step 10 and records of all kinds."""
    run_id = claimed(store)
    store.set_facts(run_id, run_facts(total_steps=40), OWNER)
    store.add_metrics(run_id, [step_metrics(1), step_metrics(2), epoch_metrics(2, 1, 0.5)], OWNER)
    store.add_snapshot(run_id, snapshot(2), OWNER)
    store.add_result(run_id, split_result("dev"), OWNER)
    store.set_progress(run_id, 12, 1.2, 40, OWNER)
    store.set_saved_step(run_id, 10, OWNER)
    store.add_keywords([run_id], ["odd"])
    store.request_stop(run_id)
    error = ErrorInfo("E", "Broke.", "")
    store.finish(run_id, RunState.CANCELLED, error=error, best_epoch=1, checkpoint="x", owner=OWNER)
    return run_id


def fully_recorded(store: Store, **values: Any) -> int:
    """A finished run with something of everything that a run records."""
    run_id = finished(
        store,
        config(**values),
        run_facts(),
        step_metrics(1, loss=1 / 3),
        snapshot(3, seed=3),
        *(step_metrics(step, loss) for step, loss in ((4, math.nan), (5, -math.inf), (6, math.inf))),
        epoch_metrics(6, 1, 0.1 + 0.2),
        snapshot(6, seed=6),
        *map(split_result, ("dev", "test")),
        checkpoint="somewhere",
    )
    store.add_event(run_id, "warning", "The penalty has vanished.")
    with store.transaction() as connection:  # as an older version wrote it
        store.update_runs(connection, [run_id], {"note": "λ was too high."})
    store.add_keywords([run_id], ["paper"])
    return run_id


def assert_same(left: RunRecord, right: RunRecord) -> None:
    """All that was recorded, bit for bit; not numbers, workers and paths."""
    elsewhere: dict[str, Any] = dict.fromkeys(("owner", "heartbeat_at", "checkpoint", "log"))
    left_run, right_run = (dataclasses.replace(record.run, id=0, **elsewhere) for record in (left, right))
    assert left_run == right_run
    assert [curve.key for curve in left.curves] == [curve.key for curve in right.curves]
    for ours, theirs in zip(left.curves, right.curves, strict=True):
        for name in ("step", "epoch", "seconds", "value"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    # Reports may hold NaN, which is not equal to itself.
    assert repr([dataclasses.replace(score, run_id=0) for score in left.scores]) == repr(
        [dataclasses.replace(score, run_id=0) for score in right.scores]
    )
    assert left.predictions == right.predictions
    assert left.snapshots == right.snapshots
