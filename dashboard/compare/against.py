"""Scores against a number in which configurations differ, beside or less a baseline."""

from __future__ import annotations

import streamlit as st

from core.results.figures import against_chart
from core.results.series import ScoresAgainst, Series, scores_against, series_names
from dashboard.compare import compared_runs
from dashboard.compare.compared_runs import ComparedRuns
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.resources import task_colours
from dashboard.shared.selection import choice, segments
from dashboard.text import escape

_LINES = {"mean": "Mean of tasks", "tasks": "Each task"}
_VALUES = {"scores": "Scores", "differences": "Difference from"}


def draw_against(compared: ComparedRuns) -> None:
    """Draws scores against a number in which configurations differ, where some differ in one alone."""
    all_series = compared_runs.series_of(compared)
    if not all_series:
        return
    named = dict(zip(series_names(all_series), all_series, strict=True))
    with st.container(horizontal=True, vertical_alignment="center"):
        name = next(iter(named))
        st.subheader(f"Score against{f' {escape(name)}' * (len(named) == 1)}", anchor=False, width="content")
        if len(named) > 1:
            name = choice("Setting", named.keys(), key="against", label_visibility="collapsed", width=320)
        series = named[name]
        view, differs = _against_a_baseline(series, compared)
        lines = "tasks" if len(view.tasks) == 1 else segments("Lines", _LINES, key="lines")
    base = "" if view.baseline is None else view.baseline.name
    if differs and not view.differences:
        st.caption(f"{escape(base)} has no seed and task in common with these configurations.")
        return
    drawn = "differences" if differs else "scores"
    chart(
        against_chart(view, task_colours(), of_tasks=lines == "tasks", differences=differs),
        key="compare_against",
        revision=f"{name} {lines} {list(series.runs)} {drawn} {base}",
        still=True,
        alt=f"Dev and test {drawn} against {series.title} with their 95% intervals"
        + f", paired by seed with {base}" * differs,
    )
    best = view.dev_choice
    marked = (
        "" if best is None else f" Dashed line: the highest mean dev score, at {series.value_text(best)}."
    )
    intervals = (
        f"Points over {escape(base)}, paired by seed, with the 95% interval of each difference alone"
        if differs
        else "Means over seeds with 95% intervals"
    )
    is_grey = view.baseline is not None and not view.baseline.is_value and not differs
    grey = f" Grey: {escape(base)}." * is_grey
    st.caption(
        f"{intervals} (Student's t).{grey}{marked} Whether values differ is decided under "
        + ("*Differences*." if compared.every_row else "*Every row*, *Differences*.")
    )


def _against_a_baseline(series: Series, compared: ComparedRuns) -> tuple[ScoresAgainst, bool]:
    """The scores of a series beside those of the baseline picked, and whether the differences are drawn."""
    store = resources.store()
    bases = {base.name: base for base in compared_runs.baselines_of(series, compared)}
    base, differs = None, False
    if bases:
        # Differences are paired by seed; means vary between seeds too.
        first = "scores" if next(iter(bases.values())).is_value else "differences"
        differs = segments("Values", _VALUES, key="values", default=first) == "differences"
        base = bases[choice("Baseline", bases.keys(), key="from", label_visibility="collapsed", width=220)]
    ids = [*series.run_ids, *(base.run_ids if base else ())]
    return scores_against(series, store.scores(ids, with_reports=False), base), differs
