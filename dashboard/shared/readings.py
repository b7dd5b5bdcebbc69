"""The reading report of a corpus, on Launch before a run and on a run's page."""

from __future__ import annotations

import streamlit as st

from core.corpora.reading import Reading, column_notes, reading_rows
from dashboard.shared.downloads import data_table
from dashboard.text import escape


def show_reading(reading: Reading) -> set[str]:
    """A table of what each column was taken for, and what looks wrong. Returns the notes that it holds."""
    files = ", ".join(f"{split} {name}" for split, name in reading.files.items())
    st.caption(escape(": ".join(filter(None, (reading.corpus, reading.layout, files)))))
    rows = reading_rows(reading)
    if not any(row["Notes"] for row in rows):
        rows = [{name: text for name, text in row.items() if name != "Notes"} for row in rows]
    data_table(rows, alt=f"What each column of {reading.corpus} was taken for")
    for column in reading.columns:
        for doubt in column.doubts:
            st.caption(f":material/warning: {escape(f'{column.name}: {doubt}')}")
    return {note for column in reading.columns for note in column_notes(column)}
