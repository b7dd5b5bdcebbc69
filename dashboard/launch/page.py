"""Launch: describe an experiment; see what it makes and how long it takes; start it."""

from __future__ import annotations

import streamlit as st

from dashboard.launch.address import fill, open_link, use_own_data, write_link
from dashboard.launch.draft import plan
from dashboard.launch.form import form, show_error
from dashboard.launch.plan import launch_plan
from dashboard.launch.presets import FINE_TUNE, SCARCE, TABLES, TRY_IT
from dashboard.shared import resources
from dashboard.shared.newcomers import launch_button, what_is_this
from dashboard.shared.queue import held_banner
from dashboard.shared.states import title

_SEEN = "launch_seen"


def preset_cards() -> None:
    """Five cards of one height."""
    one, two, three, four, five = st.columns(5, gap="small")
    for column, preset in ((one, TRY_IT), (two, SCARCE), (three, FINE_TUNE)):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{preset.title}**")
            st.caption(preset.words)
            st.space("stretch")
            launch_button(preset, primary=preset is TRY_IT)
    with four.container(border=True, height="stretch"):
        st.markdown("**Tables of the dissertation**")
        st.caption("Fills in the form: encoders × paradigms × 5 seeds.")
        st.space("stretch")
        with st.container(horizontal=True, gap="xsmall"):
            for table in TABLES:
                st.button(
                    table.title,
                    help=table.words,
                    on_click=fill,
                    args=(table.form,),
                    key=f"fill_{table.title}",
                )
    with five.container(border=True, height="stretch"):
        st.markdown("**Your own data**")
        st.caption("CoNLL columns or CoNLL-U, uploaded or from a folder. Nothing leaves this machine.")
        st.space("stretch")
        st.button("Use my data", icon=":material/upload_file:", on_click=use_own_data)


title(
    "Launch",
    "Describe an experiment. MRN Lab trains it in the background, whether or not this page stays open.",
)
open_link(resources.store())
held_banner(resources.store(), launching=True)
preset_cards()

left, right = st.columns([3, 2], gap="large")
with left:
    draft, slots = form()
    what_is_this("strength")
write_link(draft)
planned = plan(draft)
if planned.error and planned.field in slots:
    show_error(slots[planned.field], planned.error)
with right, st.container(key="launch_plan"):
    launch_plan(draft, planned, shown_beside=planned.field in slots)

# Who only opens the page may want something else; who changes something in it is about to launch.
if st.session_state.get(_SEEN):
    resources.expect_run()
st.session_state[_SEEN] = True
