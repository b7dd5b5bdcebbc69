"""The controls of the Curves page: the curve, the task shown large, how curves are read, the zoom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.metrics import LOSS, STATISTIC_MEANINGS, Metric, MetricKey, metrics_of
from core.store.types import Run
from core.wording import without_shared
from dashboard.curves import numbers
from dashboard.curves.numbers import AXES
from dashboard.curves.views import Display
from dashboard.shared.selection import choice, segments, set_parameter, switch
from dashboard.text import option

_GROUPS = {"relations": "Relations", "others": "Others"}
SEEDS = {"sd": "Mean ± SD", "interval": "Mean, 95% interval", "lines": "Each run"}
_FIRST_AXIS = "curves_first_axis"
_SMOOTHINGS = {"0": "None", "0.6": "0.6", "0.9": "0.9"}


def window() -> tuple[float, float] | None:
    """The zoomed part of x in the URL; None for all of it, or if the URL has no valid one."""
    try:
        start, end = map(float, st.query_params.get("x", "").split("_"))
    except ValueError:
        return None
    return (start, end) if math.isfinite(start) and math.isfinite(end) and start < end else None


def set_window(ends: tuple[float, float] | None) -> None:
    """Zoom into this part of x."""
    set_parameter("x", "_".join(f"{end:.6g}" for end in ends) if ends else "")


def is_of_end() -> bool:
    """Whether charts leave out the steep start of training, as they do unless the reader shows it."""
    return st.query_params.get("range") != "all"


def set_of_end(of_end: bool) -> None:
    """Leave the steep start out, or show all of x."""
    set_parameter("range", "" if of_end else "all")
    set_window(None)


@dataclass(frozen=True)
class Chosen:
    """The values of the controls: the metric, the task shown large, the way curves are drawn."""

    metric: Metric
    large: str
    reading: Display


def offered(keys: Sequence[MetricKey]) -> tuple[str, ...]:
    """All that can be chosen for runs with these curves; when it changes, the controls are drawn anew."""
    return tuple(metrics_of(keys))


def curve_controls(keys: Sequence[MetricKey], tasks: Sequence[str], runs: Sequence[Run]) -> Chosen:
    """Draws the controls. `keys` are the stored curves of the chosen runs, `tasks` the order of tasks."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="curve_controls"):
        metric = _metric(keys)
        large = _task(metric, numbers.tasks_of(metric, keys, tasks), runs)
        menu = st.popover(
            "View", icon=":material/tune:", help="Axis, seeds, smoothing, scale", key="curves_view"
        )
    with menu:
        axis = _axis(runs)
        seeds = "sd"
        of_seeds = numbers.tasks_of_seeds(runs)
        if len({key for key, _ in of_seeds}) < len(of_seeds):
            seeds = segments(
                "Seeds",
                SEEDS,
                key="seeds",
                labelled=True,
                help="At every point, the mean over a configuration's seeds with its standard deviation "
                "(n − 1) or its 95% interval (Student's t). Or one line per run.",
            )
        is_loss = metric == LOSS
        smoothing = segments(
            "Smoothing",
            _SMOOTHINGS,
            default="0.6" if is_loss else "0",
            key="smooth" if is_loss else "smooth_others",
            labelled=True,
            help="Exponential moving average of each seed, before seeds are averaged. Where lines are few, "
            "the raw line is drawn faintly.",
        )
        log_y = switch("Log scale", key="log")
    return Chosen(metric, large, Display(axis, seeds, float(smoothing), log_y))


def _axis(runs: Sequence[Run]) -> str:
    first = numbers.first_axis(runs)
    # Other runs may open on another axis, unless the address has the reader's choice.
    if st.session_state.get(_FIRST_AXIS, first) != first and "over" not in st.query_params:
        st.session_state["over"] = first
        set_window(None)
    st.session_state[_FIRST_AXIS] = first
    return segments(
        "Over", AXES, key="over", default=first, labelled=True, on_change=lambda: set_window(None)
    )


def _metric(keys: Sequence[MetricKey]) -> Metric:
    places: dict[str, dict[str, Metric]] = {"alone": {}, **{group: {} for group in _GROUPS}}
    for slug, metric in metrics_of(keys).items():
        places[metric.shown][slug] = metric
    alone = places.pop("alone") or {LOSS.slug: LOSS}
    titles = {slug: metric.title for slug, metric in alone.items()}
    titles |= {group: _GROUPS[group] for group, numbers_of in places.items() if numbers_of}
    chosen = segments("Curve", titles, key="metric", labelled=True)
    if chosen in alone:
        return alone[chosen]
    in_group = places[chosen]
    number_titles = {slug: metric.title for slug, metric in in_group.items()}
    meanings = "  \n".join(f"**{title}**: {meaning}." for title, meaning in STATISTIC_MEANINGS.items())
    words = meanings if chosen == "relations" else None
    return in_group[choice("Number", number_titles, key="number", width=300, help=words)]


def _task(metric: Metric, tasks: Sequence[str], runs: Sequence[Run]) -> str:
    """The task shown large; the others follow small."""
    first = numbers.first_task(tasks, runs)
    if len(tasks) < 2:
        return first
    short = without_shared([task for task in tasks if task])
    options = {task: option(short.get(task) or metric.total.capitalize()) for task in tasks}
    return segments("Large chart", options, key="of", default=first, labelled=True)
