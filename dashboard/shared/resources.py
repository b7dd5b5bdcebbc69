"""What all sessions share: the store, the snapshots, and housekeeping."""

from __future__ import annotations

import contextlib
import threading

import streamlit as st

from core.errors import MRNLabError, StoreError
from core.mrn.relations import Relations
from core.paths import database_url
from core.registry import base_name
from core.store import Store
from core.store.records import ACTIVE, Run, SnapshotKey
from core.studies import Study, load_study, may_change_encoder
from core.studies.analysis import Result
from dashboard.shared.run_views import tasks_in_order
from jobs.engines import default_engine
from jobs.studies import StudyRuns, laid_out, sweep_of
from jobs.worker.maintenance import QueueMaintenance

LIVE = 2.0
"""Seconds between two looks at what goes on."""

IDLE = 8.0
"""Seconds between two looks while nothing goes on: runs launched elsewhere show within ten."""

PATIENCE_S = 4.0
"""How long a page waits for a busy store before it says so; training waits longer."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _open(url: str) -> Store:
    return Store.open(url, patience_s=PATIENCE_S)


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
    _maintenance(url).maintain()
    return True


@st.cache_resource(max_entries=4, show_spinner=False)
def _maintenance(url: str) -> QueueMaintenance:
    return QueueMaintenance(_open(url))


def expect_run() -> None:
    """Somebody describes a run: have a worker ready for it. Asked for once in half a minute."""
    _expect_run(database_url())


@st.cache_data(ttl=30, max_entries=4, show_spinner=False)
def _expect_run(url: str) -> bool:
    with contextlib.suppress(MRNLabError):  # what is wrong is told where a run is launched
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
    """Every task in the store, in the order that gives it its colour on every page."""
    return _task_order(database_url(), *_newest_and_count(database_url()))


@st.cache_data(ttl=1, max_entries=4, show_spinner=False)
def _newest_and_count(url: str) -> tuple[int, int]:
    laboratory = _open(url)
    newest = laboratory.runs(limit=1, archived=None)
    return newest[0].id if newest else 0, sum(laboratory.counts().values())


@st.cache_data(max_entries=4, show_spinner=False)
def _task_order(url: str, newest: int, count: int) -> list[str]:
    """Read anew only when runs were added or deleted. No colour changes when runs are archived."""
    return tasks_in_order(_open(url).runs(archived=None))


class _Study:
    """A study's runs, looked at again and again; one session at a time."""

    def __init__(self, laboratory: Store, name: str, encoder: str | None, encoder_training: str) -> None:
        self.study = load_study(name, encoder, encoder_training)
        self._runs = StudyRuns(laboratory, laid_out(self.study, self.study.settings))
        self._lock = threading.Lock()

    def results(self) -> list[Result]:
        with self._lock:
            return self._runs.results()


@st.cache_resource(max_entries=8, show_spinner="Laying out the study")
def _study(url: str, name: str, encoder: str | None, encoder_training: str) -> _Study:
    return _Study(_open(url), name, encoder, encoder_training)


def study_results(
    name: str, encoder: str | None = None, encoder_training: str = "full"
) -> tuple[Study, list[Result]]:
    """A study, over its own encoders or another, and what its settings say by now.

    Raises MRNLabError where there is none of that name.
    """
    found = _study(database_url(), name, encoder, encoder_training)
    return found.study, found.results()


def study_encoders(name: str) -> list[tuple[str, str]]:
    """The encoders that this study was run over beside its own, each with how it was trained."""
    if not may_change_encoder(name):
        return []
    return _study_encoders(database_url(), name, *_newest_and_count(database_url()))


@st.cache_data(max_entries=8, show_spinner=False)
def _study_encoders(url: str, name: str, newest: int, count: int) -> list[tuple[str, str]]:
    """Read anew only when runs were added or deleted."""
    own = {(base_name(setting.base["encoder"]), "full") for setting in load_study(name).settings}
    found = {
        (base_name(run.config.encoder), run.config.encoder_training)
        for run in _open(url).runs(archived=None)
        if run.sweep is not None and run.sweep.startswith(sweep_of(name)) and run.config_problem is None
    }
    return sorted(found - own)


def learned(run: Run, key: SnapshotKey) -> Relations:
    """The covariances of one snapshot. A snapshot never changes within an attempt, so it is read once."""
    return _learned(database_url(), run.id, run.attempt, key.step)


@st.cache_resource(max_entries=600, show_spinner=False)
def _learned(url: str, run_id: int, attempt: int, step: int) -> Relations:
    return _open(url).relations(run_id, step)[1]
