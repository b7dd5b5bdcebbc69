"""What goes on, counted by the database: machines that train, launches under way, what goes before a run."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import case, func, or_, select

from core.store.base import StoreBase
from core.store.records import LaunchCounts, Machine
from core.store.rows import NO_TIME, moment
from core.store.states import ACTIVE, RunState
from core.store.tables import runs

__all__ = ["OverviewPart"]


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
