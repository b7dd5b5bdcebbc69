"""The chosen runs as removable chips on top of a page, and a search for more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pandas as pd
import streamlit as st

from core.store.records import Run
from core.wording import ago, all_of, plural
from dashboard.shared import resources
from dashboard.shared.run_views import Found, find
from dashboard.shared.selection import choose, chosen, newest_launch
from dashboard.text import escape
from jobs.naming import run_name
from jobs.run_filter import FilterError, parse_filter

_MOST_LISTED = 60
_MOST_OFFERED = 200


def _finder(suitable: Callable[[Run], bool], key: str) -> None:
    """A filter, and the configurations of suitable runs that match it, to be chosen with all their seeds."""
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
    found, count = find(runs, lambda run: suitable(run) and wanted.matches(run), _MOST_LISTED)
    if not found:
        st.caption("No run that this page can show matches.")
        return
    ids = [run_id for place in _table(found, key) for run_id in found[place].run_ids]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Show these {plural(len(ids), 'run') if ids else 'runs'}",
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
        more = f", the newest {_MOST_LISTED} shown" if count > len(found) else ""
        st.caption(f"{plural(count, 'configuration')}{more}")


def _table(found: Sequence[Found], key: str) -> list[int]:
    event = st.dataframe(
        pd.DataFrame(
            {
                "Configuration": line.name,
                "Corpus": line.corpus,
                "Runs": len(line.run_ids),
                "Seeds": line.seeds,
                "Newest": ago(line.newest),
            }
            for line in found
        ),
        # A selection is positions, which mean other runs after another search: a new key, a new selection.
        key=f"{key}_found_{hash(tuple(line.run_ids for line in found))}",
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


def say_gone(run_ids: Collection[int]) -> None:
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
    say_gone(gone)
    if not known:
        return None
    current = [run_id for run_id in chosen() if run_id in known]
    # A link to deleted runs shows no others in their place.
    if not current and not (gone and gone == set(chosen())):
        current = list(instead(list(known.values())))
    if st.session_state.get(key) != current:
        st.session_state[key] = current
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked: list[int] = st.multiselect(
            label,
            options=list(dict.fromkeys([*current, *list(known)[:_MOST_OFFERED]])),
            format_func=lambda run_id: run_name(known[run_id]),
            key=key,
            placeholder="Choose runs",
            on_change=lambda: choose(st.session_state[key]),
        )
        with st.popover(
            "Find runs", icon=":material/search:", key=f"{key}_finder", on_change="rerun", width="content"
        ) as popover:
            if popover.open:
                _finder(suitable, key)
    return [known[run_id] for run_id in picked]
