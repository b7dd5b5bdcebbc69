"""The chosen runs as removable chips on top of a page. Runs finds others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import streamlit as st

from core.store.records import Run
from core.wording import all_of
from dashboard.shared import resources
from dashboard.shared.selection import choose, chosen, newest_launch
from jobs.reports.naming import run_name

_MOST_OFFERED = 200


def warn_missing_runs(run_ids: Collection[int]) -> None:
    """Warn of chosen runs that are not in the store.

    Ids are never reused: those up to the newest run's were deleted, higher ones never existed.
    """
    if not run_ids:
        return
    newest = resources.store().runs(limit=1, archived=None, with_facts=False)
    last = newest[0].id if newest else 0
    deleted = [str(run_id) for run_id in sorted(run_ids) if run_id <= last]
    unknown = [str(run_id) for run_id in sorted(run_ids) if run_id > last]
    sentences = []
    if deleted:
        were = f"Run {deleted[0]} was" if len(deleted) == 1 else f"Runs {all_of(deleted)} were"
        sentences.append(f"{were} deleted.")
    if unknown:
        sentences.append(f"There is no run {all_of(unknown)} in this store.")
    st.warning(" ".join(sentences), icon=":material/link_off:")


def pick_runs(
    *,
    key: str,
    suitable: Callable[[Run], bool] = lambda run: True,
    instead: Callable[[Sequence[Run]], Sequence[int]] = newest_launch,
    label: str = "Runs",
) -> list[Run] | None:
    """Draw the chips; return the chosen suitable runs in the order chosen, without their facts.

    None (and nothing drawn) if the store has no suitable run. If no chosen run is suitable, `instead` (given
    the suitable runs, newest first) names those shown; the choice of the other pages stays. Only the newest
    runs are offered beside the chosen.
    """
    store = resources.store()
    known = {run.id: run for run in store.runs() if suitable(run)}
    # Archived runs are not listed, but a link to one works.
    linked = [run_id for run_id in chosen() if run_id not in known]
    stored = store.runs(linked, with_facts=False)
    known |= {run.id: run for run in stored if suitable(run)}
    gone = set(linked) - {run.id for run in stored}
    warn_missing_runs(gone)
    if not known:
        return None
    current = [run_id for run_id in chosen() if run_id in known]
    # A link to deleted runs shows no others in their place.
    if not current and not (gone and gone == set(chosen())):
        current = list(instead(list(known.values())))
    if st.session_state.get(key) != current:
        st.session_state[key] = current
    several = len({run.config.encoder for run in known.values()}) > 1
    picked: list[int] = st.multiselect(
        label,
        options=list(dict.fromkeys([*current, *list(known)[:_MOST_OFFERED]])),
        format_func=lambda run_id: run_name(known[run_id], with_encoder=several),
        key=key,
        placeholder="Choose runs",
        on_change=lambda: choose(st.session_state[key]),
    )
    return [known[run_id] for run_id in picked]
