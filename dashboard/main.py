"""The entry page: the login if there is one, the sidebar, and one of the pages. Served by app.py."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError, StoreError
from dashboard import security
from dashboard.shared import actions, docs
from dashboard.shared.delivery import delivered
from dashboard.shared.live import queue_state, store_away
from dashboard.shared.states import EndOfPage, problem
from dashboard.sidebar import sidebar
from dashboard.theme import LOGO, tab_icon

st.set_page_config(page_title="MRN Lab", page_icon=tab_icon(), layout="wide", initial_sidebar_state=220)

# Each page's icon and help.
_PAGES = {
    "Launch": ("rocket_launch", "Describe an experiment and start it: data, tasks, paradigm, seeds."),
    "Runs": ("list_alt", "What runs now and what has run: progress, scores, history, log; stop, resume."),
    "Curves": ("show_chart", "Losses, penalty and dev scores over training, live."),
    "Compare": ("compare_arrows", "Configurations beside each other: mean, spread over seeds, differences."),
    "Studies": ("science", "Declared experiments with their answers: run them, read what they found."),
    "Transfer": ("hub", "Which task helps which: gains of pairs of tasks, and what predicts them."),
    "Relations": ("grid_on", "What MRN learned of tasks, labels and features, step by step."),
    "Tag": ("sell", "Type a sentence and see every task's labels with their confidence."),
}
pages = [
    st.Page(
        f"{name.lower()}/page.py",
        title=name,
        icon=f":material/{icon}:",
        default=name == "Launch",
        url_path=name.lower(),  # the first page stands at the app's own address; app.py redirects its name
        help=words,
    )
    for name, (icon, words) in _PAGES.items()
]


# Nothing of the laboratory is read or drawn for whoever may not come in.
admitted = security.admitted()
page = st.navigation(
    [
        *pages,
        st.Page("runs/run_page.py", title="Run", url_path="run", visibility="hidden"),
        st.Page(docs.show, title="Docs", url_path="docs", visibility="hidden"),
    ],
    position="sidebar" if admitted else "hidden",
)
if not admitted:
    st.stop()
with delivered():
    try:
        st.logo(LOGO, size="large")
        actions.show()
        known = queue_state()
        try:
            page.run()  # first: it is what the reader waits for
        except EndOfPage:
            pass
        except StoreError:
            raise
        except MRNLabError as error:
            # What a page does not answer itself: a run deleted meanwhile.
            problem(str(error))
        sidebar(page.title, known)
        security.account()
    except StoreError as error:
        store_away(error)
