"""Figures of results: a forest of differences, and scores against a number. Imported where one is drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.evaluation.comparison import UNDECIDED, Comparison
from core.evaluation.statistics import MeanSD
from core.figures import (
    BORDER,
    LEGEND_ON_TOP,
    MUTED,
    TEXT,
    Chart,
    Figure,
    axis,
    interval,
    named_axis,
    plotly_text,
    wrapped,
)
from core.results.choice import expected_best
from core.results.comparisons import FEW_TASKS, Difference
from core.results.series import SPLITS, ScoreLine, ScoresAgainst
from core.results.table import MEAN_OF_TASKS, ResultTable
from core.wording import percent, plural, signed_points, spread_text, without_shared

RARE = "rarer labels"
"""A target of a forest that is drawn as a diamond, as MEAN_OF_TASKS is: a mean over rarer labels, no task."""


@dataclass(frozen=True)
class Mark:
    """One difference in a forest plot, in points: its interval, the text under the pointer, its verdict.

    `text` is its verdict with its numbers, for a forest that writes them.
    """

    row: int
    target: str
    points: float
    low: float | None
    high: float | None
    hover: str
    verdict: str
    text: str = ""

    @classmethod
    def from_comparison(
        cls, difference: Comparison, row: int, target: str, hover: str, text: str = ""
    ) -> Mark:
        """The mark of a comparison."""
        low, high = (100 * end for end in difference.interval) if difference.interval else (None, None)
        return cls(row, target, 100 * difference.mean, low, high, hover, difference.verdict, text)


@dataclass(frozen=True)
class Forest:
    """Differences from one reference: `rows` from the top, `targets` the tasks and means."""

    rows: tuple[str, ...]
    targets: tuple[str, ...]
    reference: str
    marks: tuple[Mark, ...]


def forest_of(compared: Mapping[str, Sequence[Difference]], tasks: Sequence[str], reference: str) -> Forest:
    """A row for each comparison and a mark for each task; of many tasks a row for each of them."""
    with_score = {delta.task for deltas in compared.values() for delta in deltas}
    shown = tuple(task for task in (*tasks, MEAN_OF_TASKS) if task in with_score)
    names = tuple(compared)
    of_configurations = len(set(shown) - {MEAN_OF_TASKS}) <= FEW_TASKS
    marks = tuple(
        Mark.from_comparison(
            delta,
            row if of_configurations else shown.index(delta.task),
            delta.task if of_configurations else name,
            f"{name}, {delta.task}: {delta.sentence}",
            delta.sentence,
        )
        for row, (name, deltas) in enumerate(compared.items())
        for delta in deltas
    )
    rows, targets = (names, shown) if of_configurations else (tuple(_short(shown).values()), names)
    return Forest(rows, targets, reference, marks)


def _short(names: Sequence[str]) -> dict[str, str]:
    """Short names of tasks by name; the mean keeps its name, and shortens none."""
    tasks = without_shared([name for name in names if name != MEAN_OF_TASKS])
    return {name: tasks.get(name, name) for name in names}


def forest(differences: Sequence[Difference], table: ResultTable, baseline: str) -> Forest:
    """The differences of configurations on each task as a forest."""
    rows: dict[str, list[Difference]] = {}
    for delta in differences:
        rows.setdefault(delta.row.name, []).append(delta)
    return forest_of(rows, table.tasks, table.row(baseline).name)


_SHAPES = ("circle", "square", "triangle-up", "hexagon")
"""The marks of targets of one colour."""
_PANEL, _ONLY_PANEL, _GAP = 170, 330, 34
_WIDE = 10.0
"""From this ratio of the largest to the smallest value on an axis is logarithmic."""


def against_chart(
    view: ScoresAgainst, colours: Mapping[str, str], *, of_tasks: bool, differences: bool = False
) -> Figure:
    """Mean scores and 95% intervals against a setting, of the tasks' mean or in a panel for each task.

    Filled and solid: test; hollow, dotted and a little to the left: dev. A grey line is the baseline; an
    upright one marks the value with the best dev score. With `differences` the points are those from the
    baseline, paired by seed, and the line is at 0.
    """
    lines = view.differences if differences else view.lines
    values, choice = list(view.series.runs), view.dev_choice
    drawn = {line.task for line in lines}
    tasks = ("",) if "" in drawn and not of_tasks else tuple(task for task in view.tasks if task in drawn)
    is_wide = is_log(values)
    inner = _ONLY_PANEL if len(tasks) == 1 else _PANEL * len(tasks)
    chart = Chart(
        inner + _LEGEND + 48,
        margin={"l": 8, "r": 16, "t": _LEGEND, "b": 48},
        showlegend=True,
        legend=LEGEND_ON_TOP,
    )
    base = "" if view.baseline is None else view.baseline.name
    grey = () if differences or view.baseline is None or view.baseline.is_value else view.base_lines
    places = {"test": {value: value for value in values}, "dev": beside(values, -1)}
    room, panel = _GAP / inner, "y"
    for index, task in enumerate(tasks):
        panel = f"y{index + 1 if index else ''}"
        settings = {"yaxis": panel, "showlegend": index == 0}
        for of_base in (line for line in grey if line.task == task):
            _add_baseline(chart, base, of_base, **settings)
        for line in (line for split in SPLITS for line in lines if (line.task, line.split) == (task, split)):
            _add_scores(
                chart,
                view,
                line,
                colours.get(task, TEXT),
                places[line.split],
                less=base if differences else "",
                **settings,
            )
        if differences:
            chart.add_line(y=0, line={"color": MUTED, "width": 1.5}, yref=panel, xref="paper", layer="below")
        top, bottom = 1 - index / len(tasks), 1 - (index + 1) / len(tasks)
        title = f"{plotly_text(task) if task else 'Mean of tasks'}, {'points' if differences else '%'}"
        chart.layout[f"yaxis{panel[1:]}"] = axis(
            title,
            domain=[bottom + room * (index + 1 < len(tasks)), top],
            nticks=6,
            tickformat="+~g" if differences else None,
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


_ASIDE = 0.02
"""How far a line stands beside another, of the axis; never more than a third of the way to the next value."""


def is_log(values: Sequence[float]) -> bool:
    """Whether an axis of these values, in ascending order, is logarithmic."""
    return values[0] > 0 and values[-1] >= _WIDE * values[0]


def beside(values: Sequence[float], steps: float) -> dict[float, float]:
    """A place on the axis of these values so many steps to the right of each."""
    wide = is_log(values)
    at = [math.log10(value) for value in values] if wide else list(values)
    least = min((b - a for a, b in pairwise(at)), default=0.0)
    aside = steps * min(_ASIDE * (at[-1] - at[0]), least / 3)
    moved = [place + aside for place in at]
    return dict(zip(values, [10**place for place in moved] if wide else moved, strict=True))


def _add_baseline(chart: Chart, name: str, line: ScoreLine, **settings: Any) -> None:
    is_dev = line.split == "dev"
    chart.add(
        "scatter",
        x=list(line.points),
        y=[100 * point.mean for point in line.points.values()],
        mode="lines",
        name=f"{plotly_text(name)}, {line.split}",
        line={"color": MUTED, "width": 1.5, "dash": "dot" if is_dev else "solid"},
        text=[f"{plotly_text(name)}, {_point_text(line, point)}" for point in line.points.values()],
        hovertemplate="%{text}<extra></extra>",
        **settings,
    )


def _point_text(line: ScoreLine, point: MeanSD, *, is_difference: bool = False) -> str:
    value = signed_points(point.mean) if is_difference else percent(point.mean)
    if is_difference and point.sd and point.low is not None and point.high is not None:
        spread = f"[{signed_points(point.low)}, {signed_points(point.high)}]"
    else:
        spread = spread_text(point.sd and 100 * point.sd)
    task = plotly_text(line.task or "mean of tasks")
    return f"{task}, {line.split}: {value} {spread} ({plural(point.n, 'seed')})"


def _add_scores(
    chart: Chart,
    view: ScoresAgainst,
    line: ScoreLine,
    colour: str,
    places: Mapping[float, float],
    *,
    less: str,
    **settings: Any,
) -> None:
    means = list(line.points.values())
    points = [100 * of.mean for of in means]
    low, high = (
        [end and 100 * end for end in ends] for ends in zip(*((of.low, of.high) for of in means), strict=True)
    )
    is_dev = line.split == "dev"
    minus = f" less {plotly_text(less)}" if less else ""
    chart.add(
        "scatter",
        x=[places[value] for value in line.points],
        y=points,
        mode="lines+markers",
        name=f"{view.series.config.paradigm.upper()}, {line.split}",
        line={"color": colour, "width": 1.4 if is_dev else 2, "dash": "dot" if is_dev else "solid"},
        marker={"size": 8, "symbol": "circle-open" if is_dev else "circle", "color": colour},
        error_y=interval(points, low, high, colour),
        text=[
            f"{plotly_text(view.series.title)} {view.series.value_text(value)}{minus}, "
            f"{_point_text(line, point, is_difference=bool(less))}"
            for value, point in line.points.items()
        ],
        hovertemplate="%{text}<extra></extra>",
        **settings,
    )


_LEGEND = 30


def expected_best_chart(scores: Sequence[float]) -> Figure:
    """The expected best dev score against the number of candidates tried (`expected_best`)."""
    best = [100 * score for score in expected_best(scores)]
    tried = list(range(1, len(best) + 1))
    chart = Chart(220, margin={"l": 8, "r": 16, "t": 12, "b": 44})
    chart.add(
        "scatter",
        x=tried,
        y=best,
        mode="lines+markers",
        line={"color": TEXT, "width": 2},
        marker={"size": 7, "color": TEXT},
        text=[f"best of {count}: {score:.2f} expected" for count, score in zip(tried, best, strict=True)],
        hovertemplate="%{text}<extra></extra>",
    )
    whole = {"tickmode": "array", "tickvals": tried} if len(tried) <= _FEW_TICKS else {"nticks": _FEW_TICKS}
    chart.layout["xaxis"] = axis("candidates tried", showgrid=False, **whole)
    chart.layout["yaxis"] = axis("expected best dev score, %", nticks=5)
    return chart.figure()


_FEW_TICKS = 10


_NUMBERS, _LETTER = 26, 6.2
"""The height of a mark with its numbers in two lines, and the width of a letter of them."""


# Longer names are set on two lines.
def forest_chart(view: Forest, colours: Mapping[str, str], *, numbers: bool = False) -> Figure:
    """Differences with 95% intervals: rows with a mark per target, filled if it is decided.

    With `numbers` the text of each mark stands right of it, in a column.
    """
    per_row = len(view.targets)
    height = 76 + _LEGEND + round(len(view.rows) * max(34, (_NUMBERS if numbers else 15) * per_row + 10))
    right = max(_LETTER * len(mark.text) for mark in view.marks) + 16 if numbers else 12
    chart = Chart(
        height,
        margin={"l": 8, "r": round(right), "t": _LEGEND, "b": 44},
        showlegend=per_row > 1,
        legend=LEGEND_ON_TOP,
    )
    chart.add_line(x=0, line={"color": MUTED, "width": 1})
    short = _short(view.targets)
    used: Counter[str] = Counter()
    for index, target in enumerate(view.targets):
        offset = _offsets(per_row)[index]
        colour = colours.get(target, MUTED if target == RARE else TEXT)
        shape = "diamond" if target in (RARE, MEAN_OF_TASKS) else _SHAPES[used[colour] % len(_SHAPES)]
        used[colour] += 1
        _add_target(chart, view, target, offset, name=short[target], colour=colour, shape=shape)
    chart.layout["xaxis"] = axis(
        f"Points gained over {plotly_text(view.reference)} (hollow: undecided)", tickformat="~g"
    )
    names = [wrapped(title) for title in view.rows]
    chart.layout["yaxis"] = named_axis(names, range=(len(names) - 0.5, -0.5))
    if numbers:
        offsets = dict(zip(view.targets, _offsets(per_row), strict=True))
        chart.layout["annotations"] = [_numbers(mark, mark.row + offsets[mark.target]) for mark in view.marks]
    for line in range(1, len(view.rows)):
        chart.add_line(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart.figure()


def _offsets(count: int) -> list[float]:
    """The places of so many marks in a row of height 1, from above."""
    return [0.7 * ((index + 0.5) / count - 0.5) for index in range(count)]


def _numbers(mark: Mark, y: float) -> dict[str, Any]:
    """The text of a mark at the right end of its row; narrow charts set it in two lines (`chart.js`)."""
    return {
        "name": "numbers",
        "text": plotly_text(mark.text),
        "x": 1,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 10,
        "y": y,
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": TEXT},
    }


def _add_target(
    chart: Chart, view: Forest, target: str, offset: float, *, name: str, colour: str, shape: str
) -> None:
    # The legend has the look of the first mark: a filled one where there is one.
    marks = sorted(
        (mark for mark in view.marks if mark.target == target),
        key=lambda mark: mark.verdict in (UNDECIDED, ""),
    )
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
