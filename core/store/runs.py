"""The runs themselves: adding, reading, counting, deleting; and the events of each."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    select,
    type_coerce,
    update,
)

from core.config import RunConfig
from core.errors import IllegalMove, MRNLabError, RunNotFound
from core.store.base import NO_TIME, RUN_COLUMNS, StoreBase, facts_of, in_chunks, moment, run_of
from core.store.records import ENDED, Conditions, Owner, Run, RunEvent, RunState
from core.store.schema import events, facts, runs


def _fact(connection: Connection, name: str) -> ColumnElement[str]:
    """One text among a run's facts, taken out by the database: facts may be megabytes."""
    if connection.dialect.name == "postgresql":
        found: ColumnElement[str] = cast(facts.c.facts, JSON)[name].as_string()
        return found
    # SQLite keeps JSON as text and would make a number of a cast to it. One that is none would end the whole.
    extracted = type_coerce(facts.c.facts, JSON)[name].as_string()
    return case((func.json_valid(facts.c.facts) == 1, extracted), else_=None)


class RunsPart(StoreBase):
    """Which runs there are."""

    def add_runs(
        self, configs: Sequence[RunConfig], sweep: str | None = None, *, priority: int = 0, retries: int = 0
    ) -> list[int]:
        """Queues one run per description, all or none; returns their ids in order. Ids are never reused.

        `priority`: higher ones are claimed first; `retries`: how often each is resumed by itself when its
        worker dies.
        """
        if not configs:
            return []
        now = self._clock()
        rows = [
            {
                "config": config.to_json(),
                "configuration_id": config.configuration_id,
                "sweep": sweep,
                "state": RunState.QUEUED.value,
                "created_at": now,
                "priority": priority,
                "retries": retries,
            }
            for config in configs
        ]
        with self.transaction() as connection:
            added = connection.execute(insert(runs).returning(runs.c.id, sort_by_parameter_order=True), rows)
            return [row.id for row in added]

    def run(self, run_id: int) -> Run:
        """The run of that number, with its facts. Raises RunNotFound."""
        found = self.runs(ids=[run_id])
        if not found:
            raise RunNotFound(f"There is no run {run_id}; `mrnlab runs` lists those there are.")
        return found[0]

    def runs(
        self,
        ids: Collection[int] | None = None,
        states: Collection[RunState] | None = None,
        limit: int | None = None,
        *,
        archived: bool | None = False,
        with_facts: bool | None = None,
    ) -> list[Run]:
        """Runs, newest first. Unknown ids are left out.

        `archived`: whether lists of all runs hold those out of sight (False), only those (True), or both
        (None). A run named by its id is always found.

        `with_facts`: whether `Run.facts` is filled. By default it is where runs are named by id; in lists of
        all runs it stays empty, for the facts of thousands of runs are megabytes that no list shows.
        """
        if with_facts is None:
            with_facts = ids is not None
        heads = select(runs.c.id, runs.c.revision).order_by(runs.c.id.desc())
        if states is not None:
            heads = heads.where(runs.c.state.in_([state.value for state in states]))
        if ids is None and archived is not None:
            heads = heads.where((runs.c.archived_at.is_not if archived else runs.c.archived_at.is_)(None))
        if limit is not None:
            heads = heads.limit(limit)
        with self.transaction(write=False) as connection:
            if ids is None:
                found = [(row[0], row[1]) for row in connection.execute(heads)]
            else:
                pieces = [connection.execute(heads.where(runs.c.id.in_(some))) for some in in_chunks(ids)]
                found = sorted(((row[0], row[1]) for piece in pieces for row in piece), reverse=True)[:limit]
            listed = self._read(connection, found)
            return self._with_facts(connection, listed) if with_facts else listed

    def runs_of(
        self, configurations: Collection[str], states: Collection[RunState] | None = None
    ) -> list[Run]:
        """The runs of these configurations (by `configuration_id`), newest first, without their facts.

        Archived ones are left out.
        """
        heads = select(runs.c.id, runs.c.revision).where(runs.c.archived_at.is_(None))
        if states is not None:
            heads = heads.where(runs.c.state.in_([state.value for state in states]))
        with self.transaction(write=False) as connection:
            pieces = [
                connection.execute(heads.where(runs.c.configuration_id.in_(some)))
                for some in in_chunks(configurations)
            ]
            found = sorted(((row[0], row[1]) for piece in pieces for row in piece), reverse=True)
            return self._read(connection, found)

    def _read(self, connection: Connection, heads: Sequence[tuple[int, int]]) -> list[Run]:
        """The runs of those (id, revision), fetching only rows that were not seen before."""
        seen = self._seen
        unseen = [run_id for run_id, revision in heads if run_id not in seen or seen[run_id][0] != revision]
        for some in in_chunks(unseen):
            for row in connection.execute(select(*RUN_COLUMNS).where(runs.c.id.in_(some))):
                seen[row[0]] = (row[-1], run_of(row))
        return [seen[run_id][1] for run_id, _ in heads]

    def _with_facts(self, connection: Connection, listed: Sequence[Run]) -> list[Run]:
        known: dict[int, Mapping[str, Any]] = {}
        for some in in_chunks(run.id for run in listed):
            rows = connection.execute(select(facts.c.run_id, facts.c.facts).where(facts.c.run_id.in_(some)))
            known |= {run_id: facts_of(text) for run_id, text in rows}
        return [dataclasses.replace(run, facts=known[run.id]) if run.id in known else run for run in listed]

    def conditions(self, listed: Iterable[Run]) -> dict[int, Conditions]:
        """What the facts of these runs say of text, precision and alignment, by run; none without facts."""
        by_id = {run.id: run for run in listed}
        found = {
            run.id: self._conditions[run.id, run.attempt]
            for run in by_id.values()
            if (run.id, run.attempt) in self._conditions
        }
        if len(found) == len(by_id):
            return found
        with self.transaction(write=False) as connection:
            for some in in_chunks(run_id for run_id in by_id if run_id not in found):
                names = (_fact(connection, name) for name in ("text_hash", "precision", "alignment"))
                rows = select(facts.c.run_id, *names).where(facts.c.run_id.in_(some))
                for run_id, *values in connection.execute(rows):
                    found[run_id] = Conditions(*(value or None for value in values))
        for run in by_id.values():
            if run.state in ENDED and run.id in found:
                self._conditions[run.id, run.attempt] = found[run.id]
        return found

    def state(self, run_id: int, owner: Owner | None = None) -> RunState:
        """Where the run is in its life: the cheapest read there is.

        Raises RunNotFound, and NotOwner where an owner is named that does not (or no longer) train it.
        """
        with self.transaction(write=False) as connection:
            return self._guard(connection, run_id, owner)

    def counts(self) -> dict[RunState, int]:
        """How many runs are in each state, archived ones too; every state is there."""
        with self.transaction(write=False) as connection:
            found = connection.execute(select(runs.c.state, func.count()).group_by(runs.c.state)).all()
        counted = {RunState(state): count for state, count in found}
        return {state: counted.get(state, 0) for state in RunState}

    def delete_runs(self, ids: Collection[int]) -> None:
        """Deletes runs with all that was recorded of them, all or none. Unknown ids are passed over.

        Raises IllegalMove where one is being trained. Checkpoints and logs are the caller's to remove.
        """
        deletable = [state.value for state in (*ENDED, RunState.QUEUED)]
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                connection.execute(delete(runs).where(runs.c.id.in_(some), runs.c.state.in_(deletable)))
                left = connection.scalar(select(runs.c.id).where(runs.c.id.in_(some)).limit(1))
                if left is not None:
                    raise IllegalMove(f"Run {left} is being trained; stop it before deleting it.")

    def add_event(self, run_id: int, kind: str, message: str, *, at: float | None = None) -> None:
        """Adds a line to the run's history. `kind` is a state, `note` or `warning`. Raises RunNotFound.

        `at`: when it happened; the same line of the same moment is there once, however often it is added.
        """
        with self.transaction() as connection:
            self._guard(connection, run_id, None)
            if at is not None:
                same = (events.c.run_id == run_id, events.c.time == at, events.c.message == message)
                if connection.scalar(select(events.c.id).where(*same, events.c.kind == kind).limit(1)):
                    return
            self._tell(connection, run_id, kind, message, at)

    def events(self, run_id: int, after_id: int = 0) -> list[RunEvent]:
        """The run's history in order, from the event after that id on."""
        statement = (
            select(events.c.id, events.c.run_id, events.c.time, events.c.kind, events.c.message)
            .where(events.c.run_id == run_id, events.c.id > after_id)
            .order_by(events.c.id)
        )
        with self.transaction(write=False) as connection:
            rows = connection.execute(statement).all()
        return [
            RunEvent(id_, owner, moment(time) or NO_TIME, kind, message)
            for id_, owner, time, kind, message in rows
        ]


