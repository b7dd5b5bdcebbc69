"""A run as a whole: read out of one store, added to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select

from core.store.facts import write_facts
from core.store.metrics import Metrics
from core.store.runs import Runs
from core.store.schema import events, facts, figures, predictions, runs, scores, snapshots
from core.store.scores import Labels, Scores, figure_rows, prediction_rows, score_row
from core.store.types import MetricSeries, Run, RunEvent, RunState, RunWithFacts, StoredScore

_ROUNDING_S = 1e-5  # times are stored as floats, and exported with microseconds
# Columns of a run that it keeps in another store. The configuration id too: an older version may have hashed
# fewer fields.
_KEPT = ("configuration_id", "sweep", "attempt", "step", "total_steps", "epoch", "best_epoch", "note")
_KEPT_TIMES = ("created_at", "started_at", "finished_at", "progress_at")
KEPT = (*_KEPT, *_KEPT_TIMES)
"""The fields of a run that it keeps as they are wherever it goes."""


@dataclass(frozen=True)
class RunRecord:
    """The whole record of a run in the store.

    `predictions`: (split, task) → gold and predicted labels; `snapshots`: the covariances as the store packs
    them (`core.store.snapshot_codec`), by column.
    """

    run: RunWithFacts
    history: Sequence[RunEvent]
    curves: Sequence[MetricSeries]
    scores: Sequence[StoredScore]
    predictions: Mapping[tuple[str, str], tuple[Labels, Labels]]
    snapshots: Sequence[Mapping[str, Any]]


class Exchange(Runs, Metrics, Scores):
    """Export of whole runs from a store, and their import."""

    def record(self, run_id: int) -> RunRecord:
        """The run with all that it has recorded, at one moment. Raises RunNotFound."""
        columns = [column for column in snapshots.c if column.name != "run_id"]
        packed = select(*columns).where(snapshots.c.run_id == run_id).order_by(snapshots.c.step)
        with self.transaction(write=False) as connection:
            return RunRecord(
                self.run(run_id),
                self.events(run_id),
                [self.metrics([run_id], key)[0] for key in self.metric_keys([run_id])],
                self.scores([run_id]),
                {
                    (split, task): labels
                    for split in ("train", "dev", "test")
                    for task, labels in self.predictions(run_id, split).items()
                },
                [dict(row) for row in connection.execute(packed).mappings()],
            )

    def same_run(self, run: Run) -> Run | None:
        """The newest run of this store with that run's description, seed, beginning and end, if any."""
        if run.started_at is None or run.finished_at is None:
            return None
        statement = select(runs.c.id).where(runs.c.configuration_id == run.configuration_id)
        for column, moment in ((runs.c.started_at, run.started_at), (runs.c.finished_at, run.finished_at)):
            time = moment.timestamp()
            statement = statement.where(column.between(time - _ROUNDING_S, time + _ROUNDING_S))
        with self.transaction(write=False) as connection:
            candidates = self.runs(list(connection.scalars(statement)))
        return next((stored for stored in candidates if stored.config.seed == run.config.seed), None)

    def import_record(self, record: RunRecord, note: str) -> int:
        """Adds a run that succeeded elsewhere, with all that it recorded; returns its id here.

        It keeps description, times, note and keywords; `note` is the last line of its history. It belongs to
        no worker and has no checkpoint yet (`place_checkpoint`).
        """
        run = record.run
        times = {name: getattr(run, name) for name in _KEPT_TIMES}
        row = {name: None if time is None else time.timestamp() for name, time in times.items()}
        row |= {name: getattr(run, name) for name in _KEPT}
        row |= {"config": run.config.to_json(), "state": RunState.SUCCEEDED.value}
        row["tags"] = json.dumps(sorted(run.keywords), ensure_ascii=False)
        with self.transaction() as connection:
            run_id = int(connection.execute(insert(runs).returning(runs.c.id), row).scalar_one())
            run_key = {"run_id": run_id}
            history = [
                run_key | {"time": event.time.timestamp(), "kind": event.kind, "message": event.message}
                for event in record.history
            ]
            rows: dict[Any, list[dict[str, Any]]] = {
                events: history,
                facts: [run_key | {"facts": write_facts(run.facts)}],
                scores: [
                    score_row(score) | run_key | {"split": score.split, "epoch": score.epoch}
                    for score in record.scores
                ],
                figures: [row for score in record.scores for row in figure_rows(score, run_id, score.split)],
                predictions: prediction_rows(run_id, record.predictions),
                snapshots: [{**snapshot, **run_key} for snapshot in record.snapshots],
            }
            for table, added in rows.items():
                if added:
                    connection.execute(insert(table), added)
            self.insert_event(connection, run_id, "note", note)
            self.add_curves(run_id, record.curves)
        return run_id
