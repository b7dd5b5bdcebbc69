"""Hundreds of tiny runs, really trained, while workers are killed at random: is anything lost?

`python -m tests.benchmarks.soak --minutes 10` shares the time between SQLite and PostgreSQL (where it is
installed). Each description is first trained once undisturbed; every later run of it must then have the same
rows with the same values, to the last bit, whatever happened to its workers. The last line is one JSON
object: runs done, faults, metric rows and scores expected and found, and runs that did not succeed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.errors import StoreError
from core.store import Owner, Run, RunState, Store
from jobs import control
from jobs.engines.local import LocalEngine
from jobs.reaper import reap
from tests.benchmarks.soak_faults import inject
from tests.postgres import is_installed, started_server
from tests.tiny import tiny_bert
from tests.trained import toy_corpus

_SLOTS = 2
_LOOK_S = 0.1
_TEND_S = 1.0
_FAULT_EVERY_S = (1.0, 8.0)
_RETRIES = 1000
_PATIENCE_S = 300.0
"""How long the last runs may take once no more faults come."""

Rows = dict[tuple[str, str, str, int], str]


@dataclasses.dataclass
class Report:
    """What one database went through.

    `worst_state_s`: the longest time after a worker's death that its run was still said to be trained by it.
    """

    database: str
    runs: int = 0
    faults: Counter[str] = dataclasses.field(default_factory=Counter)
    attempts: int = 0
    rows_expected: int = 0
    rows_found: int = 0
    rows_different: int = 0
    lost_runs: int = 0
    worst_state_s: float = 0.0
    store_refused: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For printing."""
        return dataclasses.asdict(self) | {"faults": dict(self.faults)}


def descriptions(home: Path) -> list[RunConfig]:
    """Six runs of a few seconds, of every paradigm, with dropout, over whole and frozen encoders."""
    corpus, encoder = toy_corpus(home / "toy"), tiny_bert(home / "encoder")
    common = {"corpus": str(corpus), "columns": "tokens,pos,ner", "tasks": "pos,ner", "encoder": str(encoder)}
    common |= {"max_length": 32, "batch_size": 4, "epochs": 12, "dropout": 0.1, "paradigm": "mrn"}
    return [
        RunConfig.build(**(common | values))
        for values in (
            {"seed": 1},
            {"seed": 2, "prior": "map", "update_every": 5},
            {"seed": 3, "paradigm": "mtl"},
            {"seed": 4, "encoder_training": "frozen", "epochs": 40},
            {"seed": 5, "select_by": "loss"},
            {"seed": 6, "paradigm": "stl", "tasks": "ner"},
        )
    ]


def recorded(store: Store, run: Run) -> Rows:
    """All that the run left in the store, exactly: each metric and each score."""
    rows: Rows = {}
    for key in store.metric_keys([run.id]):
        for series in store.metrics([run.id], key):
            for step, value in zip(series.step.tolist(), series.value.tolist(), strict=True):
                rows[key.task, key.split, key.name, step] = float(value).hex()
    for score in store.scores([run.id]):
        told = dataclasses.asdict(score) | {"run_id": 0}
        rows[score.task, score.split, "scores", score.epoch] = json.dumps(told, sort_keys=True)
    return rows


