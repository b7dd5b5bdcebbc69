"""A queue under random faults, compared to the bit with runs that nothing disturbed: is a row lost?

`python -m tests.soak --minutes 12 --seed 1`. Workers really train tiny models, in a laboratory on a small
disk. They and their supervisors are killed and stopped, the store is locked, the disk is full, and several
processes at once launch, stop and resume runs. Each description is first trained undisturbed in a laboratory
of its own, the twin. The same seed draws the same faults, which meet other steps.

The last line is JSON: numbers of faults and runs, of rows expected and found, and of PROBLEMS, which make the
exit status 1 where one is not 0. Details go to standard error.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
from sqlalchemy import select

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Run, RunState, Store
from core.store.schema import figures, metric_keys, metrics, predictions, scores, snapshots
from jobs.engines.local import LocalEngine
from jobs.queue import control
from jobs.queue.maintenance import QueueMaintenance
from jobs.queue.sweeps import launch_command
from jobs.worker.slots import taken_slots
from tests.benchmarks._harness import arguments, laboratory, print_json
from tests.patience import PATIENCE_S
from tests.serving import ROOT
from tests.small_disk import fill, small_disk
from tests.supervised import supervised, watchers
from tests.trained import toy_config, train_runs

DISK_MB, LOOK_S = 96, 0.5
AT_ONCE = 2  # faults, slots, verbs
THREADS = 1  # of the workers and of the twin: sums over other threads round differently
SETTINGS = {
    "MRNLAB_SLOTS": str(AT_ONCE),
    "MRNLAB_CHECKPOINT_S": "0.3",
    "MRNLAB_HANG_S": "30",
    "MRNLAB_LINGER_S": "30",  # long enough that workers import ahead
    "OMP_NUM_THREADS": str(THREADS),
}
BASE = {"batch_size": 4, "epochs": 12, "dropout": 0.1, "paradigm": "mrn"}
RUNS: tuple[dict[str, object], ...] = (
    {"seed": 1},
    {"seed": 2, "prior": "map", "update_every": 5},
    {"seed": 3, "paradigm": "mtl"},
    {"seed": 4, "encoder_training": "frozen", "lr_encoder": None, "epochs": 40},
    {"seed": 5, "select_by": "loss"},
    {"seed": 6, "paradigm": "stl", "tasks": "ner"},
)
COUNTS = ("faults", "runs", "rows_expected", "rows_found")
PROBLEMS = ("lost", "doubled", "different", "orphans", "crashed", "unfinished")
Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def recorded(store: Store, run_id: int) -> Rows:
    """All that a run has recorded but the clock, by table and key."""
    rows: Rows = {}
    with store.transaction(write=False) as connection:
        for table in (metrics, scores, figures, predictions, snapshots):
            keys = [column for column in table.primary_key if column.name not in ("run_id", "key_id")]
            rest = [column for column in table.columns if not column.primary_key and column.name != "seconds"]
            chosen = select(*keys, *rest)
            if table is metrics:  # other stores have other numbers for the names of metrics
                keys = [metric_keys.c.task, metric_keys.c.split, metric_keys.c.name, *keys]
                chosen = select(*keys, *rest).join_from(metrics, metric_keys)
            for row in connection.execute(chosen.where(table.c.run_id == run_id)):
                rows[table.name, *row[: len(keys)]] = tuple(row[len(keys) :])
    return rows


def compared(expected: Rows, found: Rows) -> Counter[str]:
    """How many rows are lost, too many, and different."""
    both = expected.keys() & found.keys()
    different = sum(expected[key] != found[key] for key in both)
    lost, doubled = len(expected) - len(both), len(found) - len(both)
    counts = Counter(rows_expected=len(expected), rows_found=len(found))
    counts.update(lost=lost, doubled=doubled, different=different)
    return counts


@dataclass
class Soak:
    """The laboratory under test. `disk` is None where none can be mounted."""

    store: Store
    engine: LocalEngine
    disk: Path | None
    launches: Mapping[RunConfig, Sequence[str]]
    """By description the verb that queues it."""
    hold_s: float = 3.0
    """How long a lock, a full disk or a stop lasts."""
    done: Counter[str] = field(default_factory=Counter)
    in_vain: Counter[str] = field(default_factory=Counter)  # its process had just ended, say
    failures: Counter[str] = field(default_factory=Counter)
    crashed: list[str] = field(default_factory=list)
    again: set[int] = field(default_factory=set)
    """Runs of a description of which another run was there when they were queued."""

    def __post_init__(self) -> None:
        self._maintenance = QueueMaintenance(self.store, self.engine)

    def attempt(self, name: str, act: Callable[[], None]) -> bool:
        """Do it, and count it; whether it could be done."""
        try:
            act()
        except (MRNLabError, psutil.Error, sqlite3.OperationalError) as error:
            self.in_vain[f"{name}: {type(error).__name__}"] += 1
            return False
        self.done[name] += 1
        return True

    def worker(self, draw: random.Random) -> psutil.Process:
        """One that holds a slot, with a run or without."""
        owners = sorted(taken_slots(self.store.url).values(), key=lambda owner: owner.pid)
        if not owners:
            raise psutil.NoSuchProcess(0)
        return psutil.Process(draw.choice(owners).pid)

    def call(self, *verbs: Sequence[str], kill_after_s: float | None = None) -> None:
        """`mrnlab` with these arguments, all at once, each a process."""
        program = [sys.executable, "-c", "from jobs.cli import main; main()"]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": ROOT}
        for process in [subprocess.Popen([*program, *verb], text=True, **options) for verb in verbs]:
            try:
                printed, _ = process.communicate(timeout=kill_after_s or PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
            if process.returncode not in (0, 1, 2) and kill_after_s is None:
                self.crashed.append(f"{process.args!r}: exit status {process.returncode}\n{printed}")

    def look(self) -> None:
        """What an open page does; and what has ended is resumed, or put away."""
        self._maintenance.maintain()
        runs = self.store.runs()
        ended = [run for run in runs if run.state in (RunState.FAILED, RunState.CANCELLED, RunState.LOST)]
        self.failures.update(run.error.type if run.error is not None else run.state.value for run in ended)
        control.resume(self.store, [run.id for run in ended], self.engine)
        control.archive(self.store, [run.id for run in runs if run.state is RunState.SUCCEEDED])
        first: dict[RunConfig, Run] = {}
        for run in reversed(runs):  # `--reuse` queues a second only where the first had stopped or failed
            before = first.setdefault(run.config, run)
            kinds = {event.kind for event in self.store.events(before.id) if event.time <= run.created_at}
            if before is not run and kinds.isdisjoint({"failed", "cancelled", "lost"}):
                self.again.add(run.id)

    def reopen(self) -> None:
        """The queue goes on where a verb has left it paused."""
        self.store.unpause_queue()
        for host in self.store.drained():
            self.store.undrain(host)

    def launch(self, draw: random.Random) -> None:
        """A run that is missing, from two processes at once: one of them queues it."""
        under_way = {run.config for run in self.store.runs()}
        missing = [verb for config, verb in self.launches.items() if config not in under_way]
        if missing and self.store.counts()[RunState.QUEUED] < AT_ONCE:
            self.call(*[draw.choice(missing)] * 2)


Fault = Callable[[Soak, random.Random], None]


def kill_worker(soak: Soak, draw: random.Random) -> None:
    soak.worker(draw).kill()


def kill_supervisor(soak: Soak, draw: random.Random) -> None:
    for watcher in watchers(soak.worker(draw).pid):
        watcher.kill()


def kill_both(soak: Soak, draw: random.Random) -> None:
    worker = soak.worker(draw)
    for process in (*watchers(worker.pid), worker):
        process.kill()


def terminate_worker(soak: Soak, draw: random.Random) -> None:
    soak.worker(draw).terminate()


def stop_for_a_while(soak: Soak, draw: random.Random) -> None:
    """SIGSTOP and SIGCONT, to a worker or its supervisor."""
    worker = soak.worker(draw)
    process = draw.choice([worker, *watchers(worker.pid)])
    process.suspend()
    time.sleep(soak.hold_s)
    process.resume()


def stop_for_good(soak: Soak, draw: random.Random) -> None:
    soak.worker(draw).suspend()


def lock_store(soak: Soak, _draw: random.Random) -> None:
    assert soak.store.file is not None
    with closing(sqlite3.connect(soak.store.file, timeout=3.0, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(soak.hold_s)
        connection.execute("ROLLBACK")


def fill_disk(soak: Soak, _draw: random.Random) -> None:
    assert soak.disk is not None
    with suppress(OSError):  # others write too, so that it is full a little sooner
        fill(soak.disk)
    time.sleep(soak.hold_s)
    (soak.disk / "ballast").unlink(missing_ok=True)


def call_verbs(soak: Soak, draw: random.Random) -> None:
    """Two of those that change runs and two of those that read them, all at once."""
    run = str(draw.choice([run.id for run in soak.store.runs()] or [1]))
    changes = [
        *(("stop", run), ("resume", run), ("retry", run), ("priority", str(draw.randint(-9, 9)), run)),
        *(("doctor", "--fix"), ("queue", "drain", "--now"), ("queue", "pause")),
        ("keyword", run, "--add", f"k{draw.randint(1, 9)}"),
    ]
    reads = [("runs", "--json"), ("show", run), ("results",), ("queue", "--json"), ("metrics", run, "loss")]
    soak.call(*draw.sample(changes, AT_ONCE), *draw.sample(reads, AT_ONCE))
    soak.call(("queue", "resume"), ("queue", "undrain"))


def kill_verb(soak: Soak, draw: random.Random) -> None:
    """In the middle of a launch."""
    soak.call(draw.choice(list(soak.launches.values())), kill_after_s=draw.uniform(0.5, 2.5))


FAULTS: tuple[Fault, ...] = (
    *(kill_worker, kill_supervisor, kill_both, terminate_worker, stop_for_a_while),
    *(lock_store, fill_disk, call_verbs, kill_verb, stop_for_good),
)


def disturb(soak: Soak, faults: Sequence[Fault], draw: random.Random, seconds: float) -> None:
    """Faults at random for so long, two at a time; where that is 0, each once in order."""
    left = list(faults)
    began = next_fault = time.monotonic()
    going_on: dict[Future[bool], Fault] = {}
    launch: Future[bool] | None = None
    with ThreadPoolExecutor(AT_ONCE + 1) as pool:

        def begin(act: Fault) -> Future[bool]:
            return pool.submit(soak.attempt, act.__name__, partial(act, soak, random.Random(draw.random())))

        while time.monotonic() - began < seconds if seconds else left or going_on:
            for ended in [future for future in going_on if future.done()]:
                fault = going_on.pop(ended)
                left += [] if ended.result() or seconds else [fault]
            soak.attempt("look", soak.look)
            if not going_on:
                soak.attempt("reopen", soak.reopen)
            if launch is None or launch.done():
                launch = begin(Soak.launch)
            is_due = time.monotonic() >= next_fault and len(going_on) < AT_ONCE
            if is_due and (seconds or left) and taken_slots(soak.store.url):
                fault = draw.choice(faults) if seconds else left.pop(0)
                going_on[begin(fault)] = fault
                next_fault = time.monotonic() + (draw.uniform(0.5, 5.0) if seconds else 0.0)
            time.sleep(LOOK_S)


def settled(soak: Soak) -> int:
    """Waits until every run has succeeded; how many have not."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while True:
        soak.attempt("reopen", soak.reopen)
        soak.attempt("look", soak.look)
        unfinished = [run for run in soak.store.runs() if run.state is not RunState.SUCCEEDED]
        if not unfinished or time.monotonic() > deadline:
            return len(unfinished)
        time.sleep(LOOK_S)


