"""`run.json` of an export: the run's description, facts and history."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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


# What a run recorded as Parquet files, which any program for data reads, and back.


MOST_BYTES = 4 * 1024**3
"""Of one table, unpacked."""

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_WORDS = pa.list_(_TEXT)
_OF = {"int": _WHOLE, "float": _REAL, "str": _TEXT, "bytes": pa.binary(), "float | None": _REAL}


def _columns(kind: Any, **others: pa.DataType) -> dict[str, pa.DataType]:
    """A column per field of a dataclass; `others` replace what it says."""
    fields = {field.name: _OF.get(str(field.type)) for field in dataclasses.fields(kind)}
    return {name: type_ for name, type_ in (fields | others).items() if type_ is not None}


TABLES: Mapping[str, pa.Schema] = {
    "metrics.parquet": pa.schema(
        {
            **{"task": _TEXT, "split": _TEXT, "name": _TEXT},
            **{"step": _WHOLE, "epoch": _REAL, "seconds": _REAL, "value": _REAL},
        }
    ),
    # The report of labels is a JSON object.
    "scores.parquet": pa.schema(
        {name: type_ for name, type_ in _columns(StoredScore, report=_TEXT).items() if name != "run_id"}
    ),
    # Labels only: the words belong to whoever made the corpus.
    "predictions.parquet": pa.schema(
        {"split": _TEXT, "task": _TEXT, "sentence": _WHOLE, "gold": _WORDS, "predicted": _WORDS}
    ),
    "snapshots.parquet": pa.schema(_columns(StoredSnapshot)),
}


def write_tables(record: RunRecord, folder: Path) -> None:
    """Writes the tables of a run. Numbers that are not finite stay what they are."""
    for (name, schema), rows in zip(TABLES.items(), _tables(record), strict=True):
        # From numpy arrays, of which Arrow would make NaN a missing number unless told.
        arrays = [pa.array(rows[field.name], type=field.type, from_pandas=False) for field in schema]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / name, compression="zstd")


def _tables(record: RunRecord) -> Iterable[Mapping[str, Any]]:
    """The columns of each table, in the order of TABLES."""
    curves = record.curves
    repeated = {
        part: [getattr(curve.key, part) for curve in curves for _ in curve.step]
        for part in ("task", "split", "name")
    }
    numbers: dict[str, Any] = {
        part: np.concatenate([getattr(curve, part) for curve in curves]) if curves else []
        for part in ("step", "epoch", "seconds", "value")
    }
    yield repeated | numbers
    scores = [dataclasses.asdict(score) for score in record.scores]
    for score in scores:
        score["report"] = json.dumps(score["report"], ensure_ascii=False)
    yield _by_column(scores, TABLES["scores.parquet"].names)
    labels = [
        {"split": split, "task": task, "sentence": place, "gold": gold, "predicted": predicted}
        for (split, task), both in record.predictions.items()
        for place, (gold, predicted) in enumerate(zip(*both, strict=True))
    ]
    yield _by_column(labels, TABLES["predictions.parquet"].names)
    shots = [dataclasses.asdict(shot) for shot in record.snapshots]
    yield _by_column(shots, TABLES["snapshots.parquet"].names)


def _by_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}


def read_table(name: str, content: bytes) -> pa.Table:
    """The table in that file's bytes. Raises ValueError where it is not one of that name, or is too large."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        groups = (file.metadata.row_group(place) for place in range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > MOST_BYTES:
            raise ValueError("it unpacks to more than any run records")
        # Compared before a row is read, so that no kind of value comes in that we do not write.
        if not file.schema_arrow.remove_metadata().equals(TABLES[name]):
            raise ValueError("its columns are not those of such a table")
        return file.read()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it cannot be read ({str(error).splitlines()[0]})") from error


