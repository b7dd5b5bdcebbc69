"""A Plotly figure on the page that keeps its zoom while its data changes (docs/adr/0005-live-refresh.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import plotly.graph_objects as go
import streamlit as st

from dashboard.components.assets import plotly_url, read_asset

__all__ = ["Click", "Picture", "Zoom", "chart"]

_mount = st.components.v2.component(
    "mrnlab_chart", js=read_asset("plotly.js") + read_asset("chart.js"), isolate_styles=False
)


@dataclass(frozen=True)
class Click:
    """Where the reader clicked: the point's coordinates (numbers in all our charts) and its trace's index."""

    x: float
    y: float
    curve: int


@dataclass(frozen=True)
class Zoom:
    """Tells others of the part of x that a reader looks at: at once the charts of the same `group` on the
    page, then, by `changed`, the server (None: all of it). `window` is where a new `revision` begins.
    """

    group: str
    window: tuple[float, float] | None
    changed: Callable[[tuple[float, float] | None], None]


@dataclass(frozen=True)
class Picture:
    """A wish to save the chart as it stands, on white: `png` or `svg`. Each has an `id` of its own."""

    id: int
    format: str
    name: str


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    revision: str = "same",
    still: bool = False,
    square: bool = False,
    zoom: Zoom | None = None,
    picture: Picture | None = None,
) -> Click | None:
    """Draw the figure; returns the click that caused this run, if one did.

    Zoom and hidden traces are kept while `revision` stays the same: change it with the axes. `still`
    leaves out the toolbar, for charts too small to zoom. `square` makes it no higher than it is wide. `alt`
    says in a sentence what is shown.
    """

    def zoomed() -> None:
        told = st.session_state[key].get("zoomed")
        if zoom is not None and told is not None:
            ends = told["range"]
            zoom.changed((float(ends[0]), float(ends[1])) if ends else None)

    result = _mount(
        key=key,
        data={
            "figure": json.loads(figure.to_json()),  # as text within JSON it would be a quarter larger
            "plotly": plotly_url(),
            "height": int(figure.layout.height or 400),
            "revision": revision,
            "alt": alt,
            "still": still,
            "square": square,
            "filename": key,
            "zoom": zoom.group if zoom else None,
            "window": zoom.window if zoom else None,
            "log_x": figure.layout.xaxis.type == "log",
            "save": asdict(picture) if picture else None,
        },
        on_clicked_change=lambda: None,
        on_zoomed_change=zoomed,
    )
    clicked = result.clicked
    return Click(float(clicked["x"]), float(clicked["y"]), int(clicked["curve"])) if clicked else None
