"""The table of runs; the selected rows are the chosen runs of the other pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.store.states import RunState
from dashboard.queries.runs import RunRow
from dashboard.selection import choose, chosen
from dashboard.text import number
from dashboard.theme import STATES

__all__ = ["run_table"]

_KEY = "runs_table"
_ORDER = "runs_table_order"
_STATE_COLOURS = {"gray": "gray", "blue": "blue", "green": "green", "orange": "orange", "violet": "violet"}


def run_table(rows: Sequence[RunRow], tasks: Sequence[str]) -> None:
    """Draws the table. Rows are positions to Streamlit, so they are mapped to run numbers at
    once, and back.
    """
    order = [row.id for row in rows]
    wanted = [order.index(run_id) for run_id in chosen() if run_id in order]
    st.session_state[_ORDER] = order
    selected = st.session_state.get(_KEY, {}).get("selection", {}).get("rows", [])
    if sorted(selected) != sorted(wanted):
        st.session_state[_KEY] = {"selection": {"rows": wanted, "columns": [], "cells": []}}
    st.dataframe(
        _frame(rows, tasks),
        key=_KEY,
        hide_index=True,
        height="content" if len(rows) <= 14 else 540,
        placeholder="",
        column_config=_columns(tasks),
        on_select=_selected,
        selection_mode="multi-row",
        alt="Runs with their state, configuration, progress and scores",
    )


def _selected() -> None:
    order = st.session_state[_ORDER]
    now = [
        order[position] for position in st.session_state[_KEY]["selection"]["rows"] if position < len(order)
    ]
    before = [run_id for run_id in chosen() if run_id in now]
    choose([*before, *(run_id for run_id in now if run_id not in before)])


def state_text(state: RunState) -> str:
    """A state for a table cell: mark and word."""
    return f"{STATES[state].mark} {STATES[state].word}"


def _frame(rows: Sequence[RunRow], tasks: Sequence[str]) -> pd.DataFrame:
    records: list[dict[str, Any]] = [
        {
            "Run": row.id,
            "State": [state_text(row.state)],
            "Paradigm": row.paradigm,
            "λ": number(row.strength) if row.strength is not None else "",
            "Tasks": ", ".join(row.tasks),
            "Seed": row.seed,
            "Done": 100 * row.done,
            "Dev": _points(row.dev),
            **{f"test {task}": _points(row.test.get(task)) for task in tasks},
            "Minutes": row.seconds / 60 if row.seconds is not None else None,
            "Corpus": row.corpus,
            "Encoder": row.encoder,
        }
        for row in rows
    ]
    return pd.DataFrame(records)


def _points(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _columns(tasks: Sequence[str]) -> dict[str, Any]:
    config = st.column_config
    score: dict[str, Any] = {"format": "%.2f", "width": 76}
    return {
        "Run": config.NumberColumn(width=54, pinned=True),
        "State": config.MultiselectColumn(
            options=[state_text(state) for state in STATES],
            color=[_STATE_COLOURS[look.colour] for look in STATES.values()],
            width=112,
        ),
        "Paradigm": config.TextColumn(width=74),
        "λ": config.TextColumn(width=56, help="Strength of the MRN prior"),
        "Tasks": config.TextColumn(width=112),
        "Corpus": config.TextColumn(width=84),
        "Encoder": config.TextColumn(width=110),
        "Seed": config.NumberColumn(width=52),
        "Done": config.ProgressColumn(min_value=0, max_value=100, format="%.0f%%", width=84, color="blue"),
        "Dev": config.NumberColumn(help="Mean over tasks of the dev scores, in percent", **score),
        **{
            f"test {task}": config.NumberColumn(
                f"{task}, test", help="Score on the test sentences, in percent", **score
            )
            for task in tasks
        },
        "Minutes": config.NumberColumn(format="%.1f", width=66, help="Wall-clock time of training"),
    }
