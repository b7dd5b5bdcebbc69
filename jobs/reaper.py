"""Finds runs whose worker has died, and workers that do not stop when asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from core.store import Owner, Run, RunState, Store
from jobs.processes import is_alive, is_here, kill

__all__ = ["GRACE_S", "reap"]

GRACE_S = 20.0
"""How long a run that was asked to stop may take before its worker is ended by force."""

# A worker on another machine cannot be looked at; its clock may differ, and its line be slow.
_MARGIN_ELSEWHERE_S = 40.0


def reap(
    store: Store,
    *,
    alive: Callable[[Owner], bool] = is_alive,
    here: Callable[[Owner], bool] = is_here,
    end: Callable[[Owner], bool] = kill,
    grace_s: float = GRACE_S,
) -> list[int]:
    """Marks runs as lost whose worker broke its promise of a heartbeat and is gone; their ids.

    On this machine a worker is gone when its process is; elsewhere when it stayed silent for long enough.
    Runs that were asked to stop more than `grace_s` ago have their worker killed and are cancelled.
    Cheap where nothing runs: the dashboard, the command line and the workers all call it.
    """
    now = store.now()
    moment = datetime.fromtimestamp(now, UTC)
    lost = []
    for run in store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False):
        if run.owner is None or run.heartbeat_due is None or run.heartbeat_at is None:
            continue  # cannot be: the table demands an owner of a run in these states
        overdue_s = now - run.heartbeat_due.timestamp()
        on_this_machine = here(run.owner)
        if overdue_s > 0 and (not alive(run.owner) if on_this_machine else overdue_s > _MARGIN_ELSEWHERE_S):
            silent_s = now - run.heartbeat_at.timestamp()
            message = f"The worker of run {run.id} stopped answering {silent_s:.0f} s ago."
            if store.mark_lost(run.id, message, overdue_at=moment):
                lost.append(run.id)
        elif on_this_machine and _overstayed(run, now, grace_s):
            _end_by_force(store, run, end, grace_s)
    return lost


def _overstayed(run: Run, now: float, grace_s: float) -> bool:
    asked = run.stop_requested_at
    return run.state is RunState.CANCELLING and asked is not None and now - asked.timestamp() > grace_s


def _end_by_force(store: Store, run: Run, end: Callable[[Owner], bool], grace_s: float) -> None:
    assert run.owner is not None  # checked by the caller
    # While this lasts the worker cannot finish the run and claim another, which we would then kill.
    with store.transaction():
        current = store.run(run.id)
        if current.state is not RunState.CANCELLING or current.owner != run.owner:
            return
        if not end(run.owner):
            return
        store.add_event(
            run.id,
            "warning",
            f"It had not stopped {grace_s:.0f} s after it was asked to; its worker was killed.",
        )
        store.finish(run.id, RunState.CANCELLED, owner=run.owner)
