"""What all sessions share: the store, the curves read so far, the snapshots, and housekeeping."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import streamlit as st

from core.mrn.relations import Relations
from core.paths import database_url
from core.store import Store
from core.store.records import MetricKey, MetricSeries, Run, SnapshotKey
from core.store.states import ACTIVE
from core.studies import Study, load_study
from core.studies.analysis import Result
from dashboard.queries.runs import tasks_in_order
from jobs.engines import default_engine
from jobs.reaper import reap
from jobs.study_runs import StudyRuns, laid_out

__all__ = [
    "LIVE",
    "SeriesCache",
    "curve_series",
    "get_ready",
    "keep_house",
    "learned",
    "pace",
    "store",
    "study_results",
    "task_order",
]

LIVE = 2.0
"""Seconds between two looks at what goes on."""

_MOST_SERIES = 4000


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(url: str) -> Store:
    return Store.open(url)


def store() -> Store:
    """The laboratory's store, one per process and address."""
    return _open(database_url())


def get_ready() -> None:
    """Read what every page asks for: the runs there are and their tasks. Raises MRNLabError."""
    task_order()


def keep_house() -> None:
    """Mark dead runs as lost and see that queued runs have a worker; at most every five seconds for all
    sessions.
    """
    _keep_house(database_url())


@st.cache_data(ttl=5, max_entries=4, show_spinner=False)
def _keep_house(url: str) -> bool:
    laboratory = _open(url)
    reap(laboratory)
    default_engine().ensure_workers(laboratory)
    return True


def pace() -> float | None:
    """How often to look while anything runs or waits in the store; None while nothing does."""
    counts = store().counts()
    return LIVE if any(counts[state] for state in ACTIVE) else None


def task_order() -> list[str]:
    """Every task in the store, in the order that gives it its colour on every page."""
    return _task_order(database_url())


@st.cache_data(ttl=3, max_entries=4, show_spinner=False)
def _task_order(url: str) -> list[str]:
    return tasks_in_order(_open(url).runs(archived=None))  # no colour changes when runs are archived


class SeriesCache:
    """Curves read so far. A live run's curve is read on from its last step; an ended one is never read
    again.
    """

    def __init__(self) -> None:
        self._series: OrderedDict[tuple[int, int, MetricKey], MetricSeries] = OrderedDict()
        self._final: set[tuple[int, int, MetricKey]] = set()
        self._lock = threading.Lock()

    def get(self, laboratory: Store, runs: Sequence[Run], key: MetricKey) -> list[MetricSeries]:
        with self._lock:
            wanted = {run.id: (run.id, run.attempt, key) for run in runs}
            unread = [run_id for run_id, name in wanted.items() if name not in self._series]
            for series in laboratory.metrics(unread, key) if unread else ():
                self._series[wanted[series.run_id]] = series
            for run in runs:
                name = wanted[run.id]
                if name in self._series and name not in self._final:
                    if run.id not in unread:
                        self._read_on(laboratory, name)
                    if run.state not in ACTIVE:
                        self._final.add(name)
            found = [self._series[name] for name in wanted.values() if name in self._series]
            while len(self._series) > _MOST_SERIES:
                self._final.discard(self._series.popitem(last=False)[0])
            return found

    def _read_on(self, laboratory: Store, name: tuple[int, int, MetricKey]) -> None:
        known = self._series[name]
        for new in laboratory.metrics([name[0]], name[2], after_step=int(known.step[-1])):
            self._series[name] = _joined(known, new)


def _joined(old: MetricSeries, new: MetricSeries) -> MetricSeries:
    return MetricSeries(
        new.run_id,
        new.key,
        np.concatenate([old.step, new.step]),
        np.concatenate([old.epoch, new.epoch]),
        np.concatenate([old.seconds, new.seconds]),
        np.concatenate([old.value, new.value]),
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _series_cache(url: str) -> SeriesCache:
    return SeriesCache()


class _Study:
    """A study's runs, looked at again and again; one session at a time."""

    def __init__(self, laboratory: Store, name: str) -> None:
        self.study = load_study(name)
        self._runs = StudyRuns(laboratory, laid_out(self.study, self.study.settings))
        self._lock = threading.Lock()

    def results(self) -> list[Result]:
        with self._lock:
            return self._runs.results()


@st.cache_resource(max_entries=8, show_spinner="Laying out the study")
def _study(url: str, name: str) -> _Study:
    return _Study(_open(url), name)


def study_results(name: str) -> tuple[Study, list[Result]]:
    """A study and what its settings say by now. Raises MRNLabError where there is none of that name."""
    found = _study(database_url(), name)
    return found.study, found.results()


def curve_series(runs: Sequence[Run], keys: Sequence[MetricKey]) -> list[MetricSeries]:
    """These curves of these runs, whole; only what is new is read from the store."""
    cache = _series_cache(database_url())
    return [series for key in keys for series in cache.get(store(), runs, key)]


def learned(run: Run, key: SnapshotKey) -> Relations:
    """The covariances of one snapshot. A snapshot never changes within an attempt, so it is read once."""
    return _learned(database_url(), run.id, run.attempt, key.step)


@st.cache_resource(max_entries=600, show_spinner=False)
def _learned(url: str, run_id: int, attempt: int, step: int) -> Relations:
    return _open(url).relations(run_id, step)[1]
