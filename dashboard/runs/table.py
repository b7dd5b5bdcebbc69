"""The table of runs: a line a configuration (its seeds under it), or a run.

The ticked lines are the chosen runs of the other pages. Streamlit selects lines by position; they are mapped
to run ids at once, and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core.config.sweep import whole_number
from core.evaluation.statistics import MeanSD
from core.wording import ago, duration, percent, plural
from dashboard.runs.views import Line, Page, sorts
from dashboard.shared.selection import choose, chosen, focus
from dashboard.shared.states import state_text
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.run_filter import FIELDS, FilterError, RunFilter, parse_filter

_PAGE = "table_page"
_FILTER = "filter"
_ORDERS = {"configurations": "By configuration", "runs": "Each run"}
EXAMPLES = {
    "paradigm:mrn lambda<0.1": "MRN with a λ below 0.1",
    "state:failed,lost created<2d": "failed or lost in the last two days",
    "corpus:conll* fraction<1": "on a part of a corpus whose name begins so",
    '-encoder:minilm "to check"': "not minilm, with these words",
    "keyword:* archived:no": "whatever has a keyword",
    "archived:yes": "what is archived; other filters leave it out",
}

WANTED_SIDE = "wanted_side"
"""The key of the view of the chosen runs for the next rerun: Streamlit warns if a control has a default and
its value is set too.
"""

_TABLE = "runs_table"
_NUMBER = "runs_table_number"
_BUTTON = "runs_table_button"
_SHOWN = "runs_table_shown"
_OPENED = "open"
_MOST_ROWS = 16


@dataclass(frozen=True)
class Search:
    """What the reader asks for. `wanted` is None if the filter cannot be read."""

    wanted: RunFilter | None
    is_filtered: bool
    grouped: bool
    sort: str


def run_search(tasks: Sequence[str]) -> Search:
    """Draw the filter with its help, the order and the sorting, all in the URL; say what is wrong with a
    filter.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter",
            key=_FILTER,
            bind="query-params",
            type="search",
            placeholder="Words and fields: paradigm:mrn lambda<0.1 state:failed",
            on_change=_to_first_page,
            width=520,
        )
        with st.popover("How to filter", icon=":material/help:", type="tertiary"):
            _help()
        order = st.segmented_control(
            "Lines",
            list(_ORDERS),
            default="configurations",
            required=True,
            key="order",
            bind="query-params",
            format_func=_ORDERS.__getitem__,
            on_change=_to_first_page,
        )
        orders = sorts(tasks)
        sort = st.selectbox(
            "Sort",
            list(orders),
            key="sort",
            bind="query-params",
            format_func=orders.__getitem__,
            on_change=_to_first_page,
            width=190,
        )
    try:
        wanted = parse_filter(text or "")
    except FilterError as error:
        st.markdown(f":orange[:material/error: {escape(error)}]")
        wanted = None
    return Search(wanted, bool(text and text.strip()), order == "configurations", sort)


def ask_for(text: str) -> None:
    """Put this text into the filter; the empty text shows all runs."""
    st.session_state[_FILTER] = text
    _to_first_page()


def page_number() -> int:
    """The page of the table that is asked for: by the URL until its widget has been drawn."""
    number: int = st.session_state.get(_PAGE) or max(1, whole_number(st.query_params.get(_PAGE, "")) or 1)
    return number


def _to_first_page() -> None:
    st.session_state[_PAGE] = 1


def _help() -> None:
    st.markdown(
        "Terms are separated by spaces, and all must hold. `field:a,b` is any of these values, `*` stands "
        "for anything, `< <= > >= !=` compare, a minus before a term turns it round. Words are looked for in "
        "paradigm, λ, tasks, corpus, encoder and keywords; a number is also a run's. Text with spaces or "
        "such signs stands in quotes."
    )
    st.markdown("\n".join(f"- `{example}`: {words}" for example, words in EXAMPLES.items()))
    st.dataframe(
        {"Field": list(FIELDS), "Meaning": [field.description for field in FIELDS.values()]},
        hide_index=True,
        height=260,
        width=640,
        alt="The fields of a filter",
    )


