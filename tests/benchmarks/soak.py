"""Hundreds of tiny runs, really trained, while workers are killed at random: is anything lost?

`python -m tests.benchmarks.soak --minutes 10` shares the time between SQLite and PostgreSQL (where it is
installed). Each description is first trained once undisturbed; every later run of it must then have the same
rows with the same values, to the last bit, whatever happened to its workers. The last line is one JSON
object: runs done, faults, metric rows and scores expected and found, and runs that did not succeed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import create_engine, text

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Owner, Run, RunState, Store
from jobs import control
from jobs.engines.local import LocalEngine
from jobs.worker.liveness import reap
from jobs.worker.process import is_alive
from tests.benchmarks._harness import arguments, laboratory, tell
from tests.postgres import is_installed, started_server
from tests.supervised import wait_for
from tests.trained import toy_config

_SLOTS = 2
_LOOK_S = 0.1
_TEND_S = 1.0
_HELD_S = 3.0
_RETRIES = 1000
_PATIENCE_S = 300.0
"""How long the last runs may take once no more faults come."""

Rows = dict[tuple[str, str, str, int], str]
Fault = Callable[[Store, Run, Owner], None]
"""Does harm to a run that is being trained by that worker."""


def _signalled(number: int) -> Fault:
    return lambda _store, _run, owner: os.kill(owner.pid, number)


def _kill_parent(_store: Store, _run: Run, owner: Owner) -> None:
    """The process that watches the worker; the worker goes on."""
    parent = psutil.Process(owner.pid).parent()
    if parent is not None and parent.pid not in (1, os.getpid()):
        parent.kill()


def _kill_both(store: Store, run: Run, owner: Owner) -> None:
    _kill_parent(store, run, owner)
    os.kill(owner.pid, signal.SIGKILL)


def _freeze(_store: Store, _run: Run, owner: Owner) -> None:
    """The worker stands still for a while, as on a laptop whose lid is closed."""
    os.kill(owner.pid, signal.SIGSTOP)

    def thaw() -> None:
        if is_alive(owner):
            os.kill(owner.pid, signal.SIGCONT)

    threading.Timer(_HELD_S, thaw).start()


def _stop(store: Store, run: Run, _owner: Owner) -> None:
    """A researcher changes their mind; the driver resumes it when it has stopped."""
    control.stop(store, [run.id])


def _hold_store(store: Store, _run: Run, _owner: Owner) -> None:
    """Another program holds the store, and all wait."""
    if store.url.startswith("sqlite"):
        path = store.url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(_HELD_S)
            connection.execute("ROLLBACK")
    else:
        engine = create_engine(store.url)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE runs, metrics IN EXCLUSIVE MODE"))
            time.sleep(_HELD_S)
        engine.dispose()


# Deaths are what this is about; the rest comes now and then.
FAULTS: dict[str, tuple[Fault, float]] = {
    "worker killed": (_signalled(signal.SIGKILL), 6),
    "worker and parent killed": (_kill_both, 3),
    "worker crashed": (_signalled(signal.SIGSEGV), 1),
    "worker told to end": (_signalled(signal.SIGTERM), 1),
    "its parent killed": (_kill_parent, 1),
    "worker frozen": (_freeze, 1),
    "stopped and resumed": (_stop, 1),
    "store held": (_hold_store, 1),
}


def descriptions(home: Path) -> list[RunConfig]:
    """Six runs of a few seconds, of every paradigm, with dropout, over whole and frozen encoders."""
    common = {"batch_size": 4, "epochs": 12, "dropout": 0.1, "paradigm": "mrn"}
    each: tuple[dict[str, object], ...] = (
        {"seed": 1},
        {"seed": 2, "prior": "map", "update_every": 5},
        {"seed": 3, "paradigm": "mtl"},
        {"seed": 4, "encoder_training": "frozen", "lr_encoder": None, "epochs": 40},
        {"seed": 5, "select_by": "loss"},
        {"seed": 6, "paradigm": "stl", "tasks": "ner"},
    )
    return [toy_config(home, **(common | values)) for values in each]


def recorded(store: Store, run: Run) -> Rows:
    """All that the run left in the store, exactly: each metric and each score."""
    rows: Rows = {}
    for key in store.metric_keys([run.id]):
        for series in store.metrics([run.id], key):
            for step, value in zip(series.step.tolist(), series.value.tolist(), strict=True):
                rows[key.task, key.split, key.name, step] = float(value).hex()
    for score in store.scores([run.id]):
        values = dataclasses.asdict(score) | {"run_id": 0}
        rows[score.task, score.split, "scores", score.epoch] = json.dumps(values, sort_keys=True)
    return rows


class Soak:
    """One store, its workers, and the one who does them harm."""

    def __init__(self, store: Store, seed: int, *, quick: bool) -> None:
        self._store = store
        self._engine = LocalEngine()
        self._random = random.Random(seed)
        self._between_s = (0.1, 0.1) if quick else (1.0, 8.0)
        self._faults: Counter[str] = Counter()
        self._tended = 0.0

    def run(self, configs: Sequence[RunConfig], seconds: float) -> dict[str, Any]:
        """Trains each description undisturbed, then as many as it can for that long, harmed at least once."""
        undisturbed = self._store.add_runs(configs, "undisturbed")
        self._wait(undisturbed)
        expected = {}
        for run in self._store.runs(undisturbed):
            if run.state is not RunState.SUCCEEDED:
                raise SystemExit(f"Undisturbed, run {run.id} is {run.state}: {run.error}")
            expected[run.config.to_json()] = recorded(self._store, run)
        deadline = time.monotonic() + seconds
        next_fault = time.monotonic()
        ids: list[int] = []
        while time.monotonic() < deadline or not self._faults:
            self._tend()
            if self._store.counts()[RunState.QUEUED] < _SLOTS:
                ids += self._store.add_runs(configs, "soak", retries=_RETRIES)
            if time.monotonic() >= next_fault:
                self._harm()
                next_fault = time.monotonic() + self._random.uniform(*self._between_s)
            time.sleep(_LOOK_S)
        self._wait(ids)
        # Idle workers end by themselves; until then they write in the folder that goes.
        wait_for(lambda: not self._engine.live_workers(self._store), _PATIENCE_S)
        return {"faults": dict(self._faults), **self._judged(ids, expected)}

    def _wait(self, ids: Sequence[int]) -> None:
        """Until all have succeeded, or patience is at its end."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            self._tend()
            if all(run.state is RunState.SUCCEEDED for run in self._store.runs(ids, with_facts=False)):
                return
            time.sleep(_LOOK_S)

    def _harm(self) -> None:
        """One fault to one of the runs that are being trained, if there is one."""
        (name,) = self._random.choices(list(FAULTS), [weight for _, weight in FAULTS.values()])
        try:
            run = self._random.choice(self._store.runs(states={RunState.RUNNING}))
            assert run.owner is not None
            FAULTS[name][0](self._store, run, run.owner)
            self._faults[name] += 1
        except (IndexError, ProcessLookupError, psutil.NoSuchProcess, MRNLabError):
            return  # no run is being trained, or it had just ended: nothing was done

    def _tend(self) -> None:
        """What an open page does: finds the lost, starts workers; and resumes what was stopped."""
        if time.monotonic() - self._tended < _TEND_S:
            return
        self._tended = time.monotonic()
        reap(self._store)
        stopped = self._store.runs(states={RunState.CANCELLED, RunState.LOST}, with_facts=False)
        if stopped:
            control.resume(self._store, [run.id for run in stopped], self._engine)
        self._engine.ensure_workers(self._store)

    def _judged(self, ids: Sequence[int], reference: dict[str, Rows]) -> dict[str, int]:
        report = dict.fromkeys(
            ("runs", "lost_runs", "attempts", "rows_expected", "rows_found", "rows_different"), 0
        )
        for run in self._store.runs(ids, with_facts=False):
            expected, found = reference[run.config.to_json()], recorded(self._store, run)
            report["runs" if run.state is RunState.SUCCEEDED else "lost_runs"] += 1
            report["attempts"] += run.attempt
            report["rows_expected"] += len(expected)
            report["rows_found"] += len(found)
            report["rows_different"] += len(set(expected.items()) ^ set(found.items()))
        return report


