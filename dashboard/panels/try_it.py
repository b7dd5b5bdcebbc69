"""The card that a newcomer meets first: one click, five runs, a minute."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from dashboard import actions
from dashboard.launch.presets import TRY_IT, LaunchPreset
from dashboard.states import problem

__all__ = ["launch_button", "try_it"]


def try_it(words: str) -> None:
    """The "Try it" card with a sentence on why it is here."""
    with st.container(border=True, width=520):
        st.markdown(f"**{TRY_IT.title}**")
        st.markdown(words)
        st.caption(TRY_IT.words)
        launch_button(TRY_IT, primary=True)


def launch_button(preset: LaunchPreset, *, primary: bool = False) -> None:
    """A button that launches a preset's runs and goes to Runs with them chosen."""
    if st.button(
        preset.button,
        type="primary" if primary else "secondary",
        icon=":material/play_arrow:",
        key=f"preset_{preset.button}",
    ):
        try:
            runs = actions.launch(preset.configs, name=preset.title)
        except MRNLabError as error:
            problem(str(error))
        else:
            st.switch_page("app_pages/runs.py", query_params={"run": ",".join(map(str, runs))})
