"""The charts of the Curves page, the table that is their legend, and what is said beside them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from core.store.records import MetricSeries, Run, RunState
from core.wording import plural
from dashboard.components.charts import LegendRow, Picture, Zoom, chart, curve_legend
from dashboard.components.charts import small_charts as draw_small_charts
from dashboard.curves import controls as address
from dashboard.curves.charts import curve_chart, line_colour, small_charts
from dashboard.curves.controls import Chosen, enlarge
from dashboard.curves.numbers import AXES, band_table, metric_keys, missing, point_table
from dashboard.curves.views import CurvesView, Entry, curves
from dashboard.runs.table import state_text
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.shared.resources import curve_series
from dashboard.shared.states import empty
from dashboard.text import escape
from dashboard.theme import DASHES, colours

# The curves as files: the large chart as a picture, all points or the means as a table.


_COUNT = "curve_pictures"
_MOST_NAMED = 6


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


_ZOOM = "curves"
_MOST_SAID = 4


def curve_charts(runs: Sequence[Run], chosen: Chosen) -> None:
    """One large chart, its legend as a table one can click, a small chart for each other task."""
    metric = chosen.metric
    keys = metric_keys(metric, resources.store().metric_keys([run.id for run in runs]))
    tasks = resources.task_order()
    with st.spinner("Reading the curves"):
        series = curve_series(runs, keys)
    # Read here, for the controls above are not run again when the reader zooms.
    reading = dataclasses.replace(chosen.reading, window=address.window())
    hidden, marked = address.hidden(), address.marked()
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
        zoom=Zoom(_ZOOM, reading.window, address.set_window),
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
        changed=address.set_lines,
    )
    st.caption(
        "Tick to show, click a name to make its line stand out. Dotted: STL, dashed: MTL, solid: MRN."
        + (" ◆ the epoch whose weights were kept." if any(one.chosen for one in view.large.lines) else "")
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
    gaps = missing(view.metric, series)
    if len(gaps) > _MOST_SAID:
        gaps = [*gaps[:_MOST_SAID], f"{plural(len(gaps) - _MOST_SAID, 'more curve')} have such gaps."]
    said = [*gaps]
    if view.reading.seeds != "lines":
        if view.interpolated:
            said.append(
                f"The seeds have points at different {_PLACES[view.reading.axis]}; each is interpolated "
                "between its own points."
            )
        if all(entry.n < 2 for entry in view.entries):
            said.append("One seed has no spread, so there is no band. Choose more seeds of a configuration.")
    if said:
        st.info("  \n".join(escape(one) for one in said), icon=":material/info:")


_PLACES = {"step": "steps", "epoch": "epochs", "minutes": "minutes"}
