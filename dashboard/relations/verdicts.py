"""Verdicts on the relations of seeds, their controls, and the button that launches these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation.relation_verdicts import OPPOSED, RELATED, CellVerdict, RelationVerdicts
from core.paths import database_url
from core.results.relations import (
    VERDICT_MODES,
    RelationTable,
    basis_of,
    control_configs,
    control_of,
    relation_table,
)
from core.store.types import ACTIVE, Run, RunState
from core.wording import about_time, all_of, plural
from dashboard.relations.controls import Selection
from dashboard.relations.snapshots import RelationsState
from dashboard.shared import actions, resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import choose, chosen, link_to_runs
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.queue.estimates import costs
from jobs.queue.submit import same_runs

_PROBLEM = "controls_problem"


@dataclass(frozen=True)
class Decided:
    """The relations with verdicts of all chosen configurations that have some, and of each matrix.

    Those of the matrices are on the rows that all of them share; None of one without verdicts.
    """

    tables: tuple[RelationTable, ...]
    of_matrices: tuple[RelationVerdicts | None, ...]
    why_none: str = ""

    def shown(self, state: RelationsState) -> tuple[RelationTable, ...]:
        """The tables that the page's answer is about: of one matrix its own, of several all."""
        titles = {group.title for group in state.groups}
        return tuple(table for table in self.tables if not state.is_single or table.name in titles)

    def single_pair(self, state: RelationsState) -> CellVerdict | None:
        """The verdict on the only pair tested, where one matrix is shown and it is related or opposed."""
        of = self.of_matrices[0] if state.is_single else None
        cells = [] if of is None else [*islice(of.cells(), 2)]
        return cells[0] if len(cells) == 1 and cells[0].verdict in (RELATED, OPPOSED) else None


def decided(state: RelationsState) -> Decided:
    """The verdicts over the seeds of each configuration, at the last step."""
    selection, none = state.selection, (None,) * len(state.groups)
    if not state.is_learned or state.mode not in VERDICT_MODES:
        return Decided((), none)
    if selection.seed is not None:
        return Decided((), none, f"Nothing is decided by seed {selection.seed} alone.")
    if any(run.state is not RunState.SUCCEEDED for run in state.runs):
        live = any(run.state in ACTIVE for run in state.runs)
        return Decided(
            (),
            none,
            f"Nothing is decided {'while these seeds train' if live else 'by runs that ended early'}.",
        )
    if max(len(group.runs) for group in state.groups) < 2 and len(selection.configurations) == 1:
        return Decided((), none, "Nothing is decided: there is one seed.")
    by_title = _tables(selection, state.mode)
    if by_title and max((table.verdicts.seeds for table in by_title.values()), default=0) < 2:
        return Decided((), none, "Nothing is decided: each configuration has one seed.")
    return Decided(
        tuple(by_title.values()),
        tuple(
            _on_rows(by_title[group.title], state.shared.rows.names) if group.title in by_title else None
            for group in state.groups
        ),
    )


def _on_rows(table: RelationTable, names: Sequence[str]) -> RelationVerdicts:
    places = {name: place for place, name in enumerate(table.rows.names)}
    return table.verdicts.at(np.array([places[name] for name in names], dtype=np.int64))


def _tables(selection: Selection, mode: str) -> dict[str, RelationTable]:
    """The relations of each configuration chosen, by its title; without those that have none of this mode."""
    store = resources.store()
    runs = {run.id: run for run in store.runs(selection.run_ids, {RunState.SUCCEEDED})}
    groups = {
        each.title: [runs[run_id] for run_id in each.run_ids if run_id in runs]
        for each in selection.configurations
    }
    groups = {title: of for title, of in groups.items() if of and mode in of[0].config.learned}
    controls = {
        title: _control_ids(group[0].configuration_id, group[0].config.tasks, group[0])
        for title, group in groups.items()
    }
    every = [each for of in controls.values() for each in of]
    finished = store.runs_of(every, {RunState.SUCCEEDED}) if every else []
    tables = {}
    for title, group in groups.items():
        key = (
            mode,
            [(run.id, run.attempt) for run in group],
            [run.id for run in finished if run.configuration_id in controls[title]],
        )
        if (table := _table(database_url(), repr(key), title, mode, [run.id for run in group])) is not None:
            tables[title] = table
    return tables


