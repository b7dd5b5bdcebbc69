"""The one chart of Relations: correlations against the number of a sweep, or over training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import streamlit as st

from core.evaluation.relation_verdicts import CellVerdict
from core.results.relations import RelationTable
from core.results.series import Series, number_series, series_names
from core.store.types import RunState
from core.wording import plural
from dashboard.components.charts import chart
from dashboard.relations import views
from dashboard.relations.charts import AgainstLine, Course, against_chart, course_chart
from dashboard.relations.cut import Pair
from dashboard.relations.sentences import NEARLY_ONE
from dashboard.relations.snapshots import RelationsState, pair_values
from dashboard.relations.verdicts import Decided
from dashboard.relations.views import Bools, Floats, signed
from dashboard.shared import resources
from dashboard.shared.selection import choice, segments
from dashboard.text import escape
from dashboard.theme import TEXT, configuration_colours, ramp

FEW_TASKS = 3
"""All pairs of so many tasks have a line over training."""
_MOST_LINES = 6
_HEIGHT, _LARGE = 300, 420
_LONG, _LEGEND_LINE = 32, 20
_AGAINST, _TRAINING = "against", "training"


def few_pairs(state: RelationsState, learnable: Bools) -> list[tuple[int, int]]:
    """All pairs that can be related, of one matrix of so few tasks that each has a line; else none."""
    is_few = state.is_single and state.mode == "task" and len(state.shared.rows) <= FEW_TASKS
    return [(i, j) for i, j in np.argwhere(np.triu(learnable, 1)).tolist()] if is_few else []


def few_names(state: RelationsState, pair: tuple[int, int]) -> Pair:
    """The names of one of them."""
    first, second = (state.shared.rows.names[place] for place in pair)
    return first, second


def pair_colours(few: Sequence[tuple[int, int]]) -> list[str]:
    """The colours of their lines; a single one has none."""
    return [ramp(index + 1) if len(few) > 1 else "" for index in range(len(few))]


def draw_lines(
    state: RelationsState,
    answer: Decided,
    pair: Pair | None,
    few: Sequence[tuple[int, int]],
    alone: Floats | None,
) -> None:
    """Draws correlations against the number in which the configurations differ, or over training.

    `alone` (n, n) are those that the alignment alone gives. Where there is no such chart a sentence says why.
    """
    sweeps = _sweeps(state, answer)
    view = _TRAINING
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweeps:
            named = dict(zip(series_names(list(sweeps)), sweeps, strict=True))
            name = next(iter(named))
            title = next(iter(sweeps)).title
            views_ = {
                _AGAINST: f"Against {title if len(sweeps) == 1 else 'a setting'}",
                _TRAINING: "Over training",
            }
            view = segments("Chart", views_, key="chart")
            if view == _AGAINST and len(named) > 1:
                name = choice("Setting", named.keys(), key="against", label_visibility="collapsed", width=260)
    if view == _AGAINST:
        _against(state, named[name], answer.tables, pair)
    else:
        _over_training(state, answer, pair, few, alone)


def _sweeps(state: RelationsState, answer: Decided) -> list[Series]:
    """The configurations chosen that differ in one number alone; without verdicts none."""
    ids = [run_id for table in answer.tables for run_id in table.run_ids]
    if len(answer.tables) < 2:
        return []
    runs = resources.store().runs(ids, {RunState.SUCCEEDED})
    return number_series(runs, resources.store().conditions(runs))


def _against(
    state: RelationsState, series: Series, tables: Sequence[RelationTable], pair: Pair | None
) -> None:
    by_run = {run_id: table for table in tables for run_id in table.run_ids}
    by_value = {value: by_run[runs[0].id] for value, runs in series.runs.items() if runs[0].id in by_run}
    pairs = _strongest(by_value.values(), pair)
    short = views.short_names([*dict.fromkeys(name for each in pairs for name in each)], state.mode)
    lines = [
        AgainstLine(
            f"{short[first]} – {short[second]}",
            ramp(index + 1),
            {
                value: cell
                for value, table in by_value.items()
                if (cell := _cell(table, (first, second))) is not None
            },
        )
        for index, (first, second) in enumerate(pairs)
    ]
    if not lines:
        st.caption("No pair could be learned in these configurations.")
        return
    chart(
        against_chart(lines, series, _HEIGHT + 20 + _legend_height([line.name for line in lines])),
        key="relations_against",
        revision=f"{series.title} {list(series.runs)} {pairs}",
        still=True,
        alt=f"Correlations of pairs against {series.title}, at the last step, with their 95% intervals",
    )
    st.caption(
        "Means over seeds at the last step with 95% intervals. Filled: decided, hollow: undecided. Dotted: "
        "±0.1, below which no relation matters."
    )


def _legend_height(names: Sequence[str]) -> int:
    """What a legend of long names takes, a line each; short ones stand beside each other."""
    return _LEGEND_LINE * (len(names) - 1) if max(map(len, names)) > _LONG else _LEGEND_LINE


def _strongest(tables: Iterable[RelationTable], pair: Pair | None) -> list[Pair]:
    """The chosen pair, then the pairs with the strongest correlation in any of these tables."""
    sizes: dict[Pair, float] = {}
    for table in tables:
        for cell in table.cells:
            first, second = table.rows.names[cell.i], table.rows.names[cell.j]
            key = (second, first) if (second, first) in sizes else (first, second)
            sizes[key] = max(sizes.get(key, 0.0), abs(cell.mean))
    ranked = sorted(sizes, key=lambda each: -sizes[each])
    chosen = [each for each in ranked if pair is not None and set(each) == set(pair)]
    return [*chosen, *(each for each in ranked if each not in chosen)][:_MOST_LINES]


def _cell(table: RelationTable, pair: Pair) -> CellVerdict | None:
    names = table.rows.names
    if not {*pair} <= {*names}:
        return None
    i, j = map(names.index, pair)
    return table.verdicts.cell(i, j) if table.verdicts.tested[i, j] else None


def _over_training(
    state: RelationsState,
    answer: Decided,
    pair: Pair | None,
    few: Sequence[tuple[int, int]],
    alone: Floats | None,
) -> None:
    """Draws the few pairs, else one pair: of one matrix its seeds too, of several their means."""
    names = state.shared.rows.names
    short = views.short_names(names, state.mode)
    places = list(few)
    if not places and pair is not None:
        places = [(names.index(pair[0]), names.index(pair[1]))]
    if not places:
        return
    if len(state.steps.steps) == 1:
        st.caption("One snapshot is stored: there is no line over training.")
        return
    courses, xs = [], state.positions()
    for (i, j), colour in zip(places, pair_colours(places), strict=True):
        values = pair_values(state, i, j)
        title = f"{short[names[i]]} – {short[names[j]]}"
        courses += _courses(state, values, xs, title, colour)
    if len(places) == 1:
        first, second = (escape(short[names[place]]) for place in places[0])
        of = answer.of_matrices[0] if state.is_single else None
        interval = "" if of is None or few else views.interval_text(of.cell(*places[0]))
        at_end = _reached(state, courses[0]) if few else ""
        if of is not None and interval:
            at_end = f": {signed(of.mean[places[0]])} {interval} at the end"
        has_seeds = any(course.seeds.size for course in courses)
        sign = " :small[:gray[thin: a seed, band: ± SD]]" * has_seeds
        st.markdown(f"**{first}** and **{second}** over training{at_end}{sign}")
    measure = "Correlation" if state.is_learned else "Cosine"
    chart(
        course_chart(
            courses,
            state.at,
            _height(state, courses, len(places)),
            by_share=not state.steps.exact,
            legend=not state.is_single,  # the list beside it is one
            bound=bool(answer.shown(state)),
            alone=None if alone is None else float(alone[places[0]]),
            measure=measure,
        ),
        key="relations_course",
        revision=f"{[run.id for run in state.runs]} {places}",
        still=True,
        alt=f"{measure} of {plural(len(places), 'pair')} at each step",
    )


def _reached(state: RelationsState, course: Course) -> str:
    """From which step on a line is at ±1; empty where it does not end there."""
    below = np.flatnonzero(~(np.abs(course.values) >= NEARLY_ONE))
    first = int(below[-1]) + 1 if len(below) else 0
    if first == len(course.values):
        return ""
    where = f"step {course.x[first]:,.0f}" if state.steps.exact else f"{course.x[first]:g}% of training"
    return f": at ±{NEARLY_ONE} or beyond from {where} on"


def _height(state: RelationsState, courses: Sequence[Course], pairs: int) -> int:
    if not state.is_single:
        return _HEIGHT + _legend_height([course.name for course in courses])
    return _LARGE if pairs == 1 and len(state.shared.rows) == 2 else _HEIGHT


def _courses(
    state: RelationsState, values: Floats, xs: Sequence[Floats], title: str, colour: str
) -> list[Course]:
    """The lines of a pair: of one matrix one with its seeds, of several one each."""
    kinds = [(group.runs[0].config.paradigm, group.runs[0].config.lambda_) for group in state.groups]
    colours = [colour or TEXT] if state.is_single else configuration_colours(kinds)
    courses, start = [], 0
    for short, of_group, shade in zip(state.short_titles, state.by_group(values), colours, strict=True):
        has_seeds = state.is_single and len(of_group) > 1
        courses.append(
            Course(
                title if state.is_single else short,
                shade,
                xs[start],
                of_group.mean(axis=0),
                of_group.std(axis=0, ddof=1) if has_seeds else np.empty(0),
                of_group if has_seeds and not colour else np.empty((0, 0)),
            )
        )
        start += len(of_group)
    return courses
