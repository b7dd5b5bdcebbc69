"""Which tasks to train together when there may be only k models, on the Transfer page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.errors import MRNLabError
from core.transfer.gains import Pair
from core.transfer.grouping import Grouping, best_grouping
from core.wording import plural
from dashboard.launch.draft import cloned, query_of
from dashboard.shared.states import problem
from dashboard.text import escape
from dashboard.transfer.state import Known
from dashboard.transfer.views import signed_number
from jobs.reports.transfer import PairGroup

_FEW = 3


_MEASURED = "Measured gain"
_EVEN = 0.5


def groups_of_tasks(group: PairGroup, known: Known | None) -> None:
    """The best partition for k models, by measured gains or by the probability of a gain that a predictor
    gives each pair.
    """
    tasks = group.gains.tasks
    by: dict[str, Mapping[Pair, float]] = {
        _MEASURED: {pair: 100 * gain.mean for pair, gain in group.gains.pairs.items()}
    }
    for name, values in (known.probabilities if known else {}).items():
        by[f"{name}, predicted"] = {pair: value - _EVEN for pair, value in values.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        models = st.number_input(
            "Models, at most", 1, len(tasks), min(_FEW, len(tasks)), key="k", bind="query-params", width=160
        )
        name = st.selectbox("By", list(by), key="by", bind="query-params", width=300)
    try:
        grouping = best_grouping(tasks, by[name], int(models))
    except MRNLabError as error:
        problem(str(error))
        return
    is_measured = name == _MEASURED
    amount = f"{signed_number(grouping.total)} points in total over {plural(len(tasks), 'task')}"
    if not any(by[name].values()):
        st.caption("Every partition has the same sum: no group is better than another.")
        return
    st.markdown(
        f"**{plural(len(grouping.groups), 'model')}**"
        f"{', ' + amount if is_measured else ' by the chances of a gain'}: "
        f"{'; '.join(escape(' + '.join(tasks)) for tasks in grouping.groups)}."
    )
    st.dataframe(
        _frame(grouping, group, is_measured),
        hide_index=True,
        height="content",
        key="grouping",
        column_config={
            "Model": st.column_config.NumberColumn(width=60),
            "STL": st.column_config.NumberColumn(format="%.2f", width=80),
            "Gain": st.column_config.NumberColumn(format="%+.2f", width=80),
            "Chance": st.column_config.NumberColumn(format="%.2f", width=80),
        },
        alt="The tasks of each model and what each gains there",
    )
    st.caption(
        "A task's gain in a group is the mean of its gains from each other task in it: an estimate, since "
        "gains of three tasks together were not measured. The partition with the largest sum, among all; "
        "undecided gains count as they are."
        + (
            ""
            if is_measured
            else " By a predictor: the chance of a gain, from regressions that saw neither task of a pair, "
            "less one half."
        )
    )
    st.page_link(
        "launch/page.py",
        label="Launch these groups",
        icon=":material/rocket_launch:",
        query_params=launch_query(group, grouping),
    )


def launch_query(group: PairGroup, grouping: Grouping) -> dict[str, str]:
    """The address of Launch that trains these groups as the pairs were; STL's runs are there already."""
    draft, _ = cloned([group.config])
    seeds = sorted({seed for by_seed in group.beside.values() for seed in by_seed})
    draft = replace(
        draft,
        tasks=group.gains.tasks,
        task_groups="; ".join(map(",".join, grouping.groups)),
        lists={**draft.lists, "paradigm": ("stl", "mtl"), "seed": ",".join(map(str, seeds))},
    )
    return query_of(draft)


def _frame(grouping: Grouping, group: PairGroup, is_measured: bool) -> pd.DataFrame:
    rows = [
        {
            "Model": number,
            "Task": task,
            "STL": 100 * group.gains.alone[task].mean if task in group.gains.alone else None,
            "Gain" if is_measured else "Chance": grouping.gains[task]
            + (0 if is_measured else _EVEN * (len(tasks) > 1)),
        }
        for number, tasks in enumerate(grouping.groups, start=1)
        for task in tasks
    ]
    return pd.DataFrame(rows)
