"""What is taken for what: the matrix of mistakes, the most frequent ones, sentences in which they happen."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.evaluation.confusion import NOTHING
from core.store.records import Run
from dashboard.caches.compare import confusions
from dashboard.charts import confusion_chart
from dashboard.components import chart
from dashboard.panels.compare_examples import examples, written
from dashboard.panels.compare_scope import Scope
from dashboard.queries.compare_errors import (
    Confused,
    Errors,
    Matrix,
    confused,
    difference_matrix,
    errors,
    matrix,
)
from dashboard.text import escape, option, unsigned_zero
from jobs.results import ResultRow, ResultTable

__all__ = ["mistakes_view"]

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
