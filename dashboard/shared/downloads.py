"""Tables as files, and as text to paste."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from core.plain_text import spreadsheet_cell
from jobs.sheets import Sheet, csv_text, latex, markdown


def csv_file(frame: pd.DataFrame) -> str:
    """The table as comma-separated values that a spreadsheet opens without taking a cell for a formula."""
    words = frame.select_dtypes(exclude=["number", "bool", "datetime"])
    guarded = frame.assign(**{name: words[name].map(spreadsheet_cell) for name in words.columns})
    return guarded.rename(columns=spreadsheet_cell).to_csv(index=False)


_FILES = {"LaTeX": "tex", "Markdown": "md", "CSV": "csv"}


def copy_table(
    sheet: Sheet, columns: Sequence[str], records: Iterable[Mapping[str, object]], *, key: str
) -> None:
    """A button that opens the table as `mrnlab results --format` prints it: LaTeX, Markdown, CSV."""
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
