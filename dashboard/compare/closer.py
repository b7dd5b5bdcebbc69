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
from dashboard.compare.cache import confusions, labels, words
from dashboard.compare.charts import confusion_chart, seeds_chart
from dashboard.compare.closer_views import (
    CLASS_COLUMNS,
    ClassRow,
    Confused,
    Errors,
    Matrix,
    class_records,
    classes,
    confused,
    difference_matrix,
    errors,
    matrix,
    places,
    reports,
)
from dashboard.compare.scope import Scope
from dashboard.compare.views import per_seed
from dashboard.components.charts import chart
from dashboard.components.sentence import Lane, Mark, SentenceBlock, sentence
from dashboard.launch.data import marks
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.text import escape, option
from dashboard.theme import TASK_COLOURS, colours
from jobs.results import ResultRow, ResultTable
from jobs.sheets import csv_text

# Sentences in which a mistake is made: the gold labels, and what both configurations predicted.


_MOST = 5
Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class _Side:
    """One configuration's run of the seed shown: `A` or `B`, and its labels."""

    letter: str
    name: str
    run: Run
    gold: Labels
    predicted: Labels


def written(label: str, nothing: str) -> str:
    """A label of a confusion matrix in words."""
    return {NOTHING: nothing, OTHER_WORDS: "other words"}.get(label, label)


def examples(
    table: ResultTable,
    runs: Mapping[int, Run],
    task: str,
    scheme: str,
    rows: tuple[ResultRow, ResultRow],
    mistake: tuple[str, str],
) -> None:
    """The first few sentences in which A makes the mistake, or where it never does, B; of one seed."""
    sides = _sides(table, runs, task, rows)
    where: list[int] = []
    for side in sides:
        where = list(islice(places(scheme, side.gold, side.predicted, mistake), _MOST))
        if where:
            break
    told = f"{written(mistake[0], 'nothing there')} → {written(mistake[1], 'missed')}"
    st.markdown(f"**{escape(told)}**")
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
    sentence(
        [
            SentenceBlock(
                text[place],
                tuple(
                    Lane(task, colour, kind, _marks(found[place], side.gold[place], scheme), who=name)
                    for name, found in lanes
                ),
            )
            for place in where
        ],
        key="mistake_sentences",
        small=True,
    )
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
    found = []
    for letter, row in zip("AB", rows, strict=True):
        run_id = row.cells[task].run_ids.get(min(seeds)) if task in row.cells else None
        known = None if run_id is None else labels(runs[run_id], table.split, task)
        if run_id is not None and known is not None:
            found.append(_Side(letter, row.name, runs[run_id], *known))
    return found


def _marks(own: Sequence[str], gold: Sequence[str], scheme: str) -> tuple[Mark, ...]:
    return tuple(
        mark if label == true else replace(mark, differs=True, why=f"annotated: {true}")
        for mark, label, true in zip(marks(tuple(own), scheme), own, gold, strict=True)
    )


# What is taken for what: the matrix of mistakes, the most frequent ones, sentences in which they happen.


_MOST_ROWS = 60
_SHOWN, _PICKED = "shown_mistake", "picked_mistake"


def mistakes_view(table: ResultTable, found: Scope, task: str, a: str, b: str) -> None:
    """Matrix left, table right, sentences below."""
    runs = {run.id: run for run in found.runs}
    one, other = table.row(a), table.row(b)
    scheme = "iob2" if table.scored_by[task] == "f1_conll" else "plain"
    sides = [_errors(row, runs, table.split, task, scheme) for row in (one, other)]
    mine, theirs = sides
    if mine is None:
        st.caption(
            f"No predictions of {escape(one.name)} on {escape(task)} are stored: its mistakes are unknown."
        )
        return
    choices = [one.name, *([other.name, "difference"] if theirs is not None else [])]
    if st.session_state.get("of_whom") not in choices:
        st.session_state.pop("of_whom", None)
    shown = st.segmented_control(
        "Of", choices, default=choices[0], required=True, key="of_whom", bind="query-params",
        label_visibility="collapsed",
        format_func=lambda name: option(f"{one.name} − {other.name}" if name == "difference" else name),
    )  # fmt: skip
    listed = confused(mine, theirs)
    left, right = st.columns([5, 4], gap="medium")
    with left:
        if theirs is not None and shown == "difference":
            view = difference_matrix(mine, theirs)
        else:
            view = matrix(theirs if theirs is not None and shown == other.name else mine)
        clicked = chart(
            confusion_chart(view),
            key="confusion",
            revision=" ".join([task, *view.gold, *view.predicted]),
            still=True,
            alt=f"What is taken for what on {task}",
        )
        st.caption(
            "Rows: what is annotated, and the share that is right. Columns: what it was taken for, in "
            f"percent of the row{_invented(view)}. What is right is grey, so that mistakes show. "
            "Click a cell for sentences."
            if not view.signed
            else "Red: the first makes this mistake more often, blue: less often; in points of what is "
            "annotated. Beside the names: the difference of what is right."
        )
    with right:
        picked = _list(listed, one.name, other.name if theirs is not None else None)
    # A click is told once, a selected row as long as it stands: what came last is shown.
    if clicked is not None:
        st.session_state[_SHOWN] = task, view.gold[round(clicked.y)], view.predicted[round(clicked.x)]
    elif picked is not None and picked != st.session_state.get(_PICKED):
        st.session_state[_SHOWN] = task, *picked
    st.session_state[_PICKED] = picked
    asked, *mistake = st.session_state.get(_SHOWN, ("", "", ""))
    if asked == task and mistake[0] != mistake[1]:
        examples(table, runs, task, scheme, (one, other), (mistake[0], mistake[1]))


