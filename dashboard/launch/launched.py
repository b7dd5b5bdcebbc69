"""The card in the plan's place once the runs are in the store: their progress, *Stop*, *Watch*, *Compare*."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import streamlit as st

from core.store.types import ACTIVE, Run, RunState
from core.wording import about_time, plural
from dashboard.shared import actions, resources
from dashboard.shared.live import live
from dashboard.shared.queue import seconds_left
from dashboard.shared.run_views import fraction_done
from dashboard.shared.selection import address_of, link_to_runs
from dashboard.shared.states import states_text
from jobs.queue import control


def launched_runs(ids: Collection[int], *, were_there: bool = False) -> None:
    """Draws the card of these runs, which counts down while one of them is active.

    `were_there`: they were in the store before the form asked for them.
    """

    def pace() -> float | None:
        return resources.LIVE if any(run.state in ACTIVE for run in _read(ids)) else None

    with st.container(border=True, key="launched"):
        live(lambda: _card(_read(ids), were_there=were_there), pace, key="launched_now")


def _read(ids: Collection[int]) -> Sequence[Run]:
    return resources.store().runs(ids)


def _card(runs: Sequence[Run], *, were_there: bool) -> None:
    states = Counter(run.state for run in runs)
    active = [run.id for run in runs if run.state in ACTIVE]
    ids = sorted(run.id for run in runs)
    is_paused = resources.store().paused_since() is not None
    left = seconds_left(tuple(active)) if active and not is_paused else None
    exist = were_there and not active
    existing = "This run exists" if len(runs) == 1 else f"These {len(runs):,} runs exist"
    text = existing if exist else headline(states, left)
    st.subheader(text, anchor=False)
    if exist:
        st.caption("Change a setting or train again.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(sum(map(fraction_done, runs)) / len(runs), text=states_text(states))
        if active:
            st.button(
                "Stop",
                icon=":material/stop_circle:",
                key="launched_stop",
                help="Stops the runs that are queued or in progress. They can be resumed from Runs.",
                on_click=actions.perform,
                args=(control.stop_all, active),
            )
    if active and left is None and not is_paused:
        st.caption("The time left is known once the first batches are trained.")
    with st.container(horizontal=True, vertical_alignment="center"):
        has_ended = not active and bool(states[RunState.SUCCEEDED])
        # A link has no look of the one thing to do next.
        if has_ended and st.button(
            "Compare", type="primary", icon=":material/compare_arrows:", key="to_answer"
        ):
            st.switch_page("compare/page.py", query_params=address_of(ids))
        link_to_runs(ids, "Watch", ":material/show_chart:", page="curves")
        if active:
            st.page_link(
                "compare/page.py",
                label="Compare when done",
                icon=":material/compare_arrows:",
                query_params=address_of(ids),
                disabled=not states[RunState.SUCCEEDED],
            )
        link_to_runs(ids, "Runs")


def headline(states: Mapping[RunState, int], left: float | None) -> str:
    """Returns the progress of these runs, `8 runs queued, about 2 min`; `left` seconds if known."""
    done, every = states.get(RunState.SUCCEEDED, 0), sum(states.values())
    about = "" if left is None else f", {about_time(left)}"
    if states.get(RunState.QUEUED, 0) == every:
        return f"{plural(every, 'run')} queued{about}"
    which = f"{done:,} of {plural(every, 'run')}" if done < every else plural(every, "run")
    return f"{which} done{about}{' left' if about else ''}"
