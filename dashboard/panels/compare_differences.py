"""Every configuration's difference to the baseline: a forest, and the same as a table with both tests."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import resources
from dashboard.caches.compare import predictions_needed, sentence_tests
from dashboard.charts import forest_chart
from dashboard.components import chart
from dashboard.panels.compare_copy import copy_table
from dashboard.panels.compare_scope import Scope
from dashboard.queries.compare_differences import (
    DIFFERENCE_COLUMNS,
    Difference,
    difference_records,
    difference_sheet,
    differences,
    forest,
    with_sentences,
)
from dashboard.text import escape, plural, points
from dashboard.theme import colours
from jobs.results import ResultTable
from jobs.wording import p_told

__all__ = ["difference_view"]

_MANY = 180
"""Predictions (a run's, of one task) beyond which testing takes more than some seconds, and is asked for."""
_TALL = 12
_INTERVAL = "{} end of the 95% interval of this difference by itself."


def difference_view(table: ResultTable, found: Scope, baseline: str) -> None:
    """The section, down to its notes."""
    asked = _tested(differences(table, baseline), table, found, baseline)
    name = escape(table.row(baseline).name)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(f"Differences to {name}", anchor=False, width="content")
        copy_table(
            difference_sheet(asked, table, baseline, found.name),
            DIFFERENCE_COLUMNS,
            difference_records(asked, table, baseline),
            key="differences",
        )
    if not asked:
        st.caption(f"No other configuration shares a task with {name}.")
        return
    view = forest(asked, table, baseline)
    with st.container(height=640 if len(view.families) > _TALL else "content", border=False):
        chart(
            forest_chart(view, colours(resources.task_order())),
            key="compare_forest",
            revision=" ".join([view.reference, *view.families]),
            still=True,
            alt=f"Differences to {view.reference} with their 95% intervals",
        )
    _table(asked)
    _notes(asked)


def _tested(asked: Sequence[Difference], table: ResultTable, found: Scope, baseline: str) -> list[Difference]:
    count = predictions_needed(asked, table, baseline)
    if count > _MANY and not st.toggle(
        f"Test over sentences ({plural(count, 'prediction')} to read)",
        key="sentences",
        bind="query-params",
        help="Takes some seconds the first time.",
    ):
        return list(asked)
    with st.spinner("Testing over sentences"):
        return with_sentences(asked, sentence_tests(asked, table, baseline, found.runs))


def _table(asked: Sequence[Difference]) -> None:
    frame = pd.DataFrame(
        {
            "Configuration": one.row.name,
            "Task": one.task,
            "Difference": points(one.gap if one.paired is None else one.paired.mean),
            "from": None if one.paired is None or one.paired.low is None else points(one.paired.low),
            "to": None if one.paired is None or one.paired.high is None else points(one.paired.high),
            "Seeds": 0 if one.paired is None else one.paired.n,
            "p seeds": p_told(one.p_seeds),
            "p sentences": p_told(one.p_sentences),
            "Over seeds": one.verdict,
        }
        for one in asked
    )
    form = "%+.2f"
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= _TALL else 420,
        placeholder="–",
        column_config={
            "Configuration": st.column_config.TextColumn(width=250),
            "Difference": st.column_config.NumberColumn(format=form, help="Points, paired by seed."),
            "from": st.column_config.NumberColumn(format=form, help=_INTERVAL.format("Lower")),
            "to": st.column_config.NumberColumn(format=form, help=_INTERVAL.format("Upper")),
            "p seeds": st.column_config.TextColumn(
                help="Paired t-test over seeds, corrected for all differences here (Holm)."
            ),
            "p sentences": st.column_config.TextColumn(
                help="Approximate randomisation over sentences, 10,000 rounds, corrected for all differences "
                "here (Holm).",
            ),
            "Over seeds": st.column_config.TextColumn(
                help="above, below: p over seeds is under 0.05, corrected for all differences on this page. "
                "Tiny: so it is, but by less than 0.05 points."
            ),
        },
        alt="Differences to the baseline with intervals and corrected p-values",
    )


def _notes(asked: Sequence[Difference]) -> None:
    intervals = any(one.paired is not None and one.paired.sd for one in asked)
    marks = (
        "Filled marks: the corrected p over seeds is under 0.05; intervals are of one difference each."
        if intervals
        else "No interval over seeds is drawn, for none of these differences has a spread over seeds."
    )
    st.caption(
        "Two questions. Over seeds: would another training differ the same way? Over sentences: would these "
        "trained models differ the same way on other text? Both p are corrected for the differences on this "
        f"page, {len(asked):,} to the baseline among them (Holm). {marks}"
    )
    reasons = dict.fromkeys(one.unasked for one in asked if one.unasked)
    told = {
        "no predictions stored": "Of some runs no predictions are stored, so nothing can be tested over "
        "sentences there.",
        "different sentences": "Some runs were tested on different sentences, so these cannot be exchanged "
        "between them: there is no test over sentences.",
        "no common seed": "Where two configurations have no seed in common, nothing is tested.",
    }
    for reason in reasons:
        st.caption(f":material/info: {told[reason]}")
    seeds = [one.paired.n for one in asked if one.paired is not None]
    if seeds and min(seeds) < 3:
        st.caption(
            ":material/info: Some differences rest on one or two seeds. That is too few to say anything but "
            "their direction; five are usual."
        )
