"""Launch: describe an experiment, see its runs and their time, start it."""

from __future__ import annotations

import streamlit as st

from core.store import Store
from dashboard.launch.address import fill, fill_in_pairs, open_link, write_link
from dashboard.launch.draft import plan
from dashboard.launch.form import form
from dashboard.launch.paradigms import paradigms
from dashboard.launch.plan import launch_plan
from dashboard.launch.presets import TABLES
from dashboard.shared import resources
from dashboard.shared.newcomers import launch_button
from dashboard.shared.presets import QUESTIONS, TRY_IT
from dashboard.shared.queue import held_banner
from dashboard.shared.states import title

_SEEN = "launch_seen"


def first_steps(store: Store) -> None:
    """The three paradigms and a card for each question; in a store with runs the cards are folded."""
    if any(store.counts().values()):
        with st.expander("Questions that one click answers, and published tables", key="questions"):
            preset_cards()
        return
    paradigms()
    preset_cards()


def preset_cards() -> None:
    """Cards of one height that answer a question each; below them the tables that fill in the form."""
    *columns, last = st.columns(len(QUESTIONS) + 1, gap="small")
    for column, preset in zip(columns, QUESTIONS, strict=True):
        with column.container(border=True, height="stretch", gap="xxsmall"):
            st.markdown(f"**{preset.title}**")
            st.caption(preset.description)
            st.space("stretch")
            launch_button(preset, "Try it" if preset is TRY_IT else f"Launch {len(preset.configs)} runs")
    with last.container(border=True, height="stretch", gap="xxsmall"):
        st.markdown("**Which of my tasks help each other?**")
        st.caption(
            "Trains each task chosen below alone and with each other one, 5 seeds. The plan shows the time."
        )
        st.space("stretch")
        st.button("Fill in the form", key="fill_in_pairs", on_click=fill_in_pairs)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for paper, tables in TABLES.items():
            st.caption(f"Reproduce {paper}:", width="content")
            for table in tables:
                key = f"fill_{table.title}"
                st.button(
                    table.title,
                    help=table.description,
                    on_click=fill,
                    args=(table.form,),
                    key=key,
                    type="tertiary",
                )


title(
    "Launch",
    "Describe an experiment. MRN Lab trains it in the background, whether or not this page stays open.",
)
open_link(resources.store())
held_banner(resources.store(), launching=True)
first_steps(resources.store())

left, right = st.columns([3, 2], gap="large")
with left:
    draft, slots = form()
write_link(draft)
with right, st.container(key="launch_plan"):
    launch_plan(draft, plan(draft), slots)

# Who only opens the page may want something else; who changes something in it is about to launch.
if st.session_state.get(_SEEN):
    resources.expect_run()
st.session_state[_SEEN] = True
