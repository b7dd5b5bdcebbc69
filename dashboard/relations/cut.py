"""Cutting a link between two tasks or labels: the button, and what finished cuts cost."""

from __future__ import annotations

from itertools import combinations

import streamlit as st

from core.errors import MRNLabError
from core.mrn.alignments.cut import cut_of
from core.results.cuts import cut_configs, cuts_of
from core.store.types import RunWithFacts
from dashboard.relations.views import Rows
from dashboard.shared import actions, resources
from dashboard.shared.states import problem
from dashboard.text import escape
from jobs.queue.submit import submit

_PROBLEM = "cut_problem"
_MOST_LINKS = 3

Pair = tuple[str, str]


def cut_link(run: RunWithFacts, mode: str, rows: Rows, pair: Pair | None) -> None:
    """Draws what the cuts of this MRN run's configuration cost, and a button for each link of a pair of rows.

    Where nothing can be cut, a sentence says why.
    """
    if run.config.paradigm != "mrn" or run.config.added_to is not None:
        return
    for loss in cuts_of(resources.store(), run):
        st.markdown(f":material/content_cut: {escape(loss.sentence)}")
    if pair is None or mode not in ("task", "label") or cut_of(run.config.alignment or "") is not None:
        return
    cut_links = links(run.facts.alignment if run.facts else None, mode, rows, pair)
    of_text, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_text in map(",".join, cut_links):
        problem(why)
    if not cut_links:
        st.caption(":material/content_cut: " + escape(_why_none(rows, pair)))
    with st.container(horizontal=True):
        for link in cut_links[:_MOST_LINKS]:
            first, second = map(escape, link)
            st.button(
                "Cut this link" if len(cut_links) == 1 else f"Cut {first}–{second}",
                icon=":material/content_cut:",
                key=f"cut_link_{','.join(link)}",
                help=f"Trains all seeds again with a mapping in which {first} and {second} share no row.",
                on_click=_cut,
                args=(run.id, ",".join(link)),
            )


def links(alignment: str | None, mode: str, rows: Rows, pair: Pair) -> list[Pair]:
    """The links of a pair of rows that `mrnlab relations --cut` can cut.

    Of tasks it is the pair. Labels of two tasks are linked (`chunk:NP`, `ner:PER`); under `exact`, where a
    row is a label name, it is each of the two names in the tasks that share it (`a:NN`, `b:NN`).
    """
    if mode == "task":
        return [pair]
    owners = [rows.owners[rows.names.index(name)] for name in pair]
    of_names = [
        (f"{first}:{name}", f"{second}:{name}")
        for name, tasks in zip(pair, owners, strict=True)
        for first, second in combinations(tasks, 2)
    ]
    if alignment != "exact" and len(owners[0]) == len(owners[1]) == 1 and owners[0] != owners[1]:
        of_names.append(pair)
    return list(dict.fromkeys(of_names))


def _why_none(rows: Rows, pair: Pair) -> str:
    owners = [set(rows.owners[rows.names.index(name)]) for name in pair]
    if owners[0] == owners[1]:
        return f"{pair[0]} and {pair[1]} are labels of one task: there is no link between tasks to cut."
    return f"Under exact, {pair[0]} and {pair[1]} share no row: only labels of the same name have a link."


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
