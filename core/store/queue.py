"""The queue: the next run to claim, the pause and drained machines that hold runs back, and counts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from core.paths import log_path
from core.store.database import Database
from core.store.runs import datetime_of, run_of
from core.store.schema import IS_KEPT, OWNER, runs, settings
from core.store.types import Machine, Owner, Run, RunState

_PAUSED = "queue paused"
_DRAINED = "drained machine "
_SCHEDULER = "scheduler "
_PLACES = "places of tasks"
_SLOTS = "slots "
_NOW = "now"
# As that of migrations: any number that no other program on the same database would use.
_LOCK = 0x4D524E51  # "MRNQ"
_IS_QUEUED = and_(runs.c.state == RunState.QUEUED.value, IS_KEPT)
_TRAINED = (RunState.RUNNING.value, RunState.CANCELLING.value)
_CLAIM_ORDER = (runs.c.priority.desc(), runs.c.id)
# Built once, as it is long; the other columns that it sets come with its parameters.
_TAKE = (
    update(runs)
    .where(runs.c.id == bindparam("queued_id"), _IS_QUEUED)
    .values(revision=runs.c.revision + 1)
    .returning(runs)
)


class Queue(Database):
    """Claims, priorities, counts of runs, and settings of the whole store."""

    @contextmanager
    def queueing_alone(self) -> Iterator[None]:
        """Opens a transaction for one process at a time, so that a missing run is added once.

        Runs are still claimed and trained meanwhile, on a server. Raises StoreError.
        """
        with self.transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            yield

    def claim(
        self,
        owner: Owner,
        *,
        run_id: int | None = None,
        engine_job: str | None = None,
        cores: int | None = None,
    ) -> Run | None:
        """Takes the queued run of the highest priority, the oldest of equals, for this worker.

        None where none waits, the queue is paused or this machine drained. With `run_id`, that run or none.
        The claim is the first heartbeat. `engine_job` is what the scheduler that placed the worker calls it.
        With `cores`, the runs that this machine trains share so many: None also where the first run does not
        fit beside them (`fitting`).
        """
        first = select(runs.c.id, runs.c.threads, runs.c.attempt).where(_IS_QUEUED, ~_held_back(owner.host))
        first = first.order_by(*_CLAIM_ORDER).limit(1)
        if run_id is not None:
            first = first.where(runs.c.id == run_id)

        def chosen(connection: Connection, statement: Select[Any]) -> Row[Any] | None:
            row = connection.execute(statement).one_or_none()
            if row is None or cores is None or self._fitting(connection, owner.host, cores, [row]):
                return row
            return None

        if self.file is not None:
            # SQLite has one lock for all: idle workers look in a read first, and never take it.
            with self.transaction(write=False) as connection:
                if chosen(connection, first) is None:
                    return None
        with self.transaction() as connection:
            if cores is not None and connection.dialect.name == "postgresql":
                # Workers of one machine, one after another: two at once would not see each other's threads.
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK, func.hashtext(owner.host))))
            # PostgreSQL locks rows: those that another worker is claiming are skipped.
            taken = chosen(connection, first.with_for_update(skip_locked=True))
            if taken is None:
                return None
            run_id, threads = taken.id, taken.threads
            if cores is not None:
                threads = _granted(taken, cores, self.chosen_slots(owner.host))
            now = self.now()
            values: dict[str, Any] = {
                "state": RunState.RUNNING.value,
                **dict(zip((column.name for column in OWNER), astuple(owner), strict=True)),
                "started_at": now,
                "heartbeat_at": now,
                "log": str(log_path(run_id)),
                "waiting_for": None,
                "engine_job": engine_job,
                "threads": threads,
            }
            row = connection.execute(_TAKE, {"queued_id": run_id, **values}).one_or_none()
            if row is None:
                return None  # another worker was faster, on a database that locks no rows
            message = f"Started by process {owner.pid} on {owner.host}."
            self.insert_event(connection, run_id, RunState.RUNNING.value, message)
            return run_of(row)

    def set_priority(self, ids: Collection[int], priority: int) -> None:
        """Sets the priority of runs: higher ones are claimed first. Unknown ids are passed over."""
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                self.update_runs(connection, chunk, {"priority": priority})

    def set_waiting_for(self, reasons: Mapping[int, str | None]) -> None:
        """Sets the texts that say why queued runs wait; None for no reason.

        Runs that are not queued (any more) are passed over.
        """
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, reasons):
                by_reason: dict[str | None, list[int]] = {}
                for run_id in chunk:
                    by_reason.setdefault(reasons[run_id], []).append(run_id)
                for reason, ids in by_reason.items():
                    is_news = _IS_QUEUED & runs.c.waiting_for.is_distinct_from(reason)
                    self.update_runs(connection, ids, {"waiting_for": reason}, is_news)

    def next_queued(self, limit: int) -> list[int]:
        """The ids of the queued runs that are claimed next, in that order."""
        statement = select(runs.c.id).where(_IS_QUEUED).order_by(*_CLAIM_ORDER).limit(limit)
        with self.transaction(write=False) as connection:
            return list(connection.scalars(statement))

    def ahead_of(self, run_id: int) -> int:
        """How many queued runs are claimed before this run; 0 if it is not queued."""
        priority = select(runs.c.priority).where(runs.c.id == run_id, _IS_QUEUED).scalar_subquery()
        sooner = or_(runs.c.priority > priority, (runs.c.priority == priority) & (runs.c.id < run_id))
        with self.transaction(write=False) as connection:
            return connection.scalar(select(func.count()).where(_IS_QUEUED, sooner)) or 0

    def claimable(self, host: str, cores: int | None = None) -> int:
        """The number of queued runs that workers on that machine may claim now; 0 while it is held back.

        With `cores`, only those that fit beside the runs that it trains.
        """
        may_claim = (_IS_QUEUED, ~_held_back(host))
        with self.transaction(write=False) as connection:
            if cores is None:
                return connection.scalar(select(func.count()).select_from(runs).where(*may_claim)) or 0
            first = (
                select(runs.c.threads, runs.c.attempt).where(*may_claim).order_by(*_CLAIM_ORDER).limit(cores)
            )
            return self._fitting(connection, host, cores, connection.execute(first).all())

    def _fitting(self, connection: Connection, host: str, cores: int, waiting: Sequence[Any]) -> int:
        """How many waiting runs fit beside the runs in training, by their threads."""
        training = select(runs.c.threads).where(runs.c.state.in_(_TRAINED), runs.c.owner_host == host)
        chosen = self.chosen_slots(host)
        threads = [_granted(row, cores, chosen) for row in waiting]
        return fitting(threads, connection.scalars(training).all(), cores, chosen or cores)

    def choose_slots(self, host: str, slots: int | None) -> None:
        """Sets how many runs that machine trains at once, where they share its cores; None: as many as fit.

        Each run gets its share of the cores at most.
        """
        if slots is None:
            self._unset(_SLOTS + host)
        else:
            self._set(_SLOTS + host, str(slots))

    def chosen_slots(self, host: str) -> int | None:
        """The number that `choose_slots` set for that machine; None where none is set."""
        value = self._value(_SLOTS + host)
        return None if value is None else int(value)

    def pause_queue(self) -> None:
        """Lets no worker claim a run from now on; running ones continue. A second call changes nothing."""
        self._set(_PAUSED)

    def unpause_queue(self) -> None:
        """Lets workers claim runs again."""
        self._unset(_PAUSED)

    def paused_since(self) -> datetime | None:
        """The time when the queue was paused; None while it is not."""
        return self._times(_PAUSED).get("")

    def drain(self, host: str, *, now: bool = False) -> None:
        """Lets no worker on that machine claim a run from now on. Twice is no error.

        What it trains goes on, unless `now` (see `is_evicted`).
        """
        self._set(_DRAINED + host, _NOW if now else "")

    def undrain(self, host: str) -> None:
        """Lets workers on that machine claim runs again."""
        self._unset(_DRAINED + host)

    def drained(self) -> dict[str, datetime]:
        """The machines that take no run, and since when."""
        return self._times(_DRAINED)

    def is_evicted(self, host: str) -> bool:
        """Whether workers on this machine must hand back even the runs that they train."""
        return self._value(_DRAINED + host) == _NOW

    def note_scheduler(self, name: str) -> None:
        """Records that a scheduler that places runs on other machines looks after the queue now."""
        self._set(_SCHEDULER + name, "here")

    def scheduler_seen(self, name: str) -> datetime | None:
        """The time when that scheduler was last recorded; None if never."""
        return self._times(_SCHEDULER).get(name)

    def _set(self, name: str, value: str = "") -> None:
        """Sets the value now; without a value, an earlier setting keeps its time."""
        row = {"name": name, "value": value, "changed_at": self.now()}
        with self.transaction() as connection:
            self.insert(connection, settings, [row], replace=bool(value))

    def _value(self, name: str) -> str | None:
        """The value of a setting; None where it is not set."""
        with self.transaction(write=False) as connection:
            return connection.scalar(select(settings.c.value).where(settings.c.name == name))

    def _unset(self, name: str) -> None:
        with self.transaction() as connection:
            connection.execute(delete(settings).where(settings.c.name == name))

    def _times(self, prefix: str) -> dict[str, datetime]:
        """When each setting with this prefix was set, by the rest of its name."""
        named = select(settings.c.name, settings.c.changed_at).where(settings.c.name.startswith(prefix))
        with self.transaction(write=False) as connection:
            rows = connection.execute(named).all()
        return {name.removeprefix(prefix): datetime_of(changed_at) for name, changed_at in rows}

    def task_places(self, corpora: Iterable[Sequence[str]]) -> dict[str, int]:
        """The place of each task in the order of colours; one that was given once is kept.

        A task of one of these corpora that has none takes the first that no task of its corpus has.
        """
        asked = list(corpora)
        places = self._given_places()
        if places.keys() >= {task for tasks in asked for task in tasks}:
            return places  # most often, and without the lock
        with self.queueing_alone():
            places = self._given_places()  # with those that another process has given meanwhile
            for tasks in asked:
                taken = {places[task] for task in tasks if task in places}
                free = (place for place in itertools.count() if place not in taken)
                places |= {task: next(free) for task in tasks if task not in places}
            self._set(_PLACES, json.dumps(places))
        return places

    def _given_places(self) -> dict[str, int]:
        places: dict[str, int] = json.loads(self._value(_PLACES) or "{}")
        return places

    def machines(self) -> list[Machine]:
        """The machines that train now, by name."""
        columns = (func.count(), func.min(runs.c.started_at), func.max(runs.c.heartbeat_at))
        statement = select(runs.c.owner_host, *columns).where(runs.c.state.in_(_TRAINED))
        statement = statement.group_by(runs.c.owner_host).order_by(runs.c.owner_host)
        with self.transaction(write=False) as connection:
            return [
                Machine(host, count, datetime_of(since), datetime_of(heard))
                for host, count, since, heard in connection.execute(statement)
            ]

    def ids_of_sweep(self, name: str, states: Collection[RunState]) -> list[int]:
        """The ids of a sweep's runs in these states, in order."""
        statement = select(runs.c.id).where(runs.c.sweep == name, runs.c.archived_at.is_(None), IS_KEPT)
        statement = statement.where(runs.c.state.in_([state.value for state in states])).order_by(runs.c.id)
        with self.transaction(write=False) as connection:
            return list(connection.scalars(statement))


def share_of_cores(cores: int, slots: int) -> int:
    """The number of threads of a run where `slots` runs share the cores."""
    return max(1, cores // slots)


def fitting(waiting: Iterable[int], training: Iterable[int | None], cores: int, slots: int) -> int:
    """How many waiting runs may start beside the runs in training.

    Each run is given by its threads. Their sum never exceeds the cores, except for a run that trains alone.
    A run in training without a number was placed by a scheduler and takes none.
    """
    shared = [threads for threads in training if threads is not None]
    used, at_once = sum(shared), len(shared)
    for threads in waiting:
        used += threads
        if at_once and (used > cores or at_once >= slots):
            break
        at_once += 1
    return at_once - len(shared)


def _granted(waiting: Any, cores: int, slots: int | None) -> int:
    """The number of threads for a waiting run with that choice of slots; a resumed run keeps its number."""
    threads: int = waiting.threads or cores
    return threads if slots is None or waiting.attempt > 1 else min(threads, share_of_cores(cores, slots))


def _held_back(host: str) -> ColumnElement[bool]:
    """Whether workers on that machine may claim nothing now."""
    return exists().where(settings.c.name.in_((_PAUSED, _DRAINED + host)))
