"""The values that the store returns: frozen, never database rows. Needs neither SQLAlchemy nor torch."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from core.config import OTHER, RunConfig, has_field
from core.corpora.repeats import Repeat
from core.errors import MRNLabError
from core.events import RunFacts, TaskFacts, TaskScore
from core.metrics import MetricKey as MetricKey

_TRACEBACK_LINES = 40

# A run's life: the closed set of states and the one table of allowed moves.


class RunState(StrEnum):
    """The state of a run, from queued to ended."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def word(self) -> str:
        """The word for people; the stored values of a stop are older."""
        return {"cancelling": "stopping", "cancelled": "stopped"}.get(self.value, self.value)


_S = RunState

MOVES: dict[RunState, frozenset[RunState]] = {
    # A queued run that is stopped has no worker to wait for: it is stopped at once.
    _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLED}),
    _S.RUNNING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLING, _S.LOST}),
    # A stop asked for at the last step may find the run ended, failed or its owner dead.
    _S.CANCELLING: frozenset({_S.CANCELLED, _S.SUCCEEDED, _S.FAILED, _S.LOST}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset({_S.QUEUED}),
    _S.CANCELLED: frozenset({_S.QUEUED}),
    _S.LOST: frozenset({_S.QUEUED}),
}

ACTIVE = frozenset({_S.QUEUED, _S.RUNNING, _S.CANCELLING})
ENDED = frozenset(set(RunState) - ACTIVE)
RESTARTABLE = frozenset(state for state, moves in MOVES.items() if _S.QUEUED in moves)


@dataclass(frozen=True)
class Owner:
    """The process that has claimed a run. A pid alone can be used again, hence its start time."""

    host: str
    pid: int
    process_started: float
    boot_id: str


@dataclass(frozen=True)
class ErrorInfo:
    """The failure of a run: the message for the researcher, and the details below it."""

    type: str
    message: str
    traceback: str
    exit_code: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """The error's fields (`MRNLabError.data`), kept as `RunFacts.error` of a run that has facts."""

    @classmethod
    def from_error(cls, error: Exception) -> ErrorInfo:
        """An error as it is stored: ours speak for themselves, others are introduced."""
        lines = "".join(traceback.format_exception(error)).splitlines()
        message = str(error).strip() or type(error).__name__
        if not isinstance(error, MRNLabError):
            message = f"Training stopped with an unexpected error: {type(error).__name__}: {message}"
        data = error.data if isinstance(error, MRNLabError) else {}
        if isinstance(error, OSError) and error.errno is not None:
            data = {"errno": error.errno}
        return cls(type(error).__name__, message, "\n".join(lines[-_TRACEBACK_LINES:]), data=data)


@dataclass(frozen=True)
class Conditions:
    """The conditions of a run's scores beside its description, from its facts.

    They are the hash of its corpus's text, and the precision and the alignment that `auto` chose. None where
    the facts lack them; `problem` is why they cannot be read (`Run.facts_problem`).
    """

    text: str | None = None
    precision: str | None = None
    alignment: str | None = None
    problem: str | None = None
    repeats: tuple[Repeat, ...] = ()
    """Which sentences its scores are on that training shows too; empty of runs of earlier versions."""


