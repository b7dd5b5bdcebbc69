"""The queue in a line: how much trains and waits, what holds it, who works, which launches are under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.paths import database_url
from core.wording import ago, duration, plural
from dashboard.shared import actions, resources
from dashboard.shared.queue_views import LaunchLine, MachineLine, QueueView, launch_lines, parts_told
from dashboard.text import escape
from jobs.estimates import queue_left

# How long the queue still takes: asked at every look, told anew twice a minute.


def time_left(training: int, waiting: int) -> float | None:
    """Seconds until so many runs have ended; None where it cannot be told. Raises MRNLabError."""
    return _time_left(database_url(), training, waiting)


@st.cache_data(ttl=30, max_entries=16, show_spinner=False)
def _time_left(url: str, training: int, waiting: int) -> float | None:
    return queue_left(resources.store())


_MOST_LAUNCHES = 8
_ASKED = "stop_launch_asked"


def queue_panel(view: QueueView) -> None:
    """What holds the queue, unmistakably; then one quiet line with what can be done."""
    held_banner(view)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        told = parts_told(view.training, view.waiting)
        left = time_left(view.training, view.waiting) if told and view.paused is None else None
        about = f", about {duration(left)}" if left is not None else ""
        st.markdown(f"**{told}**{about}" if told else "Nothing runs or waits.", width="content")
        if view.paused is None:
            st.button(
                "Pause queue",
                icon=":material/pause_circle:",
                type="tertiary",
                on_click=actions.pause,
                help="Nothing that waits starts until you resume it. What trains goes on.",
            )
        with st.popover("Machines", icon=":material/dns:", type="tertiary"):
            _machines(view)
        # What takes a look through all that waits is asked for when it is opened.
        with st.popover(
            "Launches",
            icon=":material/rocket_launch:",
            type="tertiary",
            key="queue_launches",
            on_change="rerun",
        ) as launches:
            if launches.open:
                _launches(launch_lines(resources.store()))


def held_banner(view: QueueView, *, launching: bool = False) -> None:
    """What keeps runs from starting, and since when, with the way out beside it. Nothing where nothing does.

    `launching`: for the reader who is about to add runs.
    """
    if view.paused is not None:
        if launching:
            rest = "Runs you launch wait until it is resumed."
        elif view.waiting:
            rest = f"{plural(view.waiting, 'run waits', 'runs wait')} and cannot start until it is resumed."
        else:
            rest = "What is launched cannot start until it is resumed."
        _banner(
            f"**The queue was paused {ago(view.paused)}.** {rest}",
            ":material/pause_circle:",
            "Resume queue",
            actions.unpause,
        )
    for one in view.drained:
        if launching and not one.is_this:
            continue  # others take them
        trains = f" It still trains {plural(one.training, 'run')}." if one.training else ""
        _banner(
            f"**{escape(one.host)} was drained {ago(one.drained)}** and takes no runs.{trains}",
            ":material/do_not_disturb_on:",
            "Take runs again",
            actions.undrain,
            one.host,
        )


def _banner(words: str, icon: str, label: str, act: Callable[..., None], *args: str) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center", gap="small")
    left.warning(words, icon=icon)
    right.button(
        label,
        icon=":material/play_circle:",
        on_click=act,
        args=args,
        key=f"{label}_{args}",
        width="stretch",
    )


def _machines(view: QueueView) -> None:
    """Each machine with what it does and since when, and what can be done about it."""
    for one in view.machines:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(gap=None, width=330):
                st.markdown(f"**{escape(one.host)}**{', this machine' if one.is_this else ''}")
                st.caption(_machine_told(one))
            st.space("stretch")
            _machine_buttons(one)
    st.caption(
        "A drained machine takes no runs: what it trains goes on, or with Drain now is saved and goes to "
        "another."
    )


def _machine_told(one: MachineLine) -> str:
    slots = f" in {plural(one.slots, 'slot')}" if one.slots is not None else ""
    parts = [f"{one.training} training{slots}" if one.training else "trains nothing"]
    if one.since is not None:
        parts.append(f"for {ago(one.since).removesuffix(' ago')}")
    if one.heard is not None:
        parts.append(f"last sign of life {ago(one.heard)}")
    if one.drained is not None:
        parts.append(f"drained {ago(one.drained)}")
    return ", ".join(parts)


def _machine_buttons(one: MachineLine) -> None:
    if one.drained is not None:
        st.button(
            "Take runs again",
            key=f"undrain_{one.host}",
            on_click=actions.undrain,
            args=(one.host,),
        )
    else:
        st.button("Drain", key=f"drain_{one.host}", on_click=actions.drain, args=(one.host,))
    if one.training:
        st.button(
            "Drain now",
            key=f"drain_now_{one.host}",
            on_click=actions.drain_now,
            args=(one.host,),
            help="Also saves what it trains, and queues it again for another machine.",
        )


def _launches(launches: Sequence[LaunchLine]) -> None:
    if not launches:
        st.caption("Runs launched together stand here while some of them train or wait, or were lost.")
    for one in launches[:_MOST_LAUNCHES]:
        with st.container(border=True, gap="small", width=520):
            high = f", priority {one.priority}" if one.priority else ""
            with st.container(gap=None):
                st.markdown(f"**{escape(one.name)}**")
                st.caption(f"{one.words}{high}")
            _launch_buttons(one)
    if (more := len(launches) - _MOST_LAUNCHES) > 0:
        st.caption(f"{plural(more, 'older launch', 'older launches')} not shown.")


def _launch_buttons(one: LaunchLine) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.session_state.get(_ASKED) == one.name and one.stoppable:
            st.button(
                f"Stop {one.stoppable}",
                type="primary",
                icon=":material/stop:",
                key=f"stop_launch_sure_{one.name}",
                on_click=_stop,
                args=(one.name,),
            )
            st.button("Keep them", key=f"keep_launch_{one.name}", on_click=_ask, args=(None,))
            return
        for label, by, icon in (("Sooner", 1, "arrow_upward"), ("Later", -1, "arrow_downward")):
            if one.waiting:
                st.button(
                    label,
                    icon=f":material/{icon}:",
                    key=f"{label}_{one.name}",
                    on_click=actions.move_launch,
                    args=(one.name, by),
                )
        if one.resumable:
            st.button(
                f"Resume {one.resumable:,}",
                icon=":material/resume:",
                key=f"resume_launch_{one.name}",
                on_click=actions.resume_launch,
                args=(one.name,),
                help="Those that were lost or stopped: each goes on from its saved state.",
            )
        if one.stoppable:
            st.button(
                "Stop all",
                icon=":material/stop:",
                key=f"stop_launch_{one.name}",
                on_click=_ask,
                args=(one.name,),
            )


def _ask(name: str | None) -> None:
    st.session_state[_ASKED] = name


def _stop(name: str) -> None:
    _ask(None)
    actions.stop_launch(name)
