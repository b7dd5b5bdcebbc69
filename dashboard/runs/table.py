"""The tables of runs, one for each share of a corpus, a line a configuration or a run; their controls.

The ticked lines are the chosen runs of the other pages.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config.typed import whole_number
from core.results.filter import FIELDS, RunFilter
from core.store import Run, Store
from core.wording import ago, capitalised, plural
from dashboard.components.run_table import Column, RunLine, run_table
from dashboard.runs.columns import FIELDS_SHOWN, columns_of
from dashboard.runs.views import SPLITS, Page, Table, sorts
from dashboard.shared.delivery import fragment
from dashboard.shared.downloads import data_table
from dashboard.shared.longer import train_longer
from dashboard.shared.selection import choice, choose, chosen, segments, switch
from dashboard.shared.states import show_reason

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

_CHOSEN_COLUMNS = "columns"
_MOST_ALIGNED = 4
_ASKED = "runs_address"
_OPENED = "runs_whose_name_was_pressed"


@dataclass(frozen=True)
class Search:
    """The reader's search: the text of the filter, and the order of the lines."""

    text: str
    sort: str


def run_search(tasks: Sequence[str]) -> Search:
    """Draws the filter with its help and the order of the lines, all in the URL."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="run_search"):
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
    """The rows and scores that the tables show; `counts`, `menu` and `note` have room for more."""

    grouped: bool
    split: str
    only_chosen: bool
    counts: DeltaGenerator
    menu: DeltaGenerator
    note: DeltaGenerator


def shown_choice() -> Choice:
    """Draws the line above the tables: the number of runs, and the menu of columns."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        counts = st.container(horizontal=True, vertical_alignment="center", width="content")
        only_chosen = bool(chosen()) and switch("Show chosen", key="only_chosen")
        menu = st.popover("Columns", icon=":material/view_column:", type="tertiary", key="columns_menu")
        note = st.container(width="content")
    with menu:
        order = segments("Rows", _ORDERS, key="order", on_change=_to_first_page, labelled=True)
        split = segments("Scores", SPLITS, key="scores", labelled=True)
    return Choice(order == "configurations", split, only_chosen, counts, menu, note)


def listed_runs(store: Store, wanted: RunFilter, *, only_chosen: bool) -> list[Run]:
    """The runs that the filter finds, or only the chosen ones, newest first."""
    if only_chosen:
        return store.runs(chosen())
    runs = store.runs(archived=wanted.archived)
    return [run for run in runs if wanted.matches(run)] if wanted.terms else runs


def counts_and_pages(page: Page) -> None:
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


def run_tables(
    page: Page, split: str, menu: DeltaGenerator | None = None, note: DeltaGenerator | None = None
) -> None:
    """Draws all tables of a page with the scores of this split.

    `menu` has room for the choice of columns, `note` for what is said about scores.
    """
    picked = set(chosen())
    spread = any(table.has_spread for table in page.tables)
    tables = [(table, columns_of(table, table.split(split), picked, spread=spread)) for table in page.tables]
    every = {name: column for _, columns in tables for name, column in columns.items()}
    usual = [name for name, column in every.items() if column.is_usual]
    shown: Collection[str] = usual
    if menu is not None:
        with menu:
            shown = _chosen_columns(every, usual)
    is_usual = set(shown) == set(usual)
    drawn: list[tuple[Table, Mapping[str, Column], Sequence[str]]] = []
    for table, columns in tables:
        heads = [name for name, column in columns.items() if (column.is_usual if is_usual else name in shown)]
        of_lines = table.names({field for head in heads for field in FIELDS_SHOWN.get(head, ())})
        drawn.append((table, {head: columns[head] for head in heads}, of_lines))
    splits = sorted({table.split(split) for table in page.tables if table.measures})
    if splits:
        is_bold = any(column.bold for _, wanted, _ in drawn for column in wanted.values())
        (note or st).caption(
            f"{capitalised(' or '.join(splits))} scores in percent{', mean ± SD (number of seeds)' * spread}."
            + " Bold: higher than each other method." * is_bold
        )
    for table, wanted, names in drawn:
        lines = [
            RunLine(name, sorted(line.run_ids), len(picked.intersection(line.run_ids)))
            for name, line in zip(names, table.lines, strict=True)
        ]
        kind = "Configurations" if table.lines[0].run is None else "Runs"
        of_split = f"{table.split(split)} scores" * (len(splits) > 1 and bool(table.measures))
        first = table.lines[0].config
        data = f"{first.corpus} {first.fraction}" if table.is_readable else ""
        parts = filter(None, (*table.shared, table.measure, of_split))
        run_table(
            lines,
            wanted,
            title=table.corpus,
            about=sorted(((part, part in table.apart) for part in parts), key=lambda about: not about[1]),
            when=ago(max(line.newest for line in table.lines)),
            alt=f"{kind} on {table.corpus}, their scores and states",
            key=f"runs_table_{zlib.crc32(data.encode())}",
            widest_name=max(len(name) for _, _, of_lines in drawn for name in of_lines),
            most_scores=max(_scores(of_table) for _, of_table, _ in drawn),
            ticked=apply_ticks,
            opened=open_runs,
        )
        _train_longer(table)


def _train_longer(table: Table) -> None:
    """Says below configurations of one length which tasks learned nothing, with the way to train longer."""
    tasks = dict.fromkeys(task for line in table.lines for task in line.learned_nothing)
    epochs = {line.config.epochs for line in table.lines}
    if tasks and len(epochs) == 1 and all(line.run is None for line in table.lines):
        ids = [run_id for line in table.lines for run_id in line.run_ids]
        train_longer(list(tasks), epochs.pop(), ids, key=f"table_{min(ids)}", small=True)


def _scores(columns: Mapping[str, Column]) -> int:
    """How many columns of scores there are, of at most those that fit beside a name and a state."""
    return min(_MOST_ALIGNED, sum(column.is_score for column in columns.values()))


def _chosen_columns(names: Iterable[str], usual: Collection[str]) -> Collection[str]:
    """Draws the choice of columns, kept in the address; none chosen is the usual ones."""
    options = list(names)
    if not set(st.session_state.get(_CHOSEN_COLUMNS, ())) <= set(options):
        del st.session_state[_CHOSEN_COLUMNS]  # chosen of other tables
    picked = st.multiselect("Columns", options, usual, key=_CHOSEN_COLUMNS, bind="query-params")
    return picked or usual


def apply_ticks(off: Collection[int], on: Sequence[int]) -> None:
    """Chooses the runs of the lines with a tick, in their order, and no others of the table."""
    choose(list(dict.fromkeys([*(run for run in chosen() if run not in off), *on])))


def open_runs(ids: Sequence[int]) -> None:
    """Keeps the runs whose name was pressed until `follow`: a callback cannot change the page."""
    st.session_state[_OPENED] = ids


def follow() -> None:
    """Opens the page of the runs whose name was pressed."""
    if ids := st.session_state.pop(_OPENED, None):
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
