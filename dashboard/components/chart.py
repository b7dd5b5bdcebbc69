"""A Plotly figure on the page that keeps its zoom while its data changes (docs/adr/0005-live-refresh.md)."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from dashboard.components.assets import plotly_url, read_asset

__all__ = ["Click", "chart"]

_mount = st.components.v2.component(
    "mrnlab_chart", js=read_asset("plotly.js") + read_asset("chart.js"), isolate_styles=False
)


@dataclass(frozen=True)
class Click:
    """Where the reader clicked: the point's coordinates (numbers in all our charts) and its trace's index."""

    x: float
    y: float
    curve: int


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    revision: str = "same",
    still: bool = False,
    square: bool = False,
) -> Click | None:
    """Draw the figure; returns the click that caused this run, if one did.

    Zoom and hidden traces are kept while `revision` stays the same: change it with the axes. `still`
    leaves out the toolbar, for charts too small to zoom. `square` makes it no higher than it is wide. `alt`
    says in a sentence what is shown.
    """
    url = plotly_url()
    if url is None:
        # A read-only installation: the chart is the same, but a live update resets its zoom.
        st.plotly_chart(figure, key=key, alt=alt, config={"displaylogo": False})
        return None
    result = _mount(
        key=key,
        data={
            "figure": figure.to_json(),
            "plotly": url,
            "height": int(figure.layout.height or 400),
            "revision": revision,
            "alt": alt,
            "still": still,
            "square": square,
            "filename": key,
        },
        on_clicked_change=lambda: None,
    )
    clicked = result.clicked
    return Click(float(clicked["x"]), float(clicked["y"]), int(clicked["curve"])) if clicked else None
