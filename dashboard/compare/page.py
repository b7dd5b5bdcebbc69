"""Compare: which configuration is better, by how much, and whether the difference holds."""

from __future__ import annotations

import streamlit as st

from dashboard.compare.answer import answer, difference_view, summary_table
from dashboard.compare.closer import closer_look
from dashboard.compare.scope import scope, table_of
from dashboard.compare.studies import studies
from dashboard.shared.selection import segments
from dashboard.shared.states import empty, title

title("Compare", "Which configuration is better, by how much, and whether more than chance speaks for it.")

shown = segments("Compare", {"runs": "Runs", "studies": "Studies"}, key="what")
if shown == "studies":
    studies()
    st.stop()

compared = scope()
if compared is None:
    st.stop()

with st.container(horizontal=True, vertical_alignment="center"):
    split = segments("Scores on", {"test": "Test sentences", "dev": "Dev sentences"}, key="on")
    published = st.toggle(
        "Published figures beside",
        key="published",
        bind="query-params",
        help="Those of the dissertation's tables 1 to 3, beside rows that were trained and scored as there.",
    )
    cost = st.toggle(
        "Cost beside",
        key="cost",
        bind="query-params",
        help="Parameters, peak memory and training time of each configuration, STL summed over its tasks.",
    )

table = table_of(compared, split, cost=cost)
if not table.rows:
    empty(
        "No score yet",
        "None of these runs has scores on these sentences. Choose others above, or the other split.",
        page="runs/page.py",
        label="See how far they are",
        icon=":material/list_alt:",
    )
    st.stop()

pair = answer(table)
summary_table(table, compared, published=published, cost=cost)
if pair is not None:
    difference_view(table, compared, pair[1])
    closer_look(table, compared, *pair)
