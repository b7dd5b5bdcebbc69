"""What the Relations page shows: the reader's selection, its runs, their aligned steps and picture."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from core.config.typed import whole_number
from core.mrn.relations import Relations
from core.paths import database_url
from core.store.records import Run, RunState, SnapshotKey
from dashboard.relations.charts import player_frame, player_numbers
from dashboard.relations.matrices import Corner, Panel, arrangement, picture
from dashboard.relations.views import (
    AlignedSteps,
    Places,
    SharedRows,
    Trajectory,
    aligned,
    gold_labels,
    learns,
    not_comparable,
    rows_of,
    shared_rows,
)
from dashboard.shared import resources
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import segments, switch
from jobs.reports.naming import run_names
from jobs.reports.table import one_per_seed, readable
from jobs.reports.transfer import run_embeddings, run_gradients

MODES = {"task": "Tasks", "label": "Labels", "feature": "Features"}
EMBEDDING = "embedding"
"""The mode of the task embeddings, which MTL has too; the others are what MRN learned."""
PLAYER = "relations_matrix"
_VIEWS = {"one": "One run", "side": "Side by side", "mean": "Mean over seeds"}
_ORDERS = {"task": "By task", "cluster": "Clustered"}
_MOST_BESIDE = 4
_MOST_SEEDS = 20


@dataclass(frozen=True)
class Selection:
    """What the reader asked for. `gold`, `gradients`: gold labels, or what was measured of them, beside."""

    mode: str
    view: str
    order: str
    gold: bool
    gradients: bool
    run_ids: tuple[int, ...]

    @property
    def rows(self) -> str:
        """What the rows of the matrices are: a task, a label or a feature."""
        return "task" if self.mode == EMBEDDING else self.mode


def mrn_runs() -> list[Run] | None:
    """The chosen runs of MRN or with task embeddings; by default the newest that has begun. None where there
    is no such run.
    """
    return pick_runs(
        key="relations_runs",
        suitable=lambda run: run.config.paradigm == "mrn" or run.config.embeds_tasks,
        instead=lambda runs: [next((run.id for run in runs if run.step), runs[0].id)],
        label="Runs of MRN, or with task embeddings",
        run_by_run=True,
    )


def select(runs: Sequence[Run]) -> Selection:
    """One row of controls, and with several runs a second one that says which of them is meant.

    Runs that have nothing of the mode chosen are left out.
    """
    of_mrn = [run for run in runs if run.config.paradigm == "mrn"]
    embedding = [run for run in runs if run.config.embeds_tasks]
    modes = (MODES if of_mrn else {}) | ({EMBEDDING: "Embeddings"} if embedding else {})
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        # The style sheet greys what none of these runs learned, by the name of the container.
        missing = [mode for mode in MODES if of_mrn and not any(learns(run, mode) for run in of_mrn)]
        with st.container(key="-".join(["not_learned", *missing]), width="content"):
            mode = segments("Relations between", modes, key="mode", on_change=_unzoom)
        runs = embedding if mode == EMBEDDING else of_mrn
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
                help="How the true labels go together on the training words, and what was learned beyond.",
            )
        measured = view == "one" and any(run.config.affinity_every for run in runs)
        if mode == "task" and mode not in missing and measured:
            gradients = switch(
                "Show gradients",
                key="gradients",
                help="The cosine of two tasks' gradients, in the mean over all measurements of the training.",
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
            st.caption(f"The first {_MOST_BESIDE} of {len(runs)} runs stand beside each other.")
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
    if len(counted) < 2:
        words = f"Run {first.id} is the only one of its configuration: launch it with more seeds."
    else:
        ids = ", ".join(str(run_id) for run_id in sorted(run.id for run in counted))
        words = f"Seeds of run {first.id}'s configuration: runs {ids}."
    if len(counted) < len(chosen):
        words += " Of each seed the newest run that succeeded counts, on the newest text and precision."
    st.caption(words)
    by_seed = sorted(counted, key=lambda run: (run.id != first.id, run.config.seed, run.id))
    return tuple(run.id for run in by_seed[:_MOST_SEEDS])


Embeddings = Mapping[int, Mapping[SnapshotKey, Relations]]
"""The cosines of task embeddings by run and step, as relations of tasks."""


@dataclass(frozen=True)
class RelationsState:
    """The runs that have snapshots, their aligned steps, the rows they share.

    `view` is the selected one, or `one` where only one run can be shown. `embeddings` are empty
    where the mode shows what MRN learned.
    """

    selection: Selection
    view: str
    runs: tuple[Run, ...]
    steps: AlignedSteps
    shared: SharedRows
    embeddings: Embeddings = field(default_factory=dict)

    @property
    def of_prior(self) -> bool:
        """Whether the matrices are what the prior of MRN learned, and not cosines of task embeddings."""
        return self.selection.mode != EMBEDDING

    @property
    def mode(self) -> str:
        """What the rows of the matrices are: a task, a label or a feature."""
        return self.selection.rows

    @property
    def names(self) -> list[str]:
        """What the runs' matrices are titled with."""
        if self.of_prior:
            return run_names(self.runs)
        return [f"{run.id} · {run.config.task_embedding} · seed {run.config.seed}" for run in self.runs]

    @property
    def at(self) -> int:
        """The position shown: the URL's step, else the newest."""
        return self.steps.at(whole_number(st.query_params.get("step", "")))

    def trajectories(self) -> list[Trajectory]:
        """The runs at all steps."""
        return [
            Trajectory(run, keys, tuple(_learned(run, key, self.embeddings) for key in keys))
            for run, keys in zip(self.runs, self.steps.keys, strict=True)
        ]

    def learned(self, position: int) -> list[Relations]:
        """What each run had learned by then."""
        keys = zip(self.runs, self.steps.keys, strict=True)
        return [_learned(run, of_run[position], self.embeddings) for run, of_run in keys]