def opened() -> tuple[str, ...]:
    """The configurations whose seeds stand under them: in the URL, as `open`."""
    return tuple(filter(None, st.query_params.get(_OPENED, "").split(",")))


def found_line(page: Page) -> None:
    """How much was found, what it has in common, and the other pages."""
    shared = f" Those shown all have {escape(page.shared)}." if page.shared else ""
    counts = f"{plural(page.configurations, 'configuration')}, {plural(page.runs, 'run')}."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(counts + shared, width="content")
        if page.pages > 1:
            if st.session_state.get(_PAGE, 1) > page.pages:
                st.session_state[_PAGE] = page.pages
            st.pagination(page.pages, key=_PAGE, bind="query-params")


def nothing_found(*, is_filtered: bool) -> None:
    """Why the table is empty, and the way out."""
    if not is_filtered:
        st.info("All runs are archived. The filter `archived:yes` finds them.", icon=":material/archive:")
        return
    with st.container(border=True):
        st.markdown("**No run matches this filter.** Archived runs are only found by `archived:yes`.")
        st.button("Clear the filter", on_click=ask_for, args=("",))


def run_table(page: Page, tasks: Sequence[str], *, grouped: bool) -> None:
    """Draw a page of the table. `tasks` are the columns of test scores."""
    picked = set(chosen())
    ticked = [place for place, line in enumerate(page.lines) if picked.issuperset(line.run_ids)]
    key = _key(ticked)
    st.session_state[_SHOWN] = (key, page.lines, ticked)
    st.dataframe(
        _frame(page.lines, tasks, picked, grouped=grouped),
        key=key,
        hide_index=True,
        height="content" if len(page.lines) <= _MOST_ROWS else 600,
        placeholder="",
        column_config=_columns(page.lines, tasks, grouped=grouped),
        on_select=partial(_selected, key),
        selection_mode="multi-row",
        selection_default={"selection": {"rows": ticked, "columns": [], "cells": []}},
        alt=f"{'Configurations with their seeds' if grouped else 'Runs'}, states and scores",
    )


def _key(ticked: list[int]) -> str:
    """The table's key: a new one if the ticks of the table in the browser are not those to be shown.

    Ticks written into an existing table come back from the browser as if the reader had set them, often
    too late.
    """
    number = st.session_state.get(_NUMBER, 0)
    state = st.session_state.get(f"{_TABLE}_{number}")
    if state is not None and sorted(state["selection"]["rows"]) != ticked:
        number += 1
    st.session_state[_NUMBER] = number
    return f"{_TABLE}_{number}"


def _selected(key: str) -> None:
    """Apply what was ticked or unticked since the table was drawn; a configuration stands for its runs."""
    shown, lines, before = st.session_state[_SHOWN]
    if key != shown:
        return  # from a table that has been replaced
    now = st.session_state[key]["selection"]["rows"]
    dropped = {run for place in before if place not in now for run in lines[place].run_ids}
    added = [run for place in now if place not in before for run in reversed(lines[place].run_ids)]
    choose(list(dict.fromkeys([*(run for run in chosen() if run not in dropped), *added])))


def _pressed() -> None:
    """Open or close a configuration, or put a run in focus."""
    _, lines, _ = st.session_state[_SHOWN]
    line = lines[st.session_state[_BUTTON]["row"]]
    if line.run is not None:
        focus(line.run)
        st.session_state[WANTED_SIDE] = "One run"
        return
    if is_open := {line.configuration} ^ set(opened()):
        st.query_params[_OPENED] = ",".join(sorted(is_open))
    else:
        del st.query_params[_OPENED]


def _states(line: Line) -> list[str]:
    return [state_text(state, count if line.run is None else 0) for state, count in line.states]


