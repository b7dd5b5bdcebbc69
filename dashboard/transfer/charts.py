"""The figures of Transfer: gains by seed, and losses of a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.figures import LEGEND_ON_TOP, Chart, Figure, axis, interval, named_axis, plotly_text
from core.transfer.gains import Gain, Pair
from core.wording import signed_points
from dashboard.theme import DASHES, MUTED, PARADIGM_NAMES, TEXT
from dashboard.transfer.views import Course

_TALL, _LOW, _MANY = 52, 31, 6
"""The height of a row, in pixels, and of one of many."""
_BELOW, _STEP, _CLOSE = 0.22, 0.17, 0.012
"""How far below a mean its ticks are, and each further one of those within this share of the axis."""


def seeds_chart(gains: Sequence[Gain], colours: Mapping[str, str], chosen: Pair | None = None) -> Figure:
    """The gain of each pair in its main task's colour: a grey tick per seed, the mean with its interval."""
    chart = Chart(
        76 + (_TALL if len(gains) <= _MANY else _LOW) * len(gains), margin={"l": 8, "r": 16, "t": 8, "b": 44}
    )
    chart.add_line(x=0, line={"color": MUTED, "width": 1})
    ends = [0.0, *(value for gain in gains for value in (*gain.by_seed.values(), *(gain.interval or ())))]
    close = _CLOSE * (max(ends) - min(ends))
    is_stacked = False
    for row, gain in enumerate(gains):
        places = _stacked([*gain.by_seed.values()], close)
        is_stacked |= any(places)
        chart.add(
            "scatter",
            x=[100 * value for value in gain.by_seed.values()],
            y=[row + _BELOW + _STEP * place for place in places],
            mode="markers",
            marker={"size": 7, "color": MUTED, "symbol": "line-ns-open", "line": {"width": 2}},
            text=[f"seed {seed}: {signed_points(value)}" for seed, value in gain.by_seed.items()],
            hovertemplate="%{text}<extra></extra>",
        )
        low, high = gain.interval or (gain.mean, gain.mean)
        colour = colours.get(gain.main, TEXT)
        chart.add(
            "scatter",
            x=[100 * gain.mean],
            y=[row],
            mode="markers",
            marker={
                "size": 10,
                "color": colour,
                "symbol": "circle" if gain.is_decided else "circle-open",
                "line": {"width": 1.6, "color": colour},
            },
            error_x=interval([100 * gain.mean], [100 * low], [100 * high], colour),
            hovertemplate=f"{plotly_text(gain.sentence)}<extra></extra>",
        )
    ticks = f"a tick per seed{', taller: two seeds' * is_stacked}"
    chart.layout["xaxis"] = axis(f"Gain in points; {ticks}; hollow: undecided", tickformat="~g")
    names = [
        f"<b>{name}</b>" if (gain.main, gain.aux) == chosen else name
        for gain in gains
        for name in [f"{plotly_text(gain.main)}<br>beside {plotly_text(gain.aux)}"]
    ]
    chart.layout["yaxis"] = named_axis(
        names, 12 if len(gains) <= _MANY else 11, range=(len(gains) - 0.4, -0.6)
    )
    return chart.figure()


def _stacked(values: Sequence[float], close: float) -> list[int]:
    """By value the number of earlier ones that lie as close to it: their marks would be one mark."""
    return [sum(abs(value - other) <= close for other in values[:at]) for at, value in enumerate(values)]


def loss_chart(courses: Mapping[str, Course | None], colour: str) -> Figure:
    """The training loss of one task, STL in grey, one line where both are alike: seeds thin, mean thick."""
    chart = Chart(240, margin={"l": 44, "r": 10, "t": 24, "b": 40}, showlegend=True)
    for paradigm, course in courses.items():
        if course is None:
            continue
        x = np.round(100 * course.shares, 1)
        dash, is_grey = DASHES[paradigm], paradigm == "stl" and len(courses) > 1
        for seed in course.seeds if len(course.seeds) > 1 else ():
            chart.add("scatter",
                x=x, y=seed.astype(np.float32), mode="lines", hoverinfo="skip", showlegend=False,
                opacity=0.35,
                line={"color": MUTED if is_grey else colour, "width": 1, "dash": dash},
            )  # fmt: skip
        name = PARADIGM_NAMES[paradigm] if len(courses) > 1 else "STL and MTL"
        chart.add("scatter",
            x=x, y=course.mean.astype(np.float32), mode="lines", name=name,
            line={"color": MUTED if is_grey else colour, "width": 2.6, "dash": dash},
            hovertemplate=f"{name} at %{{x}}% of training: %{{y:.3f}}<extra></extra>",
        )  # fmt: skip
    if not chart.data:
        chart.add_message("No losses are stored.")
    chart.layout["xaxis"] = axis("Share of training, %", showgrid=False, range=(0, 100), ticklabelstandoff=6)
    chart.layout["yaxis"] = axis("Cross-entropy per label")
    chart.layout["legend"] = LEGEND_ON_TOP
    return chart.figure()
