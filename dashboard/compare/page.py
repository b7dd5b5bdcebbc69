"""Compare: which configuration is better, by how much, and whether the difference holds."""

from __future__ import annotations

import streamlit as st

from core.results.comparisons import differences, mean_differences
from dashboard.compare.against import draw_against
from dashboard.compare.compared_runs import pick_compared_runs, table_of
from dashboard.compare.comparison import answer
from dashboard.compare.mistakes import closer_look
from dashboard.compare.scores import summary_table
from dashboard.shared.states import empty, end_page, title

title(
    "Compare", "Which configuration is better, by how much, and whether the difference is more than chance."
)

if st.query_params.get("what") == "Studies":  # links of before Studies was a page
    query = st.query_params.to_dict()
    st.switch_page("studies/page.py", query_params={k: v for k, v in query.items() if k != "what"})

compared = pick_compared_runs()
if compared is None:
    end_page()

table = table_of(compared)
if not table.rows:
    empty(
        "No score yet",
        "None of these runs has scores on this split. Choose other runs above, or the other split.",
        page="runs/page.py",
        label="See how far they are",
        icon=":material/list_alt:",
    )
    end_page()

table, pair, steps = answer(table, compared)
summary_table(table, compared)
draw_against(compared)
if pair is not None:
    deltas = [*differences(table, pair[1]), *mean_differences(table, pair[1])]
    closer_look(table, compared, deltas, steps, *pair)
