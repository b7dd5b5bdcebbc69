"""The plan next to the form: its runs, their time and warnings, the launch button, their list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import RunConfig, comparison_key, shares_nothing
from core.corpora.summary import summarise
from core.corpora.types import Overlap
from core.errors import ConfigError, EncoderError, MRNLabError
from core.mrn.alignments import choose, in_common
from core.paths import database_url
from core.recording.resolve import with_absolute_paths
from core.results.naming import shortest_names
from core.store.types import Run, RunState
from core.wording import about_time, capitalised, duration, plural, size, span
from dashboard.launch.address import add_bilstm, command, use_minilm
from dashboard.launch.draft import Draft, Plan, form_sentence
from dashboard.launch.form import anchor, show_error
from dashboard.launch.launched import launched_runs
from dashboard.shared import actions, resources
from dashboard.shared.downloads import show_table
from dashboard.shared.newcomers import fold
from dashboard.shared.run_views import tasks_and_seeds
from dashboard.shared.states import problem, show_note
from dashboard.text import escape
from jobs.queue.estimates import Cost, Disk, cost, disk, queue_left
from jobs.queue.submit import alignment_notes, automatic_alignments, check, same_runs
from jobs.reports.parts import Entry, Sheet

_HOUR_S = 3600
_WORTH_TELLING = 1e8  # bytes


def launch_warnings(
    time: Cost,
    room: Disk,
    counts: Mapping[RunState, int],
    left: float | None = None,
    *,
    paused: bool = False,
    priority: int = 0,
) -> list[str]:
    """Warnings on these runs as Markdown, the most important first.

    `counts` are the runs of the store by state and `left` the seconds until they have ended, if known;
    `paused` says whether the queue is, `priority` is that of the runs to be launched.
    """
    warnings = []
    if paused:
        warnings.append(
            ":orange[:material/pause_circle: The queue is paused: they wait until it is resumed.]"
        )
    if room.is_short:
        warnings.append(
            f":orange[:material/warning: The disk is short: these runs need about {size(room.needed)}, "
            f"and {size(room.free)} are free.] Delete runs that are no longer needed, or launch fewer."
        )
    if (time.seconds or 0.0) > _HOUR_S:
        warnings.append(
            ":orange[:material/hourglass_top: More than an hour in all.] They train in the background and "
            "can be stopped at any time. Fewer seeds, a smaller share or frozen features answer sooner."
        )
    if time.held_back:
        warnings.append(f":material/view_agenda: {time.held_back}")
    before = counts[RunState.RUNNING] + counts[RunState.CANCELLING] + counts[RunState.QUEUED]
    if before and not paused:
        when = "" if left is None or priority else f", in {about_time(left)}"
        order = "; higher priorities start first" if priority else ""
        warnings.append(
            f":material/schedule: Starts after {plural(before, 'run')} queued or in progress{when}{order}."
        )
    elif not paused:
        warnings.append(":material/schedule: Starts now.")
    if not room.is_short and room.needed > _WORTH_TELLING:
        warnings.append(f":material/hard_drive: They will use about {size(room.needed)} on disk.")
    return warnings


# All runs at once: to hash a thousand one by one takes Streamlit a quarter of a second.
_HASHED: dict[str | type[Any], Callable[[Any], Any]] = {tuple: hash}


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def checked(configs: tuple[RunConfig, ...]) -> tuple[str, ...]:
    """Warnings on these runs. Raises MRNLabError if they cannot be trained here."""
    return check(configs)


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def as_queued(configs: tuple[RunConfig, ...]) -> tuple[RunConfig, ...]:
    """The same runs as they would be queued. Raises MRNLabError where one's data is not there."""
    return tuple(map(with_absolute_paths, configs))


def stored_runs(configs: tuple[RunConfig, ...]) -> dict[int, RunState]:
    """The runs of the store with these descriptions that have succeeded, train or wait, and their states."""
    counts = tuple(resources.store().counts().values())
    return _stored_runs(database_url(), counts, configs) if any(counts) else {}


