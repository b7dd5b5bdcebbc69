"""The controls of a study: its progress, and the buttons that launch and stop its runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.errors import MRNLabError
from core.studies import Study
from core.studies.recorded import Record
from core.wording import about_time, plural
from dashboard.shared import actions, resources
from dashboard.shared.states import problem
from jobs.exchange.run_table import RunTable
from jobs.studies.follow import start_study
from jobs.studies.followers import follower, stop_follower
from jobs.studies.progress import RunCounts, StudyOptions

_PROBLEM = "study_problem"
_HOUR_S = 3600


def study_state(study: Study, part: StudyOptions, record: Record | None) -> None:
    """Draws the progress of the study, and the buttons that run it."""
    whole = replace(part, part=None)
    counts = resources.study_counts(whole)
    settings, methods, seeds = (plural(len(things), noun) for things, noun in (
        (study.settings, "setting"), (study.methods, "method"), (study.seeds, "seed"),
    ))  # fmt: skip
    done = f"{counts.done:,} done in this store"
    st.caption(f"{settings}, {methods}, {seeds}: {counts.total:,} runs, {done}.")
    if counts.active:
        st.progress(counts.done / counts.total)
    with st.container(horizontal=True, vertical_alignment="center"):
        launch_or_stop(study, counts, whole, [("This part", part, "part")], study.name)
        if record is not None and counts.done < record.runs:
            st.button(
                f"Add the {plural(record.runs, 'recorded run')}", icon=":material/download_done:",
                key=f"add_{study.name}", on_click=_add_recorded, args=(record,),
                help="They count as finished, without weights and curves. A launch then trains the rest.",
            )  # fmt: skip
        if study.pairs:
            st.page_link("transfer/page.py", label="Gains of all pairs", icon=":material/hub:")
    if counts.failed:
        st.caption(f":material/warning: {plural(counts.failed, 'run')} failed; see Runs for the reason.")


def launch_or_stop(
    study: Study,
    counts: RunCounts | None,
    whole: StudyOptions,
    more: Sequence[tuple[str, StudyOptions, str]],
    key: str,
    *,
    is_quiet: bool = False,
) -> None:
    """Draws the button of a study: stop while its runs wait or train, else a menu of launches.

    `counts` are None where the store has no run of the study.
    """
    of_study, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_study == study.name:
        problem(why)
    active = counts.active if counts else 0
    followed = follower(resources.store(), study.name) is not None
    if active or followed:
        st.button(
            "Stop the study", icon=":material/stop_circle:", key=f"stop_{study.name}",
            help=f"{plural(active, 'run')} queued or in progress" + "; the rest is queued later." * followed,
            on_click=actions.perform, args=(stop_follower, study.name),
        )  # fmt: skip
    if followed or (counts and not _missing(counts)):
        return
    label = "Continue" if counts and counts.done else "Launch"
    opened = st.popover(
        label, icon=":material/play_arrow:", key=f"{key}_menu", on_change="rerun",
        type="tertiary" if is_quiet else "secondary",
    )  # fmt: skip
    with opened:
        if not opened.open:
            return
        small = [("A smaller version", StudyOptions(study.name, **study.small), f"{study.name}_small")]
        for words, options, key in [*(small if study.small else []), *more, ("All of it", whole, study.name)]:
            _launch(words, options, key)


def _missing(counts: RunCounts) -> int:
    """The number of runs that a launch queues: failed ones are tried again on Runs alone."""
    return counts.total - counts.done - counts.active - counts.failed


def _launch(title: str, options: StudyOptions, key: str) -> None:
    """Draws a button that queues the missing runs of these options, with count, time and command.
    Draws nothing if no run is missing.
    """
    counts = resources.study_counts(options)
    if not (missing := _missing(counts)):
        return
    settings = resources.study_counts_by_setting(options)
    times = [setting.seconds for setting in settings if setting.seconds is not None]
    is_known = len(times) == len(settings)
    time = about_time(sum(times)) if is_known else "duration unknown"
    st.markdown(f"**{title}**: {plural(missing, 'run')}, {time}.")
    sure = True
    if not is_known or sum(times) > _HOUR_S:
        sure = st.checkbox(f"Launch {plural(missing, 'run')} ({time})", key=f"sure_{key}")
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
    text = f"{plural(queued, 'run')} of {options.study} queued; the rest is queued later."
    actions.toast(" ".join([text, *left_out]))


def _add_recorded(record: Record) -> None:
    added = RunTable(record.path).restore(resources.store())
    actions.toast(f"{plural(added, 'recorded run')} of {record.study} added to this store.")
