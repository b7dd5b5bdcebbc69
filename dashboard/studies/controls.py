"""The controls of a study: its progress, and the buttons that launch and stop its runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import streamlit as st

from core.errors import MRNLabError
from core.studies import Study
from core.wording import duration, plural
from dashboard.shared import actions, resources
from dashboard.shared.states import problem
from jobs.studies.follow import follower, start_study, stop_study
from jobs.studies.progress import StudyOptions

_PROBLEM = "study_problem"
_HOUR_S = 3600


def study_state(study: Study, part: StudyOptions) -> None:
    """How far the study is, and the buttons that run it."""
    counts = resources.study_counts(StudyOptions(study.name))
    methods, settings = (plural(len(things), noun) for things, noun in (
        (study.methods, "method"), (study.settings, "setting"),
    ))  # fmt: skip
    st.caption(
        f"{settings} ({', '.join(study.parts())}), {methods}, {plural(len(study.seeds), 'seed')}. "
        f"{counts.done:,} of {plural(counts.total, 'run')} done in this store."
    )
    if counts.active:
        st.progress(counts.done / counts.total)
    with st.container(horizontal=True, vertical_alignment="center"):
        launch_or_stop(study, [("This part", part, "part")], study.name)
        if study.pairs:
            st.page_link("transfer/page.py", label="Gains of all pairs", icon=":material/hub:")
    if counts.failed:
        st.caption(f":material/warning: {plural(counts.failed, 'run')} failed; Runs tells why.")


def launch_or_stop(study: Study, more: Sequence[tuple[str, StudyOptions, str]], key: str) -> None:
    """Draws the button of a study: stop while its runs wait or train, else a menu of launches."""
    of_study, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_study == study.name:
        problem(why)
    whole = StudyOptions(study.name)
    counts = resources.study_counts(whole)
    followed = follower(resources.store(), study.name) is not None
    if counts.active or followed:
        st.button(
            "Stop the study", icon=":material/stop_circle:", key=f"stop_{study.name}",
            help=f"{plural(counts.active, 'run')} queued or in progress"
            + "; the others follow by themselves." * followed,
            on_click=actions.perform, args=(stop_study, study.name),
        )  # fmt: skip
    if followed or counts.done == counts.total:
        return
    label = "Go on" if counts.done else "Launch"
    opened = st.popover(label, icon=":material/play_arrow:", key=f"{key}_menu", on_change="rerun")
    with opened:
        if not opened.open:
            return
        small = [("A smaller version", StudyOptions(study.name, **study.small), f"{study.name}_small")]
        for words, options, key in [*(small if study.small else []), *more, ("All of it", whole, study.name)]:
            _launch(words, options, key)


def _launch(title: str, options: StudyOptions, key: str) -> None:
    """Draws a button that queues the missing runs of these options, with count, time and command.
    Draws nothing if no run is missing.
    """
    counts = resources.study_counts(options)
    missing = counts.total - counts.done - counts.active - counts.failed
    if not missing:
        return
    settings = resources.study_counts_by_setting(options)
    times = [setting.seconds for setting in settings if setting.seconds is not None]
    time = duration(sum(times)) if len(times) == len(settings) else "an unknown time"
    st.markdown(f"**{title}**: {plural(missing, 'run')}, {time}.")
    sure = True
    if len(times) < len(settings) or sum(times) > _HOUR_S:
        sure = st.checkbox(f"Launch {plural(missing, 'run')} that take {time}", key=f"sure_{key}")
    st.button(
        "Launch", icon=":material/play_arrow:", key=f"launch_{key}", disabled=not sure,
        on_click=_start, args=(options,),
    )  # fmt: skip
    st.code(shlex.join(["mrnlab", *options.arguments()]), language=None)


def _start(options: StudyOptions) -> None:
    """Starts the study; a callback, so that no refresh comes between the click and the start."""
    st.session_state.pop(_PROBLEM, None)
    try:
        left_out = start_study(resources.store(), options)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = options.study, str(error)
        return
    queued = resources.study_counts(options).active
    text = f"{plural(queued, 'run')} of {options.study} queued; the others follow by themselves."
    actions.toast(" ".join([text, *left_out]))