# What researchers add to runs: archived or not, a note, tags.


_APART = re.compile(r"[\s,]+")
_LONGEST_TAG = 50


def normal_tag(text: str) -> str:
    """The one spelling of a tag: lower case, with a hyphen for spaces and commas.

    Raises MRNLabError where nothing is left, or too much.
    """
    tag = _APART.sub("-", text).strip("-").lower()
    if not tag:
        raise MRNLabError("A tag needs at least one letter or digit.")
    if len(tag) > _LONGEST_TAG:
        raise MRNLabError(f"The tag '{tag[:20]}…' is longer than {_LONGEST_TAG} characters.")
    return tag


class CurationPart(StoreBase):
    """How runs are put out of sight and taken back, noted and tagged. Unknown ids are passed over."""

    def archive(self, ids: Collection[int]) -> None:
        """Leaves runs out of lists of all runs, all or none. Raises IllegalMove where one has not ended."""
        ended = [state.value for state in ENDED]
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                seen = (runs.c.id.in_(some), runs.c.archived_at.is_(None))
                connection.execute(
                    update(runs)
                    .where(*seen, runs.c.state.in_(ended))
                    .values(archived_at=self._clock(), revision=runs.c.revision + 1)
                )
                left = connection.execute(select(runs.c.id, runs.c.state).where(*seen).limit(1)).first()
                if left is not None:
                    raise IllegalMove(
                        f"Run {left.id} is {left.state}; only runs that have ended are archived."
                    )

    def restore(self, ids: Collection[int]) -> None:
        """Takes archived runs back into the lists."""
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                connection.execute(
                    update(runs)
                    .where(runs.c.id.in_(some), runs.c.archived_at.is_not(None))
                    .values(archived_at=None, revision=runs.c.revision + 1)
                )

    def set_note(self, run_id: int, text: str) -> None:
        """Replaces the run's note; the empty text removes it. Raises RunNotFound."""
        with self.transaction() as connection:
            if not self._change(connection, run_id, {"note": text.strip()}):
                raise RunNotFound(f"There is no run {run_id}.")

    def add_tags(self, ids: Collection[int], tags: Iterable[str]) -> None:
        """Gives these tags to runs. Raises MRNLabError where `normal_tag` does."""
        self._retag(ids, added={normal_tag(tag) for tag in tags}, removed=set())

    def remove_tags(self, ids: Collection[int], tags: Iterable[str]) -> None:
        """Takes these tags from runs. Raises MRNLabError where `normal_tag` does."""
        self._retag(ids, added=set(), removed={normal_tag(tag) for tag in tags})

    def _retag(self, ids: Collection[int], *, added: set[str], removed: set[str]) -> None:
        statement = (
            update(runs)
            .where(runs.c.id == bindparam("run"))
            .values(tags=bindparam("new"), revision=runs.c.revision + 1)
        )
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                found = connection.execute(select(runs.c.id, runs.c.tags).where(runs.c.id.in_(some)))
                changed = []
                for run_id, text in found:
                    old = set(json.loads(text))
                    new = (old | added) - removed
                    if new != old:
                        changed.append({"run": run_id, "new": json.dumps(sorted(new), ensure_ascii=False)})
                if changed:
                    connection.execute(statement, changed)
