"""Which runs the table shows, and in what order: all of it in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.lists import whole_number
from dashboard.queries.run_lines import sorts
from dashboard.text import escape
from jobs.filter_fields import FIELDS
from jobs.run_filter import FilterError, RunFilter, parse_filter

__all__ = ["PAGE_KEY", "Search", "ask_for", "page_number", "run_search"]

PAGE_KEY = "table_page"
_KEY = "filter"
_ORDERS = {"configurations": "By configuration", "runs": "Each run"}
_EXAMPLES = {
    "paradigm:mrn lambda<0.1": "MRN with a λ below 0.1",
    "state:failed,lost created<2d": "failed or lost in the last two days",
    "corpus:conll* fraction<1": "on a part of a corpus whose name begins so",
    '-encoder:minilm "to check"': "not minilm, with these words in a note",
    "tag:* archived:no": "whatever has a tag",
    "archived:yes": "what is archived; other filters leave it out",
}


@dataclass(frozen=True)
class Search:
    """What the reader asks for. `wanted` is None where the filter cannot be read."""

    wanted: RunFilter | None
    is_filtered: bool
    grouped: bool
    sort: str


def run_search(tasks: Sequence[str]) -> Search:
    """Draws the filter with its help, the order and the sorting; says what is wrong with a filter."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter",
            key=_KEY,
            bind="query-params",
            type="search",
            placeholder="Words and fields: paradigm:mrn lambda<0.1 state:failed",
            on_change=_to_first_page,
            width=520,
        )
        with st.popover("How to filter", icon=":material/help:", type="tertiary"):
            _help()
        order = st.segmented_control(
            "Lines",
            list(_ORDERS),
            default="configurations",
            required=True,
            key="order",
            bind="query-params",
            format_func=_ORDERS.__getitem__,
            on_change=_to_first_page,
        )
        orders = sorts(tasks)
        sort = st.selectbox(
            "Sort",
            list(orders),
            key="sort",
            bind="query-params",
            format_func=orders.__getitem__,
            on_change=_to_first_page,
            width=190,
        )
    try:
        wanted = parse_filter(text or "")
    except FilterError as error:
        st.markdown(f":orange[:material/error: {escape(error)}]")
        wanted = None
    return Search(wanted, bool(text and text.strip()), order == "configurations", sort)


def ask_for(text: str) -> None:
    """Puts this into the filter; the empty text shows all runs again."""
    st.session_state[_KEY] = text
    _to_first_page()


def page_number() -> int:
    """The page of the table that is asked for: by a link until the widget below the filter is there."""
    text = st.query_params.get(PAGE_KEY, "")
    number: int = st.session_state.get(PAGE_KEY) or max(1, whole_number(text) or 1)
    return number


def _to_first_page() -> None:
    st.session_state[PAGE_KEY] = 1


def _help() -> None:
    st.markdown(
        "Terms are separated by spaces, and all must hold. `field:a,b` is any of these values, `*` stands "
        "for anything, `< <= > >= !=` compare, a minus before a term turns it round. Words are looked for in "
        "paradigm, λ, tasks, corpus, encoder, tags and note; a number is also a run's. Text with spaces or "
        "such signs stands in quotes."
    )
    for number, (example, words) in enumerate(_EXAMPLES.items()):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Use",
                key=f"example_{number}",
                type="tertiary",
                icon=":material/north_west:",
                on_click=ask_for,
                args=(example,),
            )
            st.markdown(f"`{example}`", width="content")
            st.caption(words, width="content")
    st.dataframe(
        {
            "Field": list(FIELDS),
            "Meaning": [field.description for field in FIELDS.values()],
        },
        hide_index=True,
        height=260,
        width=640,
        alt="The fields of a filter",
    )
