"""Resources of all sessions: the store, curves and snapshots read from it, and queue maintenance."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import MRNLabError, StoreError
from core.mrn.relations import Relations
from core.paths import database_url
from core.registry import base_name
from core.store import Store
from core.store.types import ACTIVE, MetricKey, MetricSeries, Run, RunState, RunWithFacts
from core.studies import STUDIES, Study, load_study
from core.studies.analysis import Result
from core.studies.recorded import records_of
from core.studies.study import SettingRuns
from core.tasks import KINDS, TaskKind
from core.tasks.confusion import Confusion
from dashboard.shared.run_views import tasks_in_order
from dashboard.theme import TASK_COLOURS
from jobs.engines import default_engine
from jobs.queue.maintenance import QueueMaintenance
from jobs.studies.progress import (
    RunCounts,
    SettingCounts,
    StudyOptions,
    StudyRuns,
    counts_by_setting,
    sweep_prefix,
)

LIVE = 2.0
"""Seconds between two looks at what goes on."""

IDLE = 8.0
"""Seconds between two looks while nothing goes on: runs launched elsewhere show within ten."""

PATIENCE_S = 4.0
"""How long a page waits for a busy store before it says so; training waits longer."""


def _identity(run: Run) -> tuple[str, int, int]:
    return database_url(), run.id, run.attempt


BY_RUN: dict[str | type[Any], Callable[[Any], Any]] = {
    Run: _identity,
    RunWithFacts: _identity,
}
"""How a cache tells runs apart: what is recorded of one never changes within an attempt."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(url: str) -> Store:
    return Store.open(url, patience_s=PATIENCE_S, shared=True)


def store() -> Store:
    """The laboratory's store, one per process and address."""
    return _open(database_url())


def maintain_queue() -> None:
    """Mark dead runs as lost and start workers for queued ones; at most every 5 s for all sessions."""
    _maintain_queue(database_url())


@st.cache_data(ttl=5, max_entries=4, show_spinner=False)
def _maintain_queue(url: str) -> bool:
    _maintenance(url).maintain()
    return True


@st.cache_resource(max_entries=4, show_spinner=False)
def _maintenance(url: str) -> QueueMaintenance:
    return QueueMaintenance(_open(url))


def expect_run() -> None:
    """Have a worker ready for a run that is being described; at most once in 30 s."""
    _expect_run(database_url())


@st.cache_data(ttl=30, max_entries=4, show_spinner=False)
def _expect_run(url: str) -> bool:
    with contextlib.suppress(MRNLabError):  # shown when a run is launched
        default_engine().expect_run(_open(url))
    return True


def reachable() -> StoreError | None:
    """Why the store cannot be read now; None where it can."""
    try:
        store().counts()
    except StoreError as error:
        return error
    return None


def pace() -> float | None:
    """How often to look while anything runs or waits in the store; None while nothing does."""
    counts = store().counts()
    return LIVE if any(counts[state] for state in ACTIVE) else None


def task_order() -> list[str]:
    """Returns every task in the store, the tasks of the oldest sweep first."""
    return _tasks(database_url(), *_newest_and_count(database_url()))[0]


def task_colours(corpus: Sequence[str] = ()) -> dict[str, str]:
    """The colour of every task in the store, and of these tasks of a corpus. Once given, it stays."""
    url = database_url()
    places = _task_places(url, *_newest_and_count(url), tuple(corpus))
    return {task: TASK_COLOURS[place % len(TASK_COLOURS)] for task, place in places.items()}


def task_colour(task: str) -> str:
    """The colour of one task; grey where the store does not know it."""
    return task_colours().get(task, TASK_COLOURS[-1])


@st.cache_data(ttl=1, max_entries=4, show_spinner=False)
def _newest_and_count(url: str) -> tuple[int, int]:
    laboratory = _open(url)
    newest = laboratory.runs(limit=1, archived=None)
    return newest[0].id if newest else 0, sum(laboratory.counts().values())


