"""Curves: written in idempotent batches, read as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import Connection, Integer, Subquery, column, func, select, values

from core.metrics import EpochMetrics, MetricKey, StepMetrics
from core.store.database import Database, in_chunks
from core.store.schema import FINITE, MINUS_INFINITY, NOT_A_NUMBER, PLUS_INFINITY, metric_keys, metrics, runs
from core.store.types import MetricSeries, Owner

_MOST_CURVES = 2000  # of one statement, whose parameters are limited
_BATCH = 50_000  # rows of one statement
_SPECIAL = {NOT_A_NUMBER: math.nan, PLUS_INFINITY: math.inf, MINUS_INFINITY: -math.inf}
_NAMES = ("run_id", "key_id", "step", "epoch", "seconds", "value", "kind")
_COLUMNS = tuple(metrics.c[name] for name in _NAMES)
_Point = tuple[MetricKey, int, float, float, float]
"""Key, step, epoch, seconds, value."""


class Metrics(Database):
    """The metrics of runs. Training metrics have the split `train`, metrics of an epoch's end `dev`."""

    def add_metrics(
        self, run_id: int, rows: Sequence[StepMetrics | EpochMetrics], owner: Owner | None = None
    ) -> None:
        """Writes a batch in one transaction.

        A (key, step) already there keeps its value, so a batch whose acknowledgement was lost can be written
        again. Raises RunNotFound, and NotOwner where `owner` is given and no longer trains the run.
        """
        points: list[_Point] = []
        for row in rows:
            for (task, name), value in row.values.items():
                points.append((MetricKey(task, row.split, name), row.step, row.epoch, row.seconds, value))
        with self.transaction() as connection:
            self.guard(connection, run_id, owner)
            self._insert_points(connection, run_id, points)

    def add_curves(self, run_id: int, curves: Sequence[MetricSeries]) -> None:
        """Writes whole curves, as `MetricSeries` gives them, to that run."""
        points: Iterator[_Point] = (
            (curve.key, *point)
            for curve in curves
            for point in zip(
                curve.step.tolist(),
                curve.epoch.tolist(),
                curve.seconds.tolist(),
                curve.value.tolist(),
                strict=True,
            )
        )
        with self.transaction() as connection:
            while batch := list(islice(points, _BATCH)):
                self._insert_points(connection, run_id, batch)

    def _insert_points(self, connection: Connection, run_id: int, points: Sequence[_Point]) -> None:
        ids = self._ids_of(connection, {point[0] for point in points}, make=True)
        rows = []
        for key, step, epoch, seconds, value in points:
            number, kind = _encoded(value)
            row = (run_id, ids[key], step, float(epoch), seconds, number, kind)
            rows.append(dict(zip(_NAMES, row, strict=True)))
        self.insert(connection, metrics, rows)

    def _ids_of(
        self, connection: Connection, keys: Collection[MetricKey], *, make: bool = False
    ) -> dict[MetricKey, int]:
        """The ids of keys; unknown keys are added (`make`) or left out."""
        ids_by_key = self._stored_ids(connection)
        # In one order, so that two writers who make the same keys do not wait for each other for ever.
        new = sorted(key for key in keys if key not in ids_by_key)
        if make and new:
            rows = [{"task": key.task, "split": key.split, "name": key.name} for key in new]
            self.insert(connection, metric_keys, rows, keys=("task", "split", "name"))
            ids_by_key = self._stored_ids(connection)
        return {key: ids_by_key[key] for key in keys if key in ids_by_key}

    @staticmethod
    def _stored_ids(connection: Connection) -> dict[MetricKey, int]:
        columns = (metric_keys.c.task, metric_keys.c.split, metric_keys.c.name, metric_keys.c.id)
        return {MetricKey(*key): id_ for *key, id_ in connection.execute(select(*columns))}

    def metric_keys(self, run_ids: Collection[int]) -> list[MetricKey]:
        """The curves that at least one of these runs has, in order."""
        keys_with_rows: set[MetricKey] = set()
        with self.transaction(write=False) as connection:
            for chunk in in_chunks(run_ids):
                # A seek per key and run; DISTINCT would read every row of every run.
                same = (metrics.c.run_id.in_(chunk), metrics.c.key_id == metric_keys.c.id)
                keys = select(metric_keys.c.task, metric_keys.c.split, metric_keys.c.name)
                keys = keys.where(select(metrics.c.step).where(*same).exists())
                keys_with_rows |= {MetricKey(*key) for key in connection.execute(keys)}
        return sorted(keys_with_rows)

    def metrics(self, run_ids: Collection[int], key: MetricKey, after_step: int = -1) -> list[MetricSeries]:
        """The curve of each run, from the step after `after_step` on; runs without rows of it are left out.

        In the order of `run_ids`.
        """
        curves = self.metrics_since({(run_id, key): after_step for run_id in run_ids})
        by_run = {curve.run_id: curve for curve in curves}
        return [by_run[run_id] for run_id in dict.fromkeys(run_ids) if run_id in by_run]

    def metrics_since(self, steps: Mapping[tuple[int, MetricKey], int]) -> list[MetricSeries]:
        """The named curves of the named runs, each from the step after the one given on (-1: all of it).

        Those without such a row are left out. One statement for hundreds of live curves.
        """
        names = (column(name, Integer) for name in ("run_id", "key_id", "step"))
        wanted = values(*names, name="wanted")
        curves: list[MetricSeries] = []
        with self.transaction(write=False) as connection:
            ids = self._ids_of(connection, {key for _, key in steps})
            asked = [(run, ids[key], step) for (run, key), step in steps.items() if key in ids]
            for start in range(0, len(asked), _MOST_CURVES):
                part = wanted.data(asked[start : start + _MOST_CURVES]).cte()
                same = (metrics.c.run_id == part.c.run_id) & (metrics.c.key_id == part.c.key_id)
                later = metrics.c.step > part.c.step
                rows = select(*_COLUMNS).join_from(part, metrics, same & later)
                curves += _curves(connection, rows, ids)
        return curves

    def last_metric_steps(self, run_ids: Collection[int]) -> dict[int, int]:
        """The last step that any metric of each run has; runs without metrics are left out."""
        last: dict[int, int] = {}
        with self.transaction(write=False) as connection:
            for chunk in in_chunks(run_ids):
                # A seek per run and key: SQLite finds a maximum at the end of the primary key's range.
                newest = select(func.max(metrics.c.step))
                newest = newest.where(metrics.c.run_id == runs.c.id, metrics.c.key_id == metric_keys.c.id)
                steps = select(runs.c.id, newest.scalar_subquery()).where(runs.c.id.in_(chunk))
                steps = steps.join_from(runs, metric_keys, onclause=metric_keys.c.id.is_not(None))
                for run_id, step in connection.execute(steps):
                    if step is not None and step > last.get(run_id, -1):
                        last[run_id] = step
        return last

    def last_points(self, run_ids: Collection[int], key: MetricKey) -> dict[int, tuple[int, float, float]]:
        """The last step of that curve of each run that has one, the seconds until then, the value."""
        points: dict[int, tuple[int, float, float]] = {}
        with self.transaction(write=False) as connection:
            ids = self._ids_of(connection, [key])
            for chunk in in_chunks(run_ids) if ids else ():
                # A seek per run.
                inner = metrics.alias()
                step = select(func.max(inner.c.step))
                step = step.where(inner.c.run_id == runs.c.id, inner.c.key_id == ids[key])
                last: Subquery = (
                    select(runs.c.id, step.scalar_subquery().label("step"))
                    .where(runs.c.id.in_(chunk))
                    .subquery()
                )
                same = (metrics.c.run_id == last.c.id) & (metrics.c.step == last.c.step)
                rows = select(*_COLUMNS).join_from(last, metrics, same & (metrics.c.key_id == ids[key]))
                for row in connection.execute(rows):
                    points[row.run_id] = row.step, row.seconds, _SPECIAL.get(row.kind, row.value)
        return points

    def best_metrics(self, run_ids: Collection[int], key: MetricKey) -> dict[int, float]:
        """The highest finite value of a curve, by run."""
        best: dict[int, float] = {}
        with self.transaction(write=False) as connection:
            ids = self._ids_of(connection, [key])
            for chunk in in_chunks(run_ids) if ids else ():
                rows = select(metrics.c.run_id, func.max(metrics.c.value)).group_by(metrics.c.run_id)
                rows = rows.where(metrics.c.run_id.in_(chunk), metrics.c.key_id == ids[key])
                highest = connection.execute(rows.where(metrics.c.kind == FINITE))
                best |= {run_id: value for run_id, value in highest if isinstance(value, float)}
        return best


