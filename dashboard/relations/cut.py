"""Cutting a link between two tasks or labels: the button, and what finished cuts cost."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from core.results.cuts import cut_configs, cut_name_of, cuts_of
from core.store.records import RunWithFacts
from dashboard.shared import actions, resources
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.queue.submit import submit

_PROBLEM = "cut_problem"


def cut_link(run: RunWithFacts, mode: str, pair: tuple[str, str] | None) -> None:
    """Draws what the cuts of this MRN run's configuration cost, and a button that cuts the link of a pair.

    Pairs are of tasks, or of labels with their tasks (`chunk:NP`); labels that several tasks share have none.
    """
    if run.config.paradigm != "mrn" or run.config.added_to is not None:
        return
    for loss in cuts_of(resources.store(), run):
        st.markdown(f":material/content_cut: {escape(loss.sentence)}")
    if pair is None or mode not in ("task", "label") or cut_name_of(run.config) is not None:
        return
    text = ",".join(pair)
    of_text, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_text == text:
        problem(why)
    if mode == "label" and not all(name.partition(":")[0] in run.config.tasks for name in pair):
        return
    st.button(
        "Cut this link", icon=":material/content_cut:", key="cut_link",
        help=f"Trains all seeds again with a mapping in which {pair[0]} and {pair[1]} share no row.",
        on_click=_cut, args=(run.id, text),
    )  # fmt: skip


def _cut(run_id: int, text: str) -> None:
    """Queues the runs; a callback, so that no refresh comes between click and start."""
    st.session_state.pop(_PROBLEM, None)
    store = resources.store()
    try:
        cut, configs = cut_configs(store, run_id, text)
        submit(store, configs, f"{cut.name} cut in run {run_id}", reuse=True)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = text, str(error)
        return
    actions.toast(f"Runs without the link {cut.name} are queued. " + " ".join(cut.notes))
