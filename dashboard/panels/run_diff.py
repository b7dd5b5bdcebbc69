"""What sets the chosen runs apart, as a sentence and a table of nothing but differences."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.queries.run_diff import DiffRow, RunDiff
from dashboard.text import escape, plural

__all__ = ["run_diff"]

# The mark stands in the cell too: colour is never the only sign.
_APART = "background-color: rgba(230, 159, 0, 0.16)"


def run_diff(diff: RunDiff) -> None:
    """The sentence, and the table where there is more to say: a row per field, a column per run."""
    st.markdown(escape(diff.sentence))
    if not diff.rows:
        return
    names = [column.name for column in diff.columns]
    frame = pd.DataFrame(
        [[row.name, *_marked(row), row.meaning] for row in diff.rows],
        columns=["Field", *names, "Meaning"],
    )
    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    for place, row in enumerate(diff.rows):
        for name, apart in zip(names, row.apart, strict=True):
            marks.loc[place, name] = _APART if apart else ""
    st.dataframe(
        frame.style.apply(lambda _: marks, axis=None),
        hide_index=True,
        height="content" if len(diff.rows) <= 14 else 520,
        column_config={"Field": st.column_config.TextColumn(pinned=True, width=140)},
        alt="The fields in which the chosen runs differ, a column for each",
    )
    more = f" {plural(diff.left_out, 'more column')} not shown." if diff.left_out else ""
    st.caption(f"≠ marks what is not as in the first column. All other fields are the same.{more}")


def _marked(row: DiffRow) -> list[str]:
    return [f"≠ {value}" if apart else value for value, apart in zip(row.values, row.apart, strict=True)]
