"""The reading report of a corpus, on Launch before a run and on a run's page."""

from __future__ import annotations

import streamlit as st

from core.corpora.reading import Reading, column_notes, reading_rows
from dashboard.shared.downloads import data_table
from dashboard.shared.states import show_note
from dashboard.text import escape


def show_reading(reading: Reading) -> set[str]:
    """Draws the interpretation of each column, and the notes on it. Returns these notes."""
    st.caption(escape(reading.title))
    data_table(reading_rows(reading), alt=f"What each column of {reading.corpus} was taken for")
    for column in reading.columns:
        for note in column.notes:
            show_note(escape(f"{column.name}: {note}"))
        for doubt in column.doubts:
            show_note(escape(f"{column.name}: {doubt}"), ":material/warning:")
    return {note for column in reading.columns for note in column_notes(column)}
