"""A store as it is after a year of work: 10,000 runs and 12 million points, drawn at random.

`python -m tests.benchmarks.pages_store FOLDER` fills one, in two to three minutes (0.8 GB), and keeps it:
FOLDER is then an MRNLAB_HOME to look at. One that is already filled is used again.

Rows are inserted in bulk, past the Store, through its tables. Twenty runs look as if they trained: they
belong to a process of this machine, and have promised their next heartbeat in ten years.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Table, func, insert, select

from core.corpora import load
from core.store import RunState, Store
from core.store.tables import (
    FINITE,
    events,
    facts,
    metric_keys,
    metrics,
    runs,
    scores,
    snapshots,
)
from core.training.events import TOTAL, SplitResult, TaskScore
from jobs.processes import this_process
from tests.benchmarks.pages_learned import Learned, known
from tests.benchmarks.pages_plan import LABELS, SCHEMES, TASKS, Planned, plan

__all__ = ["DEFAULT", "filled"]

DEFAULT = Path(tempfile.gettempdir()) / "mrnlab-pages"
_MADE_OF = 4  # raised with every change of what is filled in
_RUNS_A_BATCH = 250
_YEARS = 10 * 365 * 86_400.0
_EVERY = 2500.0  # seconds between two runs
_SECONDS_A_STEP = 0.35

_LEVEL = {"pos": 0.93, "chunk": 0.89, "ner": 0.80}
_NOISE = {"pos": 0.001, "chunk": 0.002, "ner": 0.006}
_GAIN = {"stl": 0.0, "mtl": 0.004, "mrn": 0.009}


def filled(folder: Path = DEFAULT) -> Path:
    """The folder of a filled store: filled now, or as it was left by an earlier call."""
    folder = folder.resolve()
    mark = folder / "filled.json"
    if mark.is_file() and json.loads(mark.read_text())["made_of"] == _MADE_OF:
        return folder
    mark.unlink(missing_ok=True)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for old in folder.glob("runs.db*"):
        old.unlink()
    began = time.perf_counter()
    checkpoint = _trained(folder / "model")
    store = Store.open(f"sqlite:///{folder / 'runs.db'}")
    try:
        _Filler(store, folder, checkpoint).fill(plan())
        with store.transaction(write=False) as connection:
            points = connection.scalar(select(func.count()).select_from(metrics))
            count = connection.scalar(select(func.count()).select_from(runs))
    finally:
        store.close()
    told = {"made_of": _MADE_OF, "runs": count, "points": points}
    mark.write_text(json.dumps(told))
    size = (folder / "runs.db").stat().st_size / 1e6
    print(
        f"{count:,} runs, {points:,} points, {size:,.0f} MB in {time.perf_counter() - began:.0f} s: {folder}"
    )
    return folder


def _trained(home: Path) -> Path:
    """The checkpoint of a run that is trained for it, for there to be something to tag with."""
    asked = "launch --corpus demo --tasks pos,chunk,ner --paradigm mtl --encoder-training frozen --epochs 1"
    subprocess.run(
        [sys.executable, "-c", "from jobs.cli import main; main()", *asked.split(), "--wait"],
        env=os.environ | {"MRNLAB_HOME": str(home)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    store = Store.open(f"sqlite:///{home / 'runs.db'}")
    (run,) = store.runs()
    store.close()
    assert run.checkpoint is not None, f"{run.state}: {run.error}"
    return Path(run.checkpoint)


class _Filler:
    """Draws what each run has recorded, and inserts it."""

    def __init__(self, store: Store, folder: Path, checkpoint: Path) -> None:
        self._store = store
        self._folder = folder
        self._checkpoint = checkpoint
        self._random = np.random.default_rng(1)
        self._now = time.time()
        self._owner = this_process()
        self._keys: dict[tuple[str, str, str], int] = {}
        self._facts: dict[tuple[Any, ...], str] = {}
        self._learned = Learned()

    def fill(self, planned: Sequence[Planned]) -> None:
        for start in range(0, len(planned), _RUNS_A_BATCH):
            numbered = list(enumerate(planned[start : start + _RUNS_A_BATCH], start=start + 1))
            with self._store.transaction() as connection:
                for table, rows in self._rows(numbered, len(planned)).items():
                    if rows:
                        connection.execute(insert(table), rows)
                points = [point for run_id, run in numbered for point in self._points(run_id, run)]
                keys = [
                    {"id": number, "task": task, "split": split, "name": name}
                    for (task, split, name), number in self._keys.items()
                ]
                connection.execute(metric_keys.insert().prefix_with("OR IGNORE"), keys)
                # As tuples: naming each value of twelve million rows would take most of the time.
                statement = insert(metrics).compile(dialect=connection.dialect)
                connection.exec_driver_sql(str(statement), points)
        self._predict(planned)

    def _rows(self, numbered: Sequence[tuple[int, Planned]], of: int) -> dict[Table, list[dict[str, Any]]]:
        rows: dict[Table, list[dict[str, Any]]] = {
            table: [] for table in (runs, facts, scores, snapshots, events)
        }
        for run_id, run in numbered:
            created = self._now - _EVERY * (of - run_id) - 3600
            row = self._run(run_id, run, created)
            rows[runs].append(row)
            rows[facts].append({"run_id": run_id, "facts": self._facts_of(run)})
            rows[events] += self._events(run_id, run, row)
            if run.state is RunState.SUCCEEDED:
                rows[scores] += self._scores(run_id, run)
            if run.snapshots:
                rows[snapshots] += self._learned.rows(run_id, run)
        return rows

    def _run(self, run_id: int, run: Planned, created: float) -> dict[str, Any]:
        seconds = run.steps * _SECONDS_A_STEP
        going_on = run.state is RunState.RUNNING
        started = created + 5 if not going_on else self._now - seconds
        log = self._folder / "logs" / f"run-{run_id}.log"
        if going_on or run.told or run.state is RunState.FAILED:
            steps = range(1, run.steps + 1, max(1, run.steps // 200))
            log.write_text("".join(f"step {step:,}: loss {2 / step**0.5:.4f}\n" for step in steps))
        succeeded = run.state is RunState.SUCCEEDED
        return {
            "id": run_id,
            "config": run.config.to_json(),
            "configuration_id": run.config.configuration_id,
            "sweep": run.launch,
            "state": run.state.value,
            "created_at": created,
            "started_at": started,
            "finished_at": None if going_on else started + seconds,
            "owner_host": socket.gethostname(),
            "owner_pid": self._owner.pid,
            "owner_started": self._owner.process_started,
            "owner_boot": self._owner.boot_id,
            "heartbeat_at": started + seconds,
            "heartbeat_due": started + seconds + (_YEARS if going_on else 15),
            "step": run.steps,
            "total_steps": run.total_steps,
            "epoch": run.config.epochs * run.steps / run.total_steps,
            "progress_at": started + seconds,
            "best_epoch": run.config.epochs - 1 if succeeded else None,
            "checkpoint": self._checkpoint_of(run_id, run) if succeeded else None,
            "log": str(log),
            **self._error(run),
        }

    def _checkpoint_of(self, run_id: int, run: Planned) -> str:
        """Most are gone, as they would be; those of `told` are one and the same model."""
        kept = run.told and run.config.tasks == TASKS
        return str(self._checkpoint if kept else self._folder / "checkpoints" / str(run_id))

    def _error(self, run: Planned) -> dict[str, Any]:
        kind, message, trace = {
            RunState.FAILED: (
                "TrainingError",
                f"The loss of {run.config.tasks[0]} is not a number at step {run.steps}; lower lr_heads.",
                'Traceback (most recent call last):\n  File "trainer.py", line 88, in train\nTrainingError',
            ),
            RunState.LOST: ("WorkerLost", "The worker stopped answering 71 s ago.", ""),
        }.get(run.state, (None, None, None))
        return {"error_type": kind, "error_message": message, "error_traceback": trace}

    def _events(self, run_id: int, run: Planned, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        begun = f"Started by process {row['owner_pid']} on {row['owner_host']}."
        yield {"run_id": run_id, "time": row["started_at"], "kind": "running", "message": begun}
        if row["finished_at"] is not None:
            message = row["error_message"] or f"{run.state.value.capitalize()}."
            yield {"run_id": run_id, "time": row["finished_at"], "kind": run.state.value, "message": message}

    def _facts_of(self, run: Planned) -> str:
        config = run.config
        full = run.launch in ("told", "live")
        key = (config.corpus, config.tasks, config.paradigm, config.alignment, run.total_steps, full)
        if key not in self._facts:
            self._facts[key] = json.dumps(dataclasses.asdict(known(run, with_cooccurrence=full)))
        return self._facts[key]

    def _level(self, run: Planned, task: str) -> float:
        config = run.config
        data = 0.06 * np.log2(config.fraction) / 4.3
        size = 0.01 * (config.encoder != "minilm") - 0.05 * (config.encoder_training == "frozen")
        strength = -0.004 * abs(np.log10(config.lambda_ / 0.01)) if config.lambda_ else 0.0
        return float(_LEVEL[task] + data + size + strength + _GAIN[config.paradigm])

    def _scores(self, run_id: int, run: Planned) -> Iterator[dict[str, Any]]:
        for split, drop in (("dev", 0.0), ("test", 0.015)):
            for task in run.config.tasks:
                score = self._level(run, task) - drop + _NOISE[task] * self._random.normal()
                told = dataclasses.asdict(self._score(task, float(score)))
                told["report"] = json.dumps(told["report"])
                yield told | {"run_id": run_id, "split": split, "epoch": run.config.epochs - 1}

    def _score(self, task: str, score: float) -> TaskScore:
        spans = SCHEMES[task] == "iob2"
        kinds = [label[2:] for label in LABELS[task] if label.startswith("B-")] if spans else LABELS[task]
        each = np.clip(score + 0.08 * self._random.normal(size=(len(kinds), 3)), 0, 1).round(4).tolist()
        report = {
            kind: {"precision": p, "recall": r, "f1": f, "support": float(8000 // rank)}
            for rank, (kind, (p, r, f)) in enumerate(zip(kinds, each, strict=True), start=1)
        }
        return TaskScore(
            task=task,
            score_name="f1_conll" if spans else "accuracy",
            score=score,
            accuracy=min(1.0, score + 0.05) if spans else score,
            precision=score + 0.004 if spans else None,
            recall=score - 0.004 if spans else None,
            f1_conll=score if spans else None,
            f1_strict=score - 0.003 if spans else None,
            seqeval_f1=None if spans else score - 0.01,
            tokens=46_435,
            report=report,
        )

    def _points(self, run_id: int, run: Planned) -> Iterator[tuple[Any, ...]]:
        """Rows of `metrics`: losses, penalty and rate at each step, dev scores at each epoch."""
        steps = np.arange(1, run.steps + 1)
        losses = {task: self._loss(len(steps), 2.4 + 0.3 * place) for place, task in enumerate(TASKS)}
        own = [losses[task] for task in run.config.tasks]
        curves = {(task, "loss"): losses[task] for task in run.config.tasks}
        grown = 0.03 * (run.config.paradigm == "mrn") * (1 - np.exp(-steps / 300))
        curves |= {(TOTAL, "penalty"): grown, (TOTAL, "loss"): sum(own) + grown}
        curves[TOTAL, "lr"] = 2e-3 * (1 - steps / run.total_steps)
        for (task, name), values in curves.items():
            yield from self._curve(run_id, run, (task, "train", name), steps, values)
        each = run.total_steps // run.config.epochs
        ends = np.arange(each, run.steps + 1, each)
        done = ends / run.total_steps
        totals = np.zeros(len(ends))
        for task in run.config.tasks:
            level = self._level(run, task) + 0.004 * self._random.normal(size=len(ends))
            score = level - 0.2 * np.exp(-4 * done)
            totals += score / len(run.config.tasks)
            yield from self._curve(run_id, run, (task, "dev", "score"), ends, score)
            yield from self._curve(run_id, run, (task, "dev", "loss"), ends, 1 - score)
        yield from self._curve(run_id, run, (TOTAL, "dev", "score"), ends, totals)
        yield from self._curve(run_id, run, (TOTAL, "dev", "loss"), ends, 1 - totals)
        for name, at, values in self._learned.curves(run):
            yield from self._curve(run_id, run, (TOTAL, "train", name), at, values)

    def _loss(self, length: int, start: float) -> np.ndarray[Any, Any]:
        fallen = start * np.exp(-np.arange(length) / (0.15 * length)) + 0.1
        return np.asarray(fallen * np.exp(0.25 * self._random.normal(size=length)))

    def _curve(
        self, run_id: int, run: Planned, key: tuple[str, str, str], steps: Any, values: Any
    ) -> Iterator[tuple[Any, ...]]:
        number = self._keys.setdefault(key, len(self._keys) + 1)
        epochs = (steps * (run.config.epochs / run.total_steps)).tolist()
        seconds = (steps * _SECONDS_A_STEP).tolist()
        for step, epoch, second, value in zip(steps.tolist(), epochs, seconds, values.tolist(), strict=True):
            yield run_id, number, step, epoch, second, value, FINITE

    def _predict(self, planned: Sequence[Planned]) -> None:
        """Predictions on the demo corpus, by mistakes drawn at random, and worse where the scores are."""
        corpus = load("demo")
        for run_id, run in enumerate(planned, start=1):
            if not run.told:
                continue
            for split in ("dev", "test"):
                sentences = corpus.split(split)
                gold = {task: [list(s.labels[task]) for s in sentences] for task in run.config.tasks}
                wrong = {task: 1 - self._level(run, task) for task in run.config.tasks}
                predicted = {task: self._mistaken(gold[task], wrong[task]) for task in gold}
                result = SplitResult(split, run.config.epochs - 1, (), predicted, gold)
                self._store.add_result(run_id, result)

    def _mistaken(self, gold: Sequence[Sequence[str]], share: float) -> list[list[str]]:
        labels = sorted({label for sentence in gold for label in sentence})
        drawn = iter(self._random.random(size=sum(map(len, gold))).tolist())
        other = iter(self._random.integers(len(labels), size=sum(map(len, gold))).tolist())
        return [
            [labels[next(other)] if next(drawn) < share else label for label in sentence] for sentence in gold
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT, help="where the store is (made)")
    print(filled(parser.parse_args().folder))


if __name__ == "__main__":
    main()
