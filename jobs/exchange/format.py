"""The files of an export: `run.json` (description, facts, history), and tables of the records.

TABLES defines the values of each column. An imported table is checked against it before a row is used.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from core import __version__
from core.config import RunConfig
from core.errors import ConfigError, first_problem
from core.foreign.tables import Limits, read_table, unreadable_table
from core.metrics import TOTAL
from core.mrn.relations import related_tasks
from core.store import MetricKey, MetricSeries, Run, RunEvent, RunState, RunWithFacts, StoredScore
from core.store.exchange import KEPT, RunRecord
from core.store.facts import facts_adapter, facts_document, read_facts
from core.store.schema import EVENT_KINDS, FACTOR_TYPES
from core.store.scores import Labels, score_row
from core.store.snapshot_codec import check
from core.tasks.scores import PEARSON, SECONDARY_SCORES

FORMAT = 1
SCORES = "scores.parquet"
CHECKPOINT = "checkpoint"
"""The folder of an export that holds the run's own checkpoint."""
MOST_BYTES = 1024**3
"""The most bytes of one unpacked table."""
# Values of one column: ten times the labels of a large corpus's test sentences.
_LIMITS = Limits(MOST_BYTES, 20_000_000)
INVALID = (
    *(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),
    *(pa.ArrowException, SystemError, MemoryError),
)
"""What reading the invalid values of a run may raise."""

_CLOCKS_DIFFER = timedelta(days=1)  # a clock may be wrong by up to a day
_LARGEST = 2**53  # every whole number up to here is a float too

# No run was trained before or after these.
_Moment = Annotated[
    AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), lt=datetime(2100, 1, 1, tzinfo=UTC))
]
_Count = Annotated[int, Field(ge=0, lt=2**31)]
FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=1000)]
"""The name of a folder in an export: not a path, so that it cannot lead out of the export."""
_Share = Annotated[float, Field(ge=0, le=1)]  # which NaN is not


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    time: _Moment
    kind: str = Field(pattern=f"^({'|'.join(EVENT_KINDS)})$")
    message: str = Field(max_length=100_000)


class RunFile(BaseModel):
    """The contents of `run.json`: all of a run except tables and weights."""

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
    folders: dict[str, FolderName]
    """Task → its Transformers folder."""
    no_folders_because: str | None

    @classmethod
    def of(
        cls, record: RunRecord, at: datetime, folders: Mapping[str, str], no_folders_because: str | None
    ) -> RunFile:
        """Makes the file of a run that is exported now, without names of machines and processes."""
        run = record.run
        return cls(
            made_by=f"mrnlab {__version__}",
            exported_at=at,
            run=run.id,
            config=json.loads(run.config.to_json()) if run.stored_config is None else dict(run.description),
            facts=facts_document(run.facts),
            tags=run.keywords,
            history=tuple(
                _Line(
                    time=event.time,
                    kind=event.kind,
                    message="Started." if event.kind == RunState.RUNNING else event.message,
                )
                for event in record.history
            ),
            folders=dict(folders),
            no_folders_because=no_folders_because,
            **{name: getattr(run, name) for name in KEPT},
        )

    @classmethod
    def read(cls, text: bytes) -> RunFile:
        """Parses a file. Raises ValueError where the text is not valid."""
        if b"\\u0000" in text:
            raise ValueError("a text in it holds the character 0, which no database keeps")
        try:
            file = cls.model_validate(
                json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_number)
            )
        except ValidationError as error:
            if error.errors()[0]["loc"] == ("format",):
                raise ValueError("a newer MRN Lab made it; update this one") from error
            raise
        if file.facts:
            # Strictly: the JSON itself is stored, in which a number must be a number.
            facts_adapter().validate_json(json.dumps(file.facts), strict=True)
        return file

    def record(self, tables: Mapping[str, Any]) -> RunRecord:
        """The record of the run with its tables, by field.

        Raises ValueError where the description is not valid, or the parts contradict each other.
        """
        try:
            config = RunConfig.from_stored(self.config)
        except ConfigError as error:
            raise ValueError(f"its description does not hold here: {error}") from error
        values: dict[str, Any] = {name: getattr(self, name) for name in KEPT} | {"keywords": self.tags}
        # These belong to one laboratory.
        values |= dict.fromkeys(("owner", "heartbeat_at", "checkpoint", "log", "error"))
        facts, _ = read_facts(json.dumps(self.facts))
        run = RunWithFacts(id=self.run, config=config, state=RunState.SUCCEEDED, facts=facts, **values)
        history = [RunEvent(0, self.run, line.time, line.kind, line.message) for line in self.history]
        record = RunRecord(run=run, history=history, **tables)
        for problem in (*_problems_of_times(run), *_problems_of_facts(run), *_problems_of_tables(record)):
            raise ValueError(problem)
        return record


