"""The cards on top of Launch: three that start at once, one that fills in the form, one for own data."""

from __future__ import annotations

import streamlit as st

from dashboard.launch.fields import fill, use_own_data
from dashboard.launch.presets import FINE_TUNE, SCARCE, TABLES, TRY_IT
from dashboard.shared.newcomers import launch_button


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
