"""Beside the form: how many runs it makes, how long they take, their list, what to know
before, the button.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from dashboard import actions, resources
from dashboard.launch.draft import Plan
from dashboard.queries.naming import kind_name
from dashboard.states import problem
from dashboard.text import duration, escape, plural
from jobs.estimate import estimate
from jobs.submit import Preflight, check

__all__ = ["launch_plan"]

_MOST_LISTED = 200
_LAUNCHED = "launched"


def launch_plan(planned: Plan, *, shown_beside: bool) -> None:
    """Draws the plan. An error that the form shows beside its field is only pointed to here."""
    if planned.error:
        st.subheader("Not ready yet", anchor=False)
        st.markdown(
            "The form says beside the field what is missing." if shown_beside else escape(planned.error)
        )
        return
    configs = planned.configs
    heading = st.container(gap="xsmall")
    ready, about = None, ""
    try:
        with st.spinner("Looking at the data"):
            ready = _check(tuple(config.to_json() for config in configs))
            guess = estimate(resources.store(), configs)
        about = f", about {duration(guess.seconds)}"
        heading_words = f"{guess.basis[0].upper()}{guess.basis[1:]}."
    except MRNLabError as error:
        heading_words = ""
        problem(str(error))
    with heading:
        st.subheader(f"This makes {plural(len(configs), 'run')}{about}", anchor=False)
        st.caption(escape(heading_words))
    st.button(
        f"Launch {plural(len(configs), 'run')}",
        type="primary",
        icon=":material/rocket_launch:",
        disabled=ready is None,
        key="launch",
        width="stretch",
        on_click=_launch,
        args=(configs,),
    )
    for note in ready.notes if ready else ():
        st.caption(f":material/info: {escape(note)}")
    _launched(configs)
    st.dataframe(
        _listed(configs),
        hide_index=True,
        height="content" if len(configs) <= 15 else 560,
        alt="The runs that the form makes",
    )
    if len(configs) > _MOST_LISTED:
        st.caption(f"The first {_MOST_LISTED} of {len(configs):,}.")


@st.cache_data(max_entries=64, ttl=300, show_spinner=False)
def _check(configs: tuple[str, ...]) -> Preflight:
    return check([RunConfig.from_json(text) for text in configs])


def _launch(configs: Sequence[RunConfig]) -> None:
    try:
        st.session_state[_LAUNCHED] = configs, actions.launch(configs)
    except MRNLabError as error:
        st.session_state[_LAUNCHED] = configs, str(error)


def _launched(configs: Sequence[RunConfig]) -> None:
    """What the button made of these very runs, until the form says something else."""
    of, launched = st.session_state.get(_LAUNCHED, ((), []))
    if of != configs:
        return
    if isinstance(launched, str):
        problem(launched)
    else:
        query = {"run": ",".join(map(str, launched))}
        with st.container(border=True):
            st.markdown(
                f":green[:material/check_circle: {plural(len(launched), 'run')} queued.] Watch them train:"
            )
            with st.container(horizontal=True):
                st.page_link(
                    "app_pages/runs.py", label="Runs", icon=":material/list_alt:", query_params=query
                )
                st.page_link(
                    "app_pages/curves.py", label="Curves", icon=":material/show_chart:", query_params=query
                )


def _listed(configs: Sequence[RunConfig]) -> pd.DataFrame:
    fractions = {config.fraction for config in configs}
    return pd.DataFrame(
        {
            "Run": kind_name(config),
            "Tasks": ", ".join(config.tasks),
            "Encoder": config.encoder,
            **({"Share": f"{100 * config.fraction:g}%"} if len(fractions) > 1 else {}),
            "Seed": config.seed,
        }
        for config in configs[:_MOST_LISTED]
    )