def _number(text: str) -> float:
    """Parses a number of a JSON text. Raises ValueError where it is not finite or too large for pages."""
    value = float(text)
    if not -_LARGEST <= value <= _LARGEST:  # NaN neither
        raise ValueError(f"{text[:40]} is no number of a run")
    return int(text) if text.lstrip("-").isdigit() else value


def _problems_of_times(run: Run) -> Iterator[str]:
    started = run.started_at or run.created_at
    if started < run.created_at - _CLOCKS_DIFFER:
        yield "it was started before it was made"
    if run.finished_at is not None and run.finished_at < started - _CLOCKS_DIFFER:
        yield "it ended before it was started"
    most = {"step": run.total_steps, "epoch": run.config.epochs, "best_epoch": run.config.epochs}
    for name, limit in most.items():
        if limit is not None and (getattr(run, name) or 0) > limit:
            yield f"{name} {getattr(run, name)} is more than {limit}"


def _problems_of_facts(run: RunWithFacts) -> Iterator[str]:
    facts = run.facts
    if facts is None:
        return
    tasks = [task.name for task in facts.tasks]
    if sorted(tasks) != sorted(run.config.tasks):
        yield f"its facts are of the tasks {', '.join(tasks)[:80]}, not those of its description"
    counts = [count for task in facts.tasks for count in (task.train_sentences, task.train_tokens)]
    if min(*counts, facts.threads, facts.total_steps, facts.steps_per_epoch, facts.features) < 0:
        yield "a count in its facts is below zero"
    for name in ("meet", "cooccurrence", "aligned"):
        table: Sequence[Sequence[object]] = getattr(facts, name)
        if any(len(row) != len(table) for row in table):
            yield f"{name} in its facts is no square table"
    related = related_tasks(facts)
    if not set(related) <= set(tasks) and run.config.added_to is None:
        yield "its facts relate tasks that it has not"
    if len(facts.meet) not in (0, len(related)):
        yield "meet in its facts has not a row for each related task"
    if len(facts.label_owners) != len(facts.label_names):
        yield "its facts have not an owner for each label row"


def _problems_of_tables(record: RunRecord) -> Iterator[str]:
    run = record.run
    tasks = set(run.config.tasks)
    named = {score.task for score in record.scores} | {task for _, task in record.predictions}
    named |= {curve.key.task for curve in record.curves} - {TOTAL}
    if unknown := named - tasks:
        yield f"a table has the task '{min(unknown)[:40]}', which the run has not"
    if any(score.epoch > run.config.epochs for score in record.scores):
        yield "its scores are of an epoch after the last"
    labels = len(run.facts.label_names) if run.facts else 0
    related = related_tasks(run.facts) or tasks
    if any(
        shot["tasks"] != len(related) or shot["labels"] != (labels or shot["labels"])
        for shot in record.snapshots
    ):
        yield "its covariances are of other tasks or labels than its run"


@dataclass(frozen=True)
class _Column:
    """The valid values of a column: numbers from `least` to `most`, or texts of at most `most` characters.

    Texts are among `choices` where there are some. Without `most` any value is valid.
    """

    type: pa.DataType
    most: float | None = None
    choices: tuple[str, ...] = ()
    may_be_missing: bool = False
    least: float = 0

    def check(self, name: str, values: pa.Array) -> None:
        """Raises ValueError for the first value that is not valid."""
        if values.null_count and not self.may_be_missing:
            raise ValueError(f"a value of {name} is missing")
        if pa.types.is_list(values.type):
            self.check(name, values.flatten())
        elif self.most is not None:
            distinct = values.drop_null().unique()
            if pa.types.is_string(values.type):
                wrong = [text for text in distinct.to_pylist() if not self._is_valid(text)]
            else:
                numbers = distinct.to_numpy(zero_copy_only=False)
                fits = (numbers >= self.least) & (numbers <= self.most)  # NaN is in no range
                wrong = numbers[~fits].tolist()
            if wrong:
                raise ValueError(f"{name} cannot be {repr(wrong[0])[:40]}")

    def _is_valid(self, text: str) -> bool:
        assert self.most is not None
        return len(text) <= self.most and "\0" not in text and text in (self.choices or (text,))


