"""Runs as the pages show them: what runs now, the table, one run in full."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from core.store import Store
from core.store.records import MetricKey, Run, RunEvent, StoredScore
from core.store.states import ACTIVE, RESTARTABLE, RunState
from core.training.events import TOTAL
from dashboard.queries.naming import corpus_name, kind_name, run_name
from dashboard.text import ago, duration
from dashboard.theme import PARADIGM_NAMES, order_tasks
from jobs.estimate import eta

__all__ = [
    "DEV_SCORE",
    "RunCard",
    "RunDetail",
    "RunRow",
    "cards",
    "detail",
    "fraction_done",
    "log_tail",
    "rows",
    "tasks_in_order",
    "what_happened",
]

DEV_SCORE = MetricKey(TOTAL, "dev", "score")
_LOG_BYTES = 16_384


@dataclass(frozen=True)
class RunCard:
    """A run that is queued or running: how far it is, how well it does, how long it will take."""

    id: int
    name: str
    state: RunState
    done: float
    progress: str
    dev_scores: tuple[float, ...]
    eta: str


@dataclass(frozen=True)
class RunRow:
    """One line of the table. Scores are shares in [0, 1]; `dev` is the mean over tasks."""

    id: int
    state: RunState
    corpus: str
    paradigm: str
    tasks: tuple[str, ...]
    encoder: str
    strength: float | None
    seed: int
    done: float
    dev: float | None
    test: Mapping[str, float]
    seconds: float | None
    created_at: datetime
    configuration: str


@dataclass(frozen=True)
class RunDetail:
    """One run in full."""

    run: Run
    name: str
    happened: str | None
    scores: tuple[StoredScore, ...]
    events: tuple[RunEvent, ...]
    log: str


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


def cards(store: Store) -> list[RunCard]:
    """What runs now or waits to, the running first, oldest first."""
    active = sorted(store.runs(states=ACTIVE), key=lambda run: (run.state is RunState.QUEUED, run.id))
    series = {s.run_id: s for s in store.metrics([run.id for run in active], DEV_SCORE)} if active else {}
    left = eta(store, active)
    return [
        RunCard(
            id=run.id,
            name=f"{kind_name(run.config)} · {corpus_name(run.config)} · seed {run.config.seed}",
            state=run.state,
            done=fraction_done(run),
            progress=_progress(run),
            dev_scores=tuple(series[run.id].value.tolist()) if run.id in series else (),
            eta=f"{duration(left[run.id])} left" if run.id in left else "",
        )
        for run in active
    ]


def _progress(run: Run) -> str:
    if run.state is RunState.QUEUED:
        return "Waiting for a free worker"
    if run.state is RunState.CANCELLING:
        return "Stopping at the next step"
    if not run.total_steps:
        return "Preparing data and encoder"
    epoch = min(int(run.epoch) + 1, run.config.epochs)
    return f"Step {run.step:,} of {run.total_steps:,}, epoch {epoch} of {run.config.epochs}"


def rows(store: Store, runs: Sequence[Run]) -> list[RunRow]:
    """The table's lines for these runs, in their order."""
    ids = [run.id for run in runs]
    scores: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for score in store.scores(ids) if ids else ():
        scores[score.run_id, score.split][score.task] = score.score
    latest = store.latest_metrics(ids, DEV_SCORE) if ids else {}
    return [
        RunRow(
            id=run.id,
            state=run.state,
            corpus=corpus_name(run.config),
            paradigm=PARADIGM_NAMES[run.config.paradigm],
            tasks=run.config.tasks,
            encoder=run.config.encoder + (", frozen" if run.config.encoder_training == "frozen" else ""),
            strength=run.config.lambda_,
            seed=run.config.seed,
            done=fraction_done(run),
            dev=_mean(scores.get((run.id, "dev"), {})) or latest.get(run.id),
            test=scores.get((run.id, "test"), {}),
            seconds=run.seconds,
            created_at=run.created_at,
            configuration=run.configuration_id,
        )
        for run in runs
    ]


def _mean(scores: Mapping[str, float]) -> float | None:
    return sum(scores.values()) / len(scores) if scores else None


def detail(store: Store, run_id: int) -> RunDetail:
    """One run with its scores, history and the end of its log."""
    run = store.run(run_id)
    events = tuple(store.events(run_id))
    return RunDetail(
        run=run,
        name=run_name(run),
        happened=what_happened(run),
        scores=tuple(store.scores([run_id])),
        events=events,
        log=log_tail(run.log),
    )


def what_happened(run: Run, now: datetime | None = None) -> str | None:
    """A sentence on a run that did not end well: what happened and what to do next. Plain text."""
    kept = f" Its last checkpoint is at step {run.step:,}." if run.checkpoint and run.step else ""
    if run.state is RunState.LOST:
        seen = ago(run.heartbeat_at, now)
        silent = f"The worker of run {run.id} stopped answering; it was last heard {seen}."
        return f"{silent}{kept} Resume or retry it."
    if run.state is RunState.FAILED:
        cause = run.error.message if run.error else "The worker ended without saying why."
        return f"{cause} Mend the cause, then retry."
    if run.state is RunState.CANCELLED:
        at = f" at step {run.step:,}" if run.step else " before it began"
        return f"Stopped{at}.{kept} Resume or retry it to have its scores."
    return None


def log_tail(path: str | None) -> str:
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
    values = json.loads(run.config.to_json())
    return {
        field: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for field, value in values.items()
        if value is not None
    }


def restartable(runs: Sequence[Run]) -> list[int]:
    """Those of the runs that can be queued again from their beginning."""
    return [run.id for run in runs if run.state in RESTARTABLE]


def resumable(runs: Sequence[Run]) -> list[int]:
    """Those of the runs that can be resumed: a failed one would fail again."""
    return [run.id for run in runs if run.state in RESTARTABLE and run.state is not RunState.FAILED]


def by_configuration(runs: Sequence[Run]) -> list[Run]:
    """Configurations by their newest run, newest first; within each, by seed."""
    newest: dict[str, int] = {}
    for run in runs:
        newest[run.configuration_id] = max(run.id, newest.get(run.configuration_id, 0))
    return sorted(runs, key=lambda run: (-newest[run.configuration_id], run.config.seed, -run.id))
