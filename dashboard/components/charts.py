"""Components that draw charts: Plotly figures, their legend, the matrix player.

Of Plotly's bundles it is the one of cartesian charts, a third of the whole: the browser has read it four
times as fast, and it draws all that our pages draw. It is the file of the npm package
plotly.js-cartesian-dist-min as it is, under its MIT licence, beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st

from core.figures import BACKGROUND, BORDER, MUTED, TEXT, Figure
from dashboard import theme

_PLOTLY = "plotly-cartesian-4.1.1.min.js"


Event = Mapping[str, Any]
Mount = Callable[..., Any]
"""Draws a component: `key`, `data`, and `on`, by event what is called with what it carries."""
_NO_EVENTS: Mapping[str, Callable[[Any], None]] = {}


def read_asset(name: str) -> str:
    """The text of a script or style sheet in this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """The named scripts as one text, after the code that all components share.

    Streamlit sends it with every update of every chart, so it has no indentation and no lines of comments.
    """
    lines = map(str.strip, "".join(map(read_asset, ("marks.js", *names))).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def plotly_url() -> str:
    """Returns the address of Plotly relative to the page: Streamlit serves `dashboard/static` there."""
    return f"app/static/{_PLOTLY}"


def component_key(key: str) -> str:
    """The unique key under which Streamlit keeps a component; `key` may contain names of users.
    It holds no `__`, which Streamlit puts between a key and the name of an event.
    """
    # Single underscores between other characters stay, as our own keys have them.
    return re.sub("%|(?<![^_])_|_(?![^_])", lambda found: f"%{ord(found[0]):X}", key)


def component(
    name: str,
    *helpers: str,
    html: str | None = '<div id="root"></div>',
    style: str = "",
    key: str = "",
    **look: Any,
) -> Mount:
    """Declares the component of NAME.js, after these helping scripts, and of NAME.css or another style.

    The result is called at each place where a page draws it. `key` tells components of one script apart.
    """
    css = read_asset("common.css") * look.get("isolate_styles", True) + read_asset(f"{style or name}.css")
    js = script(*helpers, f"{name}.js")
    mount: Any = st.components.v2.component(f"mrnlab_{key or name}", html=html, css=css, js=js, **look)

    def draw(
        *, key: str, data: Any, on: Mapping[str, Callable[[Any], None]] = _NO_EVENTS, **look: Any
    ) -> Any:
        key = component_key(key)
        callbacks = {f"on_{event}_change": partial(_call, key, event, then) for event, then in on.items()}
        return mount(key=key, data=data, **callbacks, **look)

    return draw


def _call(key: str, name: str, then: Callable[[Any], None]) -> None:
    """Passes the value of the component's event to `then`, if there is one."""
    value = st.session_state[key].get(name)
    if value is not None:
        then(value)


_ICON = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{}" /></svg>'
_SPEEDS = "".join(f'<option value="{x}"{" selected" * (x == 1)}>{x}×</option>' for x in (0.5, 1, 2, 4))
MATRIX = f"""
<div id="root">
  <div class="bar" hidden>
    <div class="group">
      <button type="button" class="icon play" title="Play" aria-label="Play">
        {_ICON.format("M8 5v14l11-7z")}</button>
      <button type="button" class="icon back" title="One step back" aria-label="One step back">
        {_ICON.format("M15 6l-6 6 6 6z")}</button>
      <button type="button" class="icon on" title="One step on" aria-label="One step on">
        {_ICON.format("M9 6l6 6-6 6z")}</button>
    </div>
    <input type="range" min="0" step="1" aria-label="Training step">
    <output></output>
    <select aria-label="Speed">{_SPEEDS}</select>
  </div>
  <div class="loading">Reading the matrices …</div>
  <div class="stage" tabindex="0" role="application"><canvas></canvas><svg role="img"></svg></div>
  <div class="foot">
    <button type="button" class="whole" hidden>Whole matrix</button>
    <span class="note"></span>
    <span class="saves">
      <button type="button" class="save" value="csv"
        title="Save the numbers at this step as comma-separated values">CSV</button>
      <button type="button" class="save" value="png" title="Save the picture at this step as PNG">PNG</button>
      <button type="button" class="save" value="svg" title="Save the picture at this step as SVG">SVG</button>
    </span>
  </div>
  <div class="tip" hidden></div>
  <div class="unseen" aria-live="polite"></div>
</div>
"""
_mount_chart = component("chart", html=None, isolate_styles=False)
_mount_legend = component("curve_legend", html='<div id="root" class="legend" tabindex="-1"></div>')
MATRIX_HELPERS = ("picture.js", "matrix_picture.js", "matrix_numbers.js")
_mount_matrix = component("matrix", *MATRIX_HELPERS, html=MATRIX)
_mount_matrix_feed = component("matrix_feed", "matrix_numbers.js", html=None, style="matrix")


@dataclass(frozen=True)
class Click:
    """A click: the coordinates of the point (numbers in all our charts) and the index of its trace."""

    x: float
    y: float
    curve: int


@dataclass(frozen=True)
class Zoom:
    """The visible part of x, shared by the charts of a `group` on the page.
    The server gets it through `changed` (None: all of it). A new `revision` begins with `window`.
    """

    group: str
    window: tuple[float, float] | None
    changed: Callable[[tuple[float, float] | None], None]


@dataclass(frozen=True)
class Picture:
    """A request to save the chart as it is drawn, on white: `png` or `svg`. Each has a unique `id`."""

    id: int
    format: str
    name: str


_THEMED = {TEXT: theme.TEXT, MUTED: theme.MUTED, BORDER: theme.BORDER, BACKGROUND: theme.BACKGROUND}


def themed_json(figure: Figure) -> str:
    """The figure as JSON, with the theme's colours instead of the colours for notebooks."""
    text: str = figure.to_json(validate=False)
    for colour, of_theme in _THEMED.items():
        text = text.replace(f'"{colour}"', f'"{of_theme}"')
    return text


def chart(
    figure: Figure,
    *,
    key: str,
    alt: str,
    revision: str = "same",
    still: bool = False,
    zoom: Zoom | None = None,
    picture: Picture | None = None,
) -> Click | None:
    """Draw the figure; returns the click that caused this run, if one did (docs/adr/0005-live-refresh.md).

    Zoom and hidden traces are kept while `revision` stays the same: change it with the axes. `still`
    leaves out the toolbar, for charts too small to zoom. `alt` says in a sentence what is shown.
    """

    def zoomed(event: Event) -> None:
        ends = event["range"]
        if zoom is not None:
            zoom.changed((float(ends[0]), float(ends[1])) if ends else None)

    result = _mount_chart(
        key=key,
        data={
            "figure": themed_json(figure),
            "height": figure.layout.height,
            "revision": revision,
            "alt": alt,
            "still": still,
            "filename": key,
            "zoom": zoom.group if zoom else None,
            "window": zoom.window if zoom else None,
            "save": asdict(picture) if picture else None,
        },
        on={"clicked": lambda _: None, "zoomed": zoomed},
    )
    clicked = result.clicked
    return Click(float(clicked["x"]), float(clicked["y"]), int(clicked["curve"])) if clicked else None


@dataclass(frozen=True)
class LegendRow:
    """A configuration or one of its runs: its name, and a text for each further column.
    A configuration also has its colour and `dash` (as in Plotly), its folded runs, and a text under the
    pointer.
    """

    key: str
    name: str
    hidden: bool
    cells: tuple[str, ...]
    colour: str = ""
    dash: str = ""
    runs: tuple[LegendRow, ...] = ()
    title: str = ""


def curve_legend(
    rows: Sequence[LegendRow],
    columns: Sequence[str],
    *,
    runs_drawn: bool,
    key: str,
    changed: Callable[[list[str]], None],
) -> None:
    """Draws the legend of all charts of a page as a table.
    A configuration shows or hides its lines, a run its line if `runs_drawn`. `changed` gets the hidden keys.

    Plotly's own legend has no columns (states, seeds, last and best values), folds no runs, hides lines in
    one chart alone, and does not report what is hidden, which the address keeps.
    """
    _mount_legend(
        key=key,
        data={"columns": list(columns), "rows": [asdict(row) for row in rows], "runsDrawn": runs_drawn},
        on={"hidden": lambda keys: changed([str(row) for row in keys])},
    )


def matrix_player(
    frame: Mapping[str, Any], numbers: bytes, *, key: str, on: Mapping[str, Callable[[Event], None]]
) -> None:
    """Draws the player of matrices over training (docs/adr/0009-matrix-player.md).

    `frame` and `numbers` are `player_frame` and `player_numbers` of `dashboard.relations.charts`, with the
    same id.

    Called back, before the part runs again: `step` with the step looked at (None follows the newest), `cell`
    with the row and column of a clicked cell, `zoom` with the corner of the part to show (or `whole`), both
    in the order drawn.
    """
    _mount_matrix(key=key, data=frame, on=on)
    # Takes no room on the page (style.css).
    with st.container(key=f"{key}_numbers"):
        _mount_matrix_feed(key=f"{key}_feed", data=numbers)
