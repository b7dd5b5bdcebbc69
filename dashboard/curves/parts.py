"""The controls of the Curves page, its charts, their legend, and notes on what the lines do not show."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.records import TOTAL
from core.store.records import MetricKey, MetricSeries, Run, RunState
from core.wording import plural
from dashboard.components.charts import LegendRow, Picture, Zoom, chart, curve_legend
from dashboard.components.charts import small_charts as draw_small_charts
from dashboard.curves.charts import curve_chart, line_colour, small_charts
from dashboard.curves.numbers import (
    AXES,
    METRICS,
    RELATION_METRICS,
    Metric,
    band_table,
    choices,
    metric_keys,
    missing,
    others,
    point_table,
    tasks_of,
)
from dashboard.curves.views import CurvesView, Entry, Reading, curves
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.shared.states import empty, state_text
from dashboard.text import escape, option
from dashboard.theme import DASHES, colours

_LARGE, _WANTED = "of", "curve_enlarge"
_RELATIONS, _OTHERS = "relations", "others"
_GROUPS = {_RELATIONS: "Relations", _OTHERS: "Others"}
_SEEDS = {"lines": "Lines", "sd": "Mean ± SD", "interval": "Mean, 95% interval"}
_MOST_IN_A_ROW = 6
_COUNT = "curve_pictures"
_MOST_NAMED = 6
_ZOOM = "curves"
_MOST_SAID = 4
_PLACES = {"step": "steps", "epoch": "epochs", "minutes": "minutes"}


def set_lines(hide: Sequence[str], mark: str | None) -> None:
    """Keep in the URL the keys of the lines that are hidden (`hide`) and of the one marked (`mark`)."""
    _write("hide", ",".join(hide))
    _write("mark", mark or "")


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
    """What the controls say: metric, task shown large, reading, whether small charts share their y."""

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
            reading, same = _display(axis, seeds)
    return Chosen(metric, large, reading, same)


def enlarge(task: str) -> None:
    """Show that task large in the next run of the page."""
    # Not by the control's own value: what the browser sends meanwhile would overwrite it.
    st.session_state[_WANTED] = task


def _metric(keys: Sequence[MetricKey]) -> Metric:
    found = choices(keys) or ["loss"]
    relations = {name: RELATION_METRICS[name] for name in choices(keys, RELATION_METRICS)}
    groups = {_RELATIONS: relations, _OTHERS: others(keys)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.segmented_control(
            "Curve",
            [*found, *(group for group, among in groups.items() if among)],
            default="loss" if "loss" in found else found[0],
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
    wanted = st.session_state.pop(_WANTED, None)
    if wanted in tasks:
        st.session_state[_LARGE] = wanted
    if len(tasks) < 2:
        return tasks[0] if tasks else TOTAL
    shared: dict[str, Any] = {"key": _LARGE, "bind": "query-params"}
    if len(tasks) > _MOST_IN_A_ROW:
        return str(
            st.selectbox(
                "Large chart", list(tasks), format_func=lambda task: task or "Total", width=180, **shared
            )
        )
    # Streamlit warns of a default beside a value that was just set.
    shared["default"] = None if wanted in tasks else tasks[0]
    return str(
        st.segmented_control(
            "Large chart",
            list(tasks),
            format_func=lambda task: option(task or "Total"),
            required=True,
            **shared,
        )
    )


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
    _table(
        "CSV",
        lambda: point_table(runs, series),
        f"{name}.csv",
        key="curve_csv",
        words="Every point of every chart on this page as it is stored, unsmoothed",
    )
    if chosen.reading.seeds != "lines":
        axis = chosen.reading.axis
        _table(
            "CSV of means",
            lambda: band_table(runs, series, axis, resources.store().conditions(runs)),
            f"{name}-means.csv",
            key="curve_means_csv",
            words="Mean, standard deviation, 95% interval and number of seeds at every point, unsmoothed",
        )
    return picture


def _table(label: str, made: Callable[[], pd.DataFrame], file: str, *, key: str, words: str) -> None:
    """A button for a table that is made only when it is asked for."""
    st.download_button(
        label,
        data=lambda: csv_file(made()),
        file_name=file,
        mime="text/csv",
        key=key,
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help=words,
    )


def _name(runs: Sequence[Run], chosen: Chosen) -> str:
    """`training-loss-ner-runs-3-7`; where many runs are shown, how many."""
    ids = [str(run.id) for run in runs]
    which = f"runs-{'-'.join(ids)}" if len(ids) <= _MOST_NAMED else f"{len(ids)}-runs"
    words = f"{chosen.metric.title} {chosen.large or 'total'} {which}".lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def curve_charts(runs: Sequence[Run], chosen: Chosen) -> None:
    """One large chart, its legend as a table one can click, a small chart for each other task."""
    metric = chosen.metric
    keys = metric_keys(metric, resources.store().metric_keys([run.id for run in runs]))
    tasks = resources.task_order()
    with st.spinner("Reading the curves"):
        series = resources.curve_series(runs, keys)
    # Read here, for the controls above are not run again when the reader zooms.
    reading = dataclasses.replace(chosen.reading, window=window())
    hidden = [key for key in st.query_params.get("hide", "").split(",") if key]
    marked = st.query_params.get("mark")
    conditions = resources.store().conditions(runs)
    view = curves(
        metric, reading, runs, series, tasks, large=chosen.large, hidden=hidden, conditions=conditions
    )
    if view.empty:
        _nothing_yet(runs, metric.title)
        return
    colour = colours(tasks)
    keyed = {entry.key for entry in view.entries}
    marked = marked if marked in keyed else None
    with st.container(horizontal=True, vertical_alignment="center"):
        dot = f':color[●]{{foreground="{colour[view.large.task]}"}} ' if view.large.task in colour else ""
        what = escape(view.large.task) or (metric.total if metric.total != metric.title else "whole run")
        st.markdown(f"{dot}**{escape(metric.title)}**, {what}", width="stretch")
        picture = curve_files(runs, chosen, series)
    chart(
        curve_chart(view, colour, marked=marked),
        key="curve_large",
        alt=f"{metric.title} of {plural(len(view.large.lines), 'line')} over training",
        revision=f"{metric.split} {metric.name} {reading.axis} {reading.log_x} {reading.log_y}",
        zoom=Zoom(_ZOOM, reading.window, set_window),
        picture=picture,
    )
    _legend(view, colour, hidden, marked)
    _said(view, series)
    if view.small:
        _small(view, colour, marked, chosen.same)


def _nothing_yet(runs: Sequence[Run], title: str) -> None:
    waiting = any(run.state in (RunState.QUEUED, RunState.RUNNING) for run in runs)
    words = (
        "The first points come when a worker has read the data, within seconds of its start."
        if waiting
        else "These runs ended before they had this curve. Choose another curve or other runs."
    )
    empty(f"No {title.lower()} yet", words)


def _small(view: CurvesView, colour: dict[str, str], marked: str | None, same: bool) -> None:
    reading = view.reading
    if draw_small_charts(
        small_charts(view, colour, marked=marked, same=same),
        key="curve_small",
        group=_ZOOM,
        x_end=view.x_end,
        log_x=reading.log_x,
        log_y=reading.log_y,
        percent=view.metric.percent,
        where=AXES[reading.axis].lower(),
        window=reading.window,
        enlarged=enlarge,
    ):
        st.rerun()  # the control that names the large one stands outside this part


def _legend(view: CurvesView, colour: dict[str, str], hidden: Sequence[str], marked: str | None) -> None:
    lines = view.reading.seeds == "lines"
    what = "Run" if lines else "Configuration"
    columns = (what, "State" if lines else "Seeds", "Last", *(["Best"] if view.metric.best else []))
    curve_legend(
        [
            LegendRow(
                entry.key,
                entry.name,
                line_colour(entry, colour),
                DASHES[entry.paradigm],
                entry.key in hidden,
                entry.key == marked,
                _cells(view, entry),
            )
            for entry in view.entries
        ],
        columns,
        key="curve_legend",
        changed=set_lines,
    )
    st.caption(
        "Tick to show, click a name to make its line stand out. Dotted: STL, dashed: MTL, solid: MRN."
        + (" ◆ the epoch whose weights were kept." if any(line.chosen for line in view.large.lines) else "")
    )


def _cells(view: CurvesView, entry: Entry) -> tuple[str, ...]:
    first = state_text(entry.state) if entry.state else f"{', '.join(map(str, entry.seeds))} (n = {entry.n})"
    cells = [first, _at(view, entry.last, entry.last_x)]
    if view.metric.best:
        cells.append(_at(view, entry.best, entry.best_x))
    return tuple(cells)


def _at(view: CurvesView, value: float | None, x: float | None) -> str:
    if value is None or x is None:
        return "–"
    number = f"{value:z.2f}" if view.metric.percent else f"{value:.4g}"
    axis = view.reading.axis
    place = f"{x:,.0f}" if axis == "step" else f"{x:.3g}" if axis == "epoch" else f"{x:.2f}"
    return f"{number} at {AXES[axis].lower().removesuffix('s')} {place}".replace("-", "−")


def _said(view: CurvesView, series: Sequence[MetricSeries]) -> None:
    """What a reader would not see from the lines alone."""
    said = missing(view.metric, series)
    if len(said) > _MOST_SAID:
        said = [*said[:_MOST_SAID], f"{plural(len(said) - _MOST_SAID, 'more curve')} have such gaps."]
    if view.reading.seeds != "lines":
        if view.interpolated:
            said.append(
                f"The seeds have points at different {_PLACES[view.reading.axis]}; each is interpolated "
                "between its own points."
            )
        if all(entry.n < 2 for entry in view.entries):
            said.append("One seed has no spread, so there is no band. Choose more seeds of a configuration.")
    if said:
        st.info("  \n".join(escape(sentence) for sentence in said), icon=":material/info:")
