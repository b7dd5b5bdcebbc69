"""What the queue does: who works, what waits and why, what holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.recording.owner import hostname
from core.store import Store
from core.store.records import LaunchCounts, Run, RunState
from core.wording import all_of, plural
from jobs.engines import default_engine
from jobs.engines.local import slot_count


@dataclass(frozen=True)
class MachineLine:
    """A machine that trains, or could. `slots` is known of this one alone; `since` and `heard` (its last sign
    of life) are None where it trains nothing; `drained` is since when it takes no run.
    """

    host: str
    is_this: bool
    training: int
    slots: int | None
    since: datetime | None
    heard: datetime | None
    drained: datetime | None


@dataclass(frozen=True)
class LaunchLine:
    """Runs launched together: how they stand in words, and how many can be stopped or resumed."""

    name: str
    words: str
    stoppable: str
    waiting: int
    resumable: int
    priority: int


@dataclass(frozen=True)
class QueueView:
    """The queue as a whole. `paused` is since when nothing starts, None where it goes on."""

    training: int
    waiting: int
    paused: datetime | None
    machines: tuple[MachineLine, ...]

    @property
    def active(self) -> int:
        """How many runs train or wait."""
        return self.training + self.waiting

    @property
    def drained(self) -> tuple[MachineLine, ...]:
        """The machines that take no run."""
        return tuple(one for one in self.machines if one.drained is not None)


def queue_view(store: Store) -> QueueView:
    """The queue now: a statement for each part, however many runs there are."""
    counts = store.counts()
    return QueueView(
        training=counts[RunState.RUNNING] + counts[RunState.CANCELLING],
        waiting=counts[RunState.QUEUED],
        paused=store.paused_since(),
        machines=_machines(store),
    )


def launch_lines(store: Store) -> tuple[LaunchLine, ...]:
    """Launches of which runs train or wait, or were lost, newest first."""
    return tuple(map(_launch, store.launches()))


def _machines(store: Store) -> tuple[MachineLine, ...]:
    """This machine first, then the others that train or are drained."""
    this = hostname()
    trains = {one.host: one for one in store.machines()}
    drained = store.drained()
    hosts = dict.fromkeys((this, *sorted({*trains, *drained})))
    return tuple(
        MachineLine(
            host=host,
            is_this=host == this,
            training=trains[host].training if host in trains else 0,
            slots=slot_count() if host == this else None,
            since=trains[host].since if host in trains else None,
            heard=trains[host].heard if host in trains else None,
            drained=drained.get(host),
        )
        for host in hosts
    )


def parts_told(training: int, waiting: int) -> str:
    """`2 training, 35 waiting`; what there is none of is left out."""
    parts = [f"{training:,} training"] if training else []
    return ", ".join([*parts, *([f"{waiting:,} waiting"] if waiting else [])])


def _launch(launch: LaunchCounts) -> LaunchLine:
    counts = launch.counts
    training, waiting = counts[RunState.RUNNING], counts[RunState.QUEUED]
    ended_badly = [
        f"{counts[state]:,} {state}"
        for state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED)
        if counts[state]
    ]
    parts = [
        f"{counts[RunState.SUCCEEDED]:,} of {sum(counts.values()):,} done",
        parts_told(training + counts[RunState.CANCELLING], waiting),
        *ended_badly,
    ]
    return LaunchLine(
        name=launch.name,
        words=", ".join(filter(None, parts)),
        stoppable=_stoppable(training, waiting),
        waiting=waiting,
        resumable=counts[RunState.LOST] + counts[RunState.CANCELLED],
        priority=launch.priority,
    )


@dataclass(frozen=True)
class StopView:
    """Those of some runs that can be stopped, in words too; and their launch, where more of it can."""

    ids: tuple[int, ...]
    words: str
    launch: LaunchLine | None


def stop_view(store: Store, runs: Sequence[Run]) -> StopView:
    """What stopping these runs would stop."""
    active = [run for run in runs if run.state in (RunState.QUEUED, RunState.RUNNING)]
    training = sum(run.state is RunState.RUNNING for run in active)
    words = _stoppable(training, len(active) - training)
    names = {run.sweep for run in runs}
    launch = None
    if len(names) == 1 and None not in names:
        found = [one for one in store.launches() if one.name in names]
        if found and _stoppable_of(found[0]) > len(active):
            launch = _launch(found[0])
    return StopView(tuple(run.id for run in active), words, launch)


def _stoppable_of(launch: LaunchCounts) -> int:
    return launch.counts[RunState.RUNNING] + launch.counts[RunState.QUEUED]


def _stoppable(training: int, waiting: int) -> str:
    """`37 runs: 2 training, 35 waiting`; the parts only where there are both."""
    if not training + waiting:
        return ""
    parts = f": {parts_told(training, waiting)}" if training and waiting else ""
    return f"{plural(training + waiting, 'run')}{parts}"


def why_it_waits(store: Store, run: Run) -> str:
    """Why a queued run does not train yet, and what will have it start, in a sentence."""
    if store.paused_since() is not None:
        return "The queue is paused: it starts when the queue is resumed."
    if run.waiting_for:
        return f"It waits: {run.waiting_for.rstrip('.')}."
    machines = _machines(store)
    drained = [one.host for one in machines if one.drained is not None]
    if len(drained) == len(machines):
        does = "is drained and takes" if len(drained) == 1 else "are drained and take"
        return f"{all_of(drained)} {does} no run: it starts when a machine takes runs again."
    if not any(one.training for one in machines) and not default_engine().live_workers(store):
        return (
            "No worker is alive: one starts within seconds while a page is open, or by `mrnlab worker` in a "
            "terminal."
        )
    before = store.ahead_of(run.id)
    if not before:
        return "It is next when a worker is free."
    return f"It waits for a free worker, and {plural(before, 'run')} before it."
