"""The cards of what runs now."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.store.states import RunState
from dashboard import actions
from dashboard.components import sparkline
from dashboard.panels.run_search import ask_for
from dashboard.queries.runs import RunCard
from dashboard.states import state_badge
from dashboard.text import escape, percent, plural

__all__ = ["MOST_CARDS", "run_cards"]

MOST_CARDS = 3


def run_cards(cards: Sequence[RunCard], active: int) -> None:
    """A card for each run in training (else for those that are next), and the way to all `active` ones."""
    grid = st.grid(3, min_column_width=300, gap="small")
    shown = cards[:MOST_CARDS]
    for card in shown:
        with grid.cell(), st.container(border=True, gap="small"):
            _card(card)
    if active > len(shown):
        with st.container(horizontal=True, vertical_alignment="center"):
            if (more := len(cards) - len(shown)) > 0:
                st.caption(f"{plural(more, 'more run')} in training.", width="content")
            st.button("Show all in the table", type="tertiary", on_click=ask_for, args=("state:active",))


def _card(card: RunCard) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Run {card.id}** {escape(card.name)}", width="content")
        state_badge(card.state)
    score = f"{percent(card.dev_scores[-1])} %" if card.dev_scores else "–"
    with st.container(height=116, border=False, gap="small"):
        st.metric("Dev score, mean over tasks", score)
        if len(card.dev_scores) > 1:
            told = ", ".join(map(percent, card.dev_scores))
            sparkline(card.dev_scores, key=f"dev_{card.id}", alt=f"Dev score by epoch, in percent: {told}")
    st.progress(card.done)
    if card.survival:
        st.caption(card.survival)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(f"{escape(card.progress)}{', ' + card.eta if card.eta else ''}", width="content")
        st.button(
            "Stop",
            icon=":material/stop:",
            type="tertiary",
            key=f"stop_{card.id}",
            disabled=card.state is RunState.CANCELLING,
            on_click=actions.stop,
            args=([card.id],),
            help="Ends the run at its next step.",
        )
