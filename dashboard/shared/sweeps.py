"""Sweeps in progress: a bar for each that has active runs, with the time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import fmean

import streamlit as st

from core.store import Store
from core.store.types import ACTIVE, Run, RunState
from core.wording import about_time, plural
from dashboard.shared.queue import seconds_left
from dashboard.shared.run_views import fraction_done
from dashboard.text import escape
from dashboard.theme import STATES

_ENDED_BADLY = (RunState.FAILED, RunState.LOST, RunState.CANCELLED)


@dataclass(frozen=True)
class SweepRuns:
    """The runs that were added at one time, oldest first."""

    runs: tuple[Run, ...]

    @cached_property
    def states(self) -> Counter[RunState]:
        """How many of its runs are in each state."""
        return Counter(run.state for run in self.runs)

    @property
    def name(self) -> str:
        """Its name without its time; empty where nobody named it."""
        name = (self.runs[0].sweep or "").rpartition(", ")[0]
        return "" if name == "Launch" else name

    @property
    def active(self) -> tuple[int, ...]:
        """The runs that are queued or in progress."""
        return tuple(run.id for run in self.runs if run.state in ACTIVE)

    @property
    def done(self) -> float:
        """The share of its training that is done, in [0, 1]; what has ended badly counts as done."""
        shares = [1.0 if run.state in _ENDED_BADLY else fraction_done(run) for run in self.runs]
        return fmean(shares)

    @property
    def progress(self) -> str:
        """`4 of 15 done, 1 failed`."""
        badly = [state for state in _ENDED_BADLY if self.states[state]]
        counts = [f"{self.states[state]:,} {STATES[state].word.lower()}" for state in badly]
        return ", ".join([f"{self.states[RunState.SUCCEEDED]:,} of {len(self.runs):,} done", *counts])


def sweeps_of(runs: Iterable[Run]) -> list[SweepRuns]:
    """The sweeps of these runs, newest first."""
    by_time: dict[datetime, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.id):
        by_time.setdefault(run.created_at, []).append(run)
    return [SweepRuns(tuple(by_time[time])) for time in sorted(by_time, reverse=True)]


def sweeps_in_progress(store: Store) -> list[SweepRuns]:
    """The sweeps with runs that are queued or in progress, newest first, each with all of its runs."""
    active = store.runs(states=ACTIVE)
    return sweeps_of(store.added_together([run.id for run in active])) if active else []


def progress_left(store: Store, sweep: SweepRuns) -> str:
    """`4 of 15 done, about 3 min left`; without the time while the queue is paused, or nothing is known."""
    left = None if store.paused_since() is not None else seconds_left(sweep.active)
    return sweep.progress + ("" if left is None else f", {about_time(left)} left")


def sweep_bars(store: Store, most: int) -> list[SweepRuns]:
    """Draws a bar for each sweep in progress, the newest `most`: how many runs are done, the time left.

    Returns all of them, newest first.
    """
    sweeps = sweeps_in_progress(store)
    for sweep in sweeps[:most]:
        text = f"**{escape(sweep.name or 'Sweep')}**: {progress_left(store, sweep)}"
        st.progress(sweep.done, text=text)
    if more := len(sweeps[most:]):
        st.caption(f"{plural(more, 'more sweep', 'more sweeps')} in progress.")
    return sweeps