def _encoded(value: float) -> tuple[float | None, int]:
    """A number as the columns `value` and `kind` hold it."""
    value = float(value)
    if math.isfinite(value):
        return value, FINITE
    if math.isnan(value):
        return None, NOT_A_NUMBER
    return None, PLUS_INFINITY if value > 0 else MINUS_INFINITY


def _curves(connection: Connection, rows: Any, ids: Mapping[MetricKey, int]) -> list[MetricSeries]:
    """The rows that this statement selects of _COLUMNS, as one series per run and key."""
    result = connection.execute(rows)
    assert result.cursor is not None
    # The driver's own tuples: half a million rows come in half the time.
    table = np.array(result.cursor.fetchall(), dtype=np.float64)
    result.close()
    if not len(table):
        return []
    # Doubles hold every integer of the store exactly.
    run_id, key_id, step, epoch, seconds, value, kind = table[np.lexsort(table[:, 2::-1].T)].T
    value = np.where(kind == PLUS_INFINITY, np.inf, np.where(kind == MINUS_INFINITY, -np.inf, value))
    starts = np.flatnonzero((np.diff(run_id, prepend=-1) != 0) | (np.diff(key_id, prepend=-1) != 0))
    keys = {id_: key for key, id_ in ids.items()}
    return [
        MetricSeries(
            int(run_id[start]),
            keys[int(key_id[start])],
            step[start:end].astype(np.int64),
            epoch[start:end].copy(),
            seconds[start:end].copy(),
            value[start:end].copy(),
        )
        for start, end in zip(starts, [*starts[1:], len(run_id)], strict=True)
    ]
