"""The controls of the Relations page: which matrices are shown, of which runs, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.config.typed import whole_number
from core.results.naming import run_names
from core.results.samples import one_per_seed, readable
from core.store.types import Run, RunState
from dashboard.relations.sentences import read_seeds
from dashboard.shared import resources
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import newest_launch, segments, switch

MODES = {"task": "Tasks", "label": "Labels", "feature": "Features"}
EMBEDDING = "embedding"
"""The mode of the task embeddings, which MTL has too; the others are what MRN learned."""
PLAYER = "relations_matrix"
_VIEWS = {"one": "One run", "side": "Side by side", "mean": "Mean over seeds"}
_ORDERS = {"task": "By task", "cluster": "Clustered"}
_MOST_BESIDE = 4
_MOST_OPENED = 12
_MOST_SEEDS = 50


@dataclass(frozen=True)
class Selection:
    """The reader's selection. `gold` and `gradients` add their matrices."""

    mode: str
    view: str
    order: str
    gold: bool
    gradients: bool
    run_ids: tuple[int, ...]

    @property
    def rows(self) -> str:
        """The kind of the matrices' rows: task, label or feature."""
        return "task" if self.mode == EMBEDDING else self.mode


def mrn_runs() -> list[Run] | None:
    """The chosen runs of MRN or with task embeddings; None without one.
    By default those of the newest launch that have begun.
    """
    return pick_runs(
        key="relations_runs",
        suitable=lambda run: run.config.paradigm == "mrn" or run.config.embeds_tasks,
        instead=lambda runs: newest_launch(_opened_on(runs), _MOST_OPENED),
        label="Runs",
        run_by_run=True,
    )


def _opened_on(runs: Sequence[Run]) -> Sequence[Run]:
    """Those that have begun, and of these rather what controls are of than controls."""
    begun = [run for run in runs if run.step] or runs
    return [run for run in begun if run.config.permuted is None] or begun


def select(runs: Sequence[Run]) -> Selection:
    """One row of controls, and with several runs a second one that says which of them is meant.

    Runs that have nothing of the mode chosen are left out.
    """
    mrn = [run for run in runs if run.config.paradigm == "mrn"]
    embedding = [run for run in runs if run.config.embeds_tasks]
    modes = (MODES if mrn else {}) | ({EMBEDDING: "Embeddings"} if embedding else {})
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        # The style sheet greys what none of these runs learned, by the name of the container.
        missing = [mode for mode in MODES if mrn and not any(mode in run.config.learned for run in mrn)]
        with st.container(key="-".join(["not_learned", *missing]), width="content"):
            mode = segments("Relations between", modes, key="mode", on_change=_unzoom)
        runs = embedding if mode == EMBEDDING else mrn
        are_seeds = len(runs) > 1 and len({run.configuration_id for run in runs}) == 1
        view = segments(
            "Runs shown", _VIEWS, key="view", default="mean" if are_seeds else "one", on_change=_unzoom
        )
        order, gold, gradients = "task", False, False
        if mode in ("label", "feature") and mode not in missing:
            names = _ORDERS if mode == "label" else {**_ORDERS, "task": "Encoder's order"}
            order = segments("Order", names, key="order", on_change=_unzoom)
        if mode == "label" and mode not in missing and view in ("one", "mean"):
            gold = switch(
                "Show gold labels",
                key="gold",
                help="Correlations of gold labels on the training words, and the learned ones less these.",
            )
        measured = view == "one" and any(run.config.affinity_every for run in runs)
        if mode == "task" and mode not in missing and measured:
            gradients = switch(
                "Show gradients",
                key="gradients",
                help="The cosine of two tasks' gradients, averaged over training.",
            )
    return Selection(mode, view, order, gold, gradients, _run_ids(view, runs))


def _unzoom() -> None:
    """A zoomed part belongs to one matrix in one order."""
    st.query_params.pop("zoom", None)


def _run_ids(view: str, runs: Sequence[Run]) -> tuple[int, ...]:
    """The runs of a view, in its order."""
    if view == "mean":
        return _seeds(runs)
    if view == "side":
        if len(runs) == 1:
            st.caption("One run is chosen. Choose a second one above.")
        elif len(runs) > _MOST_BESIDE:
            st.caption(f"Shown are the first {_MOST_BESIDE} of {len(runs)} runs.")
        return tuple(run.id for run in runs[:_MOST_BESIDE])
    return (runs[0].id,) if len(runs) == 1 else (_pick_run(runs),)


def _pick_run(runs: Sequence[Run]) -> int:
    """One of the chosen runs, by its number in the URL."""
    names = {run.id: name for run, name in zip(runs, run_names(runs), strict=True)}
    linked = whole_number(st.query_params.get("a", ""))
    key = "relations_run"
    st.session_state[key] = linked if linked in names else runs[0].id

    def remember() -> None:
        st.query_params["a"] = str(st.session_state[key])

    picked: int = st.selectbox(
        "Run shown", list(names), format_func=names.__getitem__, key=key, on_change=remember, width=420
    )
    return picked


def _seeds(runs: Sequence[Run]) -> tuple[int, ...]:
    """The chosen runs of the first one's configuration; where that is one, all of it that succeeded."""
    first = runs[0]
    chosen = [run for run in runs if run.configuration_id == first.configuration_id]
    if len(chosen) < 2:
        succeeded = resources.store().runs(states=[RunState.SUCCEEDED])
        same = [run for run in readable(succeeded)[0] if run.configuration_id == first.configuration_id]
        chosen = [first, *(run for run in same if run.id != first.id)]
    counted = one_per_seed(chosen, resources.store().conditions(chosen))
    by_seed = sorted(counted, key=lambda run: (run.id != first.id, run.config.seed, run.id))[:_MOST_SEEDS]
    text = read_seeds(first.id, len(counted), len(by_seed))
    if len(counted) < len(chosen):
        text += " Of each seed the newest successful run counts, on the newest text and precision."
    st.caption(text)
    return tuple(run.id for run in by_seed)
