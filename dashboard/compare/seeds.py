"""More seeds for what is compared: those that some rows lack, and those that may decide a difference."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.config import RunConfig
from core.corpora.loading import read
from core.errors import MRNLabError
from core.results.table import ResultTable
from core.store.records import ACTIVE, Run
from core.wording import about_time, plural
from dashboard.compare import views
from dashboard.compare.compared_runs import ComparedRuns
from dashboard.shared import actions, resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import choose, chosen, link_to_runs
from jobs.queue.estimates import cost
from jobs.queue.submit import same_runs, up_to_date

_PROBLEM = "seeds_problem"
_OLDER_TEXT = (
    "Seeds are missing, but the corpus has another text now than these runs learned, or their hash of it is "
    "an earlier version's. New runs would be in another table."
)
_MOST_RUNS = 60
"""Beyond so many missing runs only those of the two configurations compared are offered."""


def missing_seeds_button(table: ResultTable, compared: ComparedRuns, a: str, b: str) -> None:
    """Draws the button that queues missing seeds, and the number of runs in the queue."""
    store = resources.store()
    configs = {run.id: run.config for run in compared.runs}
    missing = views.missing_seeds(table.rows, configs)
    if len(missing) > _MOST_RUNS:
        missing = views.missing_seeds([table.row(a), table.row(b)], configs)
    there = same_runs(store, missing) if missing else {}
    listed = {run.id for run in compared.runs}
    missing = [config for config in missing if config not in there or there[config].id not in listed]
    new = [config for config in missing if config not in there]
    if missing and _is_on_older_text(compared.runs):
        st.caption(f":material/info: {_OLDER_TEXT}", width="content")
    elif new or any(there[config].state not in ACTIVE for config in missing):
        label, text = ("Launch" if new else "Add"), plural(len(new or missing), "run")
        st.button(
            f"{label} the missing seeds",
            type="primary",
            icon=":material/play_arrow:",
            key="missing_seeds",
            on_click=_launch_seeds,
            args=(missing, views.listed_seeds({config.seed for config in missing}), compared.runs),
        )
        seconds = cost(store, new).seconds if new else None
        text += f", {about_time(seconds)}" if seconds else "" if new else ", trained already"
        st.caption(text, width="content")
    same = {run.configuration_id for run in compared.runs}
    active = store.runs(states=ACTIVE, with_facts=False)
    if active := [run for run in active if run.configuration_id in same]:
        _on_their_way([run.id for run in active], views.listed_seeds({run.config.seed for run in active}))


def _is_on_older_text(runs: Sequence[Run]) -> bool:
    """Whether the corpus of these runs is known to have another text now; reads no corpus."""
    return len(up_to_date(resources.store(), runs, any_precision=True, may_read=False)) < len(runs)


def _launch_seeds(missing: Sequence[RunConfig], name: str, compared: Sequence[Run]) -> None:
    """Launches the missing seeds; a callback, so that no refresh comes between the click and the launch.

    Where they would learn another text than the runs compared, nothing is launched.
    """
    before = chosen()
    try:
        for corpus, columns in {(config.corpus, config.columns) for config in missing}:
            read(corpus, columns)
        if _is_on_older_text(compared):
            st.session_state[_PROBLEM] = "Nothing was launched: the corpus has changed."
            return
        runs, reused = actions.launch(missing, name, reuse=True)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    # What was compared goes on being compared, with the new runs as they end.
    choose((*before, *(run for run in runs if run not in before)) if before else ())
    actions.toast(f"{plural(len(runs) - len(reused), 'run')} queued: {name}.")


def _on_their_way(runs: Sequence[int], seeds: str) -> None:
    """A line on these runs with a link; the page follows as soon as one of them has ended."""
    text = f"{plural(len(runs), 'run')} queued or in progress: {seeds}."
    st.markdown(f":material/schedule: {text}", width="content")
    link_to_runs(runs, "See them on Runs")

    def has_ended() -> bool:
        return any(run.state not in ACTIVE for run in resources.store().runs(runs, with_facts=False))

    rerun_when(has_ended, key="seeds_on_their_way")
