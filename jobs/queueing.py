"""What holds the queue and what goes first, changed on request and answered in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from core.errors import MRNLabError
from core.plain_text import shortened
from core.store import ACTIVE, RESTARTABLE, RunState, Store
from jobs import control
from jobs.control import Answer
from jobs.engines import Engine, default_engine

__all__ = [
    "MOST_RETRIES",
    "PRIORITIES",
    "drain",
    "move",
    "pause",
    "prioritise",
    "resume_launch",
    "stop_all",
    "stop_launch",
    "undrain",
    "unpause",
]

PRIORITIES = (-1000, 1000)
"""The lowest and the highest priority that a run may be given by hand. Unsaid it is 0."""
MOST_RETRIES = 100
"""How often a run may be resumed by itself: one that dies oftener wants a look."""

_STOPPABLE = ACTIVE - {RunState.CANCELLING}


def pause(store: Store) -> list[Answer]:
    """No waiting run starts from now on."""
    store.pause_queue()
    return [_whole("The queue is paused. What trains goes on; what waits starts when you resume the queue.")]


def unpause(store: Store, engine: Engine | None = None) -> list[Answer]:
    """Waiting runs start again."""
    store.unpause_queue()
    (engine or default_engine()).ensure_workers(store)
    return [_whole("The queue goes on.")]


def drain(store: Store, host: str, *, now: bool = False) -> list[Answer]:
    """A machine takes no more runs. What it trains goes on, or with `now` is saved and waits for another."""
    _check_host(host)
    store.drain(host, now=now)
    if now:
        return [_whole(f"{host} takes no more runs; what it trains is saved and waits again.")]
    return [_whole(f"{host} takes no more runs; what it trains goes on to its end.")]


def undrain(store: Store, host: str, engine: Engine | None = None) -> list[Answer]:
    """A machine takes runs again."""
    _check_host(host)
    store.undrain(host)
    (engine or default_engine()).ensure_workers(store)
    return [_whole(f"{host} takes runs again.")]


def stop_all(store: Store, ids: Collection[int]) -> list[Answer]:
    """Stops many runs at once; those that have ended meanwhile are left as they are."""
    words = {
        RunState.CANCELLED: "was waiting and is cancelled",
        RunState.CANCELLING: "stops at its next step",
    }
    asked = store.request_stops(ids)
    return [Answer(run_id, True, f"Run {run_id} {words[state]}.") for run_id, state in sorted(asked.items())]


def stop_launch(store: Store, name: str) -> list[Answer]:
    """Stops every run of a launch that trains or waits."""
    with store.transaction():  # none of it is claimed or queued again meanwhile
        return stop_all(store, store.launched(name, _STOPPABLE))


def resume_launch(store: Store, name: str, engine: Engine | None = None) -> list[Answer]:
    """Resumes every run of a launch that was lost or stopped."""
    with store.transaction():  # a thousand runs are one change, not a thousand
        return control.resume(store, store.launched(name, RESTARTABLE - {RunState.FAILED}), engine)


def prioritise(store: Store, ids: Collection[int], priority: int) -> list[Answer]:
    """Gives these runs a priority: higher ones start first."""
    with store.transaction():
        store.set_priority(ids, priority)
        there = {run.id for run in store.runs(ids, with_facts=False)}
    return [
        Answer(run_id, True, f"Run {run_id} has priority {priority}.")
        if run_id in there
        else Answer(run_id, False, f"There is no run {run_id}.")
        for run_id in ids
    ]


def move(store: Store, ids: Iterable[int], by: int) -> list[Answer]:
    """Raises (or lowers) the priority of those of the runs that wait."""
    waiting = [run for run in store.runs(list(ids), with_facts=False) if run.state is RunState.QUEUED]
    levels: dict[int, list[int]] = {}
    for run in waiting:
        least, most = PRIORITIES
        levels.setdefault(min(most, max(least, run.priority + by)), []).append(run.id)
    with store.transaction():
        return [answer for level, some in levels.items() for answer in prioritise(store, some, level)]


def _check_host(name: str) -> None:
    """Raises MRNLabError where no machine can have that name (RFC 1123, and `_`, which some have)."""
    if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,253}", name):
        raise MRNLabError(
            f"'{shortened(name)}' is not the name of a machine; `mrnlab queue` lists those that train."
        )


def _whole(message: str) -> Answer:
    """An answer about no single run."""
    return Answer(0, True, message)
