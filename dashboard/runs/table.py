"""The tables of runs, one for each corpus, a line a configuration or a run; and the controls above them.

The ticked lines are the chosen runs of the other pages. Streamlit selects lines by position; they are mapped
to run ids at once, and back.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config.typed import whole_number
from core.results.filter import FIELDS, RunFilter
from core.store import Run, Store
from core.wording import plural
from dashboard.runs.columns import Column, columns_of
from dashboard.runs.views import SPLITS, Page, Table, sorts
from dashboard.shared.delivery import fragment
from dashboard.shared.downloads import data_table
from dashboard.shared.selection import choice, choose, chosen, segments, switch
from dashboard.shared.states import show_reason
from dashboard.text import escape

_PAGE = "table_page"
_FILTER = "filter"
RUNS_SHOWN = "id"
"""The parameter of the address of the page of some runs: their ids."""
_RUN_PAGE = "runs/run_page.py"
_ORDERS = {"configurations": "By configuration", "runs": "Each run"}
EXAMPLES = {
    "paradigm:mrn lambda<0.1": "MRN with a λ below 0.1",
    "ner>60 dev.pos>=80": "mean test score of ner above 60%, mean dev score of pos at least 80%",
    "state:failed,lost created<2d": "failed or lost in the last two days",
    "corpus:conll* fraction<1": "on a share of a corpus whose name begins with conll",
    '-encoder:minilm "to check"': "encoders other than minilm, with these words",
    "keyword:* archived:no": "runs with a keyword",
    "archived:yes": "archived runs, which other filters leave out",
}

_FIXED = ("", "Name")
"""The columns that every table has: the eye and the line's name, frozen at the left."""
_CHOSEN_COLUMNS = "columns"
_KEYS = "runs_table_numbers"
_SHOWN = "runs_tables_shown"
_ASKED = "runs_address"
_PRESSED = "runs_whose_eye_was_pressed"


@dataclass(frozen=True)
class Search:
    """The reader's search: the text of the filter, and the order of the lines."""

    text: str
    sort: str


def run_search(tasks: Sequence[str]) -> Search:
    """Draws the filter with its help and the order of the lines, all in the URL."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter",
            key=_FILTER,
            bind="query-params",
            type="search",
            placeholder="Words, fields and scores: paradigm:mrn lambda<0.1 ner>60",
            on_change=_to_first_page,
            width="stretch",
        )
        with st.container(width="content"):
            _help_on_filters()
        sort = choice("Sort", sorts(tasks), key="sort", on_change=_to_first_page, width=190)
    return Search(text or "", sort)


def page_asked() -> int | Collection[int]:
    """The page of the table that is asked for, by the URL until its widget has been drawn; else the chosen
    runs, which are on it.
    """
    number: int | None = st.session_state.get(_PAGE) or whole_number(st.query_params.get(_PAGE, ""))
    return number or set(chosen())


def _to_first_page() -> None:
    st.session_state[_PAGE] = 1


@fragment()
def _help_on_filters() -> None:
    """Draws a popover on the filter's language, which is sent once it is opened."""
    with st.popover(
        "How to filter", icon=":material/help:", type="tertiary", key="filter_help", on_change="rerun"
    ) as opened:
        if opened.open:
            _help()


def _help() -> None:
    st.markdown(
        "Separate terms by spaces; all must hold. `field:a,b` is any of these values, `*` stands for any "
        "text, and `< <= > >= !=` compare. `-` excludes a term. A task's name is the mean test score of a "
        "configuration's seeds; with `dev.` before it, the dev score. Words are searched in paradigm, λ, "
        "tasks, corpus, encoder and keywords; a number is also a run's. Quote text with spaces or symbols."
    )
    st.markdown("\n".join(f"- `{example}`: {words}" for example, words in EXAMPLES.items()))
    data_table(
        {"Field": list(FIELDS), "Meaning": [field.description for field in FIELDS.values()]},
        height=260,
        width=640,
        alt="The fields of a filter",
    )


