"""The parts of the Relations page: the run, the step, the words around the matrix, the pairs beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.mrn.groups import task_groups
from core.mrn.relations import MODES
from core.store import Store
from core.store.records import MetricKey, Run, SnapshotKey
from core.training.events import TOTAL
from dashboard import resources
from dashboard.charts import pair_chart
from dashboard.components import Click, chart
from dashboard.queries.naming import field_text, run_name
from dashboard.queries.relations import RelationsView, pair_line, penalty_vanished
from dashboard.selection import chosen, focus
from dashboard.text import escape, number

__all__ = [
    "alignment_words",
    "pairs_panel",
    "pick_run",
    "player",
    "playing",
    "setting_line",
    "vanished_words",
]

_PENALTY = MetricKey(TOTAL, "train", "penalty")
_PLAYING = "relations_playing"
_STEP = "step"


def pick_run(store: Store) -> Run | None:
    """The MRN run to look at: the first chosen one, else the newest that has begun. None where there is
    none.
    """
    runs = [run for run in store.runs(limit=1000) if run.config.paradigm == "mrn"]
    if not runs:
        return None
    by_id = {run.id: run for run in runs}
    begun = [run.id for run in runs if run.step] or list(by_id)
    wanted = next((run_id for run_id in chosen() if run_id in by_id), begun[0])
    if st.session_state.get("relations_run") != wanted:
        st.session_state["relations_run"] = wanted
    picked = st.selectbox(
        "MRN run",
        list(by_id),
        format_func=lambda run_id: (
            f"{run_name(by_id[run_id])} · {field_text('alignment', by_id[run_id].config.alignment)}"
        ),
        key="relations_run",
        on_change=lambda: focus(st.session_state["relations_run"]),
    )
    return store.run(picked)


def playing() -> bool:
    """Whether the steps are being played."""
    return bool(st.session_state.get(_PLAYING))


def player(keys: Sequence[SnapshotKey]) -> SnapshotKey:
    """The step slider with its play button. While the newest step is shown, newer ones are followed."""
    steps = [key.step for key in keys]
    newest_before = st.session_state.get("relations_newest")
    at = st.session_state.get(_STEP)
    if at == newest_before or at not in steps:
        at = steps[-1] if at not in steps or not playing() else at
    if playing():
        at = steps[min(steps.index(at) + 1, len(steps) - 1)]
        st.session_state[_PLAYING] = at != steps[-1]
    st.session_state["relations_newest"] = steps[-1]
    if len(steps) == 1:
        st.caption(f"Step {steps[0]:,}, the first snapshot. More come as training goes on.")
        return keys[0]
    if st.session_state.get(_STEP) != at:
        st.session_state[_STEP] = at
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Pause" if playing() else "Play",
            icon=":material/pause:" if playing() else ":material/play_arrow:",
            key="relations_play",
            on_click=_toggle_play,
            args=(steps,),
        )
        step = st.select_slider("Training step", steps, key=_STEP, format_func=lambda value: f"{value:,}")
    return keys[steps.index(step)]


def _toggle_play(steps: Sequence[int]) -> None:
    st.session_state[_PLAYING] = not playing()
    if playing() and st.session_state.get(_STEP) == steps[-1]:
        st.session_state[_STEP] = steps[0]


def alignment_words(run: Run, view: RelationsView) -> None:
    """What the alignment used is, why, and what it makes impossible."""
    name, reason = run.facts.get("alignment"), run.facts.get("alignment_reason")
    if name:
        st.caption(f"Alignment **{escape(name)}**" + (f": {escape(reason.rstrip('.'))}." if reason else ""))
    if view.impossible:
        what = "tasks" if view.mode == "task" else "labels of different tasks"
        groups = task_groups(run.facts)
        if all(len(group) == 1 for group in groups):
            which, between = "different tasks", f"between {what}"
        else:
            told = "; ".join(", ".join(map(escape, group)) for group in groups)
            which, between = f"these groups of tasks ({told})", f"of {what} between groups"
        better = "a mapping of your own" if name == "cooccurrence" else "the alignment cooccurrence"
        st.info(
            f"Hatched: with this alignment the rows of {which} never meet, so the relations {between} "
            f"stay at zero whatever the data say. Launch the run with {better} to learn them.",
            icon=":material/info:",
        )
    if view.mode not in (run.config.learn or MODES):
        st.info(
            f"The {view.mode} covariance was not learned in this run: it stays as it began, all relations 0.",
            icon=":material/info:",
        )
    elif view.mode == "feature":
        block = f" Each cell is the mean of {view.block} × {view.block} features." if view.block > 1 else ""
        st.caption(f"{len(view.all_names)} features, in the encoder's order.{block}")


def pairs_panel(run: Run, view: RelationsView, keys: Sequence[SnapshotKey], clicked: Click | None) -> None:
    """The strongest pairs at this step, and the line over training of the one chosen here or
    in the matrix.
    """
    state = f"relations_pair_{view.mode}"
    st.session_state["relations_pairs"] = [(pair.first, pair.second) for pair in view.pairs]
    if clicked is not None:
        cell = _cell(view, clicked)
        if cell is not None and cell[0] != cell[1]:
            st.session_state[state] = cell
    if not view.pairs:
        possible = view.mode in (run.config.learn or MODES) and not view.impossible
        st.caption("No pair is related at this step." if possible else "No pair can be related here.")
        return
    first, second = st.session_state.get(state) or (view.pairs[0].first, view.pairs[0].second)
    line = pair_line(
        view.all_names, view.mode, first, second, [(key, resources.learned(run, key)) for key in keys]
    )
    st.markdown(f"**{escape(line.first_name)}** and **{escape(line.second_name)}** over training")
    chart(
        pair_chart(line, view.key.step),
        key="pair_line",
        revision=f"{run.id} {first} {second}",
        still=True,
        alt=f"Correlation of {line.first_name} and {line.second_name} at each step",
    )
    st.markdown("**Strongest pairs** at this step")
    st.dataframe(
        pd.DataFrame(
            {"First": pair.first_name, "Second": pair.second_name, "Correlation": pair.value}
            for pair in view.pairs
        ),
        key=f"relations_table_{view.mode}",
        hide_index=True,
        height="content",
        column_config={"Correlation": st.column_config.NumberColumn(format="%.3f", width=96)},
        on_select=lambda: _pair_selected(state, f"relations_table_{view.mode}"),
        selection_mode="single-row",
        alt="Strongest pairs, by the size of their correlation",
    )
    st.caption("Select a pair, or click a cell of the matrix, to see its line.")


def _pair_selected(state: str, table: str) -> None:
    rows = st.session_state[table]["selection"]["rows"]
    pairs = st.session_state["relations_pairs"]
    if rows and rows[0] < len(pairs):
        st.session_state[state] = pairs[rows[0]]


def _cell(view: RelationsView, clicked: Click) -> tuple[int, int] | None:
    """The rows that the clicked cell belongs to; of a block, its first features."""
    row, column, size = round(clicked.y), round(clicked.x), len(view.matrix)
    return (view.rows[row], view.rows[column]) if 0 <= row < size and 0 <= column < size else None


def setting_line(run: Run) -> None:
    """The prior, its strength, and what it learns."""
    config = run.config
    st.caption(
        f"Prior {escape(config.prior)}, λ {number(config.lambda_)}, learned: {', '.join(config.learn or ())}."
    )


def vanished_words(run: Run) -> None:
    """Whether the penalty has vanished, and what that makes of the relations shown."""
    series = resources.curve_series([run], [_PENALTY])
    vanished = penalty_vanished(series[0] if series else None)
    if vanished is not None:
        st.warning(
            f"The penalty has vanished: it was {_rough(vanished[0])} at most and is {_rough(vanished[1])} "
            "now, so this run trains as MTL, and the relations shown are what the procedure left behind. "
            "The relational prior cannot vanish in this way.",
            icon=":material/warning:",
        )


def _rough(value: float) -> str:
    return number(float(f"{value:.2g}"))
