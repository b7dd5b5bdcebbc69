"""`run.json` of an export: the run's description, facts and history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from core import __version__
from core.config import RunConfig
from core.errors import ConfigError
from core.store import Run, RunEvent, RunState
from core.store.tables import EVENT_KINDS
from core.store.transfer import RunRecord
from core.training.events import TOTAL, RunFacts

__all__ = ["FORMAT", "RunFile"]

FORMAT = 1

# What travels of a run as it stands.
_SAME = (
    *("configuration_id", "sweep", "attempt", "created_at", "started_at", "finished_at", "progress_at"),
    *("step", "total_steps", "epoch", "best_epoch", "note", "tags"),
)
_FACTS = TypeAdapter(RunFacts)
# Before and after these no run was trained; a clock that is wrong by up to a day is not held against a run.
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)
_LONGEST_TEXT = 100_000
_LARGEST = 2**53  # every whole number up to here is a float too


def _of_our_time(moment: datetime) -> datetime:
    if not _FIRST <= moment < _LAST:
        raise ValueError(f"{moment} is not between 2000 and 2099")
    return moment


_Moment = Annotated[AwareDatetime, AfterValidator(_of_our_time)]


class _Line(BaseModel):
    """A line of the run's history."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: _Moment
    kind: str
    message: str = Field(max_length=_LONGEST_TEXT)


class RunFile(BaseModel):
    """All of a run that is neither a table nor a weight."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = 1
    made_by: str = Field(max_length=200)
    exported_at: _Moment
    run: int = Field(ge=1)
    configuration_id: str = Field(pattern=r"^[0-9a-f]{12}$")
    config: dict[str, Any]
    sweep: str | None = Field(max_length=200)
    attempt: int = Field(ge=1, lt=2**31)
    created_at: _Moment
    started_at: _Moment | None
    finished_at: _Moment | None
    progress_at: _Moment | None
    step: int = Field(ge=0, lt=2**31)
    total_steps: int | None = Field(ge=0, lt=2**31)
    epoch: float = Field(ge=0)
    best_epoch: int | None = Field(ge=0, lt=2**31)
    note: str = Field(max_length=1_000_000)
    tags: tuple[str, ...] = Field(max_length=1000)
    facts: dict[str, Any]
    history: tuple[_Line, ...] = Field(max_length=100_000)
    folders: dict[str, str]
    """Task → its Transformers folder."""
    no_folders_because: str | None

    @model_validator(mode="after")
    def _times_follow_each_other(self) -> RunFile:
        started, ended = self.started_at or self.created_at, self.finished_at
        if started < self.created_at - _CLOCKS_DIFFER:
            raise ValueError("it was started before it was made")
        if ended is not None and ended < started - _CLOCKS_DIFFER:
            raise ValueError("it ended before it was started")
        return self

    @classmethod
    def of(
        cls, record: RunRecord, at: datetime, folders: Mapping[str, str], no_folders_because: str | None
    ) -> RunFile:
        """Of a run that is exported now. Names of machines and processes stay behind."""
        run = record.run
        running = RunState.RUNNING.value
        return cls(
            made_by=f"mrnlab {__version__}",
            exported_at=at,
            run=run.id,
            config=json.loads(run.config.to_json()),
            facts=dict(run.facts),
            history=tuple(
                _Line(
                    time=line.time,
                    kind=line.kind,
                    message="Started." if line.kind == running else line.message,
                )
                for line in record.history
            ),
            folders=dict(folders),
            no_folders_because=no_folders_because,
            **{name: getattr(run, name) for name in _SAME},
        )

    @classmethod
    def read(cls, text: bytes) -> RunFile:
        """Raises ValueError, with the end of a sentence, where the text is no such file."""
        if b"\\u0000" in text:
            raise ValueError("a text in it holds the character 0, which no database keeps")
        try:
            read = cls.model_validate_json(text)
            _check_values({"config": read.config, "facts": read.facts})
            if read.facts:
                # Strictly: what is kept is the JSON itself, in which a number must be one.
                _FACTS.validate_json(json.dumps(read.facts, allow_nan=False), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            if first["loc"] == ("format",):
                raise ValueError("a newer MRN Lab made it; update this one") from error
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from error
        if odd := [line.kind for line in read.history if line.kind not in EVENT_KINDS]:
            raise ValueError(f"'{odd[0][:40]}' is no kind of event")
        return read

    def record(self, tables: Mapping[str, Any]) -> RunRecord:
        """The run with what its tables hold. Raises ValueError where the description does not hold."""
        try:
            config = RunConfig.stored(self.config)
        except ConfigError as error:
            raise ValueError(f"its description does not hold here: {error}") from error
        _check_facts(config, self.facts)
        for name, most in (
            ("step", self.total_steps),
            ("epoch", config.epochs),
            ("best_epoch", config.epochs),
        ):
            if most is not None and (getattr(self, name) or 0) > most:
                raise ValueError(f"{name} {getattr(self, name)} is more than {most}")
        values: dict[str, Any] = {name: getattr(self, name) for name in _SAME}
        # What belongs to one laboratory.
        values |= dict.fromkeys(("owner", "heartbeat_at", "heartbeat_due", "checkpoint", "log", "error"))
        run = Run(id=self.run, config=config, state=RunState.SUCCEEDED, facts=self.facts, **values)
        history = [RunEvent(0, self.run, line.time, line.kind, line.message) for line in self.history]
        record = RunRecord(run=run, history=history, **tables)
        _check_references(record)
        return record


def _check_values(value: Any) -> None:
    """Raises ValueError where a text is too long, or a number is not finite or too large."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            _check_values(name)
            _check_values(one)
    elif isinstance(value, list):
        for one in value:
            _check_values(one)
    elif isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise ValueError(f"a text has {len(value):,} characters, and the most is {_LONGEST_TEXT:,}")
    elif isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:  # NaN neither
        raise ValueError(f"{str(value)[:40]} is no number of a run")


def _check_facts(config: RunConfig, facts: Mapping[str, Any]) -> None:
    """Raises ValueError where the facts speak of other tasks, or their tables are of different sizes."""
    if not facts:
        return
    tasks = [task["name"] for task in facts["tasks"]]
    if sorted(tasks) != sorted(config.tasks):
        raise ValueError(f"its facts are of the tasks {', '.join(tasks)[:80]}, not those of its description")
    counts = [task[name] for task in facts["tasks"] for name in ("train_sentences", "train_tokens")]
    counts += [facts[name] for name in ("threads", "total_steps", "steps_per_epoch", "features")]
    if min(counts) < 0:
        raise ValueError("a count in its facts is below zero")
    for name in ("meet", "cooccurrence"):
        if any(len(row) != len(facts[name]) for row in facts.get(name, ())):
            raise ValueError(f"{name} in its facts is no square table")
    if len(facts.get("meet", ())) not in (0, len(tasks)):
        raise ValueError("meet in its facts has not a row for each task")
    if len(facts.get("label_owners", ())) != len(facts.get("label_names", ())):
        raise ValueError("its facts have not an owner for each label row")


def _check_references(record: RunRecord) -> None:
    """Raises ValueError where a table speaks of what the run has not."""
    run = record.run
    tasks = set(run.config.tasks)
    named = {score.task for score in record.scores} | {task for _, task in record.predictions}
    named |= {curve.key.task for curve in record.curves} - {TOTAL}
    if strange := named - tasks:
        raise ValueError(f"a table has the task '{min(strange)[:40]}', which the run has not")
    if any(score.epoch > run.config.epochs for score in record.scores):
        raise ValueError("its scores are of an epoch after the last")
    labels = len(run.facts.get("label_names", ()))
    if any(shot.tasks != len(tasks) or (labels and shot.labels != labels) for shot in record.snapshots):
        raise ValueError("its covariances are of other tasks or labels than its run")
