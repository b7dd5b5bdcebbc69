"""Launch: describe an experiment; see what it makes and how long it takes; start it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.launch.address import fill, open_link, use_own_data, write_link
from dashboard.launch.draft import plan
from dashboard.launch.form import form
from dashboard.launch.plan import launch_plan
from dashboard.launch.presets import FINE_TUNE, SCARCE, TABLES, TRY_IT
from dashboard.shared import resources
from dashboard.shared.newcomers import launch_button
from dashboard.shared.queue import held_banner
from dashboard.shared.states import title

_SEEN = "launch_seen"


def preset_cards() -> None:
    """Five cards of one height: three answer a question, one fills in the form, one opens it for own data."""
    *presets, tables, own_data = st.columns(5, gap="small")
    for column, preset in zip(presets, (TRY_IT, SCARCE, FINE_TUNE), strict=True):
        with _card(column, preset.title, preset.words):
            launch_button(preset, "Try it" if preset is TRY_IT else f"Launch {len(preset.configs)} runs")
    words = "Tables 1 to 3 of the MSc dissertation on MRN. Fills in the form."
    with (
        _card(tables, "Reproduce Chang (2022)", words),
        st.container(horizontal=True, gap="xsmall"),
    ):
        for table in TABLES:
            key = f"fill_{table.title}"
            st.button(
                table.title, help=table.words, on_click=fill, args=(table.form,), key=key, type="tertiary"
            )
    words = "CoNLL columns or CoNLL-U. Nothing leaves this machine."
    with _card(own_data, "Use your own data", words):
        st.button("Use my data", icon=":material/upload_file:", on_click=use_own_data)


def _card(column: DeltaGenerator, headline: str, words: str) -> DeltaGenerator:
    card = column.container(border=True, height="stretch", gap="xxsmall")
    card.markdown(f"**{headline}**")
    card.caption(words)
    card.space("stretch")
    return card


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
write_link(draft)
with right, st.container(key="launch_plan"):
    launch_plan(draft, plan(draft), slots)

# Who only opens the page may want something else; who changes something in it is about to launch.
if st.session_state.get(_SEEN):
    resources.expect_run()
st.session_state[_SEEN] = True
