"""Puts values into the form: of a preset, of past runs, of a link. To be called before its widgets."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.corpora import CATALOGUE
from core.corpora.uploads import uploads
from dashboard.launch.draft import Draft
from dashboard.launch.fields import key_of
from dashboard.launch.start import EXECUTION, START

__all__ = [
    "FOLDER",
    "MAPPING_KEPT",
    "OWN",
    "UPLOAD",
    "UPLOADED",
    "columns_key",
    "fill",
    "fill_from",
    "filled_from",
    "forget_source",
    "fresh",
    "tasks_key",
    "use_own_data",
]

OWN = "Your own data"
UPLOAD, FOLDER = "Upload files", "A folder on this machine"
UPLOADED = "launch_own_path"
"""The key of the widget that holds the folder of the chosen upload."""
MAPPING_KEPT = "launch_mapping_kept"
_SOURCE = "launch_source"


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
