"""The table of scores, and under it the candidates among which dev chose a method's."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.evaluation.costs import COST_NOTE
from core.results.figures import expected_best_chart
from core.results.records import COST_COLUMNS, SCORE_COLUMNS, score_records
from core.results.signature import signature
from core.results.table import ResultRow, ResultTable
from core.studies.published import CITATION, matching
from core.wording import without_shared
from dashboard.compare import compared_runs, views
from dashboard.compare.compared_runs import ComparedRuns
from dashboard.components.charts import chart
from dashboard.shared.downloads import copy_table, report_button, show_table
from dashboard.shared.selection import switch
from dashboard.shared.states import show_note
from dashboard.text import escape
from jobs.reports.render import best, higher, score_sheet, with_published


def summary_table(table: ResultTable, compared: ComparedRuns) -> None:
    """Draws the table of rows × tasks: mean ± SD, the number of seeds, the best in bold; candidates below.

    Published figures and what a configuration costs stand beside on demand.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Scores", anchor=False)
        has_published = any(matching(row.config).keys() & row.cells.keys() for row in table.rows)
        published = has_published and switch(
            "Show published results",
            key="published",
            help="Tables 1 to 3 of the dissertation, beside rows trained and scored the same way.",
        )
        with_cost = switch(
            "Show cost",
            key="cost",
            help="Parameters, peak memory and training time of each configuration; STL summed over tasks.",
        )
        if with_cost:
            table = compared_runs.with_costs(table, compared)
        ours = score_sheet(table, compared.name, cost=with_cost)
        sheet = with_published(ours, table) if published else ours
        columns, records = SCORE_COLUMNS + COST_COLUMNS * with_cost, score_records(table, cost=with_cost)
        copy_table(sheet, columns, records, key="scores")
        report_button([run.id for run in compared.runs], compared.split)
    short = without_shared(table.tasks)
    titles = {f"{task} ({name})": f"{short[task]} ({name})" for task, name in table.score_names.items()}
    head = tuple(titles.get(title, title) for title in sheet.head)
    alt = "Mean and standard deviation over seeds, by configuration and task"
    show_table(replace(sheet, head=head), alt=alt)
    rule = f"Bold: {escape(best(table))} " * bool(table.bold)
    bold = f" Bold: {escape(f'{higher(table)}.')}" * bool(table.bold)
    number = "" if ours.hides_n else " (their number)"
    st.caption(
        f"Percent, mean ± standard deviation over seeds{number}.{bold}",
        help=f"{rule}Differences are of unrounded scores. "
        f"What these figures depend on: {escape(signature(table))}",
    )
    if with_cost:
        st.caption(f"{COST_NOTE} –: not recorded.")
    for note in table.notes:
        show_note(escape(note))
    if sheet is not ours:
        st.caption(f"Grey: {escape(CITATION)}. POS there is seqeval F1.")
    for row in table.rows:
        if row.choice:
            _candidates(table, row)


def _candidates(table: ResultTable, row: ResultRow) -> None:
    """Draws the candidates of a method on demand: their scores, and what the best of fewer would have had."""
    with st.expander(
        f"{escape(row.name)}: {escape(row.choice)}, {escape(row.chosen)}",
        icon=":material/account_tree:",
        key=f"candidates_{row.method}",
        on_change="rerun",
    ) as unfolded:
        if not unfolded.open:
            return
        left, right = st.columns([3, 2], gap="large", vertical_alignment="top")
        with left:
            show_table(views.candidate_sheet(table, row), alt=f"The candidates of {row.name}")
            st.caption(
                "Mean dev score: over the tasks and seeds that all candidates have, by which one is chosen. "
                f"{table.split.capitalize()} scores of the others are in no comparison; *Every row* "
                "compares all."
            )
        with right:
            st.markdown("**Expected best dev score**")
            chart(
                expected_best_chart(list(row.dev_means.values())),
                key=f"expected_best_{row.method}",
                revision=" ".join([row.method, *row.dev_means]),
                still=True,
                alt=f"Expected best dev score of {row.name} against the number of candidates tried",
            )
            st.caption(
                "Of so many candidates, drawn at random from these (Dodge et al., 2019). Where the curve "
                "still rises, more candidates may give a better one."
            )