def left_over(soak: Soak) -> list[psutil.Process]:
    """The processes of the laboratory that live on although workers have had the time to end."""
    deadline = time.monotonic() + PATIENCE_S
    while soak.engine.live_workers(soak.store) and time.monotonic() < deadline:
        soak.attempt("look", soak.look)
        time.sleep(LOOK_S)
    ours = os.environ["MRNLAB_HOME"]
    every = psutil.process_iter(["environ"])  # None where a process has just ended, or is another user's
    found = [process for process in every if (process.info["environ"] or {}).get("MRNLAB_HOME") == ours]
    return psutil.wait_procs(found, timeout=PATIENCE_S)[1]  # a supervisor ends just after its worker


def main() -> int:
    """The soak, and its exit status."""
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=12.0, help="for how long there are faults")
    parser.add_argument("--seed", type=int, default=1, help="of the draw of the faults")
    options = parser.parse_args()
    settings = SETTINGS | ({"MRNLAB_LINGER_S": "2"} if options.quick else {})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory())).resolve()
        few, shorter = (2, {"epochs": 6}) if options.quick else (None, {})
        configs = [toy_config(folder, **(BASE | run | shorter)) for run in RUNS[:few]]
        with laboratory(folder / "twin", **settings), closing(Store.open()) as twin:
            ids = train_runs(twin, configs, threads=THREADS)
            expected = {config: recorded(twin, run_id) for config, run_id in zip(configs, ids, strict=True)}
        disk: Path | None = None
        try:
            disk = stack.enter_context(small_disk(folder / "disk", DISK_MB))
        except pytest.skip.Exception as error:
            print(error, file=sys.stderr)
        stack.enter_context(laboratory(folder / "disk", **settings))
        store, engine = stack.enter_context(supervised("jobs.worker.loop"))
        verbs = {run: shlex.split(launch_command(run, run.tasks, [run.seed]))[1:] for run in configs}
        soak = Soak(store, engine, disk, {run: [*verb, "--retries", "100"] for run, verb in verbs.items()})
        if options.quick:
            soak.hold_s = 0.5
            store.add_runs(configs[:1], retries=100)  # the other is launched by two processes
        unused = [*([] if disk else [fill_disk]), *([stop_for_good] if options.quick else [])]
        faults = [fault for fault in FAULTS if fault not in unused]
        disturb(soak, faults, random.Random(options.seed), 0 if options.quick else 60 * options.minutes)
        found = Counter(unfinished=settled(soak), crashed=len(soak.crashed))
        for process in (orphans := left_over(soak)):
            print("Left over:", process, process.cmdline(), file=sys.stderr)
            process.kill()
        runs = store.runs(archived=None)
        for run in runs:
            wanted: Rows = {} if run.id in soak.again else expected[run.config]
            found += compared(wanted, recorded(store, run.id))
        found["faults"] = sum(soak.done[fault.__name__] for fault in FAULTS)
        found["runs"], found["orphans"] = len(runs), len(orphans)
        details = {"done": soak.done, "in vain": soak.in_vain, "failures": soak.failures}
        print(json.dumps(details), *soak.crashed, sep="\n", file=sys.stderr)
        print_json({name: found[name] for name in (*COUNTS, *PROBLEMS)})
    return int(any(found[name] for name in PROBLEMS))


if __name__ == "__main__":
    sys.exit(main())
