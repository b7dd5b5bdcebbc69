"""Tables as files, and as text to paste."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from core.plain_text import spreadsheet_cell
from dashboard.components.charts import read_asset
from jobs.reports.render import Sheet, csv_text, latex, markdown


def csv_file(frame: pd.DataFrame) -> str:
    """The table as comma-separated values that a spreadsheet opens without taking a cell for a formula."""
    words = frame.select_dtypes(exclude=["number", "bool", "datetime"])
    guarded = frame.assign(**{name: words[name].map(spreadsheet_cell) for name in words.columns})
    return guarded.rename(columns=spreadsheet_cell).to_csv(index=False)


_ICON = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{}" /></svg>'
_SHEETS = _ICON.format("M15 3H3v14h2V5h10zm6 4H7v14h14zm-2 12H9V9h10z")
_ARROW = _ICON.format("M7 10l5 5 5-5z")
# Streamlit's own copy button is that of a block of code.
_mount_copy = st.components.v2.component(
    "mrnlab_copy",
    html=f"""
<div class="copy">
  <button type="button" class="main">{_SHEETS}<span class="said" aria-live="polite">Copy</span></button>
  <button type="button" class="more" aria-label="Other formats" aria-haspopup="menu">{_ARROW}</button>
  <div class="menu" popover role="menu"></div>
</div>
""",
    css=read_asset("copy.css"),
    js=read_asset("copy.js"),
)


def copy_table(
    sheet: Sheet, columns: Sequence[str], records: Iterable[Mapping[str, object]], *, key: str
) -> None:
    """A button that copies the table as LaTeX, as `mrnlab results --format` prints it, and a menu of other
    formats to copy or save.
    """
    rows, name = list(records), f"mrnlab-{key}"
    formats = [
        {"name": "LaTeX", "text": latex(sheet), "file": f"{name}.tex"},
        {"name": "Markdown", "text": markdown(sheet)},
        {"name": "CSV", "text": csv_text(columns, rows), "file": f"{name}.csv"},
        {"name": "TSV", "text": csv_text(columns, rows, delimiter="\t")},
    ]
    _mount_copy(key=f"{key}_copy", data={"formats": formats}, width="content")
