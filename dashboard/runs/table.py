"""The table of runs: a line for each configuration, its seeds under it where it is open; or a line a run.

The ticked lines are the chosen runs of the other pages. Lines are positions to Streamlit, so they are mapped
to run numbers at once, and back.
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
from core.store.records import RunState
from core.wording import ago, duration, percent, plural
from dashboard.runs.views import Line, Page, sorts
from dashboard.shared.selection import choose, chosen, focus
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.run_filter import FIELDS, FilterError, RunFilter, parse_filter

# Which runs the table shows, and in what order: all of it in the URL.


PAGE_KEY = "table_page"
_SEARCH_KEY = "filter"
_ORDERS = {"configurations": "By configuration", "runs": "Each run"}
_EXAMPLES = {
    "paradigm:mrn lambda<0.1": "MRN with a λ below 0.1",
    "state:failed,lost created<2d": "failed or lost in the last two days",
    "corpus:conll* fraction<1": "on a part of a corpus whose name begins so",
    '-encoder:minilm "to check"': "not minilm, with these words in a note",
    "tag:* archived:no": "whatever has a tag",
    "archived:yes": "what is archived; other filters leave it out",
}


@dataclass(frozen=True)
class Search:
    """What the reader asks for. `wanted` is None where the filter cannot be read."""

    wanted: RunFilter | None
    is_filtered: bool
    grouped: bool
    sort: str


def run_search(tasks: Sequence[str]) -> Search:
    """Draws the filter with its help, the order and the sorting; says what is wrong with a filter."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Filter",
            key=_SEARCH_KEY,
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
    """Puts this into the filter; the empty text shows all runs again."""
    st.session_state[_SEARCH_KEY] = text
    _to_first_page()


def page_number() -> int:
    """The page of the table that is asked for: by a link until the widget below the filter is there."""
    text = st.query_params.get(PAGE_KEY, "")
    number: int = st.session_state.get(PAGE_KEY) or max(1, whole_number(text) or 1)
    return number


def _to_first_page() -> None:
    st.session_state[PAGE_KEY] = 1


def _help() -> None:
    st.markdown(
        "Terms are separated by spaces, and all must hold. `field:a,b` is any of these values, `*` stands "
        "for anything, `< <= > >= !=` compare, a minus before a term turns it round. Words are looked for in "
        "paradigm, λ, tasks, corpus, encoder, tags and note; a number is also a run's. Text with spaces or "
        "such signs stands in quotes."
    )
    for number, (example, words) in enumerate(_EXAMPLES.items()):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                "Use",
                key=f"example_{number}",
                type="tertiary",
                icon=":material/north_west:",
                on_click=ask_for,
                args=(example,),
            )
            st.markdown(f"`{example}`", width="content")
            st.caption(words, width="content")
    st.dataframe(
        {
            "Field": list(FIELDS),
            "Meaning": [field.description for field in FIELDS.values()],
        },
        hide_index=True,
        height=260,
        width=640,
        alt="The fields of a filter",
    )


WANTED_SIDE = "wanted_side"
"""The key of what the next run of the page shows of the chosen runs: Streamlit warns of a control that has a
default and whose value is set.
"""

_KEY = "runs_table"
_NUMBER = "runs_table_number"
_BUTTON = "runs_table_button"
_SHOWN = "runs_table_shown"
_OPENED = "open"
_CLOSED_MARK, _OPEN_MARK = ":material/chevron_right:", ":material/expand_more:"
_LOOK_MARK = ":material/visibility:"
_MOST_ROWS = 16


def opened() -> tuple[str, ...]:
    """The configurations whose seeds stand under them: in the URL, as `open`."""
    return tuple(filter(None, st.query_params.get(_OPENED, "").split(",")))


