"""Tables as files to download."""

from __future__ import annotations

import pandas as pd

from core.plain_text import spreadsheet_cell

__all__ = ["csv_file"]


def csv_file(frame: pd.DataFrame) -> str:
    """The table as comma-separated values that a spreadsheet opens without taking a cell for a formula."""
    words = frame.select_dtypes(exclude=["number", "bool", "datetime"])
    guarded = frame.assign(**{name: words[name].map(spreadsheet_cell) for name in words.columns})
    return guarded.rename(columns=spreadsheet_cell).to_csv(index=False)
