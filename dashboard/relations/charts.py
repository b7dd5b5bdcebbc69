"""The data that the browser draws on Relations: the player's names and numbers, a pair's line.

The player gets everything but the numbers as JSON, and the numbers as bytes (docs/adr/0009-matrix-player.md).
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.relation_verdicts import (
    BOUND,
    NEGLIGIBLE,
    OPPOSED,
    RELATED,
    UNDECIDED,
    CellVerdict,
    RelationVerdicts,
)
from core.figures import LEGEND_ON_TOP, Chart, Figure, axis, band, interval, plotly_text
from core.mrn.relations import stretches
from core.results.figures import beside, is_log
from core.results.series import Series
from core.wording import spread_text, without_shared
from dashboard.relations.matrices import Axis, Picture
from dashboard.relations.views import (
    AlignedSteps,
    Floats,
    in_words,
    interval_text,
    label_of,
    row_meanings,
    signed,
)
from dashboard.theme import BORDER, MATRIX_SCALE, MUTED, TEXT, faint

_SEED = "#8A939B"
_WORD = re.compile(r"[^\W_]|[%&@]")
_MANY_STEPS = 30
_ROOM = 0.03
"""So far a line may go beyond the last number of its axis."""
_LEGEND = LEGEND_ON_TOP | {"y": 1.02, "font": {"size": 12, "color": TEXT}}


def player_numbers(picture: Picture, name: str, identity: str) -> bytes:
    """All matrices at all steps as bytes.
    They are the length of a JSON header (little-endian), the header, the last step of each panel, and
    deflated all steps: of each panel integers of the first, then what each step adds to the one before it.
    A panel's variances follow its integers, in float32.

    The largest integer stands for the panel's limit, the smallest for NaN. A correlation is off by at most
    1/65,534, a mean of a block of features by 1/254. Of symmetric matrices the upper triangle is sent.
    """
    dtype = np.dtype("<i2" if picture.rows.block == picture.columns.block == 1 else "<i1")
    last, blobs, panels, offset = [], [], [], 0
    for panel in picture.panels:
        steps, rows, columns = panel.values.shape
        symmetric = picture.rows == picture.columns
        values = panel.values[:, *np.triu_indices(rows)] if symmetric else panel.values.reshape(steps, -1)
        integers = _integers(values, panel.limit, dtype)
        last += [integers[-1].tobytes(), panel.variances[-1:].astype("<f4").tobytes()]
        integers[1:] -= integers[:-1]  # wraps around, and back in the browser
        blob = integers.tobytes()
        spread = panel.variances.astype("<f4").tobytes()
        panels.append(
            {"bits": 8 * dtype.itemsize, "limit": panel.limit, "rows": rows, "columns": columns}
            | {"steps": steps, "size": values.shape[1], "triangle": symmetric}
            | {"offset": offset, "bytes": len(blob), "variances": len(spread)}
        )
        blobs += [blob, spread]
        offset += len(blob) + len(spread)
    header = json.dumps({"name": name, "id": identity, "panels": panels}).encode()
    return struct.pack("<I", len(header)) + b"".join([header, *last, zlib.compress(b"".join(blobs))])


def _integers(values: Floats, limit: float, dtype: np.dtype[Any]) -> NDArray[np.signedinteger[Any]]:
    info = np.iinfo(dtype)
    finite = np.isfinite(values)
    scaled = np.rint(np.clip(np.where(finite, values, 0) / limit, -1, 1) * info.max)
    return np.asarray(np.where(finite, scaled, info.min).astype(dtype))


def player_frame(
    picture: Picture, steps: AlignedSteps, colours: Mapping[str, str], *, blocks: bool
) -> dict[str, Any]:
    """The player's data without its numbers. `colours` are the tasks'.
    `blocks`: rows of the same tasks are neighbours, so their blocks get borders and names.
    """
    mode, rows, columns = picture.mode, picture.rows, picture.columns
    named = mode != "feature" or blocks or rows.block == columns.block == 1
    blocks = blocks and mode == "label"
    edges = [top for top, _ in stretches(rows.rows.owners) if top] if blocks and rows == columns else []
    owners = {task for tasks in (*rows.rows.owners, *columns.rows.owners) for task in tasks}
    legend = [{"name": task, "colour": colours[task]} for task in colours if task in owners]
    panels = [
        {
            "title": panel.title,
            "note": panel.note,
            "scale": panel.scale,
            "limit": panel.limit,
            "impossible": [[b.top, b.bottom, b.left, b.right] for b in panel.impossible],
            "variances": bool(panel.variances.size),
            "verdicts": None if panel.verdicts is None else verdict_codes(panel.verdicts),
            # Where all runs have the same steps, the slider tells them.
            "steps": [] if steps.exact else list(panel.steps),
        }
        for panel in picture.panels
    ]
    return {
        "mode": mode,
        "named": named,
        "stretches": blocks,
        "edges": edges,
        "rows": _axis(rows, mode, colours) | {"legend": legend if mode == "label" else []},
        "columns": _axis(columns, mode, colours),
        "panels": panels,
        "steps": list(steps.steps),
        "shares": [round(share, 4) for share in steps.shares],
        "most_variance": max(
            float(np.nan_to_num(p.variances, posinf=0).max(initial=1)) for p in picture.panels
        ),
        "scale": MATRIX_SCALE,
    }


CODES = {UNDECIDED: "1", RELATED: "2", OPPOSED: "3", NEGLIGIBLE: "4"}
UNTESTED, _DIAGONAL, COUNTED = "0", "5", "6"
"""Cells without a verdict; related cells that the alignment alone relates as far."""


def verdict_codes(verdicts: RelationVerdicts) -> dict[str, Any]:
    """The verdicts as the player reads them, of the upper triangle with the diagonal, row by row.

    A character a cell, and the bounds of the interval in thousandths, None where there are none.
    """
    upper = np.triu_indices(len(verdicts.mean))
    tested, shown = verdicts.tested[upper], np.where(verdicts.tested, 1.0, np.nan)
    words = np.array([CODES[str(word)] for word in verdicts.verdict[upper]], dtype="<U1")
    codes = np.where(upper[0] == upper[1], _DIAGONAL, np.where(tested, words, UNTESTED))
    bounds: dict[str, list[int | None]] = {
        side: [round(1000 * end) if math.isfinite(end) else None for end in (bound * shown)[upper].tolist()]
        for side, bound in (("low", verdicts.low), ("high", verdicts.high))
    }
    return {"codes": "".join(codes.tolist()), **bounds}


def with_counted(
    frame: dict[str, Any], counted: NDArray[np.bool_], order: NDArray[np.int64]
) -> dict[str, Any]:
    """The player's data in which related cells that are `counted` (n, n) have a mark of their own.

    The first matrix of the frame has the shared rows in this order.
    """
    first, *others = frame["panels"]
    if first["verdicts"] is None or not counted.any():
        return frame
    codes = np.array(list(first["verdicts"]["codes"]))
    codes[counted[np.ix_(order, order)][np.triu_indices(len(counted))]] = COUNTED
    verdicts = first["verdicts"] | {"codes": "".join(codes.tolist())}
    return frame | {"panels": [first | {"verdicts": verdicts}, *others]}


def _axis(drawn: Axis, mode: str, colours: Mapping[str, str]) -> dict[str, Any]:
    names, owners = drawn.rows.names, drawn.rows.owners
    # Within the block of its task a label needs no task's name before it.
    short = [
        label_of(name, tasks) if mode == "label" else name for name, tasks in zip(names, owners, strict=True)
    ]
    meanings = row_meanings(drawn.rows) if mode == "label" else {}
    if mode == "label":  # other marks alone are specks without quotation marks
        short = [text if _WORD.search(text := in_words(name)) else f"“{name}”" for name in short]
    if mode == "task":
        short = list(without_shared(names).values())
    short_tasks = without_shared(list(dict.fromkeys(task for tasks in owners for task in tasks)))
    groups = [
        " + ".join(short_tasks[task] for task in tasks) if len(tasks) <= 2 else f"{len(tasks)} tasks"
        for tasks in owners
    ]
    shades = [colours.get(tasks[0], MUTED) if len(tasks) == 1 else MUTED if tasks else "" for tasks in owners]
    return {
        "names": list(names),
        # A block of features is named after its first.
        "short": [name.split(" …")[0].removeprefix("feature ") for name in short]
        if mode == "feature"
        else short,
        "meanings": [meanings.get(name, "") for name in names],
        "groups": groups,
        "colours": shades,
        "stretches": [[top, bottom, groups[top], shades[top]] for top, bottom in stretches(owners)],
        "block": drawn.block,
        "start": drawn.start,
        "stop": drawn.stop,
    }


@dataclass(frozen=True)
class Course:
    """A line over training: `values` (k,) at x (k,), their mean over seeds.

    `seeds` (s, k) are drawn as thin lines, and `spread` (k,) as a band, where they are not empty.
    """

    name: str
    colour: str
    x: NDArray[Any]
    values: Floats
    spread: Floats = field(default_factory=lambda: np.empty(0))
    seeds: Floats = field(default_factory=lambda: np.empty((0, 0)))


def course_chart(
    courses: Sequence[Course],
    at: int,
    height: int,
    *,
    by_share: bool = False,
    legend: bool = True,
    bound: bool = False,
    alone: float | None = None,
    measure: str = "Correlation",
) -> Figure:
    """Correlations over training, or what the `measure` names, with the position that is shown.
    `by_share`: over the share of training, for runs of other steps. `legend`: names of lines.
    `bound`: with that of the verdicts, dotted. `alone`: the correlation that the alignment gives, dashed.
    """
    named = legend and len(courses) > 1
    chart = Chart(height, margin={"l": 62, "r": 12, "t": 26 if named else 8, "b": 44}, showlegend=named)
    chart.add_line(x=float(courses[0].x[at]), line={"color": BORDER, "width": 6}, layer="below")
    unit = "%{x}% of training" if by_share else "step %{x:,}"
    for course in courses:
        name, x = plotly_text(course.name), course.x.astype(np.float32)
        if course.spread.size:
            low, high = ((course.values + side * course.spread).clip(-1, 1) for side in (-1, 1))
            shade = faint(_SEED, 0.25) if len(courses) == 1 else faint(course.colour, 0.1)
            chart.add("scatter", **band(course.x, low, high, shade), showlegend=False)
        for seed in course.seeds:
            chart.add(
                "scatter", x=x, y=seed.astype(np.float32), mode="lines", showlegend=False, hoverinfo="skip",
                line={"color": MUTED, "width": 1},
            )  # fmt: skip
        sds = course.spread if course.spread.size else np.full(len(x), np.nan)
        chart.add(
            "scatter",
            x=x,
            y=course.values.astype(np.float32),
            text=[
                f"{signed(value, 3)} {spread_text(sd, 3)}"
                for value, sd in zip(course.values, sds, strict=True)
            ],
            mode="lines" if len(x) > _MANY_STEPS else "lines+markers",
            name=name,
            line={"color": course.colour, "width": 2.4},
            marker={"size": 5, "color": course.colour},
            hovertemplate=f"{name}, {unit}: %{{text}}<extra></extra>",
        )
    spreads = [(each.values - each.spread, each.values + each.spread) for each in courses if each.spread.size]
    drawn = [*(each.values for each in courses), *(end for of in spreads for end in of)]
    if alone is not None:
        _add_level(chart, alone, f"alignment alone: {signed(alone)}", "dash", drawn)
        drawn.append(np.array([alone]))
    bottom, top, step = _range(drawn)
    if bottom <= 0 <= top:
        chart.add_line(y=0, line={"color": MUTED, "width": 1})
        for edge in (BOUND, -BOUND) if bound else ():
            if bottom <= edge <= top:
                side, counts = ("above", RELATED) if edge > 0 else ("below", OPPOSED)
                _add_level(chart, edge, f"{side} {signed(edge, 1)}: counts as {counts}", "dot", drawn)
    room = 0.045 * (top - bottom)
    chart.layout["yaxis"] = axis(
        measure,
        range=[bottom - room, top + room],
        tickvals=[round(value, 2) for value in np.arange(bottom, top + step / 2, step).tolist()],
    )
    last = max(float(course.x[-1]) for course in courses)
    chart.layout["xaxis"] = axis(
        "Share of training, %" if by_share else "Step",
        showgrid=False,
        range=[-0.01 * last, 1.02 * last],
        tickvals=_with_last(last),
    )
    chart.layout["legend"] = _LEGEND
    return chart.figure()


def _add_level(chart: Chart, y: float, text: str, dash: str, drawn: Sequence[Floats]) -> None:
    """A level with its name, at the end of the axis where what is `drawn` is farther from it."""
    chart.add_line(y=y, line={"color": MUTED, "width": 1.2, "dash": dash}, layer="below")
    start, end = (min(abs(float(of[at]) - y) for of in drawn if len(of) > 1) for at in (0, -1))
    across = {"x": 0, "xanchor": "left"} if start > end else {"x": 0.98, "xanchor": "right"}
    place = across | {"xref": "x domain", "y": y, "yanchor": "bottom" if y > 0 else "top"}
    look = {"text": text, "showarrow": False, "font": {"size": 11, "color": MUTED}}
    chart.layout.setdefault("annotations", []).append(place | look)


_TICK_STEPS = (0.02, 0.05, 0.1, 0.2, 0.5)
_LEAST_RANGE, _MOST_TICKS = 0.1, 5


def _range(drawn: Sequence[Floats]) -> tuple[float, float, float]:
    """The ends of an axis of these correlations and the distance of its ticks.

    With 0 and the bound of the verdicts where they are no farther away than the drawn values reach.
    """
    values = np.concatenate(drawn)
    values = values[np.isfinite(values)].clip(-1, 1)
    if not len(values):
        return -0.5, 0.5, 0.5
    low, high = float(values.min()), float(values.max())
    if low <= 0 <= high or min(abs(low), abs(high)) <= max(high - low, _LEAST_RANGE):
        edge = BOUND if max(-low, high) < 2 * BOUND else 0.0
        low, high = min(low, -edge), max(high, edge)
    step = next(each for each in _TICK_STEPS if max(high - low, _LEAST_RANGE) <= _MOST_TICKS * each)
    bottom, top = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return max(-1.0, step * bottom), min(1.0, step * top), step


def _with_last(last: float) -> list[float]:
    """Round numbers from 0, and the last."""
    power = 10.0 ** math.floor(math.log10(max(last, 1.0)))
    step = next(part * power for part in (0.2, 0.5, 1, 2) if last <= _MOST_TICKS * part * power)
    return [*np.arange(0, last - step / 3, step).tolist(), last]


def _correlations(drawn: Sequence[Floats]) -> dict[str, Any]:
    """The axis of these correlations: from 0 in halves to what is drawn, at most from −1 to 1."""
    values = np.concatenate([np.zeros(1), *drawn])
    values = values[np.isfinite(values)].clip(-1, 1)
    bottom = min(0, math.floor(2 * (values.min() + _ROOM))) / 2
    top = max(0, math.ceil(2 * (values.max() - _ROOM))) / 2
    if bottom == top:
        bottom, top = -0.5, 0.5
    room = 1.5 * _ROOM
    ticks = np.arange(bottom, top + 0.25, 0.5).tolist()
    return axis("Correlation", range=[bottom - room, top + room], tickvals=ticks)


@dataclass(frozen=True)
class AgainstLine:
    """The correlation of a pair by value of a setting: its mean over seeds with the 95% interval, or None."""

    name: str
    colour: str
    cells: Mapping[float, CellVerdict]


def against_chart(lines: Sequence[AgainstLine], series: Series, height: int) -> Figure:
    """Correlations against the number in which configurations differ. Filled: decided, hollow: undecided."""
    values = [value for value in series.runs if any(value in line.cells for line in lines)]
    chart = Chart(height, margin={"l": 58, "r": 10, "t": 26, "b": 40}, showlegend=True)
    chart.add_line(y=0, line={"color": MUTED, "width": 1})
    for edge in (-BOUND, BOUND):
        chart.add_line(y=edge, line={"color": MUTED, "width": 1, "dash": "dot"}, layer="below")
    for index, line in enumerate(lines):
        name, cells = plotly_text(line.name), list(line.cells.values())
        places = beside(values, (index - (len(lines) - 1) / 2) / 2)
        means = [cell.mean for cell in cells]
        ends = [cell.interval or (None, None) for cell in cells]
        chart.add(
            "scatter",
            x=[places[value] for value in line.cells],
            y=means,
            mode="lines+markers",
            name=name,
            line={"color": line.colour, "width": 2},
            marker={
                "size": 9,
                "color": line.colour,
                "symbol": ["circle" if cell.is_decided else "circle-open" for cell in cells],
            },
            error_y=interval(means, [low for low, _ in ends], [high for _, high in ends], line.colour),
            text=[
                f"{name}, {plotly_text(series.title)} {series.value_text(value)}: {signed(cell.mean)} "
                f"{interval_text(cell)}, {cell.verdict}"
                for value, cell in line.cells.items()
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    ticks = {"tickmode": "array", "tickvals": values, "ticktext": [series.value_text(at) for at in values]}
    scale = {"type": "log"} if is_log(values) else {}
    chart.layout["xaxis"] = axis(plotly_text(series.title), showgrid=False, **ticks, **scale)
    every = [(cell.mean, *(cell.interval or ())) for line in lines for cell in line.cells.values()]
    chart.layout["yaxis"] = _correlations([np.array(each) for each in every])
    chart.layout["legend"] = _LEGEND
    return chart.figure()
