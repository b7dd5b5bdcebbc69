"""What the browser shows: the pages and the sidebar. Served by app.py."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.errors import MRNLabError, StoreError
from dashboard import login
from dashboard.live import store_away
from dashboard.logo import tab_icon
from dashboard.sidebar import sidebar
from dashboard.states import problem

st.set_page_config(page_title="MRN Lab", page_icon=tab_icon(), layout="wide")

pages = [
    st.Page(
        "app_pages/launch.py",
        title="Launch",
        icon=":material/rocket_launch:",
        default=True,
        # The first page stands at the app's own address; the path `launch` is that of the page below.
        url_path="start",
        help="Describe an experiment and start it: data, tasks, encoder, paradigm, seeds.",
    ),
    st.Page(
        "app_pages/runs.py",
        title="Runs",
        icon=":material/list_alt:",
        help="What runs now and what has run: progress, scores, history, log; stop, resume, retry, delete.",
    ),
    st.Page(
        "app_pages/curves.py",
        title="Curves",
        icon=":material/show_chart:",
        help="Losses, penalty and dev scores over training, live.",
    ),
    st.Page(
        "app_pages/compare.py",
        title="Compare",
        icon=":material/compare_arrows:",
        help="Configurations beside each other: mean and spread over seeds, paired differences.",
    ),
    st.Page(
        "app_pages/relations.py",
        title="Relations",
        icon=":material/grid_on:",
        help="What MRN learned of tasks, labels and features, step by step.",
    ),
    st.Page(
        "app_pages/tag.py",
        title="Tag",
        icon=":material/sell:",
        help="Type a sentence and see every task's labels with their confidence.",
    ),
]


def _launch_by_name() -> None:
    """`/launch`, as one would write it: the first page has no name in its own address."""
    st.switch_page(pages[0], query_params=st.query_params.to_dict())


# Nothing of the laboratory is read or drawn for whoever may not come in.
admitted = login.admitted()
page = st.navigation(
    [*pages, st.Page(_launch_by_name, url_path="launch", visibility="hidden")],
    position="sidebar" if admitted else "hidden",
)
st.html(Path(__file__).parent / "style.css")
if not admitted:
    st.stop()
try:
    sidebar()
    login.account()
    page.run()
except StoreError as error:
    store_away(error)
except MRNLabError as error:
    # What a page does not answer itself: a run deleted meanwhile.
    problem(str(error))
