"""The results of a run besides curves: scores, predictions, and snapshots of the covariances."""

from __future__ import annotations

import json
import math
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection, Table, delete, func, literal, select

from core.errors import StoreError
from core.events import Snapshot, SplitResult, TaskScore
from core.mrn.relations import Relations
from core.store.database import Database, in_chunks
from core.store.schema import figures, predictions, scores, snapshots
from core.store.snapshot_codec import decode, encode
from core.store.types import Owner, SnapshotKey, StoredScore
from core.wording import first_of

Labels = Sequence[Sequence[str]]

_Key = tuple[int, str, str]


class Scores(Database):
    """Scores, predictions and snapshots of runs."""

    def add_result(self, run_id: int, result: SplitResult, owner: Owner | None = None) -> None:
        """The scores and predictions of one split, replacing former ones of that split.

        Raises RunNotFound, and NotOwner where `owner` is given and no longer trains the run.
        """
        split = {"run_id": run_id, "split": result.split, "epoch": result.epoch}
        labels = {
            (result.split, task): (result.gold[task], labels) for task, labels in result.predictions.items()
        }
        with self.transaction() as connection:
            self.guard(connection, run_id, owner)
            scored = [score_row(score) | split for score in result.scores]
            self.insert(connection, scores, scored, replace=True)
            former = (figures.c.run_id == run_id, figures.c.split == result.split)
            tasks = [score.task for score in result.scores]
            connection.execute(delete(figures).where(*former, figures.c.task.in_(tasks)))
            named = [row for score in result.scores for row in figure_rows(score, run_id, result.split)]
            self.insert(connection, figures, named)
            self.insert(connection, predictions, prediction_rows(run_id, labels), replace=True)

    def scores(
        self,
        run_ids: Collection[int] | None = None,
        split: str | None = None,
        *,
        with_reports: bool = True,
        with_figures: bool | None = None,
    ) -> list[StoredScore]:
        """Scores of these runs (default: of all) on one split (default: on all), by run, split and task.

        `with_reports`: whether `StoredScore.report` is filled; those of thousands of runs are megabytes.
        `with_figures`: whether `StoredScore.figures` is (default: as `with_reports`).
        """
        chunks = [None] if run_ids is None else list(in_chunks(run_ids))
        report = scores.c.report if with_reports else literal("{}")
        columns = (
            scores.c[name] for name in ("run_id", "split", "task", "epoch", "score_name", "score", "tokens")
        )

        def read(connection: Connection, table: Table, *chosen: Any) -> Iterator[Any]:
            statement = select(*chosen)
            if split is not None:
                statement = statement.where(table.c.split == split)
            for chunk in chunks:
                part = statement if chunk is None else statement.where(table.c.run_id.in_(chunk))
                yield from connection.execute(part)

        named: dict[_Key, dict[str, float]] = defaultdict(dict)
        with self.transaction(write=False) as connection:
            rows = sorted(read(connection, scores, *columns, report))
            if with_reports if with_figures is None else with_figures:
                for run_id, found_split, task, name, value in read(connection, figures, *figures.c):
                    named[run_id, found_split, task][name] = value
        return [
            StoredScore(
                run_id=run_id,
                split=found_split,
                task=task,
                epoch=epoch,
                score_name=score_name,
                score=math.nan if score is None else score,
                tokens=tokens,
                figures=named.get((run_id, found_split, task), {}),
                report=json.loads(text) if with_reports else {},
            )
            for run_id, found_split, task, epoch, score_name, score, tokens, text in rows
        ]

    def mean_scores(self, split: str, task: str | None = None) -> dict[int, float]:
        """The score of every run that has one on this split: of this task, or the mean over its tasks.
        Undefined scores count in no mean.
        """
        statement = select(scores.c.run_id, func.avg(scores.c.score)).where(scores.c.split == split)
        if task is not None:
            statement = statement.where(scores.c.task == task)
        with self.transaction(write=False) as connection:
            rows = connection.execute(statement.group_by(scores.c.run_id))
            return {run_id: float(mean) for run_id, mean in rows if mean is not None}

    def scored_tasks(self) -> list[str]:
        """All tasks that some run has scores of, by name."""
        with self.transaction(write=False) as connection:
            return list(connection.scalars(select(scores.c.task).distinct().order_by(scores.c.task)))

    def predictions(
        self, run_id: int, split: str, task: str | None = None
    ) -> dict[str, tuple[Labels, Labels]]:
        """Per task (or of that task alone) the gold and the predicted labels of every sentence of a split."""
        statement = select(predictions.c.task, predictions.c.gold, predictions.c.predicted)
        statement = statement.where(predictions.c.run_id == run_id, predictions.c.split == split)
        if task is not None:
            statement = statement.where(predictions.c.task == task)
        with self.transaction(write=False) as connection:
            rows = connection.execute(statement.order_by(predictions.c.task)).all()
        return {name: (_unpacked(gold), _unpacked(predicted)) for name, gold, predicted in rows}

    def add_snapshot(self, run_id: int, snapshot: Snapshot, owner: Owner | None = None) -> None:
        """Stores the covariances at one step, replacing earlier ones of the step. Raises as `add_result`."""
        row = {"run_id": run_id, "step": snapshot.step, "epoch": float(snapshot.epoch)}
        row |= encode(snapshot.relations)
        with self.transaction() as connection:
            self.guard(connection, run_id, owner)
            self.insert(connection, snapshots, [row], replace=True)

    def snapshots(self, run_id: int) -> list[SnapshotKey]:
        """The steps at which this run's covariances were stored, in order."""
        columns = select(snapshots.c.step, snapshots.c.epoch).where(snapshots.c.run_id == run_id)
        with self.transaction(write=False) as connection:
            return [SnapshotKey(*row) for row in connection.execute(columns.order_by(snapshots.c.step))]

    def relations(self, run_id: int, step: int | None = None) -> tuple[SnapshotKey, Relations]:
        """The covariances at that step, or the last stored. Raises StoreError where there are none."""
        statement = select(snapshots).where(snapshots.c.run_id == run_id)
        statement = statement.order_by(snapshots.c.step.desc()).limit(1)
        if step is not None:
            statement = statement.where(snapshots.c.step == step)
        with self.transaction(write=False) as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            if step is not None and (stored := self.snapshots(run_id)):
                steps = first_of([str(key.step) for key in stored])
                raise StoreError(f"Run {run_id} has no relations stored at step {step}, but at {steps}.")
            raise StoreError(f"Run {run_id} has no relations stored; MRN runs store them while they train.")
        return SnapshotKey(row.step, row.epoch), decode(row._asdict())