def _frame(lines: Sequence[Line], tasks: Sequence[str], picked: set[int], *, grouped: bool) -> pd.DataFrame:
    is_open = set(opened())
    score = _mean_text if grouped else _points
    frame = pd.DataFrame(
        {
            "": _mark(line, is_open),
            "Run": line.run,
            "Configuration": f"\u2003└ {line.name}" if grouped and line.run is not None else line.name,
            "Seed": _seeds(line, picked),
            "State": _states(line),
            "Priority": f"{line.priority:+d}".replace("-", "−") if line.priority else "",
            "Dev": score(line.dev, line),
            **{f"test {task}": score(line.test.get(task), line) for task in tasks},
            "Done": 100 * line.done,
            "Time": duration(line.seconds),
            "Queued": ago(line.newest),
            "Keywords": list(line.keywords),
        }
        for line in lines
    )
    unused = {"Run": all(line.run is None for line in lines), "Priority": not any(frame["Priority"])}
    return frame.drop(columns=[name for name, is_unused in unused.items() if is_unused])


def _mark(line: Line, is_open: set[str]) -> str:
    if line.run is not None:
        return ":material/visibility:"
    return ":material/expand_more:" if line.configuration in is_open else ":material/chevron_right:"


def _seeds(line: Line, picked: set[int]) -> str:
    """A run's seed; of a configuration the number of seeds, and of runs where that differs."""
    if line.run is not None:
        return str(line.seed)
    runs, chosen_runs = len(line.run_ids), len(picked.intersection(line.run_ids))
    if 0 < chosen_runs < runs:
        return f"{chosen_runs} of {plural(runs, 'run')}"
    return plural(line.seeds, "seed") + (f" ({plural(runs, 'run')})" if line.seeds < runs else "")


def _mean_text(score: MeanSD | None, line: Line) -> str:
    """Mean ± SD in percent; the number of seeds if not all have a score."""
    if score is None:
        return ""
    spread = "" if score.sd is None else f" ± {percent(score.sd)}"
    return f"{percent(score.mean)}{spread}{'' if score.n == line.seeds else f' ({score.n})'}"


def _points(score: MeanSD | None, line: Line) -> float | None:
    return None if score is None else 100 * score.mean


def _columns(lines: Sequence[Line], tasks: Sequence[str], *, grouped: bool) -> dict[str, Any]:
    config = st.column_config
    looks = {
        text: STATES[state].colour
        for line in lines
        for (state, _), text in zip(line.states, _states(line), strict=True)
    }
    keywords = sorted({word for line in lines for word in line.keywords})
    means = "percent"
    if grouped:
        means += ", mean ± SD over seeds; in brackets the number of seeds where not all have one"

    def score(label: str, what: str) -> Any:
        if grouped:
            return config.TextColumn(label, help=what, alignment="right", width=106)
        return config.NumberColumn(label, help=what, format="%.2f", width=76)

    return {
        "": config.ButtonColumn(
            "",
            type="tertiary",
            width=44,
            pinned=True,
            key=_BUTTON,
            on_click=_pressed,
            help="Open or close a configuration's seeds; show a run in full",
        ),
        "Run": config.NumberColumn(width=60, pinned=True),
        "Configuration": config.TextColumn(width=300),
        "Seed": config.TextColumn(
            width=80,
            alignment="right",
            help="A run's seed; of a configuration how many, and how many runs where seeds were run again "
            "or only some runs are chosen",
        ),
        "State": config.MultiselectColumn(
            options=list(looks), color=list(looks.values()), width=180 if grouped else 110
        ),
        "Priority": config.TextColumn(
            width=72, alignment="right", help="Of what waits: higher priorities start first"
        ),
        "Done": config.ProgressColumn(min_value=0, max_value=100, format="%.0f%%", width=84, color="blue"),
        "Dev": score("Dev", f"Mean over tasks of the dev scores, {means}"),
        **{f"test {task}": score(f"{task}, test", f"Score on the test sentences, {means}") for task in tasks},
        "Time": config.TextColumn(width=76, help="Wall-clock time of training; of seeds the mean"),
        "Queued": config.TextColumn(width=96),
        "Keywords": config.MultiselectColumn(options=keywords, color="gray", width=130),
    }
