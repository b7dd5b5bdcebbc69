"""Rows of `runs` to frozen `Run` values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from core.config import RunConfig
from core.errors import ConfigError
from core.store.records import ErrorInfo, Owner, Run
from core.store.states import RunState
from core.store.tables import runs

__all__ = ["RUN_COLUMNS", "moment", "parse_config", "run_of"]

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
_STATES = {state.value: state for state in RunState}


def moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a timezone-aware UTC time."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


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
        values |= {key: value for key, value in known.items() if key in RunConfig.model_fields}
    frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return RunConfig.model_construct(None, **frozen)


def run_of(row: Sequence[Any]) -> Run:
    """The Run of a row of RUN_COLUMNS, without its facts."""
    (
        id_, config_text, configuration_id, sweep, state, created_at, started_at, finished_at,
        host, pid, process_started, boot_id, heartbeat_at, heartbeat_due,
        step, total_steps, epoch, progress_at, best_epoch, checkpoint, log,
        error_type, error_message, error_traceback, error_exit_code, attempt, stop_requested_at,
        archived_at, note, tags, priority, retries, waiting_for, engine_job, saved_step, _,
    ) = row  # fmt: skip
    config, problem = parse_config(config_text)
    error = None
    if error_type is not None:
        error = ErrorInfo(error_type, error_message or "", error_traceback or "", error_exit_code)
    return Run(
        id=id_,
        config=config,
        configuration_id=configuration_id,
        sweep=sweep,
        state=_STATES[state],
        created_at=datetime.fromtimestamp(created_at, UTC),
        started_at=moment(started_at),
        finished_at=moment(finished_at),
        owner=None if pid is None else Owner(host, pid, process_started, boot_id),
        heartbeat_at=moment(heartbeat_at),
        heartbeat_due=moment(heartbeat_due),
        step=step,
        total_steps=total_steps,
        epoch=epoch,
        progress_at=moment(progress_at),
        best_epoch=best_epoch,
        checkpoint=checkpoint,
        log=log,
        error=error,
        facts=_NO_FACTS,
        attempt=attempt,
        stop_requested_at=moment(stop_requested_at),
        archived_at=moment(archived_at),
        note=note,
        tags=() if tags == "[]" else tuple(json.loads(tags)),
        config_problem=problem,
        priority=priority,
        retries=retries,
        waiting_for=waiting_for,
        engine_job=engine_job,
        saved_step=saved_step,
    )
