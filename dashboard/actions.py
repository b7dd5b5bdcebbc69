"""What buttons do: each asks the jobs layer, and answers with a sentence for the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import streamlit as st

from core.config import RunConfig
from core.store import Store
from dashboard import resources
from dashboard.selection import choose, chosen
from dashboard.text import escape, plural
from jobs import control
from jobs.control import Answer
from jobs.submit import submit

__all__ = ["delete", "launch", "report", "resume", "retry", "stop"]

_REPORT = "last_report"


def launch(configs: Sequence[RunConfig], name: str = "Launch") -> list[int]:
    """Queue these runs, see that workers start, and make them the chosen ones. Raises MRNLabError.

    The launch is named by its time, so that its runs are known as launched together.
    """
    runs = submit(resources.store(), configs, f"{name}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}")
    choose(runs)
    return runs


def stop(runs: Sequence[int]) -> None:
    """Stop at the next step."""
    _ask(control.stop, runs)


def resume(runs: Sequence[int]) -> None:
    """Queue again what was lost or stopped."""
    _ask(control.resume, runs)


def retry(runs: Sequence[int]) -> None:
    """Queue again from the start."""
    _ask(control.retry, runs)


def delete(runs: Sequence[int]) -> None:
    """Remove the runs with all they left behind."""
    _ask(control.delete, runs)
    choose([run_id for run_id in chosen() if run_id not in runs])


def _ask(act: Callable[[Store, Sequence[int]], list[Answer]], runs: Sequence[int]) -> None:
    st.session_state[_REPORT] = act(resources.store(), list(runs))


def report() -> None:
    """Say once what the last button did: a line per refusal, one line for all that went well."""
    answers: list[Answer] = st.session_state.pop(_REPORT, [])
    done = [answer for answer in answers if answer.done]
    if len(done) == 1:
        st.toast(escape(done[0].message), icon=":material/check:")
    elif done:
        st.toast(f"Done for {plural(len(done), 'run')}.", icon=":material/check:")
    for answer in answers:
        if not answer.done:
            st.toast(escape(answer.message), icon=":material/error:")
