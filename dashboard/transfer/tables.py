"""The matrix and the table of all pairs on the Transfer page: gains, or a number that predicts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.config import shares_nothing
from core.transfer.gains import Gain, Gains, Pair
from core.transfer.predictors import ALL_FEATURES, AMI, CORRELATION, COSINE, PLANTED
from dashboard.components.charts import chart
from dashboard.components.pair_table import PairTable, pair_table
from dashboard.shared import resources
from dashboard.shared.downloads import csv_button, csv_file, data_table
from dashboard.text import escape
from dashboard.transfer.charts import seeds_chart
from dashboard.transfer.views import (
    ABOUT_GAINS,
    FEW_TASKS,
    caution,
    gains_table,
    no_percent_sentence,
    pairs_frame,
    strongest_first,
    value_table,
)
from jobs.reports.parts import SIGNED
from jobs.reports.transfer import PairGroup
from jobs.studies.evidence import Evidence

_HEAD, _CELL, _WIDE = 150, 114, 1100
"""Pixels of the names of rows, of a cell, and of the page, of which the matrix has half or what it needs."""
GAIN, _PROBABILITY = "Measured gain", "Predicted probability of a gain"
# Where each number comes from, where none is known; the middle and the end of its scale; its ends in words.
NUMBERS: Mapping[str, tuple[str, float, float | None, tuple[str, str]]] = {
    CORRELATION: ("an MRN run of all tasks over the same corpus", 0, 1, ("−1, opposed", "1, related")),
    COSINE: ("a joint run with affinity_every", 0, None, ("opposed", "alike")),
    AMI: ("tasks that label the same words", 0, 1, ("", "1, the same labels")),
    PLANTED: ("simulated tasks", 0, 1, ("", "1, the same labels")),
    _PROBABILITY: ("features of all tasks", 0.5, 0.5, ("0", "1")),
}


def _values(shown: str, known: Evidence) -> Mapping[Pair, float]:
    if shown == _PROBABILITY:
        return known.probabilities.get(ALL_FEATURES, {})
    return known.numbers[shown].by_pair


def matrix(group: PairGroup, shown: str, unit: str, pair: Pair, known: Evidence | None) -> None:
    """Draws the matrix, in which a click chooses a pair, with notes; of few tasks all seeds beside it."""
    gains = group.gains
    table = _shown_table(shown, group, unit, known)
    left, right = st.container(), None
    if has_seeds_beside(group):
        size = max(_HEAD + _CELL * len(gains.tasks), _WIDE // 2)
        left, right = st.columns([size, max(size // 2, _WIDE - size)], gap="large")
    with left:
        if table is not None:
            place = {task: number for number, task in enumerate(gains.tasks)}
            pair_table(
                table,
                chosen=(place[pair[0]], place[pair[1]]),
                key="gains",
                clicked=lambda row, column: _choose_pair(gains.tasks[row], gains.tasks[column]),
            )
    if right is not None:
        with right:
            draw_seeds(strongest_first(gains), pair)
    if shown == GAIN:
        st.caption(caution(gains), help=ABOUT_GAINS)
        if unit == "relative" and (without := no_percent_sentence(gains)):
            st.caption(escape(without))


def has_seeds_beside(group: PairGroup) -> bool:
    """Whether all gains are drawn beside the matrix: where there is room, and they say something."""
    gains = group.gains
    is_equal = all(gain.is_equal for gain in gains.pairs.values())
    return len(gains.tasks) <= FEW_TASKS and not (is_equal or shares_nothing(group.config))


def draw_seeds(gains: Sequence[Gain], pair: Pair) -> None:
    """Draws these gains by seed."""
    st.markdown("**Gain by seed**")
    chart(
        seeds_chart(gains, resources.task_colours(), pair if len(gains) > 2 else None),
        key="pair_seeds",
        revision=" ".join(f"{gain.main} {gain.aux}" for gain in gains),
        still=True,
        alt="Gain of each main task beside each auxiliary task, seed by seed, with 95% intervals",
    )


def _choose_pair(main: str, aux: str) -> None:
    """Show this pair. To be called before the selects are drawn."""
    st.session_state["main"], st.session_state["aux"] = main, aux


def _shown_table(shown: str, group: PairGroup, unit: str, known: Evidence | None) -> PairTable | None:
    """The matrix; None where it cannot be drawn (yet), which is said."""
    shades = resources.task_colours()
    if shown == GAIN:
        return gains_table(
            group.gains, unit, shades, group.scored_by, can_transfer=not shares_nothing(group.config)
        )
    if known is None:
        return None
    values = _values(shown, known)
    made_by, centre, limit, ends = NUMBERS[shown]
    if not values:
        st.caption(f"Not known for any pair: it needs {made_by}.")
        return None
    return value_table(group.gains, values, shades, name=shown, centre=centre, limit=limit, ends=ends)


def all_pairs(gains: Gains, known: Evidence | None) -> None:
    """Draws every pair with its interval and the values of predictors; as a file too."""
    frame = pairs_frame(gains)
    if known is not None:
        pairs = list(zip(frame["Main"], frame["Auxiliary"], strict=True))
        for name in NUMBERS:
            if values := _values(name, known):
                frame[name] = [values.get(pair) for pair in pairs]
    forms = dict.fromkeys(("Gain", "Low", "High", "% of STL"), SIGNED) | {"STL": "z.2f"}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Gain, its interval and STL in points; verdicts by p corrected for the pairs of a main task."
        )
        csv_button(csv_file(frame), "mrnlab-transfer")
    forms |= dict.fromkeys(NUMBERS, "z.3f")
    data_table(frame, forms=forms, most=12, key="pairs", alt="Gain of every pair")