@contextlib.contextmanager
def _databases(folder: Path, wanted: Sequence[str]) -> Iterator[dict[str, str]]:
    """The URL of an empty store on each database that is wanted and here."""
    with contextlib.ExitStack() as stack:
        urls = {}
        if "sqlite" in wanted:
            urls["sqlite"] = f"sqlite:///{folder / 'soak.db'}"
        if "postgresql" in wanted:
            if is_installed():
                server = stack.enter_context(started_server())
                urls["postgresql"] = stack.enter_context(server.database())
            else:
                print("PostgreSQL is not installed here: SQLite alone.", file=sys.stderr)
        yield urls


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all, shared among the databases")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--databases", default="sqlite,postgresql", help="which of them")
    asked = parser.parse_args()
    if asked.quick:
        asked.minutes, asked.databases = 0.01, "sqlite"
    settings = {"MRNLAB_CHECKPOINT_S": "0.3", "MRNLAB_HANG_S": "60", "OMP_NUM_THREADS": "1"}
    settings |= {"MRNLAB_SLOTS": "1" if asked.quick else str(_SLOTS), "MRNLAB_LINGER_S": "2"}
    reports = []
    with laboratory(**settings) as folder, _databases(folder, asked.databases.split(",")) as urls:
        for database, url in urls.items():
            with laboratory(**settings) as home, contextlib.closing(Store.open(url)) as store:
                configs = descriptions(home)[: 1 if asked.quick else None]
                soak = Soak(store, asked.seed, quick=asked.quick)
                reports.append(soak.run(configs, 60 * asked.minutes / len(urls)))
            tell({"database": database} | reports[-1])
    names = ("rows_expected", "rows_found", "lost_runs")
    tell(
        {
            "runs": sum(report["runs"] for report in reports),
            "faults": sum(sum(report["faults"].values()) for report in reports),
            **{name: sum(report[name] for report in reports) for name in names},
        }
    )
    if any(report["lost_runs"] or report["rows_different"] for report in reports):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
