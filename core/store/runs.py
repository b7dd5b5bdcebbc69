"""The runs: adding, reading, counting, deleting, archiving, tagging; and the events of each."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from sqlalchemy import (
    JSON,
    Connection,
    Row,
    bindparam,
    case,
    cast,
    delete,
    false,
    func,
    insert,
    select,
    true,
    tuple_,
    type_coerce,
    update,
)
from sqlalchemy.exc import DataError

from core.config import RunConfig
from core.corpora.readers.conllu import comparable_text
from core.corpora.repeats import Repeat
from core.errors import ConfigError, IllegalMove, MRNLabError, RunNotFound
from core.events import RunFacts
from core.plain_text import shortened
from core.store.database import Database, in_chunks
from core.store.facts import (
    DAMAGED,
    LONGEST_PROBLEM,
    OTHER_VERSION,
    facts_document,
    read_facts,
    unlike_now,
)
from core.store.schema import DELETED, IS_KEPT, OWNER, events, facts, runs, settings
from core.store.types import ENDED, Conditions, ErrorInfo, Owner, Run, RunEvent, RunState, RunWithFacts

_LARGEST_SEED = 2**31 - 1
_LONGEST_KEYWORD = 50
_COLUMNS = tuple(runs.c.keys())
_IS_DELETABLE = runs.c.state.in_([state.value for state in (*ENDED, RunState.QUEUED)])
_CONDITIONS = ("text_hash", "precision", "alignment")  # the facts, in the order of `Conditions`
_NO_FACTS = Conditions(problem="none")
_REPEATS = TypeAdapter(tuple[Repeat, ...])


def datetime_of(seconds: float) -> datetime:
    """Seconds since 1970 as a timezone-aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)


def normal_keyword(text: str) -> str:
    """The one spelling of a keyword: lower case, with a hyphen for spaces and commas.

    Raises MRNLabError where nothing is left, or too much.
    """
    keyword = re.sub(r"[\s,]+", "-", text).strip("-").lower()
    if not keyword:
        raise MRNLabError("A keyword needs at least one letter or digit.")
    if len(keyword) > _LONGEST_KEYWORD:
        raise MRNLabError(f"The keyword '{keyword[:20]}…' is longer than {_LONGEST_KEYWORD} characters.")
    return keyword


def _marks(ids: Iterable[int]) -> list[str]:
    """The names of the settings that mark these runs as deleted."""
    return [f"{DELETED}{run_id}" for run_id in ids]


def _run_ids(marks: Iterable[str]) -> list[int]:
    return sorted(int(mark.removeprefix(DELETED)) for mark in marks)