@dataclass(frozen=True)
class Run:
    """One run as the store knows it. All times are timezone-aware UTC."""

    id: int
    config: RunConfig
    configuration_id: str
    sweep: str | None
    """The name that runs launched together share."""
    state: RunState
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    owner: Owner | None
    heartbeat_at: datetime | None
    step: int
    total_steps: int | None
    epoch: float
    progress_at: datetime | None
    best_epoch: int | None
    checkpoint: str | None
    log: str | None
    error: ErrorInfo | None
    attempt: int
    """1 for the first try; each resume or retry adds one."""
    stop_requested_at: datetime | None = None
    archived_at: datetime | None = None
    """When it was put out of sight; None while it is in the lists."""
    note: str = ""
    keywords: tuple[str, ...] = ()
    """Normalised (`core.store.runs.normal_keyword`) and sorted."""
    config_problem: str | None = None
    """The reason why the stored description no longer holds, for example that another version wrote it.

    `config` then has the readable fields (`RunConfig.unchecked`), and the run cannot be trained.
    """
    stored_config: str | None = None
    """The description as it is stored, where it no longer holds."""
    priority: int = 0
    """Higher ones are claimed first; among equals the oldest."""
    retries: int = 0
    """How many more times it is resumed by itself when its worker dies."""
    waiting_for: str | None = None
    """Why a queued run does not start yet, in words, where another scheduler places it."""
    engine_job: str | None = None
    """The scheduler's name for the run."""
    saved_step: int | None = None
    """The step of the newest training state on disk, from which it would resume."""
    threads: int | None = None
    """The CPU threads that it may take, decided when it was queued; None for all of its machine."""

    @property
    def problem(self) -> str | None:
        """Why the run cannot be compared with others: what is read of it cannot be read."""
        return self.config_problem

    @property
    def lacks_model(self) -> str:
        """Why the run has no model to tag with, for a run without one: a sentence."""
        if self.state is RunState.SUCCEEDED:  # one that was restored from a record, say
            return f"Run {self.id} has succeeded, but this store has no model of it to tag with."
        return f"Run {self.id} is {self.state.word} and has no finished model to tag with."

    @property
    def description(self) -> Mapping[str, Any]:
        """Every field of the run's description by its public name, as in JSON.

        The stored text of a description that no longer holds.
        """
        if self.stored_config is None:
            return self.config.values()
        try:
            stored = from_json(self.stored_config)
        except ValueError:
            stored = self.stored_config
        return stored if isinstance(stored, dict) else {"stored": stored}

    @property
    def description_lines(self) -> list[tuple[str, str]]:
        """Field and value of all that the run's description sets, lists with commas.

        Of a system that was trained elsewhere, only of what is known of it.
        """
        is_other = self.stored_config is None and self.config.paradigm == OTHER
        return [
            (field, ",".join(map(str, value)) if isinstance(value, list) else str(value))
            for field, value in self.description.items()
            if value is not None and (not is_other or has_field(self.config, field))
        ]

    @property
    def archived(self) -> bool:
        """Whether it is left out of lists of all runs."""
        return self.archived_at is not None

    @property
    def seconds(self) -> float | None:
        """Wall-clock seconds of training so far or in all; None before it starts."""
        if self.started_at is None:
            return None
        signs = (self.started_at, self.progress_at, self.heartbeat_at)
        end = self.finished_at or max(sign for sign in signs if sign is not None)
        return max(0.0, (end - self.started_at).total_seconds())


@dataclass(frozen=True)
class RunWithFacts(Run):
    """A run that was read with its facts. A list without them has no such attribute, so nobody asks it."""

    facts: RunFacts | None = None
    """None until training begins, and where they cannot be read."""
    facts_problem: str | None = None
    """Why the stored facts cannot be read, if so."""

    @property
    def problem(self) -> str | None:
        """Why the run cannot be compared with others: its description or its facts cannot be read."""
        return self.config_problem or self.facts_problem

    @property
    def alignment(self) -> str | None:
        """The alignment that it trains with; None where it has none, or that is not known yet."""
        return self.facts.alignment if self.facts else None

    @property
    def task_facts(self) -> tuple[TaskFacts, ...]:
        """Its tasks as they are stored; none until training begins."""
        return self.facts.tasks if self.facts else ()


@dataclass(frozen=True)
class MetricSeries:
    """One curve of one run, in step order. NaN and infinities come back as themselves."""

    run_id: int
    key: MetricKey
    step: NDArray[np.int64]
    epoch: NDArray[np.float64]
    seconds: NDArray[np.float64]
    value: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class StoredScore(TaskScore):
    """One task's scores on one split of one run."""

    run_id: int
    split: str
    epoch: int

    @property
    def reason(self) -> str:
        """Why the headline is undefined, where it is."""
        return self.undefined_because(f"the {self.split} split")


@dataclass(frozen=True, order=True)
class SnapshotKey:
    """A moment at which a run's covariances were stored."""

    step: int
    epoch: float


@dataclass(frozen=True)
class RunEvent:
    """A line of a run's history: a state it moved to, or a note for the researcher."""

    id: int
    run_id: int
    time: datetime
    kind: str
    message: str


@dataclass(frozen=True)
class StoredPlan:
    """A plan of a comparison as text (`core.results.plan`), and when it was declared.

    After `ends_at` it begins no run; None where it has all the time.
    """

    key: str
    plan: str
    declared_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True)
class Machine:
    """A machine that trains: how many runs, since when the longest of them, its last sign of life."""

    host: str
    training: int
    since: datetime
    heard: datetime
