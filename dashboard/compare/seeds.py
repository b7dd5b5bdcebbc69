"""More seeds for what is compared: those that some rows lack, and those that may decide a difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import streamlit as st

from core.config import RunConfig
from core.corpora.loading import read
from core.errors import MRNLabError
from core.results.comparisons import Difference
from core.results.pairs import further_seeds, missing_seeds
from core.results.table import MEAN_OF_TASKS, ResultTable
from core.store.types import ACTIVE, Run
from core.wording import about_time, plural
from dashboard.compare import views
from dashboard.compare.compared_runs import ComparedRuns, go_on_comparing
from dashboard.shared import actions, resources
from dashboard.shared.live import rerun_when
from dashboard.shared.selection import chosen, link_to_runs
from dashboard.shared.states import problem, show_note
from dashboard.text import escape
from jobs.queue.estimates import costs
from jobs.queue.submit import same_runs, up_to_date

_PROBLEM = "seeds_problem"
_OLDER_TEXT = (
    "Seeds are missing, but the corpus has another text now than these runs learned, or their hash of it is "
    "an earlier version's. New runs would be in another table."
)
_MOST_RUNS = 60
"""Beyond so many missing runs only those of the two configurations compared are offered."""


@dataclass(frozen=True)
class Offer:
    """Runs that a button launches; `new` are those that the store lacks, with their `seconds` if known."""

    configs: Sequence[RunConfig]
    new: Sequence[RunConfig]
    seconds: float | None

    @property
    def time_text(self) -> str:
        """`4 min`, `trained already`; empty without an estimate."""
        return "trained already" if not self.new else about_time(self.seconds) if self.seconds else ""


@dataclass(frozen=True)
class Offers:
    """What the seeds cost that the rows lack, and those that may decide a difference, by task.

    `missing` is None where nothing is lacking. On older text nothing is offered: new runs would be in another
    table.
    """

    missing: Offer | None
    deciding: dict[str, Offer]
    is_on_older_text: bool


def offers(table: ResultTable, compared: ComparedRuns, a: str, b: str, shown: Iterable[Difference]) -> Offers:
    """The offers for a table and the differences of two of its rows, from one query of stored times."""
    store, configs = resources.store(), {run.id: run.config for run in compared.runs}
    rows = [table.row(a), table.row(b)]
    missing = missing_seeds(table.rows, configs)
    if len(missing) > _MOST_RUNS:
        missing = missing_seeds(rows, configs)
    lots = {"": missing}
    for delta in shown:
        if (needed := delta.seeds_needed) is not None and needed.more is not None:
            of_task = None if delta.task == MEAN_OF_TASKS else delta.task
            lots[delta.task] = further_seeds(rows, configs, needed.more, of_task)
    is_older = any(lots.values()) and _is_on_older_text(compared.runs)
    every = list(dict.fromkeys(config for lot in lots.values() for config in lot))
    there = same_runs(store, every) if every else {}
    listed = {run.id for run in compared.runs}
    wanted = {
        task: [config for config in lot if config not in there or there[config].id not in listed]
        for task, lot in lots.items()
    }
    # Runs that wait or train need no button.
    wanted = {
        task: lot
        for task, lot in wanted.items()
        if any(config not in there or there[config].state not in ACTIVE for config in lot)
    }
    new = {task: [config for config in lot if config not in there] for task, lot in wanted.items()}
    seconds = (
        [of.seconds for of in costs(store, list(new.values()))] if any(new.values()) else [None] * len(new)
    )
    by_task = {
        task: Offer(wanted[task], new[task], of_lot) for (task, of_lot) in zip(wanted, seconds, strict=True)
    }
    return Offers(by_task.pop("", None), {} if is_older else by_task, is_older)


def missing_seeds_button(offered: Offers, compared: ComparedRuns) -> None:
    """Draws the button that queues missing seeds."""
    missing = offered.missing
    if missing is not None and offered.is_on_older_text:
        show_note(_OLDER_TEXT, width="content")
    elif missing is not None:
        st.button(
            f"{'Launch' if missing.new else 'Add'} the missing seeds",
            type="primary",
            icon=":material/play_arrow:",
            key="missing_seeds",
            on_click=_launch_seeds,
            args=(missing.configs, compared),
        )
        count = plural(len(missing.new or missing.configs), "run")
        st.caption(", ".join(filter(None, (count, missing.time_text))), width="content")


def runs_on_their_way(compared: ComparedRuns) -> None:
    """Draws the number of runs of the same configurations that wait or train."""
    store = resources.store()
    same = {run.configuration_id for run in compared.runs}
    active = store.runs(states=ACTIVE)
    if active := [run for run in active if run.configuration_id in same]:
        _on_their_way([run.id for run in active], views.listed_seeds({run.config.seed for run in active}))


def deciding_seeds(offered: Offers, shown: Iterable[Difference], compared: ComparedRuns) -> None:
    """Draws on demand how many seeds would decide each undecided difference, with buttons."""
    if undecided := [delta for delta in shown if delta.seeds_needed is not None]:
        with st.popover("Seeds needed", type="tertiary", icon=":material/add:", key="deciding"):
            for delta in undecided:
                _deciding_button(offered, delta, compared)


def _deciding_button(offered: Offers, delta: Difference, compared: ComparedRuns) -> None:
    """Draws how many seeds would decide an undecided difference, and how long that takes, with a button."""
    needed = delta.seeds_needed
    assert needed is not None
    offer = offered.deciding.get(delta.task)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        time_text = "" if offer is None else offer.time_text
        cost = ", ".join(filter(None, (needed.sentence, time_text)))
        st.markdown(f"**{escape(delta.task)}**: {cost}", width="content")
        if offer is not None and needed.more is not None:
            st.button(
                f"Add {plural(needed.more, 'seed')}",
                type="tertiary",
                icon=":material/add:",
                key=f"deciding_{delta.task}",
                help="With this spread over seeds they decide it in four of five cases. Looking again at "
                "0.05 adds errors; *Add seeds until decided* does not.",
                on_click=_launch_seeds,
                args=(offer.configs, compared),
            )


def launch_problem() -> None:
    """Says why the last launch of seeds failed, if it did."""
    if why := st.session_state.pop(_PROBLEM, ""):
        problem(why)


def _is_on_older_text(runs: Sequence[Run]) -> bool:
    """Whether the corpus of these runs is known to have another text now; reads no corpus."""
    return len(up_to_date(resources.store(), runs, any_precision=True, may_read=False)) < len(runs)


def _launch_seeds(configs: Sequence[RunConfig], compared: ComparedRuns) -> None:
    """Launches these seeds; a callback, so that no refresh comes between the click and the launch.

    Where they would learn another text than the runs compared, nothing is launched.
    """
    name = views.listed_seeds({config.seed for config in configs})
    try:
        for corpus, columns in {(config.corpus, config.columns) for config in configs}:
            read(corpus, columns)
        if _is_on_older_text(compared.runs):
            st.session_state[_PROBLEM] = "Nothing was launched: the corpus has changed."
            return
        before = chosen()
        runs, reused = actions.launch(configs, name, reuse=True)
        go_on_comparing(compared, before, runs)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    actions.toast(f"{plural(len(runs) - len(reused), 'run')} queued: {name}.")


def _on_their_way(runs: Sequence[int], seeds: str) -> None:
    """A line on these runs with a link; the page follows as soon as one of them has ended."""
    text = f"{plural(len(runs), 'run')} queued or in progress: {seeds}."
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":material/schedule: {text}", width="content")
        link_to_runs(runs, "See them on Runs")

    def has_ended() -> bool:
        return any(run.state not in ACTIVE for run in resources.store().runs(runs))

    rerun_when(has_ended, key="seeds_on_their_way")
