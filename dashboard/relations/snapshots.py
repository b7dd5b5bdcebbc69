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
from core.store.types import Run, RunState, RunWithFacts, SnapshotKey
from dashboard.relations import views
from dashboard.relations.charts import player_frame, player_numbers
from dashboard.relations.controls import EMBEDDING, PLAYER, Selection
from dashboard.relations.matrices import Corner, arrangement, picture
from dashboard.relations.views import (
    AlignedSteps,
    Bools,
    Floats,
    Group,
    Places,
    SharedRows,
    Trajectory,
    aligned,
    by_group,
    gold_labels,
    not_comparable,
    rows_of,
    shared_rows,
    training_shares,
)
from dashboard.shared import resources
from jobs.reports.transfer import run_embeddings, run_gradients

Embeddings = Mapping[int, Mapping[SnapshotKey, Relations]]
"""The cosines of task embeddings by run and step, as relations of tasks."""


@dataclass(frozen=True)
class RelationsState:
    """The configurations with a matrix, each with its runs that have snapshots, their aligned steps, the rows
    that all share.

    `embeddings` are empty where the mode shows what MRN learned.
    """

    selection: Selection
    groups: tuple[Group, ...]
    steps: AlignedSteps
    shared: SharedRows
    embeddings: Embeddings = field(default_factory=dict)

    @property
    def runs(self) -> tuple[RunWithFacts, ...]:
        """The runs of all matrices."""
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def short_titles(self) -> list[str]:
        """The titles of the matrices without the paradigm, where all have the same."""
        starts = {group.title.partition(" ")[::2] for group in self.groups}
        shared = len({start for start, _ in starts}) == 1 and all(rest for _, rest in starts)
        return [group.title.partition(" ")[2] if shared else group.title for group in self.groups]

    @property
    def is_single(self) -> bool:
        """Whether there is one matrix."""
        return len(self.groups) == 1

    @property
    def is_learned(self) -> bool:
        """Whether the matrices were learned by the prior of MRN, and are not cosines of task embeddings."""
        return self.selection.mode != EMBEDDING

    @property
    def mode(self) -> str:
        """The kind of the matrices' rows: task, label or feature."""
        return self.selection.rows

    @property
    def at(self) -> int:
        """The position shown: the URL's step, else the newest."""
        return self.steps.at(whole_number(st.query_params.get("step", "")))

    def by_group(self, of_runs: Floats) -> list[Floats]:
        """What there is of each run, by matrix."""
        return by_group(self.groups, of_runs)

    def means(self, of_runs: Floats) -> Floats:
        """(matrices, ...): the mean of what there is of each run, by matrix."""
        return np.stack([of.mean(axis=0) for of in self.by_group(of_runs)])

    @property
    def identity(self) -> str:
        """What tells the matrices and their steps from others."""
        return repr((self.selection, [(run.id, run.attempt) for run in self.runs], self.steps.keys))

    def positions(self) -> list[Floats]:
        """(k,) for each run: the steps of its snapshots, or their percent of training where steps differ."""
        of_runs = zip(self.runs, self.steps.keys, strict=True)
        if self.steps.exact:
            return [np.array([key.step for key in keys], dtype=float) for _, keys in of_runs]
        return [np.round(100 * training_shares(run, keys), 1) for run, keys in of_runs]

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


@dataclass(frozen=True)
class Snapshots:
    """What can be shown of a selection: the state, None without any snapshot.

    `waiting` are the runs without a snapshot, `unfinished` those left out beside runs that succeeded;
    `alone` says why one matrix is shown alone, if it is.
    """

    state: RelationsState | None
    waiting: tuple[RunWithFacts, ...]
    unfinished: tuple[RunWithFacts, ...]
    alone: str = ""


def read_snapshots(selection: Selection) -> Snapshots:
    """The snapshots of the runs of the matrices, as they are now."""
    store = resources.store()
    chosen = [selection.configurations[place] for place in selection.shown]
    by_id = {run.id: run for run in store.runs_with_facts([id for each in chosen for id in each.run_ids])}
    runs = list(by_id.values())
    embeddings: Embeddings = {}
    if selection.mode == EMBEDDING:
        embeddings = {run.id: _embeddings(run) for run in runs}
        # What the facts tell of the prior's alignment does not hold of them.
        by_id = {run.id: replace(run, facts=run.facts and run.facts.without_alignment()) for run in runs}
        snapshots = {run_id: list(of_run) for run_id, of_run in embeddings.items()}
    else:
        snapshots = {run.id: store.snapshots(run.id) for run in runs}
    waiting = tuple(run for run in by_id.values() if not snapshots[run.id])
    begun = [run for run in by_id.values() if snapshots[run.id]]
    # One that has just begun would take all others back to its first step.
    shown = {run.id for run in begun if run.state is RunState.SUCCEEDED} or {run.id for run in begun}
    unfinished = tuple(run for run in begun if run.id not in shown)
    groups = [Group(each.title, tuple(by_id[id] for id in each.run_ids if id in shown)) for each in chosen]
    groups = [group for group in groups if group.runs]
    if not groups:
        return Snapshots(None, waiting, unfinished)
    alone = ""
    state = _state(selection, groups, snapshots, embeddings)
    for fewer in (groups[:1], [replace(groups[0], runs=groups[0].runs[:1])]):
        if len(state.runs) > 1 and (reason := not_comparable(state.runs, state.mode, state.shared)):
            state = _state(selection, fewer, snapshots, embeddings)
            alone = f"{reason} {state.groups[0].name} is shown alone."
    return Snapshots(state, waiting, unfinished, alone)


