"""Runs that wait for nobody, runs that nobody trains, and what workers left behind on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.artefacts import shared_artefacts
from core.paths import own_checkpoint
from core.store import Run, RunState, Store
from jobs.doctor.finding import Finding, Fix, problem, remark
from jobs.engines import Engine
from jobs.engines.slots import clear_slots, stale_slots
from jobs.processes import Fate, fate_of, hostname
from jobs.tending import tend

__all__ = ["abandoned", "cards", "checkpoints_gone", "held_back", "waiting"]

_SHOWN = 10
_SILENT_S = 3 * 3600.0


def _numbers(ids: list[int]) -> str:
    """`run 3`, `runs 3, 4, 7`, and of many the first ones."""
    told = ", ".join(map(str, sorted(ids)[:_SHOWN]))
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return f"run{'s' if len(ids) > 1 else ''} {told}{more}"


def abandoned(store: Store, engine: Engine) -> Iterator[Finding]:
    """Runs said to be trained whose worker is gone. Raises StoreError."""
    states = {RunState.RUNNING, RunState.CANCELLING}
    gone = [run for run in store.runs(states=states, with_facts=False) if _is_gone(store, run)]
    if gone:
        ids = [run.id for run in gone]

        def mark() -> str:
            lost = tend(store, engine)
            return f"Marked as lost: {_numbers(lost)}." if lost else "No run was lost any more."

        yield problem(
            "queue",
            f"The workers of {_numbers(ids)} are gone, and the store still says that they train.",
            Fix("Mark them as lost (those with retries are queued again, to be resumed).", mark),
        )


def _is_gone(store: Store, run: Run) -> bool:
    if run.owner is None:
        return False
    fate = fate_of(run.owner)
    silent = run.heartbeat_at is not None and store.now() - run.heartbeat_at.timestamp() > _SILENT_S
    return fate in (Fate.GONE, Fate.REBOOTED) or (fate is Fate.ELSEWHERE and silent)


def held_back(store: Store) -> Iterator[Finding]:
    """A pause of the queue, and drained machines. Both are somebody's decision."""
    waits = store.counts()[RunState.QUEUED]
    since = store.paused_since()
    if since is not None:
        yield remark(
            "queue",
            f"The queue has been paused since {since:%Y-%m-%d %H:%M} UTC; {waits:,} runs wait. `mrnlab queue "
            "resume` lets them start.",
        )
    for host, from_ in store.drained().items():
        yield remark(
            "queue",
            f"The machine {host} has taken no run since {from_:%Y-%m-%d %H:%M} UTC (it is drained). `mrnlab "
            f"queue undrain --host {host}` lets it.",
        )


def waiting(store: Store, engine: Engine) -> Iterator[Finding]:
    """Runs that could start here, and no worker to train them. Raises MRNLabError."""
    could = store.claimable(hostname())
    if could and not engine.live_workers(store):

        def start() -> str:
            return f"Workers started: {engine.ensure_workers(store)}."

        yield problem(
            "queue",
            f"{could:,} runs are queued and no worker is alive; `mrnlab worker` starts one.",
            Fix("Start workers in the background.", start),
        )


def cards(store: Store) -> Iterator[Finding]:
    """Slots whose worker is gone."""
    stale = stale_slots(store.url)
    if stale:

        def remove() -> str:
            return f"{clear_slots(store.url, stale)} removed."

        yield remark(
            "workers",
            f"{len(stale)} worker(s) of this machine died without taking their name from their slot; that "
            "keeps nobody from it.",
            Fix("Remove the names.", remove),
        )


def checkpoints_gone(store: Store) -> Iterator[Finding]:
    """Runs that succeeded and whose model is neither here nor in the shared place.

    Raises ArtefactError where that cannot be read.
    """
    shared = shared_artefacts()
    fetched = set(shared.names("models/") if shared is not None else ())
    done = store.runs(states={RunState.SUCCEEDED}, archived=None)
    gone = [run.id for run in done if not _is_there(run) and f"models/{run.id}" not in fetched]
    if gone:
        yield remark(
            "checkpoints",
            f"The models of {_numbers(gone)} are not on this machine: these runs can be compared, but not "
            "tag or be exported.",
        )


def _is_there(run: Run) -> bool:
    folder: Path | None = None if run.checkpoint is None else own_checkpoint(run.checkpoint)
    return folder is not None and folder.is_dir()