@st.cache_data(max_entries=2000, show_spinner=False)
def _control_ids(configuration: str, tasks: tuple[str, ...], _run: Run) -> frozenset[str]:
    """The configurations of the controls of a run's configuration, which take a while to build."""
    if _run.config.permuted is not None:
        return frozenset()
    return frozenset(control_of(_run.config, task).configuration_id for task in tasks)


@st.cache_resource(max_entries=240, show_spinner=False)
def _table(url: str, identity: str, title: str, mode: str, _runs: list[int]) -> RelationTable | None:
    """Computed once for all sessions, keyed by `identity`: of each seed and control one snapshot is read."""
    table = relation_table(resources.store(), title, resources.store().runs_with_facts(_runs), mode)
    return table if table is not None and np.isfinite(table.verdicts.mean).all() else None


def draw_basis(state: RelationsState, answer: Decided) -> None:
    """Draws what the verdicts rest on, if there are any, beside the button for controls."""
    if why := st.session_state.pop(_PROBLEM, ""):
        problem(why)
    if not (tables := answer.shown(state)):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="relations_basis"):
        basis = basis_of(tables)
        of = "" if state.at == len(state.steps.steps) - 1 else " of the last step"
        st.caption(f"**Verdicts**{of}: {escape(basis[0].lower() + basis[1:])}", width="content")
        if state.is_single:
            _launcher(state, tables[0])
    if state.is_single:
        _on_their_way(state)


def _launcher(state: RelationsState, table: RelationTable) -> None:
    tasks = state.runs[0].config.tasks
    if state.runs[0].config.added_to is not None:
        return
    lacking = [task for task in tasks if table.controls.get(task, 0) < len(state.runs)]
    if not lacking or (table.verdicts.controlled == table.verdicts.tested).all():
        return
    with st.popover(
        "Launch controls with shuffled labels", icon=":material/science:", key="controls", type="tertiary"
    ):
        st.markdown(
            "The same runs with the training labels of one task shuffled, so that they say nothing of the "
            "words. They show which correlation is learned where there is no relation; a verdict must then "
            "differ from it too."
        )
        # Every pair has a task that is not the first.
        asked = st.multiselect(
            "Tasks to shuffle",
            lacking,
            default=[task for task in lacking if task != tasks[0]] or lacking,
            key="controls_tasks",
        )
        configs = control_configs(state.runs, asked)
        present = same_runs(resources.store(), configs) if configs else {}
        new = [config for config in configs if config not in present]
        (cost,) = costs(resources.store(), [new])
        st.button(
            "Launch controls",
            type="primary",
            icon=":material/play_arrow:",
            key="launch_controls",
            disabled=not new,
            on_click=_launch,
            args=(new, asked),
        )
        about = about_time(cost.seconds) if new and cost.seconds else ""
        st.caption(", ".join(filter(None, (plural(len(new), "run"), about))))


def _launch(configs: Sequence[RunConfig], tasks: Sequence[str]) -> None:
    """Queues these controls, and keeps the choice of runs: the page goes on showing what they control."""
    before = chosen()
    try:
        runs, _ = actions.launch(configs, f"Controls: {all_of(list(tasks))} permuted", reuse=True)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    choose(before)
    actions.toast(f"{plural(len(runs), 'control')} queued.")


def _on_their_way(state: RelationsState) -> None:
    """A line on the controls that wait or train; the page follows as soon as one of them has ended."""
    wanted = set(control_configs(state.runs, state.runs[0].config.tasks))
    active = [run.id for run in resources.store().runs(states=ACTIVE) if run.config in wanted]
    if not active:
        return
    st.markdown(f":material/schedule: {plural(len(active), 'control')} queued or in progress.")
    link_to_runs(active, "See them on Runs")
    rerun_when(
        lambda: any(run.state not in ACTIVE for run in resources.store().runs(active)),
        key="controls_on_their_way",
    )
