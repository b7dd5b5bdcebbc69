"""A line without axes, drawn by a script of ours: the chart of st.metric warns of infinite extents."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.components.assets import read_asset

__all__ = ["sparkline"]

_mount = st.components.v2.component(
    "mrnlab_sparkline",
    html='<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img"><polyline /></svg>',
    css=read_asset("sparkline.css"),
    js=read_asset("sparkline.js"),
)


def sparkline(values: Sequence[float], *, key: str, alt: str) -> None:
    """Draw the values from left to right, as high as they differ. `alt` says what they are."""
    _mount(key=key, data={"values": list(values), "alt": alt})
