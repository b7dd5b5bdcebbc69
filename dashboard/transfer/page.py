"""Transfer: which task helps which, measured, explained and predicted."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import resources
from dashboard.shared.longer import train_longer
from dashboard.shared.states import end_page, show_answer, title
from dashboard.transfer.controls import PAIR, PREDICTORS, pick_look, pick_number
from dashboard.transfer.evidence import evidence_of, finished_runs, groups, pick_group
from dashboard.transfer.pair import pair_detail, pair_features
from dashboard.transfer.predictors import nothing_yet, predictors
from dashboard.transfer.tables import GAIN, all_pairs, matrix
from jobs.studies.pairs import headline

title("Transfer", "Which task helps which: the gain of a task from training beside another.")
runs = finished_runs()
groups_of_pairs = groups(runs)
if not groups_of_pairs:
    nothing_yet()
    end_page()
group = pick_group(groups_of_pairs)
above = st.container()
shown, unit = pick_number()
with above:
    show_answer(headline(group, relative=unit == "relative"), key="transfer")
    if nothing := group.gains.learned_nothing:
        train_longer(nothing, group.config.epochs, group.of_pairs, key="transfer")
above = st.container()
pair, look = pick_look(group.gains)
known = evidence_of(group, runs, needed=shown != GAIN or look == PREDICTORS)
with above:
    matrix(group, shown, unit, pair, known)
if look == PAIR:
    pair_detail(group, pair, unit, resources.task_colours())
elif look == PREDICTORS:
    if known is not None:
        predictors(known)
        pair_features(known, pair)
else:
    all_pairs(group.gains, known)