@st.cache_data(max_entries=64, ttl=30, show_spinner=False, hash_funcs=_HASHED)
def _stored_runs(url: str, counts: tuple[int, ...], configs: tuple[RunConfig, ...]) -> dict[int, RunState]:
    try:
        same = same_runs(resources.store(), as_queued(configs))
    except MRNLabError:  # shown where they are launched
        return {}
    return {run.id: run.state for run in same.values()}


def costs(configs: Sequence[RunConfig]) -> tuple[Cost, Disk]:
    """The time and disk space that these runs take, from the runs that have ended. Raises MRNLabError."""
    store = resources.store()
    newest = store.runs(states={RunState.SUCCEEDED}, limit=1)
    return _costs(database_url(), newest[0].id if newest else 0, tuple(configs))


@st.cache_data(max_entries=64, ttl=30, show_spinner=False, hash_funcs=_HASHED)
def _costs(url: str, newest: int, configs: tuple[RunConfig, ...]) -> tuple[Cost, Disk]:
    store = resources.store()
    return cost(store, configs, sentences=_sentences), disk(store, configs)


def _sentences(config: RunConfig) -> int:
    """How many sentences or texts the corpus of this run has for training."""
    return summarise(config.corpus, config.columns).splits["train"].sentences


_MOST_LISTED = 200
_MOST_NOTES = 20
_LIST_HEIGHT = 388
_LAUNCHED = "launched"
_REUSE = "launch_reuse"
SEEN = "launch_seen"
"""In the session from the second run of the page on: something on it was changed."""


def launch_plan(draft: Draft, planned: Plan, slots: Mapping[str, DeltaGenerator]) -> None:
    """Draws the plan, and links to the errors of fields, which are written into their slots."""
    if planned.problems:
        is_begun = planned.problems.keys() - planned.missing
        st.subheader("Not ready yet" if is_begun else "Still to choose", anchor=False)
        _problems(planned.problems, slots, planned.missing)
        return
    try:
        # The fold of the last container has a fixed position: a click while the page is drawn again finds it.
        plan, last = st.container(), st.container()
        with st.spinner("Looking at the data"), plan:
            _planned(draft, planned.configs, slots, last)
    except MRNLabError as error:
        runs = plural(len(planned.configs), "run")
        st.subheader(f"This makes {runs}", anchor=False)
        _problems(
            {_field_of(error): form_sentence(error) if isinstance(error, ConfigError) else str(error)}, slots
        )
        if isinstance(error, EncoderError):
            st.button("Use minilm instead", icon=":material/swap_horiz:", on_click=use_minilm)
        _button(draft, planned.configs, f"Launch {runs}", "", disabled=True)
        _table(plan_rows(planned.configs, [None] * len(planned.configs), None))


def _field_of(error: MRNLabError) -> str:
    if isinstance(error, ConfigError):
        return error.field
    return "encoder" if isinstance(error, EncoderError) else "corpus"


def _problems(
    problems: Mapping[str, str], slots: Mapping[str, DeltaGenerator], missing: Collection[str] = ()
) -> None:
    """Draws each error here, with a link to its field, and next to its field.

    What is `missing` is no error yet: it is listed here, without a mark.
    """
    for field, sentence in problems.items():
        jump, is_error = "", field not in missing
        if field in slots:
            show_error(slots[field], field, sentence if is_error else "")
            jump = f" [Go to field](#{anchor(field)})"
        st.markdown(f"{':orange[:material/error:] ' * is_error}{escape(sentence)}{jump}")