@dataclass(frozen=True)
class Choice:
    """The rows and scores that the tables show; `counts` and `menu` have room for more."""

    grouped: bool
    split: str
    only_chosen: bool
    counts: DeltaGenerator
    menu: DeltaGenerator


def shown_choice() -> Choice:
    """Draws the line above the tables: the number of runs, and the menu of columns."""
    with st.container(horizontal=True, vertical_alignment="center"):
        counts = st.container(horizontal=True, vertical_alignment="center", width="content")
        only_chosen = bool(chosen()) and switch("Show chosen", key="only_chosen")
        menu = st.popover("Columns", icon=":material/view_column:", type="tertiary")
    with menu:
        order = segments("Rows", _ORDERS, key="order", on_change=_to_first_page, labelled=True)
        split = segments("Scores", SPLITS, key="scores", labelled=True)
    return Choice(order == "configurations", split, only_chosen, counts, menu)


def listed_runs(store: Store, wanted: RunFilter, *, only_chosen: bool) -> list[Run]:
    """The runs that the filter finds, or only the chosen ones, newest first."""
    if only_chosen:
        return store.runs(chosen())
    return [run for run in store.runs(archived=wanted.archived) if wanted.matches(run)]


def found(page: Page) -> None:
    """Draws how much was found, and the other pages."""
    st.session_state[_ASKED] = st.query_params.to_dict()
    counts = f"{plural(page.configurations, 'configuration')}, {plural(page.runs, 'run')}."
    st.caption(counts, width="content")
    if page.pages > 1:
        if st.session_state.get(_PAGE, 1) != page.number:
            st.session_state[_PAGE] = page.number
        st.pagination(page.pages, key=_PAGE, bind="query-params")


def nothing_found(*, is_filtered: bool) -> None:
    """Why the table is empty, and the way out."""
    if not is_filtered:
        show_reason("All runs are archived. The filter `archived:yes` finds them.", ":material/archive:")
        return

    def clear() -> None:
        st.session_state[_FILTER] = ""
        _to_first_page()

    with st.container(border=True):
        st.markdown("**No run matches this filter.** Only `archived:yes` finds archived runs.")
        st.button("Clear the filter", on_click=clear)


