"""The cards of what runs now."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.store.states import RunState
from dashboard import actions
from dashboard.panels.run_search import ask_for
from dashboard.queries.runs import RunCard
from dashboard.states import state_badge
from dashboard.text import escape, percent, plural

__all__ = ["run_cards"]

_MOST_CARDS = 3


def run_cards(cards: Sequence[RunCard]) -> None:
    """A card for each run in training, and a line on those that wait."""
    training = [card for card in cards if card.state is not RunState.QUEUED]
    waiting = [card for card in cards if card.state is RunState.QUEUED]
    shown = (training or waiting)[:_MOST_CARDS]
    grid = st.grid(3, min_column_width=300, gap="small")
    for card in shown:
        with grid.cell(), st.container(border=True, gap="small"):
            _card(card)
    rest = len(cards) - len(shown)
    if rest > 0:
        more = len(training) - len(shown) if training else 0
        parts = [f"{plural(more, 'more run')} in training"] if more > 0 else []
        if rest > more:
            what = f"{rest - more:,} more" if parts else plural(rest - more, "more run")
            parts.append(f"{what} {'waits' if rest - more == 1 else 'wait'} for a free worker")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"{', '.join(parts)}.", width="content")
            st.button("Show all in the table", type="tertiary", on_click=ask_for, args=("state:active",))


def _card(card: RunCard) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Run {card.id}** {escape(card.name)}", width="content")
        state_badge(card.state)
    score = f"{percent(card.dev_scores[-1])} %" if card.dev_scores else "–"
    chart = [100 * value for value in card.dev_scores] if len(card.dev_scores) > 1 else None
    st.metric("Dev score, mean over tasks", score, chart_data=chart, chart_type="line", height=116)
    st.progress(card.done)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(f"{card.progress}{', ' + card.eta if card.eta else ''}", width="content")
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
