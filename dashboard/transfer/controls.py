"""What the reader of the Transfer page chooses: the number in the matrix, its unit, a pair, where to look."""

from __future__ import annotations

import streamlit as st

from core.transfer.gains import Gains, Pair
from dashboard.shared.selection import choice, segments
from dashboard.transfer.tables import GAIN, NUMBERS
from dashboard.transfer.views import best_pair

PAIR, PREDICTORS = "pair", "predictors"
_LOOKS = {PAIR: "This pair", "all": "All pairs", PREDICTORS: "Predictors"}
_ROLES = {
    "main": ("Main task", "The task whose score counts."),
    "aux": ("Auxiliary task", "The task that is trained beside it."),
}
_UNITS = {"points": "Points", "relative": "Percent of STL"}


def pick_number() -> tuple[str, str]:
    """The number that the matrix shows, and the unit of gains."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = choice("Show", [GAIN, *NUMBERS], key="shows", width=280)
        return shown, segments("Unit", _UNITS, key="unit") if shown == GAIN else "points"


def pick_look(gains: Gains) -> tuple[Pair, str]:
    """The pair, and what is shown below the matrix: it, or the predictors of all."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pair = _pick_pair(gains, best_pair(gains))
        return pair, segments("Look at", _LOOKS, key="look")


def _pick_pair(gains: Gains, default: Pair) -> Pair:
    """Two selects; in the address as `main` and `aux`. Unknown tasks in it give the default."""
    for key, task in zip(("main", "aux"), default, strict=True):
        if st.session_state.get(key, st.query_params.get(key)) not in gains.tasks:
            st.session_state.pop(key, None)
            st.query_params.pop(key, None)
        # A default beside a value that a click on a cell has set is a warning of Streamlit's.
        index = 0 if key in st.session_state else gains.tasks.index(task)
        label, about = _ROLES[key]
        st.selectbox(label, gains.tasks, index=index, key=key, bind="query-params", width=260, help=about)
    return st.session_state["main"], st.session_state["aux"]
