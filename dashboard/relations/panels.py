"""The part of the Relations page that lives: the player, and with it the pairs, their line, the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.config.sweep import whole_number
from core.mrn.relations import Relations
from core.store.records import ACTIVE, Run, SnapshotKey
from core.wording import plural, unsigned_zero
from dashboard.components.charts import chart
from dashboard.components.matrix import matrix_player
from dashboard.relations.charts import pair_chart, planted_chart
from dashboard.relations.controls import MODES, Asked
from dashboard.relations.matrices import Ready
from dashboard.relations.notes import gold_words, player_words, run_words, size_words
from dashboard.relations.pair_views import (
    BEYOND,
    PairTable,
    half_interval,
    in_numbers,
    number_keys,
    pair_lines,
    planted,
    strongest,
)
from dashboard.relations.scene import PLAYER, WHOLE, Scene, ready, scene_of, window
from dashboard.relations.views import RelationsView, gold_labels, learns, relations
from dashboard.shared import resources
from dashboard.shared.curve_cache import curve_series
from dashboard.text import escape
from dashboard.theme import colours

# The strongest pairs of the view shown, and the line over training of the one chosen.


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


# Under the matrix: the covariance shown in numbers, and planted beside learned relatedness.


def numbers_panel(
    runs: Sequence[Run],
    views: Sequence[RelationsView],
    learned: Sequence[Relations],
    keys: Sequence[Sequence[SnapshotKey]],
) -> None:
    """The covariances shown, in numbers: of one run each with its line over training, of several side by
    side.
    """
    mode, size = views[0].mode, len(views[0].rows)
    all_rows = [
        in_numbers(view, one, curve_series([run], number_keys(mode)), own)
        for run, view, one, own in zip(runs, views, learned, keys, strict=True)
    ]
    st.markdown("**In numbers** at this step")
    if len(runs) == 1:
        columns = {
            "At this step": [row.value for row in all_rows[0]],
            "Over training": [list(row.line) for row in all_rows[0]],
        }
    else:
        titles = [row.title for row in all_rows[0]]
        told = [{row.title: row.value for row in rows} for rows in all_rows]
        columns = {
            f"Run {run.id}": [one.get(title, "–") for title in titles]
            for run, one in zip(runs, told, strict=True)
        }
    st.dataframe(
        pd.DataFrame({"Number": [row.title for row in all_rows[0]], **columns}),
        key=f"relations_numbers_{mode}",
        hide_index=True,
        height="content",
        column_config={
            "Number": st.column_config.TextColumn(width=110, pinned=True),
            "Over training": st.column_config.LineChartColumn(width=150),
        },
        alt="The covariances in numbers at this step",
    )
    st.caption(
        f"Effective rank: how many directions share the variance, from 1 to {size:,}. "
        "Condition: largest eigenvalue over smallest, 1 where all directions are alike, ∞ where the "
        "matrix is singular."
    )


def planted_panel(run: Run, view: RelationsView) -> None:
    """Where tasks are simulated: how related they were made, beside how related they were learned to be."""
    found = planted(run, view)
    if found is None:
        return
    st.markdown(f"**Planted and learned**: each simulated task and {escape(found.real)}")
    left, right = st.columns([5, 3], gap="large")
    with left:
        chart(
            planted_chart(found, colours(resources.task_order())),
            key="planted",
            revision=str(run.id),
            still=True,
            alt=f"Learned correlation with {found.real} over planted relatedness, a point per simulated task",
        )
    with right:
        st.dataframe(
            pd.DataFrame(
                {
                    "Task": pair.task,
                    "α": pair.alpha,
                    "Planted AMI": pair.ami,
                    "Learned": unsigned_zero(pair.learned, 3),
                }
                for pair in found.pairs
            ),
            key="relations_planted",
            hide_index=True,
            height="content" if len(found.pairs) <= 8 else 320,
            column_config={
                "α": st.column_config.NumberColumn(format="%.2f", width=64),
                "Planted AMI": st.column_config.NumberColumn(format="%.3f"),
                "Learned": st.column_config.NumberColumn(format="%.3f"),
            },
            alt="Planted relatedness and learned correlation of each simulated task",
        )
        st.caption(
            "α: chance that the task keeps a word's real label. AMI: adjusted mutual information of its "
            "labels and the real ones, 0 unrelated, 1 the same."
        )
        if found.agreement is not None:
            st.caption(
                f"Rank correlation of planted and learned: **{found.agreement:z.2f}** over "
                f"{plural(len(found.pairs), 'task')}; 1 is the same order."
            )


_SMALL = 12


def pace(asked: Asked) -> float | None:
    """How often to look for new snapshots, while any of the runs trains or waits."""
    runs = resources.store().runs(asked.run_ids, with_facts=False)
    return resources.LIVE if any(run.state in ACTIVE for run in runs) else None


def draw(asked: Asked) -> None:
    """The whole part: one matrix with what belongs to it on its right, several over the whole width."""
    scene = scene_of(asked)
    if scene is None:
        return
    shown, whole = ready(scene)
    at = scene.at
    learned = scene.learned(at)
    views = [
        relations(run, asked.mode, keys[at], one)
        for run, keys, one in zip(scene.runs, scene.moments.keys, learned, strict=True)
    ]
    if len(shown.frame["panels"]) == 1:
        left, right = st.columns([3, 2], gap="large")
        line = right.container()
        table = right.container()
    else:
        left = st.container()
        table, line = st.columns(2, gap="large")
    with left:
        run_words(scene.runs, views, scene.shared, scene.moments)
        _player(scene, shown, whole)
        size_words(views)
        if asked.gold:
            gold_words(scene.runs[0], views, scene.shared)
    with table:
        pair = pairs_panel(scene, learned, _pair(scene))
    with line:
        line_panel(scene, pair)
    with left if len(shown.frame["panels"]) == 1 else line:
        numbers_panel(scene.runs, views, learned, scene.moments.keys)
    if scene.view == "one":
        planted_panel(scene.runs[0], views[0])


def _pair(scene: Scene) -> tuple[str, str] | None:
    """The pair in the URL, where these rows have it."""
    names = st.query_params.get_all("pair")
    known = set(scene.shared.rows.names)
    return (names[0], names[1]) if len(names) == 2 and known.issuperset(names) else None


def _player(scene: Scene, shown: Ready, whole: bool) -> None:
    mode, names = scene.asked.mode, scene.shared.rows.names
    zoomed = window() is not None

    def cell(event: Mapping[str, Any]) -> None:
        row, column = (names[shown.places[int(event[side])]] for side in ("row", "column"))
        if row != column:
            st.query_params["pair"] = [row, column]

    def more(event: Mapping[str, Any]) -> None:
        st.session_state[WHOLE] = event["revision"]

    step = st.query_params.get("step", "")
    matrix_player(
        shown.frame
        | {
            "name": PLAYER,
            "alt": f"Correlations between {MODES[mode].lower()}, by training step",
            "filename": f"relations-{mode}-run-{'-'.join(str(run.id) for run in scene.runs[:4])}",
            "whole": whole,
            "at": scene.at,
            "step": whole_number(step),
            "pair": _marks(shown, names, _pair(scene)),
            "total": len(names),
            "zooms": len(names) > _SMALL,
            "zoomed": zoomed,
            "interval": half_interval(len(scene.runs)) if scene.view == "mean" else None,
            **player_words(mode, shown.frame, len(names), zoomed=zoomed),
        },
        shown.numbers,
        key=PLAYER,
        on_step=_step,
        on_cell=cell,
        on_zoom=_zoom,
        on_more=more,
    )


def _step(event: Mapping[str, Any]) -> None:
    """The newest step needs no place in the URL: a link without one follows the run."""
    if event["step"] is not None:
        st.query_params["step"] = str(event["step"])
    elif "step" in st.query_params:
        del st.query_params["step"]


def _zoom(event: Mapping[str, Any]) -> None:
    if not event.get("whole"):
        rows, columns = (
            f"{int(event[a])}-{int(event[b])}" for a, b in (("top", "bottom"), ("left", "right"))
        )
        st.query_params["zoom"] = f"{rows},{columns}"
    elif "zoom" in st.query_params:
        del st.query_params["zoom"]


def _marks(shown: Ready, names: Sequence[str], pair: tuple[str, str] | None) -> list[tuple[int, int]]:
    """The cells of the pair, as far as they are drawn as cells of their own."""
    rows, columns = shown.frame["rows"]["names"], shown.frame["columns"]["names"]
    if pair is None:
        return []
    return [
        (rows.index(one), columns.index(other))
        for one, other in (pair, pair[::-1])
        if one in rows and other in columns
    ]
