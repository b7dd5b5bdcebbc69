"""What can be done with the chosen runs; each button acts on those that it can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from core.store.records import ENDED, Run, RunState
from core.wording import all_of, percent, plural
from dashboard.components.charts import sparkline
from dashboard.runs.table import ask_for
from dashboard.runs.views import DiffRow, RunDiff
from dashboard.shared import actions, resources
from dashboard.shared.queue_views import stop_view
from dashboard.shared.run_views import RunCard, restartable, resumable
from dashboard.shared.selection import choose
from dashboard.shared.states import state_badge
from dashboard.text import escape
from jobs.control import PRIORITIES, remains

_PAGES = (
    ("curves", "Curves", ":material/show_chart:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("relations", "Relations", ":material/grid_on:"),
    ("tag", "Tag", ":material/sell:"),
)


def run_actions(runs: Sequence[Run], elsewhere: int) -> None:
    """A row to look at the chosen runs on other pages, a row to act on them.

    `elsewhere` of them are not on the page of the table that is shown.
    """
    ids = [run.id for run in runs]
    numbers = ",".join(map(str, ids))
    with st.container(horizontal=True, vertical_alignment="center"):
        hidden = f", {elsewhere:,} of them not in the table above" if elsewhere else ""
        st.markdown(f"**{plural(len(runs), 'run')} chosen**{hidden}", width="content")
        st.button("Clear", type="tertiary", icon=":material/close:", on_click=choose, args=((),))
        for page, label, icon in _PAGES:
            st.page_link(f"{page}/page.py", label=label, icon=icon, query_params={"run": numbers})
        st.page_link(
            "launch/page.py",
            label="Clone into the form",
            icon=":material/content_copy:",
            query_params={"clone": numbers},
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        _stop(runs)
        _button(
            "Resume",
            ":material/resume:",
            resumable(runs),
            actions.resume,
            "Queues again what was lost or stopped, or failed with its state saved: each goes on from there.",
        )
        _button(
            "Retry",
            ":material/replay:",
            restartable(runs),
            actions.retry,
            "Queues again what failed, was lost or was stopped, from its beginning.",
        )
        _priority(runs)
        _tags(runs)
        _button(
            "Archive",
            ":material/archive:",
            [run.id for run in runs if run.state in ENDED and not run.archived],
            actions.archive,
            "Puts ended runs out of sight. Nothing is lost: the filter archived:yes finds them.",
        )
        _button(
            "Restore",
            ":material/unarchive:",
            [run.id for run in runs if run.archived],
            actions.restore,
            "Takes archived runs back into the lists.",
        )
        _delete([run.id for run in runs if run.state in ENDED or run.state is RunState.QUEUED])


def _button(label: str, icon: str, ids: list[int], act: Callable[..., None], help_: str) -> None:
    st.button(label, icon=icon, disabled=not ids, on_click=act, args=(ids,), help=help_)


def _stop(runs: Sequence[Run]) -> None:
    """One run at once; several, or the whole launch they came from, after saying how many that is."""
    stop = stop_view(resources.store(), runs)
    if len(stop.ids) < 2 and stop.launch is None:
        _button("Stop", ":material/stop:", list(stop.ids), actions.stop, "Ends it at its next step.")
        return
    with st.popover("Stop", icon=":material/stop:", key="stop_runs"):
        st.markdown(
            "What waits is taken off the queue, what trains saves its state and ends at its next step."
        )
        if stop.ids:
            st.button(f"Stop {stop.words}", type="primary", on_click=actions.stop, args=(stop.ids,))
        if stop.launch is not None:
            st.caption(f"Launched together with others, as {escape(stop.launch.name)}.")
            st.button(
                f"Stop the whole launch: {stop.launch.stoppable}",
                on_click=actions.stop_launch,
                args=(stop.launch.name,),
            )


def _priority(runs: Sequence[Run]) -> None:
    """Which of what waits starts first."""
    waiting = [run for run in runs if run.state is RunState.QUEUED]
    ids = [run.id for run in waiting]
    with st.popover(
        "Priority", icon=":material/low_priority:", disabled=not ids, key="run_priority", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        levels = sorted({run.priority for run in waiting})
        st.markdown(f"Higher priorities start first; {plural(len(ids), 'run waits', 'runs wait')}.")
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            key = f"priority_{hash(tuple(ids))}"
            if st.session_state.get(key) not in levels:
                st.session_state[key] = levels[-1]
            st.number_input(
                "Priority" if len(levels) == 1 else f"Priority, now {levels[0]} to {levels[-1]}",
                *PRIORITIES,
                key=key,
                step=1,
                width=170,
                on_change=lambda: actions.prioritise(ids, st.session_state[key]),
            )
            for label, by, icon in (("Sooner", 1, "arrow_upward"), ("Later", -1, "arrow_downward")):
                st.button(
                    label,
                    icon=f":material/{icon}:",
                    on_click=actions.move,
                    args=(ids, by),
                    key=f"{label}_chosen",
                )


def _tags(runs: Sequence[Run]) -> None:
    """Tags that all have, to be changed; those that only some have are named."""
    everywhere = sorted(set.intersection(*(set(run.tags) for run in runs)))
    somewhere = sorted({tag for run in runs for tag in run.tags} - set(everywhere))
    ids = [run.id for run in runs]
    key = f"tags_{hash(tuple(ids))}"
    if st.session_state.get(key) != everywhere:
        st.session_state[key] = everywhere
    with st.popover("Tags", icon=":material/label:"):
        st.multiselect(
            f"Tags of {'the run' if len(ids) == 1 else f'all {len(ids):,} runs'}",
            [*everywhere, *somewhere],
            key=key,
            accept_new_options=True,
            placeholder="Type a tag and press Enter",
            on_change=lambda: actions.retag(ids, everywhere, st.session_state[key]),
            width=360,
        )
        if somewhere:
            st.caption(f"Only some of them have {escape(all_of(somewhere))}.")


def _delete(ids: list[int]) -> None:
    words = plural(len(ids), "run")
    with st.popover(
        "Delete", icon=":material/delete:", disabled=not ids, key="delete_runs", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        goes = remains(resources.store(), ids)
        files = f"{goes.checkpoint_bytes / 1e6:,.1f} MB of" if goes.checkpoint_bytes else "no"
        st.markdown(
            f"Delete **{words}** for good: {plural(goes.scores, 'score')} with predictions, "
            f"{plural(goes.snapshots, 'moment')} of relations, {files} checkpoints, and all curves, notes "
            "and logs. This cannot be undone; archiving can."
        )
        st.button(f"Delete {words}", type="primary", on_click=actions.delete, args=(ids,))


# The cards of what runs now.


MOST_CARDS = 3


def run_cards(cards: Sequence[RunCard], active: int) -> None:
    """A card for each run in training (else for those that are next), and the way to all `active` ones."""
    grid = st.grid(3, min_column_width=300, gap="small")
    shown = cards[:MOST_CARDS]
    for card in shown:
        with grid.cell(), st.container(border=True, gap="small"):
            _card(card)
    if active > len(shown):
        with st.container(horizontal=True, vertical_alignment="center"):
            if (more := len(cards) - len(shown)) > 0:
                st.caption(f"{plural(more, 'more run')} in training.", width="content")
            st.button("Show all in the table", type="tertiary", on_click=ask_for, args=("state:active",))


def _card(card: RunCard) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Run {card.id}** {escape(card.name)}", width="content")
        state_badge(card.state)
    score = f"{percent(card.dev_scores[-1])} %" if card.dev_scores else "–"
    with st.container(height=116, border=False, gap="small"):
        st.metric("Dev score, mean over tasks", score)
        if len(card.dev_scores) > 1:
            told = ", ".join(map(percent, card.dev_scores))
            sparkline(card.dev_scores, key=f"dev_{card.id}", alt=f"Dev score by epoch, in percent: {told}")
    st.progress(card.done)
    if card.survival:
        st.caption(card.survival)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(f"{escape(card.progress)}{', ' + card.eta if card.eta else ''}", width="content")
        st.button(
            "Stop",
            icon=":material/stop:",
            type="tertiary",
            key=f"stop_{card.id}",
            disabled=card.state is RunState.CANCELLING,
            on_click=actions.stop,
            args=([card.id],),
            help="Ends the run at its next step.",
        )


# What sets the chosen runs apart, as a sentence and a table of nothing but differences.


# The mark stands in the cell too: colour is never the only sign.
_APART = "background-color: rgba(230, 159, 0, 0.16)"


def run_diff(diff: RunDiff) -> None:
    """The sentence, and the table where there is more to say: a row per field, a column per run."""
    st.markdown(escape(diff.sentence))
    if not diff.rows:
        return
    names = [column.name for column in diff.columns]
    frame = pd.DataFrame(
        [[row.name, *_marked(row), row.meaning] for row in diff.rows],
        columns=["Field", *names, "Meaning"],
    )
    marks = pd.DataFrame("", index=frame.index, columns=frame.columns)
    for place, row in enumerate(diff.rows):
        for name, apart in zip(names, row.apart, strict=True):
            marks.loc[place, name] = _APART if apart else ""
    st.dataframe(
        frame.style.apply(lambda _: marks, axis=None),
        hide_index=True,
        height="content" if len(diff.rows) <= 14 else 520,
        column_config={"Field": st.column_config.TextColumn(pinned=True, width=140)},
        alt="The fields in which the chosen runs differ, a column for each",
    )
    more = f" {plural(diff.left_out, 'more column')} not shown." if diff.left_out else ""
    st.caption(f"≠ marks what is not as in the first column. All other fields are the same.{more}")


def _marked(row: DiffRow) -> list[str]:
    return [f"≠ {value}" if apart else value for value, apart in zip(row.values, row.apart, strict=True)]
