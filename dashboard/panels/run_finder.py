"""Find runs by text and by field, and choose them with all their seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from core.store.records import Run
from dashboard import resources
from dashboard.queries.finding import Found, find
from dashboard.selection import choose, chosen
from dashboard.text import ago, escape, plural
from jobs.run_filter import FilterError, parse_filter

__all__ = ["run_finder"]

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
