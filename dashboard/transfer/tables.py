"""The matrix and the table of all pairs on the Transfer page: gains, or a number that predicts them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.config import shares_nothing
from core.transfer.gains import Gains, Pair
from core.transfer.predictors import ALL_FEATURES, AMI, CORRELATION, COSINE, PLANTED
from core.wording import plural
from dashboard.components.pair_table import PairTable, pair_table
from dashboard.shared import resources
from dashboard.shared.downloads import csv_button, csv_file, data_table
from dashboard.text import escape
from dashboard.transfer.views import caution, gains_table, no_percent_sentence, pairs_frame, value_table
from jobs.reports.parts import SIGNED
from jobs.reports.transfer import PairGroup
from jobs.studies.evidence import Evidence

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
    """Draws the matrix, in which a click chooses a pair, with what to note; a fold has the table of all."""
    gains = group.gains
    table = _shown_table(shown, group, unit, known)
    if table is not None:
        place = {task: number for number, task in enumerate(gains.tasks)}
        pair_table(
            table,
            chosen=(place[pair[0]], place[pair[1]]),
            key="gains",
            clicked=lambda row, column: _choose_pair(gains.tasks[row], gains.tasks[column]),
        )
    if shown == GAIN:
        st.caption(caution(gains))
        if unit == "relative" and (without := no_percent_sentence(gains)):
            st.caption(escape(without))
    with st.expander(f"All {plural(len(gains.pairs), 'pair')} as a table"):
        _all_pairs(gains, known)


def _choose_pair(main: str, aux: str) -> None:
    """Show this pair. To be called before the selects are drawn."""
    st.session_state["main"], st.session_state["aux"] = main, aux


def _shown_table(shown: str, group: PairGroup, unit: str, known: Evidence | None) -> PairTable | None:
    """The matrix; None where it cannot be drawn (yet), which is said."""
    shades = resources.task_colours()
    if shown == GAIN:
        return gains_table(group.gains, unit, shades, can_transfer=not shares_nothing(group.config))
    if known is None:
        return None
    values = _values(shown, known)
    made_by, centre, limit, ends = NUMBERS[shown]
    if not values:
        st.caption(f"Not known for any pair: it needs {made_by}.")
        return None
    return value_table(group.gains, values, shades, name=shown, centre=centre, limit=limit, ends=ends)


def _all_pairs(gains: Gains, known: Evidence | None) -> None:
    """Draws every pair with its interval and the values of predictors; as a file too."""
    frame = pairs_frame(gains)
    if known is not None:
        pairs = list(zip(frame["Main"], frame["Auxiliary"], strict=True))
        for name in NUMBERS:
            if values := _values(name, known):
                frame[name] = [values.get(pair) for pair in pairs]
    forms = dict.fromkeys(("Gain", "Low", "High", "% of STL"), SIGNED) | {"STL": "z.2f"}
    data_table(
        frame, forms=forms | dict.fromkeys(NUMBERS, "z.3f"), height=420, key="pairs", alt="Gain of every pair"
    )
    csv_button(csv_file(frame), "mrnlab-transfer")
