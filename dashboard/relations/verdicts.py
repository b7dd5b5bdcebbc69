"""Verdicts on the relations of seeds, their controls, and the button that launches these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation.relation_verdicts import RelationVerdicts, relation_verdicts
from core.mrn.relations import Relations
from core.paths import database_url
from core.results.relations import MODES as VERDICT_MODES
from core.results.relations import (
    Rows,
    basis,
    control_configs,
    control_values,
    controls_of,
    tested_cells,
)
from core.store.types import ACTIVE, Run, RunWithFacts
from core.wording import about_time, all_of, plural
from dashboard.relations.snapshots import RelationsState
from dashboard.relations.views import shared_matrices
from dashboard.shared import actions, resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import choose, chosen, link_to_runs
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.queue.estimates import costs
from jobs.queue.submit import same_runs

_PROBLEM = "controls_problem"

Controls = Mapping[str, Mapping[int, Run]]
"""The finished controls of a configuration by permuted task and seed."""


@dataclass(frozen=True)
class Decided:
    """The verdicts on the cells of a mean over seeds at the last step, and the controls they rest on."""

    verdicts: RelationVerdicts
    controls: Controls

    @property
    def basis(self) -> str:
        """What the verdicts rest on, in a sentence."""
        return basis(self.verdicts, {task: len(by_seed) for task, by_seed in self.controls.items()})

    @property
    def depends_on(self) -> tuple[int, ...]:
        """The runs of the controls."""
        return tuple(run.id for by_seed in self.controls.values() for run in by_seed.values())


def decided(state: RelationsState) -> Decided | None:
    """The verdicts of a mean over seeds of tasks or labels; None of what has none."""
    if state.view != "mean" or not state.is_learned or state.mode not in VERDICT_MODES:
        return None
    seeds = {run.config.seed for run in state.runs}
    controls = {
        task: of_seeds
        for task, by_seed in controls_of(resources.store(), state.runs).items()
        if (of_seeds := {seed: run for seed, run in by_seed.items() if seed in seeds})
    }
    key = (
        state.mode,
        [(run.id, run.attempt) for run in state.runs],
        [keys[-1].step for keys in state.steps.keys],
        [run.id for by_seed in controls.values() for run in by_seed.values()],
    )
    return _decided(database_url(), repr(key), state, controls)


@st.cache_resource(max_entries=24, show_spinner=False)
def _decided(url: str, identity: str, _state: RelationsState, _controls: Controls) -> Decided | None:
    """Computed once for all sessions, keyed by `identity`: of each control one snapshot is read."""
    store, shared = resources.store(), _state.shared
    values = shared_matrices(_state.learned(len(_state.steps.steps) - 1), _state.mode, shared)
    if not np.isfinite(values).all():
        return None
    rows = Rows(shared.rows.names, shared.rows.owners, np.stack(shared.places))
    ids = [run.id for by_seed in _controls.values() for run in by_seed.values()]
    facts = {run.id: run for run in store.runs_with_facts(ids)} if ids else {}
    read: dict[str, dict[int, tuple[RunWithFacts, Relations]]] = {}
    for task, by_seed in _controls.items():
        for seed, run in by_seed.items():
            if keys := store.snapshots(run.id):
                read.setdefault(task, {})[seed] = facts[run.id], resources.learned(run, keys[-1].step)
    control = control_values(read, [run.config.seed for run in _state.runs], _state.mode, rows)
    tested = tested_cells(_state.runs, _state.mode, rows)
    return Decided(
        relation_verdicts(values, tested, control),
        {task: {seed: _controls[task][seed] for seed in by_seed} for task, by_seed in read.items()},
    )


def draw_basis(state: RelationsState, answer: Decided) -> None:
    """Draws what the verdicts rest on, beside the button for controls."""
    if why := st.session_state.pop(_PROBLEM, ""):
        problem(why)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="relations_basis"):
        is_last = state.at == len(state.steps.steps) - 1
        text = answer.basis if is_last else f"Verdicts are of the last step. {answer.basis}"
        st.caption(escape(text), width="content")
        _launcher(state, answer)
    _on_their_way(state)


def _launcher(state: RelationsState, answer: Decided) -> None:
    tasks = state.runs[0].config.tasks
    if state.runs[0].config.added_to is not None:
        return
    lacking = [task for task in tasks if len(answer.controls.get(task, {})) < len(state.runs)]
    if not lacking or (answer.verdicts.controlled == answer.verdicts.tested).all():
        return
    with st.popover("Launch controls", icon=":material/science:", key="controls"):
        st.markdown(
            "The same runs with the training labels of one task permuted, so that they say nothing of the "
            "words: what is learned where there is no relation."
        )
        # Every pair has a task that is not the first.
        asked = st.multiselect(
            "Tasks to permute",
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
