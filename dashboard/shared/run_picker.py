"""The chosen runs as removable chips on top of a page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pandas as pd
import streamlit as st

from core.store.records import Run
from core.wording import ago, all_of, plural
from dashboard.shared import resources
from dashboard.shared.finding import Found, find
from dashboard.shared.selection import choose, chosen, newest_launch
from dashboard.text import escape
from jobs.naming import run_name
from jobs.run_filter import FilterError, parse_filter

# Find runs by text and by field, and choose them with all their seeds.


_MOST_LISTED = 60


def run_finder(suitable: Callable[[Run], bool], *, key: str) -> None:
    """A button that opens a field for a filter and the configurations that it finds among suitable runs."""
    with st.popover(
        "Find runs", icon=":material/search:", key=f"{key}_finder", on_change="rerun", width="content"
    ) as opened:
        if opened.open:
            _finder(suitable, key)


def _finder(suitable: Callable[[Run], bool], key: str) -> None:
    text = st.text_input(
        "Filter",
        key=f"{key}_filter",
        placeholder="paradigm:mrn lambda<0.1 seed:1",
        help="Words, and fields such as `paradigm:mrn`, `lambda<0.1`, `encoder:bert*`, `tag:paper`, "
        "`created<2h`. All must hold; a minus before one turns it round.",
        width=640,
    )
    try:
        wanted = parse_filter(text)
    except FilterError as error:
        st.markdown(f":orange[:material/error: {escape(error)}]")
        return
    runs = resources.store().runs(archived=wanted.archived)
    found, of = find(runs, lambda run: suitable(run) and wanted.matches(run), _MOST_LISTED)
    if not found:
        st.caption("No run that this page can show matches.")
        return
    picked = _table(found, key)
    ids = [run_id for place in picked for run_id in found[place].run_ids]
    with st.container(horizontal=True, vertical_alignment="center"):
        words = plural(len(ids), "run") if ids else "runs"
        st.button(
            f"Show these {words}",
            type="primary",
            disabled=not ids,
            key=f"{key}_show",
            on_click=choose,
            args=(ids,),
        )
        st.button(
            "Add them",
            disabled=not ids,
            key=f"{key}_add",
            on_click=lambda: choose(list(dict.fromkeys([*chosen(), *ids]))),
        )
        more = f", the newest {_MOST_LISTED} shown" if of > len(found) else ""
        st.caption(f"{plural(of, 'configuration')}{more}")


def _table(found: Sequence[Found], key: str) -> list[int]:
    event = st.dataframe(
        pd.DataFrame(
            {
                "Configuration": one.name,
                "Corpus": one.corpus,
                "Runs": len(one.run_ids),
                "Seeds": one.seeds,
                "Newest": ago(one.newest),
            }
            for one in found
        ),
        # Positions mean other runs when the finds change, so each list is a table of its own.
        key=f"{key}_found_{hash(tuple(one.run_ids for one in found))}",
        hide_index=True,
        height="content" if len(found) <= 8 else 316,
        width=640,
        column_config={
            "Runs": st.column_config.NumberColumn(width=54),
            "Seeds": st.column_config.NumberColumn(width=58),
            "Newest": st.column_config.TextColumn(width=90),
        },
        on_select="rerun",
        selection_mode="multi-row",
        alt="Configurations that the filter finds",
    )
    return list(event.selection.rows)


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
