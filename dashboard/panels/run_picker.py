"""The chosen runs as removable chips on top of a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import streamlit as st

from core.store.records import Run
from dashboard import resources
from dashboard.panels.run_finder import run_finder
from dashboard.queries.naming import run_name
from dashboard.selection import choose, chosen, newest_launch
from dashboard.text import all_of

__all__ = ["pick_runs", "say_gone"]

_MOST_OFFERED = 200


def say_gone(run_ids: Collection[int]) -> None:
    """Says which of the chosen runs are not in the store. Numbers are never used again, so those up to the
    newest run's were deleted.
    """
    if not run_ids:
        return
    newest = resources.store().runs(limit=1, archived=None, with_facts=False)
    last = newest[0].id if newest else 0
    deleted = [str(run_id) for run_id in sorted(run_ids) if run_id <= last]
    unknown = [str(run_id) for run_id in sorted(run_ids) if run_id > last]
    told = []
    if deleted:
        told.append(f"Run {deleted[0]} was" if len(deleted) == 1 else f"Runs {all_of(deleted)} were")
        told[-1] += " deleted."
    if unknown:
        told.append(f"There is no run {all_of(unknown)} in this store.")
    st.warning(" ".join(told), icon=":material/link_off:")


def pick_runs(
    *,
    key: str,
    suitable: Callable[[Run], bool] = lambda run: True,
    instead: Callable[[Sequence[Run]], Sequence[int]] = newest_launch,
    label: str = "Runs",
) -> list[Run] | None:
    """Draws the chips; returns the chosen runs that are suitable, in the order chosen, without their facts.

    None where the store has no suitable run at all, and then nothing is drawn. Where none of the chosen runs
    is suitable, `instead` (given the suitable runs, newest first) names those shown, which leaves the choice
    of the other pages alone. However many runs there are, only the newest are offered beside the chosen.
    """
    store = resources.store()
    known = {run.id: run for run in store.runs() if suitable(run)}
    # An archived run is in no list, but a link to it is good.
    linked = [run_id for run_id in chosen() if run_id not in known]
    there = store.runs(linked, with_facts=False)
    known |= {run.id: run for run in there if suitable(run)}
    gone = set(linked) - {run.id for run in there}
    say_gone(gone)
    if not known:
        return None
    current = [run_id for run_id in chosen() if run_id in known]
    # A link to runs that are gone shows no others in their place.
    if not current and not (gone and gone == set(chosen())):
        current = list(instead(list(known.values())))
    if st.session_state.get(key) != current:
        st.session_state[key] = current
    offered = dict.fromkeys([*current, *list(known)[:_MOST_OFFERED]])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked: list[int] = st.multiselect(
            label,
            options=list(offered),
            format_func=lambda run_id: run_name(known[run_id]),
            key=key,
            placeholder="Choose runs",
            on_change=lambda: choose(st.session_state[key]),
        )
        run_finder(suitable, key=key)
    return [known[run_id] for run_id in picked]