def read_state(selection: Selection) -> tuple[RelationsState | None, list[Run], str | None]:
    """The state (None without any snapshot), the runs without one, and why runs cannot be compared, if so."""
    store = resources.store()
    by_id = {run.id: run for run in store.runs(selection.run_ids)}
    runs = [by_id[run_id] for run_id in selection.run_ids if run_id in by_id]
    embeddings: Embeddings = {}
    if selection.mode == EMBEDDING:
        embeddings = {run.id: _embeddings(run) for run in runs}
        # What the facts tell of the prior's alignment does not hold of them.
        runs = [replace(run, facts={"tasks": run.facts.get("tasks", ())}) for run in runs]
        snapshots = {run_id: list(of_run) for run_id, of_run in embeddings.items()}
    else:
        snapshots = {run.id: store.snapshots(run.id) for run in runs}
    begun = tuple(run for run in runs if snapshots[run.id])
    waiting = [run for run in runs if not snapshots[run.id]]
    if not begun:
        return None, waiting, None
    state = _state(selection, begun, snapshots, embeddings)
    reason = not_comparable(begun, state.mode, state.shared) if len(begun) > 1 else None
    if reason is not None:
        state = _state(selection, begun[:1], snapshots, embeddings)
    return state, waiting, reason


def _embeddings(run: Run) -> dict[SnapshotKey, Relations]:
    """The cosines of a run's task embeddings: a correlation matrix like those of tasks."""
    none = np.zeros((0, 0))
    cosines = run_embeddings(resources.store(), run)
    return {key: Relations(matrix, none, none, 0.0) for key, matrix in cosines.items()}


def _state(
    selection: Selection,
    runs: tuple[Run, ...],
    snapshots: Mapping[int, Sequence[SnapshotKey]],
    embeddings: Embeddings,
) -> RelationsState:
    steps = aligned(runs, snapshots)
    rows = [
        rows_of(run, selection.rows, _learned(run, keys[-1], embeddings))
        for run, keys in zip(runs, steps.keys, strict=True)
    ]
    view = selection.view if len(runs) > 1 else "one"
    return RelationsState(selection, view, runs, steps, shared_rows(rows), embeddings)


def _learned(run: Run, key: SnapshotKey, embeddings: Embeddings) -> Relations:
    return embeddings[run.id][key] if embeddings else resources.learned(run, key.step)


def corner() -> Corner | None:
    """The first row and column of the features that the URL zooms into: `zoom=12,100`."""
    edges = [whole_number(part) for part in st.query_params.get("zoom", "").split(",")]
    top, left = edges if len(edges) == 2 else (None, None)
    return (top, left) if top is not None and left is not None and min(top, left) >= 0 else None


@dataclass(frozen=True)
class PlayerData:
    """What the player gets, and which of the shared rows stands where in the order drawn."""

    frame: dict[str, Any]
    numbers: bytes
    order: Places


def player_data(state: RelationsState) -> PlayerData:
    """The picture at all steps."""
    depends_on = (
        state.selection,
        state.view,
        corner(),
        [run.attempt for run in state.runs],
        state.steps.keys,
    )
    identity = hashlib.sha256(repr(depends_on).encode()).hexdigest()[:16]
    with st.spinner("Reading the matrices"):
        return _player_data(database_url(), identity, state, corner())


@st.cache_resource(max_entries=24, show_spinner=False)
def _player_data(url: str, identity: str, _state: RelationsState, _corner: Corner | None) -> PlayerData:
    """Made once for all sessions; at most a few MB each. `identity` tells all that it depends on."""
    selection = _state.selection
    last = _state.learned(len(_state.steps.steps) - 1)
    order = arrangement(_state.mode, _state.shared, last, selection.order)
    shown = picture(
        _state.trajectories(),
        _state.names,
        _state.mode,
        _state.view,
        _state.shared,
        order,
        _corner,
        gold_labels(_state.runs[0]) if selection.gold else None,
        run_gradients(resources.store(), _state.runs[0]) if selection.gradients else None,
    )
    if selection.mode == EMBEDDING:
        shown = replace(shown, panels=tuple(map(_of_cosines, shown.panels)))
    shades = resources.task_colours()
    frame = player_frame(shown, _state.steps, shades, blocks=selection.order == "task")
    return PlayerData(frame | {"id": identity}, player_numbers(shown, PLAYER, identity), order)


def _of_cosines(panel: Panel) -> Panel:
    """A panel of cosines: the vectors' lengths are not among what is stored, so it has no variances."""
    scale = "cosine" if panel.scale == "correlation" else panel.scale
    return replace(panel, scale=scale, variances=np.empty((0, 0)))
