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

import psutil
from sqlalchemy import create_engine, text

from core.config import RunConfig
from core.errors import MRNLabError, StoreError
from core.store import Owner, Run, RunState, Store
from jobs import control
from jobs.engines.local import LocalEngine
from jobs.worker.liveness import reap
from jobs.worker.process import is_alive
from tests.benchmarks._harness import arguments, laboratory, tell
from tests.postgres import is_installed, started_server
from tests.trained import toy_config

_SLOTS = 2
_LOOK_S = 0.1
_TEND_S = 1.0
_HELD_S = 3.0
_RETRIES = 1000
_PATIENCE_S = 300.0
"""How long the last runs may take once no more faults come."""

Rows = dict[tuple[str, str, str, int], str]
Fault = Callable[[Store, Run, Owner], Owner | None]
"""Does harm to a run that is being trained. Gives the owner whose run must change its state, or None where
nobody dies.
"""


def _signalled(number: int) -> Fault:
    def send(_store: Store, _run: Run, owner: Owner) -> Owner:
        os.kill(owner.pid, number)
        return owner

    return send


def _kill_parent(_store: Store, _run: Run, owner: Owner) -> None:
    """The process that watches the worker; the worker goes on."""
    parent = psutil.Process(owner.pid).parent()
    if parent is not None and parent.pid not in (1, os.getpid()):
        parent.kill()


def _kill_both(store: Store, run: Run, owner: Owner) -> Owner:
    _kill_parent(store, run, owner)
    os.kill(owner.pid, signal.SIGKILL)
    return owner


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

    def __init__(self, store: Store, name: str, seed: int, *, quick: bool) -> None:
        self._store = store
        self._engine = LocalEngine()
        self._random = random.Random(seed)
        self._between_s = (0.1, 0.1) if quick else (1.0, 8.0)
        self._slots = 1 if quick else _SLOTS
        self._report = Report(name)
        self._dead: list[tuple[float, int, Owner]] = []
        self._tended = 0.0

    def run(self, configs: Sequence[RunConfig], seconds: float) -> Report:
        """Trains each description undisturbed, then as many as it can for that long, harmed at least once."""
        began = time.monotonic()
        reference = self._references(configs)
        deadline = time.monotonic() + seconds
        next_fault = time.monotonic()
        ids: list[int] = []
        while time.monotonic() < deadline or not self._report.faults:
            self._tend()
            if self._store.counts()[RunState.QUEUED] < self._slots:
                ids += self._store.add_runs(configs, "soak", retries=_RETRIES)
            if time.monotonic() >= next_fault:
                self._harm()
                next_fault = time.monotonic() + self._random.uniform(*self._between_s)
            time.sleep(_LOOK_S)
        self._wait(ids)
        self._judge(ids, reference)
        # Idle workers end by themselves; until then they write in the folder that goes.
        deadline = time.monotonic() + _PATIENCE_S
        while self._engine.live_workers(self._store) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self._report.seconds = round(time.monotonic() - began, 1)
        return self._report

    def _references(self, configs: Sequence[RunConfig]) -> dict[str, Rows]:
        ids = self._store.add_runs(configs, "undisturbed")
        self._wait(ids)
        rows = {}
        for run in self._store.runs(ids=ids):
            if run.state is not RunState.SUCCEEDED:
                raise SystemExit(f"Undisturbed, run {run.id} is {run.state}: {run.error}")
            rows[run.config.to_json()] = recorded(self._store, run)
        return rows

    def _wait(self, ids: Sequence[int]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            self._tend()
            if all(run.state is RunState.SUCCEEDED for run in self._store.runs(ids=ids, with_facts=False)):
                return
            time.sleep(_LOOK_S)

    def _harm(self) -> None:
        """One fault to one of the runs that are being trained, if there is one."""
        try:
            training = self._store.runs(states={RunState.RUNNING})
            if not training:
                return
            run = self._random.choice(training)
            assert run.owner is not None
            weights = [weight for _, weight in FAULTS.values()]
            (name,) = self._random.choices(list(FAULTS), weights)
            killed = FAULTS[name][0](self._store, run, run.owner)
        except StoreError:
            self._report.store_refused += 1
        except (ProcessLookupError, psutil.NoSuchProcess, MRNLabError):
            return  # the run, or its worker, had just ended: nothing was done
        else:
            self._report.faults[name] += 1
            if killed is not None:
                self._dead.append((time.monotonic(), run.id, killed))

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
    settings["MRNLAB_SLOTS"] = "1" if asked.quick else str(_SLOTS)
    if asked.quick:
        settings["MRNLAB_LINGER_S"] = "1"
    reports = []
    with laboratory(**settings) as folder, _databases(folder, asked.databases.split(",")) as urls:
        for database, url in urls.items():
            with laboratory(**settings) as home, contextlib.closing(Store.open(url)) as store:
                soak = Soak(store, database, asked.seed, quick=asked.quick)
                configs = descriptions(home)[: 1 if asked.quick else None]
                reports.append(soak.run(configs, 60 * asked.minutes / len(urls)))
            tell(vars(reports[-1]))
    tell(
        {
            "runs": sum(report.runs for report in reports),
            "faults": sum(report.faults.total() for report in reports),
            "rows_expected": sum(report.rows_expected for report in reports),
            "rows_found": sum(report.rows_found for report in reports),
            "lost_runs": sum(report.lost_runs for report in reports),
        }
    )
    if any(report.lost_runs or report.rows_different for report in reports):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
