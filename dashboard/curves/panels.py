"""The charts of the Curves page, their legend, their files, and notes on gaps."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import streamlit as st

from core.evaluation.statistics import summary
from core.metrics import DEV_SCORE, LOSS, STATISTIC_MEANINGS, TOTAL, Metric
from core.store.types import ACTIVE, MetricSeries, Run, RunState
from core.wording import first_of, plural, without_shared
from dashboard.components.charts import LegendRow, Picture, Zoom, chart, curve_legend
from dashboard.curves import numbers
from dashboard.curves.charts import curve_chart
from dashboard.curves.controls import Chosen, is_of_end, set_of_end, set_window, window
from dashboard.curves.numbers import PLACES, place_text
from dashboard.curves.result import result_sentence
from dashboard.curves.views import Curve, CurvesView, Group, Panel, curves, last_shared
from dashboard.shared import resources
from dashboard.shared.downloads import csv_button, csv_file
from dashboard.shared.newcomers import explain
from dashboard.shared.run_views import ended_early, progress_text
from dashboard.shared.selection import link_to_runs, set_parameter
from dashboard.shared.states import empty, show_reason, state_text
from dashboard.text import escape, with_code
from dashboard.theme import DASHES

_ENDS = ("Last", "Best")
_OF_SEEDS = {"sd": "mean of {} ± SD", "interval": "mean of {}, 95% interval", "lines": "each run"}
_COUNT = "curve_pictures"
_MOST_NAMED = 6
_ZOOM = "curves"
_MOST_NOTES = 4
_IN_A_ROW = 3


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
            help=f"The large chart as shown, on white, as {form.upper()}",
        ):
            st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
            picture = Picture(st.session_state[_COUNT], form, name)
    csv_button(
        lambda: csv_file(numbers.point_table(runs, series, chosen.reading.smoothing)),
        name,
        key="curve_csv",
        type="tertiary",
        help="All stored points of the charts on this page, with their smoothed values",
    )
    return picture


def _name(runs: Sequence[Run], chosen: Chosen) -> str:
    """`training-loss-ner-runs-3-7`; where many runs are shown, how many."""
    ids = [str(run.id) for run in runs]
    which = f"runs-{'-'.join(ids)}" if len(ids) <= _MOST_NAMED else f"{len(ids)}-runs"
    text = f"{chosen.metric.title} {chosen.large or 'total'} {which}".lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")


def curve_charts(runs: Sequence[Run], chosen: Chosen) -> None:
    """One large chart, its legend as a table one can click, a small chart for each other task."""
    metric = chosen.metric
    # In the address alone: its button is here, below the controls.
    reading = replace(chosen.reading, of_end=metric == DEV_SCORE and is_of_end())
    keys = metric.keys_among(resources.store().metric_keys([run.id for run in runs]))
    with st.spinner("Reading curves"):
        series = resources.curve_series(runs, keys)
    hidden = [key for key in st.query_params.get("hide", "").split(",") if key]
    conditions = resources.store().conditions(runs)
    view = curves(
        metric,
        reading,
        runs,
        series,
        resources.task_order(),
        large=chosen.large,
        hidden=hidden,
        conditions=conditions,
    )
    if not view.legend:
        _nothing_yet(runs, metric.title)
        return
    note = _about_tasks(view, runs)
    sentence = "" if note and view.large.task == TOTAL else result_sentence(view, runs, conditions)
    if sentence:
        _result(sentence, view, runs)
    with st.container(horizontal=True, vertical_alignment="center"):
        _title(view)
        _range_button(view)
        explain(f"{metric.split} {metric.name}")
        picture = curve_files(runs, chosen, series)
    meaning = STATISTIC_MEANINGS.get(metric.title, "")  # of other curves `explain` has it
    if said := " ".join(filter(None, [meaning and f"{meaning}.", note])):
        st.caption(said)
    _chart(view, view.large, key="curve_large", picture=picture)
    _legend(view, hidden)
    _notes(view, series)
    short = without_shared([panel.task for panel in (view.large, *view.small) if panel.task])
    for start in range(0, len(view.small), _IN_A_ROW):
        row = view.small[start : start + _IN_A_ROW]
        for column, panel in zip(st.columns(max(2, min(_IN_A_ROW, len(view.small)))), row, strict=False):
            with column:
                name = short.get(panel.task) or metric.total.capitalize()
                st.markdown(f"**{escape(name)}**", help=escape(panel.task) if name != panel.task else None)
                key = f"curve_small_{panel.task}" if panel.task else "curve_total"
                _chart(view, panel, key=key, small=True)


def _result(sentence: str, view: CurvesView, runs: Sequence[Run]) -> None:
    """Draws where the lines end, and of scores the way to the page that tests their differences."""
    with st.container(horizontal=True, vertical_alignment="center", key="curves_result"):
        st.markdown(escape(sentence), width="content")
        if view.metric == DEV_SCORE:
            label = "Compare says whether the difference is more than chance."
            link_to_runs([run.id for run in runs], label, ":material/compare_arrows:", page="compare")


def _title(view: CurvesView) -> None:
    """Draws the title: metric, task, seeds and smoothing."""
    metric, reading, task = view.metric, view.reading, view.large.task
    of = task or (metric.total if metric.total != metric.title else "whole run")
    parts = []
    if any(len(group.seeds) > 1 for group in view.legend):
        parts.append(_OF_SEEDS[reading.seeds].format(_seeds_of_all(view.legend) or "seeds"))
    if reading.smoothing:
        parts.append(f"smoothed {reading.smoothing:g}")
    small = f" :gray[:small[· {escape(' · '.join(parts))}]]" if parts else ""
    st.markdown(f"**{escape(f'{metric.title}, {of}')}**{small}", width="stretch")


def _range_button(view: CurvesView) -> None:
    """Draws the button that shows the start of training, or leaves it out."""
    if view.steep_until is None or view.metric != DEV_SCORE:
        return
    of_end = view.reading.of_end
    later = f"From {place_text(view.reading.axis, view.steep_until)}"
    st.button(
        "Show all" if of_end else later,
        icon=f":material/{'unfold_more' if of_end else 'unfold_less'}:",
        type="tertiary",
        key="curve_range",
        help=f"{later} on, scores are near those of the second half of training.",
        on_click=set_of_end,
        args=(not of_end,),
    )


def _about_tasks(view: CurvesView, runs: Sequence[Run]) -> str:
    """A caution on comparing lines of the task shown, or of the whole."""
    task, whole = view.large.task, view.large.task == TOTAL
    first = numbers.first_task([TOTAL, *(panel.task for panel in (view.large, *view.small))], runs)
    if first != TOTAL and view.small:
        which = f" Most of them have {task}." if task == first else ""
        return escape(f"These runs have different tasks: compare a task, not the mean.{which}")
    if len({run.config.corpus for run in runs}) > 1:
        return "These runs are on different data: their values do not compare."
    paradigms = {run.config.paradigm for run in runs}
    if whole and view.metric == LOSS and "mrn" in paradigms and len(paradigms) > 1:
        return "MRN's total includes its penalty: compare the losses of a task."
    return ""


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
        revision=f"{metric.split} {metric.name} {reading.axis} {reading.log_y} {view.start is None}",
        still=small,
        zoom=Zoom(_ZOOM, window(), set_window),
        picture=picture,
    )


def _nothing_yet(runs: Sequence[Run], title: str) -> None:
    """Draws the progress of each run instead, or a message that no run will have this curve."""
    active = [run for run in runs if run.state in ACTIVE]
    sentences = [
        f"Run {run.id}: {with_code(progress_text(resources.store(), run))}" for run in active[:_MOST_NOTES]
    ]
    if len(active) > _MOST_NOTES:
        sentences.append(f"{plural(len(active) - _MOST_NOTES, 'more run')} queued or in progress.")
    if not active:
        # A run that was restored from a record may hold scores alone.
        succeeded = any(run.state is RunState.SUCCEEDED for run in runs)
        why = "The records of these runs do not hold" if succeeded else "These runs ended before they had"
        sentences = [f"{why} this curve. Choose another curve or other runs."]
    empty(f"No {title.lower()}{' yet' * bool(active)}", "  \n".join(sentences))


def _legend(view: CurvesView, hidden: Sequence[str]) -> None:
    smoothed = ", smoothed" if view.reading.smoothing else ""
    of_all = _seeds_of_all(view.legend)
    columns = [
        "Configuration",
        "" if of_all else "Seeds",
        *(f"{end}{smoothed}" for end in _ENDS[: 1 + bool(view.metric.best)]),
    ]
    rows, partly = [], False
    for group in _by_end(view):
        of = group.configuration
        runs = [
            LegendRow(key, name, key in hidden, (_states(curve.runs), *_ends(view, [curve], [curve])))
            for curve, key, name in zip(group.runs, group.keys, group.names, strict=True)
        ]
        cells = ("" if of_all else _seeds(group), *_ends(view, group.ended, group.seeds))
        partly = partly or len(group.ended) < len(group.seeds)
        look = (of.colour, DASHES[of.paradigm])
        rows.append(LegendRow(of.key, of.name, of.key in hidden, cells, *look, tuple(runs), of.settings))
    curve_legend(
        rows,
        columns,
        runs_drawn=view.reading.seeds == "lines",
        key="curve_legend",
        changed=lambda keys: set_parameter("hide", ",".join(keys)),
    )
    notes = []
    if view.metric == DEV_SCORE and _overlap(view):
        notes.append("Methods may differ though their bands overlap: Compare tests seed by seed.")
    if any(line.kept for line in view.large.lines):
        notes.append("◆ the epoch whose weights were kept.")
    if partly:
        notes.append("Last: at the last step that all succeeded seeds have. Best: of the succeeded seeds.")
    if early := _early(view.legend):
        notes.append(early)
        if view.reading.seeds != "lines" and any(len(group.seeds) > 1 for group in view.legend):
            notes.append("After the end of a seed, the mean is over the others.")
    if len({row.colour for row in rows}) < len(rows):
        notes.append("Some colours stand for two configurations.")
    if notes:
        st.caption(" ".join(notes))


def _by_end(view: CurvesView) -> list[Group]:
    """The groups as their lines end, the best first; in their own order while runs train."""
    groups = list(view.legend)
    runs = [run for group in groups for curve in group.runs for run in curve.runs]
    if not view.metric.best or any(run.state in ACTIVE for run in runs):
        return groups
    sign = -1 if view.metric.best == "max" else 1

    def end(group: Group) -> float:
        last = last_shared(group.ended, group.seeds)
        return math.inf if last is None else sign * sum(last[1]) / len(last[1])

    return sorted(groups, key=end)


def _overlap(view: CurvesView) -> bool:
    """Whether bands of two drawn configurations overlap at their ends, and some of their seeds are paired."""
    seeds = {group.configuration: {curve.seed for curve in group.seeds} for group in view.legend}
    lines = [line for line in view.large.lines if line.low is not None]
    return any(
        len(seeds[a.configuration] & seeds[b.configuration]) > 1
        and a.low[-1] < b.high[-1]
        and b.low[-1] < a.high[-1]
        for a, b in combinations(lines, 2)
        if a.low is not None and a.high is not None and b.low is not None and b.high is not None
    )


def _early(groups: Sequence[Group]) -> str:
    """Which runs early stopping ended, and when."""
    runs = [run for group in groups for curve in group.runs for run in curve.runs]
    ends = [f"run {run.id} after {end}" for run in runs if (end := ended_early(run))]
    return f"Early stopping ended {first_of(ends, _MOST_NAMED)}." if ends else ""


def _seeds(group: Group) -> str:
    """`5 seeds`, and the states of the runs that have not all ended well."""
    seeds = [curve.seed for curve in group.seeds]
    parts = [f"seed {seeds[0]}" if len(seeds) == 1 else plural(len(seeds), "seed")] if seeds else []
    runs = [run for curve in group.runs for run in curve.runs]
    if any(run.state is not RunState.SUCCEEDED for run in runs):
        parts.append(_states(runs))
    return ", ".join(parts) or "–"


def _seeds_of_all(groups: Sequence[Group]) -> str:
    """`5 seeds`, where that is what all configurations have."""
    texts = {_seeds(group) for group in groups}
    several = plural(len(groups[0].seeds), "seed")
    return several if texts == {several} else ""


def _states(runs: Sequence[Run]) -> str:
    """`✓ Succeeded`; where states differ, how many runs are in each."""
    counts = Counter(run.state for run in runs)
    return ", ".join(state_text(state, n if len(counts) > 1 else 0) for state, n in counts.items())


def _ends(view: CurvesView, of: Sequence[Curve], among: Sequence[Curve]) -> tuple[str, ...]:
    """The last value that these curves share and their best one; of several mean ± SD (see `last_shared`)."""
    metric, texts = view.metric, ["–"]
    if last := last_shared(of, among):
        x, values = last
        texts = [f"{_mean_text(metric, values)} at {place_text(view.reading.axis, x)}"]
    if metric.best:
        points = [point for curve in of if (point := curve.best(metric))]
        at = sorted({x for x, _ in points})
        where = " to ".join(
            [*(place_text(view.reading.axis, x) for x in at[:1]), *(f"{x:g}" for x in at[1:][-1:])]
        )
        texts.append(f"{_mean_text(metric, [y for _, y in points])} at {where}" if points else "–")
    return tuple(texts)


def _mean_text(metric: Metric, values: Iterable[float]) -> str:
    over = summary(values)
    return metric.text(over.mean, over.sd)


def _notes(view: CurvesView, series: Sequence[MetricSeries]) -> None:
    """Draws notes on gaps, on points that a log axis leaves out, and on interpolation."""
    notes = numbers.missing(view.metric, series)
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"{plural(len(notes) - _MOST_NOTES, 'more curve')} have gaps."]
    if notes:
        show_reason("  \n".join(escape(sentence) for sentence in notes))
    left_out = {panel.task: panel.left_out for panel in (view.large, *view.small) if panel.left_out}
    if left_out:
        where = ", ".join(f"{count:,} of {task or 'the whole'}" for task, count in left_out.items())
        st.caption(f"The log scale has no place for points of 0 or less; left out: {escape(where)}.")
    if view.interpolated:
        places = PLACES[view.reading.axis]
        st.caption(f"Seeds were logged at different {places}; between its points each is interpolated.")