@st.cache_data(max_entries=4, show_spinner=False)
def _tasks(url: str, newest: int, count: int) -> tuple[list[str], list[list[str]]]:
    """Returns all tasks in order, and by corpus. Read anew only when runs were added or deleted."""
    by_corpus: dict[str, list[Run]] = {}
    for run in (runs := _open(url).runs(archived=None)):
        by_corpus.setdefault(run.config.corpus, []).append(run)
    return tasks_in_order(runs), list(map(tasks_in_order, by_corpus.values()))


@st.cache_data(max_entries=24, show_spinner=False)
def _task_places(url: str, newest: int, count: int, corpus: tuple[str, ...]) -> dict[str, int]:
    return _open(url).task_places([*_tasks(url, newest, count)[1][::-1], corpus])


@st.cache_resource(max_entries=24, show_spinner="Reading the study")
def _study(url: str, options: StudyOptions) -> tuple[list[SettingRuns], StudyRuns, threading.Lock]:
    settings = options.settings()
    return settings, StudyRuns(_open(url), settings, may_read=False), threading.Lock()


def study_results(options: StudyOptions) -> tuple[Study, list[Result]]:
    """A study with these options, and its results by now. Raises MRNLabError if unknown."""
    settings, runs, lock = _study(database_url(), options)
    with lock:
        return settings[0].study, runs.results()


def study_counts(options: StudyOptions) -> RunCounts:
    """How far a study is. Raises MRNLabError if unknown."""
    _, runs, lock = _study(database_url(), options)
    with lock:
        return runs.look().counts


def study_counts_by_setting(options: StudyOptions) -> list[SettingCounts]:
    """The runs of a study still to do, and their time, by setting. Raises MRNLabError if unknown."""
    return _counts_by_setting(database_url(), options, study_counts(options))


@st.cache_resource(max_entries=24, show_spinner=False)
def _counts_by_setting(url: str, options: StudyOptions, counts: RunCounts) -> list[SettingCounts]:
    _, runs, lock = _study(url, options)
    with lock:
        return counts_by_setting(_open(url), runs.look())


def study_grid(options: StudyOptions) -> pd.DataFrame:
    """The table of a study of simulated tasks with these options (`core.transfer.grid`)."""
    return _study_grid(database_url(), options, study_counts(options))


@st.cache_resource(max_entries=8, show_spinner=False)
def _study_grid(url: str, options: StudyOptions, counts: RunCounts) -> pd.DataFrame:
    from jobs.studies.grids import GridRuns

    settings, runs, lock = _study(url, options)
    with lock:
        return GridRuns(_open(url), settings, runs).table()


StudyNow = tuple[list[Result], RunCounts, float | None]
"""The results of a study in the store, its progress, and the seconds left if past runs allow an estimate."""


def studies_by_now() -> dict[str, StudyNow | None]:
    """Returns by study the results in this store; None if no run is on the study's corpora."""
    return _studies_by_now(database_url(), store().counts(), *_newest_and_count(database_url()))


@st.cache_resource(max_entries=4, show_spinner="Looking for runs of the studies")
def _studies_by_now(
    url: str, counts: Mapping[RunState, int], newest: int, count: int
) -> dict[str, StudyNow | None]:
    """Read anew only when a run was added or deleted, or has changed its state."""
    # The descriptions of thousands of runs are built only for a study of which the store may have some.
    runs = _open(url).runs(archived=None)
    corpora = {run.config.corpus for run in runs if run.config_problem is None}
    return {
        name: None if corpora.isdisjoint(study.corpora) else _study_now(StudyOptions(name))
        for name, study in STUDIES.items()
    }


def _study_now(whole: StudyOptions) -> StudyNow:
    counts = study_counts(whole)
    left = [part.seconds for part in study_counts_by_setting(whole) if part.to_run]
    known = [seconds for seconds in left if seconds is not None]
    seconds = sum(known) if len(known) == len(left) else None
    return study_results(whole)[1] if counts.done else [], counts, seconds


def study_encoders(name: str) -> list[tuple[str, str]]:
    """The further encoders that this study was run over, here or in a record, with its encoder_training."""
    if STUDIES[name].for_encoder is None:
        return []
    return _study_encoders(database_url(), name, *_newest_and_count(database_url()))


