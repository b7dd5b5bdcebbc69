"""The curves as files: the large chart as a picture, all points or the means as a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from core.store.records import MetricSeries, Run
from dashboard import resources
from dashboard.components import Picture
from dashboard.downloads import csv_file
from dashboard.panels.curve_controls import Chosen
from dashboard.queries.curve_tables import band_table, point_table

__all__ = ["curve_files"]

_COUNT = "curve_pictures"
_MOST_NAMED = 6


def curve_files(runs: Sequence[Run], chosen: Chosen, series: Sequence[MetricSeries]) -> Picture | None:
    """Draws the buttons; returns the picture that is asked for, if one is."""
    name = _name(runs, chosen)
    picture = None
    for form in ("png", "svg"):
        if st.button(
            form.upper(),
            key=f"curve_{form}",
            type="tertiary",
            icon=":material/download:",
            help=f"The large chart as it stands, on white, as {form.upper()}",
        ):
            st.session_state[_COUNT] = st.session_state.get(_COUNT, 0) + 1
            picture = Picture(st.session_state[_COUNT], form, name)
    _table(
        "CSV",
        lambda: point_table(runs, series),
        f"{name}.csv",
        key="curve_csv",
        words="Every point of every chart on this page as it is stored, unsmoothed",
    )
    if chosen.reading.seeds != "lines":
        axis = chosen.reading.axis
        _table(
            "CSV of means",
            lambda: band_table(runs, series, axis, resources.store().conditions(runs)),
            f"{name}-means.csv",
            key="curve_means_csv",
            words="Mean, standard deviation, 95% interval and number of seeds at every point, unsmoothed",
        )
    return picture


def _table(label: str, made: Callable[[], pd.DataFrame], file: str, *, key: str, words: str) -> None:
    """A button for a table that is made only when it is asked for."""
    st.download_button(
        label,
        data=lambda: csv_file(made()),
        file_name=file,
        mime="text/csv",
        key=key,
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help=words,
    )


def _name(runs: Sequence[Run], chosen: Chosen) -> str:
    """`training-loss-ner-runs-3-7`; where many runs are shown, how many."""
    ids = [str(run.id) for run in runs]
    which = f"runs-{'-'.join(ids)}" if len(ids) <= _MOST_NAMED else f"{len(ids)}-runs"
    words = f"{chosen.metric.title} {chosen.large or 'total'} {which}".lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")
