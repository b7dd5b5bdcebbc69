"""The card that a newcomer meets first: one click, five runs, a minute."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from dashboard import actions, resources
from dashboard.launch.presets import TRY_IT, LaunchPreset
from dashboard.states import problem
from dashboard.text import plural
from jobs.reuse import REUSABLE

__all__ = ["launch_button", "try_it"]


def try_it(words: str) -> None:
    """The "Try it" card with a sentence on why it is here."""
    with st.container(border=True, width=520):
        st.markdown(f"**{TRY_IT.title}**")
        st.markdown(words)
        st.caption(TRY_IT.words)
        launch_button(TRY_IT, primary=True)


def launch_button(preset: LaunchPreset, *, primary: bool = False) -> None:
    """A button that goes to a preset's runs on Runs, and queues those that are missing. Where some are there,
    a second one queues all of them anew.
    """
    with st.container(horizontal=True, gap="xsmall"):
        if st.button(
            preset.button,
            type="primary" if primary else "secondary",
            icon=":material/play_arrow:",
            key=f"preset_{preset.button}",
        ):
            _launch(preset, reuse=True)
        configurations = {config.configuration_id for config in preset.configs}
        if resources.store().runs_of(configurations, REUSABLE) and st.button(
            "",
            type="tertiary",
            icon=":material/replay:",
            help="Train all of these runs anew.",
            key=f"preset_anew_{preset.button}",
        ):
            _launch(preset, reuse=False)


def _launch(preset: LaunchPreset, *, reuse: bool) -> None:
    try:
        runs, used = actions.launch(preset.configs, preset.title, reuse=reuse)
    except MRNLabError as error:
        problem(str(error))
    else:
        if used:
            new = len(runs) - len(used)
            actions.say(
                f"{plural(len(used), 'run')} of {preset.title} there already"
                + (f", {plural(new, 'run')} queued." if new else "; nothing was queued.")
            )
        st.switch_page("app_pages/runs.py", query_params={"run": ",".join(map(str, runs))})
