"""Rows of `runs` to frozen `Run` values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from core.config import RunConfig
from core.errors import ConfigError
from core.store.records import ErrorInfo, Owner, Run
from core.store.states import RunState
from core.store.tables import runs
from core.training.events import RunFacts

__all__ = ["NO_TIME", "RUN_COLUMNS", "facts_of", "moment", "parse_config", "run_of"]

# In the order of `run_of`'s unpacking.
_NAMES = """
id config configuration_id sweep state created_at started_at finished_at
owner_host owner_pid owner_started owner_boot heartbeat_at heartbeat_due
step total_steps epoch progress_at best_epoch checkpoint log
error_type error_message error_traceback error_exit_code attempt stop_requested_at
archived_at note tags priority retries waiting_for engine_job saved_step revision
"""
RUN_COLUMNS = tuple(runs.c[name] for name in _NAMES.split())
# Up to nine digits are a seed that a description may have. Inside a string the quotes would be escaped.
_SEED = re.compile(r'"seed":(0|[1-9]\d{0,8})(?=[,}])')
_NO_FACTS: Mapping[str, Any] = {}
_FACTS = TypeAdapter(RunFacts)
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""In place of a time that must be there and cannot be read."""
_END = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_STATES = {state.value: state for state in RunState}


def moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a timezone-aware UTC time; None where they are no time that a page can tell."""
    try:
        # The last year is left out, for another time zone may be in the next.
        return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds < _END else None  # type: ignore[operator, arg-type]
    except TypeError:  # None, or a text, which SQLite keeps in any column
        return None


def facts_of(text: str) -> Mapping[str, Any]:
    """The stored facts of a run; none where they cannot be read, as of a run that has not begun.

    Facts of an earlier version, which lack some, are taken as they are.
    """
    try:
        stored: Any = json.loads(text)
        if isinstance(stored, dict):
            _FACTS.validate_python(stored)
    except ValidationError as error:
        return stored if all(one["type"] == "missing" for one in error.errors()) else _NO_FACTS
    except (TypeError, ValueError):
        return _NO_FACTS
    return stored if isinstance(stored, dict) else _NO_FACTS


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _tags(text: str) -> tuple[str, ...]:
    try:
        stored = json.loads(text)
    except (TypeError, ValueError):
        return ()
    return tuple(map(str, stored)) if isinstance(stored, list) else ()


@lru_cache(maxsize=20_000)
def parse_config(text: str) -> tuple[RunConfig, str | None]:
    """The stored description, and why it no longer holds if so.

    One run that cannot be read must not hide all others: what can be read of it is then shown unchecked.
    """
    # Checking a description costs far more than reading its row, and the seeds of a configuration have all
    # but the seed in common.
    seed = _SEED.search(text)
    if seed is None:
        return _checked(text)
    config, problem = _checked(f"{text[: seed.start(1)]}0{text[seed.end(1) :]}")
    return config.model_copy(update={"seed": int(seed[1])}), problem


@lru_cache(maxsize=20_000)
def _checked(text: str) -> tuple[RunConfig, str | None]:
    try:
        return RunConfig.from_json(text), None
    except (ConfigError, ValueError) as error:
        return _unchecked(text), f"The stored description of this run cannot be read: {error}"


def _unchecked(text: str) -> RunConfig:
    try:
        stored = json.loads(text)
    except json.JSONDecodeError:
        stored = {}
    values: dict[str, Any] = {"corpus": "unreadable", "tasks": ()}
    if isinstance(stored, dict):
        known = {("lambda_" if key == "lambda" else key): value for key, value in stored.items()}
        values |= {key: value for key, value in known.items() if _is_of_kind(key, value)}
    frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return RunConfig.model_construct(None, **frozen)


def _is_of_kind(field: str, value: Any) -> bool:
    """Whether a run has the field, and the value is a number, a text, a truth or a list as in it."""
    if field not in RunConfig.model_fields:
        return False
    kind = str(RunConfig.model_fields[field].annotation)
    if value is None:
        return "None" in kind
    if "tuple" in kind:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if "int" in kind or "float" in kind:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, bool if "bool" in kind else str)


def run_of(row: Sequence[Any]) -> Run:
    """The Run of a row of RUN_COLUMNS, without its facts."""
    (
        id_, config_text, configuration_id, sweep, state, created_at, started_at, finished_at,
        host, pid, process_started, boot_id, heartbeat_at, heartbeat_due,
        step, total_steps, epoch, progress_at, best_epoch, checkpoint, log,
        error_type, error_message, error_traceback, error_exit_code, attempt, stop_requested_at,
        archived_at, note, tags, priority, retries, waiting_for, engine_job, saved_step, _,
    ) = row  # fmt: skip
    config, problem = parse_config(config_text if isinstance(config_text, str) else "")
    error = None
    if error_type is not None:
        error = ErrorInfo(error_type, error_message or "", error_traceback or "", error_exit_code)
    return Run(
        id=id_,
        config=config,
        configuration_id=configuration_id,
        sweep=sweep,
        state=_STATES[state],
        created_at=moment(created_at) or NO_TIME,
        started_at=moment(started_at),
        finished_at=moment(finished_at),
        owner=None if pid is None else Owner(host, pid, process_started, boot_id),
        heartbeat_at=moment(heartbeat_at),
        heartbeat_due=moment(heartbeat_due),
        step=_whole(step) or 0,
        total_steps=_whole(total_steps),
        epoch=epoch if type(epoch) is float and math.isfinite(epoch) else 0.0,
        progress_at=moment(progress_at),
        best_epoch=_whole(best_epoch),
        checkpoint=checkpoint,
        log=log,
        error=error,
        facts=_NO_FACTS,
        attempt=attempt,
        stop_requested_at=moment(stop_requested_at),
        archived_at=moment(archived_at),
        note=note,
        tags=() if tags == "[]" else _tags(tags),
        config_problem=problem,
        priority=priority,
        retries=retries,
        waiting_for=waiting_for,
        engine_job=engine_job,
        saved_step=_whole(saved_step),
    )