def _planned(
    draft: Draft,
    configs: tuple[RunConfig, ...],
    slots: Mapping[str, DeltaGenerator],
    last: DeltaGenerator,
) -> None:
    """The plan of runs that can be trained here. Raises MRNLabError where one cannot."""
    runs = as_queued(configs)
    same = same_runs(resources.store(), runs)
    st.session_state.setdefault(_REUSE, True)
    reuse = bool(same) and bool(st.session_state[_REUSE])
    stored = [same.get(run) if reuse else None for run in runs]
    new = tuple(run for run, stored_run in zip(runs, stored, strict=True) if stored_run is None)
    automatic = automatic_alignments(new)
    with slots.get("alignment", last) if automatic else nullcontext():
        for sentence in alignment_sentences(automatic):
            st.caption(escape(sentence))
    shown_in_form = {*draft.notes, *alignment_notes(new)}
    notes = [note for note in checked(new) if note not in shown_in_form]
    time, room = costs(new)

    launched = _launched(configs)
    if isinstance(launched, MRNLabError):
        problem(str(launched))
    ids = [run.id for run in stored if run is not None] if not new else None
    if ids or (isinstance(launched, list) and (ids := [run.id for run in resources.store().runs(launched)])):
        launched_runs(ids, were_there=not isinstance(launched, list))
        st.button(
            "Plan these runs again",
            icon=":material/replay:",
            type="tertiary",
            key="launch_again",
            on_click=_plan_again,
            help="Trains them anew, with the same seeds. For other runs change the form.",
        )
    else:
        about = "" if time.about is None else about_time(time.about)
        _heading(len(runs), len(new), time, about)
        if same:
            st.toggle(
                f"Use the {len(same):,} of {len(runs):,} that are in the store",
                key=_REUSE,
                persist_state="session",
                help="Runs of the same description and seed that have succeeded, are in progress or queued. "
                "Switched off, all are trained anew.",
            )
        label = f"Launch {plural(len(new), 'new run' if reuse else 'run')}"
        _button(draft, configs, label, about, reuse=reuse)
        st.caption(escape(settings_text(draft)))
        _before(time, room, draft.priority)
        _table(plan_rows(runs, stored, time))
    with st.container(gap="xsmall"):
        for note in notes[:_MOST_NOTES]:
            show_note(escape(note))
        if len(notes) > _MOST_NOTES:
            st.caption(f"{plural(len(notes) - _MOST_NOTES, 'more note')}.")
        if any(config.paradigm == "mtl" and shares_nothing(config) for config in new):
            st.button("Add a BiLSTM", icon=":material/add:", type="tertiary", on_click=add_bilstm)

    def terminal() -> None:
        st.code(command(draft, configs, runs, reuse=reuse), language="bash", wrap_lines=True)
        st.caption(
            "Without options `mrnlab launch` fine-tunes MiniLM with MRN and one seed, so that scripts keep "
            "their runs when this form opens otherwise. The address of this page holds the whole form."
        )

    with last:
        fold(terminal, key="launch_terminal", label="The same from a terminal", icon=":material/terminal:")


def settings_text(draft: Draft) -> str:
    """`Encoder minilm, frozen; 5 epochs over 100% of the data; seeds 1-3`: what is far from the plan."""
    texts = {
        name: value if isinstance(value, str) else ", ".join(value) for name, value in draft.lists.items()
    }
    encoder = ", ".join(filter(None, (texts.get("encoder"), texts.get("encoder_training"))))
    parts = [encoder and f"encoder {encoder}"]
    if epochs := texts.get("epochs"):
        share = f" over {texts['fraction']} of the data" if texts.get("fraction") else ""
        parts.append(f"{epochs} {'epoch' if epochs == '1' else 'epochs'}{share}")
    if seeds := texts.get("seed"):
        parts.append(f"seeds {seeds}")
    return capitalised("; ".join(filter(None, parts)))


def alignment_sentences(
    automatic: Sequence[tuple[tuple[str, ...], Sequence[Overlap]]],
) -> list[str]:
    """Which alignment `auto` takes for the tasks of a run, and why; of many groups of tasks, for how many."""
    if len(automatic) == 1:
        ((_, overlaps),) = automatic
        return [f"Here auto takes {choose(overlaps)[0]}: {in_common(overlaps)}."]
    counts = Counter(choose(overlaps)[0] for _, overlaps in automatic)
    return [f"Here auto takes {name} for {plural(n, 'group')} of tasks." for name, n in counts.items()]


def _heading(runs: int, new: int, time: Cost, about: str) -> None:
    """How many runs there are, how many of them are new, and `about` how long these take."""
    makes = f"This makes {plural(runs, 'run')}"
    some = f", {new:,} of them new" if new < runs else ""
    # Of a rough range the single seconds say nothing.
    ends = time.span and [round(end, -1 if time.rough else None) for end in time.span]
    between = f"{span(*ends)}, " if ends else ""
    at_once = f"{time.at_once} at once, " if time.at_once > 1 else ""
    with st.container(gap="xsmall"):
        st.subheader(f"{makes}{some}{about and f', {about}'}", anchor=False)
        st.caption(escape(capitalised(f"{between}{at_once}{time.basis}.")))