def _invented(view: Matrix) -> str:
    """What the row of invented spans, which has nothing annotated, is measured against."""
    return "; *nothing there*: in percent of what is annotated as the column" if NOTHING in view.gold else ""


def _errors(row: ResultRow, runs: dict[int, Run], split: str, task: str, scheme: str) -> Errors | None:
    if task not in row.cells:
        return None
    own = [runs[run_id] for run_id in row.cells[task].run_ids.values()]
    return errors(confusions(own, split, task, scheme))


def _list(listed: list[Confused], a: str, b: str | None) -> tuple[str, str] | None:
    """The most frequent mistakes; returns the one selected."""
    frame = pd.DataFrame(
        {
            "Mistake": f"{written(one.gold, 'nothing there')} → {written(one.predicted, 'missed')}",
            "A": one.a,
            **({"B": one.b, "A − B": unsigned_zero(one.a - one.b, 1)} if b is not None else {}),
        }
        for one in listed[:_MOST_ROWS]
    )
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
            "A": st.column_config.NumberColumn(format="%.1f", width=50, help=f"Per seed, by {a}."),
            "B": st.column_config.NumberColumn(format="%.1f", width=50, help=f"Per seed, by {b}."),
            "A − B": st.column_config.NumberColumn(format="%+.1f", width=60),
        },
        alt="The most frequent mistakes, per seed",
    )
    st.caption(
        f"Mistakes per seed. A: {escape(a)}"
        + (f", B: {escape(b)}" if b else "")
        + ". Select one for sentences."
    )
    rows = event.selection.rows
    return (listed[rows[0]].gold, listed[rows[0]].predicted) if rows else None


_MOST_LINES = 12
"""Configurations side by side up to which their names can be read."""


