"""The queue: what goes first, and what holds it back (a pause of the whole, a drained machine)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, func, select, update

from core.store.overview import OverviewPart
from core.store.rows import NO_TIME, moment
from core.store.states import RunState
from core.store.tables import runs, settings

__all__ = ["QueuePart"]

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
