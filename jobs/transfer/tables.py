"""What a run recorded as Parquet files, which any program for data reads, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from core.store.artefacts import Labels
from core.store.records import MetricKey, MetricSeries, StoredScore
from core.store.snapshot_codec import check
from core.store.transfer import RunRecord, StoredSnapshot

__all__ = ["MOST_BYTES", "TABLES", "read_table", "recorded", "write_tables"]

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
