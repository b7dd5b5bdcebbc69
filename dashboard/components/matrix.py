"""Matrices over training, played in the browser (docs/adr/0009-matrix-player.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dashboard.components.charts import read_asset

_feed = st.components.v2.component("mrnlab_matrix_feed", js=read_asset("matrix_feed.js"))
_mount = st.components.v2.component(
    "mrnlab_matrix",
    html='<div id="root"></div>',
    css=read_asset("matrix.css"),
    js=read_asset("matrix_picture.js") + read_asset("matrix.js"),
)

Event = Mapping[str, Any]


def matrix_player(
    frame: Mapping[str, Any],
    numbers: bytes,
    *,
    key: str,
    on_step: Callable[[Event], None],
    on_cell: Callable[[Event], None],
    on_zoom: Callable[[Event], None],
    on_more: Callable[[Event], None],
) -> None:
    """Draw the player. `frame` and `numbers` are those of `dashboard.relations.charts`: `player_frame`,
    `player_numbers`, with the same id.

    Called back, before the part runs again, are: `on_step` with the step looked at (None follows the
    newest), `on_cell` with the row and column of a clicked cell and `on_zoom` with the part that was dragged
    (or `whole`), both in the order drawn, and `on_more` where only one moment was sent and the others are
    wanted.
    """

    def told(name: str, then: Callable[[Event], None]) -> Callable[[], None]:
        def call() -> None:
            event = st.session_state[key].get(name)
            if event is not None:
                then(event)

        return call

    _mount(
        key=key,
        data=frame,
        on_step_change=told("step", on_step),
        on_cell_change=told("cell", on_cell),
        on_zoom_change=told("zoom", on_zoom),
        on_more_change=told("more", on_more),
    )
    # Takes no room on the page (style.css).
    with st.container(key=f"{key}_numbers"):
        _feed(key=f"{key}_feed", data=numbers)
