"""A table as text to paste: the very text of `mrnlab results --format`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from jobs.sheets import Sheet, csv_text, latex, markdown

__all__ = ["copy_table"]

_FILES = {"LaTeX": "tex", "Markdown": "md", "CSV": "csv"}


def copy_table(
    sheet: Sheet, columns: Sequence[str], records: Iterable[Mapping[str, object]], *, key: str
) -> None:
    """A button that opens the table as LaTeX, Markdown and CSV, each to copy or to download."""
    with st.popover("Copy", icon=":material/content_copy:", key=f"{key}_copy", on_change="rerun") as opened:
        if not opened.open:
            return
        how = st.segmented_control(
            "Format",
            list(_FILES),
            default="LaTeX",
            required=True,
            key=f"{key}_format",
            label_visibility="collapsed",
        )
        text = csv_text(columns, records) if how == "CSV" else (latex if how == "LaTeX" else markdown)(sheet)
        st.code(text, language=how.lower() if how != "CSV" else None, height=340, width=640)
        st.download_button(
            "Download",
            text,
            file_name=f"mrnlab-{key}.{_FILES[how]}",
            mime="text/csv" if how == "CSV" else "text/plain",
            icon=":material/download:",
            on_click="ignore",
            key=f"{key}_download",
        )
