"""The card *Which of my tasks help each other?*: `mrnlab advise` for the form's corpus and tasks.

What gives the advice is imported once it is asked for: with scipy's statistics it takes a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core.errors import MRNLabError
from core.paths import database_url
from core.store import RunState
from core.wording import all_of, duration, plural
from dashboard.launch.draft import Draft
from dashboard.launch.presets import LaunchPreset
from dashboard.shared import resources
from dashboard.shared.downloads import show_table
from dashboard.shared.live import live
from dashboard.shared.newcomers import launch_button
from dashboard.shared.selection import link_to_runs
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.queue.submit import same_runs, submit_missing

if TYPE_CHECKING:
    from jobs.reports.advise import Inquiry, TaskAdvice

TITLE = "Which of my tasks help each other?"
_WORDS = "Which of the tasks chosen below are likely to help which, and how sure that is. About 2 min."
_CLICKED, _ASKED = "task_advice_clicked", "task_advice_asked"


def advice_card() -> None:
    """The question and its button; `task_advice` answers."""
    st.markdown(f"**{TITLE}**")
    st.caption(_WORDS)
    st.space("stretch")
    st.button("Ask", icon=":material/play_arrow:", key="task_advice_ask", on_click=_click)


def _click() -> None:
    st.session_state[_CLICKED] = True


def task_advice(draft: Draft) -> None:
    """Queues the runs once the button was clicked; shows how far they are, then the advice."""
    is_new = st.session_state.pop(_CLICKED, False)
    if is_new:
        st.session_state[_ASKED] = draft.corpus, draft.columns, draft.tasks
    if _ASKED not in st.session_state:
        return
    try:
        asked = _inquiry(*st.session_state[_ASKED])
        if is_new:
            submit_missing(resources.store(), asked.runs, asked.sweep)
    except MRNLabError as error:
        del st.session_state[_ASKED]
        problem(str(error))
        return
    with st.container(border=True, key="task_advice"):
        st.markdown(escape(f"Which of {all_of(asked.tasks)} in {asked.asked} help each other?"))
        live(lambda: _draw(asked), resources.pace, key="task_advice_part")


@st.cache_resource(max_entries=8, show_spinner="Looking at the data")
def _inquiry(corpus: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...]) -> Inquiry:
    from jobs.reports.advise import inquiry

    return inquiry(corpus, tasks, columns=columns)


def _draw(asked: Inquiry) -> None:
    from jobs.reports.advise_words import short_budgets

    runs = same_runs(resources.store(), asked.runs)
    done = tuple(run.id for run in runs.values() if run.state is RunState.SUCCEEDED)
    if len(runs) < len(asked.runs):
        problem("A run that this rests on did not succeed or was stopped. Ask again to queue it anew.")
    elif len(done) < len(asked.runs):
        st.progress(len(done) / len(asked.runs), f"{len(done)} of {plural(len(asked.runs), 'run')} done")
        for sentence in short_budgets(asked):
            st.caption(escape(sentence))
        link_to_runs((run.id for run in runs.values()), "Runs")
    else:
        newest = resources.store().runs(states={RunState.SUCCEEDED}, limit=1, with_facts=False)
        _show(_advice(database_url(), asked.corpus, asked.columns, done, newest[0].id, _asked=asked))


@st.cache_resource(max_entries=8, show_spinner="Comparing the tasks with those of the study")
def _advice(
    url: str,
    corpus: str,
    columns: tuple[str, ...] | None,
    done: tuple[int, ...],
    newest: int,
    _asked: Inquiry,
) -> TaskAdvice:
    """Anew when a run has ended since, which may be one of a pair."""
    from jobs.reports.advise import advice

    return advice(resources.store(), _asked)


def _show(advice: TaskAdvice) -> None:
    from jobs.reports.advise_words import report
    from jobs.reports.render import Sheet

    table, answer, *reasons, settling, _ = report(advice)
    st.markdown(escape(answer))
    assert isinstance(table, Sheet)
    show_table(table, alt="What is expected of each pair of tasks")
    with st.container(gap="xsmall"):
        for sentence in reasons:
            st.caption(escape(sentence))
    st.markdown(escape(settling))
    if advice.new:
        about = advice.settling.seconds
        label = f"Launch {plural(advice.new, 'run')}{'' if about is None else f', about {duration(about)}'}"
        launch_button(LaunchPreset(TITLE, "", advice.inquiry.pairs), label)
    st.code(advice.settling_command, language="bash", wrap_lines=True)
