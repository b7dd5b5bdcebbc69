"""Which runs are compared: those chosen, or all on the newest corpus; never two corpora at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.config import kind_key
from core.store.records import Run, RunState
from core.wording import plural
from dashboard.shared import resources
from dashboard.shared.newcomers import try_it
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import choose, chosen
from dashboard.text import escape
from jobs.results import ResultTable, settings, tabulate

_MOST_ROWS = 40
_NEWEST = 2000
"""Where nothing is chosen, so many of the newest finished runs are looked at."""


@dataclass(frozen=True)
class Scope:
    """The runs compared, all on the same data, and what that data is called."""

    runs: list[Run]
    name: str


def scope() -> Scope | None:
    """The widgets; None where no run has finished yet, which is then said."""
    picked = pick_runs(key="compare_runs", suitable=_finished, instead=lambda _: ())
    if picked is None:
        try_it("No run has finished yet. One click trains MRN, MTL and STL to compare.")
        return None
    runs = picked or resources.store().runs(states={RunState.SUCCEEDED}, limit=_NEWEST)
    by_setting = settings(runs, resources.store().conditions(runs))
    groups = {setting.name: own for setting, own in by_setting.items()}
    name = next(iter(groups))
    if len(groups) > 1:
        name = st.selectbox(
            "Data",
            list(groups),
            key="data",
            bind="query-params",
            width=420,
            help="Scores on other text, or with another share of it to train on, are not mixed in one table.",
        )
    kept, left_out = _newest_rows(groups[name])
    _told(name, kept, left_out, bool(picked))
    for setting in by_setting:
        if setting.name == name and setting.note:
            st.caption(f":material/info: {escape(setting.note)}")
    return Scope(kept, name)


def _finished(run: Run) -> bool:
    return run.state is RunState.SUCCEEDED


def _newest_rows(runs: Sequence[Run]) -> tuple[list[Run], int]:
    """The runs of the newest configurations, as many as a table can show; how many configurations more."""
    keys: dict[str, str] = {}
    rows: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: -run.id):
        if run.configuration_id not in keys:
            keys[run.configuration_id] = kind_key(run.config)
        rows.setdefault(keys[run.configuration_id], []).append(run)
    kept = list(rows.values())[:_MOST_ROWS]
    return [run for own in kept for run in own], len(rows) - len(kept)


def _told(name: str, runs: Sequence[Run], left_out: int, picked: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        whose = "chosen" if picked else "finished"
        said = (
            f"Comparing {'the' if picked else 'all'} {plural(len(runs), f'{whose} run')} on {escape(name)}."
        )
        if left_out:
            said = (
                f"Comparing the newest {_MOST_ROWS} of {_MOST_ROWS + left_out:,} configurations on "
                f"{escape(name)}; choose runs to see others."
            )
        if chosen() and not picked and resources.store().runs(chosen(), with_facts=False):
            said += " None of the chosen runs has finished."
        st.caption(said, width="content")
        if picked:
            st.button("All runs", type="tertiary", icon=":material/select_all:", on_click=choose, args=((),))


def table_of(found: Scope, split: str, *, cost: bool = False) -> ResultTable:
    """The table of scores on that split. Reports, which are megabytes, are not read, nor are the runs' facts
    unless their cost is asked for.
    """
    if cost:
        runs = resources.store().runs([run.id for run in found.runs])
        found = Scope(runs, found.name)
    scores = resources.store().scores([run.id for run in found.runs], with_reports=False)
    conditions = resources.store().conditions(found.runs)
    return tabulate(found.runs, scores, split, resources.task_order(), conditions)