def _before(time: Cost, room: Disk, priority: int) -> None:
    store = resources.store()
    counts, paused = store.counts(), store.paused_since() is not None
    left = None if paused or not time.runs else queue_left(store)
    with st.container(gap="xsmall"):
        for warning in launch_warnings(time, room, counts, left, paused=paused, priority=priority):
            st.caption(warning)


def _button(
    draft: Draft,
    configs: Sequence[RunConfig],
    label: str,
    about: str,
    *,
    reuse: bool = False,
    disabled: bool = False,
) -> None:
    """The button; where it stands apart from the plan, on a telephone, `about` how long the runs take."""
    with st.container(key="launch_bar", gap=None):
        if about:
            st.caption(capitalised(about), text_alignment="center")
        st.button(
            label,
            type="secondary" if is_first_look() else "primary",
            icon=":material/rocket_launch:",
            disabled=disabled,
            key="launch",
            width="stretch",
            on_click=_launch,
            args=(draft, configs, reuse),
        )


def is_new_store() -> bool:
    """Whether the store has no run."""
    return not any(resources.store().counts().values())


def is_first_look() -> bool:
    """Whether the store is new and nothing on the page was changed: the first card is the one thing to do."""
    return SEEN not in st.session_state and is_new_store()


def _launch(draft: Draft, configs: Sequence[RunConfig], reuse: bool) -> None:
    launched: list[int] | MRNLabError
    try:
        launched, _ = actions.launch(
            configs, "Launch", reuse=reuse, priority=draft.priority, retries=draft.retries
        )
    except MRNLabError as error:
        launched = error
    st.session_state[_LAUNCHED] = configs, launched


def _launched(configs: Sequence[RunConfig]) -> list[int] | MRNLabError | None:
    """Returns the runs that the button made from these values, or why it made none; None without a launch."""
    launched_configs, launched = st.session_state.get(_LAUNCHED, ((), None))
    return launched if launched_configs == configs else None


def _plan_again() -> None:
    st.session_state[_REUSE] = False
    st.session_state.pop(_LAUNCHED, None)


def _table(rows: Sequence[Mapping[str, str | Entry]]) -> None:
    shown = rows[:_MOST_LISTED]
    with st.container(
        height="content" if len(shown) <= 10 else _LIST_HEIGHT, border=False, key="launch_rows"
    ):
        sheet = Sheet.of(tuple(shown[0]), [tuple(row.values()) for row in shown])
        show_table(sheet, alt="The runs that the form makes, by configuration")
    if len(rows) > len(shown):
        st.caption(f"The first {len(shown)} of {len(rows):,} rows.")


def plan_rows(
    configs: Sequence[RunConfig], stored: Sequence[Run | None], time: Cost | None
) -> list[dict[str, str | Entry]]:
    """A row per configuration: its name, its runs and what makes their number, the time of its new ones.
    The times add up to the total of `time`, however many runs train at once.

    `stored` has for each run the one used in its place, `time` the estimate for the others, in order.
    """
    groups: dict[str, list[tuple[RunConfig, Run | None, float]]] = {}
    seconds = iter(time.runs if time else ())
    for config, run in zip(configs, stored, strict=True):
        taken = (None if run is not None else next(seconds, None)) or 0.0
        groups.setdefault(comparison_key(config), []).append((config, run, taken))
    names = shortest_names([group[0][0] for group in groups.values()])
    rows = []
    for name, group in zip(names, groups.values(), strict=True):
        old = sum(run is not None for _, run, _ in group)
        made_of = tasks_and_seeds([config for config, _, _ in group])
        made_of += f", {'all' if old == len(group) else old} in the store" if old else ""
        row: dict[str, str | Entry] = {
            "Configuration": name,
            "Runs": Entry(len(group), form=","),
            "Seeds": made_of,
        }
        if time and any(time.runs):
            taken = sum(taken for _, _, taken in group) / time.at_once
            row["Time"] = duration(taken) if taken else ""
        rows.append(row)
    return rows
