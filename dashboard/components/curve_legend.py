"""The legend of a chart as a table: a row shows or hides its line, its name marks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from dashboard.components.assets import read_asset

__all__ = ["LegendRow", "curve_legend"]

_mount = st.components.v2.component(
    "mrnlab_curve_legend",
    html='<div id="root" tabindex="-1"></div>',
    css=read_asset("curve_legend.css"),
    js=read_asset("curve_legend.js"),
)


@dataclass(frozen=True)
class LegendRow:
    """A line: how it is drawn (`dash` as Plotly says it), its name, and a text per column after it."""

    key: str
    name: str
    colour: str
    dash: str
    hidden: bool
    marked: bool
    cells: tuple[str, ...]


def curve_legend(
    rows: Sequence[LegendRow],
    columns: Sequence[str],
    *,
    key: str,
    changed: Callable[[list[str], str | None], None],
) -> None:
    """Draw the table. `changed` is told the keys of the hidden rows and of the marked one (or None)."""

    def clicked() -> None:
        told = st.session_state[key].get("changed")
        if told is not None:
            changed([str(one) for one in told["hidden"]], told["marked"])

    _mount(
        key=key,
        data={"columns": list(columns), "rows": [asdict(row) for row in rows]},
        on_changed_change=clicked,
    )
