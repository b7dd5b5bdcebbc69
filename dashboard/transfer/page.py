"""Transfer: which task helps which, measured, explained and predicted; which to train together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.config import shares_nothing
from core.studies import STUDIES
from core.transfer.gains import Gains, Pair
from core.transfer.predictors import AFFINITY, AMI, CORRELATION, COSINE
from core.wording import plural
from dashboard.components.pair_table import PairTable, pair_table
from dashboard.shared import resources
from dashboard.shared.downloads import csv_file
from dashboard.shared.selection import segments
from dashboard.shared.states import title
from dashboard.text import escape
from dashboard.theme import colours
from dashboard.transfer.looks import groups_of_tasks, planted_relations, predictors
from dashboard.transfer.pair import choose_pair, features_table, pair_detail, pick_pair
from dashboard.transfer.state import ALL_FEATURES, Known, finished_runs, groups, known_of, planted
from dashboard.transfer.views import best_pair, caution, gains_table, group_names, pairs_frame, value_table
from jobs.reports.pairs import answer
from jobs.reports.transfer import PairGroup

_UNITS = {"points": "Points", "relative": "Percent of STL"}
_GAIN, _PROBABILITY = "Measured gain", "Predicted probability of a gain"
# Where each number comes from, where none is known; the middle and the end of its scale; its ends in words.
_NUMBERS: Mapping[str, tuple[str, float, float | None, tuple[str, str]]] = {
    CORRELATION: ("an MRN run of all tasks over the same corpus", 0, 1, ("−1, opposed", "1, related")),
    COSINE: ("a joint run with affinity_every", 0, None, ("opposed", "alike")),
    AFFINITY: ("a joint run with affinity_every", 0, None, ("raises its loss", "lowers its loss")),
    AMI: ("tasks that label the same words", 0, 1, ("", "1, the same labels")),
    _PROBABILITY: ("features of all tasks", 0.5, 0.5, ("0", "1")),
}
_SHARES_NOTHING = (
    "Over a frozen encoder without a BiLSTM, STL and MTL are the same model by construction: no trained "
    "weight is shared, so no task can help another. A gain other than zero comes from other batches or "
    "steps. To measure transfer, add a BiLSTM or fine-tune the encoder."
)
_PAIRS_OF_DEMO = {
    "corpus": "demo",
    "encoder": "minilm+bilstm",
    "encoder_training": "frozen",
    "paradigm": "stl,mtl",
    "task_groups": "pairs",
    "seed": "1-3",
    "fraction": "0.1",
    "epochs": "10",
}


def _nothing_yet() -> None:
    """A card that says what makes runs of pairs, with two ways to them."""
    study = STUDIES["transfer"]
    with st.container(border=True, width=640):
        st.markdown("**No pair of tasks yet**")
        st.markdown(
            "A gain needs two kinds of runs, alike in all else: a task alone (STL), and that task together "
            "with one other (MTL). Two seeds at least give an interval."
        )
        st.page_link(
            "launch/page.py", label="Launch every pair of the demo's tasks", icon=":material/rocket_launch:",
            query_params=_PAIRS_OF_DEMO,
        )  # fmt: skip
        st.page_link(
            "studies/page.py", label=f"The study: {escape(study.title.lower())}", icon=":material/science:",
            query_params={"study": study.name},
        )  # fmt: skip
        st.caption(escape(study.sample.words if study.sample else study.question))


def _pick_group(known: list[PairGroup]) -> PairGroup:
    """The group in the address, by default the largest; a choice where there are several."""
    labels = dict(zip([group.key for group in known], group_names(known), strict=True))
    if len(known) == 1:
        st.caption(escape(labels[known[0].key]))
        return known[0]
    linked = st.query_params.get("group")
    st.session_state["transfer_group"] = linked if linked in labels else known[0].key

    def remember() -> None:
        st.query_params["group"] = st.session_state["transfer_group"]

    picked = st.selectbox(
        "Runs",
        list(labels),
        format_func=labels.__getitem__,
        key="transfer_group",
        on_change=remember,
        help="Runs that are alike in all but tasks, paradigm and seed: STL of tasks and MTL of pairs.",
    )
    return next(group for group in known if group.key == picked)


def _values(shown: str, known: Known) -> Mapping[Pair, float]:
    if shown == _PROBABILITY:
        return known.probabilities.get(ALL_FEATURES, {})
    return known.evidence.numbers[shown].by_pair


def _table(shown: str, gains: Gains, unit: str, known: Known | None) -> PairTable | None:
    """The matrix; None where it cannot be drawn (yet), which is said."""
    shades = colours(resources.task_order())
    if shown == _GAIN:
        return gains_table(gains, unit, shades)
    if known is None:
        return None
    values = _values(shown, known)
    made_by, centre, limit, ends = _NUMBERS[shown]
    if not values:
        st.caption(f"Not known for any pair: it needs {made_by}.")
        return None
    return value_table(gains, values, shades, name=shown, centre=centre, limit=limit, ends=ends)


def _all_pairs(gains: Gains, known: Known | None) -> None:
    """Every pair with its interval, and what the predictors have for it; as a file too."""
    frame = pairs_frame(gains)
    if known is not None:
        pairs = list(zip(frame["Main"], frame["Auxiliary"], strict=True))
        for name in _NUMBERS:
            if values := _values(name, known):
                frame[name] = [values.get(pair) for pair in pairs]
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {name: number(format="%+.2f") for name in ("Gain", "Low", "High", "% of STL")}
    config |= {"STL": number(format="%.2f")} | {name: number(format="%.3f") for name in _NUMBERS}
    st.dataframe(
        frame, hide_index=True, height=420, column_config=config, key="pairs", alt="Gain of every pair"
    )
    st.download_button(
        "CSV", csv_file(frame), "mrnlab-transfer.csv", "text/csv", icon=":material/download:",
        on_click="ignore",
    )  # fmt: skip


title("Transfer", "Which task helps which: what a task gains by training beside another.")
runs = finished_runs()
of_pairs = groups(runs)
if not of_pairs:
    _nothing_yet()
    st.stop()
group = _pick_group(of_pairs)
gains = group.gains
sentence = st.container(key="transfer_answer")
with st.container(horizontal=True, vertical_alignment="bottom"):
    shown = st.selectbox("Show", [_GAIN, *_NUMBERS], key="shows", bind="query-params", width=280)
    unit = segments("Unit", _UNITS, key="unit") if shown == _GAIN else "points"
sentence.markdown(escape(answer(gains, relative=unit == "relative")))
matrix = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    pair = pick_pair(gains, best_pair(gains))
    looks = {"pair": "This pair", "predictors": "Predictors", "groups": "Groups"}
    if planted_ami := planted(group):
        looks["planted"] = "Planted"
    look = segments("Look at", looks, key="look")
known = known_of(group, runs, needed=shown != _GAIN or look in ("predictors", "planted"))
with matrix:
    table = _table(shown, gains, unit, known)
    if table is not None:
        place = {task: number for number, task in enumerate(gains.tasks)}
        pair_table(
            table,
            chosen=(place[pair[0]], place[pair[1]]),
            key="gains",
            clicked=lambda row, column: choose_pair(gains.tasks[row], gains.tasks[column]),
        )
    if shown == _GAIN:
        st.caption(caution(gains))
        if shares_nothing(group.config):
            st.info(_SHARES_NOTHING, icon=":material/info:")
    with st.expander(f"All {plural(len(gains.pairs), 'pair')} as a table", icon=":material/table_rows:"):
        _all_pairs(gains, known)

if look == "pair":
    pair_detail(group, pair, unit, colours(resources.task_order()))
    if known is not None and pair[0] != pair[1]:
        features_table(known, pair)
elif look == "predictors" and known is not None:
    predictors(known)
elif look == "groups":
    groups_of_tasks(group, known)
elif look == "planted" and known is not None:
    planted_relations(gains, planted_ami, known)
