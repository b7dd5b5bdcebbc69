"""What the reader does to the curves themselves, in the URL: lines hidden (`hide`) and marked (`mark`), the
part of x looked at (`x`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

__all__ = ["drop_window", "hidden", "marked", "set_lines", "set_window", "window"]


def hidden() -> tuple[str, ...]:
    """The keys of the lines that are not drawn."""
    return tuple(key for key in st.query_params.get("hide", "").split(",") if key)


def marked() -> str | None:
    """The key of the line that stands out."""
    return st.query_params.get("mark") or None


def set_lines(hide: Sequence[str], mark: str | None) -> None:
    """Hide these lines and mark that one."""
    _write("hide", ",".join(hide))
    _write("mark", mark or "")


def window() -> tuple[float, float] | None:
    """The part of x that is looked at; None for all of it, or where the URL names none."""
    parts = st.query_params.get("x", "").split("_")
    try:
        ends = [float(part) for part in parts]
    except ValueError:
        return None
    if len(ends) != 2 or not all(map(math.isfinite, ends)) or ends[0] >= ends[1]:
        return None
    return ends[0], ends[1]


def set_window(ends: tuple[float, float] | None) -> None:
    """Look at this part of x."""
    _write("x", "_".join(f"{end:.6g}" for end in ends) if ends else "")


def drop_window() -> None:
    """Look at all of x: another axis has other numbers."""
    set_window(None)


def _write(name: str, text: str) -> None:
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]