class Runs(Database):
    """The runs in the store. Methods that take many ids pass over unknown ones."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Runs as last read, with the revision of their row. Ids are never reused.
        self._read_runs: dict[int, tuple[int, Run]] = {}
        # By run and attempt, of runs that have ended: their facts do not change.
        self._conditions: dict[tuple[int, int], Conditions] = {}

    def add_runs(
        self,
        configs: Sequence[RunConfig],
        sweep: str | None = None,
        *,
        priority: int = 0,
        retries: int = 0,
        threads: Sequence[int | None] | None = None,
    ) -> list[int]:
        """Queues one run per description, all or none; returns their ids in order. Ids are never reused.

        `sweep` is the name of these runs. `priority`: higher ones are claimed first; `retries`: how often
        each is resumed by itself when its worker dies; `threads`: how many CPU threads each may take.
        """
        if not configs:
            return []
        now = self.now()
        rows = [
            {
                "config": config.to_json(),
                "configuration_id": config.configuration_id,
                "sweep": sweep,
                "state": RunState.QUEUED.value,
                "created_at": now,
                "priority": priority,
                "retries": retries,
                "threads": of_run,
            }
            for config, of_run in zip(configs, threads or [None] * len(configs), strict=True)
        ]
        with self.transaction() as connection:
            added = insert(runs).returning(runs.c.id, sort_by_parameter_order=True)
            return list(connection.scalars(added, rows))

    def run(self, run_id: int) -> RunWithFacts:
        """The run with its facts. Raises RunNotFound."""
        named = self.runs_with_facts([run_id])
        if not named:
            raise RunNotFound(run_id)
        return named[0]

    def runs(
        self,
        ids: Collection[int] | None = None,
        states: Collection[RunState] | None = None,
        limit: int | None = None,
        *,
        archived: bool | None = False,
    ) -> list[Run]:
        """Runs without their facts, newest first.

        `archived`: whether lists of all runs hold those not archived (False), only archived ones (True), or
        both (None). A run named by its id is always in the list.
        """
        with self.transaction(write=False) as connection:
            return self._listed(connection, ids, states, limit, archived=archived)

    def runs_with_facts(
        self,
        ids: Collection[int] | None = None,
        states: Collection[RunState] | None = None,
        limit: int | None = None,
        *,
        archived: bool | None = False,
    ) -> list[RunWithFacts]:
        """The same runs with their facts, which are megabytes for thousands of runs."""
        with self.transaction(write=False) as connection:
            listed = self._listed(connection, ids, states, limit, archived=archived)
            return self._with_facts(connection, listed)

    def runs_of(
        self, configurations: Collection[str], states: Collection[RunState] | None = None
    ) -> list[Run]:
        """The runs of these configurations (by `configuration_id`) that are not archived, newest first.

        They come without their facts.
        """
        heads = _heads(states).where(runs.c.archived_at.is_(None))
        parts = [heads.where(runs.c.configuration_id.in_(chunk)) for chunk in in_chunks(configurations)]
        with self.transaction(write=False) as connection:
            return self._read(connection, parts)

    def runs_owned_by(self, owner: Owner) -> list[Run]:
        """The runs that this process trained or trains, archived ones too, newest first.

        They come without their facts.
        """
        heads = _heads(None).where(tuple_(*OWNER) == dataclasses.astuple(owner))
        with self.transaction(write=False) as connection:
            return self._read(connection, [heads])

    def runs_of_system(self, system: str) -> list[Run]:
        """The runs with imported predictions of this system that are not archived, newest first.

        They come without their facts.
        """
        described = to_json({"system": system}).decode()[1:-1]
        heads = _heads({RunState.SUCCEEDED}).where(
            runs.c.archived_at.is_(None), runs.c.config.contains(described, autoescape=True)
        )
        with self.transaction(write=False) as connection:
            return [run for run in self._read(connection, [heads]) if run.config.system == system]

    def _listed(
        self,
        connection: Connection,
        ids: Collection[int] | None,
        states: Collection[RunState] | None,
        limit: int | None,
        *,
        archived: bool | None,
    ) -> list[Run]:
        heads = _heads(states)
        if ids is None and archived is not None:
            heads = heads.where((runs.c.archived_at.is_not if archived else runs.c.archived_at.is_)(None))
        parts = [heads] if ids is None else [heads.where(runs.c.id.in_(chunk)) for chunk in in_chunks(ids)]
        return self._read(connection, [part.limit(limit) for part in parts], limit)

    def added_together(self, ids: Collection[int]) -> list[Run]:
        """The runs that were added at one time with one of these, themselves included, newest first.

        Archived ones are left out, and all come without their facts.
        """
        with self.transaction(write=False) as connection:
            times: set[float] = set()
            for chunk in in_chunks(ids):
                times.update(connection.scalars(select(runs.c.created_at).where(runs.c.id.in_(chunk))))
            together = _heads(None).where(runs.c.archived_at.is_(None), runs.c.created_at.in_(sorted(times)))
            return self._read(connection, [together] if times else [])

    def _read(self, connection: Connection, parts: Sequence[Any], limit: int | None = None) -> list[Run]:
        """The runs that these statements select by (id, revision). Only new or changed rows are fetched."""
        # Read at once, 10,000 rows take half as long as one by one.
        heads = sorted((tuple(row) for part in parts for row in connection.execute(part).all()), reverse=True)
        heads = heads[:limit]
        cached = self._read_runs
        rows_by_id = {
            head[0]: cached[head[0]] for head in heads if cached.get(head[0], (None,))[0] == head[1]
        }
        for chunk in in_chunks(run_id for run_id, _ in heads if run_id not in rows_by_id):
            for row in connection.execute(select(runs).where(runs.c.id.in_(chunk))):
                rows_by_id[row.id] = (row.revision, run_of(row))
        if not connection.get_execution_options().get("write"):
            cached.update(rows_by_id)  # what a write transaction reads may be rolled back
        return [rows_by_id[run_id][1] for run_id, _ in heads]

    def _with_facts(self, connection: Connection, listed: Sequence[Run]) -> list[RunWithFacts]:
        stored: dict[int, tuple[RunFacts | None, str | None]] = {}
        for chunk in in_chunks(run.id for run in listed):
            rows = connection.execute(select(facts.c.run_id, facts.c.facts).where(facts.c.run_id.in_(chunk)))
            stored |= {run_id: read_facts(text) for run_id, text in rows}
        with_facts = []
        for run in listed:
            run_facts, problem = stored.get(run.id, (None, None))
            with_facts.append(RunWithFacts(**vars(run), facts=run_facts, facts_problem=problem))
        return with_facts

    def conditions(self, listed: Iterable[Run]) -> dict[int, Conditions]:
        """The text, precision and alignment in the facts of these runs, by run; runs without are left out."""
        by_run: dict[int, Conditions] = {}
        by_id: dict[int, Run] = {}  # those to be read
        for run in listed:
            known = self._conditions.get((run.id, run.attempt))
            if known is None:
                by_id[run.id] = run
            elif known is not _NO_FACTS:
                by_run[run.id] = known
        if not by_id:
            return by_run
        with self.transaction(write=False) as connection:
            for chunk in in_chunks(by_id):
                for run_id, (feats_sentences, repeats, *values), problem in _some_facts(connection, chunk):
                    text, precision, alignment = (value or None for value in values)
                    if text:
                        config = by_id[run_id].config
                        text = comparable_text(text, (config.corpus, *config.tasks), feats_sentences)
                    conditions = Conditions(text, precision, alignment, problem)
                    try:
                        stored_repeats = _REPEATS.validate_json(repeats or "[]")
                        conditions = dataclasses.replace(conditions, repeats=stored_repeats)
                    except ValidationError:
                        conditions = dataclasses.replace(conditions, problem=unlike_now("repeats"))
                    by_run[run_id] = conditions
        for run in by_id.values():
            if run.state in ENDED:
                self._conditions[run.id, run.attempt] = by_run.get(run.id, _NO_FACTS)
        return by_run

    def state(self, run_id: int, owner: Owner | None = None) -> RunState:
        """The run's state: the cheapest read there is.

        Raises RunNotFound, and NotOwner where `owner` is given and does not (or no longer) train the run.
        """
        with self.transaction(write=False) as connection:
            return self.guard(connection, run_id, owner)

    def counts(self) -> dict[RunState, int]:
        """The number of runs in each state, with archived ones; every state is a key."""
        with self.transaction(write=False) as connection:
            counted = select(runs.c.state, func.count()).where(IS_KEPT).group_by(runs.c.state)
            rows = connection.execute(counted)
            return dict.fromkeys(RunState, 0) | {RunState(state): count for state, count in rows}

    def mark_deleted(self, ids: Collection[int]) -> None:
        """Hides runs from all queries, all or none, until `undelete`; `delete_runs` removes their rows.

        Raises IllegalMove where one is being trained.
        """
        now = self.now()
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                self._refuse_left(connection, "delete", runs.c.id.in_(chunk), ~_IS_DELETABLE)
                rows = [{"name": name, "value": "", "changed_at": now} for name in _marks(chunk)]
                self.insert(connection, settings, rows)

    def undelete(self, ids: Collection[int]) -> set[int]:
        """Restores runs that were marked as deleted; returns their ids."""
        back: set[int] = set()
        with self.transaction() as connection:
            for chunk in in_chunks(ids):
                marks = delete(settings).where(settings.c.name.in_(_marks(chunk)))
                back.update(_run_ids(connection.scalars(marks.returning(settings.c.name))))
        return back

    def remove_marked(self, until: float) -> list[int]:
        """Removes the rows of runs that were marked as deleted until then (seconds since 1970); their ids.

        A run that is brought back at the same moment is either back or removed, never half of it.
        """
        is_due = settings.c.name.startswith(DELETED), settings.c.changed_at <= until
        with self.transaction(write=False) as connection:  # most often there are none
            due = _run_ids(connection.scalars(select(settings.c.name).where(*is_due)))
        removed: list[int] = []
        if due:
            with self.transaction() as connection:
                for chunk in self.locked_chunks(connection, due):
                    marks = delete(settings).where(*is_due, settings.c.name.in_(_marks(chunk)))
                    removed += _run_ids(connection.scalars(marks.returning(settings.c.name)))
                self.delete_runs(removed)
        return removed

    def delete_runs(self, ids: Collection[int]) -> None:
        """Removes the rows of runs and all that was recorded of them, all or none.

        Raises IllegalMove where one is being trained. Checkpoints and logs are the caller's to remove.
        """
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                connection.execute(delete(runs).where(runs.c.id.in_(chunk), _IS_DELETABLE))
                self._refuse_left(connection, "delete", runs.c.id.in_(chunk))
                connection.execute(delete(settings).where(settings.c.name.in_(_marks(chunk))))

    @staticmethod
    def _refuse_left(connection: Connection, act: str, *conditions: Any) -> None:
        """Raises IllegalMove where a run fulfils these conditions."""
        left = connection.execute(select(runs.c.id, runs.c.state).where(*conditions).limit(1)).first()
        if left is not None:
            raise IllegalMove(left.id, left.state, act)

    def add_event(self, run_id: int, kind: str, message: str, *, at: float | None = None) -> None:
        """Adds a line to the run's history. `kind` is a state, `note` or `warning`. Raises RunNotFound.

        `at`: when it happened; the same line of the same moment is kept once, however often it is added.
        """
        with self.transaction() as connection:
            self.guard(connection, run_id, None)
            same = (events.c.run_id == run_id, events.c.time == at, events.c.message == message)
            stored = select(events.c.id).where(*same, events.c.kind == kind).limit(1)
            if at is None or connection.scalar(stored) is None:
                self.insert_event(connection, run_id, kind, message, at)

    def events(self, run_id: int) -> list[RunEvent]:
        """The run's history in order."""
        statement = select(events.c.id, events.c.run_id, events.c.time, events.c.kind, events.c.message)
        statement = statement.where(events.c.run_id == run_id).order_by(events.c.id)
        with self.transaction(write=False) as connection:
            return [
                RunEvent(id_, run, datetime_of(time), kind, message)
                for id_, run, time, kind, message in connection.execute(statement)
            ]

    def archive(self, ids: Collection[int]) -> None:
        """Leaves runs out of lists of all runs, all or none. Raises IllegalMove where one has not ended."""
        ended = [state.value for state in ENDED]
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                is_shown = runs.c.archived_at.is_(None)
                values = {"archived_at": self.now()}
                self.update_runs(connection, chunk, values, is_shown, runs.c.state.in_(ended))
                self._refuse_left(connection, "archive", runs.c.id.in_(chunk), is_shown)

    def restore(self, ids: Collection[int]) -> None:
        """Takes archived runs back into the lists."""
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                self.update_runs(connection, chunk, {"archived_at": None}, runs.c.archived_at.is_not(None))

    def add_keywords(self, ids: Collection[int], keywords: Iterable[str]) -> None:
        """Adds keywords to runs. Raises MRNLabError where `normal_keyword` does."""
        self._change_keywords(ids, added=set(map(normal_keyword, keywords)), removed=set())

    def remove_keywords(self, ids: Collection[int], keywords: Iterable[str]) -> None:
        """Removes keywords from runs. Raises MRNLabError where `normal_keyword` does."""
        self._change_keywords(ids, added=set(), removed=set(map(normal_keyword, keywords)))

    def _change_keywords(self, ids: Collection[int], *, added: set[str], removed: set[str]) -> None:
        statement = update(runs).where(runs.c.id == bindparam("run"))
        statement = statement.values(tags=bindparam("new"), revision=runs.c.revision + 1)
        with self.transaction() as connection:
            for chunk in self.locked_chunks(connection, ids):
                rows = connection.execute(select(runs.c.id, runs.c.tags).where(runs.c.id.in_(chunk)))
                changed = []
                for run_id, text in rows:
                    old = set(json.loads(text))
                    new = (old | added) - removed
                    if new != old:
                        changed.append({"run": run_id, "new": json.dumps(sorted(new), ensure_ascii=False)})
                if changed:
                    connection.execute(statement, changed)


