"""The chosen runs as removable chips on top of a page, one for each configuration. Runs finds others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import streamlit as st

from core.paths import database_url
from core.results.naming import group_names, run_names
from core.results.samples import by_configuration, readable
from core.store.types import Run, RunState
from core.wording import all_of
from dashboard.shared import resources
from dashboard.shared.selection import choose, chosen, newest_sweep, run_numbers
from dashboard.shared.states import show_note, show_warning
from dashboard.text import escape

_MOST_OFFERED, _NEWEST = 200, 2000


def warn_missing_runs(run_ids: Collection[int]) -> None:
    """Warn of chosen runs that are not in the store.

    Ids are never reused: those up to the newest run's were deleted, higher ones never existed.
    """
    if not run_ids:
        return
    newest = resources.store().runs(limit=1, archived=None)
    last = newest[0].id if newest else 0
    deleted = [str(run_id) for run_id in sorted(run_ids) if run_id <= last]
    unknown = [str(run_id) for run_id in sorted(run_ids) if run_id > last]
    sentences = []
    if deleted:
        were = f"Run {deleted[0]} was" if len(deleted) == 1 else f"Runs {all_of(deleted)} were"
        sentences.append(f"{were} deleted.")
    if unknown:
        sentences.append(f"There is no run {all_of(unknown)} in this store.")
    show_warning(" ".join(sentences), ":material/link_off:")


def pick_runs(
    *,
    key: str,
    suitable: Callable[[Run], bool] = lambda run: True,
    instead: Callable[[Sequence[Run]], Sequence[int]] = newest_sweep,
    label: str = "Runs",
    run_by_run: bool = False,
) -> list[Run] | None:
    """Draw the chips; return the chosen suitable runs in the order chosen, without their facts.

    A chip stands for those runs of a configuration that are chosen, or, `run_by_run`, for one run. None (and
    nothing drawn) if the store has no suitable run. Where nothing is chosen, `instead` (given the suitable
    runs, newest first) names those shown; where no chosen run is suitable, none is, and a button takes the
    choice back. Only the newest runs are offered beside the chosen. Runs that cannot be read are left out,
    and a line says which.
    """
    store = resources.store()
    suitable_runs = {run.id: run for run in _suitable_runs(suitable)}
    # Archived runs are not listed, but a link to one works.
    linked = [run_id for run_id in chosen() if run_id not in suitable_runs]
    stored = store.runs(linked)
    suitable_runs |= {run.id: run for run in stored if suitable(run)}
    gone = set(linked) - {run.id for run in stored}
    warn_missing_runs(gone)
    known = {run.id: run for run in readable(suitable_runs.values())[0]}
    asked = [run_id for run_id in chosen() if run_id in suitable_runs]
    # In the place of what was chosen no other run is shown.
    if not chosen() and known:
        asked = list(instead(list(known.values())))
    shown_runs = [suitable_runs[run_id] for run_id in asked]
    runs, note = readable(shown_runs, store.conditions(shown_runs))
    if note:
        show_note(escape(note))
    if not known:
        return None
    current = [run.id for run in runs]
    shown = _options([known[run_id] for run_id in current], run_by_run=run_by_run)
    offered = _options(list(known.values())[:_MOST_OFFERED], run_by_run=run_by_run)
    more = {option: runs for option, runs in offered.items() if {run.id for run in runs} - set(current)}
    # Chips say what sets them apart from each other, options what sets them apart from all others.
    url = database_url()
    names = _names(url, [*shown, *more], run_by_run, shown | more) | _names(url, [*shown], run_by_run, shown)
    if st.session_state.get(key) != list(shown):
        st.session_state[key] = list(shown)
    picked: list[str] = st.multiselect(
        label,
        options=[*shown, *more],
        format_func=names.__getitem__,
        key=key,
        placeholder="Choose runs" if run_by_run else "Choose configurations",
        on_change=lambda: choose(run_numbers(",".join(st.session_state[key]))),
    )
    if chosen() and not asked:
        st.button(
            "Show the newest sweep",
            type="tertiary",
            icon=":material/new_releases:",
            key=f"{key}_newest",
            on_click=choose,
            args=((),),
        )
    return [known[run_id] for run_id in run_numbers(",".join(picked))]


def _suitable_runs(suitable: Callable[[Run], bool]) -> list[Run]:
    """The suitable runs, newest first: of a large store the newest, where some of them have begun."""
    store = resources.store()
    newest = [run for run in store.runs(limit=_NEWEST) if suitable(run)]
    has_begun = any(run.state is not RunState.QUEUED for run in newest)
    if has_begun and len(newest) >= _MOST_OFFERED:
        return newest
    return [run for run in store.runs() if suitable(run)]


def _options(runs: Sequence[Run], *, run_by_run: bool) -> dict[str, list[Run]]:
    """Groups of runs by their ids with commas: a group per run, or per configuration."""
    groups = [[run] for run in runs] if run_by_run else list(by_configuration(runs).values())
    return {",".join(str(run.id) for run in group): group for group in groups}


@st.cache_data(max_entries=200, show_spinner=False)
def _names(
    url: str, options: Sequence[str], run_by_run: bool, _runs: Mapping[str, Sequence[Run]]
) -> dict[str, str]:
    """The names of the options, found once for all sessions: what a run is named after never changes."""
    groups = [_runs[option] for option in options]
    names = run_names([group[0] for group in groups]) if run_by_run else group_names(groups)
    return dict(zip(options, names, strict=True))