def run_tables(page: Page, split: str, menu: DeltaGenerator | None = None) -> None:
    """Draws all tables of a page with the scores of this split; `menu` has room for the choice of columns."""
    picked = set(chosen())
    st.session_state[_SHOWN] = {}
    drawn = []
    for table in page.tables:
        ticked = [place for place, line in enumerate(table.lines) if picked.issuperset(line.run_ids)]
        key = _key(table, ticked)
        st.session_state[_SHOWN][key] = (table.lines, ticked)
        drawn.append(
            (table, key, ticked, columns_of(table, table.split(split), picked, key, partial(_pressed, key)))
        )
    every = {name: column for *_, columns in drawn for name, column in columns.items()}
    shown: Collection[str] = [name for name, column in every.items() if column.is_usual]
    is_usual = True
    if menu is not None:
        with menu:
            picked_columns = _chosen_columns(every, shown)
        is_usual, shown = set(picked_columns) == set(shown).difference(_FIXED), picked_columns
    for table, key, ticked, columns in drawn:
        with st.container(gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.subheader(escape(table.corpus), anchor=False, width="content")
                scores = f"{table.split(split)} {table.measure or 'scores'}" * bool(table.measures)
                st.caption(escape(" · ".join(filter(None, (table.shared, scores)))), width="content")
            # Without a choice each table has what differs in it.
            usual = [name for name, column in columns.items() if column.is_usual] if is_usual else shown
            wanted = {name: column for name, column in columns.items() if name in (*_FIXED, *usual)}
            _draw(table, wanted, key, ticked)


def _chosen_columns(names: Iterable[str], usual: Collection[str]) -> Collection[str]:
    """Draws the choice of columns, kept in the address; none chosen is the usual ones."""
    options = [name for name in names if name not in _FIXED]
    if not set(st.session_state.get(_CHOSEN_COLUMNS, ())) <= set(options):
        del st.session_state[_CHOSEN_COLUMNS]  # chosen of other tables
    usual = [name for name in usual if name not in _FIXED]
    names = st.multiselect("Columns", options, usual, key=_CHOSEN_COLUMNS, bind="query-params")
    return names or usual


def _draw(table: Table, columns: Mapping[str, Column], key: str, ticked: list[int]) -> None:
    grouped = table.lines[0].run is None
    data_table(
        _styled(columns),
        key=key,
        placeholder="",
        column_config={name: column.look for name, column in columns.items()},
        on_select=partial(_selected, key),
        selection_mode="multi-row",
        selection_default={"selection": {"rows": ticked, "columns": [], "cells": []}},
        alt=f"{'Configurations' if grouped else 'Runs'} on {table.corpus}, their scores and states",
    )


def _key(table: Table, ticked: list[int]) -> str:
    """The table's key, a new one if the ticks in the browser differ from the chosen runs.
    Written into an existing table, ticks come back from the browser as if the reader had set them, often
    too late.
    """
    name = f"runs_table_{zlib.crc32((table.lines[0].config.corpus if table.is_readable else '').encode())}"
    numbers = st.session_state.setdefault(_KEYS, {})
    state = st.session_state.get(f"{name}_{numbers.get(name, 0)}")
    if state is not None and sorted(state["selection"]["rows"]) != ticked:
        numbers[name] = numbers.get(name, 0) + 1
    return f"{name}_{numbers.get(name, 0)}"


def _selected(key: str) -> None:
    """Applies the ticks set or removed since the table was drawn; a configuration means all its runs."""
    if key not in st.session_state[_SHOWN]:
        return  # from a table that has been replaced
    lines, before = st.session_state[_SHOWN][key]
    now = st.session_state[key]["selection"]["rows"]
    dropped = {run for index in before if index not in now for run in lines[index].run_ids}
    added = [run for index in now if index not in before for run in reversed(lines[index].run_ids)]
    choose(list(dict.fromkeys([*(run for run in chosen() if run not in dropped), *added])))


def _pressed(key: str) -> None:
    """Keeps the runs of the line with the pressed eye; a callback cannot change the page."""
    lines, _ = st.session_state[_SHOWN][key]
    st.session_state[_PRESSED] = lines[st.session_state[f"{key}_eye"]["row"]].run_ids


def follow() -> None:
    """Opens the page of the runs of the pressed eye."""
    if ids := st.session_state.pop(_PRESSED, None):
        st.switch_page(_RUN_PAGE, query_params=_address(ids))


def way_back() -> None:
    """A link to the tables of all runs, as they were filtered and sorted."""
    asked = st.session_state.get(_ASKED, {})
    st.page_link("runs/page.py", label="All runs", icon=":material/arrow_back:", query_params=asked)


def run_link(ids: Sequence[int], label: str, icon: str) -> None:
    """A link to the page of these runs."""
    st.page_link(_RUN_PAGE, label=label, icon=icon, query_params=_address(ids))


def _address(ids: Sequence[int]) -> dict[str, str]:
    return {RUNS_SHOWN: ",".join(map(str, sorted(ids)))}


def _styled(columns: Mapping[str, Column]) -> Any:
    styler = pd.DataFrame({name: column.values for name, column in columns.items()}).style
    styler.format({name: _in_turn(column.texts) for name, column in columns.items() if column.texts})
    for name, column in columns.items():
        if column.bold:
            styler.set_properties(subset=(sorted(column.bold), [name]), **{"font-weight": "700"})
    return styler


def _in_turn(texts: Iterable[str]) -> Callable[[object], str]:
    """A formatter that gives these texts: pandas formats each column once, from top to bottom."""
    turn = itertools.cycle(texts)
    return lambda _: next(turn)
