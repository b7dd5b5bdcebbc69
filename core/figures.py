"""Charts as Plotly figures, for notebooks and pages alike. Imported where a chart is drawn.

Figures are built from plain values without Plotly's checks, which cost more than all else; tests check them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.evaluation.comparison import UNDECIDED, Comparison
from core.results.series import SPLITS, ScoreLine, ScoresAgainst
from core.wording import percent, plural, spread_text, without_shared

Figure: TypeAlias = go.Figure

TEXT, MUTED, BORDER, BACKGROUND = "#31333e", "#7d858f", "#dfe2e7", "#fffffe"
"""The colours of text, of lesser text, of lines and of the page. Pages put their theme's in place."""
DIVERGING = ((0.0, "#0B4F8A"), (0.25, "#4A94C8"), (0.5, BACKGROUND), (0.75, "#DE7A5A"), (1.0, "#A6212B"))
"""Negative blue, positive red, neutral at zero."""
SERIES = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442"),
    *("#884422", "#AACC77", "#5500FF", "#AA55FF", "#5F6B73"),
)
"""Okabe and Ito's palette and five more colours that colour-blind readers tell from it and each other."""
RARE = "rarer labels"
"""The target of a forest that is drawn as a diamond: a mean over rarer labels, no task."""


class Chart:
    """The traces and the layout of a figure that is being made."""

    def __init__(self, height: int, **layout: Any) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {
            "xaxis": {},
            "yaxis": {},
            "height": height,
            "margin": {"l": 52, "r": 16, "t": 12, "b": 40},
            "showlegend": False,
            "hovermode": "closest",
            "template": {},
            **layout,
        }

    def add(self, kind: str, **trace: Any) -> None:
        """Add a trace of that kind: scatter, bar, heatmap."""
        self.data.append({"type": kind, **trace})

    def add_line(
        self, *, x: float | None = None, y: float | None = None, line: dict[str, Any], **settings: Any
    ) -> None:
        """Add a line through the whole chart, upright at x or level at y."""
        ends = (
            {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y, "yref": "y"}
            if x is None
            else {"x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
        )
        self.layout.setdefault("shapes", []).append({"type": "line", **ends, "line": line, **settings})

    def add_message(self, text: str) -> None:
        """Add a sentence in the middle, where there is no data. `text` must not come from a user."""
        font = {"color": MUTED, "size": 13}
        centre = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        self.layout["annotations"] = [{"text": text, **centre, "showarrow": False, "font": font}]

    def figure(self) -> Figure:
        """The figure."""
        return go.Figure(data=_known(self.data), layout=_known(self.layout), _validate=False)


def _known(value: Any) -> Any:
    """The value without the entries of its dictionaries that are None."""
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items() if part is not None}
    return [_known(part) for part in value] if isinstance(value, list | tuple) else value


