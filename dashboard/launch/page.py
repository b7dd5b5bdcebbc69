"""Launch: describe an experiment, see its runs and their time, start it."""

from __future__ import annotations

import streamlit as st

from core.store import RunState
from core.wording import plural
from dashboard.launch.address import fill_in_pairs, open_link, write_link
from dashboard.launch.draft import plan
from dashboard.launch.form import form
from dashboard.launch.paradigms import paradigms
from dashboard.launch.plan import SEEN, is_first_look, is_new_store, launch_plan, stored_runs
from dashboard.shared import resources
from dashboard.shared.newcomers import launch_button
from dashboard.shared.presets import QUESTIONS, TRY_IT, LaunchPreset
from dashboard.shared.queue import held_banner
from dashboard.shared.selection import address_of
from dashboard.shared.states import title


def cards() -> None:
    """A row of cards, a question each, which scrolls sideways on a narrow screen (`style.css`)."""
    with st.container(horizontal=True, wrap=False, gap="small", key="launch_cards"):
        for preset in QUESTIONS:
            with st.container(border=True, height="stretch", gap="xxsmall"):
                _card(preset)
        with st.container(border=True, height="stretch", gap="xxsmall"):
            st.markdown("**Which tasks help which?**")
            st.caption("Each task chosen below alone and with each other one, STL and MTL, 5 seeds.")
            st.space("stretch")
            st.button("Fill in the form", icon=":material/edit:", key="fill_in_pairs", on_click=fill_in_pairs)


def _card(preset: LaunchPreset) -> None:
    """A question with what a click trains, or the way to its answer where all of that is in the store."""
    stored = stored_runs(preset.configs)
    left = len(preset.configs) - len(stored)
    has_answer = not left and set(stored.values()) == {RunState.SUCCEEDED}
    what, runs = preset.description.partition(". ")[0], plural(len(stored), "run")
    st.markdown(f"**{preset.title}**")
    in_store = f"{runs} are stored: nothing to train." if has_answer else f"{runs} are stored or queued."
    st.caption(preset.description if left else f"{what}. {in_store}")
    st.space("stretch")
    if not has_answer:
        label = f"Launch {plural(left, 'more run' if stored else 'run')}" if left else f"Show {runs}"
        is_first = preset is TRY_IT and is_new_store()
        launch_button(preset, "Try it" if is_first else label, primary=is_first and is_first_look())
    elif st.button("Open Compare", icon=":material/compare_arrows:", key=f"stored_{preset.title}"):
        st.switch_page("compare/page.py", query_params=address_of(sorted(stored)))


title(
    "Launch",
    "Start from a question, or say below what to train: each task alone (STL), one shared encoder "
    "(MTL), or shared with learned relations (MRN). Runs train in the background.",
)
open_link(resources.store())
held_banner(resources.store(), launching=True)
if is_new_store():
    paradigms()
cards()

left, right = st.columns([3, 2], gap="large")
with left:
    draft, slots = form()
write_link(draft)
with right, st.container(key="launch_plan"):
    launch_plan(draft, plan(draft), slots)

# Who only opens the page may want something else; who changes something in it is about to launch.
if SEEN in st.session_state:
    resources.expect_run()
st.session_state[SEEN] = True