def run_table(page: Page, tasks: Sequence[str], *, grouped: bool) -> None:
    """Draws a page of the table. `tasks` are the columns of test scores."""
    picked = set(chosen())
    ticked = [place for place, line in enumerate(page.lines) if picked.issuperset(line.run_ids)]
    key = _key(ticked)
    st.session_state[_SHOWN] = (key, page.lines, ticked)
    ticks: Any = {"selection": {"rows": ticked, "columns": [], "cells": []}}
    st.dataframe(
        _grouped_frame(page.lines, tasks, picked) if grouped else _flat_frame(page.lines, tasks),
        key=key,
        hide_index=True,
        height="content" if len(page.lines) <= _MOST_ROWS else 600,
        placeholder="",
        column_config=_columns(page.lines, tasks, grouped=grouped),
        on_select=partial(_selected, key),
        selection_mode="multi-row",
        selection_default=ticks,
        alt="Configurations with their seeds, states and scores"
        if grouped
        else "Runs with their state, configuration, progress and scores",
    )


def found_line(page: Page, *, grouped: bool) -> None:
    """How much was found, what it has in common, a button for the seeds, and the other pages."""
    shared = f" Those shown all have {escape(page.shared)}." if page.shared else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{plural(page.configurations, 'configuration')}, {plural(page.runs, 'run')}.{shared}",
            width="content",
        )
        if grouped:
            _seeds_button(page.lines)
        if page.pages > 1:
            if st.session_state.get(PAGE_KEY, 1) > page.pages:
                st.session_state[PAGE_KEY] = page.pages
            st.pagination(page.pages, key=PAGE_KEY, bind="query-params")


def _seeds_button(lines: Sequence[Line]) -> None:
    """Opens or closes the ticked configurations, or all, with one press of a key."""
    picked, is_open = set(chosen()), set(opened())
    groups = [line for line in lines if line.run is None]
    ticked = [line.configuration for line in groups if picked.issuperset(line.run_ids)]
    which = ticked or [line.configuration for line in groups]
    closing = is_open.issuperset(which)
    after = is_open.difference(which) if closing else is_open.union(which)
    st.button(
        f"{'Hide' if closing else 'Show'} the seeds of {'the chosen' if ticked else 'all'}",
        icon=":material/unfold_less:" if closing else ":material/unfold_more:",
        type="tertiary",
        on_click=_open,
        args=(sorted(after),),
    )


def _open(configurations: Sequence[str]) -> None:
    if configurations:
        st.query_params[_OPENED] = ",".join(configurations)
    else:
        st.query_params.pop(_OPENED, None)


def nothing_found(*, is_filtered: bool) -> None:
    """Why the table is empty, and the way out."""
    if is_filtered:
        with st.container(border=True):
            st.markdown("**No run matches this filter.** Archived runs are only found by `archived:yes`.")
            st.button("Clear the filter", on_click=ask_for, args=("",))
    else:
        st.info("All runs are archived. The filter `archived:yes` finds them.", icon=":material/archive:")


def _key(ticked: list[int]) -> str:
    """The table's key: another one, so a new table, where other lines are to be ticked than the reader did.

    Ticks written into a table that is there come back from the browser as if the reader had set them, often
    too late.
    """
    number = st.session_state.get(_NUMBER, 0)
    state = st.session_state.get(f"{_KEY}_{number}")
    if state is not None and sorted(state["selection"]["rows"]) != ticked:
        number += 1
    st.session_state[_NUMBER] = number
    return f"{_KEY}_{number}"


def _selected(key: str) -> None:
    """What was ticked or unticked since the table was drawn; a configuration stands for all its runs."""
    shown, lines, before = st.session_state[_SHOWN]
    if key != shown:
        return  # a table that is gone says once more how it was
    now = st.session_state[key]["selection"]["rows"]
    dropped = {run for place in before if place not in now for run in lines[place].run_ids}
    added = [run for place in now if place not in before for run in reversed(lines[place].run_ids)]
    choose(list(dict.fromkeys([*(run for run in chosen() if run not in dropped), *added])))


def _pressed() -> None:
    """Opens or closes a configuration, or puts a run in focus."""
    _, lines, _ = st.session_state[_SHOWN]
    line = lines[st.session_state[_BUTTON]["row"]]
    if line.run is not None:
        focus(line.run)
        st.session_state[WANTED_SIDE] = "One run"
        return
    known = opened()
    left = [one for one in known if one != line.configuration]
    _open(left if len(left) < len(known) else [*known, line.configuration])


