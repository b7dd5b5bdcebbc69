"""Runs of the filled store and their curves, for tests of Curves."""

from __future__ import annotations

from typing import Any

from core.metrics import METRICS
from core.store import Store
from core.store.types import MetricSeries, Run
from dashboard.curves.views import CurvesView, Display, curves
from tests.pages.filled_store import TASKS

LOSS, SCORE = METRICS["loss"], METRICS["dev-score"]


def series_of(store: Store, runs: list[Run], metric: str = "loss") -> list[MetricSeries]:
    ids = [run.id for run in runs]
    keys = METRICS[metric].keys_among(store.metric_keys(ids))
    return store.metrics_since({(run_id, key): -1 for run_id in ids for key in keys})


def read(runs: list[Run], reading: Display, metric: str = "loss", **more: Any) -> CurvesView:
    return curves(METRICS[metric], reading, runs, series_of(Store.open(), runs, metric), TASKS, **more)


def chosen(*ids: int) -> list[Run]:
    return [Store.open().run(run_id) for run_id in ids]


def of_kind(paradigm: str, task: str | None = None) -> list[Run]:
    runs = [run for run in Store.open().runs() if run.config.paradigm == paradigm]
    return [run for run in runs if task is None or run.config.tasks == (task,)]
