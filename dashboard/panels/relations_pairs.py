"""The strongest pairs of the view shown, and the line over training of the one chosen."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.mrn.relations import Relations
from dashboard.charts import pair_chart
from dashboard.components import chart
from dashboard.panels.relations_scene import Scene
from dashboard.queries.relations import learns
from dashboard.queries.relations_gold import gold_labels
from dashboard.queries.relations_pairs import BEYOND, PairTable, pair_lines, strongest
from dashboard.text import escape, unsigned_zero

__all__ = ["line_panel", "pairs_panel"]

_AMONG = {"all": "All", "within": "Within a task", "between": "Between tasks"}
_WHAT = {
    "one": "Strongest pairs",
    "side": "Strongest pairs in any of the runs",
    "difference": "Pairs that differ most",
    "mean": "Strongest pairs on average",
}

_SHORT = {"Correlation": "r"}
_HELP = {
    "Correlation": "The correlation at this step.",
    BEYOND: "Learned less gold: what was learned beyond counting.",
}

Pair = tuple[str, str]


def pairs_panel(scene: Scene, learned: Sequence[Relations], chosen: Pair | None) -> Pair | None:
    """The table; returns the pair whose line is wanted, the first one where none is chosen."""
    mode = scene.asked.mode
    gold = gold_labels(scene.runs[0]) if scene.asked.gold else None
    st.markdown(f"**{_WHAT[scene.view]}** at this step")
    among, beyond = _filters(mode, gold is not None)
    table = strongest(
        scene.runs, learned, mode, scene.view, scene.shared, among=among, gold=gold, beyond=beyond
    )
    if not table.rows:
        learnable = all(learns(run, mode) for run in scene.runs) and not _all_impossible(scene)
        st.caption("No pair is related at this step." if learnable else "No pair can be related here.")
        return chosen
    pairs = [(row.first, row.second) for row in table.rows]
    key = f"relations_pairs_{mode}_{scene.view}"

    def selected() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows and rows[0] < len(pairs):
            st.query_params["pair"] = list(pairs[rows[0]])

    st.dataframe(
        _frame(table),
        key=key,
        hide_index=True,
        height="content",
        column_config={
            title: st.column_config.NumberColumn(
                _SHORT.get(title, title), format="%.3f", width=66, help=_HELP.get(title)
            )
            for title in table.columns
        },
        on_select=selected,
        selection_mode="single-row",
        alt="Strongest pairs, by the size of their correlation",
    )
    st.caption("Select a pair, or click a cell of the matrix, to see its line over training.")
    return chosen or pairs[0]


def _filters(mode: str, gold: bool) -> tuple[str, bool]:
    """Which pairs of labels, and whether they are ranked by what was learned beyond counting."""
    if mode != "label":
        return "all", False
    with st.container(horizontal=True, vertical_alignment="center"):
        among = st.segmented_control(
            "Pairs",
            list(_AMONG),
            default="all",
            required=True,
            key="pairs",
            bind="query-params",
            format_func=_AMONG.__getitem__,
            label_visibility="collapsed",
        )
        beyond = gold and st.toggle(
            "Rank beyond counting",
            key="beyond",
            bind="query-params",
            help="By the learned correlation less the one of the gold labels.",
        )
    return among, beyond


def _all_impossible(scene: Scene) -> bool:
    return scene.asked.mode == "task" and any("task" in run.facts.get("impossible", ()) for run in scene.runs)


def _frame(table: PairTable) -> pd.DataFrame:
    return pd.DataFrame(
        {"First": row.first, "Second": row.second}
        | {
            title: value if value is None else unsigned_zero(value, 3)
            for title, value in zip(table.columns, row.values, strict=True)
        }
        for row in table.rows
    )


def line_panel(scene: Scene, pair: Pair | None) -> None:
    """The pair's correlation over training, a line per run."""
    if pair is None:
        return
    first, second = pair
    place = {name: at for at, name in enumerate(scene.shared.rows.names)}
    courses = scene.courses(scene.moments)
    lines = pair_lines(courses, scene.asked.mode, scene.shared.places, place[first], place[second])
    st.markdown(f"**{escape(first)}** and **{escape(second)}** over training")
    chart(
        pair_chart(lines, scene.at, by_share=not scene.moments.exact, mean=scene.view == "mean"),
        key="pair_line",
        revision=f"{scene.runs[0].id} {first} {second}",
        still=True,
        alt=f"Correlation of {first} and {second} at each step",
    )
