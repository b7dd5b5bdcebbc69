"""Transfer: which task helps which, measured, explained and predicted."""

from __future__ import annotations

import streamlit as st

from core.wording import plural
from dashboard.components.pair_table import pair_table
from dashboard.shared import resources
from dashboard.shared.selection import choice, segments
from dashboard.shared.states import show_answer, title
from dashboard.text import escape
from dashboard.transfer.evidence import ask_for_evidence, evidence_of, finished_runs, groups, pick_group
from dashboard.transfer.pair import choose_pair, features_table, pair_detail, pick_pair
from dashboard.transfer.predictors import nothing_yet, predictors
from dashboard.transfer.tables import GAIN, NUMBERS, all_pairs, shown_table
from dashboard.transfer.views import best_pair, caution, no_percent_sentence
from jobs.studies.pairs import headline

_UNITS = {"points": "Points", "relative": "Percent of STL"}

title("Transfer", "Which task helps which: the gain of a task from training beside another.")
runs = finished_runs()
groups_of_pairs = groups(runs)
if not groups_of_pairs:
    nothing_yet()
    st.stop()
group = pick_group(groups_of_pairs)
gains = group.gains
sentence = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    shown = choice("Show", [GAIN, *NUMBERS], key="shows", width=280)
    unit = segments("Unit", _UNITS, key="unit") if shown == GAIN else "points"
with sentence:
    show_answer(headline(group, relative=unit == "relative"), key="transfer")
matrix = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    pair = pick_pair(gains, best_pair(gains))
    looks = {"pair": "This pair", "predictors": "Predictors"}
    look = segments("Look at", looks, key="look")
known = evidence_of(group, runs, needed=shown != GAIN or look == "predictors")
with matrix:
    table = shown_table(shown, group, unit, known)
    if table is not None:
        place = {task: number for number, task in enumerate(gains.tasks)}
        pair_table(
            table,
            chosen=(place[pair[0]], place[pair[1]]),
            key="gains",
            clicked=lambda row, column: choose_pair(gains.tasks[row], gains.tasks[column]),
        )
    if shown == GAIN:
        st.caption(caution(gains))
        if unit == "relative" and (without := no_percent_sentence(gains)):
            st.caption(escape(without))
    with st.expander(f"All {plural(len(gains.pairs), 'pair')} as a table", icon=":material/table_rows:"):
        all_pairs(gains, known)

if look == "pair":
    pair_detail(group, pair, unit, resources.task_colours())
    if known is None:
        ask_for_evidence()
    elif pair[0] != pair[1]:
        features_table(known, pair)
elif look == "predictors" and known is not None:
    predictors(known)
