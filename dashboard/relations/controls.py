"""What of which runs is shown: tasks, labels or features; one run, several, their difference, their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.config.sweep import whole_number
from core.store.records import Run, RunState
from core.wording import plural
from dashboard.shared import resources
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import choose
from jobs.naming import run_name
from jobs.results import one_per_seed

MODES = {"task": "Tasks", "label": "Labels", "feature": "Features"}
_VIEWS = {"one": "One run", "side": "Side by side", "difference": "Difference", "mean": "Mean over seeds"}
_ORDERS = {"task": "By task", "cluster": "Clustered"}
_MOST_BESIDE = 4
_MOST_SEEDS = 20


@dataclass(frozen=True)
class Asked:
    """What the reader asked for. `gold`: the gold labels beside."""

    mode: str
    view: str
    order: str
    gold: bool
    run_ids: tuple[int, ...]


def mrn_runs() -> list[Run] | None:
    """The chosen MRN runs; the newest that has begun where none is chosen. None where there is no MRN run."""
    return pick_runs(
        key="relations_runs",
        suitable=lambda run: run.config.paradigm == "mrn",
        instead=lambda runs: [next((run.id for run in runs if run.step), runs[0].id)],
        label="MRN runs",
    )


def controls(runs: Sequence[Run]) -> Asked:
    """One row of controls, and with several runs a second one that says which of them is meant."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        mode = _segments("Relations between", MODES, "mode")
        view = _segments("Runs shown", _VIEWS, "view")
        order, gold = "task", False
        if mode != "task":
            order = _segments(
                "Order", _ORDERS if mode == "label" else {**_ORDERS, "task": "Encoder's order"}, "order"
            )
        if mode == "label" and view in ("one", "mean"):
            gold = st.toggle(
                "Beside gold labels",
                key="gold",
                bind="query-params",
                help="How the true labels go together on the training words, and what was learned beyond.",
            )
    return Asked(mode, view, order, gold, _meant(view, runs))


def _segments(label: str, names: dict[str, str], key: str) -> str:
    picked: str = st.segmented_control(
        label,
        list(names),
        default=next(iter(names)),
        required=True,
        key=key,
        bind="query-params",
        format_func=names.__getitem__,
        label_visibility="collapsed",
        on_change=_whole_matrix,
    )
    return picked


def _whole_matrix() -> None:
    """A part of one matrix is no part of another, nor of the same in another order."""
    if "zoom" in st.query_params:
        del st.query_params["zoom"]


def _meant(view: str, runs: Sequence[Run]) -> tuple[int, ...]:
    """The runs of a view, in its order."""
    if view == "mean":
        return _seeds(runs)
    if view == "side":
        if len(runs) > _MOST_BESIDE:
            st.caption(f"The first {_MOST_BESIDE} of {len(runs)} runs stand beside each other.")
        _suggest(runs)
        return tuple(run.id for run in runs[:_MOST_BESIDE])
    if view == "difference":
        if len(runs) < 2:
            _suggest(runs)
            return (runs[0].id,)
        if len(runs) == 2:
            return (runs[0].id, runs[1].id)
        with st.container(horizontal=True):
            a = _one_of("A", runs, "a", runs[0].id)
            b = _one_of("minus B", runs, "b", next(run.id for run in runs if run.id != a))
        return (a, b)
    return (_one_of("Run shown", runs, "a", runs[0].id) if len(runs) > 1 else runs[0].id,)


def _one_of(label: str, runs: Sequence[Run], parameter: str, otherwise: int) -> int:
    """One of the chosen runs, by its number in the URL."""
    names = {run.id: run_name(run) for run in runs}
    linked = st.query_params.get(parameter, "")
    number = whole_number(linked)
    wanted = number if number is not None and number in names else otherwise
    key = f"relations_run_{parameter}"
    if st.session_state.get(key) != wanted:
        st.session_state[key] = wanted

    def remember() -> None:
        st.query_params[parameter] = str(st.session_state[key])

    picked: int = st.selectbox(
        label, list(names), format_func=names.__getitem__, key=key, on_change=remember, width=420
    )
    return picked


def _seeds(runs: Sequence[Run]) -> tuple[int, ...]:
    """The chosen runs of the first one's configuration; where that is one, all of it that ended well."""
    first = runs[0]
    chosen = [run for run in runs if run.configuration_id == first.configuration_id]
    if len(chosen) < 2:
        known = resources.store().runs(states=[RunState.SUCCEEDED])
        others = [run for run in known if run.configuration_id == first.configuration_id]
        chosen = [first, *(run for run in others if run.id != first.id)]
        if len(chosen) > 1:
            st.caption(f"Run {first.id} and all seeds of its configuration that have succeeded.")
        else:
            st.caption(
                f"Run {first.id} is the only one of its configuration: launch it with more seeds to see what "
                "they agree on."
            )
    elif len(chosen) < len(runs):
        others_chosen = plural(len(runs) - len(chosen), "chosen run")
        st.caption(
            f"{len(chosen)} seeds of run {first.id}'s configuration; {others_chosen} of others left out."
        )
    counted = one_per_seed(chosen, resources.store().conditions(chosen))
    if len(counted) < len(chosen):
        st.caption(
            f"{len(counted)} of these runs count: of each seed the newest that succeeded, on the text and in "
            "the precision of the newest."
        )
    by_seed = sorted(counted, key=lambda run: (run.id != first.id, run.config.seed, run.id))
    return tuple(run.id for run in by_seed[:_MOST_SEEDS])


def _suggest(runs: Sequence[Run]) -> None:
    """With one run chosen, others to set beside it."""
    if len(runs) > 1:
        return
    only = runs[0]
    others = [
        run
        for run in resources.store().runs()
        if run.id != only.id
        and run.config.paradigm == "mrn"
        and run.step
        and run.config.tasks == only.config.tasks
    ]
    near = sorted(others, key=lambda run: run.configuration_id != only.configuration_id)[:3]
    st.caption("One run is chosen. Choose a second one above" + (", or:" if near else "."))
    with st.container(horizontal=True):
        for run in near:
            st.button(
                f"Add {run_name(run)}",
                key=f"relations_add_{run.id}",
                on_click=choose,
                args=((only.id, run.id),),
            )
