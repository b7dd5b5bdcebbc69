"""Beside the form: the runs it makes, their time and warnings, the button, their list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.errors import MRNLabError
from core.paths import database_url
from core.recording.placed import placed
from core.store.records import Run, RunState
from core.wording import duration, plural, size, span
from dashboard.launch.address import command
from dashboard.launch.draft import RARE, Draft, Plan
from dashboard.launch.form import field_label
from dashboard.launch.views import PlanView, plan_view
from dashboard.shared import actions, resources
from dashboard.shared.selection import choose
from dashboard.shared.states import problem
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.estimates import Cost, Disk, cost, disk
from jobs.submit import Preflight, check, same_runs

# What to know before many or large runs are launched.


_HOUR_S = 3600
_WORTH_TELLING = 1e8  # bytes


def launch_warnings(
    spent: Cost, room: Disk, counts: Mapping[RunState, int], *, paused: bool = False, priority: int = 0
) -> list[str]:
    """Markdown of our own, the weightiest first. `paused`: the queue is; `priority` is that of the runs."""
    told = []
    if paused:
        told.append(":orange[:material/pause_circle: The queue is paused: they wait until it is resumed.]")
    if room.short:
        told.append(
            f":orange[:material/warning: The disk is short: these runs will keep about {size(room.needed)}, "
            f"and {size(room.free)} are free.] Delete runs that are no longer needed, or launch fewer."
        )
    if spent.seconds > _HOUR_S:
        told.append(
            ":orange[:material/hourglass_top: More than an hour in all.] They train in the background and "
            "can be stopped at any time. Fewer seeds, a smaller share or frozen features answer sooner."
        )
    if before := _before_launch(counts):
        then = "; higher priorities start first" if priority else " before them"
        told.append(f":material/schedule: {before}{then}.")
    if not room.short and room.needed > _WORTH_TELLING:
        told.append(f":material/hard_drive: They will keep about {size(room.needed)} on disk.")
    return told


def _before_launch(counts: Mapping[RunState, int]) -> str:
    training = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    waiting = counts[RunState.QUEUED]
    if not training:
        return plural(waiting, "run waits", "runs wait") if waiting else ""
    trains = plural(training, "run trains", "runs train")
    return f"{trains} and {plural(waiting, 'waits', 'wait')}" if waiting else trains


_HASHED: dict[str | type[Any], Callable[[Any], Any]] = {RunConfig: hash}


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def checked(configs: tuple[RunConfig, ...]) -> Preflight:
    """Whether these runs can be trained here, and what to know before. Raises MRNLabError."""
    return check(configs)


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def as_queued(configs: tuple[RunConfig, ...]) -> tuple[RunConfig, ...]:
    """The same runs as they would be queued. Raises MRNLabError where one's data is not there."""
    return tuple(map(placed, configs))


def costs(configs: Sequence[RunConfig]) -> tuple[Cost, Disk]:
    """What these runs take in time and on disk; told anew when another run has ended. Raises MRNLabError."""
    newest = resources.store().runs(states={RunState.SUCCEEDED}, limit=1)
    return _costs(database_url(), newest[0].id if newest else 0, tuple(configs))


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def _costs(url: str, newest: int, configs: tuple[RunConfig, ...]) -> tuple[Cost, Disk]:
    store = resources.store()
    return cost(store, configs), disk(store, configs)


_MOST_LISTED = 500
_LIST_HEIGHT = 388
_LAUNCHED = "launched"
_REUSE = "launch_reuse"


def launch_plan(draft: Draft, planned: Plan, *, shown_beside: bool) -> None:
    """Draws the plan. An error that the form shows beside its field is only pointed to here."""
    if planned.error:
        st.subheader("Not ready yet", anchor=False)
        st.markdown(_where(planned.field) if shown_beside and planned.field else escape(planned.error))
        return
    try:
        with st.spinner("Looking at the data"):
            _planned(draft, planned.configs)
    except MRNLabError as error:
        st.subheader(f"This makes {plural(len(planned.configs), 'run')}", anchor=False)
        problem(str(error))
        _button(draft, planned.configs, new=len(planned.configs), reuse=False, ready=False)
        _list(plan_view(planned.configs, [None] * len(planned.configs), {}, None))


def _where(field: str) -> str:
    """Where the form says what is missing: it may be out of sight."""
    place = " under *More settings*" if field in RARE else ""
    return f"**{escape(field_label(field))}**{place}: the form says beside it what is missing."


def _planned(draft: Draft, configs: tuple[RunConfig, ...]) -> None:
    """The plan of runs that can be trained here. Raises MRNLabError where one cannot."""
    runs = as_queued(configs)
    same = same_runs(resources.store(), runs)
    there: list[Run | None] = [same.get(run) for run in runs]
    st.session_state.setdefault(_REUSE, True)
    reuse = bool(same) and bool(st.session_state[_REUSE])
    new = tuple(run for run, one in zip(runs, there, strict=True) if not (reuse and one))
    ready = checked(new)
    spent, room = costs(new)
    view = plan_view(
        runs, there if reuse else [None] * len(runs), {run: n for n, run in enumerate(new)}, spent
    )

    _heading(len(runs), len(new), spent)
    if same:
        _reuse_toggle(len(runs), sum(one is not None for one in there))
    if new:
        _button(draft, configs, new=len(new), reuse=reuse, ready=True)
        _before(spent, room, draft.priority)
    else:
        _way_to(view)
    _launched(configs)
    _list(view)
    with st.container(gap="xsmall"):
        for note in ready.notes:
            st.caption(f":material/info: {escape(note)}")
    with st.expander("The same from a terminal", icon=":material/terminal:"):
        st.code(command(draft, configs, runs, reuse=reuse), language="bash", wrap_lines=True)
        st.caption("The address of this page holds the whole form: as a link it makes the same runs again.")


