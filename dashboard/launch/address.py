"""What fills in the form (a preset, past runs, a link), and the form as a link and as a command.

The link is written by hand instead of by `bind="query-params"`: bound widgets would leave a dozen parameters
on all other pages, and a key per corpus has no place in a link (docs/adr/0013-launch-link.md).
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
from core.corpora import CATALOGUE
from core.corpora.uploads import uploads
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
from dashboard.shared.selection import run_numbers

OWN = "Your own data"
UPLOAD, FOLDER = "Upload files", "A folder on this machine"
UPLOADED = "launch_own_path"
"""The key of the widget that holds the folder of the chosen upload."""
MAPPING_KEPT = "launch_mapping_kept"
_SOURCE = "launch_source"

CLONE = "clone"
_SEEN = "launch_link"
_MOST_SENTENCES = 10


@dataclass(frozen=True)
class _Seen:
    """A link and the form that it stood for; the form is None until it has been drawn."""

    link: dict[str, str]
    form: dict[str, str] | None


def key_of(field: str) -> str:
    """The key of a field's widget."""
    return f"launch_{field}"


def tasks_key(corpus: str) -> str:
    """The key of the tasks' widget. One per corpus: the tasks of another one are another question."""
    return f"launch_tasks_{corpus}"


def columns_key(path: str) -> str:
    """The key of the widget for the names of a corpus's columns."""
    return f"launch_columns_{path}"


def fill(draft: Draft) -> None:
    """The whole form as `draft` has it; what it leaves out is as in a fresh form."""
    state = st.session_state
    for name, start in {**START, **draft.lists, "learn": draft.learn}.items():
        state[key_of(name)] = start if isinstance(start, str) else list(start)
    for name in EXECUTION:
        state[key_of(name)] = getattr(draft, name)
    _fill_alignment(state)
    if draft.corpus in CATALOGUE:
        state[key_of("corpus")] = draft.corpus
    else:
        state[key_of("corpus")] = OWN
        uploaded = draft.corpus in [str(upload.path) for upload in uploads()]
        state["launch_own_how"] = UPLOAD if uploaded else FOLDER
        state[UPLOADED if uploaded else "launch_own_folder"] = draft.corpus
        state[columns_key(draft.corpus)] = ", ".join(draft.columns or ())
    if draft.tasks:
        state[tasks_key(draft.corpus)] = list(draft.tasks)
    else:
        state.pop(tasks_key(draft.corpus), None)
    forget_source()


def _fill_alignment(state: Any) -> None:
    """A mapping is the option of that name, and its file apart."""
    names = []
    for alignment in state[key_of("alignment")]:
        name, _, file = alignment.partition(":")
        if file:
            state[MAPPING_KEPT] = file
        names.append(name)
    state[key_of("alignment")] = names


def fresh() -> None:
    """The form as on the first visit."""
    fill(Draft(corpus="demo"))


def use_own_data() -> None:
    """The form with the data question open for an upload, the rest as it is."""
    st.session_state[key_of("corpus")] = OWN
    st.session_state["launch_own_how"] = UPLOAD
    forget_source()


def fill_from(draft: Draft, runs: tuple[int, ...], sentences: tuple[str, ...]) -> None:
    """The form as `draft` has it, which came from these runs (none: from a link), with what could not be
    taken over.
    """
    fill(draft)
    st.session_state[_SOURCE] = (runs, sentences)


def filled_from() -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The runs that the form was last filled in from, and what could not be taken over of them."""
    found: tuple[tuple[int, ...], tuple[str, ...]] = st.session_state.get(_SOURCE, ((), ()))
    return found


def forget_source() -> None:
    """The form is no longer that of any run."""
    st.session_state.pop(_SOURCE, None)


def open_link(store: Store) -> None:
    """Fill the form in from the page's address, once per link. To be called before the widgets."""
    link = _link()
    seen: _Seen | None = st.session_state.get(_SEEN)
    if seen is not None and (not link or link == seen.link):
        return
    st.session_state[_SEEN] = _Seen(link, None)
    if CLONE in link:
        clone(store, link[CLONE], {name: link[name] for name in link if name != CLONE})
    elif link:
        draft, sentences = draft_of(link)
        fill_from(draft, (), sentences)


def clone(store: Store, numbers: str, changes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Fill the form in from the runs with these ids, `12,13`, and the fields of a link in `changes`."""
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
    """Put the form into the page's address if it has changed. To be called after the widgets."""
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


# The defaults of `mrnlab launch`.
_COMMAND_START = {**START, "encoder_training": ("full",), "seed": "1"}


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
        if values != values_of(name, _COMMAND_START[name]):
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
