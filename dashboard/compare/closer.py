"""A closer look at two configurations on one task: label by label, mistake by mistake, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pandas as pd
import streamlit as st

from core.errors import MRNLabError
from core.evaluation.confusion import NOTHING, OTHER_WORDS
from core.store.records import Run
from core.wording import p_text, plural, points, unsigned_zero
from dashboard.compare.charts import confusion_chart, seeds_chart
from dashboard.compare.closer_views import (
    CLASS_COLUMNS,
    ClassRow,
    Errors,
    Labels,
    Matrix,
    Mistake,
    class_records,
    classes,
    errors,
    matrix,
    mistakes,
    places,
    reports,
)
from dashboard.compare.scope import Scope, confusions, labels, words
from dashboard.compare.views import per_seed
from dashboard.components.charts import chart
from dashboard.components.sentence import Lane, Mark, SentenceBlock, marks, sentence
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.shared.selection import segments
from dashboard.text import escape, option
from dashboard.theme import TASK_COLOURS, colours
from jobs.results import ResultRow, ResultTable
from jobs.sheets import csv_text

_MOST_SENTENCES = 5
_MOST_MISTAKES = 60
_MOST_LINES = 12
"""Configurations side by side up to which their names can be read."""
_SHOWN, _PICKED = "shown_mistake", "picked_mistake"
_LOOKS = {"per class": "Per class", "mistakes": "Mistakes", "per seed": "Per seed"}


def closer_look(table: ResultTable, compared: Scope, a: str, b: str) -> None:
    """The choice of task and view, and the view."""
    own, other = table.row(a), table.row(b)
    st.subheader("A closer look", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = segments("View", _LOOKS, key="closer")
        if st.session_state.get("task") not in table.tasks:
            st.session_state.pop("task", None)  # a task of other runs
        # By default the last shared task: spans are most telling, and stand last in most corpora.
        shared = [task for task in table.tasks if task in own.cells and task in other.cells]
        names = {task: option(task) for task in table.tasks}
        task = segments("Task", names, key="task", default=(shared or table.tasks)[-1])
    if look == "per class":
        _per_class(table, task, own, other)
    elif look == "mistakes":
        _mistakes(table, {run.id: run for run in compared.runs}, task, own, other)
    else:
        _per_seed(table, task, other)


def _csv_button(text: str, name: str) -> None:
    st.download_button(
        "CSV", text, file_name=name, mime="text/csv", icon=":material/download:", on_click="ignore"
    )


def _per_class(table: ResultTable, task: str, a: ResultRow, b: ResultRow) -> None:
    if task not in a.cells or task not in b.cells:
        st.caption(f"Only one of the two was trained on {escape(task)}.")
        return
    ids = [*a.cells[task].run_ids.values(), *b.cells[task].run_ids.values()]
    scores = resources.store().scores(ids, table.split)
    rows = classes(*(reports(row.cells[task], task, scores) for row in (a, b)))
    if not rows:
        st.caption("No report by label is stored for these runs.")
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**A** {escape(a.name)}, **B** {escape(b.name)}", width="content")
        records = class_records(rows, (a.name, b.name))
        _csv_button(csv_text(CLASS_COLUMNS, records), f"mrnlab-{task}-classes.csv")
    _class_table(rows)
    st.caption(
        "Percent, means over seeds; ± is the standard deviation. The difference is that of F1, A − B, paired "
        "by seed, with half of the 95% interval of a label by itself; p is corrected for all labels (Holm). "
        "A click on *Annotated* brings the rare labels to the top."
    )


def _class_table(rows: Sequence[ClassRow]) -> None:
    lines = []
    for row in rows:
        line: dict[str, object] = {"Label": row.label, "Annotated": row.support}
        for letter, side in (("A", row.a), ("B", row.b)):
            for number, name in (("precision", "P"), ("recall", "R"), ("f1", "F1")):
                line[f"{letter} {name}"] = 100 * side[number].mean if side else None
            sd = side["f1"].sd if side else None
            line[f"{letter} ±"] = None if sd is None else 100 * sd
        line["A − B"] = None if row.difference is None else points(row.difference.mean)
        line["± 95%"] = None if row.half_interval is None else 100 * row.half_interval
        line["p"] = p_text(row.p)
        lines.append(line)
    number_column = st.column_config.NumberColumn
    names = [f"{letter} {name}" for letter in "AB" for name in ("P", "R", "F1", "±")]
    st.dataframe(
        pd.DataFrame(lines),
        hide_index=True,
        height="content" if len(rows) <= 14 else 520,
        placeholder="–",
        column_config={
            "Label": st.column_config.TextColumn(pinned=True),
            "Annotated": st.column_config.ProgressColumn(
                format="%d", min_value=0, max_value=max(row.support for row in rows), width=110
            ),
            **{name: number_column(format="%.2f", width=66) for name in names},
            "A − B": number_column(format="%+.2f", width=74),
            "± 95%": number_column(format="%.2f", width=66),
            "p": st.column_config.TextColumn(width=70),
        },
        alt="Precision, recall and F1 by label of both configurations, and the difference of F1",
    )


# Mistakes: the matrix left, the most frequent ones right, sentences in which they happen below


def _mistakes(table: ResultTable, runs: Mapping[int, Run], task: str, a: ResultRow, b: ResultRow) -> None:
    scheme = "iob2" if table.scored_by[task] == "f1_conll" else "plain"
    own, other = (_errors(row, runs, table.split, task, scheme) for row in (a, b))
    if own is None:
        st.caption(
            f"No predictions of {escape(a.name)} on {escape(task)} are stored: its mistakes are unknown."
        )
        return
    choices = {a.name: option(a.name)}
    if other is not None:
        choices |= {b.name: option(b.name), "difference": option(f"{a.name} − {b.name}")}
    if st.session_state.get("of_whom") not in choices:
        st.session_state.pop("of_whom", None)
    shown = segments("Of", choices, key="of_whom")
    left, right = st.columns([5, 4], gap="medium")
    with left:
        if shown == "difference":
            view = matrix(own, other)
        else:
            view = matrix(other if other is not None and shown == b.name else own)
        clicked = _matrix(view, task)
    with right:
        selected = _mistake_table(mistakes(own, other), a.name, None if other is None else b.name)
    # A click is reported once, a selected row as long as it stands: the later one is shown.
    if clicked is not None:
        st.session_state[_SHOWN] = task, *clicked
    elif selected is not None and selected != st.session_state.get(_PICKED):
        st.session_state[_SHOWN] = task, *selected
    st.session_state[_PICKED] = selected
    of_task, gold, predicted = st.session_state.get(_SHOWN, ("", "", ""))
    if of_task == task and gold != predicted:
        _examples(table, runs, task, scheme, (a, b), (gold, predicted))


def _errors(row: ResultRow, runs: Mapping[int, Run], split: str, task: str, scheme: str) -> Errors | None:
    run_ids = row.cells[task].run_ids.values() if task in row.cells else ()
    return errors(confusions([runs[run_id] for run_id in run_ids], split, task, scheme))


def _matrix(view: Matrix, task: str) -> tuple[str, str] | None:
    """Returns the mistake that was clicked."""
    clicked = chart(
        confusion_chart(view),
        key="confusion",
        revision=" ".join([task, *view.gold, *view.predicted]),
        still=True,
        alt=f"What is taken for what on {task}",
    )
    invented = "; *nothing there*: in percent of what is annotated as the column"
    st.caption(
        "Red: the first makes this mistake more often, blue: less often; in points of what is "
        "annotated. Beside the names: the difference of what is right."
        if view.signed
        else "Rows: what is annotated, and the share that is right. Columns: what it was taken for, in "
        f"percent of the row{invented if NOTHING in view.gold else ''}. What is right is grey, so that "
        "mistakes show. Click a cell for sentences."
    )
    return None if clicked is None else (view.gold[round(clicked.y)], view.predicted[round(clicked.x)])


def _mistake(gold: str, predicted: str) -> str:
    """A mistake in words."""
    names = [
        {NOTHING: nothing, OTHER_WORDS: "other words"}.get(label, label)
        for label, nothing in ((gold, "nothing there"), (predicted, "missed"))
    ]
    return " → ".join(names)


def _mistake_table(listed: Sequence[Mistake], a: str, b: str | None) -> tuple[str, str] | None:
    """The most frequent mistakes; returns the selected one."""
    frame = pd.DataFrame(
        {
            "Mistake": _mistake(one.gold, one.predicted),
            "A": one.a,
            **({"B": one.b, "A − B": unsigned_zero(one.a - one.b, 1)} if b is not None else {}),
        }
        for one in listed[:_MOST_MISTAKES]
    )
    number = st.column_config.NumberColumn
    event = st.dataframe(
        frame,
        key="mistakes",
        hide_index=True,
        height=440,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Mistake": st.column_config.TextColumn(
                width=140, help="What is annotated, and what it was taken for."
            ),
            "A": number(format="%.1f", width=50, help=f"Per seed, by {a}."),
            "B": number(format="%.1f", width=50, help=f"Per seed, by {b}."),
            "A − B": number(format="%+.1f", width=60),
        },
        alt="The most frequent mistakes, per seed",
    )
    second = f", B: {escape(b)}" if b else ""
    st.caption(f"Mistakes per seed. A: {escape(a)}{second}. Select one for sentences.")
    rows = event.selection.rows
    return (listed[rows[0]].gold, listed[rows[0]].predicted) if rows else None


@dataclass(frozen=True)
class _Side:
    """One configuration's run of the seed shown: `A` or `B`, and its labels."""

    letter: str
    name: str
    run: Run
    gold: Labels
    predicted: Labels


