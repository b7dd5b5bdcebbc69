"""What can be done with the chosen runs; each button acts on those that it can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.store.records import Run
from core.store.states import ENDED, RunState
from dashboard import actions, resources
from dashboard.queries.queue import stop_view
from dashboard.queries.runs import restartable, resumable
from dashboard.selection import choose
from dashboard.text import all_of, escape, plural
from jobs.control import remains
from jobs.queueing import PRIORITIES

__all__ = ["run_actions"]

_PAGES = (
    ("curves", "Curves", ":material/show_chart:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("relations", "Relations", ":material/grid_on:"),
    ("tag", "Tag", ":material/sell:"),
)


def run_actions(runs: Sequence[Run], elsewhere: int) -> None:
    """A row to look at the chosen runs on other pages, a row to act on them.

    `elsewhere` of them are not on the page of the table that is shown.
    """
    ids = [run.id for run in runs]
    numbers = ",".join(map(str, ids))
    with st.container(horizontal=True, vertical_alignment="center"):
        hidden = f", {elsewhere:,} of them not in the table above" if elsewhere else ""
        st.markdown(f"**{plural(len(runs), 'run')} chosen**{hidden}", width="content")
        st.button("Clear", type="tertiary", icon=":material/close:", on_click=choose, args=((),))
        for page, label, icon in _PAGES:
            st.page_link(f"app_pages/{page}.py", label=label, icon=icon, query_params={"run": numbers})
        st.page_link(
            "app_pages/launch.py",
            label="Clone into the form",
            icon=":material/content_copy:",
            query_params={"clone": numbers},
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        _stop(runs)
        _button(
            "Resume",
            ":material/resume:",
            resumable(runs),
            actions.resume,
            "Queues again what was lost or stopped, or failed with its state saved: each goes on from there.",
        )
        _button(
            "Retry",
            ":material/replay:",
            restartable(runs),
            actions.retry,
            "Queues again what failed, was lost or was stopped, from its beginning.",
        )
        _priority(runs)
        _tags(runs)
        _button(
            "Archive",
            ":material/archive:",
            [run.id for run in runs if run.state in ENDED and not run.archived],
            actions.archive,
            "Puts ended runs out of sight. Nothing is lost: the filter archived:yes finds them.",
        )
        _button(
            "Restore",
            ":material/unarchive:",
            [run.id for run in runs if run.archived],
            actions.restore,
            "Takes archived runs back into the lists.",
        )
        _delete([run.id for run in runs if run.state in ENDED or run.state is RunState.QUEUED])


def _button(label: str, icon: str, ids: list[int], act: Callable[..., None], help_: str) -> None:
    st.button(label, icon=icon, disabled=not ids, on_click=act, args=(ids,), help=help_)


def _stop(runs: Sequence[Run]) -> None:
    """One run at once; several, or the whole launch they came from, after saying how many that is."""
    stop = stop_view(resources.store(), runs)
    if len(stop.ids) < 2 and stop.launch is None:
        _button("Stop", ":material/stop:", list(stop.ids), actions.stop, "Ends it at its next step.")
        return
    with st.popover("Stop", icon=":material/stop:", key="stop_runs"):
        st.markdown(
            "What waits is taken off the queue, what trains saves its state and ends at its next step."
        )
        if stop.ids:
            st.button(f"Stop {stop.words}", type="primary", on_click=actions.stop, args=(stop.ids,))
        if stop.launch is not None:
            st.caption(f"Launched together with others, as {escape(stop.launch.name)}.")
            st.button(
                f"Stop the whole launch: {stop.launch.stoppable}",
                on_click=actions.stop_launch,
                args=(stop.launch.name,),
            )


def _priority(runs: Sequence[Run]) -> None:
    """Which of what waits starts first."""
    waiting = [run for run in runs if run.state is RunState.QUEUED]
    ids = [run.id for run in waiting]
    with st.popover(
        "Priority", icon=":material/low_priority:", disabled=not ids, key="run_priority", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        levels = sorted({run.priority for run in waiting})
        st.markdown(f"Higher priorities start first; {plural(len(ids), 'run waits', 'runs wait')}.")
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            key = f"priority_{hash(tuple(ids))}"
            if st.session_state.get(key) not in levels:
                st.session_state[key] = levels[-1]
            st.number_input(
                "Priority" if len(levels) == 1 else f"Priority, now {levels[0]} to {levels[-1]}",
                *PRIORITIES,
                key=key,
                step=1,
                width=170,
                on_change=lambda: actions.prioritise(ids, st.session_state[key]),
            )
            for label, by, icon in (("Sooner", 1, "arrow_upward"), ("Later", -1, "arrow_downward")):
                st.button(
                    label,
                    icon=f":material/{icon}:",
                    on_click=actions.move,
                    args=(ids, by),
                    key=f"{label}_chosen",
                )


def _tags(runs: Sequence[Run]) -> None:
    """Tags that all have, to be changed; those that only some have are named."""
    everywhere = sorted(set.intersection(*(set(run.tags) for run in runs)))
    somewhere = sorted({tag for run in runs for tag in run.tags} - set(everywhere))
    ids = [run.id for run in runs]
    key = f"tags_{hash(tuple(ids))}"
    if st.session_state.get(key) != everywhere:
        st.session_state[key] = everywhere
    with st.popover("Tags", icon=":material/label:"):
        st.multiselect(
            f"Tags of {'the run' if len(ids) == 1 else f'all {len(ids):,} runs'}",
            [*everywhere, *somewhere],
            key=key,
            accept_new_options=True,
            placeholder="Type a tag and press Enter",
            on_change=lambda: actions.retag(ids, everywhere, st.session_state[key]),
            width=360,
        )
        if somewhere:
            st.caption(f"Only some of them have {escape(all_of(somewhere))}.")


def _delete(ids: list[int]) -> None:
    words = plural(len(ids), "run")
    with st.popover(
        "Delete", icon=":material/delete:", disabled=not ids, key="delete_runs", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        goes = remains(resources.store(), ids)
        files = f"{goes.checkpoint_bytes / 1e6:,.1f} MB of" if goes.checkpoint_bytes else "no"
        st.markdown(
            f"Delete **{words}** for good: {plural(goes.scores, 'score')} with predictions, "
            f"{plural(goes.snapshots, 'moment')} of relations, {files} checkpoints, and all curves, notes "
            "and logs. This cannot be undone; archiving can."
        )
        st.button(f"Delete {words}", type="primary", on_click=actions.delete, args=(ids,))
