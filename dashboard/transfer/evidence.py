"""The runs and gains of the Transfer page, and evidence on them, computed in the background."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import streamlit as st

from core.config import shares_nothing
from core.errors import MRNLabError
from core.paths import database_url
from core.store import RunState
from dashboard.shared import resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import choice
from dashboard.shared.states import problem
from dashboard.text import escape
from dashboard.transfer.views import group_names
from jobs.reports.transfer import PairGroup, pair_groups
from jobs.studies.evidence import Evidence, evidence

_WANTED = "transfer_evidence_wanted"
_Runs = tuple[tuple[int, int], ...]
"""The number and attempt of each run that succeeded, by which all that is read here is kept."""


def finished_runs() -> _Runs:
    """The finished runs of the store."""
    runs = resources.store().runs(states={RunState.SUCCEEDED})
    return tuple((run.id, run.attempt) for run in runs)


def groups(runs: _Runs) -> list[PairGroup]:
    """The groups of runs with gains of pairs, the largest first."""
    return _groups(database_url(), runs, tuple(resources.task_order()))


@st.cache_resource(max_entries=4, show_spinner="Reading the gains")
def _groups(url: str, runs: _Runs, order: tuple[str, ...]) -> list[PairGroup]:
    return pair_groups(resources.store(), order)


def pick_group(known: list[PairGroup]) -> PairGroup:
    """The group in the address, by default the largest that can transfer; a choice of several."""
    labels = dict(zip([group.key for group in known], group_names(known), strict=True))
    if len(known) == 1:
        st.caption(escape(labels[known[0].key]))
        return known[0]
    about = "Runs that differ only in tasks, paradigm and seed: STL of single tasks and MTL of pairs."
    first = next((group for group in known if not shares_nothing(group.config)), known[0])
    picked = choice("Runs", labels, key="group", default=first.key, help=about)
    return next(group for group in known if group.key == picked)


def evidence_of(group: PairGroup, runs: _Runs, *, needed: bool) -> Evidence | None:
    """The evidence on a group; None while it is computed, or where it cannot be, which is said.

    It takes tens of seconds of a processor: it is computed once a reader has asked for it.
    """
    if needed:
        st.session_state[_WANTED] = True
    if not st.session_state.get(_WANTED):
        return None
    future = _evidence(database_url(), group.key, runs, group)
    if not future.done():
        st.caption(":shimmer[Computing what predicts the gains: features, predictors, costs.]")
        rerun_when(future.done, key="transfer_await")
        return None
    try:
        return future.result()
    except MRNLabError as error:  # the corpus is not here any more, say
        problem(str(error))
        return None


@st.cache_resource(max_entries=8, show_spinner=False)
def _evidence(url: str, key: str, runs: _Runs, _group: PairGroup) -> Future[Evidence]:
    return _in_background.submit(lambda: evidence(resources.store(), _group))


_in_background = ThreadPoolExecutor(1)
