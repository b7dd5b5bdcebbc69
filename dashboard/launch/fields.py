"""Widgets for the fields of a run, made from their own descriptions: a new field of RunConfig needs nothing
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from core.config import FIELD_HELP, RunConfig
from core.corpora import CATALOGUE
from core.corpora.uploads import uploads
from dashboard.launch.draft import EXECUTION, OPTIONS, START, Draft
from dashboard.text import escape

_WORDS = {
    "lr_encoder": "Learning rate, encoder",
    "lr_heads": "Learning rate, heads",
    "lr_bilstm": "Learning rate, BiLSTM",
    "bilstm_hidden": "BiLSTM size",
    "pos_score": "Score of plain labels",
    "select_by": "Best epoch by",
    "learn": "Covariances to learn",
    "head_init": "Heads start from",
    "update_every": "Update covariances every",
    "max_length": "Longest piece",
    "batch_tokens": "Batch budget",
    "truecase": "Restore case",
    "fraction_draw": "Draw the share",
    "dev_sentences": "Held-out dev set",
    "label_inventory": "Labels of the heads",
    "update_timing": "When to update",
    "batching": "Sentences of a batch",
    "corpus_order": "Several corpora",
    "dropout_on": "Dropout sets to zero",
}
_UNSET = {"batch_tokens": "none", "dev_sentences": "a tenth"}
_NO_UNIT = ("choice", "name", "number", "yes or no", "factor", "device", "task, label, feature")


def key_of(field: str) -> str:
    """The key of a field's widget."""
    return f"launch_{field}"


def start_fields() -> None:
    """Gives every field without a value its start value. To be called before the widgets, on each run."""
    for field, start in START.items():
        st.session_state.setdefault(key_of(field), start if isinstance(start, str) else list(start))


def field_label(field: str) -> str:
    """A field's name in words, with its unit where it has one."""
    words = _WORDS.get(field, field.replace("_", " ").capitalize())
    unit = FIELD_HELP[field].unit
    return words if unit in _NO_UNIT else f"{words} ({unit})"


def field_widget(field: str) -> str | tuple[str, ...]:
    """The widget of one field; what is picked, or the text that is typed. Empty: the default."""
    return picks(field) if field in OPTIONS else typed(field)


def picks(
    field: str, label: str | None = None, *, names: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """The values picked among a field's options, in the order of these, whatever was clicked first.

    `names` says how options are written where not as they are.
    """
    picked = st.pills(
        label or field_label(field),
        OPTIONS[field],
        selection_mode="multi",
        format_func=lambda option: names.get(option, option),
        help=escape(FIELD_HELP[field].sentence),
        key=key_of(field),
        persist_state="session",
    )
    return tuple(option for option in OPTIONS[field] if option in picked)


def typed(field: str, label: str | None = None, *, placeholder: str = "automatic", words: str = "") -> str:
    """A number, a name, or a list of them as one types it.

    Text, since Streamlit's number field has one fixed format for 2e-4 and 256, and takes no list.
    """
    default = RunConfig.model_fields["lambda_" if field == "lambda" else field].default
    return st.text_input(
        label or field_label(field),
        placeholder=_UNSET.get(field, placeholder) if default is None else str(START[field]),
        help=f"{words} {escape(FIELD_HELP[field].sentence)}".strip(),
        key=key_of(field),
        persist_state="session",
    ).strip()


# Puts values into the form: of a preset, of past runs, of a link. To be called before its widgets.


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
