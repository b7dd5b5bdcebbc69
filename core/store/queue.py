"""The queue: what goes first, and what holds it back (a pause of the whole, a drained machine)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, case, delete, exists, func, or_, select, update

from core.store.base import NO_TIME, StoreBase, moment
from core.store.records import ACTIVE, LaunchCounts, Machine, RunState
from core.store.schema import runs, settings

# What goes on, counted by the database: machines that train, launches under way, what goes before a run.


class OverviewPart(StoreBase):
    """Counts of what goes on, each from one statement."""

    def machines(self) -> list[Machine]:
        """The machines that train now, in the order of their names."""
        columns = (
            runs.c.owner_host,
            func.count(),
            func.min(runs.c.started_at),
            func.max(runs.c.heartbeat_at),
        )
        trained = runs.c.state.in_([RunState.RUNNING.value, RunState.CANCELLING.value])
        statement = select(*columns).where(trained).group_by(runs.c.owner_host).order_by(runs.c.owner_host)
        with self.transaction(write=False) as connection:
            return [
                Machine(host, count, moment(since) or NO_TIME, moment(heard) or NO_TIME)
                for host, count, since, heard in connection.execute(statement)
            ]

    def launches(self) -> list[LaunchCounts]:
        """Launches of which runs train or wait, or were lost: newest first, archived runs left out."""
        going_on = [state.value for state in (*ACTIVE, RunState.LOST)]
        named = select(runs.c.sweep).where(
            runs.c.state.in_(going_on), runs.c.sweep.is_not(None), runs.c.archived_at.is_(None)
        )
        waiting = case((runs.c.state == RunState.QUEUED.value, runs.c.priority))
        statement = (
            select(runs.c.sweep, runs.c.state, func.count(), func.max(runs.c.id), func.max(waiting))
            .where(runs.c.sweep.in_(named), runs.c.archived_at.is_(None))
            .group_by(runs.c.sweep, runs.c.state)
        )
        counts: dict[str, dict[RunState, int]] = {}
        newest: dict[str, int] = {}
        priority: dict[str, int] = {}
        with self.transaction(write=False) as connection:
            for sweep, state, count, last, highest in connection.execute(statement):
                counts.setdefault(sweep, dict.fromkeys(RunState, 0))[RunState(state)] = count
                newest[sweep] = max(last, newest.get(sweep, 0))
                priority[sweep] = highest or priority.get(sweep, 0)
        found = [LaunchCounts(name, newest[name], counts[name], priority[name]) for name in counts]
        return sorted(found, key=lambda one: -one.newest)

    def launched(self, name: str, states: Collection[RunState]) -> list[int]:
        """The numbers of the runs in these states that were launched together under that name, in order."""
        wanted = [state.value for state in states]
        statement = (
            select(runs.c.id).where(runs.c.sweep == name, runs.c.state.in_(wanted)).order_by(runs.c.id)
        )
        with self.transaction(write=False) as connection:
            return list(connection.scalars(statement.where(runs.c.archived_at.is_(None))))

    def next_queued(self, limit: int) -> list[int]:
        """The numbers of the queued runs that are claimed next, in that order."""
        waiting = select(runs.c.id).where(runs.c.state == RunState.QUEUED.value)
        statement = waiting.order_by(runs.c.priority.desc(), runs.c.id).limit(limit)
        with self.transaction(write=False) as connection:
            return list(connection.scalars(statement))

    def ahead_of(self, run_id: int) -> int:
        """How many queued runs are claimed before that one; 0 where it does not wait."""
        own = select(runs.c.priority).where(runs.c.id == run_id, runs.c.state == RunState.QUEUED.value)
        mine = own.scalar_subquery()
        sooner = or_(runs.c.priority > mine, (runs.c.priority == mine) & (runs.c.id < run_id))
        statement = select(func.count()).where(runs.c.state == RunState.QUEUED.value, sooner)
        with self.transaction(write=False) as connection:
            return connection.scalar(statement) or 0


_PAUSED = "queue paused"
_DRAINED = "drained machine "
_SCHEDULER = "scheduler "
_NOW = "now"


class QueuePart(OverviewPart):
    """What decides which queued run is claimed next, and whether any is."""

    def pause_queue(self) -> None:
        """No worker claims a run from now on; what is being trained goes on. Twice is no error."""
        self._note(_PAUSED)

    def unpause_queue(self) -> None:
        """Workers claim runs again. (`resume` is what runs do.)"""
        self._forget(_PAUSED)

    def paused_since(self) -> datetime | None:
        """Since when the queue has been paused; None where it is not."""
        return self._noted(_PAUSED).get(_PAUSED)

    def drain(self, host: str, *, now: bool = False) -> None:
        """No worker on that machine claims a run from now on; what it trains goes on. Twice is no error.

        `now`: what it trains shall not go on there either (`evicted`).
        """
        self._note(_DRAINED + host, _NOW if now else "")

    def evicted(self, host: str) -> bool:
        """Whether workers on that machine shall hand back even what they train."""
        statement = select(settings.c.value).where(settings.c.name == _DRAINED + host)
        with self.transaction(write=False) as connection:
            return connection.scalar(statement) == _NOW

    def undrain(self, host: str) -> None:
        """Workers on that machine claim runs again."""
        self._forget(_DRAINED + host)

    def drained(self) -> dict[str, datetime]:
        """The machines that take no run, and since when."""
        return {
            name.removeprefix(_DRAINED): since
            for name, since in self._noted().items()
            if name.startswith(_DRAINED)
        }

    def note_scheduler(self, name: str) -> None:
        """A scheduler that places runs on other machines says that it looks after the queue now."""
        self._note(_SCHEDULER + name, "here")

    def scheduler_seen(self, name: str) -> datetime | None:
        """When that scheduler last said so; None where it never has."""
        return self._noted(_SCHEDULER + name).get(_SCHEDULER + name)

    def claimable(self, host: str) -> int:
        """How many queued runs a worker on that machine might claim: none where something holds it back."""
        queued = (runs.c.state == RunState.QUEUED.value, ~self._held_back(host))
        with self.transaction(write=False) as connection:
            return connection.scalar(select(func.count()).select_from(runs).where(*queued)) or 0

    def set_priority(self, ids: Collection[int], priority: int) -> None:
        """How soon these runs are claimed: higher priorities first. Unknown ids are passed over."""
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                changed = {"priority": priority, "revision": runs.c.revision + 1}
                connection.execute(update(runs).where(runs.c.id.in_(some)).values(**changed))

    def set_waiting_for(self, reasons: Mapping[int, str | None]) -> None:
        """Why queued runs do not start yet, in words; None where nothing holds them.

        Runs that are not queued (any more) are passed over.
        """
        with self.transaction() as connection:
            for some in self._held(connection, reasons):
                by_reason: dict[str | None, list[int]] = {}
                for run_id in some:
                    by_reason.setdefault(reasons[run_id], []).append(run_id)
                for reason, ids in by_reason.items():
                    waits = (
                        runs.c.state == RunState.QUEUED.value,
                        runs.c.waiting_for.is_distinct_from(reason),
                    )
                    changed = {"waiting_for": reason, "revision": runs.c.revision + 1}
                    connection.execute(update(runs).where(runs.c.id.in_(ids), *waits).values(**changed))

    @staticmethod
    def _held_back(host: str) -> ColumnElement[bool]:
        """Whether workers on that machine may claim nothing now."""
        return exists().where(settings.c.name.in_((_PAUSED, _DRAINED + host)))

    def _note(self, name: str, value: str = "") -> None:
        with self.transaction() as connection:
            row = {"name": name, "value": value, "changed_at": self._clock()}
            self._upsert(connection, settings, [row], replace=bool(value))

    def _forget(self, name: str) -> None:
        with self.transaction() as connection:
            connection.execute(delete(settings).where(settings.c.name == name))

    def _noted(self, name: str | None = None) -> dict[str, datetime]:
        statement = select(settings.c.name, settings.c.changed_at)
        if name is not None:
            statement = statement.where(settings.c.name == name)
        with self.transaction(write=False) as connection:
            return {row[0]: moment(row[1]) or NO_TIME for row in connection.execute(statement)}