_INTEGER, _REAL, _TEXT = pa.int64(), pa.float64(), pa.string()
_COUNT, _SECONDS, _NUMBER = _Column(_INTEGER, 2**31 - 1), _Column(_REAL, 1e10), _Column(_REAL)
_SCORE = _Column(_REAL, 1, may_be_missing=True, least=-1)
_FIGURES = {
    name: _Column(_REAL, 1, may_be_missing=True, least=figure.least)
    for name, figure in SECONDARY_SCORES.items()
}
"""The columns that may be absent, since other versions have other figures."""
_NAME, _BLOB, _LABELS = _Column(_TEXT, 200), _Column(pa.binary()), _Column(pa.list_(_TEXT), 1000)
_SPLIT = _Column(_TEXT, 5, ("train", "dev", "test"))
_CURVE = ("task", "split", "name")
TABLES: Mapping[str, Mapping[str, _Column]] = {
    "metrics.parquet": {
        **{"task": _NAME, "split": _Column(_TEXT, 5, ("train", "dev")), "name": _Column(_TEXT, 100)},
        **{"step": _COUNT, "epoch": _SECONDS, "seconds": _SECONDS, "value": _NUMBER},
    },
    # The report of labels is a JSON object.
    SCORES: {
        **{"split": _SPLIT, "epoch": _COUNT, "task": _NAME, "score_name": _Column(_TEXT, 40)},
        **{"score": _SCORE, "tokens": _COUNT, "report": _Column(_TEXT, math.inf), **_FIGURES},
    },
    # Labels only: the words belong to the authors of the corpus.
    "predictions.parquet": {
        **{"split": _SPLIT, "task": _NAME, "sentence": _COUNT, "gold": _LABELS, "predicted": _LABELS}
    },
    # As the store packs them.
    "snapshots.parquet": {
        **{"step": _COUNT, "epoch": _SECONDS},
        **{"tasks": _COUNT, "labels": _COUNT, "features": _COUNT, "rank": _COUNT},
        **{"task": _BLOB, "label": _BLOB, "factor": _BLOB, "factor_type": _Column(_TEXT, 3, FACTOR_TYPES)},
        **{"factor_scale": _NUMBER, "feature_diagonal": _NUMBER},
    },
}


def _schema(name: str) -> pa.Schema:
    return pa.schema({part: column.type for part, column in TABLES[name].items()})


