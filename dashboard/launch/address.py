"""The form in the address of the page, both ways: a link fills it in, and an edit is in the link.

Written by hand instead of `bind="query-params"`: bound widgets would leave a dozen parameters on all other
pages, and a key per corpus has no place in a link (docs/adr/0013-launch-link.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import streamlit as st

from core.config import RunConfig
from core.config.sweep import seeds_typed
from core.plain_text import shortened
from core.store import Store
from dashboard.launch.draft import (
    EXECUTION,
    FIELDS,
    NEEDED,
    START,
    Draft,
    cloned,
    draft_of,
    lists_of,
    option_of,
    query_of,
    values_of,
)
from dashboard.launch.fields import fill_from
from dashboard.shared.selection import run_numbers

CLONE = "clone"
_SEEN = "launch_link"
_MOST_SENTENCES = 10


@dataclass(frozen=True)
class _Seen:
    """A link and the form that it stood for; the form is None until it has been drawn."""

    link: dict[str, str]
    form: dict[str, str] | None


def open_link(store: Store) -> None:
    """Fills the form in as the page's address says, where that has not been done. Before the widgets.

    On later runs, after an edit say, the form stands as it is.
    """
    link = _link()
    seen: _Seen | None = st.session_state.get(_SEEN)
    if seen is not None and (not link or link == seen.link):
        return
    st.session_state[_SEEN] = _Seen(link, None)
    if CLONE in link:
        clone(store, link[CLONE], {name: link[name] for name in link if name != CLONE})
    elif link:
        fill_from(*_of_link(link))


def _of_link(link: dict[str, str]) -> tuple[Draft, tuple[int, ...], tuple[str, ...]]:
    draft, sentences = draft_of(link)
    return draft, (), sentences


def clone(store: Store, numbers: str, changes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Fills the form in from the runs of these numbers, `12,13`. What cannot be had is said above it.

    `changes` are fields of a link that the form shall have otherwise.
    """
    ids = run_numbers(numbers)
    odd = [part for part in map(str.strip, numbers.split(",")) if part and not run_numbers(part)]
    known = {run.id: run for run in store.runs(ids=ids, with_facts=False)}
    runs = [known[run_id] for run_id in ids if run_id in known]
    readable = [run for run in runs if run.config_problem is None]
    missing = [str(run_id) for run_id in ids if run_id not in known]
    sentences = [f"There is no run {shortened(part)}." for part in (*missing, *odd)[:_MOST_SENTENCES]]
    sentences += [
        f"The description of run {run.id} can no longer be read." for run in runs if run.config_problem
    ]
    draft = Draft(corpus="demo")
    if readable:
        draft, said = cloned([run.config for run in readable])
        sentences += said
    if changes:
        changed, said = draft_of(changes)
        sentences += said
        lists = {name: given for name, given in changed.lists.items() if name in changes}
        draft = replace(draft, lists={**draft.lists, **lists})
    fill_from(draft, tuple(run.id for run in readable), tuple(sentences))


def write_link(draft: Draft) -> None:
    """Puts the form into the page's address, unless that says the same already. After the widgets."""
    form = query_of(draft)
    link = _link()
    seen: _Seen = st.session_state[_SEEN]
    if link == seen.link and seen.form in (None, form):
        st.session_state[_SEEN] = _Seen(link, form)
        return
    others = {name: st.query_params.get_all(name) for name in st.query_params if name not in link}
    st.query_params.from_dict({**others, **form})
    st.session_state[_SEEN] = _Seen(form, form)


def _link() -> dict[str, str]:
    return {name: st.query_params[name] for name in (*FIELDS, CLONE) if name in st.query_params}


# The form as a command: `mrnlab launch` with the options that make the same runs.


# What `mrnlab launch` takes when nothing is said: but for the data, the same as the defaults of a run.
_UNSAID = {**START, "encoder_training": ("full",), "seed": "1"}


def command(draft: Draft, runs: Sequence[RunConfig], placed: Sequence[RunConfig], *, reuse: bool) -> str:
    """The command that makes the runs of this form, one option a line.

    `runs` are those of the form, `placed` the same as they are queued: by their paths the command means the
    same in any folder.
    """
    whole = {
        (name, getattr(one, name)): getattr(other, name)
        for one, other in zip(runs, placed, strict=True)
        for name in ("corpus", "encoder", "alignment")
    }
    told = [("--corpus", whole["corpus", draft.corpus])]
    if draft.columns is not None:
        told.append(("--columns", ",".join(draft.columns)))
    told.append(("--tasks", ",".join(draft.tasks)))
    for name, values in lists_of(draft).items():
        if values != values_of(name, _UNSAID[name]):
            told.append(_option(name, [whole.get((name, value), value) for value in values]))
    if draft.learn:
        told.append(("--set", f"learn={','.join(draft.learn)}"))
    told += [(f"--{name}", str(number)) for name in EXECUTION if (number := getattr(draft, name))]
    options = [f"{option} {shlex.quote(value)}" for option, value in told]
    return " \\\n  ".join(["mrnlab launch", *options, *(["--reuse"] if reuse else [])])


def _option(name: str, values: Sequence[Any]) -> tuple[str, str]:
    if name == "seed" and values != [0]:
        return "--seeds", seeds_typed(values).replace(", ", ",")
    text = ",".join(map(option_of, values))
    if (name in NEEDED and name != "seed") or name == "lambda":
        return f"--{name.replace('_', '-')}", text
    return "--set", f"{name}={text}"