def _embeddings(run: RunWithFacts) -> dict[SnapshotKey, Relations]:
    """The cosines of a run's task embeddings, as correlation matrices of tasks."""
    none = np.zeros((0, 0))
    cosines = run_embeddings(resources.store(), run)
    return {key: Relations(matrix, none, none, 0.0) for key, matrix in cosines.items()}


def _state(
    selection: Selection,
    groups: Sequence[Group],
    snapshots: Mapping[int, Sequence[SnapshotKey]],
    embeddings: Embeddings,
) -> RelationsState:
    runs = [run for group in groups for run in group.runs]
    steps = aligned(runs, snapshots)
    rows = [
        rows_of(run, selection.rows, _learned(run, keys[-1], embeddings))
        for run, keys in zip(runs, steps.keys, strict=True)
    ]
    return RelationsState(selection, tuple(groups), steps, shared_rows(rows), embeddings)


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


def player_data(state: RelationsState, verdicts: Sequence[RelationVerdicts | None] = ()) -> PlayerData:
    """The picture at all steps, with the verdicts on each matrix."""
    depends_on = (
        state.identity,
        corner(),
        _decisions(verdicts),
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
    _verdicts: Sequence[RelationVerdicts | None],
) -> PlayerData:
    """Builds the player's data once for all sessions, keyed by `identity`; at most a few MB each."""
    selection = _state.selection
    last = _state.learned(len(_state.steps.steps) - 1)
    order = arrangement(_state.mode, _state.shared, last, selection.order)
    shown = picture(
        _state.trajectories(),
        _state.groups,
        _state.mode,
        _state.shared,
        order,
        _corner,
        gold_labels(_state.runs[0]) if selection.gold else None,
        _gradients(_state.runs) if selection.gradients else None,
        verdicts=_verdicts,
        is_learned=_state.is_learned,
    )
    shades = resources.task_colours()
    frame = player_frame(shown, _state.steps, shades, blocks=selection.order == "task")
    return PlayerData(frame | {"id": identity}, player_numbers(shown, PLAYER, identity), order)


def pair_values(state: RelationsState, first: int, second: int) -> Floats:
    """(runs, k): the correlation of two of the shared rows at each step of each run."""
    return _pair_values(database_url(), state.identity, state, first, second)


@st.cache_data(max_entries=1000, show_spinner=False)
def _pair_values(url: str, identity: str, _state: RelationsState, first: int, second: int) -> Floats:
    """Read once for all sessions, keyed by `identity`: a matrix of each run at each step."""
    return views.pair_values(_state.trajectories(), _state.mode, _state.shared.places, first, second)


def strongest(
    state: RelationsState,
    verdicts: Sequence[RelationVerdicts | None],
    means: Sequence[Floats],
    among: str,
    possible: Bools,
    beyond: Floats | None,
) -> list[tuple[int, int]]:
    """`views.strongest` of the matrices at the step shown, among the pairs that are `possible`."""
    identity = repr((state.identity, state.at, _decisions(verdicts), among, beyond is None))
    return _strongest(database_url(), identity, means, possible, verdicts, beyond)


@st.cache_data(max_entries=1000, show_spinner=False)
def _strongest(
    url: str,
    identity: str,
    _means: Sequence[Floats],
    _possible: Bools,
    _verdicts: Sequence[RelationVerdicts | None],
    _beyond: Floats | None,
) -> list[tuple[int, int]]:
    """Sorted once for all sessions, keyed by `identity`: features have 300,000 pairs."""
    return views.strongest(_means, _possible, _verdicts, beyond=_beyond)


def _decisions(verdicts: Sequence[RelationVerdicts | None]) -> list[object]:
    """What tells verdicts apart, which depend on controls too."""
    return [of and (of.verdict.tobytes(), of.controlled.tobytes()) for of in verdicts]


def _gradients(runs: Sequence[RunWithFacts]) -> Floats:
    """The cosines of the tasks' gradients, their mean over the runs that measured them."""
    measured = [run_gradients(resources.store(), run) for run in runs if run.config.affinity_every]
    return np.asarray(np.mean(measured, axis=0))
