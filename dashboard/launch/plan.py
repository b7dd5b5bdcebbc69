"""Beside the form: the runs it makes, their time and warnings, the button, their list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.config.sweep import LISTED
from core.errors import MRNLabError
from core.paths import database_url
from core.recording.placed import placed
from core.store.records import Run, RunState
from core.wording import duration, plural, size, span
from dashboard.launch.address import command
from dashboard.launch.draft import RARE, Draft, Plan
from dashboard.launch.form import field_label
from dashboard.shared import actions, resources
from dashboard.shared.queue import counts_text
from dashboard.shared.states import problem, state_text
from dashboard.text import escape
from jobs.estimates import Cost, Disk, cost, disk
from jobs.naming import field_text, short_name
from jobs.submit import check, same_runs

_HOUR_S = 3600
_WORTH_TELLING = 1e8  # bytes


def launch_warnings(
    time: Cost, room: Disk, counts: Mapping[RunState, int], *, paused: bool = False, priority: int = 0
) -> list[str]:
    """What to know before many or large runs are launched: Markdown of our own, the weightiest first.

    `counts` are the runs of the store by state, `paused` says whether the queue is, `priority` is that of the
    runs to be launched.
    """
    warnings = []
    if paused:
        warnings.append(
            ":orange[:material/pause_circle: The queue is paused: they wait until it is resumed.]"
        )
    if room.short:
        warnings.append(
            f":orange[:material/warning: The disk is short: these runs will keep about {size(room.needed)}, "
            f"and {size(room.free)} are free.] Delete runs that are no longer needed, or launch fewer."
        )
    if time.seconds > _HOUR_S:
        warnings.append(
            ":orange[:material/hourglass_top: More than an hour in all.] They train in the background and "
            "can be stopped at any time. Fewer seeds, a smaller share or frozen features answer sooner."
        )
    training = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    if before := counts_text(training, counts[RunState.QUEUED]):
        then = "; higher priorities start first" if priority else " before them"
        warnings.append(f":material/schedule: {before}{then}.")
    if not room.short and room.needed > _WORTH_TELLING:
        warnings.append(f":material/hard_drive: They will keep about {size(room.needed)} on disk.")
    return warnings


_HASHED: dict[str | type[Any], Callable[[Any], Any]] = {RunConfig: hash}


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def checked(configs: tuple[RunConfig, ...]) -> tuple[str, ...]:
    """Whether these runs can be trained here, and what to know before. Raises MRNLabError."""
    return check(configs)


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def as_queued(configs: tuple[RunConfig, ...]) -> tuple[RunConfig, ...]:
    """The same runs as they would be queued. Raises MRNLabError where one's data is not there."""
    return tuple(map(placed, configs))


def costs(configs: Sequence[RunConfig]) -> tuple[Cost, Disk]:
    """The time and disk space that these runs take, from the runs that have ended. Raises MRNLabError."""
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
# In the name of a run, or in a column of their own.
_NAMED = ("paradigm", "lambda", "seed")


def launch_plan(draft: Draft, planned: Plan, *, shown_beside: bool) -> None:
    """Draws the plan. An error that the form shows beside its field is only pointed to here."""
    if planned.error:
        st.subheader("Not ready yet", anchor=False)
        if shown_beside and planned.field:
            # It may be out of sight there.
            place = " under *More settings*" if planned.field in RARE else ""
            label = escape(field_label(planned.field))
            st.markdown(f"**{label}**{place}: the form says beside it what is missing.")
        else:
            st.markdown(escape(planned.error))
        return
    try:
        with st.spinner("Looking at the data"):
            _planned(draft, planned.configs)
    except MRNLabError as error:
        st.subheader(f"This makes {plural(len(planned.configs), 'run')}", anchor=False)
        problem(str(error))
        _button(draft, planned.configs, f"Launch {plural(len(planned.configs), 'run')}", disabled=True)
        _list(planned.configs, [None] * len(planned.configs), None)


def _planned(draft: Draft, configs: tuple[RunConfig, ...]) -> None:
    """The plan of runs that can be trained here. Raises MRNLabError where one cannot."""
    runs = as_queued(configs)
    same = same_runs(resources.store(), runs)
    st.session_state.setdefault(_REUSE, True)
    reuse = bool(same) and bool(st.session_state[_REUSE])
    stored = [same.get(run) if reuse else None for run in runs]
    new = tuple(run for run, stored_run in zip(runs, stored, strict=True) if stored_run is None)
    ready = checked(new)
    time, room = costs(new)

    _heading(len(runs), len(new), time)
    if same:
        st.toggle(
            f"{len(same):,} of {len(runs):,} there already: use them",
            key=_REUSE,
            persist_state="session",
            help="Runs of the same description and seed that have succeeded, train or wait. Switched off, "
            "all are trained anew.",
        )
    if new:
        label = f"Launch {plural(len(new), 'new run' if reuse else 'run')}"
        _button(draft, configs, label, reuse=reuse)
        _before(time, room, draft.priority)
    else:
        ids = ",".join(str(run.id) for run in stored if run is not None)
        st.page_link(
            "runs/page.py",
            label=f"Go to {'this run' if len(runs) == 1 else f'these {len(runs):,} runs'}",
            icon=":material/arrow_forward:",
            query_params={"run": ids},
        )
    _launched(configs)
    _list(runs, stored, time)
    with st.container(gap="xsmall"):
        for note in ready:
            st.caption(f":material/info: {escape(note)}")
    with st.expander("The same from a terminal", icon=":material/terminal:"):
        st.code(command(draft, configs, runs, reuse=reuse), language="bash", wrap_lines=True)
        st.caption("The address of this page holds the whole form: as a link it makes the same runs again.")


