"""The queue in a line: what trains and waits, what holds it, the machines, the launches under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.paths import database_url
from core.store import RunState, Store
from core.wording import ago, duration, plural
from dashboard.shared import actions, resources
from dashboard.shared.run_views import LaunchLine, MachineLine, QueueView, counts_text, launch_lines
from dashboard.text import escape
from jobs import control
from jobs.control import Answer
from jobs.estimates import queue_left

_MOST_LAUNCHES = 8
_ASKED = "stop_launch_asked"


@st.cache_data(ttl=30, max_entries=16, show_spinner=False)
def _seconds_left(url: str, training: int, waiting: int) -> float | None:
    """Seconds until so many runs have ended, estimated twice a minute; None if unknown."""
    return queue_left(resources.store())


def queue_panel(view: QueueView) -> None:
    """What holds the queue, then one line with its counts and what can be done."""
    held_banner(view)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        counts = counts_text(view.training, view.waiting)
        left = None
        if counts and view.paused is None:
            left = _seconds_left(database_url(), view.training, view.waiting)
        about = f", about {duration(left)}" if left is not None else ""
        st.markdown(f"**{counts}**{about}" if counts else "Nothing runs or waits.", width="content")
        if view.paused is None:
            st.button(
                "Pause queue",
                icon=":material/pause_circle:",
                type="tertiary",
                on_click=actions.ask,
                args=(control.pause,),
                help="Nothing that waits starts until you resume it. What trains goes on.",
            )
        with st.popover("Machines", icon=":material/dns:", type="tertiary"):
            _machines(view)
        with st.popover(
            "Launches",
            icon=":material/rocket_launch:",
            type="tertiary",
            key="queue_launches",
            on_change="rerun",
        ) as launches:
            if launches.open:  # reads every waiting run
                _launches(launch_lines(resources.store()))


def held_banner(view: QueueView, *, launching: bool = False) -> None:
    """What keeps runs from starting, since when, and a button that ends it; nothing if the queue moves.

    `launching`: for a reader who is about to add runs.
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
            control.unpause,
        )
    for machine in view.machines:
        if machine.drained is None or (launching and not machine.is_this):
            continue
        trains = f" It still trains {plural(machine.training, 'run')}." if machine.training else ""
        _banner(
            f"**{escape(machine.host)} was drained {ago(machine.drained)}** and takes no runs.{trains}",
            ":material/do_not_disturb_on:",
            "Take runs again",
            control.undrain,
            machine.host,
        )


def _banner(words: str, icon: str, label: str, act: Callable[..., list[Answer]], *args: str) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center", gap="small")
    left.warning(words, icon=icon)
    with right:
        _button(label, f"{label}_{args}", act, *args, icon=":material/play_circle:", width="stretch")


def _button(label: str, key: str, act: Callable[..., list[Answer]], *args: object, **look: Any) -> None:
    st.button(label, key=key, on_click=actions.ask, args=(act, *args), **look)


def _machines(view: QueueView) -> None:
    """Each machine: what it does, since when, and its buttons."""
    for machine in view.machines:
        host = machine.host
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(gap=None, width=330):
                st.markdown(f"**{escape(host)}**{', this machine' if machine.is_this else ''}")
                st.caption(_machine_text(machine))
            st.space("stretch")
            if machine.drained is not None:
                _button("Take runs again", f"undrain_{host}", control.undrain, host)
            else:
                _button("Drain", f"drain_{host}", control.drain, host)
            if machine.training:
                _button(
                    "Drain now",
                    f"drain_now_{host}",
                    _drain_now,
                    host,
                    help="Also saves what it trains, and queues it again for another machine.",
                )
    st.caption(
        "A drained machine takes no runs: what it trains goes on, or with Drain now is saved and goes to "
        "another."
    )


def _drain_now(store: Store, host: str) -> list[Answer]:
    return control.drain(store, host, now=True)


def _machine_text(machine: MachineLine) -> str:
    slots = f" in {plural(machine.slots, 'slot')}" if machine.slots is not None else ""
    parts = [f"{machine.training} training{slots}" if machine.training else "trains nothing"]
    if machine.since is not None:
        parts.append(f"for {ago(machine.since).removesuffix(' ago')}")
    if machine.heard is not None:
        parts.append(f"last sign of life {ago(machine.heard)}")
    if machine.drained is not None:
        parts.append(f"drained {ago(machine.drained)}")
    return ", ".join(parts)


def _launches(launches: Sequence[LaunchLine]) -> None:
    if not launches:
        st.caption("Runs launched together stand here while some of them train or wait, or were lost.")
    for launch in launches[:_MOST_LAUNCHES]:
        with st.container(border=True, gap="small", width=520):
            priority = f", priority {launch.priority}" if launch.priority else ""
            with st.container(gap=None):
                st.markdown(f"**{escape(launch.name)}**")
                st.caption(f"{launch.words}{priority}")
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _launch_buttons(launch)
    if (more := len(launches) - _MOST_LAUNCHES) > 0:
        st.caption(f"{plural(more, 'older launch', 'older launches')} not shown.")


def _launch_buttons(launch: LaunchLine) -> None:
    name = launch.name
    if st.session_state.get(_ASKED) == name and launch.stoppable:
        stop = f"Stop {launch.stoppable}"
        _button(
            stop,
            f"stop_launch_sure_{name}",
            control.stop_launch,
            name,
            type="primary",
            icon=":material/stop:",
        )
        st.button("Keep them", key=f"keep_launch_{name}", on_click=_ask, args=(None,))
        return
    if launch.waiting:
        _button("Sooner", f"Sooner_{name}", _move, name, 1, icon=":material/arrow_upward:")
        _button("Later", f"Later_{name}", _move, name, -1, icon=":material/arrow_downward:")
    if launch.resumable:
        _button(
            f"Resume {launch.resumable:,}",
            f"resume_launch_{name}",
            control.resume_launch,
            name,
            icon=":material/resume:",
            help="Those that were lost or stopped: each goes on from its saved state.",
        )
    if launch.stoppable:
        st.button(
            "Stop all",
            icon=":material/stop:",
            key=f"stop_launch_{name}",
            on_click=_ask,
            args=(name,),
        )


def _move(store: Store, name: str, by: int) -> list[Answer]:
    return control.move(store, store.launched(name, {RunState.QUEUED}), by)


def _ask(name: str | None) -> None:
    st.session_state[_ASKED] = name
