"""The snapshots that Relations shows: the runs, their aligned steps, and the data of the player."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from core.config.typed import whole_number
from core.evaluation.relation_verdicts import RelationVerdicts
from core.mrn.relations import Relations
from core.paths import database_url
from core.results.naming import run_names
from core.store.types import Run, RunWithFacts, SnapshotKey
from dashboard.relations.charts import player_frame, player_numbers
from dashboard.relations.controls import EMBEDDING, PLAYER, Selection
from dashboard.relations.matrices import Corner, arrangement, picture
from dashboard.relations.views import (
    AlignedSteps,
    Places,
    SharedRows,
    Trajectory,
    aligned,
    gold_labels,
    not_comparable,
    rows_of,
    shared_rows,
)
from dashboard.shared import resources
from jobs.reports.transfer import run_embeddings, run_gradients

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
    runs: tuple[RunWithFacts, ...]
    steps: AlignedSteps
    shared: SharedRows
    embeddings: Embeddings = field(default_factory=dict)

    @property
    def is_learned(self) -> bool:
        """Whether the matrices were learned by the prior of MRN, and are not cosines of task embeddings."""
        return self.selection.mode != EMBEDDING

    @property
    def mode(self) -> str:
        """The kind of the matrices' rows: task, label or feature."""
        return self.selection.rows

    @property
    def names(self) -> list[str]:
        """The titles of the runs' matrices."""
        if self.is_learned:
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
        """The relations of each run at a position."""
        keys = zip(self.runs, self.steps.keys, strict=True)
        return [_learned(run, of_run[position], self.embeddings) for run, of_run in keys]


def read_state(selection: Selection) -> tuple[RelationsState | None, list[RunWithFacts], str | None]:
    """The state (None without any snapshot), the runs without one, and why runs cannot be compared, if so."""
    store = resources.store()
    by_id = {run.id: run for run in store.runs_with_facts(selection.run_ids)}
    runs = [by_id[run_id] for run_id in selection.run_ids if run_id in by_id]
    embeddings: Embeddings = {}
    if selection.mode == EMBEDDING:
        embeddings = {run.id: _embeddings(run) for run in runs}
        # What the facts tell of the prior's alignment does not hold of them.
        runs = [replace(run, facts=run.facts and run.facts.without_alignment()) for run in runs]
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


def _embeddings(run: RunWithFacts) -> dict[SnapshotKey, Relations]:
    """The cosines of a run's task embeddings, as correlation matrices of tasks."""
    none = np.zeros((0, 0))
    cosines = run_embeddings(resources.store(), run)
    return {key: Relations(matrix, none, none, 0.0) for key, matrix in cosines.items()}


def _state(
    selection: Selection,
    runs: tuple[RunWithFacts, ...],
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
    """The player's data, and the order in which the shared rows are drawn."""

    frame: dict[str, Any]
    numbers: bytes
    order: Places


def player_data(
    state: RelationsState, verdicts: RelationVerdicts | None = None, depends: Sequence[int] = ()
) -> PlayerData:
    """The picture at all steps, with verdicts, which depend on other runs too."""
    depends_on = (
        state.selection,
        state.view,
        corner(),
        [run.attempt for run in state.runs],
        state.steps.keys,
        verdicts is None or tuple(depends),
    )
    identity = hashlib.sha256(repr(depends_on).encode()).hexdigest()[:16]
    with st.spinner("Reading the matrices"):
        return _player_data(database_url(), identity, state, corner(), verdicts)


@st.cache_resource(max_entries=24, show_spinner=False)
def _player_data(
    url: str,
    identity: str,
    _state: RelationsState,
    _corner: Corner | None,
    _verdicts: RelationVerdicts | None,
) -> PlayerData:
    """Builds the player's data once for all sessions, keyed by `identity`; at most a few MB each."""
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
        verdicts=_verdicts,
        is_learned=_state.is_learned,
    )
    shades = resources.task_colours()
    frame = player_frame(shown, _state.steps, shades, blocks=selection.order == "task")
    return PlayerData(frame | {"id": identity}, player_numbers(shown, PLAYER, identity), order)
