"""Runs and the queue as pages show them, without Streamlit: cards, a run in full, machines, launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from core.config import kind_key
from core.paths import own_log
from core.recording.owner import hostname
from core.records import TOTAL
from core.store import Store
from core.store.records import (
    ACTIVE,
    RESTARTABLE,
    LaunchCounts,
    MetricKey,
    Run,
    RunEvent,
    RunState,
    StoredScore,
)
from core.wording import all_of, duration, plural
from dashboard.theme import order_tasks
from jobs.advice import Advice, advice
from jobs.engines import default_engine
from jobs.engines.local import slot_count
from jobs.estimates import eta
from jobs.naming import corpus_name, differing, kind_name, run_name, survival_told

DEV_SCORE = MetricKey(TOTAL, "dev", "score")
_LOG_BYTES = 16_384


@dataclass(frozen=True)
class RunCard:
    """An active run: its progress and ETA in words, its dev score of each epoch."""

    id: int
    name: str
    state: RunState
    done: float
    progress: str
    survival: str
    dev_scores: tuple[float, ...]
    eta: str


@dataclass(frozen=True)
class RunDetail:
    """One run in full."""

    run: Run
    name: str
    advice: Advice | None
    done: float
    progress: str
    survival: str
    scores: tuple[StoredScore, ...]
    events: tuple[RunEvent, ...]
    log: str


def fraction_done(run: Run) -> float:
    """The share of training steps that are done, in [0, 1]."""
    if run.state is RunState.SUCCEEDED:
        return 1.0
    return min(1.0, run.step / run.total_steps) if run.total_steps else 0.0


def tasks_in_order(runs: Sequence[Run]) -> list[str]:
    """All tasks of these runs, in the order that gives them their colours: the oldest launch first.

    Within a launch, runs of several tasks come before STL runs: they keep the order that was chosen.
    """
    oldest: dict[str, int] = {}
    for run in sorted(runs, key=lambda run: run.id):
        oldest.setdefault(run.sweep or f"run {run.id}", run.id)

    def place(run: Run) -> tuple[int, int, int]:
        return oldest[run.sweep or f"run {run.id}"], -len(run.config.tasks), run.id

    return order_tasks(run.config.tasks for run in sorted(runs, key=place))


def cards(store: Store, most_waiting: int) -> list[RunCard]:
    """The runs in training, oldest first; if there are none, those that are next."""
    active = store.runs(states=ACTIVE - {RunState.QUEUED})[::-1]
    if not active:
        due = store.next_queued(most_waiting)
        known = {run.id: run for run in store.runs(due, with_facts=False)}
        active = [known[run_id] for run_id in due if run_id in known]
    series = {s.run_id: s for s in store.metrics([run.id for run in active], DEV_SCORE)} if active else {}
    left = eta(store, active)
    return [
        RunCard(
            id=run.id,
            name=f"{kind_name(run.config)} · {corpus_name(run.config)} · seed {run.config.seed}",
            state=run.state,
            done=fraction_done(run),
            progress=_progress(store, run),
            survival=survival_told(run),
            dev_scores=tuple(series[run.id].value.tolist()) if run.id in series else (),
            eta=f"{duration(left[run.id])} left" if run.id in left else "",
        )
        for run in active
    ]


def _progress(store: Store, run: Run) -> str:
    if run.state is RunState.QUEUED:
        return why_it_waits(store, run)
    if run.state is RunState.CANCELLING:
        return "Stopping at the next step"
    if not run.total_steps:
        return "Preparing data and encoder"
    epoch = min(int(run.epoch) + 1, run.config.epochs)
    return f"Step {run.step:,} of {run.total_steps:,}, epoch {epoch} of {run.config.epochs}"


def detail(store: Store, run_id: int) -> RunDetail:
    """One run with its scores, history and the end of its log."""
    run = store.run(run_id)
    left = eta(store, [run]).get(run.id)
    events = tuple(store.events(run_id))
    return RunDetail(
        run=run,
        name=run_name(run),
        advice=advice(run, events),
        done=fraction_done(run),
        progress=_progress(store, run) + (f", {duration(left)} left" if left is not None else ""),
        survival=survival_told(run) if run.state in ACTIVE else "",
        scores=tuple(store.scores([run_id])),
        events=events,
        log=log_tail(own_log(run.log)),
    )


def log_tail(path: str | Path | None) -> str:
    """The last 16 kB of a worker's log; empty if there is none (yet)."""
    if path is None or not Path(path).is_file():
        return ""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LOG_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return text if size <= _LOG_BYTES else text.partition("\n")[2]


def restartable(runs: Sequence[Run]) -> list[int]:
    """The runs that can be queued again from their beginning."""
    return [run.id for run in runs if run.state in RESTARTABLE]


def resumable(runs: Sequence[Run]) -> list[int]:
    """The runs that can be resumed: a failed one only from a saved state."""
    return [
        run.id
        for run in runs
        if run.state in RESTARTABLE and (run.state is not RunState.FAILED or run.saved_step)
    ]


