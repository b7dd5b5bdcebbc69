"""Runs as the pages show them: what runs now, and one run in full."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.paths import own_log
from core.records import TOTAL
from core.store import Store
from core.store.records import ACTIVE, RESTARTABLE, MetricKey, Run, RunEvent, RunState, StoredScore
from core.wording import duration
from dashboard.shared.queue_views import why_it_waits
from dashboard.theme import order_tasks
from jobs.advice import Advice, advice
from jobs.estimates import eta
from jobs.naming import corpus_name, kind_name, run_name
from jobs.wording import survival_told

DEV_SCORE = MetricKey(TOTAL, "dev", "score")
_LOG_BYTES = 16_384


@dataclass(frozen=True)
class RunCard:
    """A run that is queued or running: how far it is, what it would keep, how well it does, how long it will
    take.
    """

    id: int
    name: str
    state: RunState
    done: float
    progress: str
    survival: str
    dev_scores: tuple[float, ...]
    eta: str


@dataclass(frozen=True)
class DataFacts:
    """What one task's data hold for this run. `unseen` are labels that training never shows, by split."""

    task: str
    labels: int
    scheme: str
    sentences: int
    words: int
    unseen: str


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
    data: tuple[DataFacts, ...]


def fraction_done(run: Run) -> float:
    """How much of the training is done, in [0, 1]."""
    if run.state is RunState.SUCCEEDED:
        return 1.0
    return min(1.0, run.step / run.total_steps) if run.total_steps else 0.0


def tasks_in_order(runs: Sequence[Run]) -> list[str]:
    """Every task of these runs, oldest run first: the order that gives tasks their colours.

    Runs of several tasks come before STL runs of the same launch, since they give the order as it was chosen.
    """
    oldest_first = sorted(runs, key=lambda run: (run.sweep or "", run.id))
    by_launch: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(oldest_first, key=lambda run: run.id):
        by_launch[run.sweep or f"run {run.id}"].append(run)
    groups = (sorted(launch, key=lambda run: -len(run.config.tasks)) for launch in by_launch.values())
    return order_tasks(run.config.tasks for launch in groups for run in launch)


def cards(store: Store, most_waiting: int) -> list[RunCard]:
    """What trains now, oldest first; where nothing does, those that are next."""
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
        data=tuple(_data(task) for task in run.facts.get("tasks", ())),
    )


def _data(task: Mapping[str, Any]) -> DataFacts:
    return DataFacts(
        task=task["name"],
        labels=len(task["labels"]),
        scheme=task["scheme"],
        sentences=task["train_sentences"],
        words=task["train_tokens"],
        unseen="; ".join(f"{', '.join(labels)} in {split}" for split, labels in task["unseen"].items()),
    )


def log_tail(path: str | Path | None) -> str:
    """The last lines of a worker's log, empty where there is none (yet)."""
    if path is None or not Path(path).is_file():
        return ""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LOG_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return text if size <= _LOG_BYTES else text.partition("\n")[2]


def configuration_fields(run: Run) -> dict[str, str]:
    """The configuration's fields that this run has, as text."""
    values = run.config.values()
    return {
        field: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for field, value in values.items()
        if value is not None
    }


def restartable(runs: Sequence[Run]) -> list[int]:
    """Those of the runs that can be queued again from their beginning."""
    return [run.id for run in runs if run.state in RESTARTABLE]


def resumable(runs: Sequence[Run]) -> list[int]:
    """Those of the runs that can be resumed: a failed one only from a saved state."""
    return [
        run.id
        for run in runs
        if run.state in RESTARTABLE and (run.state is not RunState.FAILED or run.saved_step)
    ]