def axis(title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis with its title in words."""
    return {
        "title": {"text": title, "standoff": 6, "font": {"size": 12, "color": MUTED}},
        "showline": False,
        "ticks": "",
        "showgrid": True,
        "gridwidth": 1,
        "gridcolor": BORDER,
        "zeroline": False,
        "automargin": True,
        "ticklabelstandoff": 4,  # the zeros of both axes stay apart
        "tickfont": {"size": 11, "color": MUTED},
        **settings,
    }


def named_axis(names: Sequence[str], size: int = 13, title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis with a name at each whole number."""
    values = list(range(len(names)))
    look = {"tickmode": "array", "tickvals": values, "ticktext": list(names), "showgrid": False}
    return axis(title, **look, **settings) | {"tickfont": {"size": size, "color": TEXT}}


def interval(
    values: Sequence[float], low: Sequence[float | None], high: Sequence[float | None], colour: str
) -> dict[str, Any]:
    """Error bars from these ends; none where an end is not known."""
    ends = (
        [0.0 if end is None else abs(end - value) for value, end in zip(values, known, strict=True)]
        for known in (high, low)
    )
    arrays = dict(zip(("array", "arrayminus"), ends, strict=True))
    return {"type": "data", "symmetric": False, **arrays, "color": colour, "thickness": 1.6, "width": 0}


def plotly_text(text: object) -> str:
    """User text inside a figure: Plotly reads a few HTML tags and `%{…}`, so neither may survive."""
    return " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace("%{", "%\u2060{")


def curves(metrics: pd.DataFrame, title: str) -> Figure:
    """One metric over the steps (columns run, task, step, value), a line for each run and task."""
    chart = Chart(400, showlegend=True, plot_bgcolor=BACKGROUND)
    for index, ((run, task), line) in enumerate(metrics.groupby(["run", "task"], sort=False)):
        chart.add(
            "scatter",
            x=line["step"].to_numpy(),
            y=line["value"].to_numpy(dtype=np.float32),
            mode="lines" if len(line) > 30 else "lines+markers",
            name=plotly_text(f"run {run}, {task}" if task else f"run {run}"),
            line={"color": SERIES[index % len(SERIES)], "width": 1.7},
        )
    chart.layout["xaxis"] = axis("step", showgrid=False)
    chart.layout["yaxis"] = axis(plotly_text(title))
    return chart.figure()


def matrix(correlations: pd.DataFrame) -> Figure:
    """A matrix of correlations as a heatmap from −1 to 1, with its rows and columns by name."""
    names = [plotly_text(name) for name in correlations.columns]
    chart = Chart(max(260, 120 + 26 * len(names)), margin={"l": 8, "r": 8, "t": 16, "b": 8})
    chart.add(
        "heatmap",
        z=correlations.to_numpy(dtype=np.float32),
        x=names,
        y=[plotly_text(name) for name in correlations.index],
        zmin=-1,
        zmax=1,
        colorscale=[list(stop) for stop in DIVERGING],
        hovertemplate="%{y}, %{x}: %{z:.2f}<extra></extra>",
    )
    chart.layout["xaxis"] = axis(showgrid=False)
    chart.layout["yaxis"] = axis(showgrid=False, autorange="reversed")
    return chart.figure()


@dataclass(frozen=True)
class Mark:
    """One difference in a forest plot, in points: its interval, the text under the pointer, its verdict."""

    row: int
    target: str
    points: float
    low: float | None
    high: float | None
    hover: str
    verdict: str

    @classmethod
    def from_comparison(cls, difference: Comparison, row: int, target: str, hover: str) -> Mark:
        """The mark of a comparison."""
        low, high = (100 * end for end in difference.interval) if difference.interval else (None, None)
        return cls(row, target, 100 * difference.mean, low, high, hover, difference.verdict)


@dataclass(frozen=True)
class Forest:
    """Differences from one reference: `rows` from the top, `targets` the tasks and means."""

    rows: tuple[str, ...]
    targets: tuple[str, ...]
    reference: str
    marks: tuple[Mark, ...]


_SHAPES = ("circle", "square", "triangle-up", "hexagon")
"""The marks of targets of one colour."""
_PANEL, _ONLY_PANEL, _GAP = 170, 330, 34
_WIDE = 10.0
"""From this ratio of the largest to the smallest value on an axis is logarithmic."""


def against_chart(view: ScoresAgainst, colours: Mapping[str, str], *, of_tasks: bool) -> Figure:
    """Mean scores and 95% intervals against a setting, of the tasks' mean or in a panel for each task.

    Filled and solid: test; hollow and dotted: dev. A line marks the value with the best dev score.
    """
    values, choice = list(view.series.runs), view.dev_choice
    tasks = view.tasks if of_tasks or len(view.tasks) == 1 else ("",)
    is_wide = values[0] > 0 and values[-1] >= _WIDE * values[0]
    inner = _ONLY_PANEL if len(tasks) == 1 else _PANEL * len(tasks)
    chart = Chart(
        inner + _LEGEND + 48,
        margin={"l": 8, "r": 16, "t": _LEGEND, "b": 48},
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
    )
    room = _GAP / inner
    for index, task in enumerate(tasks):
        panel = f"y{index + 1 if index else ''}"
        colour = colours.get(task, TEXT)
        for line in (
            line for split in SPLITS for line in view.lines if (line.task, line.split) == (task, split)
        ):
            _add_scores(chart, view, line, colour, yaxis=panel, showlegend=index == 0)
        top = 1 - index / len(tasks)
        title = f"{plotly_text(task) if task else 'Mean of tasks'}, %"
        chart.layout[f"yaxis{panel[1:]}"] = axis(
            title, domain=[top - 1 / len(tasks) + room * (index + 1 < len(tasks)), top], nticks=6
        )
    ticks = {
        "tickmode": "array",
        "tickvals": values,
        "ticktext": [view.series.value_text(at) for at in values],
    }
    scale = {"type": "log"} if is_wide else {}
    chart.layout["xaxis"] = axis(
        plotly_text(view.series.title), showgrid=False, anchor=panel, **ticks, **scale
    )
    if choice is not None:
        look = {"color": MUTED, "width": 1, "dash": "dash"}
        chart.add_line(x=choice, line=look, yref="paper", layer="below")
    return chart.figure()


def _add_scores(chart: Chart, view: ScoresAgainst, line: ScoreLine, colour: str, **settings: Any) -> None:
    means = list(line.points.values())
    points = [100 * of.mean for of in means]
    low, high = (
        [end and 100 * end for end in ends] for ends in zip(*((of.low, of.high) for of in means), strict=True)
    )
    is_dev = line.split == "dev"
    chart.add(
        "scatter",
        x=list(line.points),
        y=points,
        mode="lines+markers",
        name=line.split,
        line={"color": colour, "width": 1.4 if is_dev else 2, "dash": "dot" if is_dev else "solid"},
        marker={"size": 8, "symbol": "circle-open" if is_dev else "circle", "color": colour},
        error_y=interval(points, low, high, colour),
        text=[
            f"{plotly_text(line.task or 'mean of tasks')}, {line.split}, {plotly_text(view.series.title)} "
            f"{view.series.value_text(value)}: {percent(of.mean)} {spread_text(of.sd and 100 * of.sd)} "
            f"({plural(of.n, 'seed')})"
            for value, of in line.points.items()
        ],
        hovertemplate="%{text}<extra></extra>",
        **settings,
    )


_LEGEND = 30
# Longer names are set on two lines.
_LONG = 22


def forest_chart(view: Forest, colours: Mapping[str, str]) -> Figure:
    """Differences with 95% intervals: rows with a mark per target, filled if it is decided."""
    per_row = len(view.targets)
    height = 76 + _LEGEND + round(len(view.rows) * max(34, 15 * per_row + 10))
    chart = Chart(
        height,
        margin={"l": 8, "r": 12, "t": _LEGEND, "b": 44},
        showlegend=per_row > 1,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
    )
    chart.add_line(x=0, line={"color": MUTED, "width": 1})
    short = without_shared(view.targets)
    used: Counter[str] = Counter()
    for index, target in enumerate(view.targets):
        offset = 0.7 * ((index + 0.5) / per_row - 0.5)
        colour = colours.get(target, MUTED if target == RARE else TEXT)
        shape = "diamond" if target == RARE else _SHAPES[used[colour] % len(_SHAPES)]
        used[colour] += 1
        _add_target(chart, view, target, offset, name=short[target], colour=colour, shape=shape)
    chart.layout["xaxis"] = axis(
        f"Points gained over {plotly_text(view.reference)} (hollow: undecided)", tickformat="~g"
    )
    names = [wrapped(title) for title in view.rows]
    chart.layout["yaxis"] = named_axis(names, range=(len(names) - 0.5, -0.5))
    for line in range(1, len(view.rows)):
        chart.add_line(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart.figure()


def wrapped(title: str) -> str:
    """A name; a long one on two lines of similar length."""
    breaks = [found.start() for found in re.finditer(" [·−] ", title)]
    breaks = breaks or [found.end() for found in re.finditer("[-_./ ]", title)]
    if len(title) <= _LONG or not breaks:
        return plotly_text(title)
    middle = min(breaks, key=lambda position: abs(2 * position + 3 - len(title)))
    second = title[middle:].removeprefix(" · ").strip()
    return f"{plotly_text(title[:middle])}<br>{plotly_text(second)}"


def _add_target(
    chart: Chart, view: Forest, target: str, offset: float, *, name: str, colour: str, shape: str
) -> None:
    marks = [mark for mark in view.marks if mark.target == target]
    symbols = [f"{shape}-open" if mark.verdict in (UNDECIDED, "") else shape for mark in marks]
    chart.add(
        "scatter",
        x=[mark.points for mark in marks],
        y=[mark.row + offset for mark in marks],
        name=plotly_text(name),
        mode="markers",
        marker={"size": 9, "symbol": symbols, "color": colour, "line": {"width": 1.6, "color": colour}},
        error_x=interval(
            [mark.points for mark in marks],
            [mark.low for mark in marks],
            [mark.high for mark in marks],
            colour,
        ),
        text=[plotly_text(mark.hover) for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )
