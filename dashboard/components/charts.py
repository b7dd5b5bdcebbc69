"""The files that the components are made of, and where the browser finds Plotly's script.

Of Plotly's bundles it is the one of cartesian charts, a third of the whole, which the Python package carries:
the browser has read it four times as fast, and it draws all that our pages draw. It is the file of the npm
package plotly.js-cartesian-dist-min as it is, under its MIT licence, beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go
import streamlit as st

_PLOTLY = "plotly-cartesian-4.1.1.min.js"


def read_asset(name: str) -> str:
    """The text of a script or style sheet beside this file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def plotly_url() -> str:
    """Where the browser finds Plotly, relative to the page: Streamlit serves `dashboard/static` there."""
    return f"app/static/{_PLOTLY}"


# A Plotly figure on the page that keeps its zoom while its data changes (docs/adr/0005-live-refresh.md).


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


# The legend of a chart as a table: a row shows or hides its line, its name marks it.


_mount_legend = st.components.v2.component(
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

    _mount_legend(
        key=key,
        data={"columns": list(columns), "rows": [asdict(row) for row in rows]},
        on_changed_change=clicked,
    )


# Many small charts over one x, drawn by a script of ours: a hundred lines in a tenth of Plotly's time.


_mount_small_charts = st.components.v2.component(
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

    result = _mount_small_charts(
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


# A line without axes, drawn by a script of ours: the chart of st.metric warns of infinite extents.


_mount_sparkline = st.components.v2.component(
    "mrnlab_sparkline",
    html='<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img"><polyline /></svg>',
    css=read_asset("sparkline.css"),
    js=read_asset("sparkline.js"),
)


def sparkline(values: Sequence[float], *, key: str, alt: str) -> None:
    """Draw the values from left to right, as high as they differ. `alt` says what they are."""
    _mount_sparkline(key=key, data={"values": list(values), "alt": alt})