def _examples(
    table: ResultTable,
    runs: Mapping[int, Run],
    task: str,
    scheme: str,
    rows: tuple[ResultRow, ResultRow],
    mistake: tuple[str, str],
) -> None:
    """The first sentences in which A makes the mistake, or where it never does, B; of one seed."""
    sides = _sides(table, runs, task, rows)
    where: list[int] = []
    for side in sides:
        where = list(islice(places(scheme, side.gold, side.predicted, mistake), _MOST_SENTENCES))
        if where:
            break
    st.markdown(f"**{escape(_mistake(*mistake))}**")
    if not where:
        st.caption("Not made with the first seed that both have.")
        return
    try:
        text = words(side.run.config, table.split, task, side.gold)
    except MRNLabError as error:
        st.caption(escape(f"The sentences cannot be shown. {error}"))
        return
    if text is None:
        st.caption("The corpus is no longer what these runs were scored on: its words cannot be shown.")
        return
    colour = colours(resources.task_order()).get(task, TASK_COLOURS[-1])
    kind = "spans" if scheme == "iob2" else "plain"
    lanes = [("gold", side.gold), *((one.letter, one.predicted) for one in sides)]
    blocks = [
        SentenceBlock(
            text[place],
            tuple(
                Lane(task, colour, kind, _marks(rows[place], side.gold[place], scheme), who=name)
                for name, rows in lanes
            ),
        )
        for place in where
    ]
    sentence(blocks, key="mistake_sentences", small=True)
    st.caption(
        f"The first {plural(len(where), 'sentence')} in which {escape(side.name)} makes this mistake "
        f"(seed {side.run.config.seed}). Outlined: not as annotated."
    )


