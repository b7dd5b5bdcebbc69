"""Widgets for the fields of a run, made from their own descriptions: a new field of RunConfig needs nothing
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from core.config import FIELD_HELP, RunConfig
from dashboard.launch.start import OPTIONS, START
from dashboard.text import escape

__all__ = ["field_label", "field_widget", "key_of", "picks", "start_fields", "typed"]

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
