"""Launch: describe an experiment; see what it makes and how long it takes; start it."""

from __future__ import annotations

import streamlit as st

from dashboard.launch.address import open_link, write_link
from dashboard.launch.draft import plan
from dashboard.launch.form import form, show_error
from dashboard.launch.plan import launch_plan
from dashboard.launch.preset_cards import preset_cards
from dashboard.shared import resources
from dashboard.shared.newcomers import what_is_this
from dashboard.shared.queue import held_banner
from dashboard.shared.run_views import queue_view
from dashboard.shared.states import title

_SEEN = "launch_seen"

title(
    "Launch",
    "Describe an experiment. MRN Lab trains it in the background, whether or not this page stays open.",
)
open_link(resources.store())
held_banner(queue_view(resources.store()), launching=True)
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