def _heading(number: int, new: int, spent: Cost) -> None:
    words = f"This makes {plural(number, 'run')}"
    if not new:
        words += ", none of them new" if number > 1 else ", not a new one"
    elif new < number:
        words += f", {new:,} of them new"
    with st.container(gap="xsmall"):
        if not new:
            st.subheader(words, anchor=False)
            return
        about = "roughly" if spent.rough else "about"
        st.subheader(f"{words}, {about} {duration(spent.seconds)}", anchor=False)
        start = (
            f" The first run takes {duration(spent.first)} longer: a worker starts."
            if spent.first >= 1
            else ""
        )
        st.caption(f"{span(spent.least, spent.most).capitalize()}, {escape(spent.basis)}.{start}")


def _reuse_toggle(number: int, there: int) -> None:
    others = number - there
    found = f"{there:,} of them are" if others and there > 1 else "One of them is" if others else "All are"
    use = "it" if there == 1 else "them"
    rest = f", launch only the other {others:,}" if others else ""
    st.toggle(
        f"{found if number > 1 else 'It is'} there already. Use {use}{rest}",
        key=_REUSE,
        persist_state="session",
        help="Runs of the same description and seed that have succeeded, train or wait. Switched off, all "
        "are trained anew.",
    )


def _before(spent: Cost, room: Disk, priority: int) -> None:
    store = resources.store()
    paused = store.paused_since() is not None
    with st.container(gap="xsmall"):
        for warning in launch_warnings(spent, room, store.counts(), paused=paused, priority=priority):
            st.caption(warning)


def _button(draft: Draft, configs: Sequence[RunConfig], *, new: int, reuse: bool, ready: bool) -> None:
    st.button(
        f"Launch {plural(new, 'new run' if reuse else 'run')}",
        type="primary",
        icon=":material/rocket_launch:",
        disabled=not ready,
        key="launch",
        width="stretch",
        on_click=_launch,
        args=(draft, configs, reuse),
    )


def _way_to(view: PlanView) -> None:
    """Instead of the launch: to the runs, which are all there."""
    runs = [run.id for run in view.there]
    page = "compare" if view.all_done else "runs"
    if st.button(
        f"Go to {'this run' if len(runs) == 1 else f'these {len(runs):,} runs'}",
        type="primary",
        icon=":material/arrow_forward:",
        key="launch_go",
        width="stretch",
    ):
        choose(runs)
        st.switch_page(f"{page}/page.py", query_params={"run": ",".join(map(str, runs))})


def _launch(draft: Draft, configs: Sequence[RunConfig], reuse: bool) -> None:
    try:
        launched = actions.launch(
            configs, "Launch", reuse=reuse, priority=draft.priority, retries=draft.retries
        )
        st.session_state[_LAUNCHED] = configs, launched
    except MRNLabError as error:
        st.session_state[_LAUNCHED] = configs, str(error)


def _launched(configs: Sequence[RunConfig]) -> None:
    """What the button made of these very runs, until the form says something else."""
    of, launched = st.session_state.get(_LAUNCHED, ((), []))
    if of != configs:
        return
    if isinstance(launched, str):
        problem(launched)
        return
    ids, used = launched
    told = f"{plural(len(ids) - len(used), 'run')} queued"
    told += f", {len(used):,} used that were there" if used else ""
    query = {"run": ",".join(map(str, ids))}
    with st.container(border=True):
        st.markdown(f":green[:material/check_circle: {told}.] Watch them train:")
        with st.container(horizontal=True):
            for page, label, icon in (
                ("runs", "Runs", ":material/list_alt:"),
                ("curves", "Curves", ":material/show_chart:"),
                ("compare", "Compare", ":material/compare_arrows:"),
            ):
                st.page_link(f"{page}/page.py", label=label, icon=icon, query_params=query)


def _list(view: PlanView) -> None:
    listed = view.rows[:_MOST_LISTED]
    frame = pd.DataFrame(
        {
            "Run": row.name,
            **{field_label(name): row.values[name] for name in view.fields},
            "Seed": row.seed,
            "Time": "" if row.seconds is None else duration(row.seconds),
            "There": "" if row.there is None else _there(row.there),
        }
        for row in listed
    )
    for column in ("Time", "There"):
        if not any(frame[column]):
            del frame[column]
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(listed) <= 10 else _LIST_HEIGHT,
        column_config={
            "Seed": st.column_config.NumberColumn(format="%d", width=60),
            "Time": st.column_config.TextColumn(width=70),
        },
        key="launch_list",
        alt="The runs that the form makes",
    )
    if len(view.rows) > len(listed):
        st.caption(f"The first {len(listed)} of {len(view.rows):,}.")


def _there(run: Run) -> str:
    look = STATES[run.state]
    return f"{look.mark} {_STATE_WORDS.get(run.state.value, look.word.lower())}, run {run.id}"


_STATE_WORDS = {"succeeded": "done", "queued": "waiting"}
