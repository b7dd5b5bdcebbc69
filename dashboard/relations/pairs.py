"""The live part of the Relations page: the player, the pairs, their line, the covariances in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.config.typed import whole_number
from core.evaluation.relation_verdicts import RelationVerdicts
from core.mrn.relations import Relations, covariance_statistics
from core.results.relation_gains import relation_gains
from core.store.types import ACTIVE
from core.wording import plural, without_shared
from dashboard.components.charts import chart, matrix_player
from dashboard.relations import summary, views
from dashboard.relations.charts import pair_chart
from dashboard.relations.controls import MODES, PLAYER, Selection
from dashboard.relations.cut import cut_link
from dashboard.relations.snapshots import PlayerData, RelationsState, corner, player_data, read_state
from dashboard.relations.verdicts import decided, draw_basis
from dashboard.relations.views import BEYOND, Bools, Floats, signed
from dashboard.shared import resources
from dashboard.shared.downloads import data_table
from dashboard.shared.selection import segments, set_parameter
from dashboard.text import escape

_AMONG = {"all": "All", "within": "Within a task", "between": "Between tasks"}
_TITLES = {
    "one": "Strongest pairs",
    "side": "Strongest pairs in any of the runs",
    "two": "Pairs that differ most",
    "mean": "Strongest pairs on average",
}
_HELP = {
    "r": "The correlation at this step.",
    "Cosine": "The cosine of the two tasks' embeddings at this step.",
    BEYOND: "Learned less gold.",
}
_TALL = 12
_SHORT_NAME, _NAME_WIDTH = 24, 150
"""Longer names of rows have columns of this width, so that the numbers after them stay in sight."""
_FEW_TASKS = 3
_FEW_VIEWS = ("one", "mean")

Pair = tuple[str, str]


def refresh_interval(selection: Selection) -> float | None:
    """Returns the seconds between two polls for snapshots while any of the runs trains or waits."""
    runs = resources.store().runs(selection.run_ids)
    return resources.LIVE if any(run.state in ACTIVE for run in runs) else None


def draw(selection: Selection) -> None:
    """Draws the summary, then one matrix with its pairs on its right, or several over the whole width.

    Of few tasks the lines of all pairs come first, and the matrix stands small beside them.
    """
    state, waiting, reason = read_state(selection)
    summary.explain_waiting(waiting, alone=state is None)
    if reason is not None:
        st.info(reason, icon=":material/info:")
    if state is None or (state.is_learned and summary.not_learned(state)):
        return
    answer = decided(state)
    data = player_data(
        state, None if answer is None else answer.verdicts, () if answer is None else answer.depends_on
    )
    learned = state.learned(state.at)
    values = views.shared_matrices(learned, state.mode, state.shared)
    gold = _gold(state) if selection.gold else None
    is_last = state.at == len(state.steps.steps) - 1
    verdicts = answer.verdicts if answer is not None and is_last else None
    summary.draw_summary(state, values, learned, verdicts)
    if answer is not None:
        draw_basis(state, answer)
    summary.run_warnings(state)
    few = state.mode == "task" and len(state.shared.rows.names) <= _FEW_TASKS and state.view in _FEW_VIEWS
    if few:
        table, left = st.columns([2, 1], gap="large")
    elif len(data.frame["panels"]) == 1:
        left, right = st.columns([3, 2] if state.mode == "task" else [2, 1], gap="large")
        line, table = right.container(), right.container()
    else:
        left = st.container()
        table, line = st.columns(2, gap="large")
    with left:
        summary.draw_scores(state)
        _player(state, data)
        if selection.gold:
            summary.gold_agreement(state, values.mean(axis=0), gold)
    with table:
        if few:
            _lines_of_all_pairs(state)
        else:
            chosen = _pair_table(state, values, gold, verdicts)
            with line:
                _pair_line(state, chosen)
    if state.view != "side":
        cut_link(state.runs[0], state.mode, state.shared.rows, _chosen_pair(state))
    if not state.is_learned:
        summary.embedding_note(state)
        return
    summary.rank_note(state, learned, has_bars=any(panel["variances"] for panel in data.frame["panels"]))
    with st.expander(
        "In numbers", icon=":material/functions:", key="relations_in_numbers", on_change="rerun"
    ) as numbers:
        if numbers.open:  # a table takes a browser a tenth of a second
            _numbers(state, learned)
            summary.describe_runs(state.runs)
    if state.view == "one":
        _planted(state, values[0])
    if state.mode == "label" and answer is not None:
        _gains(state)


def _gold(state: RelationsState) -> Floats | None:
    """The gold correlations of the shared rows; None where the first run has none."""
    gold, places = views.gold_labels(state.runs[0]), state.shared.places[0]
    return None if gold is None else gold[np.ix_(places, places)]


def _chosen_pair(state: RelationsState) -> Pair | None:
    """The pair in the URL, where these rows have it."""
    names = st.query_params.get_all("pair")
    known = set(state.shared.rows.names)
    return (names[0], names[1]) if len(names) == 2 and known.issuperset(names) else None


def _player(state: RelationsState, data: PlayerData) -> None:
    mode, names = state.mode, state.shared.rows.names
    what = f"Correlations between {MODES[mode].lower()}" if state.is_learned else "Cosines of task embeddings"
    ids = "-".join(str(run.id) for run in state.runs[:4])
    zoomed, pair = mode == "feature" and corner() is not None, _chosen_pair(state)
    drawn_rows, drawn_columns = data.frame["rows"]["names"], data.frame["columns"]["names"]

    def choose_cell(event: Mapping[str, Any]) -> None:
        row, column = (names[data.order[int(event[side])]] for side in ("row", "column"))
        if row != column:
            st.query_params["pair"] = [row, column]

    def go_to_step(event: Mapping[str, Any]) -> None:
        # None is the newest step, which is not in the address: a link without a step follows the run.
        set_parameter("step", "" if event["step"] is None else str(event["step"]))

    def zoom(event: Mapping[str, Any]) -> None:
        set_parameter("zoom", "" if event.get("whole") else f"{int(event['top'])},{int(event['left'])}")

    matrix_player(
        data.frame
        | {
            "name": PLAYER,
            "alt": f"{what}, by training step",
            "filename": f"relations-{state.selection.mode}-run-{ids}",
            "step": whole_number(st.query_params.get("step", "")),
            "pair": [
                (drawn_rows.index(row), drawn_columns.index(column))
                for row, column in ((pair, pair[::-1]) if pair else ())
                if row in drawn_rows and column in drawn_columns
            ],
            "total": len(names),
            "zoomed": zoomed,
            "interval": views.half_interval(len(state.runs)) if state.view == "mean" else None,
            **summary.player_words(mode, data.frame, len(names)),
        },
        data.numbers,
        key=PLAYER,
        on={"step": go_to_step, "cell": choose_cell, "zoom": zoom},
    )


def _table(frame: pd.DataFrame, key: str, alt: str, **settings: Any) -> None:
    """A table at its full height, up to a limit; its numbers with three decimals and a real minus sign."""
    config = settings.pop("column_config", {})
    numbers = frame.select_dtypes("number").columns
    config |= {name: st.column_config.NumberColumn(width=66, help=_HELP.get(name)) for name in numbers}
    height = "content" if len(frame) <= _TALL else 420
    forms = dict.fromkeys(numbers, partial(signed, digits=3))
    data_table(frame, forms=forms, key=key, height=height, column_config=config, alt=alt, **settings)


def _pair_table(
    state: RelationsState, values: Floats, gold: Floats | None, verdicts: RelationVerdicts | None
) -> Pair | None:
    """Draws the strongest pairs; returns the pair to draw over training, by default the first one."""
    mode, runs, view, chosen = state.mode, state.runs, state.view, _chosen_pair(state)
    st.markdown(f"**{_TITLES['two' if view == 'side' and len(runs) == 2 else view]}** at this step")
    among = segments("Pairs", _AMONG, key="pairs") if mode == "label" else "all"
    table = views.strongest(runs, values, mode, view, state.shared, among=among, gold=gold, verdicts=verdicts)
    if table.empty:
        learnable = np.triu(_learnable(state, among), 1).any()
        none = "No pair differs" if view == "side" and len(runs) == 2 else "No pair is related"
        st.caption(f"{none} at this step." if learnable else "No pair can be related here.")
        return chosen
    pairs: list[Pair] = list(zip(table["First"], table["Second"], strict=True))
    key = f"relations_pairs_{state.selection.mode}_{view}"

    def selected() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows and rows[0] < len(pairs):
            st.query_params["pair"] = list(pairs[rows[0]])

    short = without_shared(state.shared.rows.names)
    shown = table.replace(dict.fromkeys(("First", "Second"), short))
    names = st.column_config.TextColumn(width=_NAME_WIDTH)
    _table(
        shown.rename(columns={"Correlation": "r" if state.is_learned else "Cosine"}),
        key,
        f"Strongest pairs, by the size of their {'correlation' if state.is_learned else 'cosine'}",
        on_select=selected,
        selection_mode="single-row",
        column_config={}
        if max(map(len, short.values())) <= _SHORT_NAME
        else {"First": names, "Second": names},
    )
    st.caption("Select a pair, or click a cell of the matrix, to see its line over training.")
    return chosen or pairs[0]


def _learnable(state: RelationsState, among: str) -> Bools:
    """The pairs (n, n) that any of the runs could learn."""
    learning = [run for run in state.runs if state.mode in run.config.learned or not state.is_learned]
    return views.learnable_pairs(learning, state.mode, state.shared.rows, among)


def _lines_of_all_pairs(state: RelationsState) -> None:
    """The correlation of each pair that can be related, over training; the chosen pair first."""
    names, chosen = state.shared.rows.names, _chosen_pair(state)
    pairs = [
        (names[i], names[j]) for i, j in zip(*np.nonzero(np.triu(_learnable(state, "all"), 1)), strict=True)
    ]
    if not pairs:
        st.caption("No pair can be related here.")
    if chosen:
        pairs = [chosen, *(pair for pair in pairs if set(pair) != set(chosen))]
    for pair in pairs:
        _pair_line(state, pair, height=320 if len(pairs) == 1 else 200)


def _pair_line(state: RelationsState, pair: Pair | None, height: int = 200) -> None:
    """Draws the pair's value at this step, and its correlation over training, a line per run."""
    if pair is None:
        return
    first, second = pair
    indices = [state.shared.rows.names.index(name) for name in pair]
    trajectories = state.trajectories()
    values = views.pair_values(trajectories, state.mode, state.shared.places, *indices)
    here = values[:, state.at]
    value = signed(float(here.mean()), 3) if state.view != "side" else ""
    if state.view == "mean":
        value += f" ± {here.std(ddof=1):.3f}"
    is_course = len(state.steps.steps) > 1
    over = " over training" * is_course
    short = without_shared(state.shared.rows.names)
    names = f"**{escape(short[first])}** and **{escape(short[second])}**"
    st.markdown(f"{names}{over}{': ' * bool(value)}{value}")
    if not is_course:
        st.caption("One snapshot is stored: there is no line over training.")
        return
    chart(
        pair_chart(
            trajectories, values, state.at, height, by_share=not state.steps.exact, mean=state.view == "mean"
        ),
        key=f"pair_line_{indices[0]}_{indices[1]}",
        revision=f"{state.runs[0].id} {first} {second}",
        still=True,
        alt=f"{'Correlation' if state.is_learned else 'Cosine'} of {first} and {second} at each step",
    )


def _numbers(state: RelationsState, learned: Sequence[Relations]) -> None:
    """The covariances in numbers, a row per run."""
    statistics = [covariance_statistics(covariances, state.selection.mode) for covariances in learned]
    columns = {
        "Run": [str(run.id) for run in state.runs],
        "Effective rank": [statistic.effective_rank for statistic in statistics],
        "Trace": [statistic.trace for statistic in statistics],
        "Condition": [statistic.condition for statistic in statistics],
    }
    _table(pd.DataFrame(columns), "relations_numbers", "The covariances in numbers at this step")


def _gains(state: RelationsState) -> None:
    """Whether labels with strong relations gain more over MTL, once a reader asks."""
    with st.expander(
        "Do relations say where the gain is?",
        icon=":material/scatter_plot:",
        key="relation_gains",
        on_change="rerun",
    ) as fold:
        if not fold.open:  # scores of all seeds are read for it
            return
        gains = relation_gains(resources.store(), state.runs)
        if gains is None:
            st.caption(
                "No MTL run with the same settings and seeds has test scores. Launch MTL with these seeds to "
                "see each label's gain beside its strongest relation."
            )
            return
        st.markdown(gains.sentence)
        frame = pd.DataFrame(
            [(f"{of.task}:{of.label}", of.partner, of.correlation, 100 * of.gain) for of in gains.labels],
            columns=["Label", "Strongest with", "r", "Gain in F1"],
        )
        _table(frame, "relations_gains", "Each label's strongest relation and its gain in F1 over MTL")


def _planted(state: RelationsState, values: Floats) -> None:
    """Draws planted and learned relatedness of simulated tasks."""
    shown = views.planted(state.runs[0], state.shared.rows, values) if state.mode == "task" else None
    if shown is None:
        return
    real, frame, agreement = shown
    st.markdown(f"**Planted and learned**: each simulated task and {escape(real)}")
    _table(frame, "relations_planted", "Planted relatedness and learned correlation of each simulated task")
    text = (
        "α: probability that the task keeps a word's real label. AMI: adjusted mutual information of its "
        "labels and the real ones (0 unrelated, 1 the same)."
    )
    if agreement is not None:
        text += (
            f" Rank correlation of planted and learned: **{signed(agreement)}** over "
            f"{plural(len(frame), 'task')}; 1 is the same order."
        )
    st.caption(text)
