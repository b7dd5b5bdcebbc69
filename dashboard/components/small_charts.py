"""Many small charts over one x, drawn by a script of ours: a hundred lines in a tenth of Plotly's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.components.assets import read_asset

__all__ = ["small_charts"]

_mount = st.components.v2.component(
    "mrnlab_small_charts",
    html='<div id="root"></div>',
    css=read_asset("small_charts.css"),
    js=read_asset("small_charts.js"),
)


def small_charts(
    charts: dict[str, Any],
    *,
    key: str,
    group: str,
    x_end: float,
    log_x: bool,
    log_y: bool,
    percent: bool,
    where: str,
    window: tuple[float, float] | None,
    enlarged: Callable[[str], None],
) -> bool:
    """Draw what `charts.curves.small_charts` gives. `enlarged` is told the task of a panel whose name was
    clicked, before the run that this causes; in that run it returns True.

    They follow the zoom of the large chart of the same `group`. `where` names the axis (`step`).
    """

    def clicked() -> None:
        task = st.session_state[key].get("enlarged")
        if task is not None:
            enlarged(str(task))

    result = _mount(
        key=key,
        data={
            **charts,
            "group": group,
            "x_end": x_end,
            "log_x": log_x,
            "log_y": log_y,
            "percent": percent,
            "where": where,
            "window": window,
        },
        on_enlarged_change=clicked,
    )
    return result.enlarged is not None
