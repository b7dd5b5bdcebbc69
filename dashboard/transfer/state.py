"""What the Transfer page reads, kept until its runs change. Evidence is computed in the background."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import streamlit as st

from core.errors import MRNLabError
from core.paths import database_url
from core.store import RunState
from core.transfer.gains import Pair
from core.transfer.predictors import Coefficient, coefficients, left_out_probabilities
from dashboard.shared import resources
from dashboard.shared.states import problem
from dashboard.text import escape
from dashboard.transfer.views import group_names
from jobs.reports.evidence import Evidence, evidence
from jobs.reports.transfer import PairGroup, pair_groups

ALL_FEATURES = "all features"
_WANTED = "transfer_evidence_wanted"
_Runs = tuple[tuple[int, int], ...]
"""The number and attempt of each run that succeeded, by which all that is read here is kept."""


@dataclass(frozen=True)
class Known:
    """The evidence on a group, by predictor and pair the probability of a gain (tasks left out), and the
    coefficients of all features.
    """

    evidence: Evidence
    probabilities: Mapping[str, Mapping[Pair, float]]
    coefficients: tuple[Coefficient, ...]


def finished_runs() -> _Runs:
    """What the store has now."""
    runs = resources.store().runs(states={RunState.SUCCEEDED}, with_facts=False)
    return tuple((run.id, run.attempt) for run in runs)


def groups(runs: _Runs) -> list[PairGroup]:
    """The groups of runs with gains of pairs, the largest first."""
    return _groups(database_url(), runs, tuple(resources.task_order()))


@st.cache_resource(max_entries=4, show_spinner="Reading the gains")
def _groups(url: str, runs: _Runs, order: tuple[str, ...]) -> list[PairGroup]:
    return pair_groups(resources.store(), order)


def pick_group(known: list[PairGroup]) -> PairGroup:
    """The group in the address, by default the largest; a choice where there are several."""
    labels = dict(zip([group.key for group in known], group_names(known), strict=True))
    if len(known) == 1:
        st.caption(escape(labels[known[0].key]))
        return known[0]
    linked = st.query_params.get("group")
    st.session_state["transfer_group"] = linked if linked in labels else known[0].key

    def remember() -> None:
        st.query_params["group"] = st.session_state["transfer_group"]

    picked = st.selectbox(
        "Runs",
        list(labels),
        format_func=labels.__getitem__,
        key="transfer_group",
        on_change=remember,
        help="Runs that are alike in all but tasks, paradigm and seed: STL of tasks and MTL of pairs.",
    )
    return next(group for group in known if group.key == picked)


def known_of(group: PairGroup, runs: _Runs, *, needed: bool) -> Known | None:
    """The evidence on a group; None while it is computed, or where it cannot be, which is said.

    It takes tens of seconds of a processor: it is computed once a reader has asked for it.
    """
    if needed:
        st.session_state[_WANTED] = True
    if not st.session_state.get(_WANTED):
        st.button(
            "Features and predictions",
            icon=":material/query_stats:",
            type="tertiary",
            help="Computed in the background, the first time in tens of seconds.",
            on_click=lambda: st.session_state.update({_WANTED: True}),
        )
        return None
    future = _known(database_url(), group.key, runs, group)
    if not future.done():
        st.caption(":shimmer[Computing what predicts the gains: features, predictors, costs.]")

        @st.fragment(run_every=resources.LIVE, key="transfer_await")
        def look() -> None:
            if future.done():
                st.rerun()

        look()
        return None
    try:
        return future.result()
    except MRNLabError as error:  # the corpus is not here any more, say
        problem(str(error))
        return None


@st.cache_resource(max_entries=8, show_spinner=False)
def _known(url: str, key: str, runs: _Runs, _group: PairGroup) -> Future[Known]:
    return _in_background.submit(_compute, _group)


_in_background = ThreadPoolExecutor(1)


def _compute(group: PairGroup) -> Known:
    known = evidence(resources.store(), group)
    fitted = {predictor.name: predictor for predictor in known.predictors if predictor.features}
    probabilities = {name: left_out_probabilities(known.pairs, each) for name, each in fitted.items()}
    of_all = fitted.get(ALL_FEATURES)
    weights = coefficients(known.pairs, of_all) if of_all is not None and of_all.known.any() else ()
    return Known(known, probabilities, weights)


def planted(group: PairGroup) -> Mapping[Pair, float]:
    """By pair the AMI of two simulated tasks, as their runs have it; empty for other corpora."""
    return _planted(database_url(), tuple(next(iter(by_seed.values())) for by_seed in group.beside))


@st.cache_data(max_entries=8, show_spinner=False)
def _planted(url: str, ids: tuple[int, ...]) -> Mapping[Pair, float]:
    ami: dict[Pair, float] = {}
    for run in resources.store().runs(ids):
        if facts := run.facts.get("planted"):
            for main, row in zip(facts["tasks"], facts["ami"], strict=True):
                ami |= {
                    (main, aux): value for aux, value in zip(facts["tasks"], row, strict=True) if aux != main
                }
    return ami
