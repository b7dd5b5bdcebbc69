"""A run as a whole: read out of one store, taken into another."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select

from core.store.metrics import MetricsPart, encoded_value
from core.store.records import MetricSeries, Run, RunEvent, RunState, StoredScore
from core.store.results import ArtefactsPart, Labels, packed_labels
from core.store.runs import RunsPart
from core.store.schema import events, facts, metrics, predictions, runs, scores, snapshots

_BATCH = 50_000  # metric rows written by one statement
_ROUNDING_S = 1e-5  # times are kept as floats, and travel with microseconds
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class StoredSnapshot:
    """The covariances at one step as the store packs them (`core.store.snapshot_codec`)."""

    step: int
    epoch: float
    tasks: int
    labels: int
    features: int
    rank: int
    task: bytes
    label: bytes
    factor: bytes
    factor_type: str
    factor_scale: float
    feature_diagonal: float


@dataclass(frozen=True)
class RunRecord:
    """All that the store knows of a run. `predictions`: (split, task) → gold and predicted labels."""

    run: Run
    history: Sequence[RunEvent]
    curves: Sequence[MetricSeries]
    scores: Sequence[StoredScore]
    predictions: Mapping[tuple[str, str], tuple[Labels, Labels]]
    snapshots: Sequence[StoredSnapshot]


_SNAPSHOT = tuple(snapshots.c[field.name] for field in dataclasses.fields(StoredSnapshot))


class TransferPart(RunsPart, MetricsPart, ArtefactsPart):
    """Runs that leave a store and come into one."""

    def record(self, run_id: int) -> RunRecord:
        """The run with all that it has recorded, at one moment. Raises RunNotFound."""
        with self.transaction(write=False) as connection:
            run = self.run(run_id)
            curves = [self.metrics([run_id], key)[0] for key in self.metric_keys([run_id])]
            own_scores = self.scores([run_id])
            labels = {
                (split, task): both
                for split in ("train", "dev", "test")
                for task, both in self.predictions(run_id, split).items()
            }
            rows = connection.execute(
                select(*_SNAPSHOT).where(snapshots.c.run_id == run_id).order_by(snapshots.c.step)
            )
            shots = [StoredSnapshot(**row._mapping) for row in rows]
            return RunRecord(run, self.events(run_id), curves, own_scores, labels, shots)

    def same_run(self, run: Run) -> Run | None:
        """The run of this store that is that one: same description, seed, beginning and end.

        The newest, where there are several; None where there is none.
        """
        if run.started_at is None or run.finished_at is None:
            return None
        statement = select(runs.c.id).where(runs.c.configuration_id == run.configuration_id)
        for column, moment in ((runs.c.started_at, run.started_at), (runs.c.finished_at, run.finished_at)):
            at = moment.timestamp()
            statement = statement.where(column.between(at - _ROUNDING_S, at + _ROUNDING_S))
        with self.transaction(write=False) as connection:
            ids = list(connection.scalars(statement))
            found = [one for one in self.runs(ids, with_facts=False) if one.config.seed == run.config.seed]
        return found[0] if found else None

    def take_in(self, record: RunRecord, note: str) -> int:
        """Adds a run that succeeded elsewhere, with all that it recorded; returns its number here.

        It keeps description, times, note and tags; `note` is the last line of its history. It belongs to no
        worker and has no checkpoint yet (`place_checkpoint`).
        """
        run = record.run
        with self.transaction() as connection:
            made = connection.execute(insert(runs).returning(runs.c.id), _row_of(run))
            run_id = int(made.scalar_one())
            for event in record.history:
                connection.execute(
                    insert(events),
                    {
                        "run_id": run_id,
                        "time": event.time.timestamp(),
                        "kind": event.kind,
                        "message": event.message,
                    },
                )
            self._tell(connection, run_id, "note", note)
            known = json.dumps(run.facts, ensure_ascii=False)
            connection.execute(insert(facts), {"run_id": run_id, "facts": known})
            for batch in _batches(self._metric_rows(connection, run_id, record.curves)):
                connection.execute(insert(metrics), batch)
            _add(connection, scores, (_score_row(run_id, score) for score in record.scores))
            _add(connection, predictions, _prediction_rows(run_id, record.predictions))
            shots = (dataclasses.asdict(shot) | {"run_id": run_id} for shot in record.snapshots)
            _add(connection, snapshots, shots)
        return run_id

    def place_checkpoint(self, run_id: int, checkpoint: str) -> None:
        """Says where the checkpoint of a run taken in lies. Raises RunNotFound."""
        with self.transaction() as connection:
            self._guard(connection, run_id, None)
            self._change(connection, run_id, {"checkpoint": checkpoint})

    def _metric_rows(
        self, connection: Connection, run_id: int, curves: Sequence[MetricSeries]
    ) -> Iterator[dict[str, Any]]:
        keys = [(curve.key.task, curve.key.split, curve.key.name) for curve in curves]
        ids = self._made_key_ids(connection, keys)
        for curve, key in zip(curves, keys, strict=True):
            columns = (curve.step, curve.epoch, curve.seconds, curve.value)
            for step, epoch, seconds, number in zip(*(column.tolist() for column in columns), strict=True):
                value, kind = encoded_value(number)
                yield {
                    "run_id": run_id,
                    "key_id": ids[key],
                    "step": step,
                    "epoch": epoch,
                    "seconds": seconds,
                    "value": value,
                    "kind": kind,
                }


def _row_of(run: Run) -> dict[str, Any]:
    times = {
        name: None if moment is None else moment.timestamp()
        for name, moment in (
            ("created_at", run.created_at),
            ("started_at", run.started_at),
            ("finished_at", run.finished_at),
            ("progress_at", run.progress_at),
        )
    }
    return times | {
        "config": run.config.to_json(),
        # As it was given: an older version may have hashed fewer fields.
        "configuration_id": run.configuration_id,
        "sweep": run.sweep,
        "state": RunState.SUCCEEDED.value,
        "attempt": run.attempt,
        "step": run.step,
        "total_steps": run.total_steps,
        "epoch": run.epoch,
        "best_epoch": run.best_epoch,
        "note": run.note,
        "tags": json.dumps(sorted(run.tags), ensure_ascii=False),
    }


def _score_row(run_id: int, score: StoredScore) -> dict[str, Any]:
    report = json.dumps(score.report, ensure_ascii=False)
    return dataclasses.asdict(score) | {"run_id": run_id, "report": report}


def _prediction_rows(
    run_id: int, labels: Mapping[tuple[str, str], tuple[Labels, Labels]]
) -> Iterator[dict[str, Any]]:
    for (split, task), (gold, predicted) in labels.items():
        yield {
            "run_id": run_id,
            "split": split,
            "task": task,
            "gold": packed_labels(gold),
            "predicted": packed_labels(predicted),
        }


def _add(connection: Connection, table: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    listed = list(rows)
    if listed:
        connection.execute(insert(table), listed)


def _batches(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch
