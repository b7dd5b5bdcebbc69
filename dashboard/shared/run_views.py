"""Runs as several pages show them, without Streamlit: their progress, one in full, why one waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from core.config import RunConfig
from core.recording.owner import hostname
from core.store import Store
from core.store.types import Run, RunState
from core.wording import duration, plural
from dashboard.theme import order_tasks
from jobs.engines import default_engine
from jobs.queue.estimates import eta
from jobs.worker.slots import standing_still

_LOG_BYTES = 16_384


def fraction_done(run: Run) -> float:
    """The share of training steps that are done, in [0, 1]."""
    if run.state is RunState.SUCCEEDED:
        return 1.0
    return min(1.0, run.step / run.total_steps) if run.total_steps else 0.0


def ended_early(run: Run) -> str:
    """After which epoch patience ended the run, `epoch 12 of 40`; empty where it did not."""
    if run.state is not RunState.SUCCEEDED or not run.total_steps or run.step >= run.total_steps:
        return ""
    return f"epoch {run.epoch:.0f} of {run.config.epochs}"


def tasks_in_order(runs: Sequence[Run]) -> list[str]:
    """All tasks of these runs, in the order that gives them their colours: the oldest sweep first.

    Within a sweep, runs of several tasks come before STL runs: they keep the order that was chosen.
    """
    oldest: dict[str, int] = {}
    for run in sorted(runs, key=lambda run: run.id):
        oldest.setdefault(run.sweep or f"run {run.id}", run.id)

    def place(run: Run) -> tuple[int, int, int]:
        return oldest[run.sweep or f"run {run.id}"], -len(run.config.tasks), run.id

    return order_tasks(run.config.tasks for run in sorted(runs, key=place))


def progress_text(store: Store, run: Run) -> str:
    """How far an active run is and how long it still takes; of a queued one, why it waits."""
    if run.state is RunState.QUEUED:
        return why_it_waits(store, run)
    if run.state is RunState.CANCELLING:
        return "Stopping at the next step"
    if not run.total_steps:
        return f"Preparing data and encoder, {duration(run.seconds)}"
    epoch = min(int(run.epoch) + 1, run.config.epochs)
    left = eta(store, [run]).get(run.id)
    at_most = "at most " if run.config.patience is not None else ""
    rest = f", {at_most}{duration(left)} left" if left is not None else ""
    return f"Step {run.step:,} of {run.total_steps:,}, epoch {epoch} of {run.config.epochs}{rest}"


def log_tail(path: str | Path | None) -> str:
    """The last 16 kB of a worker's log; empty if there is none (yet)."""
    if path is None or not Path(path).is_file():
        return ""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LOG_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return text if size <= _LOG_BYTES else text.partition("\n")[2]


def why_it_waits(store: Store, run: Run) -> str:
    """A sentence on why a queued run does not train yet, and on how it starts."""
    if store.paused_since() is not None:
        return "The queue is paused: it starts when the queue is resumed."
    if run.waiting_for:
        return f"It waits: {run.waiting_for.rstrip('.')}."
    training = {machine.host for machine in store.machines()}
    if store.drained().keys() >= {hostname(), *training}:
        return "Every machine is drained: it starts when one takes runs again."
    if not training and not default_engine().live_workers(store):
        return (
            "No worker is alive: one starts within seconds while a page is open, or by `mrnlab worker` in a "
            "terminal."
        )
    if holders := standing_still(store):
        return f"It waits for a worker. {holders[0]}"
    before = store.ahead_of(run.id)
    if not before:
        return "It starts when a worker is free."
    return f"It waits for a free worker, and {plural(before, 'run')} before it."


def tasks_and_seeds(configs: Collection[RunConfig]) -> str:
    """`3 seeds`, `2 tasks × 3 seeds`."""
    seeds = len({config.seed for config in configs})
    tasks = len({config.tasks for config in configs})
    return f"{tasks} tasks × {plural(seeds, 'seed')}" if tasks > 1 else plural(seeds, "seed")
