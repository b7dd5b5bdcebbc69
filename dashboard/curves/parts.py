"""The controls of the Curves page, its charts, their legend, and notes on what the lines do not show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.records import TOTAL
from core.store.records import MetricKey, MetricSeries, Run, RunState
from core.wording import plural
from dashboard.components.charts import LegendRow, Picture, Zoom, chart, curve_legend
from dashboard.curves.charts import curve_chart
from dashboard.curves.numbers import (
    AXES,
    METRICS,
    RELATION_METRICS,
    Metric,
    choices,
    metric_keys,
    missing,
    others,
    point_table,
    tasks_of,
)
from dashboard.curves.views import CurvesView, Line, Panel, Point, Reading, curves
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.shared.states import empty, state_text
from dashboard.text import escape, option
from dashboard.theme import DASHES, colours, ramp

_RELATIONS, _OTHERS = "relations", "others"
_GROUPS = {_RELATIONS: "Relations", _OTHERS: "Others"}
_SEEDS = {"lines": "Lines", "sd": "Mean ± SD", "interval": "Mean, 95% interval"}
_MOST_IN_A_ROW = 6
_COUNT = "curve_pictures"
_MOST_NAMED = 6
_ZOOM = "curves"
_MOST_NOTES = 4
_IN_A_ROW = 3
_PLACES = {"step": "steps", "epoch": "epochs", "minutes": "minutes"}


def hide_lines(keys: Sequence[str]) -> None:
    """Keep in the URL the keys of the hidden lines."""
    _write("hide", ",".join(keys))


def window() -> tuple[float, float] | None:
    """The zoomed part of x in the URL; None for all of it, or if the URL has no valid one."""
    try:
        start, end = map(float, st.query_params.get("x", "").split("_"))
    except ValueError:
        return None
    return (start, end) if math.isfinite(start) and math.isfinite(end) and start < end else None


def set_window(ends: tuple[float, float] | None) -> None:
    """Zoom into this part of x."""
    _write("x", "_".join(f"{end:.6g}" for end in ends) if ends else "")


def _write(name: str, text: str) -> None:
    if text:
        st.query_params[name] = text
    else:
        st.query_params.pop(name, None)


@dataclass(frozen=True)
class Chosen:
    """What the controls say: the metric, the task shown large, how the curves are to be read."""

    metric: Metric
    large: str
    reading: Reading


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
            on_change=lambda: set_window(None),
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
            reading = _display(axis, seeds)
    return Chosen(metric, large, reading)


def _metric(keys: Sequence[MetricKey]) -> Metric:
    metric_names = choices(keys) or ["loss"]
    relations = {name: RELATION_METRICS[name] for name in choices(keys, RELATION_METRICS)}
    groups = {_RELATIONS: relations, _OTHERS: others(keys)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.segmented_control(
            "Curve",
            [*metric_names, *(group for group, among in groups.items() if among)],
            default="loss" if "loss" in metric_names else metric_names[0],
            required=True,
            key="metric",
            bind="query-params",
            format_func=lambda name: _GROUPS[name] if name in _GROUPS else METRICS[name].title,
        )
        if name not in _GROUPS:
            return METRICS[name]
        among = groups[name]
        number = st.selectbox(
            "Number",
            list(among),
            key="number",
            bind="query-params",
            format_func=lambda name: among[name].title if name in among else str(name),
            width=300,
        )
        return among[number]


def _task(tasks: Sequence[str]) -> str:
    """The task shown large; the others follow small."""
    if len(tasks) < 2:
        return tasks[0] if tasks else TOTAL
    shared: dict[str, Any] = {"key": "of", "bind": "query-params"}
    if len(tasks) > _MOST_IN_A_ROW:
        return str(
            st.selectbox(
                "Large chart", list(tasks), format_func=lambda task: task or "Total", width=180, **shared
            )
        )
    return str(
        st.segmented_control(
            "Large chart",
            list(tasks),
            default=tasks[0],
            format_func=lambda task: option(task or "Total"),
            required=True,
            **shared,
        )
    )


def _display(axis: str, seeds: str) -> Reading:
    log_y = st.toggle("Log scale", key="log", bind="query-params")
    log_x = st.toggle(f"Log scale of {AXES[axis].lower()}", key="logx", bind="query-params")
    calm = st.toggle(
        "Ignore outliers",
        key="calm",
        bind="query-params",
        help="Fits y to the middle 98% of the values shown: the first steps of a loss no longer flatten the "
        "rest. All points are still drawn.",
    )
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
    return Reading(axis, seeds, smoothing, log_x, log_y, calm)


def curve_files(runs: Sequence[Run], chosen: Chosen, series: Sequence[MetricSeries]) -> Picture | None:
    """Draws the buttons; returns the picture that is asked for, if one is."""
    name = _name(runs, chosen)
    picture = None
    for form in ("png", "svg"):
        if st.button(
            form.upper(),
            key=f"curve_{form}",
            type="tertiary",
            icon=":material/download:",
            help=f"The large chart as it stands, on white, as {form.upper()}",
        ):
            st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
            picture = Picture(st.session_state[_COUNT], form, name)
    st.download_button(
        "CSV",
        data=lambda: csv_file(point_table(runs, series)),
        file_name=f"{name}.csv",
        mime="text/csv",
        key="curve_csv",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="Every point of every chart on this page as it is stored, unsmoothed",
    )
    return picture


def _name(runs: Sequence[Run], chosen: Chosen) -> str:
    """`training-loss-ner-runs-3-7`; where many runs are shown, how many."""
    ids = [str(run.id) for run in runs]
    which = f"runs-{'-'.join(ids)}" if len(ids) <= _MOST_NAMED else f"{len(ids)}-runs"
    words = f"{chosen.metric.title} {chosen.large or 'total'} {which}".lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def curve_charts(runs: Sequence[Run], chosen: Chosen) -> None:
    """One large chart, its legend as a table one can click, a small chart for each other task."""
    metric, reading = chosen.metric, chosen.reading
    keys = metric_keys(metric, resources.store().metric_keys([run.id for run in runs]))
    tasks = resources.task_order()
    with st.spinner("Reading the curves"):
        series = resources.curve_series(runs, keys)
    hidden = [key for key in st.query_params.get("hide", "").split(",") if key]
    conditions = resources.store().conditions(runs)
    view = curves(
        metric, reading, runs, series, tasks, large=chosen.large, hidden=hidden, conditions=conditions
    )
    if not view.legend:
        _nothing_yet(runs, metric.title)
        return
    colour = colours(tasks)
    with st.container(horizontal=True, vertical_alignment="center"):
        _title(view, view.large, colour)
        picture = curve_files(runs, chosen, series)
    _chart(view, view.large, key="curve_large", picture=picture)
    _legend(view, hidden)
    _notes(view, series)
    for start in range(0, len(view.small), _IN_A_ROW):
        row = view.small[start : start + _IN_A_ROW]
        for column, panel in zip(st.columns(max(2, min(_IN_A_ROW, len(view.small)))), row, strict=False):
            with column:
                _title(view, panel, colour, small=True)
                key = f"curve_small_{panel.task}" if panel.task else "curve_total"
                _chart(view, panel, key=key, small=True)


def _title(view: CurvesView, panel: Panel, colour: Mapping[str, str], *, small: bool = False) -> None:
    metric, task = view.metric, escape(panel.task)
    dot = f':color[●]{{foreground="{colour[panel.task]}"}} ' if panel.task in colour else ""
    if small:
        st.markdown(f"{dot}**{task or escape(metric.total.capitalize())}**")
        return
    what = task or (metric.total if metric.total != metric.title else "whole run")
    st.markdown(f"{dot}**{escape(metric.title)}**, {what}", width="stretch")


def _chart(
    view: CurvesView,
    panel: Panel,
    *,
    key: str,
    small: bool = False,
    picture: Picture | None = None,
) -> None:
    """Charts of one page share the zoomed part of x."""
    metric, reading = view.metric, view.reading
    of_task = f" of {panel.task}" if panel.task else ""
    chart(
        curve_chart(view, panel, small=small),
        key=key,
        alt=f"{metric.title}{of_task}, {plural(len(panel.lines), 'line')} over training",
        revision=f"{metric.split} {metric.name} {reading.axis} {reading.log_x} {reading.log_y}",
        still=small,
        zoom=Zoom(_ZOOM, window(), set_window),
        picture=picture,
    )


def _nothing_yet(runs: Sequence[Run], title: str) -> None:
    waiting = any(run.state in (RunState.QUEUED, RunState.RUNNING) for run in runs)
    words = (
        "The first points come when a worker has read the data, within seconds of its start."
        if waiting
        else "These runs ended before they had this curve. Choose another curve or other runs."
    )
    empty(f"No {title.lower()} yet", words)


def _legend(view: CurvesView, hidden: Sequence[str]) -> None:
    lines = view.reading.seeds == "lines"
    columns = ["Run", "State"] if lines else ["Configuration", "Seeds"]
    columns += ["Last", "Best"] if view.metric.best else ["Last"]
    rows = [
        LegendRow(
            line.key,
            line.name,
            ramp(line.rank),
            DASHES[line.paradigm],
            line.key in hidden,
            _cells(view, line),
        )
        for line in view.legend
    ]
    curve_legend(rows, columns, key="curve_legend", changed=hide_lines)
    st.caption(
        "Tick to show. Dotted: STL, dashed: MTL, solid: MRN."
        + (" ◆ the epoch whose weights were kept." if any(line.kept for line in view.large.lines) else "")
    )


def _cells(view: CurvesView, line: Line) -> tuple[str, ...]:
    seeds = f"{', '.join(map(str, line.seeds))} (n = {len(line.seeds)})"
    cells = [state_text(line.state) if line.state else seeds, _at(view, line.last)]
    return (*cells, _at(view, line.best)) if view.metric.best else tuple(cells)


def _at(view: CurvesView, point: Point | None) -> str:
    if point is None:
        return "–"
    x, value = point
    number = f"{value:z.2f}" if view.metric.percent else f"{value:.4g}"
    axis = view.reading.axis
    place = f"{x:,.0f}" if axis == "step" else f"{x:.3g}" if axis == "epoch" else f"{x:.2f}"
    return f"{number} at {AXES[axis].lower().removesuffix('s')} {place}".replace("-", "−")


def _notes(view: CurvesView, series: Sequence[MetricSeries]) -> None:
    """What a reader would not see from the lines alone."""
    notes = missing(view.metric, series)
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"{plural(len(notes) - _MOST_NOTES, 'more curve')} have such gaps."]
    if view.reading.seeds != "lines":
        if view.interpolated:
            notes.append(
                f"The seeds have points at different {_PLACES[view.reading.axis]}; each is interpolated "
                "between its own points."
            )
        if all(len(line.seeds) < 2 for line in view.legend):
            notes.append("One seed has no spread, so there is no band. Choose more seeds of a configuration.")
    if notes:
        st.info("  \n".join(escape(sentence) for sentence in notes), icon=":material/info:")
