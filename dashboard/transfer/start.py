"""What the Transfer page offers while no pair of tasks was trained."""

from __future__ import annotations

import streamlit as st

from core.studies import STUDIES
from dashboard.text import escape

_PAIRS = {
    "corpus": "demo",
    "encoder": "minilm+bilstm",
    "encoder_training": "frozen",
    "paradigm": "stl,mtl",
    "task_groups": "pairs",
    "seed": "1-3",
    "fraction": "0.1",
    "epochs": "10",
}


def nothing_yet() -> None:
    """A card that says what makes such runs, with two ways to them."""
    study = STUDIES["transfer"]
    with st.container(border=True, width=640):
        st.markdown("**No pair of tasks yet**")
        st.markdown(
            "A gain needs two kinds of runs, alike in all else: a task alone (STL), and that task together "
            "with one other (MTL). Two seeds at least give an interval."
        )
        st.page_link(
            "launch/page.py", label="Launch every pair of the demo's tasks", icon=":material/rocket_launch:",
            query_params=_PAIRS,
        )  # fmt: skip
        st.page_link(
            "studies/page.py", label=f"The study: {escape(study.title.lower())}", icon=":material/science:",
            query_params={"study": study.name},
        )  # fmt: skip
        st.caption(escape(study.sample.words if study.sample else study.question))