@dataclass(frozen=True)
class Found:
    """A configuration with its runs, newest first. The STL runs of all tasks count as one configuration."""

    name: str
    corpus: str
    run_ids: tuple[int, ...]
    seeds: int
    newest: datetime


def find(runs: Iterable[Run], matches: Callable[[Run], bool], most: int) -> tuple[list[Found], int]:
    """The first `most` configurations of the matching runs, in their order; and the number of all."""
    groups: dict[str, list[Run]] = {}
    keys: dict[str, str] = {}
    for run in filter(matches, runs):
        if run.configuration_id not in keys:
            keys[run.configuration_id] = kind_key(run.config)
        groups.setdefault(keys[run.configuration_id], []).append(run)
    shown = list(groups.values())[:most]
    names = differing([group[0].config for group in shown])
    return [
        Found(
            name,
            corpus_name(group[0].config),
            tuple(run.id for run in group),
            len({run.config.seed for run in group}),
            max(run.created_at for run in group),
        )
        for name, group in zip(names, shown, strict=True)
    ], len(groups)


@dataclass(frozen=True)
class MachineLine:
    """A machine that trains, or could.

    `slots` is known of this machine only. `since` and `heard` (its last heartbeat) are None if it trains
    nothing; `drained` is None if it takes runs.
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
    """Runs launched together: their states in words, and how many can be stopped or resumed."""

    name: str
    words: str
    stoppable: str
    waiting: int
    resumable: int
    priority: int


@dataclass(frozen=True)
class QueueView:
    """The queue as a whole. `paused` is since when nothing starts, None if it is not paused."""

    training: int
    waiting: int
    paused: datetime | None
    machines: tuple[MachineLine, ...]


def queue_view(store: Store) -> QueueView:
    """The queue now, in a fixed number of statements."""
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
    trains = {machine.host: machine for machine in store.machines()}
    drained = store.drained()
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
        for host in dict.fromkeys((this, *sorted({*trains, *drained})))
    )


def counts_text(training: int, waiting: int) -> str:
    """`2 training, 35 waiting`; a count of zero is left out."""
    parts = ((training, "training"), (waiting, "waiting"))
    return ", ".join(f"{count:,} {word}" for count, word in parts if count)


def _launch(launch: LaunchCounts) -> LaunchLine:
    counts = launch.counts
    training, waiting = counts[RunState.RUNNING], counts[RunState.QUEUED]
    parts = [
        f"{counts[RunState.SUCCEEDED]:,} of {sum(counts.values()):,} done",
        counts_text(training + counts[RunState.CANCELLING], waiting),
        *(
            f"{counts[state]:,} {state}" if counts[state] else ""
            for state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED)
        ),
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
    """The runs that can be stopped, also in words; and their launch, if more of it can be stopped."""

    ids: tuple[int, ...]
    words: str
    launch: LaunchLine | None


def stop_view(store: Store, runs: Sequence[Run]) -> StopView:
    """What stopping these runs would stop."""
    active = [run for run in runs if run.state in (RunState.QUEUED, RunState.RUNNING)]
    training = sum(run.state is RunState.RUNNING for run in active)
    names = {run.sweep for run in runs}
    launches = store.launches() if len(names) == 1 and None not in names else ()
    larger = [
        _launch(launch)
        for launch in launches
        if launch.name in names
        and launch.counts[RunState.RUNNING] + launch.counts[RunState.QUEUED] > len(active)
    ]
    return StopView(
        tuple(run.id for run in active),
        _stoppable(training, len(active) - training),
        larger[0] if larger else None,
    )


def _stoppable(training: int, waiting: int) -> str:
    """`37 runs: 2 training, 35 waiting`; the parts only if both are there."""
    if not training + waiting:
        return ""
    parts = f": {counts_text(training, waiting)}" if training and waiting else ""
    return f"{plural(training + waiting, 'run')}{parts}"


def why_it_waits(store: Store, run: Run) -> str:
    """Why a queued run does not train yet, and what starts it, in a sentence."""
    if store.paused_since() is not None:
        return "The queue is paused: it starts when the queue is resumed."
    if run.waiting_for:
        return f"It waits: {run.waiting_for.rstrip('.')}."
    machines = _machines(store)
    drained = [machine.host for machine in machines if machine.drained is not None]
    if len(drained) == len(machines):
        does = "is drained and takes" if len(drained) == 1 else "are drained and take"
        return f"{all_of(drained)} {does} no run: it starts when a machine takes runs again."
    if not any(machine.training for machine in machines) and not default_engine().live_workers(store):
        return (
            "No worker is alive: one starts within seconds while a page is open, or by `mrnlab worker` in a "
            "terminal."
        )
    before = store.ahead_of(run.id)
    if not before:
        return "It is next when a worker is free."
    return f"It waits for a free worker, and {plural(before, 'run')} before it."