def recorded(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The fields of a RunRecord that the tables hold. Raises ValueError where a value cannot be one."""
    scores = [_score(row) for row in tables["scores.parquet"].to_pylist()]
    if len({(score.split, score.task) for score in scores}) < len(scores):
        raise ValueError("a task has two scores on one split")
    snapshots = [_snapshot(row) for row in tables["snapshots.parquet"].to_pylist()]
    if any(later.step <= one.step for one, later in pairwise(snapshots)):
        raise ValueError("the steps of its covariances are not in order")
    return {
        "curves": _curves(tables["metrics.parquet"]),
        "scores": scores,
        "predictions": _predictions(tables["predictions.parquet"]),
        "snapshots": snapshots,
    }


def _curves(table: pa.Table) -> list[MetricSeries]:
    if any(column.null_count for column in table.columns):
        raise ValueError("a value of a metric is missing")
    values = {name: table[name].to_numpy() for name in ("step", "epoch", "seconds", "value")}
    for name in ("epoch", "seconds"):
        # NaN is in no range.
        if not ((values[name] >= 0) & (values[name] <= _MOST_SECONDS)).all():
            raise ValueError(f"a value of {name} of a metric is not possible")
    places: dict[MetricKey, list[int]] = {}
    keys = zip(*(table[name].to_pylist() for name in ("task", "split", "name")), strict=True)
    for place, names in enumerate(keys):
        places.setdefault(MetricKey(*names), []).append(place)
    curves = []
    for key, own in places.items():
        _check_name(key.task, 200)
        _check_name(key.name, 100)
        if key.split not in ("train", "dev"):
            raise ValueError(f"'{key.name}' of '{key.split[:40]}' is no curve of a run")
        step = values["step"][own]
        if len(step) and not (step[0] >= 0 and step[-1] < 2**31 and (np.diff(step) > 0).all()):
            raise ValueError(f"the steps of {key.name} are not in order")
        others = (values[name][own] for name in ("epoch", "seconds", "value"))
        curves.append(MetricSeries(0, key, step, *others))
    return curves


_OPTIONAL = frozenset(
    field.name for field in dataclasses.fields(StoredScore) if str(field.type) == "float | None"
)
_SPLITS = ("train", "dev", "test")
_SHARES = ("score", "accuracy", *sorted(_OPTIONAL))
_MOST_SECONDS = 1e10
_MOST_LABEL = 1000


class _ReportLine(BaseModel):
    """One label of a report."""

    precision: Annotated[float, Field(ge=0, le=1)]
    recall: Annotated[float, Field(ge=0, le=1)]
    f1: Annotated[float, Field(ge=0, le=1)]
    support: Annotated[float, Field(ge=0, lt=2**31)]


_REPORT = TypeAdapter(dict[Annotated[str, Field(max_length=_MOST_LABEL)], _ReportLine])


def _score(row: Mapping[str, Any]) -> StoredScore:
    _whole(row, _OPTIONAL.__contains__)
    shares = [row[name] for name in _SHARES if row[name] is not None]
    whole = all(0 <= row[name] < 2**31 for name in ("epoch", "tokens"))
    # NaN is in no range.
    if not whole or row["split"] not in _SPLITS or not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"the scores of {row['task'][:40]} are not such")
    try:
        _REPORT.validate_json(row["report"], strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"a report of {row['task'][:40]}: {where[:80]}: {first['msg']}") from error
    report = json.loads(row["report"])
    _check_name(row["task"], 200)
    _check_name(row["score_name"], 40)
    return StoredScore(run_id=0, **{**row, "report": report})


def _predictions(table: pa.Table) -> dict[tuple[str, str], tuple[Labels, Labels]]:
    found: dict[tuple[str, str], tuple[list[list[str]], list[list[str]]]] = {}
    for row in table.to_pylist():
        gold, predicted = found.setdefault((row["split"], row["task"]), ([], []))
        labels = (row["gold"], row["predicted"])
        if not gold:
            _check_name(row["task"], 200)
        if row["split"] not in _SPLITS or row["sentence"] != len(gold) or len(labels[0]) != len(labels[1]):
            raise ValueError(f"sentence {row['sentence']} has not a predicted label for each gold one")
        if not all(isinstance(label, str) for sentence in labels for label in sentence):
            raise ValueError(f"a label of sentence {row['sentence']} is missing")
        if any(len(label) > _MOST_LABEL or "\0" in label for sentence in labels for label in sentence):
            raise ValueError(f"a label of sentence {row['sentence']} is none")
        gold.append(labels[0])
        predicted.append(labels[1])
    return dict(found)


def _snapshot(row: Mapping[str, Any]) -> StoredSnapshot:
    snapshot = StoredSnapshot(**_whole(row, lambda _name: False))
    if not 0 <= snapshot.step < 2**31 or not 0 <= snapshot.epoch <= _MOST_SECONDS:
        raise ValueError(f"covariances of step {snapshot.step}, epoch {snapshot.epoch}")
    check(row)
    return snapshot


def _check_name(name: str, most: int) -> None:
    """Raises ValueError where a database could not keep the name of a task (200 characters at most), of a
    metric (100) or of a score (40).
    """
    if len(name) > most or "\0" in name:
        raise ValueError(f"'{name[:40]}' is no name")


def _whole(row: Mapping[str, Any], may_lack: Callable[[str], bool]) -> Mapping[str, Any]:
    if lacking := [name for name, value in row.items() if value is None and not may_lack(name)]:
        raise ValueError(f"a value of {lacking[0]} is missing")
    return row
