"""The curves as files: the large chart as a picture, all points or the means as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from core.store.records import MetricSeries, Run
from dashboard.components import Picture
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
    st.download_button(
        "CSV",
        data=lambda: point_table(runs, series).to_csv(index=False),
        file_name=f"{name}.csv",
        mime="text/csv",
        key="curve_csv",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help="Every point of every chart on this page as it is stored, unsmoothed",
    )
    if chosen.reading.seeds != "lines":
        axis = chosen.reading.axis
        st.download_button(
            "CSV of means",
            data=lambda: band_table(runs, series, axis).to_csv(index=False),
            file_name=f"{name}-means.csv",
            mime="text/csv",
            key="curve_means_csv",
            type="tertiary",
            icon=":material/download:",
            on_click="ignore",
            help="Mean, standard deviation, 95% interval and number of seeds at every point, unsmoothed",
        )
    return picture


def _name(runs: Sequence[Run], chosen: Chosen) -> str:
    """`training-loss-ner-runs-3-7`; where many runs are shown, how many."""
    ids = [str(run.id) for run in runs]
    which = f"runs-{'-'.join(ids)}" if len(ids) <= _MOST_NAMED else f"{len(ids)}-runs"
    words = f"{chosen.metric.title} {chosen.large or 'total'} {which}".lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")
