"""A run's moves from state to state: each a conditional UPDATE that obeys the table MOVES."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from core.errors import IllegalMove, LossCause, RunNotFound
from core.paths import log_path
from core.records import RunFacts
from core.store.base import RUN_COLUMNS, run_of
from core.store.queue import QueuePart
from core.store.records import ENDED, MOVES, ErrorInfo, Owner, Run, RunState
from core.store.schema import events, facts, metrics, predictions, runs, scores, snapshots

# What a queued run has not got yet.
_UNTOUCHED: dict[str, Any] = {
    "started_at": None,
    "finished_at": None,
    "owner_host": None,
    "owner_pid": None,
    "owner_started": None,
    "owner_boot": None,
    "heartbeat_at": None,
    "heartbeat_due": None,
    "stop_requested_at": None,
    "step": 0,
    "total_steps": None,
    "epoch": 0.0,
    "progress_at": None,
    "best_epoch": None,
    "checkpoint": None,
    "error_type": None,
    "error_message": None,
    "error_traceback": None,
    "error_exit_code": None,
    "archived_at": None,
    "waiting_for": None,
    "engine_job": None,
    "saved_step": None,
}
# What a run that is resumed keeps of its former attempt besides all that was recorded.
_KEPT_BY_RESUME = ("total_steps", "best_epoch", "saved_step")
# A resumed run goes on from its saved state, behind the last step that it had made.
_AT_SAVED_STEP: dict[str, Any] = {
    "step": func.coalesce(runs.c.saved_step, 0),
    "epoch": func.coalesce(runs.c.epoch * runs.c.saved_step / func.nullif(runs.c.step, 0), 0.0),
}
# Made once, as it is long; what else changes comes with its parameters.
_TAKE = (
    update(runs)
    .where(runs.c.id == bindparam("queued_id"), runs.c.state == RunState.QUEUED.value)
    .values(revision=runs.c.revision + 1)
    .returning(*RUN_COLUMNS)
)


class LifePart(QueuePart):
    """How runs are claimed, kept alive, ended and started again."""

    def _move(
        self, connection: Connection, run_id: int, to: RunState, message: str, values: dict[str, Any]
    ) -> None:
        """Moves a run and tells it in its history. Raises RunNotFound, IllegalMove where MOVES forbids it."""
        sources = [state.value for state, moves in MOVES.items() if to in moves]
        if not self._change(connection, run_id, {"state": to.value, **values}, runs.c.state.in_(sources)):
            state = connection.scalar(select(runs.c.state).where(runs.c.id == run_id))
            if state is None:
                raise RunNotFound(f"There is no run {run_id}.")
            raise IllegalMove(f"Run {run_id} is {state}; it cannot become {to}.")
        self._tell(connection, run_id, to.value, message)

    def claim(
        self, owner: Owner, due_in: float, *, run_id: int | None = None, engine_job: str | None = None
    ) -> Run | None:
        """Takes the queued run of the highest priority, the oldest of equals, for this worker.

        None where none waits, the queue is paused or this machine drained. With `run_id`, that run or none.
        The first heartbeat is given with the claim: the next is promised in `due_in` seconds. `engine_job`
        is what the scheduler that placed the worker calls it.
        """
        first = select(runs.c.id).where(runs.c.state == RunState.QUEUED.value, ~self._held_back(owner.host))
        first = first.order_by(runs.c.priority.desc(), runs.c.id).limit(1)
        if run_id is not None:
            first = first.where(runs.c.id == run_id)
        # Where the database locks rows, those that another worker is claiming are passed over.
        locked = first.with_for_update(skip_locked=True)
        # Where it has one lock for all, idle workers look in a read first, and never take it.
        if self._file is not None:
            with self.transaction(write=False) as connection:
                if connection.scalar(first) is None:
                    return None
        with self.transaction() as connection:
            run_id = connection.scalar(locked)
            if run_id is None:
                return None
            now = self._clock()
            values = {
                "state": RunState.RUNNING.value,
                "owner_host": owner.host,
                "owner_pid": owner.pid,
                "owner_started": owner.process_started,
                "owner_boot": owner.boot_id,
                "started_at": now,
                "heartbeat_at": now,
                "heartbeat_due": now + due_in,
                "log": str(log_path(run_id)),
                "waiting_for": None,
                "engine_job": engine_job,
            }
            row = connection.execute(_TAKE, {"queued_id": run_id, **values}).one_or_none()
            if row is None:
                return None  # another worker was faster, on a database that locks no rows
            message = f"Started by process {owner.pid} on {owner.host}."
            self._tell(connection, run_id, RunState.RUNNING.value, message)
            return run_of(row)

    def heartbeat(self, run_id: int, owner: Owner, due_in: float, *, moved: bool = False) -> RunState:
        """Says that the worker lives and will say so again within `due_in` seconds; returns the run's state.

        `moved`: its training has got on since the last beat, also where it has no step to show for it (it
        reads its corpus, say). Raises NotOwner where the run is no longer this worker's, and changes nothing
        then.
        """
        now = self._clock()
        values = {"heartbeat_at": now, "heartbeat_due": now + due_in} | (
            {"progress_at": now} if moved else {}
        )
        with self.transaction() as connection:
            state = self._guard(connection, run_id, owner)
            self._change(connection, run_id, values)
        return state

    def set_progress(
        self, run_id: int, step: int, epoch: float, total_steps: int | None, owner: Owner | None = None
    ) -> RunState:
        """How far training is (`epoch` with its fraction); returns the run's state.

        Raises RunNotFound, and NotOwner where an owner is named that no longer trains it.
        """
        values: dict[str, Any] = {"step": step, "epoch": epoch, "progress_at": self._clock()}
        if total_steps is not None:
            values["total_steps"] = total_steps
        with self.transaction() as connection:
            state = self._guard(connection, run_id, owner)
            self._change(connection, run_id, values)
        return state

    def set_saved_step(self, run_id: int, step: int, owner: Owner | None = None) -> None:
        """The step of the newest training state on disk. Raises as `set_progress`."""
        with self.transaction() as connection:
            self._guard(connection, run_id, owner)
            self._change(connection, run_id, {"saved_step": step})

    def set_facts(self, run_id: int, known: RunFacts, owner: Owner | None = None) -> None:
        """What is known when training begins. Raises as `set_progress`."""
        text = json.dumps(dataclasses.asdict(known), ensure_ascii=False)
        with self.transaction() as connection:
            self._guard(connection, run_id, owner)
            self._upsert(connection, facts, [{"run_id": run_id, "facts": text}], replace=True)
            self._change(connection, run_id, {"total_steps": known.total_steps})

    def finish(
        self,
        run_id: int,
        state: RunState,
        *,
        error: ErrorInfo | None = None,
        best_epoch: int | None = None,
        checkpoint: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Ends a run as succeeded, failed, cancelled or lost.

        Raises IllegalMove where its life has no such move, NotOwner where `owner` no longer trains it.
        """
        if state not in ENDED:
            raise IllegalMove(f"Run {run_id} cannot end as {state}.")
        values: dict[str, Any] = {"finished_at": self._clock()}
        if best_epoch is not None:
            values["best_epoch"] = best_epoch
        if checkpoint is not None:
            values["checkpoint"] = checkpoint
        if error is not None:
            values |= {
                "error_type": error.type,
                "error_message": error.message,
                "error_traceback": error.traceback,
                "error_exit_code": error.exit_code,
            }
        message = error.message if error is not None else _ENDINGS[state]
        with self.transaction() as connection:
            if owner is not None:
                self._guard(connection, run_id, owner)
            self._move(connection, run_id, state, message, values)
            if error is not None and error.data:
                stored = connection.scalar(select(facts.c.facts).where(facts.c.run_id == run_id))
                if stored is not None:
                    known = {**json.loads(stored), "error": dict(error.data)}
                    text = json.dumps(known, ensure_ascii=False)
                    connection.execute(update(facts).where(facts.c.run_id == run_id).values(facts=text))

    def request_stop(self, run_id: int) -> RunState:
        """Asks a run to stop: a queued one is cancelled at once, a running one at its next step.

        Returns the new state; asking twice is no error. Raises IllegalMove where the run has ended.
        """
        with self.transaction() as connection:
            state = self._guard(connection, run_id, None)
            if state in ENDED:
                raise IllegalMove(f"Run {run_id} has already ended ({state}); there is nothing to stop.")
            return self.request_stops([run_id])[run_id]

    def request_stops(self, ids: Collection[int]) -> dict[int, RunState]:
        """The same for many runs, all in one transaction: the new state of each.

        Those that have ended, and those that there are not, are left out.
        """
        now = self._clock()
        asked: dict[int, RunState] = {}
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                found = select(runs.c.id, runs.c.state).where(runs.c.id.in_(some))
                states = {row[0]: RunState(row[1]) for row in connection.execute(found)}
                asked |= {one: state for one, state in states.items() if state is RunState.CANCELLING}
                for before, after, message in _STOPS:
                    those = [run_id for run_id, state in states.items() if state is before]
                    if not those:
                        continue
                    values: dict[str, Any] = {"state": after.value, "stop_requested_at": now}
                    if after in ENDED:
                        values["finished_at"] = now
                    changed = update(runs).where(runs.c.id.in_(those))
                    connection.execute(changed.values(**values, revision=runs.c.revision + 1))
                    told = {"time": now, "kind": after.value, "message": message}
                    connection.execute(events.insert(), [{"run_id": one, **told} for one in those])
                    asked |= dict.fromkeys(those, after)
        return asked

    def requeue(self, run_id: int, *, resume: bool = False) -> None:
        """Queues a failed, lost or cancelled run again.

        From its beginning: what the former attempt recorded (metrics, scores, snapshots, predictions, facts)
        is cleared; its history stays. To resume it, all of that stays too, for the worker takes up the
        newest training state, and steps that it makes again are on record already; its progress is that of
        the saved state.
        Raises IllegalMove in any other state.
        """
        with self.transaction() as connection:
            state = self._guard(connection, run_id, None)
            values = {**_UNTOUCHED, "attempt": runs.c.attempt + 1}
            if resume:
                values = {name: value for name, value in values.items() if name not in _KEPT_BY_RESUME}
                values |= _AT_SAVED_STEP
                message = f"Queued again after it was {state}, to be resumed."
            else:
                message = (
                    f"Queued again after it was {state}: a clean restart, what it had recorded is cleared."
                )
            self._move(connection, run_id, RunState.QUEUED, message, values)
            for table in () if resume else (metrics, scores, predictions, snapshots, facts):
                connection.execute(delete(table).where(table.c.run_id == run_id))

    def mark_lost(
        self,
        run_id: int,
        message: str,
        *,
        overdue_at: datetime | None = None,
        exit_code: int | None = None,
        cause: LossCause = LossCause.PROCESS_ENDED,
    ) -> bool:
        """Says that the run's worker has died; returns whether the run was moved.

        A run that has retries left is queued again at once, to be resumed. `exit_code` is that of the
        worker's process, the negative number of the signal that ended it.

        With `overdue_at`, only where the promised heartbeat is still older than that moment: a worker that
        spoke in the meantime keeps its run. Raises IllegalMove where the run is not being trained.
        """
        with self.transaction() as connection:
            state = self._guard(connection, run_id, None)
            if overdue_at is not None:
                due = connection.scalar(select(runs.c.heartbeat_due).where(runs.c.id == run_id))
                if state in ENDED or due is None or due >= overdue_at.timestamp():
                    return False
            values = {
                "finished_at": self._clock(),
                "error_type": cause.value,
                "error_message": message,
                "error_traceback": "",
                "error_exit_code": exit_code,
            }
            self._move(connection, run_id, RunState.LOST, message, values)
            # One whose stop was asked for stays where it is: nobody wants it back.
            if state is RunState.RUNNING and self._spend_retry(connection, run_id):
                self.requeue(run_id, resume=True)
            return True

    def _spend_retry(self, connection: Connection, run_id: int) -> bool:
        """Takes one of the run's retries; False where none is left."""
        left = {"retries": runs.c.retries - 1}
        return self._change(connection, run_id, left, runs.c.retries > 0) > 0


_STOPS = (
    (RunState.QUEUED, RunState.CANCELLED, "Stopped before it began."),
    (RunState.RUNNING, RunState.CANCELLING, "Asked to stop."),
)
_ENDINGS = {
    RunState.SUCCEEDED: "Succeeded.",
    RunState.FAILED: "Failed.",
    RunState.CANCELLED: "Stopped.",
    RunState.LOST: "Its worker died.",
}
