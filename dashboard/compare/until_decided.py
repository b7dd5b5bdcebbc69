"""The button that adds seeds of two rows until their differences are decided, and how far that is."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import MRNLabError
from core.evaluation.comparison import UNDECIDED
from core.results.comparisons import Difference, skewed_tasks
from core.results.plan import LOOKS, SKEWED_NOTE, Plan
from core.results.table import ResultRow
from core.wording import all_of
from dashboard.compare.compared_runs import take_all
from dashboard.shared import actions, resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import chosen
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.studies.decide import (
    PlanOptions,
    follower_name,
    plan_between,
    planned,
    start_deciding,
    state_of,
)
from jobs.studies.followers import follower, stop_follower

_PROBLEM = "until_decided_problem"


def add_until_decided(
    row: ResultRow, baseline: ResultRow, matters: float, shown: Sequence[Difference] = ()
) -> None:
    """Draws *Add seeds until decided* for these rows; once it is begun its looks, and a button to stop.

    `matters` is the smallest difference that matters of a plan that is declared now, in [0, 1]. `shown` are
    the differences of the rows: where all are decided, and no plan is declared, nothing is drawn.
    """
    plan = plan_between(resources.store(), row, baseline)
    is_decided = shown and all(delta.verdict != UNDECIDED for delta in shown)
    if plan is not None or not is_decided:
        with st.container(width="content"):
            _draw(plan, row, baseline, matters, shown)


def _draw(
    plan: Plan | None, row: ResultRow, baseline: ResultRow, matters: float, shown: Sequence[Difference]
) -> None:
    """Draws how far the plan is, and the button to begin, go on or stop."""
    store, pair = resources.store(), f"{row.key}_{baseline.key}"
    of_pair, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_pair == pair:
        problem(why)
    if plan is not None:
        state = state_of(store, plan)
        for target in plan.targets:
            st.caption(f"{escape(target)}: {escape(state.sentence(target))}.")
        if state.has_ended:
            return
        if follower(store, name := follower_name(plan)) is not None:
            st.button(
                "Stop adding seeds", icon=":material/stop_circle:", key=f"stop_{pair}",
                on_click=actions.perform, args=(stop_follower, name),
            )  # fmt: skip
            rerun_when(
                lambda: follower(store, name) is None or state_of(store, plan).taken > state.taken,
                key="plan_goes_on",
            )
            return
    st.button(
        "Add seeds until decided", icon=":material/playlist_add:", key=f"until_decided_{pair}",
        help=f"Looks at {', '.join(map(str, LOOKS))} seeds, at levels that keep all of them at 0.05. "
        "It goes on when this page is closed.",
        on_click=_start, args=(row, baseline, pair, None if plan else matters),
    )  # fmt: skip
    if skewed := skewed_tasks(shown):
        tasks = escape(all_of(skewed))
        st.caption(f":material/warning: The differences on {tasks} are skewed. {SKEWED_NOTE}")


def _start(row: ResultRow, baseline: ResultRow, pair: str, matters: float | None) -> None:
    """Declares the plan or takes it up; a callback, so that no refresh comes between click and start."""
    st.session_state.pop(_PROBLEM, None)
    store = resources.store()
    try:
        plan = planned(store, row, baseline, PlanOptions(matters=matters))
        start_deciding(store, plan, (row.run_ids[-1], baseline.run_ids[-1]))
    except MRNLabError as error:
        st.session_state[_PROBLEM] = pair, str(error)
        return
    if not chosen():
        take_all()  # the runs of a look are the newest sweep, which alone would be compared
    actions.toast(f"Seeds of {row.name} and {baseline.name} are added until decided.")