def state_text(state: RunState, count: int = 0) -> str:
    """A state for a table cell: mark and word, and how many runs are in it."""
    look = STATES[state]
    return f"{look.mark} {count} {look.word.lower()}" if count else f"{look.mark} {look.word}"


def _states(line: Line) -> list[str]:
    return [state_text(state, count if line.run is None else 0) for state, count in line.states]


def _with_priorities(frame: pd.DataFrame, lines: Sequence[Line]) -> pd.DataFrame:
    """Priorities beside the states, where some run that waits has one: with their sign, 0 left empty."""
    if any(line.priority for line in lines):
        told = [f"{line.priority:+d}".replace("-", "−") if line.priority else "" for line in lines]
        frame.insert(list(frame.columns).index("State") + 1, "Priority", told)
    return frame


def _grouped_frame(lines: Sequence[Line], tasks: Sequence[str], picked: set[int]) -> pd.DataFrame:
    is_open = set(opened())
    records = []
    for line in lines:
        group = line.run is None
        partly = 0 if not group else len(picked.intersection(line.run_ids))
        runs = len(line.run_ids)
        count = f"{line.seeds}" if line.seeds == runs else f"{line.seeds} ({plural(runs, 'run')})"
        if group and 0 < partly < runs:
            count = f"{partly} of {plural(runs, 'run')}" if line.seeds < runs else f"{partly} of {runs}"
        mark = _OPEN_MARK if line.configuration in is_open else _CLOSED_MARK
        records.append(
            {
                "": mark if group else _LOOK_MARK,
                "Configuration": line.name if group else f"\u2003└ seed {line.seed}, run {line.run}",
                "Seeds": count if group else "",
                "State": _states(line),
                "Dev": _told(line.dev, line),
                **{f"test {task}": _told(line.test.get(task), line) for task in tasks},
                "Done": 100 * line.done,
                "Time": duration(line.seconds),
                "Queued": ago(line.newest),
                "Tags": list(line.tags),
                "Note": line.note,
            }
        )
    return _with_priorities(pd.DataFrame(records), lines)


def _told(score: MeanSD | None, line: Line) -> str:
    """Mean ± SD in percent; the number of seeds where not all have a score."""
    if score is None:
        return ""
    spread = "" if score.sd is None else f" ± {percent(score.sd)}"
    return f"{percent(score.mean)}{spread}{'' if score.n == line.seeds else f' ({score.n})'}"


def _flat_frame(lines: Sequence[Line], tasks: Sequence[str]) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "": _LOOK_MARK,
            "Run": line.run,
            "Configuration": line.name,
            "Seed": line.seed,
            "State": _states(line),
            "Dev": _points(line.dev),
            **{f"test {task}": _points(line.test.get(task)) for task in tasks},
            "Done": 100 * line.done,
            "Time": duration(line.seconds),
            "Queued": ago(line.newest),
            "Tags": list(line.tags),
            "Note": line.note,
        }
        for line in lines
    )
    return _with_priorities(frame, lines)


def _points(score: MeanSD | None) -> float | None:
    return None if score is None else 100 * score.mean


def _columns(lines: Sequence[Line], tasks: Sequence[str], *, grouped: bool) -> dict[str, Any]:
    config = st.column_config
    looks = {text: STATES[state].colour for line in lines for state, text in _paired(line)}
    tags = sorted({tag for line in lines for tag in line.tags})
    seeds = "; in brackets the number of seeds where not all have one" if grouped else ""
    means = f"percent, mean ± SD over seeds{seeds}" if grouped else "percent"

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
        "Seeds": config.TextColumn(
            width=60,
            alignment="right",
            help="How many seeds; where some were run again, how many runs. "
            "Where only some runs are chosen, how many of them",
        ),
        "Seed": config.NumberColumn(width=52),
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
        "Tags": config.MultiselectColumn(options=tags, color="gray", width=130),
        "Note": config.TextColumn(width=180),
    }


def _paired(line: Line) -> list[tuple[RunState, str]]:
    return [(state, text) for (state, _), text in zip(line.states, _states(line), strict=True)]