def _heads(states: Collection[RunState] | None) -> Any:
    """Selects id and revision of runs, newest first."""
    heads = select(runs.c.id, runs.c.revision).where(IS_KEPT).order_by(runs.c.id.desc())
    return heads if states is None else heads.where(runs.c.state.in_([state.value for state in states]))


_NAMED_FACTS = ("feats_sentences", "repeats", *_CONDITIONS)


def _some_facts(
    connection: Connection, ids: Sequence[int]
) -> Iterator[tuple[int, Sequence[str | None], str | None]]:
    """The facts of these runs that _NAMED_FACTS names, as text, and the reason why any cannot be read.

    The database extracts them, for facts may be megabytes; what it does not take for JSON is read here.
    """
    is_requested = facts.c.run_id.in_(ids)
    is_server = connection.dialect.name == "postgresql"
    # SQLite keeps JSON as text; a cast would make a number of it.
    document: Any = cast(facts.c.facts, JSON) if is_server else type_coerce(facts.c.facts, JSON)
    # An older SQLite refuses a NaN.
    is_json: Any = true() if is_server else func.json_valid(facts.c.facts) == 1
    kind: Any = func.json_typeof(document) if is_server else func.json_type(facts.c.facts)
    is_object = case((is_json, kind == "object"), else_=False)
    named = (case((is_object, document[name].as_string()), else_=None) for name in _NAMED_FACTS)
    try:
        with connection.begin_nested():
            rows = connection.execute(select(facts.c.run_id, is_object, *named).where(is_requested)).all()
    except DataError:  # PostgreSQL refuses the statement where one text is no JSON
        rows = connection.execute(select(facts.c.run_id, false()).where(is_requested)).all()
    yield from ((row[0], row[2:], None) for row in rows if row[1])
    if others := [row[0] for row in rows if not row[1]]:
        stored = select(facts.c.run_id, facts.c.facts).where(facts.c.run_id.in_(others))
        for run_id, text in connection.execute(stored):
            run_facts, problem = read_facts(text)
            document = facts_document(run_facts)
            values = (document.get(name) for name in _NAMED_FACTS)
            yield (
                run_id,
                [json.dumps(value) if isinstance(value, list | tuple) else value for value in values],
                problem,
            )


