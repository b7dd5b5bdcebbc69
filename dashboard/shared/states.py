"""States of a page: its title, an empty state, a problem. Each names the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import streamlit as st

from core.store.types import RunState
from dashboard.shared.docs import docs_link
from dashboard.text import escape
from dashboard.theme import STATES


class EndOfPage(Exception):
    """A page that has no more to draw."""


def end_page() -> NoReturn:
    """Ends the page here; what stands beside it is drawn after it, which `st.stop` would end too."""
    raise EndOfPage


def title(name: str, answers: str, page: str | None = None, link: str | None = None) -> None:
    """Draws the page's title, a sentence on the question that it answers, and a link to its docs.

    `page` is the name of the page in the docs, by default the title; `link` is to another document.
    """
    with st.container(gap=None):
        st.title(name, anchor=False)
        st.caption(f"{answers} {link or docs_link(page or name)}".strip())


def show_answer(sentence: str, *, key: str, help: str | None = None) -> None:
    """Draws a page's answer, a sentence in plain text, as large as its title (`style.css`)."""
    with st.container(key=f"answer_{key}"):
        st.markdown(escape(sentence), help=help)


def empty(
    headline: str, text: str, *, page: str | None = None, label: str = "", icon: str | None = None
) -> None:
    """Draws a card that explains an empty page, with a link. `headline` and `text` are Markdown."""
    with st.container(border=True):
        st.markdown(f"**{headline}**")
        st.markdown(text)
        if page is not None:
            st.page_link(page, label=label, icon=icon)


def show_note(text: str, icon: str = ":material/info:", **look: Any) -> None:
    """Draws a fact to have in mind, small. Here and in what follows `text` is Markdown."""
    st.caption(f"{icon} {text}", **look)


def show_reason(text: str, icon: str = ":material/info:") -> None:
    """Draws why something is not there, in its place."""
    st.info(text, icon=icon)


def show_warning(text: str, icon: str = ":material/warning:") -> None:
    """Draws what a reader should not overlook."""
    st.warning(text, icon=icon)


def field_problem(sentence: str) -> None:
    """Draws what is wrong with a field, under it. The sentence is plain text."""
    st.markdown(f":orange[:material/error: {escape(sentence)}]")


def problem(sentence: str) -> None:
    """Draws that something went wrong. The sentence is plain text."""
    show_warning(escape(sentence), ":material/error:")


def state_badge(state: RunState) -> None:
    """A state's word and icon in its colour."""
    look = STATES[state]
    icon = f":shimmer[{look.icon}]" if state is RunState.RUNNING else look.icon
    st.markdown(f":{look.colour}-badge[{icon} {look.word}]", width="content")


def state_text(state: RunState, count: int = 0) -> str:
    """The mark with the state's word, and how many runs are in it: `✓ 5 succeeded`."""
    look = STATES[state]
    return f"{look.mark} {count} {look.word.lower()}" if count else f"{look.mark} {look.word}"


def learned_nothing_text(task: str) -> str:
    """The mark of a task whose head predicts nothing right, though its training succeeded."""
    return f"! {task} learned nothing"


def states_text(states: Mapping[RunState, int]) -> str:
    """How many runs are in each state: `2 succeeded, 1 running, 5 queued`."""
    return ", ".join(
        f"{states[state]:,} {look.word.lower()}" for state, look in STATES.items() if states.get(state)
    )