def closer_look(table: ResultTable, found: Scope, a: str, b: str) -> None:
    """The choice of task and view, and the view."""
    st.subheader("A closer look", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = st.segmented_control(
            "View",
            ["per class", "mistakes", "per seed"],
            default="per class",
            required=True,
            key="closer",
            bind="query-params",
            format_func=str.capitalize,
            label_visibility="collapsed",
        )
        if st.session_state.get("task") not in table.tasks:
            st.session_state.pop("task", None)  # a task of other runs
        task = st.segmented_control(
            "Task",
            table.tasks,
            default=_first(table, a, b),
            required=True,
            key="task",
            bind="query-params",
            format_func=option,
            label_visibility="collapsed",
        )
    if look == "per class":
        _per_class(table, str(task), a, b)
    elif look == "mistakes":
        mistakes_view(table, found, str(task), a, b)
    else:
        _per_seed(table, str(task), b)


def _first(table: ResultTable, a: str, b: str) -> str:
    """The last task that both have: the spans are most telling, and stand last in most corpora."""
    shared = [task for task in table.tasks if all(task in table.row(key).cells for key in (a, b))]
    return (shared or table.tasks)[-1]


def _per_class(table: ResultTable, task: str, a: str, b: str) -> None:
    one, other = table.row(a), table.row(b)
    if task not in one.cells or task not in other.cells:
        st.caption(f"Only one of the two was trained on {escape(task)}.")
        return
    ids = [*one.cells[task].run_ids.values(), *other.cells[task].run_ids.values()]
    scores = resources.store().scores(ids, table.split)
    rows = classes(*(reports(row.cells[task], task, scores) for row in (one, other)))
    if not rows:
        st.caption("No report by label is stored for these runs.")
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**A** {escape(one.name)}, **B** {escape(other.name)}", width="content")
        st.download_button(
            "CSV",
            csv_text(CLASS_COLUMNS, class_records(rows, (one.name, other.name))),
            file_name=f"mrnlab-{task}-classes.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    _class_table(rows)
    st.caption(
        "Percent, means over seeds; ± is the standard deviation. The difference is that of F1, A − B, paired "
        "by seed, with half of the 95% interval of a label by itself; p is corrected for all labels (Holm). "
        "A click on *Annotated* brings the rare labels to the top."
    )


def _class_table(rows: Sequence[ClassRow]) -> None:
    most = max(row.support for row in rows)
    lines = []
    for row in rows:
        line: dict[str, object] = {"Label": row.label, "Annotated": row.support}
        for side, told in (("A", row.a), ("B", row.b)):
            for number, name in (("precision", "P"), ("recall", "R"), ("f1", "F1")):
                line[f"{side} {name}"] = 100 * told[number].mean if told else None
            line[f"{side} ±"] = 100 * told["f1"].sd if told and told["f1"].sd is not None else None
        paired = row.difference
        line["A − B"] = None if paired is None else points(paired.mean)
        line["± 95%"] = (
            None if paired is None or paired.low is None or paired.high is None
            else 50 * (paired.high - paired.low)
        )  # fmt: skip
        line["p"] = p_text(row.p)
        lines.append(line)
    numbers = {f"{side} {name}": "%.2f" for side in "AB" for name in ("P", "R", "F1", "±")}
    st.dataframe(
        pd.DataFrame(lines),
        hide_index=True,
        height="content" if len(rows) <= 14 else 520,
        placeholder="–",
        column_config={
            "Label": st.column_config.TextColumn(pinned=True),
            "Annotated": st.column_config.ProgressColumn(format="%d", min_value=0, max_value=most, width=110),
            **{name: st.column_config.NumberColumn(format=form, width=66) for name, form in numbers.items()},
            "A − B": st.column_config.NumberColumn(format="%+.2f", width=74),
            "± 95%": st.column_config.NumberColumn(format="%.2f", width=66),
            "p": st.column_config.TextColumn(width=70),
        },
        alt="Precision, recall and F1 by label of both configurations, and the difference of F1",
    )


def _per_seed(table: ResultTable, task: str, baseline: str) -> None:
    rows = [row for row in table.rows if task in row.cells]
    colour = colours(resources.task_order()).get(task, TASK_COLOURS[-1])
    base = table.row(baseline)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        less = st.toggle(
            f"As differences to {base.name}",
            key="seed_differences",
            bind="query-params",
            disabled=task not in base.cells,
        )
        st.download_button(
            "CSV",
            csv_file(pd.DataFrame(per_seed(table))),
            file_name=f"mrnlab-{table.split}-seeds.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    if len(rows) <= _MOST_LINES:
        chart(
            seeds_chart(table, task, colour),
            key="seeds_chart",
            revision=" ".join([task, *(row.name for row in rows)]),
            still=True,
            alt=f"Scores on {task} of each seed by configuration",
        )
    less = less and task in base.cells
    minus = base.cells[task].by_seed if less else {}
    seeds = sorted({seed for row in rows for seed in row.cells[task].by_seed})
    shown = [row for row in rows if not less or row.key != baseline]
    columns = {row.name: row.cells[task].by_seed for row in shown}
    frame = pd.DataFrame(
        {
            "seed": seeds,
            **{
                name: [
                    points(own[seed] - minus.get(seed, 0.0))
                    if seed in own and (not less or seed in minus)
                    else None
                    for seed in seeds
                ]
                for name, own in columns.items()
            },
        }
    )
    form = "%+.2f" if less else "%.2f"
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= 12 else 420,
        placeholder="–",
        column_config={
            "seed": st.column_config.NumberColumn("Seed", width=60, pinned=True),
            **{name: st.column_config.NumberColumn(format=form) for name in columns},
        },
        alt=f"Scores on {task} in percent, a line per seed, a column per configuration",
    )
    st.caption(
        f"{escape(task)}, {escape(table.score_names[task])}, in percent. A thin line is a seed, the thick "
        "one their mean: where all thin lines rise or fall together, every seed says the same."
    )
