"""Curves: written in idempotent batches, read as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, column, func, select, values

from core.records import EpochMetrics, StepMetrics
from core.store.base import StoreBase, in_chunks
from core.store.records import MetricKey, MetricSeries, Owner
from core.store.schema import FINITE, MINUS_INFINITY, NOT_A_NUMBER, PLUS_INFINITY, metric_keys, metrics, runs

_MOST_CURVES = 2000  # of one statement, whose parameters are bounded

_SPECIAL = {NOT_A_NUMBER: math.nan, PLUS_INFINITY: math.inf, MINUS_INFINITY: -math.inf}


def encoded_value(value: float) -> tuple[float | None, int]:
    """A number as the columns `value` and `kind` hold it."""
    value = float(value)
    if math.isfinite(value):
        return value, FINITE
    if math.isnan(value):
        return None, NOT_A_NUMBER
    return None, PLUS_INFINITY if value > 0 else MINUS_INFINITY


class MetricsPart(StoreBase):
    """The metrics of runs. Training metrics have the split `train`, those of an epoch's end `dev`."""

    def add_metrics(
        self, run_id: int, rows: Sequence[StepMetrics | EpochMetrics], owner: Owner | None = None
    ) -> None:
        """Writes a batch in one transaction. A (key, step) already there keeps its value, so a batch whose
        acknowledgement was lost can be written again.

        Raises RunNotFound, and NotOwner where an owner is named that no longer trains the run.
        """
        with self.transaction() as connection:
            self._guard(connection, run_id, owner)
            ids = self._made_key_ids(connection, {key for row in rows for key in _keys_of(row)})
            batch: list[dict[str, Any]] = []
            for row in rows:
                for key, number in zip(_keys_of(row), row.values.values(), strict=True):
                    value, kind = encoded_value(number)
                    batch.append(
                        {
                            "run_id": run_id,
                            "key_id": ids[key],
                            "step": row.step,
                            "epoch": float(row.epoch),
                            "seconds": row.seconds,
                            "value": value,
                            "kind": kind,
                        }
                    )
            self._upsert(connection, metrics, batch, replace=False)

    def metric_keys(self, run_ids: Collection[int]) -> list[MetricKey]:
        """The curves that at least one of these runs has, in order."""
        found: set[MetricKey] = set()
        with self.transaction(write=False) as connection:
            for some in in_chunks(run_ids):
                # A seek per key and run; DISTINCT would read every row of every run.
                has_rows = (
                    select(metrics.c.step)
                    .where(metrics.c.run_id.in_(some), metrics.c.key_id == metric_keys.c.id)
                    .exists()
                )
                keys = select(metric_keys.c.task, metric_keys.c.split, metric_keys.c.name).where(has_rows)
                found |= {MetricKey(*key) for key in connection.execute(keys)}
        return sorted(found)

    def metrics(self, run_ids: Collection[int], key: MetricKey, after_step: int = -1) -> list[MetricSeries]:
        """That curve of each run, from the step after `after_step` on; runs without such a row are left out.

        In the order of `run_ids`.
        """
        m = metrics.c
        columns = (m.run_id, m.step, m.epoch, m.seconds, m.value, m.kind)
        series: dict[int, MetricSeries] = {}
        with self.transaction(write=False) as connection:
            key_id = self._key_id(connection, (key.task, key.split, key.name))
            if key_id is None:
                return []
            for some in in_chunks(run_ids):
                rows = connection.execute(
                    select(*columns)
                    .where(
                        metrics.c.run_id.in_(some), metrics.c.key_id == key_id, metrics.c.step > after_step
                    )
                    .order_by(metrics.c.run_id, metrics.c.step)
                ).all()
                series |= _split_by_run(rows, key)
        return [series[run_id] for run_id in dict.fromkeys(run_ids) if run_id in series]

    def metrics_since(self, steps: Mapping[tuple[int, MetricKey], int]) -> list[MetricSeries]:
        """The named curves of the named runs, each from the step after the one given on (-1: all of it).

        Those without such a row are left out. One statement for hundreds of curves that live.
        """
        found: list[MetricSeries] = []
        wanted = values(
            column("run_id", Integer), column("key_id", Integer), column("step", Integer), name="wanted"
        )
        m = metrics.c
        with self.transaction(write=False) as connection:
            ids = {key: self._key_id(connection, (key.task, key.split, key.name)) for _, key in steps}
            keys = {key_id: key for key, key_id in ids.items() if key_id is not None}
            known = [(run, ids[key], step) for (run, key), step in steps.items() if ids[key] is not None]
            for start in range(0, len(known), _MOST_CURVES):
                part = wanted.data(known[start : start + _MOST_CURVES]).cte()
                same = (m.run_id == part.c.run_id) & (m.key_id == part.c.key_id) & (m.step > part.c.step)
                columns = (m.run_id, m.step, m.epoch, m.seconds, m.value, m.kind, m.key_id)
                result = connection.execute(select(*columns).join_from(part, metrics, same))
                assert result.cursor is not None
                # The driver's own tuples: half a million rows come in half the time.
                rows = _numbers(result.cursor.fetchall()).reshape(-1, len(columns))
                result.close()
                order = np.lexsort((rows[:, 1], rows[:, 6], rows[:, 0]))
                found += _split_by_curve(rows[order].T, keys)
        return found

    def last_metric_steps(self, run_ids: Collection[int]) -> dict[int, int]:
        """The last step that any metric of each run has; runs without metrics are left out."""
        last: dict[int, int] = {}
        with self.transaction(write=False) as connection:
            for some in in_chunks(run_ids):
                of_key = (
                    select(func.max(metrics.c.step))
                    .where(metrics.c.run_id == runs.c.id, metrics.c.key_id == metric_keys.c.id)
                    .scalar_subquery()
                )
                # A seek per run and key, for SQLite finds a maximum at the end of the primary key's range.
                each = (
                    select(runs.c.id, of_key.label("step"))
                    .where(runs.c.id.in_(some))
                    .join_from(runs, metric_keys, onclause=metric_keys.c.id.is_not(None))
                )
                for run_id, step in connection.execute(each):
                    if step is not None and step > last.get(run_id, -1):
                        last[run_id] = step
        return last

    def latest_metrics(self, run_ids: Collection[int], key: MetricKey) -> dict[int, float]:
        """The last value of that curve of each run that has one."""
        return {
            run_id: _SPECIAL.get(kind, value) for run_id, _, _, value, kind in self._last_rows(run_ids, key)
        }

    def latest_times(self, run_ids: Collection[int], key: MetricKey) -> dict[int, tuple[int, float]]:
        """The last step of that curve of each run that has one, and the seconds of training until then."""
        return {run_id: (step, seconds) for run_id, step, seconds, _, _ in self._last_rows(run_ids, key)}

    def _last_rows(self, run_ids: Collection[int], key: MetricKey) -> list[Any]:
        """The last row of that curve of each run: run, step, seconds, value, kind; a seek per run."""
        found: list[Any] = []
        with self.transaction(write=False) as connection:
            key_id = self._key_id(connection, (key.task, key.split, key.name))
            if key_id is None:
                return found
            m = metrics.c
            for some in in_chunks(run_ids):
                inner = metrics.alias()
                step = (
                    select(func.max(inner.c.step))
                    .where(inner.c.run_id == runs.c.id, inner.c.key_id == key_id)
                    .scalar_subquery()
                )
                last = select(runs.c.id, step.label("step")).where(runs.c.id.in_(some)).subquery()
                rows = select(m.run_id, m.step, m.seconds, m.value, m.kind).join_from(
                    last,
                    metrics,
                    (m.run_id == last.c.id) & (m.key_id == key_id) & (m.step == last.c.step),
                )
                found += connection.execute(rows).all()
        return found

    def best_metrics(self, run_ids: Collection[int], key: MetricKey) -> dict[int, float]:
        """The highest finite value of that curve of each run that has one."""
        best: dict[int, float] = {}
        with self.transaction(write=False) as connection:
            key_id = self._key_id(connection, (key.task, key.split, key.name))
            if key_id is None:
                return best
            for some in in_chunks(run_ids):
                rows = connection.execute(
                    select(metrics.c.run_id, func.max(metrics.c.value))
                    .where(metrics.c.run_id.in_(some), metrics.c.key_id == key_id, metrics.c.kind == FINITE)
                    .group_by(metrics.c.run_id)
                )
                best |= {row[0]: row[1] for row in rows if isinstance(row[1], float)}
        return best

    def _key_id(self, connection: Connection, key: tuple[str, str, str]) -> int | None:
        known = self._key_ids.get(key) or self._local.fresh_keys.get(key)
        if known is not None:
            return int(known)
        task, split, name = key
        found = connection.scalar(
            select(metric_keys.c.id).where(
                metric_keys.c.task == task, metric_keys.c.split == split, metric_keys.c.name == name
            )
        )
        if found is not None:
            self._local.fresh_keys[key] = found
        return found

    def _made_key_ids(
        self, connection: Connection, keys: Collection[tuple[str, str, str]]
    ) -> dict[tuple[str, str, str], int]:
        """The ids of these keys, made where they are new.

        Another writer may make one at the same moment; in one order, neither waits for the other for ever.
        """
        new = sorted(key for key in keys if self._key_id(connection, key) is None)
        named = [{"task": task, "split": split, "name": name} for task, split, name in new]
        unique = ("task", "split", "name")
        self._upsert(connection, metric_keys, named, replace=False, keys=unique)
        found = {key: self._key_id(connection, key) for key in keys}
        return {key: key_id for key, key_id in found.items() if key_id is not None}