# Whether what is stored of a run can be read is decided here alone. Everything else asks `Run.problem`.


@lru_cache(maxsize=20_000)
def parse_config(text: str) -> tuple[RunConfig, str | None]:
    """The stored description, and why it is invalid if so (another version wrote it, say).

    A run that cannot be read must not hide all others: what is known of its fields is shown unchecked.
    """
    try:
        stored = from_json(text)  # several times as fast as the json module's
        seed = stored.get("seed")
    except (ValueError, AttributeError):
        return RunConfig.unchecked({}), f"{DAMAGED}: its description is no JSON object."
    if type(seed) is not int or not 0 <= seed <= _LARGEST_SEED:
        return _checked(text)
    # Checking a description costs far more than parsing it, and the seeds of a configuration differ in
    # nothing else.
    config, problem = _checked(to_json(stored | {"seed": 0}, inf_nan_mode="constants").decode())
    return config.model_copy(update={"seed": seed}), problem


@lru_cache(maxsize=20_000)
def _checked(text: str) -> tuple[RunConfig, str | None]:
    try:
        return RunConfig.from_json(text), None
    except ConfigError as error:
        problem = f"{OTHER_VERSION}: {shortened(str(error), LONGEST_PROBLEM)}"
        return RunConfig.unchecked(from_json(text)), problem


