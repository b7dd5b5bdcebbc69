"""MRN Lab as a server: `streamlit run dashboard/app.py`. Its pages begin in main.py.

The settings in .streamlit beside this file hold in any working directory: Streamlit reads those last.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

from dashboard.security import OwnVisitors
from dashboard.serving import Headers, first_page, ready

_base = st.get_option("server.baseUrlPath").strip("/")
app = st.App(
    Path(__file__).parent / "main.py",
    lifespan=ready,
    routes=[Route(f"/{_base}/launch" if _base else "/launch", first_page)],
    middleware=[Middleware(Headers), Middleware(OwnVisitors)],
)