class Soak:
    """One store, its workers, and the one who does them harm."""

    def __init__(self, store: Store, name: str, seed: int) -> None:
        self._store = store
        self._engine = LocalEngine()
        self._draw = random.Random(seed)
        self._report = Report(name)
        self._dead: list[tuple[float, int, Owner]] = []
        self._tended = 0.0

    def run(self, configs: Sequence[RunConfig], seconds: float) -> Report:
        """Trains each description undisturbed, then as many as it can for that long, disturbed."""
        began = time.monotonic()
        reference = self._references(configs)
        deadline = time.monotonic() + seconds
        next_fault = time.monotonic() + self._draw.uniform(*_FAULT_EVERY_S)
        ids: list[int] = []
        while time.monotonic() < deadline:
            self._tend()
            if self._store.counts()[RunState.QUEUED] < _SLOTS:
                ids += self._store.add_runs(configs, "soak", retries=_RETRIES)
            if time.monotonic() >= next_fault:
                self._harm()
                next_fault = time.monotonic() + self._draw.uniform(*_FAULT_EVERY_S)
            time.sleep(_LOOK_S)
        self._wait(ids)
        self._judge(ids, reference)
        self._leave()
        self._report.seconds = round(time.monotonic() - began, 1)
        return self._report

    def _references(self, configs: Sequence[RunConfig]) -> dict[str, Rows]:
        ids = self._store.add_runs(configs, "undisturbed")
        self._wait(ids)
        found = {}
        for run in self._store.runs(ids=ids):
            if run.state is not RunState.SUCCEEDED:
                raise SystemExit(f"Undisturbed, run {run.id} is {run.state}: {run.error}")
            found[run.config.to_json()] = recorded(self._store, run)
        return found

    def _wait(self, ids: Sequence[int]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            self._tend()
            if all(run.state is RunState.SUCCEEDED for run in self._store.runs(ids=ids, with_facts=False)):
                return
            time.sleep(_LOOK_S)

    def _leave(self) -> None:
        """Until the idle workers have ended: they write in the folder that goes."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._engine.live_workers(self._store) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)

    def _harm(self) -> None:
        try:
            injected = inject(self._store, self._draw)
        except StoreError:
            self._report.store_refused += 1
            return
        if injected is None:
            return
        self._report.faults[injected.fault] += 1
        if injected.killed is not None:
            self._dead.append((time.monotonic(), injected.run_id, injected.killed))

    def _tend(self) -> None:
        """What an open page does: finds the lost, starts workers; and resumes what was stopped."""
        self._settle()
        if time.monotonic() - self._tended < _TEND_S:
            return
        self._tended = time.monotonic()
        reap(self._store)
        stopped = self._store.runs(states={RunState.CANCELLED, RunState.LOST}, with_facts=False)
        if stopped:
            control.resume(self._store, [run.id for run in stopped], self._engine)
        self._engine.ensure_workers(self._store)

    def _settle(self) -> None:
        """Which of the dead are still called the owner of their run, and since when."""
        now = time.monotonic()
        left = []
        for since, run_id, owner in self._dead:
            run = self._store.run(run_id)
            if run.owner == owner and run.state in (RunState.RUNNING, RunState.CANCELLING):
                left.append((since, run_id, owner))
            else:
                self._report.worst_state_s = max(self._report.worst_state_s, round(now - since, 2))
        self._dead = left

    def _judge(self, ids: Sequence[int], reference: dict[str, Rows]) -> None:
        report = self._report
        for run in self._store.runs(ids=ids, with_facts=False):
            expected, found = reference[run.config.to_json()], recorded(self._store, run)
            report.runs += run.state is RunState.SUCCEEDED
            report.lost_runs += run.state is not RunState.SUCCEEDED
            report.attempts += run.attempt
            report.rows_expected += len(expected)
            report.rows_found += len(found)
            report.rows_different += len(set(expected.items()) ^ set(found.items()))


@contextlib.contextmanager
def _databases(folder: Path, wanted: Sequence[str]) -> Iterator[dict[str, str]]:
    """The URL of an empty store on each database that is wanted and here."""
    with contextlib.ExitStack() as stack:
        found = {}
        if "sqlite" in wanted:
            found["sqlite"] = f"sqlite:///{folder / 'soak.db'}"
        if "postgresql" in wanted:
            if is_installed():
                server = stack.enter_context(started_server())
                found["postgresql"] = stack.enter_context(server.database())
            else:
                print("PostgreSQL is not installed here: SQLite alone.", file=sys.stderr)
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all, shared among the databases")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--databases", default="sqlite,postgresql", help="which of them")
    options = parser.parse_args()
    os.environ |= {
        "MRNLAB_SLOTS": str(_SLOTS),
        "MRNLAB_CHECKPOINT_S": "0.3",
        "MRNLAB_HANG_S": "60",
        "OMP_NUM_THREADS": "1",
    }
    reports = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _databases(folder, options.databases.split(",")) as urls:
            for database, url in urls.items():
                home = folder / database
                home.mkdir()
                os.environ["MRNLAB_HOME"] = str(home)
                with contextlib.closing(Store.open(url)) as store:
                    soak = Soak(store, database, options.seed)
                    report = soak.run(descriptions(home), 60 * options.minutes / len(urls))
                reports.append(report)
                print(json.dumps(report.as_json(), indent=1), flush=True)
    print(
        json.dumps(
            {
                "runs": sum(one.runs for one in reports),
                "faults": sum(one.faults.total() for one in reports),
                "rows_expected": sum(one.rows_expected for one in reports),
                "rows_found": sum(one.rows_found for one in reports),
                "lost_runs": sum(one.lost_runs for one in reports),
            }
        )
    )
    if any(one.lost_runs or one.rows_different for one in reports):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