_FIELDS = {field.name: str(field.type) for field in dataclasses.fields(Run)}
_TIMES = tuple(name for name, type_ in _FIELDS.items() if type_.startswith("datetime"))
_AS_STORED = tuple(name for name in _FIELDS if name in _COLUMNS and name not in (*_TIMES, "config", "state"))


def run_of(row: Row[Any]) -> Run:
    """The Run of a row of `runs`, without its facts."""
    column = dict(zip(_COLUMNS, row, strict=True))  # a Row's attributes are ten times as slow
    config, problem = parse_config(column["config"])
    error = owner = None
    if column["error_type"] is not None:
        message, traceback = column["error_message"] or "", column["error_traceback"] or ""
        error = ErrorInfo(column["error_type"], message, traceback, column["error_exit_code"])
    if column["owner_pid"] is not None:
        owner = Owner(*(column[part.name] for part in OWNER))
    times = {name: None if column[name] is None else datetime_of(column[name]) for name in _TIMES}
    values: dict[str, Any] = {name: column[name] for name in _AS_STORED} | times
    return Run(
        config=config,
        config_problem=problem,
        stored_config=None if problem is None else column["config"],
        state=RunState(column["state"]),
        owner=owner,
        error=error,
        keywords=tuple(json.loads(column["tags"])),
        **values,
    )