def table_of(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """These rows as the table `name`. Raises ValueError or TypeError for a value of another type."""
    return pa.Table.from_pylist(rows, schema=_schema(name))


def write_tables(record: RunRecord, folder: Path) -> None:
    """Writes the tables of a run, with numbers that are not finite unchanged."""
    curves = record.curves
    columns: dict[str, Any] = {
        part: [getattr(curve.key, part) for curve in curves for _ in curve.step] for part in _CURVE
    }
    for part in ("step", "epoch", "seconds", "value"):
        columns[part] = np.concatenate([getattr(curve, part) for curve in curves]) if curves else []
    rows: dict[str, list[dict[str, Any]]] = {
        SCORES: [score_columns(score) for score in record.scores],
        "predictions.parquet": [
            {"split": split, "task": task, "sentence": sentence, "gold": gold, "predicted": predicted}
            for (split, task), labels in record.predictions.items()
            for sentence, (gold, predicted) in enumerate(zip(*labels, strict=True))
        ],
        "snapshots.parquet": [dict(snapshot) for snapshot in record.snapshots],
    }
    tables = {name: table_of(name, table_rows) for name, table_rows in rows.items()}
    tables["metrics.parquet"] = pa.table(columns, schema=_schema("metrics.parquet"))
    for name, table in tables.items():
        pq.write_table(table, folder / name, compression="zstd")


def read_export(folder: Path) -> tuple[RunFile, RunRecord]:
    """The contents of an export. Raises ValueError where it is not valid."""
    part = "run.json"
    try:
        file = RunFile.read((folder / part).read_bytes())
        paths = [path for name in _READERS if (path := folder / name).is_file()]
        if (unreadable := unreadable_table(paths, _LIMITS)) is not None:
            part, reason = unreadable
            raise ValueError(reason)
        tables = {}
        for part, (field, reader) in _READERS.items():
            tables[field] = reader(_table(folder / part))
        part = "run.json"
        return file, file.record(tables)
    except ValidationError as error:
        raise ValueError(f"{part} is not as an export has it ({first_problem(error)})") from error
    except OSError as error:
        raise ValueError(f"it has no {part}") from error
    except INVALID as error:
        raise ValueError(f"{part} is not as an export has it ({error})") from error


def _table(path: Path) -> pa.Table:
    """A table that a child process has read. Raises ValueError for a wrong column or value."""
    columns = TABLES[path.name]
    with pq.ParquetFile(path) as file:
        # Compared before a row is read, so that only types that exports have are read.
        names, types = file.schema_arrow.names, file.schema_arrow.types
    absent = [name for name in columns if name in _FIGURES and name not in names]
    expected = {name: column.type for name, column in columns.items() if name not in absent}
    if len(names) != len(expected) or dict(zip(names, types, strict=True)) != expected:
        raise ValueError("its columns are not those of such a table")
    schema = pa.schema([(name, expected[name]) for name in names])
    table = read_table(path, _LIMITS).cast(schema).combine_chunks()
    table.validate(full=True)
    for name in absent:
        table = table.append_column(name, pa.nulls(len(table), columns[name].type))
    return checked(path.name, table)


def checked(name: str, table: pa.Table) -> pa.Table:
    """The table. Raises ValueError for the first value that is not valid in its column."""
    for part, column in TABLES[name].items():
        for chunk in table[part].chunks:
            column.check(part, chunk)
    return table


def _curves(table: pa.Table) -> list[MetricSeries]:
    curves = []
    for key, rows in table.to_pandas().groupby([*_CURVE], sort=False):
        step, *values = (rows[part].to_numpy() for part in ("step", "epoch", "seconds", "value"))
        _check_ascending(step, f"the steps of {key[2]}")
        curves.append(MetricSeries(0, MetricKey(*key), step, *values))
    return curves


def _check_ascending(steps: Any, what: str) -> None:
    if not (np.diff(steps) > 0).all():
        raise ValueError(f"{what} are not in order")


def _defined_share(value: float) -> float:
    if math.isnan(value) or 0 <= value <= 1:
        return value
    raise ValueError("must be from 0 to 1, or undefined")


_ReportFigure = Annotated[float, AfterValidator(_defined_share)]


class _ReportLine(BaseModel):
    """A line of a score's report, for a span type or a label; a figure may be undefined.

    A record leaves precision and recall out.
    """

    precision: _ReportFigure | None = None
    recall: _ReportFigure | None = None
    f1: _ReportFigure
    support: Annotated[float, Field(ge=0, lt=2**31)]


_REPORT = TypeAdapter(dict[Annotated[str, Field(max_length=1000)], _ReportLine])


def score_columns(score: StoredScore) -> dict[str, Any]:
    """The columns of a score; undefined values are None or have no column."""
    figures = {name: value for name, value in score.figures.items() if math.isfinite(value)}
    return score_row(score) | {"split": score.split, "epoch": score.epoch, **figures}


def scores_of(table: pa.Table) -> list[StoredScore]:
    """The scores in a checked table. Raises ValueError where they contradict each other.

    Earlier versions wrote 0 for the score of no words, and for the accuracy of a correlation.
    """
    rows = table.to_pylist()
    if len({(row["split"], row["task"]) for row in rows}) < len(rows):
        raise ValueError("a task has two scores on one split")
    scores = []
    for row in rows:
        _REPORT.validate_json(row["report"], strict=True)
        unknown = {"precision": math.nan, "recall": math.nan}
        row["report"] = {label: unknown | line for label, line in json.loads(row["report"]).items()}
        figures = {name: value for name in SECONDARY_SCORES if (value := row.pop(name)) is not None}
        if row["score_name"] == PEARSON or not row["tokens"]:
            figures.pop("accuracy", None)
        is_defined = row["tokens"] and row["score"] is not None
        row["score"] = row["score"] if is_defined else math.nan
        scores.append(StoredScore(run_id=0, figures=figures, **row))
    return scores


def _predictions(table: pa.Table) -> dict[tuple[str, str], tuple[Labels, Labels]]:
    by_task: dict[tuple[str, str], tuple[list[list[str]], list[list[str]]]] = defaultdict(lambda: ([], []))
    for row in table.to_pylist():
        gold, predicted = by_task[row["split"], row["task"]]
        if row["sentence"] != len(gold) or len(row["gold"]) != len(row["predicted"]):
            raise ValueError(f"sentence {row['sentence']} has not a predicted label for each gold one")
        gold.append(row["gold"])
        predicted.append(row["predicted"])
    return dict(by_task)


def _snapshots(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        check(row)
    _check_ascending([row["step"] for row in rows], "the steps of its covariances")
    return rows


# The field of a RunRecord that each table holds, and its reader.
_READERS: Mapping[str, tuple[str, Callable[[pa.Table], Any]]] = {
    "metrics.parquet": ("curves", _curves),
    SCORES: ("scores", scores_of),
    "predictions.parquet": ("predictions", _predictions),
    "snapshots.parquet": ("snapshots", _snapshots),
}
