"""A run's moves from state to state: each a conditional UPDATE that obeys the table MOVES."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from core.errors import IllegalMove, LossCause, RunNotFound
from core.events import RunFacts
from core.store.database import Database
from core.store.facts import read_facts, write_facts
from core.store.schema import OWNER, events, facts, figures, metrics, predictions, runs, scores, snapshots
from core.store.types import ENDED, MOVES, ErrorInfo, Owner, RunState

# The columns of a run that is queued again.
_RESTARTED: dict[str, Any] = {
    **dict.fromkeys(
        (
            *("started_at", "finished_at", "heartbeat_at", "stop_requested_at"),
            *(column.name for column in OWNER),
            *("error_type", "error_message", "error_traceback", "error_exit_code"),
            *("progress_at", "checkpoint", "archived_at", "waiting_for", "engine_job"),
            *("total_steps", "best_epoch", "saved_step"),
        )
    ),
    "step": 0,
    "epoch": 0.0,
    "attempt": runs.c.attempt + 1,
}
# Resumed, it goes on from its saved state, behind the last step that it had made.
_RESUMED = {
    **_RESTARTED,
    **{name: runs.c[name] for name in ("total_steps", "best_epoch", "saved_step")},
    "step": func.coalesce(runs.c.saved_step, 0),
    "epoch": func.coalesce(runs.c.epoch * runs.c.saved_step / func.nullif(runs.c.step, 0), 0.0),
}
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


class Life(Database):
    """The moves of a run: heartbeats, progress, ends, restarts. `Queue.claim` starts them."""

    def _move(
        self, connection: Connection, run_id: int, to: RunState, message: str, values: Mapping[str, Any]
    ) -> None:
        """Moves a run and adds the move to its history.

        Raises RunNotFound, and IllegalMove where MOVES forbids it.
        """
        sources = [state.value for state, moves in MOVES.items() if to in moves]
        values = {"state": to.value, **values}
        if not self.update_runs(connection, [run_id], values, runs.c.state.in_(sources)):
            state = connection.scalar(select(runs.c.state).where(runs.c.id == run_id))
            if state is None:
                raise RunNotFound(run_id)
            raise IllegalMove(run_id, state, to)
        self.insert_event(connection, run_id, to.value, message)

    def _record(self, run_id: int, owner: Owner | None, values: Mapping[str, Any]) -> RunState:
        """Sets columns of a run; its state. Raises RunNotFound, and NotOwner as `guard` does."""
        with self.transaction() as connection:
            state = self.guard(connection, run_id, owner)
            self.update_runs(connection, [run_id], values)
            return state

    def heartbeat(self, run_id: int, owner: Owner, *, moved: bool = False) -> RunState:
        """Records a sign of life; returns the run's state.

        `moved`: training has progressed since the last heartbeat, even where it has no step to show for it
        (it reads its corpus, say). Raises NotOwner where the run is no longer this worker's.
        """
        now = self.now()
        progress = {"progress_at": now} if moved else {}
        return self._record(run_id, owner, {"heartbeat_at": now, **progress})

    def set_progress(
        self, run_id: int, step: int, epoch: float, total_steps: int | None = None, owner: Owner | None = None
    ) -> RunState:
        """Records the progress of training (`epoch` with its fraction); returns the run's state.

        Raises RunNotFound, and NotOwner where `owner` is given and no longer trains it.
        """
        values: dict[str, Any] = {"step": step, "epoch": epoch, "progress_at": self.now()}
        if total_steps is not None:
            values["total_steps"] = total_steps
        return self._record(run_id, owner, values)

    def set_saved_step(self, run_id: int, step: int, owner: Owner | None = None) -> None:
        """Records the step of the newest training state on disk. Raises as `set_progress`."""
        self._record(run_id, owner, {"saved_step": step})

    def place_checkpoint(self, run_id: int, checkpoint: str) -> None:
        """Records the checkpoint folder of an imported run. Raises RunNotFound."""
        self._record(run_id, None, {"checkpoint": checkpoint})

    def set_facts(self, run_id: int, run_facts: RunFacts, owner: Owner | None = None) -> None:
        """Stores the facts that are known when training begins. Raises as `set_progress`."""
        row = {"run_id": run_id, "facts": write_facts(run_facts)}
        with self.transaction() as connection:
            self._record(run_id, owner, {"total_steps": run_facts.total_steps})
            self.insert(connection, facts, [row], replace=True)

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
        values: dict[str, Any] = {"finished_at": self.now()}
        if best_epoch is not None:
            values["best_epoch"] = best_epoch
        if checkpoint is not None:
            values["checkpoint"] = checkpoint
        if error is not None:
            values |= _error_columns(error)
        message = error.message if error is not None else _ENDINGS.get(state, "")
        with self.transaction() as connection:
            before = self.guard(connection, run_id, owner)
            if state not in ENDED:
                raise IllegalMove(run_id, before, state)
            self._move(connection, run_id, state, message, values)
            if error is not None and error.data:
                stored = connection.scalar(select(facts.c.facts).where(facts.c.run_id == run_id))
                run_facts, _ = read_facts(stored or "{}")
                if run_facts is not None:
                    text = write_facts(dataclasses.replace(run_facts, error=dict(error.data)))
                    connection.execute(update(facts).where(facts.c.run_id == run_id).values(facts=text))

    def request_stop(self, run_id: int) -> RunState:
        """Asks a run to stop: a queued one is cancelled at once, a running one at its next step.

        Returns the new state; asking twice is no error. Raises IllegalMove where the run has ended.
        """
        with self.transaction() as connection:
            state = self.guard(connection, run_id, None)
            if state in ENDED:
                raise IllegalMove(run_id, state, "stop")
            return self.request_stops([run_id])[run_id]

    def request_stops(self, ids: Collection[int]) -> dict[int, RunState]:
        """Asks many runs to stop in one transaction; returns the new state of each.

        Runs that have ended and unknown ids are left out.
        """
        now = self.now()
        new_states: dict[int, RunState] = {}
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                rows = connection.execute(select(runs.c.id, runs.c.state).where(runs.c.id.in_(chunk)))
                states = {run_id: RunState(state) for run_id, state in rows}
                new_states |= {id_: state for id_, state in states.items() if state is RunState.CANCELLING}
                for before, after, message in _STOPS:
                    stopped = [run_id for run_id, state in states.items() if state is before]
                    if not stopped:
                        continue
                    values: dict[str, Any] = {"state": after.value, "stop_requested_at": now}
                    if after in ENDED:
                        values["finished_at"] = now
                    self.update_runs(connection, stopped, values)
                    line = {"time": now, "kind": after.value, "message": message}
                    connection.execute(events.insert(), [{"run_id": run_id, **line} for run_id in stopped])
                    new_states |= dict.fromkeys(stopped, after)
        return new_states

    def requeue(self, run_id: int, *, resume: bool = False) -> None:
        """Queues a failed, lost or cancelled run again, from its beginning or to be resumed.

        From its beginning, what the former attempt recorded (metrics, scores, snapshots, predictions, facts)
        is deleted; its history stays. To be resumed, all of that stays too: the worker loads the newest
        training state, steps that it repeats are on record already, and the run's progress is that of the
        saved state. Raises IllegalMove in any other state.
        """
        with self.transaction() as connection:
            state = self.guard(connection, run_id, None)
            message = f"Queued again after it was {state}, to be resumed."
            if not resume:
                message = (
                    f"Queued again after it was {state}: a clean restart, what it had recorded is cleared."
                )
            self._move(connection, run_id, RunState.QUEUED, message, _RESUMED if resume else _RESTARTED)
            for table in () if resume else (metrics, scores, figures, predictions, snapshots, facts):
                connection.execute(delete(table).where(table.c.run_id == run_id))

    def mark_lost(
        self,
        run_id: int,
        message: str,
        *,
        exit_code: int | None = None,
        cause: LossCause = LossCause.PROCESS_ENDED,
    ) -> None:
        """Records that the run's worker has died.

        A run that has retries left is queued again at once, to be resumed. `exit_code` is that of the
        worker's process: the negative number of the signal that ended it. Raises IllegalMove where the run is
        not being trained.
        """
        with self.transaction() as connection:
            state = self.guard(connection, run_id, None)
            error = ErrorInfo(cause.value, message, "", exit_code)
            values = {"finished_at": self.now(), **_error_columns(error)}
            self._move(connection, run_id, RunState.LOST, message, values)
            # A run that was being stopped stays lost: nobody wants it back.
            spent = {"retries": runs.c.retries - 1}
            if state is RunState.RUNNING and self.update_runs(
                connection, [run_id], spent, runs.c.retries > 0
            ):
                self.requeue(run_id, resume=True)


def _error_columns(error: ErrorInfo) -> dict[str, Any]:
    names = ("type", "message", "traceback", "exit_code")
    return {f"error_{name}": getattr(error, name) for name in names}
