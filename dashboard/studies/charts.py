"""The figures of Studies: differences by setting, and gains by the factors of a grid of simulated tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from core.evaluation.comparison import UNDECIDED, Comparison
from core.figures import BACKGROUND, MUTED, Chart, Figure, axis, interval
from core.results.figures import Forest, forest_chart
from core.studies.factors import FACTORS
from dashboard.theme import PARADIGM_COLOURS, of_theme

_MOST = 3
"""So many methods are drawn side by side."""
_ROOM = 0.08
"""The share of an axis beyond the ends of intervals."""
_FEW = 8
"""So many values of an axis each have a tick."""
_WIDTH, _DIGIT = 260, 6
"""The width of a narrow chart, and of a digit on its axis."""


def settings_chart(view: Forest, leads: Sequence[str]) -> Figure:
    """Differences by setting of `leads` and of others that most settings compare; the first is not grey."""
    counts = Counter(mark.target for mark in view.marks)
    leads = [method for method in leads if method in counts]
    others = [method for method, count in counts.most_common() if method not in leads and count > 1]
    methods = (*leads, *others)[:_MOST]
    colours = dict.fromkeys(methods, MUTED) | dict.fromkeys(leads[:1], of_theme(*PARADIGM_COLOURS["mrn"]))
    marks = tuple(mark for mark in view.marks if mark.target in methods)
    return forest_chart(replace(view, targets=methods, marks=marks), colours)


def factor_charts(
    by_factor: Mapping[str, Mapping[float, Comparison]], trends: Mapping[str, Comparison], unit: str
) -> dict[str, Figure]:
    """The gain of MTL by the values of each factor of a grid (`gains_by_factor`), on one scale of gains.

    The line of a factor is solid where its trend is decided.
    """
    every = [gain for gains in by_factor.values() for gain in gains.values()]
    ends = [0.0, *(100 * end for gain in every for end in (gain.mean, *(gain.interval or ())))]
    room = _ROOM * (max(ends) - min(ends))
    span = min(ends) - room, max(ends) + room
    return {
        factor: _factor_chart(factor, gains, span, unit, is_decided=trends[factor].verdict != UNDECIDED)
        for factor, gains in by_factor.items()
    }


def _factor_chart(
    factor: str, gains: Mapping[float, Comparison], span: tuple[float, float], unit: str, *, is_decided: bool
) -> Figure:
    title, colour = FACTORS[factor].title, of_theme(*PARADIGM_COLOURS["mtl"])
    means = [100 * gain.mean for gain in gains.values()]
    low, high = (
        [100 * gain.interval[end] if gain.interval else None for gain in gains.values()] for end in (0, 1)
    )
    chart = Chart(300)
    chart.add_line(y=0, line={"color": MUTED, "width": 1})
    chart.add(
        "scatter",
        x=list(gains),
        y=means,
        mode="lines+markers",
        line={"color": colour, "width": 2 if is_decided else 1, "dash": "solid" if is_decided else "dot"},
        marker={
            "size": 10,
            "color": [BACKGROUND if gain.verdict == UNDECIDED else colour for gain in gains.values()],
            "line": {"color": colour, "width": 1.6},
        },
        error_y=interval(means, low, high, colour),
        text=[
            f"{FACTORS[factor].value(value)}{FACTORS[factor].counted}: {gain.sentence}"
            for value, gain in gains.items()
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    chart.layout["xaxis"] = axis(title, showgrid=False, **_ticks(list(gains)))
    chart.layout["yaxis"] = axis(f"{unit} over STL", range=span)
    return chart.figure()


def _ticks(values: Sequence[float]) -> dict[str, Any]:
    """A tick for each value, where these are few; without a text where the next one's would be on it."""
    if len(values) > _FEW:
        return {}
    texts = [f"{value:,.4g}" for value in values]
    scale = _WIDTH / (max(values) - min(values))
    for place, (value, following) in enumerate(pairwise(values)):
        if scale * (following - value) < _DIGIT * (len(texts[place]) + len(texts[place + 1])) / 2:
            texts[place] = ""
    return {"tickmode": "array", "tickvals": values, "ticktext": texts, "tickangle": 0}
