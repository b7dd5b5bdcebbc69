"""The live part of the Relations page: the player, the pairs, the covariances in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from core.config.typed import whole_number
from core.evaluation.relation_verdicts import RelationVerdicts
from core.metrics import STATISTIC_MEANINGS
from core.mrn.relations import Relations, covariance_statistics
from core.results.relation_gains import relation_gains
from core.results.relations import aligned_alone, counted
from core.store.types import ACTIVE
from core.wording import capitalised, plural
from dashboard.components.charts import matrix_player
from dashboard.components.relation_list import PairColumn, PairLine, relation_list
from dashboard.relations import summary, views
from dashboard.relations.charts import with_counted
from dashboard.relations.controls import MODES, PLAYER, Selection
from dashboard.relations.cut import Pair, cut_link
from dashboard.relations.lines import draw_lines, few_names, few_pairs, pair_colours
from dashboard.relations.snapshots import (
    PlayerData,
    RelationsState,
    corner,
    player_data,
    read_snapshots,
    strongest,
)
from dashboard.relations.verdicts import decided, draw_basis
from dashboard.relations.views import BEYOND, Bools, Floats, signed
from dashboard.shared import resources
from dashboard.shared.downloads import data_table
from dashboard.shared.selection import segments, set_parameter
from dashboard.text import escape

_AMONG = {"between": "Between tasks", "within": "Within a task", "all": "All"}
_HELP = {
    "Correlation": "From −1 to 1, at this step.",
    "95% interval": "Of the mean over seeds.",
    views.ALONE: "The correlation that heads with independent, equally large weights would have: what the "
    "alignment counts before anything is learned.",
    "Cosine": "The cosine of the two tasks' embeddings at this step.",
    BEYOND: "Learned less gold.",
    **{title: f"{capitalised(meaning)}." for title, meaning in STATISTIC_MEANINGS.items()},
}
_KINDS: Mapping[str, Literal["number quiet", "text"]] = {"95% interval": "number quiet", "Verdict": "text"}
_BY_VALUE = "value"
_RANKED = {"beyond": "Beyond the alignment", _BY_VALUE: "By value"}
_TALL = 12
_FEW_WIDE, _MANY_WIDE = (9, 11), (63, 37)
"""The widths of the matrix and of what stands beside it."""


def refresh_interval(selection: Selection) -> float | None:
    """Returns the seconds between two polls for snapshots while any of the runs trains or waits."""
    runs = resources.store().runs(selection.run_ids)
    return resources.LIVE if any(run.state in ACTIVE for run in runs) else None


def draw(selection: Selection) -> None:
    """Draws the answer, then one matrix with its pairs on its right, or several over the whole width."""
    read = read_snapshots(selection)
    state = read.state
    summary.explain_missing(read)
    if state is None or (state.is_learned and summary.not_learned(state)):
        return
    answer = decided(state)
    data = player_data(state, answer.of_matrices)
    learned = state.learned(state.at)
    values = views.shared_matrices(learned, state.mode, state.shared)
    means, possible = state.means(values), summary.possible_pairs(state)
    gold = _gold(state) if selection.gold else None
    alone = None
    if state.is_single and state.is_learned and state.mode == "label":
        alone = aligned_alone(state.runs, state.shared.places)
    is_last = state.at == len(state.steps.steps) - 1
    if alone is not None and (of_labels := answer.of_matrices[0]) is not None:
        data = replace(data, frame=with_counted(data.frame, counted(of_labels, alone), data.order))
    verdicts = answer.of_matrices if is_last else (None,) * len(means)
    few = few_pairs(state, _learnable(state, "all"))
    is_in_answer = is_last and len(few) == 1 and answer.single_pair(state) is not None
    summary.draw_answer(state, answer, values, means, learned, possible, alone)
    draw_basis(state, answer)
    summary.run_warnings(state)
    is_alone = state.is_single and len(data.frame["panels"]) == 1
    has_single_pair = is_alone and len(few) == 1
    if has_single_pair:
        both = st.container(key="relations_pair")
        left, line = both.container(), both.container(key="relations_pair_line")
        table = line.container()
    elif is_alone:
        left, right = st.columns(_FEW_WIDE if few else _MANY_WIDE, gap="medium")
        table, line = right.container(), right.container()
    else:
        left = st.container()
        line, table = st.columns(2, gap="large")
    pair = few_names(state, few[0]) if is_in_answer else None
    if not is_in_answer:
        with table:
            pair = _pair_list(state, few, list(means), gold, verdicts, alone)
    with left:
        _player(state, data, pair, is_beside=has_single_pair)
        has_bars = bool(data.frame["panels"][0]["variances"])
        summary.reading(state, answer.of_matrices, has_bars=has_bars)
        if selection.gold:
            summary.gold_agreement(state, means[0], gold)
    with line:
        draw_lines(state, answer, pair, few, alone)
        if state.is_single:
            cut_link(state.runs[0], state.mode, state.shared.rows, _chosen_pair(state))
    if not state.is_learned:
        return
    with st.expander("In numbers", key="relations_in_numbers", on_change="rerun") as numbers:
        if numbers.open:  # a table takes a browser a tenth of a second
            summary.describe_scores(state)
            _numbers(state, learned)
            if state.is_single:
                summary.describe_rank(state, learned)
            summary.describe_runs(state.groups)
    if state.is_single:
        _planted(state, means[0])
        if state.mode == "label" and answer.shown(state):
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


def _player(state: RelationsState, data: PlayerData, pair: Pair | None, *, is_beside: bool) -> None:
    """Draws the matrices, with the pair that has a line marked. `is_beside`: the line is under its bar."""
    mode, names = state.mode, state.shared.rows.names
    what = f"Correlations between {MODES[mode].lower()}" if state.is_learned else "Cosines of task embeddings"
    ids = "-".join(str(run.id) for run in state.runs[:4])
    zoomed = mode == "feature" and corner() is not None
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
            "beside": is_beside,
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


def _pair_list(
    state: RelationsState,
    few: Sequence[tuple[int, int]],
    means: Sequence[Floats],
    gold: Floats | None,
    verdicts: Sequence[RelationVerdicts | None],
    alone: Floats | None,
) -> Pair | None:
    """Draws the `few` pairs that all have a line, or else the strongest.

    Returns the pair to draw over training: the chosen one, by default the first.
    """
    chosen, names = _chosen_pair(state), state.shared.rows.names
    among, order = "all", _BY_VALUE
    if not few:
        where = "" if state.is_single else " in any of these matrices"
        st.markdown(
            f"**Strongest pairs**{where} at this step",
            help="Decided pairs first, as many positive as negative. Press one, or a cell, to see its line.",
        )
        with st.container(horizontal=True, gap="small"):
            among = _among(state)
            if alone is not None:
                order = segments("Ranked by", _RANKED, key="ranked", help=_HELP[views.ALONE])
    titles = state.short_titles
    if state.is_single:
        titles = ["Correlation" if state.is_learned else "Cosine"]
    possible = _learnable(state, among)
    beyond = alone if order != _BY_VALUE else None
    places = list(few) or strongest(state, verdicts, means, among, possible, beyond)
    by_title = dict(zip(titles, means, strict=True))
    table = views.pair_table(by_title, places, names, dict(zip(titles, verdicts, strict=True)), alone)
    pairs: list[Pair] = list(zip(table["First"], table["Second"], strict=True))
    if gold is not None:
        table["Gold"] = [float(gold[at]) for at in places]
        table[BEYOND] = [float(means[0][at] - gold[at]) for at in places]
    if table.empty:
        none = (
            "No pair is related at this step."
            if np.triu(possible, 1).any()
            else "No pair can be related here."
        )
        st.caption(none)
        return chosen
    shown, short = chosen or pairs[0], views.short_names(names, state.mode)
    less = np.zeros(means[0].shape) if beyond is None else beyond
    peaks = [max((float(of[at] - less[at]) for of in means), key=abs) for at in places]
    single_verdicts = verdicts[0] if state.is_single else None
    not_learned = (
        np.zeros(means[0].shape, dtype=bool) if single_verdicts is None else counted(single_verdicts, alone)
    )
    meanings = views.row_meanings(state.shared.rows) if state.mode == "label" else {}
    columns = [
        PairColumn(name, _HELP.get(name, ""), _KINDS.get(name, "number"))
        for name in map(str, list(table)[2:])
    ]
    lines = [
        PairLine(
            pair,
            (short[pair[0]], short[pair[1]]),
            (meanings.get(pair[0], ""), meanings.get(pair[1], "")),
            [value if isinstance(value, str) else signed(value) for value in row[2:]],
            {*pair} == {*shown},
            colour,
            quiet=bool(not_learned[at]),
            parted=not few and above > 0 > here,
        )
        for pair, at, row, colour, above, here in zip(
            pairs,
            places,
            table.itertuples(index=False),
            pair_colours(few) or [""] * len(pairs),
            [0.0, *peaks],
            peaks,
            strict=False,
        )
    ]
    relation_list(
        lines,
        columns,
        alt=f"Strongest pairs, by the size of their {'correlation' if state.is_learned else 'cosine'}",
        key="relations_pairs",
        choose=lambda pair: st.query_params.update({"pair": list(pair)}),
    )
    return shown


def _among(state: RelationsState) -> str:
    """Which pairs of labels are listed: by default those between tasks, where there are any."""
    if state.mode != "label":
        return "all"
    offered = _AMONG if _learnable(state, "between").any() else {"all": _AMONG["all"]}
    return segments("Pairs", offered, key="pairs")


def _learnable(state: RelationsState, among: str) -> Bools:
    """The pairs (n, n) that any of the runs could learn."""
    learning = [run for run in state.runs if state.mode in run.config.learned or not state.is_learned]
    return views.learnable_pairs(learning, state.mode, state.shared.rows, among)


def _numbers(state: RelationsState, learned: Sequence[Relations]) -> None:
    """The covariances in numbers, a row per run."""
    statistics = [covariance_statistics(covariances, state.selection.mode) for covariances in learned]
    columns = {
        "Configuration": [group.title for group in state.groups for _ in group.runs],
        "Seed": [str(run.config.seed) for run in state.runs],
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
