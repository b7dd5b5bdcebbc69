"""A closer look at two configurations on one task: label by label, mistake by mistake, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import resources
from dashboard.charts import seeds_chart
from dashboard.components import chart
from dashboard.downloads import csv_file
from dashboard.panels.compare_mistakes import mistakes_view
from dashboard.panels.compare_scope import Scope
from dashboard.queries.compare import per_seed
from dashboard.queries.compare_classes import CLASS_COLUMNS, ClassRow, class_records, classes, reports
from dashboard.text import escape, option, points
from dashboard.theme import TASK_COLOURS, colours
from jobs.results import ResultTable
from jobs.sheets import csv_text
from jobs.wording import p_told

__all__ = ["closer_look"]

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
        line["p"] = p_told(row.p)
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