def score_row(score: TaskScore) -> dict[str, Any]:
    """The columns of a score; undefined values are None."""
    row = {name: getattr(score, name) for name in ("task", "score_name", "tokens")}
    report = json.dumps(score.report, ensure_ascii=False)
    return row | {"score": score.score if score.is_defined else None, "report": report}


def figure_rows(score: TaskScore, run_id: int, split: str) -> list[dict[str, Any]]:
    """The rows of a score's defined figures."""
    score_key = {"run_id": run_id, "split": split, "task": score.task}
    return [
        score_key | {"name": name, "value": value}
        for name, value in score.figures.items()
        if math.isfinite(value)
    ]


def prediction_rows(
    run_id: int, labels: Mapping[tuple[str, str], tuple[Labels, Labels]]
) -> list[dict[str, Any]]:
    """The rows of gold and predicted labels by (split, task)."""
    return [
        {
            "run_id": run_id,
            "split": split,
            "task": task,
            "gold": _packed(gold),
            "predicted": _packed(predicted),
        }
        for (split, task), (gold, predicted) in labels.items()
    ]


def _packed(labels: Labels) -> bytes:
    """The labels of a split's sentences as one blob."""
    text = json.dumps([list(sentence) for sentence in labels], ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), level=6)


def _unpacked(blob: bytes) -> Labels:
    labels: Labels = from_json(zlib.decompress(blob))
    return labels