def _keys_of(row: StepMetrics | EpochMetrics) -> list[tuple[str, str, str]]:
    split = "train" if isinstance(row, StepMetrics) else "dev"
    return [(task, split, name) for task, name in row.values]


def _split_by_run(rows: Sequence[Sequence[Any]], key: MetricKey) -> dict[int, MetricSeries]:
    """Rows sorted by run and step to one series per run."""
    table = _numbers([(*row, 0) for row in rows]).reshape(-1, 7)
    return {one.run_id: one for one in _split_by_curve(table.T, {0: key})}


def _numbers(rows: Sequence[Sequence[Any]]) -> NDArray[np.float64]:
    """The rows as numbers; what is none, which SQLite keeps in any column, becomes NaN."""
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        cells = [[cell if isinstance(cell, int | float) else math.nan for cell in row] for row in rows]
        return np.array(cells, dtype=np.float64)


def _split_by_curve(columns: NDArray[np.float64], keys: Mapping[int, MetricKey]) -> list[MetricSeries]:
    """Columns run, step, epoch, seconds, value (NaN where it is NULL), kind, key (7, N), sorted by run, key
    and step, to one series per run and key. Doubles hold every whole number of the store exactly.
    """
    run_id, step, epoch, seconds, value, kind, key_id = columns
    if not len(run_id):
        return []
    value = np.where(kind == PLUS_INFINITY, np.inf, np.where(kind == MINUS_INFINITY, -np.inf, value))
    starts = np.flatnonzero((np.diff(run_id, prepend=-1) != 0) | (np.diff(key_id, prepend=-1) != 0))
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
