"""Widgets for the fields of a run, made from their own descriptions: a new field of RunConfig needs nothing
here.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.config import FIELD_HELP, LEARNABLE, RunConfig
from dashboard.text import escape, number

__all__ = ["RARE", "field_label", "field_widget", "key_of"]

# What the form asks in its own place, in the order a researcher thinks; all other fields are rare.
_ASKED = {
    "corpus",
    "columns",
    "tasks",
    "fraction",
    "encoder",
    "encoder_training",
    "paradigm",
    "prior",
    "alignment",
    "lambda",
    "seed",
    "epochs",
}
RARE: tuple[str, ...] = tuple(name for name in FIELD_HELP if name not in _ASKED)

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
    "truecase": "Restore case",
}


def key_of(field: str) -> str:
    """The key of a field's widget."""
    return f"launch_{field}"


def field_label(field: str) -> str:
    """A field's name in words, with its unit where it has one."""
    help_ = FIELD_HELP[field]
    words = _WORDS.get(field, field.replace("_", " ").capitalize())
    unit = (
        help_.unit if help_.unit not in ("choice", "name", "number", "yes or no", "factor", "device") else ""
    )
    return f"{words} ({unit})" if unit and field != "learn" else words


def field_widget(field: str) -> Any:
    """The widget of one field; None means that the field takes its default."""
    help_, default = FIELD_HELP[field], RunConfig.model_fields[field].default
    label, key, words = field_label(field), key_of(field), escape(help_.sentence)
    if field == "learn":
        # None chosen is no choice: the run takes its default.
        return (
            st.pills(label, LEARNABLE, selection_mode="multi", help=words, key=key, persist_state="session")
            or None
        )
    if isinstance(default, bool):
        return st.toggle(label, value=default, help=words, key=key, persist_state="session")
    if "|" in help_.range:
        options = [option.strip() for option in help_.range.split("|")]
        return st.selectbox(
            label, options, index=options.index(str(default)), help=words, key=key, persist_state="session"
        )
    if isinstance(default, str):
        return st.text_input(label, value=default, help=words, key=key, persist_state="session")
    return _number(label, default, words, whole=_is_whole(field), key=key)


def _is_whole(field: str) -> bool:
    return "int" in str(RunConfig.model_fields[field].annotation)


def _number(label: str, default: Any, words: str, *, whole: bool, key: str) -> int | float | str | None:
    """A number or nothing (the default). Text, since Streamlit's number field has one fixed format for 2e-4
    and 256.
    """
    text = st.text_input(
        label,
        value="" if default is None else number(default),
        placeholder="automatic",
        help=words,
        key=key,
        persist_state="session",
    ).strip()
    if not text:
        return None
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return text  # RunConfig says what is wrong with it, beside this field