def _sides(
    table: ResultTable, runs: Mapping[int, Run], task: str, rows: tuple[ResultRow, ResultRow]
) -> list[_Side]:
    """Those of the two whose predictions are stored, of the first seed that both have."""
    cells = [row.cells[task] for row in rows if task in row.cells]
    seeds = set.intersection(*(set(cell.run_ids) for cell in cells)) or set(cells[0].run_ids)
    sides = []
    for letter, row in zip("AB", rows, strict=True):
        run_id = row.cells[task].run_ids.get(min(seeds)) if task in row.cells else None
        stored = None if run_id is None else labels(runs[run_id], table.split, task)
        if run_id is not None and stored is not None:
            sides.append(_Side(letter, row.name, runs[run_id], *stored))
    return sides


def _marks(own: Sequence[str], gold: Sequence[str], scheme: str) -> tuple[Mark, ...]:
    return tuple(
        mark if label == true else replace(mark, differs=True, why=f"annotated: {true}")
        for mark, label, true in zip(marks(own, scheme), own, gold, strict=True)
    )


def _per_seed(table: ResultTable, task: str, base: ResultRow) -> None:
    rows = [row for row in table.rows if task in row.cells]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        less = st.toggle(
            f"As differences to {base.name}",
            key="seed_differences",
            bind="query-params",
            disabled=task not in base.cells,
        )
        _csv_button(csv_file(pd.DataFrame(per_seed(table))), f"mrnlab-{table.split}-seeds.csv")
    if len(rows) <= _MOST_LINES:
        chart(
            seeds_chart(table, task, colours(resources.task_order()).get(task, TASK_COLOURS[-1])),
            key="seeds_chart",
            revision=" ".join([task, *(row.name for row in rows)]),
            still=True,
            alt=f"Scores on {task} of each seed by configuration",
        )
    seeds = sorted({seed for row in rows for seed in row.cells[task].by_seed})
    minus = dict.fromkeys(seeds, 0.0)
    if less and task in base.cells:
        minus = dict(base.cells[task].by_seed)
        rows = [row for row in rows if row.key != base.key]
    columns = {
        row.name: [
            points(own[seed] - minus[seed]) if seed in own and seed in minus else None for seed in seeds
        ]
        for row in rows
        for own in (row.cells[task].by_seed,)
    }
    number = st.column_config.NumberColumn
    form = "%+.2f" if less and task in base.cells else "%.2f"
    st.dataframe(
        pd.DataFrame({"seed": seeds, **columns}),
        hide_index=True,
        height="content" if len(seeds) <= 12 else 420,
        placeholder="–",
        column_config={
            "seed": number("Seed", width=60, pinned=True),
            **{name: number(format=form) for name in columns},
        },
        alt=f"Scores on {task} in percent, a line per seed, a column per configuration",
    )
    st.caption(
        f"{escape(task)}, {escape(table.score_names[task])}, in percent. A thin line is a seed, the thick "
        "one their mean: where all thin lines rise or fall together, every seed says the same."
    )