@st.cache_data(max_entries=8, show_spinner=False)
def _study_encoders(url: str, name: str, newest: int, count: int) -> list[tuple[str, str]]:
    """Read anew only when runs were added or deleted."""
    studied = {(base_name(setting.base["encoder"]), "full") for setting in load_study(name).settings}
    trained = {
        (base_name(run.config.encoder), run.config.encoder_training)
        for run in _open(url).runs(archived=None)
        if run.sweep is not None and run.sweep.startswith(sweep_prefix(name)) and run.config_problem is None
    }
    recorded = {
        (record.encoder, record.encoder_training) for record in records_of(name) if record.encoder is not None
    }
    return sorted((trained | recorded) - studied)


def confusions(runs: Iterable[Run], split: str, task: str, kind: TaskKind) -> list[Confusion]:
    """The confusions of the runs with stored predictions."""
    parts = (_confusion(run, split, task, kind.scheme) for run in runs)
    return [part for part in parts if part is not None]


@st.cache_resource(max_entries=2000, show_spinner=False, hash_funcs=BY_RUN)
def _confusion(run: Run, split: str, task: str, scheme: str) -> Confusion | None:
    stored = store().predictions(run.id, split, task).get(task)
    return None if stored is None else KINDS[scheme].confusion(*stored)


@st.cache_resource(max_entries=600, show_spinner=False, hash_funcs=BY_RUN)
def learned(run: Run, step: int) -> Relations:
    """The covariances of the snapshot at that step."""
    return store().relations(run.id, step)[1]


# A retried run writes its curves anew, so the attempt is part of the key: run, attempt, metric.
_Name = tuple[int, int, MetricKey]


class SeriesCache:
    """A cache of curves. An active run's curve is read on from its last step, an ended one's once.
    The least recently used go first.
    """

    def __init__(self, most_bytes: int = 400_000_000) -> None:
        self._most_bytes = most_bytes
        # With each curve whether it is whole; None for a curve that the run does not have.
        self._curves: OrderedDict[_Name, tuple[MetricSeries | None, bool]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, laboratory: Store, runs: Sequence[Run], keys: Sequence[MetricKey]) -> list[MetricSeries]:
        """The curves that these runs have, by key, then run."""
        names = {(run.id, key): (run.id, run.attempt, key) for key in keys for run in runs}
        ended = {run.id for run in runs if run.state not in ACTIVE}
        with self._lock:
            known = {curve: self._curves.get(name, (None, False)) for curve, name in names.items()}
            last_steps = {
                curve: -1 if series is None else int(series.step[-1])
                for curve, (series, is_whole) in known.items()
                if not is_whole
            }
            read = laboratory.metrics_since(last_steps) if last_steps else ()
            new = {(series.run_id, series.key): series for series in read}
            for curve, name in names.items():
                series, is_whole = known[curve]
                self._curves[name] = _joined(series, new.get(curve)), is_whole or name[0] in ended
                self._curves.move_to_end(name)
            curves = [series for name in names.values() if (series := self._curves[name][0]) is not None]
            self._drop_oldest()
            return curves

    def _drop_oldest(self) -> None:
        size = sum(_bytes(series) for series, _ in self._curves.values())
        while size > self._most_bytes and len(self._curves) > 1:
            size -= _bytes(self._curves.popitem(last=False)[1][0])


def _bytes(series: MetricSeries | None) -> int:
    return 0 if series is None else 4 * series.value.nbytes


def _joined(old: MetricSeries | None, new: MetricSeries | None) -> MetricSeries | None:
    if old is None or new is None:
        return new or old
    arrays = ("step", "epoch", "seconds", "value")
    joined = (np.concatenate([getattr(old, name), getattr(new, name)]) for name in arrays)
    return MetricSeries(new.run_id, new.key, *joined)


@st.cache_resource(max_entries=4, show_spinner=False)
def _curves(url: str) -> SeriesCache:
    return SeriesCache()


def curve_series(runs: Sequence[Run], keys: Sequence[MetricKey]) -> list[MetricSeries]:
    """These curves of these runs, whole."""
    return _curves(database_url()).get(store(), runs, keys)
