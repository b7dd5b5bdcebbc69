"""Transfer: which task helps which, measured, explained and predicted; which to train together."""

from __future__ import annotations

import streamlit as st

from core.config import shares_nothing
from core.wording import plural
from dashboard.components.pair_table import pair_table
from dashboard.shared import resources
from dashboard.shared.selection import segments
from dashboard.shared.states import title
from dashboard.theme import colours
from dashboard.transfer.grouping import groups_of_tasks
from dashboard.transfer.pair import choose_pair, pair_detail, pick_pair
from dashboard.transfer.predictors import features_table, planted_relations, predictors
from dashboard.transfer.start import nothing_yet
from dashboard.transfer.state import finished_runs, groups, known_of, pick_group, planted
from dashboard.transfer.tables import GAIN, all_pairs, shown_table, shows
from dashboard.transfer.views import SHARES_NOTHING, UNITS, answer, best_pair, caution, group_names

title("Transfer", "Which task helps which: what a task gains by training beside another.")
runs = finished_runs()
found = groups(runs)
if not found:
    nothing_yet()
    st.stop()
group = pick_group(found, group_names(found))
gains, colour = group.gains, colours(resources.task_order())
sentence = st.container(key="transfer_answer")
with st.container(horizontal=True, vertical_alignment="bottom"):
    shown = st.selectbox("Show", shows(), key="shows", bind="query-params", width=280)
    unit = segments("Unit", UNITS, key="unit") if shown == GAIN else "points"
sentence.markdown(answer(gains, unit))
matrix = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    pair = pick_pair(gains, best_pair(gains))
    looks = {"pair": "This pair", "predictors": "Predictors", "groups": "Groups"}
    if known_planted := planted(group):
        looks["planted"] = "Planted"
    look = segments("Look at", looks, key="look")
known = known_of(group, runs, needed=shown != GAIN or look in ("predictors", "planted"))
with matrix:
    place = {task: number for number, task in enumerate(gains.tasks)}
    table = shown_table(shown, gains, unit, colour, known)
    if table is not None:
        pair_table(
            table,
            chosen=(place[pair[0]], place[pair[1]]),
            key="gains",
            clicked=lambda row, column: choose_pair(gains.tasks[row], gains.tasks[column]),
        )
    if shown == GAIN:
        st.caption(caution(gains))
        if shares_nothing(group.config):
            st.info(SHARES_NOTHING, icon=":material/info:")
    with st.expander(f"All {plural(len(gains.pairs), 'pair')} as a table", icon=":material/table_rows:"):
        all_pairs(gains, known)

if look == "pair":
    pair_detail(group, pair, unit, colour)
    if known is not None and pair[0] != pair[1]:
        features_table(known, pair)
elif look == "predictors" and known is not None:
    predictors(known)
elif look == "groups":
    groups_of_tasks(group, known)
elif look == "planted" and known is not None:
    planted_relations(gains, known_planted, known)
