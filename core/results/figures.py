"""Figures of results: a forest of differences, and scores against a number. Imported where one is drawn."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from typing import Any

from core.evaluation.buckets import FEATURE_HEADS
from core.evaluation.comparison import UNDECIDED, Comparison
from core.evaluation.statistics import MeanSD
from core.evaluation.where import BucketDifference
from core.figures import (
    BACKGROUND,
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
from core.results.where import Where
from core.wording import capitalised, p_text, percent, plural, signed_points, spread_text, without_shared

DECIDED, EXPLAINED = "decided", "explained by another bucket"
_VERDICT, _P, _SEEDS = "verdict", "p", "seeds"
RARE = "rarer labels"
"""A target of a forest that is drawn as a diamond, as MEAN_OF_TASKS is: a mean over rarer labels, no task."""


@dataclass(frozen=True)
class Mark:
    """One difference in a forest plot, in points: its interval, the text under the pointer, its verdict.

    `columns` has its verdict and its numbers by their heads, for a forest that writes them. `is_explained`:
    another row explains it, though it is decided.
    """

    row: int
    target: str
    points: float
    low: float | None
    high: float | None
    hover: str
    verdict: str
    columns: Mapping[str, str] = field(default_factory=dict)
    is_explained: bool = False

    @property
    def state(self) -> str:
        """What its filling says: DECIDED, EXPLAINED or UNDECIDED."""
        return UNDECIDED if self.verdict in (UNDECIDED, "") else EXPLAINED if self.is_explained else DECIDED

    @classmethod
    def from_comparison(cls, difference: Comparison, row: int, target: str, hover: str) -> Mark:
        """The mark of a comparison."""
        texts = (
            difference.verdict_text,
            signed_points(difference.mean),
            difference.interval_in_points,
            p_text(difference.p) if difference.interval else "",
            plural(difference.seeds, "seed"),
        )
        columns = dict(zip((_VERDICT, "difference", "95% interval", _P, _SEEDS), texts, strict=True))
        low, high = (100 * end for end in difference.interval) if difference.interval else (None, None)
        return cls(row, target, 100 * difference.mean, low, high, hover, difference.verdict, columns)


@dataclass(frozen=True)
class Forest:
    """Differences from one reference: `rows` from the top, `targets` the tasks and means.

    `heads` are the rows that have no marks, but head those that follow. `of_methods`: the targets are
    methods, whose names are not shortened.
    """

    rows: tuple[str, ...]
    targets: tuple[str, ...]
    reference: str
    marks: tuple[Mark, ...]
    heads: frozenset[int] = frozenset()
    of_methods: bool = False


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
        )
        for row, (name, deltas) in enumerate(compared.items())
        for delta in deltas
    )
    rows, targets = (names, shown) if of_configurations else (tuple(_short(shown).values()), names)
    return Forest(rows, targets, reference, marks)


def _short(names: Sequence[str]) -> dict[str, str]:
    """Short names of tasks by name; those of means are kept, and shorten none."""
    tasks = without_shared([name for name in names if name not in (MEAN_OF_TASKS, RARE)])
    return {name: tasks.get(name, name) for name in names}


def forest(differences: Sequence[Difference], table: ResultTable, baseline: str) -> Forest:
    """The differences of configurations on each task as a forest."""
    rows: dict[str, list[Difference]] = {}
    for delta in differences:
        rows.setdefault(delta.row.name, []).append(delta)
    return forest_of(rows, table.tasks, table.row(baseline).name)


def where_rows(apart: Where) -> list[BucketDifference | str]:
    """The rows of the forest of buckets from the top: a head for each feature, then its buckets."""
    rows: list[BucketDifference | str] = []
    for feature, of_feature in groupby(apart.buckets, key=lambda each: each.bucket.feature):
        rows += [FEATURE_HEADS.get(feature, capitalised(feature)), *of_feature]
    return rows


def where_forest(apart: Where, hover: Callable[[BucketDifference], str]) -> Forest:
    """The differences by bucket as a forest."""
    rows, marks = where_rows(apart), []
    for place, each in enumerate(rows):
        if isinstance(each, str):
            continue
        low, high = (100 * end for end in each.interval) if each.interval else (None, None)
        mark = Mark(place, apart.delta.task, 100 * each.paired.mean, low, high, hover(each), each.verdict)
        marks.append(replace(mark, is_explained=each.explained_by is not None))
    return Forest(
        tuple(each if isinstance(each, str) else each.bucket.name for each in rows),
        (apart.delta.task,),
        apart.delta.base.name,
        tuple(marks),
        frozenset(place for place, each in enumerate(rows) if isinstance(each, str)),
    )


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


_GROUPED = 26
"""The height of a row under a head: its name is short."""
_APART, _CLOSE = 15, 10
"""The height of a mark, and under heads, where rows are many."""
_HOVER = 90
"""The letters of a line under the pointer."""
_NUMBERS, _LETTER, _SMALL_LETTER = 26, 6.2, 4.7
"""The height of a mark with its numbers in two lines; the width of a letter in columns, and under marks."""


def forest_chart(view: Forest, colours: Mapping[str, str], *, numbers: bool = False) -> Figure:
    """Differences with 95% intervals: rows with a mark per target, filled if it is decided.

    With `numbers` those of each mark stand right of it, in columns; under it on a narrow page.
    """
    columns = _columns(view.marks) if numbers else {}
    widths = {
        head: _LETTER * max(len(text) for text in (head, *texts)) + 14 for head, texts in columns.items()
    }
    per_row = len(view.targets)
    names = [
        f"<b>{wrapped(title)}</b>" if place in view.heads else wrapped(title)
        for place, title in enumerate(view.rows)
    ]
    per_mark = _NUMBERS if numbers else _CLOSE if view.heads else _APART
    least = 34 if not view.heads or any("<br>" in name for name in names) else _GROUPED
    height = 76 + _LEGEND + len(view.rows) * max(least, per_mark * per_row + 10)
    right = sum(widths.values()) + 12
    chart = Chart(
        height,
        margin={"l": 8, "r": round(right), "t": _LEGEND, "b": 44},
        showlegend=per_row > 1 or bool(view.heads),
        legend=LEGEND_ON_TOP,
    )
    chart.add_line(x=0, line={"color": MUTED, "width": 1})
    short = {name: name for name in view.targets} if view.of_methods else _short(view.targets)
    used: Counter[str] = Counter()
    for index, target in enumerate(view.targets):
        offset = _offsets(per_row)[index]
        colour = colours.get(target, MUTED if target == RARE else TEXT)
        shape = "diamond" if target in (RARE, MEAN_OF_TASKS) else _SHAPES[used[colour] % len(_SHAPES)]
        used[colour] += 1
        _add_target(chart, view, target, offset, name=short[target], colour=colour, shape=shape)
    states = {mark.state for mark in view.marks}
    has_key = bool(view.heads) and per_row == 1
    if has_key:
        _add_key(chart, [state for state in (DECIDED, EXPLAINED, UNDECIDED) if state in states], colour)
    hollow = f" (hollow: {UNDECIDED})" * (UNDECIDED in states and not has_key)
    seeds = {mark.columns.get(_SEEDS, "") for mark in view.marks} if numbers else {""}
    of_all = f", {seeds.pop()}" if len(seeds) == 1 and "" not in seeds else ""
    title = f"Points gained over {plotly_text(view.reference)}{of_all}{hollow}"
    chart.layout["xaxis"] = axis(title, tickformat="~g")
    chart.layout["yaxis"] = named_axis(names, range=(len(names) - 0.5, -0.5))
    if numbers:
        offsets = dict(zip(view.targets, _offsets(per_row), strict=True))
        places = [mark.row + offsets[mark.target] for mark in view.marks]
        chart.layout["annotations"] = [
            *_numbers(columns, widths, places),
            *_below(view.marks, columns, places),
        ]
    for line in sorted(view.heads) or range(len(view.rows)):
        if line == 0:
            continue
        chart.add_line(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart.figure()


def _offsets(count: int) -> list[float]:
    """The places of so many marks in a row of height 1, from above."""
    return [0.7 * ((index + 0.5) / count - 0.5) for index in range(count)]


def _columns(marks: Sequence[Mark]) -> dict[str, list[str]]:
    """The numbers of the marks by head; verdicts and seeds only where they differ."""
    columns = {head: [mark.columns[head] for mark in marks] for head in marks[0].columns}
    return {
        head: texts
        for head, texts in columns.items()
        if head not in (_VERDICT, _SEEDS) or len(set(texts)) > 1
    }


def _numbers(
    columns: Mapping[str, Sequence[str]], widths: Mapping[str, float], places: Sequence[float]
) -> list[dict[str, Any]]:
    """The columns right of the chart under their heads, aligned at their right; none on a narrow page."""
    look = {"name": "numbers", "x": 1, "xref": "paper", "xanchor": "right", "showarrow": False}
    made = []
    for (head, texts), end in zip(columns.items(), accumulate(widths.values()), strict=True):
        of_column = look | {"xshift": round(end)}
        top = {"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 6}
        made.append(of_column | top | {"text": head, "font": {"size": 12, "color": MUTED}})
        made += [
            of_column | {"text": plotly_text(text), "y": y, "font": {"size": 12, "color": TEXT}}
            for text, y in zip(texts, places, strict=True)
        ]
    return made


def _below(
    marks: Sequence[Mark], columns: Mapping[str, Sequence[str]], places: Sequence[float]
) -> list[dict[str, Any]]:
    """The numbers under each mark, which `chart.js` shows on a narrow page instead of the columns.

    Of a mark at the left they go to its right, of one at the right to its left: they stay in the chart.
    """
    ends = [0.0, *(end for mark in marks for end in (mark.points, mark.low, mark.high) if end is not None)]
    least, width = min(ends), max(ends) - min(ends) or 1.0
    made = []
    for mark, y, *texts in zip(marks, places, *columns.values(), strict=True):
        by_head = dict(zip(columns, texts, strict=True))
        p = by_head[_P]
        # Without the head of its column p needs its name.
        by_head[_P] = p and f"p {p if p.startswith('<') else f'= {p}'}"
        text = " ".join(filter(None, by_head.values()))
        left_of_mark = (mark.points - least) / width * _SMALL_LETTER * len(text)
        made.append(
            {
                "name": "below",
                "visible": False,
                "text": plotly_text(text),
                "bgcolor": BACKGROUND,
                "borderpad": 0,
                "x": mark.points,
                "xanchor": "left",
                "xshift": -round(left_of_mark),
                "y": y,
                "yshift": -15,
                "showarrow": False,
                "font": {"size": 11, "color": TEXT},
            }
        )
    return made


def _add_key(chart: Chart, states: Sequence[str], colour: str) -> None:
    """Adds what the fillings of marks say to the legend: their states."""
    for state in states:
        symbol, filling = (
            "circle-open" if state == UNDECIDED else "circle",
            MUTED if state == EXPLAINED else colour,
        )
        marker = {"size": _mark_size(state), "symbol": symbol, "color": filling}
        marker |= {"line": {"width": 1.6, "color": MUTED if state == EXPLAINED else colour}}
        chart.add("scatter", x=[None], y=[None], name=state, mode="markers", marker=marker)
    chart.layout["legend"] = LEGEND_ON_TOP | {"itemclick": False, "itemdoubleclick": False}


def _mark_size(state: str) -> int:
    """What another row explains is small, and so told from what is decided by more than its colour."""
    return 6 if state == EXPLAINED else 9


def _add_target(
    chart: Chart, view: Forest, target: str, offset: float, *, name: str, colour: str, shape: str
) -> None:
    # The legend has the look of the first mark: a filled one where there is one.
    marks = sorted(
        (mark for mark in view.marks if mark.target == target), key=lambda mark: mark.state == UNDECIDED
    )
    symbols = [f"{shape}-open" if mark.state == UNDECIDED else shape for mark in marks]
    fillings: Any = [MUTED if mark.state == EXPLAINED else colour for mark in marks] if view.heads else colour
    marker = {"size": 9, "symbol": symbols, "color": fillings, "line": {"width": 1.6, "color": fillings}}
    if view.heads:
        # Plotly draws marks of several sizes at 0.7 unless it is told otherwise.
        marker |= {"size": [_mark_size(mark.state) for mark in marks], "opacity": 1}
    chart.add(
        "scatter",
        x=[mark.points for mark in marks],
        y=[mark.row + offset for mark in marks],
        name=plotly_text(name),
        showlegend=len(view.targets) > 1,
        mode="markers",
        marker=marker,
        error_x=interval(
            [mark.points for mark in marks],
            [mark.low for mark in marks],
            [mark.high for mark in marks],
            colour,
        ),
        text=["<br>".join(textwrap.wrap(plotly_text(mark.hover), _HOVER)) for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )
