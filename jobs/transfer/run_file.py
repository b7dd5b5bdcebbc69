"""`run.json` of an export: the run's description, facts and history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from core import __version__
from core.config import RunConfig
from core.errors import ConfigError
from core.store import Run, RunEvent, RunState
from core.store.tables import EVENT_KINDS
from core.store.transfer import RunRecord
from core.training.events import RunFacts

__all__ = ["FORMAT", "RunFile"]

FORMAT = 1

# What travels of a run as it stands.
_SAME = (
    *("configuration_id", "sweep", "attempt", "created_at", "started_at", "finished_at", "progress_at"),
    *("step", "total_steps", "epoch", "best_epoch", "note", "tags"),
)
_FACTS = TypeAdapter(RunFacts)


class _Line(BaseModel):
    """A line of the run's history."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: AwareDatetime
    kind: str
    message: str = Field(max_length=100_000)


class RunFile(BaseModel):
    """All of a run that is neither a table nor a weight."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = 1
    made_by: str = Field(max_length=200)
    exported_at: AwareDatetime
    run: int = Field(ge=1)
    configuration_id: str = Field(pattern=r"^[0-9a-f]{12}$")
    config: dict[str, Any]
    sweep: str | None = Field(max_length=200)
    attempt: int = Field(ge=1, lt=2**31)
    created_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    progress_at: AwareDatetime | None
    step: int = Field(ge=0, lt=2**31)
    total_steps: int | None = Field(ge=0, lt=2**31)
    epoch: float = Field(ge=0)
    best_epoch: int | None = Field(ge=0, lt=2**31)
    note: str = Field(max_length=1_000_000)
    tags: tuple[str, ...]
    facts: dict[str, Any]
    history: tuple[_Line, ...]
    folders: dict[str, str]
    """Task → its Transformers folder."""
    no_folders_because: str | None

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
            if read.facts:
                _FACTS.validate_python(read.facts)
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
        values: dict[str, Any] = {name: getattr(self, name) for name in _SAME}
        # What belongs to one laboratory.
        values |= dict.fromkeys(("owner", "heartbeat_at", "heartbeat_due", "checkpoint", "log", "error"))
        run = Run(id=self.run, config=config, state=RunState.SUCCEEDED, facts=self.facts, **values)
        history = [RunEvent(0, self.run, line.time, line.kind, line.message) for line in self.history]
        return RunRecord(run=run, history=history, **tables)
