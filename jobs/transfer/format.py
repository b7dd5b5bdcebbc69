"""The files of an export: `run.json` (description, facts, history), and tables of what was recorded."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
from core.records import TOTAL, RunFacts
from core.store import Run, RunEvent, RunState
from core.store.records import MetricKey, MetricSeries, StoredScore
from core.store.results import Labels
from core.store.schema import EVENT_KINDS
from core.store.snapshot_codec import check
from core.store.transfer import RunRecord, StoredSnapshot

FORMAT = 1
CHECKPOINT = "checkpoint"
"""The folder of an export that holds the run's own checkpoint."""
MOST_BYTES = 4 * 1024**3
"""Of one table, unpacked."""

# What travels of a run as it stands.
_SAME = (
    *("configuration_id", "sweep", "attempt", "created_at", "started_at", "finished_at", "progress_at"),
    *("step", "total_steps", "epoch", "best_epoch", "note", "tags"),
)
# Before and after these no run was trained; a clock that is wrong by up to a day is not held against a run.
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)
_LONGEST_TEXT = 100_000
_LARGEST = 2**53  # every whole number up to here is a float too
_MOST_SECONDS = 1e10


def _of_our_time(moment: datetime) -> datetime:
    if not _FIRST <= moment < _LAST:
        raise ValueError(f"{moment} is not between 2000 and 2099")
    return moment


