"""The actions of buttons, through `jobs.queue.control`; `show` reports them, some can be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Run
from core.wording import duration, plural
from dashboard.shared import resources
from dashboard.shared.selection import choose, chosen
from dashboard.text import escape
from jobs.queue import control
from jobs.queue.control import Answer
from jobs.queue.submit import submit

_REPORT = "last_report"
_UNDO = "last_undo"

# What several runs are afterwards.
_DONE: Mapping[Callable[..., list[Answer]], str] = {
    control.archive: "archived",
    control.restore: "restored",
    control.resume: "queued again",
    control.retry: "queued again",
    control.stop_all: "asked to stop",
    control.delete: "deleted",
    control.prioritise: "moved in the queue",
    control.change_keywords: "given other keywords",
}


def launch(
    configs: Sequence[RunConfig], name: str, *, reuse: bool, priority: int = 0, retries: int = 0
) -> tuple[list[int], list[int]]:
    """Queue these runs, start workers, and choose the runs. Raises MRNLabError.

    With `reuse` only the runs that the store lacks are queued. Returns the ids of all runs, and of those
    reused. The label ends with the time, which keeps sweeps apart.
    """
    label = f"{name}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    runs, reused = submit(resources.store(), configs, label, reuse=reuse, priority=priority, retries=retries)
    choose(runs)
    return runs, reused


def perform(act: Callable[..., list[Answer]], *args: Any, **options: Any) -> None:
    """Calls `act(store, *args, **options)` and keeps its answers for `show`."""
    _perform(act, *args, **options)


def _perform(act: Callable[..., list[Answer]], *args: Any, **options: Any) -> list[int]:
    """Returns the runs for which `perform` did the action."""
    try:
        answers = act(resources.store(), *args, **options)
    except MRNLabError as error:  # nothing was done for any run
        answers = [Answer(0, False, str(error))]
    done = [answer for answer in answers if answer.done]
    several = f"{plural(len(done), 'run')} {_DONE.get(act, 'changed')}."
    text = several if len(done) > 1 else "".join(answer.message for answer in done)
    st.session_state[_REPORT] = text, [answer.message for answer in answers if not answer.done]
    st.session_state.pop(_UNDO, None)
    return [answer.run_id for answer in done]


def toast(message: str) -> None:
    """Queues a message of success for `show`."""
    st.session_state[_REPORT] = message, []


def archive(runs: Sequence[int]) -> None:
    """Archive runs, which are no longer chosen; `undo_line` offers to restore them."""
    _take_away(control.archive, runs)


def delete(runs: Sequence[int]) -> None:
    """Delete runs, which are no longer chosen; `undo_line` offers to bring them back while they are kept."""
    _take_away(control.delete, runs, f" {duration(control.KEPT_S)} are left to undo it.")


def _take_away(act: Callable[..., list[Answer]], runs: Sequence[int], note: str = "") -> None:
    before = chosen()
    if done := _perform(act, runs):
        choose([run_id for run_id in before if run_id not in done])
        # The line with the undo says it, in place of a toast.
        st.session_state[_REPORT] = "", st.session_state[_REPORT][1]
        text = f"{plural(len(done), 'run')} {_DONE[act]}.{note}"
        st.session_state[_UNDO] = text, partial(_restore, done, before)


def _restore(runs: Sequence[int], choice: Sequence[int]) -> None:
    perform(control.restore, runs)
    choose(choice)


def change_keywords(runs: Sequence[Run], before: Sequence[str], after: Sequence[str]) -> None:
    """Gives all runs the new keywords, and removes the deleted ones."""
    changes = {"add": sorted(set(after) - set(before)), "remove": sorted(set(before) - set(after))}
    perform(control.change_keywords, [run.id for run in runs], **changes)


def undo_line() -> None:
    """Draws the last action with a button to undo it, if it can be undone."""
    if _UNDO in st.session_state:
        text, undo = st.session_state[_UNDO]
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="undo_line"):
            st.markdown(f":green[:material/check:] {text}", width="content")
            st.button("Undo", icon=":material/undo:", type="tertiary", on_click=undo)


def show() -> None:
    """Shows the last action once: a line for all successes, a line per refusal."""
    text, refusals = st.session_state.pop(_REPORT, ("", []))
    if text:
        st.toast(escape(text), icon=":material/check:")
    for refusal in refusals:
        st.toast(escape(refusal), icon=":material/error:")
