"""What buttons do: each asks `jobs.control`, and `report` shows what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from core.wording import plural
from dashboard.shared import resources
from dashboard.shared.selection import choose, chosen
from dashboard.text import escape
from jobs import control
from jobs.control import Answer
from jobs.submit import submit, submit_missing

_REPORT = "last_report"


def launch(
    configs: Sequence[RunConfig], name: str, *, reuse: bool, priority: int = 0, retries: int = 0
) -> tuple[list[int], list[int]]:
    """Queue these runs, start workers, and choose the runs. Raises MRNLabError.

    With `reuse` only the runs that the store lacks are queued. Returns the ids of all runs, and of those
    reused. The sweep's name ends with the time, which keeps launches apart.
    """
    sweep = f"{name}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    reused: list[int] = []
    if reuse:
        runs, reused = submit_missing(resources.store(), configs, sweep, priority=priority, retries=retries)
    else:
        runs = submit(resources.store(), configs, sweep, priority=priority, retries=retries)
    choose(runs)
    return runs, reused


def ask(act: Callable[..., list[Answer]], *args: Any, **options: Any) -> None:
    """Call `act(store, *args, **options)` and keep its answers for `report`."""
    try:
        st.session_state[_REPORT] = act(resources.store(), *args, **options)
    except MRNLabError as error:  # nothing was done for any run
        st.session_state[_REPORT] = [Answer(0, False, str(error))]


def say(message: str) -> None:
    """Have `report` show a success."""
    st.session_state[_REPORT] = [Answer(0, True, message)]


def change_keywords(runs: Sequence[int], before: Sequence[str], after: Sequence[str]) -> None:
    """Give all runs the keywords that are new, and take those that are gone."""
    add, remove = set(after) - set(before), set(before) - set(after)
    ask(control.change_keywords, runs, add=sorted(add), remove=sorted(remove))


def delete(runs: Sequence[int]) -> None:
    """Delete runs with all that was recorded of them."""
    ask(control.delete, runs)
    choose([run_id for run_id in chosen() if run_id not in runs])


def report() -> None:
    """Show once what the last button did: a line per refusal, one line for all that went well."""
    answers: list[Answer] = st.session_state.pop(_REPORT, [])
    done = [answer for answer in answers if answer.done]
    if done:
        words = escape(done[0].message) if len(done) == 1 else f"Done for {plural(len(done), 'run')}."
        st.toast(words, icon=":material/check:")
    for answer in answers:
        if not answer.done:
            st.toast(escape(answer.message), icon=":material/error:")