def _without_zero(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text in it holds the character 0, which no database keeps")
    return text


_Moment = Annotated[AwareDatetime, AfterValidator(_of_our_time)]
_Text = Annotated[str, AfterValidator(_without_zero)]
_Name = Annotated[_Text, Field(max_length=200)]
_Label = Annotated[_Text, Field(max_length=1000)]
_Count = Annotated[int, Field(ge=0, lt=2**31)]
_Share = Annotated[float, Field(ge=0, le=1)]  # which NaN is not
_Epoch = Annotated[float, Field(ge=0, le=_MOST_SECONDS)]
_Split = Literal["train", "dev", "test"]


def first_problem(error: ValidationError) -> str:
    """Where the first thing is that is wrong, and what; in one line."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "it"
    return f"{where[:200]}: {' '.join(first['msg'].split())[:300]}"


class _Line(BaseModel):
    """A line of the run's history."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: _Moment
    kind: str
    message: str = Field(max_length=_LONGEST_TEXT)

    @model_validator(mode="after")
    def _is_an_event(self) -> _Line:
        if self.kind not in EVENT_KINDS:
            raise ValueError(f"'{self.kind[:40]}' is no kind of event")
        return self


class RunFile(BaseModel):
    """`run.json`: all of a run that is neither a table nor a weight."""

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
    step: _Count
    total_steps: _Count | None
    epoch: float = Field(ge=0)
    best_epoch: _Count | None
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
        history = tuple(
            _Line(
                time=line.time,
                kind=line.kind,
                message="Started." if line.kind == RunState.RUNNING else line.message,
            )
            for line in record.history
        )
        return cls(
            made_by=f"mrnlab {__version__}",
            exported_at=at,
            run=run.id,
            config=json.loads(run.config.to_json()),
            facts=dict(run.facts),
            history=history,
            folders=dict(folders),
            no_folders_because=no_folders_because,
            **{name: getattr(run, name) for name in _SAME},
        )

    @classmethod
    def read(cls, text: bytes) -> RunFile:
        """Raises ValueError where the text is no such file."""
        if b"\\u0000" in text:
            raise ValueError("a text in it holds the character 0, which no database keeps")
        try:
            read = cls.model_validate_json(text)
        except ValidationError as error:
            if error.errors()[0]["loc"] == ("format",):
                raise ValueError("a newer MRN Lab made it; update this one") from error
            raise
        _check_values({"config": read.config, "facts": read.facts})
        if read.facts:
            # Strictly: what is kept is the JSON itself, in which a number must be one.
            TypeAdapter(RunFacts).validate_json(json.dumps(read.facts, allow_nan=False), strict=True)
        return read

    def record(self, tables: Mapping[str, Any]) -> RunRecord:
        """The run with what its tables hold. Raises ValueError where the description does not hold, or the
        parts speak of different things.
        """
        try:
            config = RunConfig.stored(self.config)
        except ConfigError as error:
            raise ValueError(f"its description does not hold here: {error}") from error
        _check_facts(config, self.facts)
        most = {"step": self.total_steps, "epoch": config.epochs, "best_epoch": config.epochs}
        for name, limit in most.items():
            if limit is not None and (getattr(self, name) or 0) > limit:
                raise ValueError(f"{name} {getattr(self, name)} is more than {limit}")
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
        _check_values([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            _check_values(item)
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


_STRING, _INTEGER, _REAL = pa.string(), pa.int64(), pa.float64()
_KEY = {"task": _STRING, "split": _STRING, "name": _STRING}
_TYPES = {"int": _INTEGER, "float": _REAL, "str": _STRING, "bytes": pa.binary(), "float | None": _REAL}


def _columns(kind: Any) -> dict[str, pa.DataType]:
    """A column for each field of a dataclass that a table can hold."""
    fields = dataclasses.fields(kind)
    return {field.name: _TYPES[str(field.type)] for field in fields if str(field.type) in _TYPES}


TABLES: Mapping[str, pa.Schema] = {
    "metrics.parquet": pa.schema(_KEY | {"step": _INTEGER, "epoch": _REAL, "seconds": _REAL, "value": _REAL}),
    # The report of labels is a JSON object.
    "scores.parquet": pa.schema(
        {name: type_ for name, type_ in _columns(StoredScore).items() if name != "run_id"}
        | {"report": _STRING}
    ),
    # Labels only: the words belong to whoever made the corpus.
    "predictions.parquet": pa.schema(
        {
            **{"split": _STRING, "task": _STRING, "sentence": _INTEGER},
            **{"gold": pa.list_(_STRING), "predicted": pa.list_(_STRING)},
        }
    ),
    "snapshots.parquet": pa.schema(_columns(StoredSnapshot)),
}


def write_tables(record: RunRecord, folder: Path) -> None:
    """Writes the tables of a run. Numbers that are not finite stay what they are."""
    for name, table in _tables(record):
        pq.write_table(table, folder / name, compression="zstd")


def _tables(record: RunRecord) -> Iterator[tuple[str, pa.Table]]:
    curves = record.curves
    columns: dict[str, Any] = {
        part: [getattr(curve.key, part) for curve in curves for _ in curve.step] for part in _KEY
    }
    for part in ("step", "epoch", "seconds", "value"):
        columns[part] = np.concatenate([getattr(curve, part) for curve in curves]) if curves else []
    yield "metrics.parquet", pa.table(columns, schema=TABLES["metrics.parquet"])
    rows = {
        "scores.parquet": [
            dataclasses.asdict(score) | {"report": json.dumps(score.report, ensure_ascii=False)}
            for score in record.scores
        ],
        "predictions.parquet": [
            {"split": split, "task": task, "sentence": place, "gold": gold, "predicted": predicted}
            for (split, task), labels in record.predictions.items()
            for place, (gold, predicted) in enumerate(zip(*labels, strict=True))
        ],
        "snapshots.parquet": [dataclasses.asdict(snapshot) for snapshot in record.snapshots],
    }
    for name, of_table in rows.items():
        yield name, pa.Table.from_pylist(of_table, schema=TABLES[name])


def read_table(name: str, content: bytes) -> Any:
    """What a RunRecord holds of that table, given its file's bytes.

    Raises ValueError where it is not a table of that name, is too large, or has a value that cannot be.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        groups = (file.metadata.row_group(place) for place in range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > MOST_BYTES:
            raise ValueError("it unpacks to more than any run records")
        # Compared before a row is read, so that no kind of value comes in that we do not write.
        if not file.schema_arrow.remove_metadata().equals(TABLES[name]):
            raise ValueError("its columns are not those of such a table")
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it cannot be read ({str(error).splitlines()[0]})") from error
    readers = {
        "metrics.parquet": _curves,
        "scores.parquet": _scores,
        "predictions.parquet": _predictions,
        "snapshots.parquet": _snapshots,
    }
    return readers[name](table)


def _curves(table: pa.Table) -> list[MetricSeries]:
    if any(column.null_count for column in table.columns):
        raise ValueError("a value of a metric is missing")
    frame = table.to_pandas()
    for name in ("epoch", "seconds"):
        if not frame[name].between(0, _MOST_SECONDS).all():  # NaN is in no range
            raise ValueError(f"a value of {name} of a metric is not possible")
    name_of = TypeAdapter(Annotated[_Text, Field(max_length=100)])
    curves = []
    for (task, split, name), rows in frame.groupby([*_KEY], sort=False):
        key = MetricKey(TypeAdapter(_Name).validate_python(task), split, name_of.validate_python(name))
        if split not in ("train", "dev"):
            raise ValueError(f"'{name}' of '{split[:40]}' is no curve of a run")
        step, *values = (rows[part].to_numpy() for part in ("step", "epoch", "seconds", "value"))
        if not (step[0] >= 0 and step[-1] < 2**31 and (np.diff(step) > 0).all()):
            raise ValueError(f"the steps of {name} are not in order")
        curves.append(MetricSeries(0, key, step, *values))
    return curves


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _ReportLine(_Row):
    precision: _Share
    recall: _Share
    f1: _Share
    support: Annotated[float, Field(ge=0, lt=2**31)]


class _Score(_Row):
    split: _Split
    epoch: _Count
    task: _Name
    score_name: Annotated[_Text, Field(max_length=40)]
    score: _Share
    accuracy: _Share
    precision: _Share | None
    recall: _Share | None
    f1_conll: _Share | None
    f1_strict: _Share | None
    seqeval_f1: _Share | None
    tokens: _Count
    report: str


class _Prediction(_Row):
    split: _Split
    task: _Name
    sentence: _Count
    gold: list[_Label]
    predicted: list[_Label]


def _scores(table: pa.Table) -> list[StoredScore]:
    rows = TypeAdapter(list[_Score]).validate_python(table.to_pylist())
    if len({(row.split, row.task) for row in rows}) < len(rows):
        raise ValueError("a task has two scores on one split")
    for row in rows:
        TypeAdapter(dict[_Label, _ReportLine]).validate_json(row.report, strict=True)
    return [StoredScore(run_id=0, **row.model_dump() | {"report": json.loads(row.report)}) for row in rows]


def _predictions(table: pa.Table) -> dict[tuple[str, str], tuple[Labels, Labels]]:
    read: dict[tuple[str, str], tuple[list[list[str]], list[list[str]]]] = defaultdict(lambda: ([], []))
    for row in TypeAdapter(list[_Prediction]).validate_python(table.to_pylist()):
        gold, predicted = read[row.split, row.task]
        if row.sentence != len(gold) or len(row.gold) != len(row.predicted):
            raise ValueError(f"sentence {row.sentence} has not a predicted label for each gold one")
        gold.append(row.gold)
        predicted.append(row.predicted)
    return dict(read)


def _snapshots(table: pa.Table) -> list[StoredSnapshot]:
    rows = table.to_pylist()
    snapshots = [StoredSnapshot(**row) for row in rows]
    for row in rows:
        TypeAdapter(_Count).validate_python(row["step"])
        TypeAdapter(_Epoch).validate_python(row["epoch"])
        if None in row.values():
            raise ValueError("a value of its covariances is missing")
        check(row)
    if any(later.step <= earlier.step for earlier, later in pairwise(snapshots)):
        raise ValueError("the steps of its covariances are not in order")
    return snapshots
