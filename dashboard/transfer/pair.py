"""One pair on the Transfer page: gains by seed, losses, which labels got better or worse, and features."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.evaluation.mistakes import errors
from core.metrics import LOSS
from core.store.types import Run
from core.tasks import kind_of
from core.transfer.features import FEATURES
from core.transfer.gains import Gain, Pair
from core.wording import plural
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.downloads import show_table
from dashboard.text import escape
from dashboard.theme import TASK_COLOURS
from dashboard.transfer import views
from dashboard.transfer.charts import loss_chart
from dashboard.transfer.tables import draw_seeds, has_seeds_beside
from jobs.reports.parts import Entry, Form, Sheet, number_text
from jobs.reports.transfer import PairGroup
from jobs.studies.evidence import Evidence

_FIRST_CHANGES, _MOST_CHANGES = 5, 25


def pair_detail(group: PairGroup, pair: Pair, unit: str, colours: Mapping[str, str]) -> None:
    """Everything about one pair of tasks."""
    main, aux = pair
    if main == aux:
        st.caption("Choose two different tasks.")
        return
    gains = {order[0]: group.gains.pairs[order] for order in (pair, pair[::-1]) if order in group.gains.pairs}
    if not gains:
        st.caption(f"No seed has both MTL of {escape(main)} and {escape(aux)} and STL of one of them.")
        return
    ids = [run for tasks in ((main,), (aux,), pair) for run in group.of(*tasks).values()]
    runs = {run.id: run for run in resources.store().runs(ids)}
    is_equal = all(gain.is_equal for gain in gains.values())
    if is_equal:  # a table or a chart of nothing but zeros would say no more
        with st.container(gap="xsmall"):
            for gain in gains.values():
                st.markdown(views.gain_sentence(gain, unit, group.scored_by[gain.main]))
    else:
        alt = "The gain of each of the two tasks from the other"
        show_table(views.gains_sheet([*gains.values()], unit, group.scored_by), alt=alt)
    if not has_seeds_beside(group) and not is_equal:
        draw_seeds([gain for gain in gains.values() if not gain.learned_nothing], pair)
    for column, task, role in zip(st.columns(2, gap="large"), pair, ("main", "auxiliary"), strict=True):
        with column:
            st.markdown(f"**Mistakes on {escape(task)}** ({role})")
            if task in gains:
                _changes(group, gains[task], runs)
            else:
                st.caption("No seed has both STL and MTL.")
    opened = st.expander("Training losses", key="pair_losses", on_change="rerun")
    if opened.open:
        for column, task in zip(opened.columns(2, gap="large"), pair, strict=True):
            with column:
                st.markdown(f"**Training loss of {escape(task)}**")
                _losses(group, task, pair, runs, colours.get(task, TASK_COLOURS[-1]))


def _losses(group: PairGroup, task: str, pair: Pair, runs: Mapping[int, Run], colour: str) -> None:
    courses = {}
    for paradigm, tasks in (("stl", (task,)), ("mtl", pair)):
        of_paradigm = [runs[run_id] for run_id in group.of(*tasks).values()]
        curves = resources.curve_series(of_paradigm, [LOSS.key(task)])
        courses[paradigm] = views.course(curves, {run.id: run.step for run in of_paradigm})
    if views.is_same_course(courses["stl"], courses["mtl"]):  # else one line would hide the other
        del courses["mtl"]
    chart(
        loss_chart(courses, colour), key=f"pair_loss_{task == pair[0]}", revision=" ".join((task, *pair)),
        still=True, alt=f"Training loss of {task} alone and beside the other task",
    )  # fmt: skip


def _changes(group: PairGroup, gain: Gain, runs: Mapping[int, Run]) -> None:
    """Draws the confusions that are more and less frequent under MTL than STL, over common seeds."""
    task, seeds = gain.main, plural(gain.seeds, "seed")
    alone, beside = group.of(task), group.of(task, gain.aux)
    first = beside[min(gain.by_seed)]
    kind = kind_of(resources.store().run(first).task_facts, task, group.scored_by[task])
    if kind.is_number:
        st.caption("Numeric tasks have no confusions.")
        return
    stl, mtl = (
        errors(resources.confusions([runs[ids[seed]] for seed in gain.by_seed], "test", task, kind))
        for ids in (alone, beside)
    )
    if stl is None or mtl is None or stl.seeds != mtl.seeds:
        st.caption("The predictions of some runs are not stored.")
        return
    changed = views.changes(stl, mtl)
    if changed.empty:
        st.caption(f"The same mistakes under STL and MTL, over {seeds}.")
        return
    st.markdown(views.label_sentence(stl, mtl))
    st.caption(f"Counts on the test sentences, over {seeds}. ✓: fewer mistakes. ✕: more.")
    rest = changed.iloc[_FIRST_CHANGES:_MOST_CHANGES]
    _mistakes(changed.iloc[:_FIRST_CHANGES], task)
    if len(rest):
        with st.expander(f"The next {len(rest)} of {plural(len(changed), 'change')}"):
            _mistakes(rest, task)


def _mistakes(changed: pd.DataFrame, task: str) -> None:
    head, forms = tuple(changed.columns), tuple[Form, ...]((",d", ",d", _change_text))
    rows = [
        (mistake, *(Entry(count, form=form) for count, form in zip(counts, forms, strict=True)))
        for mistake, *counts in changed.itertuples(index=False)
    ]
    show_table(Sheet.of(head, rows), alt=f"The mistakes on {task} that change most from STL to MTL")


def _change_text(change: float) -> str:
    return f"{'✕' if change > 0 else '✓'} {number_text(change, '+,.0f')}"


def pair_features(known: Evidence, pair: Pair) -> None:
    """The 14 features of both tasks and their ratio."""
    if pair[0] == pair[1]:
        return
    features = [known.features.get(task) for task in pair]
    rows = []
    for name, title in FEATURES.items():
        main, aux = (math.nan if of_task is None else of_task.values[name] for of_task in features)
        numbers = (main, aux, main / aux if aux else math.nan)
        rows.append((title, *(Entry(each, form=".3g") for each in numbers)))
    st.markdown(f"**Features of {escape(pair[0])} and {escape(pair[1])}**")
    head = ("Feature", f"{pair[0]} (main)", f"{pair[1]} (auxiliary)", "main / aux")
    show_table(Sheet.of(head, rows), alt="Features of both tasks")
    notes = [
        f"{task}: {note}"
        for task, of in zip(pair, features, strict=True)
        if of is not None
        for note in of.notes
    ]
    st.caption(
        "Features of the training data and of the STL loss: its gradient after a share of training, and a "
        f"and c of the fit a ln(c i + d) + b. Means over seeds. {escape(' '.join(notes))}"
    )
