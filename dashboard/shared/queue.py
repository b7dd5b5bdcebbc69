"""The queue in a line: runs in progress and queued, the reason of a hold, the machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import streamlit as st

from core.paths import database_url
from core.recording.owner import hostname
from core.store import ACTIVE, Run, RunState, Store
from core.wording import about_time, ago, plural
from dashboard.shared import actions, resources
from dashboard.shared.live import live
from dashboard.shared.run_views import fraction_done, why_it_waits
from dashboard.shared.selection import link_to_runs
from dashboard.shared.states import states_text
from dashboard.text import escape, with_code
from jobs.queue import control
from jobs.queue.control import Answer
from jobs.queue.estimates import queue_left
from jobs.worker.cores import train_at_once


def seconds_left(ids: tuple[int, ...] | None = None) -> float | None:
    """Returns the seconds until all active runs have ended, or these; None if unknown."""
    return _seconds_left(database_url(), tuple(resources.store().counts().items()), ids)


@st.cache_data(ttl=5, max_entries=16, show_spinner=False)
def _seconds_left(url: str, counts: Collection[object], ids: tuple[int, ...] | None) -> float | None:
    """Estimates anew every five seconds, and when a run has changed its state."""
    return queue_left(resources.store(), ids)


def counts_text(training: int, waiting: int) -> str:
    """`2 in progress, 35 queued`; a count of zero is left out."""
    parts = ((training, "in progress"), (waiting, "queued"))
    return ", ".join(f"{count:,} {word}" for count, word in parts if count)


def none_done(ids: Sequence[int]) -> None:
    """Draws how far these runs are, none of which has succeeded. The page goes on once one has."""

    def read() -> list[Run]:
        return resources.store().runs(ids)

    def pace() -> float | None:
        states = {run.state for run in read()}
        return resources.LIVE if states & ACTIVE and RunState.SUCCEEDED not in states else None

    def draw() -> None:
        runs = read()
        active = [run.id for run in runs if run.state in ACTIVE]
        is_paused = resources.store().paused_since() is not None
        left = seconds_left(tuple(active)) if active and not is_paused else None
        about = "" if left is None else f", {about_time(left)} left"
        st.markdown(f"**0 of {plural(len(runs), 'run')} done{about}**")
        st.progress(
            sum(map(fraction_done, runs)) / len(runs), text=states_text(Counter(run.state for run in runs))
        )
        link_to_runs((run.id for run in runs), "See how far they are")

    with st.container(border=True):
        live(draw, pace, key="none_done")


def queue_panel(store: Store, beside: Callable[[], None]) -> None:
    """Draws the reason of a hold, then one line with counts, actions and what is `beside` them."""
    held_banner(store)
    counts = store.counts()
    training = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    waiting = counts[RunState.QUEUED]
    is_paused = store.paused_since() is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        line = "No runs in progress or queued."
        if text := counts_text(training, waiting):
            left = None if is_paused else seconds_left()
            line = f"**{text}**" + (f", {about_time(left)}" if left is not None else "")
        st.markdown(line, width="content")
        if not is_paused:
            _button(
                "Pause queue",
                control.pause,
                icon=":material/pause_circle:",
                type="tertiary",
                help="No queued run starts until you resume the queue. Runs in progress go on.",
            )
        with st.popover("Machines", icon=":material/dns:", type="tertiary", key="machines_menu"):
            _machines(store)
        beside()
    if waiting and not training and not is_paused:
        for run in store.runs(store.next_queued(1)):
            st.caption(f"Run {run.id} is next. {with_code(why_it_waits(store, run))}")


def held_banner(store: Store, *, launching: bool = False) -> None:
    """Draws why no run starts, since when, and a button that ends it; nothing if the queue moves.

    `launching`: for a reader who is about to add runs, whom other machines do not concern.
    """
    if (since := store.paused_since()) is not None:
        _banner(
            f"**The queue was paused {ago(since)}.** No run starts until it is resumed.",
            ":material/pause_circle:",
            "Resume queue",
            control.unpause,
        )
    for host, since in store.drained().items():
        if not launching or host == hostname():
            _banner(
                f"**{escape(host)} was drained {ago(since)}** and takes no runs.",
                ":material/do_not_disturb_on:",
                "Take runs again",
                control.undrain,
                host,
            )


def _banner(text: str, icon: str, label: str, act: Callable[..., list[Answer]], *args: str) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center", gap="small")
    left.warning(text, icon=icon)
    with right:
        _button(label, act, *args, icon=":material/play_circle:", width="stretch")


def _button(label: str, act: Callable[..., list[Answer]], *args: str, **look: Any) -> None:
    key = "_".join((label, *args))
    st.button(label, key=key, on_click=actions.perform, args=(act, *args), **look)


def _machines(store: Store) -> None:
    """Draws the machines that train: their work, since when, and a button that drains each."""
    this, drained = hostname(), store.drained()
    training = {machine.host: machine for machine in store.machines()}
    for host in dict.fromkeys((this, *training)):
        text = "trains nothing"
        if machine := training.get(host):
            slots = f" in {plural(train_at_once(store), 'slot')}" if host == this else ""
            since = ago(machine.since).removesuffix(" ago")
            text = (
                f"{machine.training} in progress{slots}, for {since}, last sign of life {ago(machine.heard)}"
            )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(gap=None, width=330):
                st.markdown(f"**{escape(host)}**{', this machine' if host == this else ''}")
                st.caption(text)
            if host not in drained:
                _button("Drain", control.drain, host)
    st.caption("A drained machine takes no runs; what it trains goes on.")
