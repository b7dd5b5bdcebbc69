"""The reader's choices in the page's address: the runs, and the choices of a page.

Runs are kept from page to page as `?run=1,2`, the first in focus. A choice is declared once with its key,
options and default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, KeysView, Mapping, Sequence
from typing import Any

import streamlit as st

from core.results.samples import by_configuration
from core.store.types import Run, RunState

_KEPT = "chosen_runs"
_PARAMETER = "run"
_NUMBER = re.compile(r"[0-9]+")
_DIGITS = 18
_DONE_OR_TRAINING = (RunState.SUCCEEDED, RunState.RUNNING, RunState.CANCELLING)


def chosen() -> tuple[int, ...]:
    """The ids of the chosen runs: from the address, else from the previous page."""
    text = st.query_params.get_all(_PARAMETER)
    if text:
        st.session_state[_KEPT] = run_numbers(",".join(text))
    runs: tuple[int, ...] = st.session_state.get(_KEPT, ())
    if runs and not text:
        _write(runs)
    return runs


def run_numbers(text: str) -> tuple[int, ...]:
    """The run ids in a link, each once. Ids are cut at 18 digits: longer ones do not fit the database."""
    parts = (part.strip() for part in text.split(","))
    return tuple(dict.fromkeys(int(part[:_DIGITS]) for part in parts if _NUMBER.fullmatch(part)))


def newest_sweep(runs: Sequence[Run], most: int = 40) -> list[int]:
    """Up to `most` runs of the newest sweep that has begun, shown if nothing is chosen.

    They are those done or in training; without one those that ended otherwise, and where nothing has begun
    those that wait. Of a configuration come all runs or none, but of the first all.
    """
    begun = [run for run in runs if run.state is not RunState.QUEUED] or runs
    if not begun:
        return []
    newest = max(begun, key=lambda run: run.id)
    of_sweep = [
        run
        for run in begun
        if run.created_at == newest.created_at or (newest.sweep and run.sweep == newest.sweep)
    ]
    kept = [run for run in of_sweep if run.state in _DONE_OR_TRAINING] or of_sweep
    shown: list[Run] = []
    for same in by_configuration(kept).values():
        if shown and len(shown) + len(same) > most:
            break
        shown += same
    return [run.id for run in shown]


def choose(runs: Sequence[int]) -> None:
    """Make these the chosen runs, here and on the next page."""
    st.session_state[_KEPT] = tuple(runs)
    _write(runs)


def _write(runs: Sequence[int]) -> None:
    set_parameter(_PARAMETER, address_of(runs)[_PARAMETER])


def set_parameter(name: str, text: str) -> None:
    """Put this into the page's address; an empty text takes it out."""
    if text:
        st.query_params[name] = text
    else:
        st.query_params.pop(name, None)


def address_of(runs: Iterable[int]) -> dict[str, str]:
    """The query parameters of a page that shows these runs."""
    return {_PARAMETER: ",".join(map(str, runs))}


def link_to_runs(
    runs: Iterable[int], label: str, icon: str | None = ":material/list_alt:", *, page: str = "runs"
) -> None:
    """A link to a page with these runs chosen."""
    st.page_link(f"{page}/page.py", label=label, icon=icon, query_params=address_of(runs))


def segments(
    label: str,
    options: Mapping[str, str],
    *,
    key: str,
    default: str | None = None,
    on_change: Callable[[], None] | None = None,
    labelled: bool = False,
    help: str | None = None,
) -> str:
    """One of a few options (value → text) in a row, kept in the page's address; by default the first one.

    A value from before that is no longer among them gives way to the default.
    """
    drop_stale(key, options)
    first = next(iter(options)) if default is None else default
    picked: str | None = st.segmented_control(
        label,
        list(options),
        default=first,
        required=True,
        key=key,
        bind="query-params",
        format_func=options.__getitem__,
        label_visibility="visible" if labelled else "collapsed",
        help=help,
        on_change=on_change,
    )
    # Streamlit gives None for an empty value in the address, although one option is required.
    return first if picked is None else picked


def choice(
    label: str,
    options: Sequence[str] | KeysView[str] | Mapping[str, str],
    *,
    key: str,
    default: str | None = None,
    **layout: Any,
) -> str:
    """One of many options in a list, kept in the page's address as `segments` keeps it.

    `options` may map values to their texts, and to nothing else: a mapping to runs or rows gives its keys.
    `layout` has further arguments of the select box.
    """
    values = list(options)
    drop_stale(key, values)
    if isinstance(options, Mapping):
        # An address may hold a value that is not among the options until Streamlit drops it.
        layout["format_func"] = lambda value: options.get(value, str(value))
    index = values.index(default) if default is not None else 0
    picked: str = st.selectbox(label, values, index, key=key, bind="query-params", **layout)
    return picked


def switch(label: str, *, key: str, help: str | None = None) -> bool:
    """A toggle, off by default, kept in the page's address."""
    return st.toggle(label, key=key, help=help, bind="query-params")


def drop_stale(key: str, options: Collection[str]) -> None:
    """Forgets a widget's value that is no longer among its options, which gives way to the default."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
