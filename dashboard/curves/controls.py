"""The controls above the curves: which curve, of which task, over what, and how it is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.records import TOTAL
from core.store.records import MetricKey
from dashboard.curves.numbers import AXES, METRICS, RELATION_METRICS, Metric, choices, others, tasks_of
from dashboard.curves.views import Reading
from dashboard.text import option

# What the reader does to the curves themselves, in the URL: lines hidden (`hide`) and marked (`mark`), the
# part of x looked at (`x`).


def hidden() -> tuple[str, ...]:
    """The keys of the lines that are not drawn."""
    return tuple(key for key in st.query_params.get("hide", "").split(",") if key)


def marked() -> str | None:
    """The key of the line that stands out."""
    return st.query_params.get("mark") or None


def set_lines(hide: Sequence[str], mark: str | None) -> None:
    """Hide these lines and mark that one."""
    _write("hide", ",".join(hide))
    _write("mark", mark or "")


def window() -> tuple[float, float] | None:
    """The part of x that is looked at; None for all of it, or where the URL names none."""
    parts = st.query_params.get("x", "").split("_")
    try:
        ends = [float(part) for part in parts]
    except ValueError:
        return None
    if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] >= ends[1]:
        return None
    return ends[0], ends[1]


def set_window(ends: tuple[float, float] | None) -> None:
    """Look at this part of x."""
    _write("x", "_".join(f"{end:.6g}" for end in ends) if ends else "")


def drop_window() -> None:
    """Look at all of x: another axis has other numbers."""
    set_window(None)


def _write(name: str, text: str) -> None:
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


_LARGE, _WANTED = "of", "curve_enlarge"
_RELATIONS, _OTHERS = "relations", "others"
_GROUPS = {_RELATIONS: "Relations", _OTHERS: "Others"}
_SEEDS = {"lines": "Lines", "sd": "Mean ± SD", "interval": "Mean, 95% interval"}
_MOST_IN_A_ROW = 6


@dataclass(frozen=True)
class Chosen:
    """What the controls say: the metric, the task shown large, the reading, and whether small charts share
    their y.
    """

    metric: Metric
    large: str
    reading: Reading
    same: bool


def offered(keys: Sequence[MetricKey]) -> tuple[str, ...]:
    """All that can be chosen for runs with these curves; when it changes, the controls are drawn anew."""
    return (*choices(keys), *choices(keys, RELATION_METRICS), *others(keys))


def curve_controls(keys: Sequence[MetricKey], tasks: Sequence[str]) -> Chosen:
    """Draws the controls. `keys` are the stored curves of the chosen runs, `tasks` the order of tasks."""
    metric = _metric(keys)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        large = _task(tasks_of(metric, keys, tasks))
        axis = st.segmented_control(
            "Over",
            list(AXES),
            default="step",
            required=True,
            key="over",
            bind="query-params",
            format_func=AXES.__getitem__,
            on_change=drop_window,
        )
        seeds = st.segmented_control(
            "Seeds",
            list(_SEEDS),
            default="lines",
            required=True,
            key="seeds",
            bind="query-params",
            format_func=_SEEDS.__getitem__,
            help="A line per run, or the mean over the seeds of each configuration with its standard "
            "deviation (n − 1) or the 95% interval of the mean (Student's t), at every point.",
        )
        with st.popover("Display", icon=":material/tune:"):
            reading, same = _display(axis, seeds)
    return Chosen(metric, large, reading, same)


def enlarge(task: str) -> None:
    """Show that task large in the next run of the page."""
    # Not by the control's own value: what the browser sends meanwhile would overwrite it.
    st.session_state[_WANTED] = task


def _metric(keys: Sequence[MetricKey]) -> Metric:
    found = choices(keys) or ["loss"]
    groups = {_RELATIONS: {name: RELATION_METRICS[name] for name in choices(keys, RELATION_METRICS)}}
    groups[_OTHERS] = others(keys)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.segmented_control(
            "Curve",
            [*found, *(group for group, among in groups.items() if among)],
            default="loss" if "loss" in found else found[0],
            required=True,
            key="metric",
            bind="query-params",
            format_func=lambda one: _GROUPS[one] if one in _GROUPS else METRICS[one].title,
        )
        if name not in _GROUPS:
            return METRICS[name]
        among = groups[name]
        # What the covariances of MRN runs hold, a value at each snapshot, or what this page knows nothing of.
        number = st.selectbox(
            "Number",
            list(among),
            key="number",
            bind="query-params",
            format_func=lambda one: among[one].title if one in among else str(one),
            width=300,
        )
        return among[number]


def _task(tasks: Sequence[str]) -> str:
    """The task shown large; the others follow small."""
    wanted = st.session_state.pop(_WANTED, None)
    if wanted in tasks:
        st.session_state[_LARGE] = wanted
    if len(tasks) < 2:
        return tasks[0] if tasks else TOTAL
    draw = st.segmented_control if len(tasks) <= _MOST_IN_A_ROW else st.selectbox
    # Streamlit warns of a default beside a value that was just set.
    default = None if wanted in tasks else tasks[0]
    in_a_row = len(tasks) <= _MOST_IN_A_ROW
    more = {"required": True, "default": default} if in_a_row else {"width": 180, "index": 0}
    told = option if len(tasks) <= _MOST_IN_A_ROW else str
    chosen = draw(
        "Large chart",
        list(tasks),
        key=_LARGE,
        bind="query-params",
        format_func=lambda task: told(task or "Total"),
        **more,
    )
    return str(chosen)


def _display(axis: str, seeds: str) -> tuple[Reading, bool]:
    log_y = st.toggle("Log scale", key="log", bind="query-params")
    log_x = st.toggle(f"Log scale of {AXES[axis].lower()}", key="logx", bind="query-params")
    calm = st.toggle(
        "Ignore outliers",
        key="calm",
        bind="query-params",
        help="Fits y to the middle 98% of the values shown: the first steps of a loss no longer flatten the "
        "rest. All points are still drawn.",
    )
    same = st.toggle("Small charts share their y", value=True, key="samey", bind="query-params")
    smoothing = st.slider(
        "Smoothing",
        0.0,
        0.99,
        0.0,
        0.01,
        key="smooth",
        bind="query-params",
        help="Weight of the past in a running mean over all points, of each seed before the mean of seeds. "
        "The raw line stays, faint.",
    )
    return Reading(axis, seeds, smoothing, log_x, log_y, calm), same