def _heading(runs: int, new: int, time: Cost) -> None:
    """How many runs there are, how many of them are new, and how long these take."""
    makes = f"This makes {plural(runs, 'run')}"
    if not new:
        st.subheader(f"{makes}, none of them new", anchor=False)
        return
    some = f", {new:,} of them new" if new < runs else ""
    about = "roughly" if time.rough else "about"
    with st.container(gap="xsmall"):
        st.subheader(f"{makes}{some}, {about} {duration(time.seconds)}", anchor=False)
        start = f" The first takes {duration(time.first)} longer: a worker starts." if time.first >= 1 else ""
        st.caption(f"{span(time.least, time.most).capitalize()}, {escape(time.basis)}.{start}")


def _before(time: Cost, room: Disk, priority: int) -> None:
    store = resources.store()
    paused = store.paused_since() is not None
    with st.container(gap="xsmall"):
        for warning in launch_warnings(time, room, store.counts(), paused=paused, priority=priority):
            st.caption(warning)


def _button(
    draft: Draft, configs: Sequence[RunConfig], label: str, *, reuse: bool = False, disabled: bool = False
) -> None:
    st.button(
        label,
        type="primary",
        icon=":material/rocket_launch:",
        disabled=disabled,
        key="launch",
        width="stretch",
        on_click=_launch,
        args=(draft, configs, reuse),
    )


def _launch(draft: Draft, configs: Sequence[RunConfig], reuse: bool) -> None:
    try:
        launched: Any = actions.launch(
            configs, "Launch", reuse=reuse, priority=draft.priority, retries=draft.retries
        )
    except MRNLabError as error:
        launched = error
    st.session_state[_LAUNCHED] = configs, launched


def _launched(configs: Sequence[RunConfig]) -> None:
    """What the button made of these very runs, until the form says something else."""
    launched_configs, launched = st.session_state.get(_LAUNCHED, ((), None))
    if launched_configs != configs:
        return
    if isinstance(launched, MRNLabError):
        problem(str(launched))
        return
    ids, reused = launched
    queued = f"{plural(len(ids) - len(reused), 'run')} queued"
    queued += f", {len(reused):,} used that were there" if reused else ""
    query = {"run": ",".join(map(str, ids))}
    with st.container(border=True):
        st.markdown(f":green[:material/check_circle: {queued}.] Watch them train:")
        with st.container(horizontal=True):
            st.page_link("runs/page.py", label="Runs", icon=":material/list_alt:", query_params=query)
            st.page_link("curves/page.py", label="Curves", icon=":material/show_chart:", query_params=query)


def _list(configs: Sequence[RunConfig], stored: Sequence[Run | None], time: Cost | None) -> None:
    listed = configs[:_MOST_LISTED]
    st.dataframe(
        planned_table(listed, stored[:_MOST_LISTED], time),
        hide_index=True,
        height="content" if len(listed) <= 10 else _LIST_HEIGHT,
        column_config={
            "Seed": st.column_config.NumberColumn(format="%d", width=60),
            "Time": st.column_config.TextColumn(width=70),
        },
        key="launch_list",
        alt="The runs that the form makes",
    )
    if len(configs) > len(listed):
        st.caption(f"The first {len(listed)} of {len(configs):,}.")


def planned_table(
    configs: Sequence[RunConfig], stored: Sequence[Run | None], time: Cost | None
) -> pd.DataFrame:
    """A row per run: name, the fields in which the runs differ, seed; the time it takes, or the stored run.

    `stored` has for each run the one used in its place, `time` the estimate for the others, in order.
    """
    fields = [name for name in LISTED if name not in _NAMED and _differs(name, configs)]
    seconds = [run.seconds for run in time.runs] if time is not None else []
    if time is not None and seconds:
        seconds[0] += time.first  # a worker starts
    estimates = map(duration, seconds)
    frame = pd.DataFrame(
        {
            "Run": short_name(config),
            **{field_label(name): _text(config, name) for name in fields},
            "Seed": config.seed,
            "Time": "" if run is not None else next(estimates, ""),
            "There": "" if run is None else f"{state_text(run.state)}, run {run.id}",
        }
        for config, run in zip(configs, stored, strict=True)
    )
    return frame.drop(columns=[name for name in ("Time", "There") if not any(frame[name])])


def _differs(name: str, configs: Sequence[RunConfig]) -> bool:
    return len({getattr(config, name) for config in configs} - {None}) > 1


def _text(config: RunConfig, name: str) -> str:
    value = getattr(config, name)
    if value is None:
        return ""
    text = field_text(name, value)
    return text.removeprefix(name.replace("_", " ")).removesuffix("of the data").strip()
