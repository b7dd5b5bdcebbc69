"""The bar of actions on the chosen runs, or on the run shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from core.config import OTHER, trains_heads_alone
from core.config.presets import ADDED_EPOCHS
from core.registry import PREDICTED
from core.store.types import ENDED, RESTARTABLE, Run, RunState
from core.wording import all_of, duration, plural, size
from dashboard.shared import actions, resources
from dashboard.shared.run_views import fraction_done
from dashboard.shared.selection import choose, link_to_runs
from dashboard.text import escape
from jobs.queue import control
from jobs.queue.control import KEPT_S, PRIORITIES, remains

# Pages that show such runs: path, label, icon, and whether one of the runs has something for it.
_PAGES: tuple[tuple[str, str, str, Callable[[Run], object]], ...] = (
    ("compare", "Compare", "compare_arrows", lambda run: run.state is RunState.SUCCEEDED),
    ("curves", "Curves", "show_chart", lambda run: run.started_at is not None),
    ("relations", "Relations", "grid_on", lambda run: run.started_at is not None and run.config.prior),
    ("tag", "Tag", "sell", lambda run: run.state is RunState.SUCCEEDED),
)

# Label, icon, action, which runs it is for, and its help.
_ACTIONS: tuple[tuple[str, str, Callable[[list[int]], None], Callable[[Run], object], str], ...] = (
    ("Resume", "resume", partial(actions.perform, control.resume),
     lambda run: run.state in RESTARTABLE and run.saved_step,
     "Queues failed, lost and stopped runs again, from their last saved state."),
    ("Retry", "replay", partial(actions.perform, control.retry),
     lambda run: run.state in RESTARTABLE,
     "Queues failed, lost and stopped runs again, from the beginning."),
    ("Archive", "archive", actions.archive,
     lambda run: run.state in ENDED and not run.archived,
     "Hides ended runs. Nothing is deleted: the filter archived:yes finds them."),
    ("Restore", "unarchive", partial(actions.perform, control.restore),
     lambda run: run.archived,
     "Shows archived runs in the lists again."),
)  # fmt: skip


def chosen_bar(runs: Sequence[Run], elsewhere: int, about: str = "") -> None:
    """Draws the actions on the chosen runs (`elsewhere` of them are not on the page), and the last undo.

    `about` is a sentence on them in plain text.
    """
    if not runs:
        actions.undo_line()
        st.caption("Tick rows to select runs. A name opens its page.")
        return
    with st.container(key="chosen_bar", gap=None):
        actions.undo_line()
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chosen_actions"):
            hidden = f", {elsewhere:,} not shown" if elsewhere else ""
            st.markdown(f"**{plural(len(runs), 'run')} chosen**{hidden}", width="content")
            st.button("Clear", type="tertiary", icon=":material/close:", on_click=choose, args=((),))
            run_actions(runs)
        if about:
            st.caption(escape(about))


def progress_line(run: Run, text: str) -> None:
    """Draws how far an active run is, with a text in Markdown, and *Stop* beside it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.progress(fraction_done(run), text=text)
        if run.state is not RunState.CANCELLING:
            _stop([run.id], key=f"stop_{run.id}")


def run_actions(runs: Sequence[Run], *, stops: bool = True) -> None:
    """Draws links to the pages that show these runs, and the buttons that apply to some of them.

    `stops`: whether *Stop* is among them; it is not where `progress_line` has it.
    """
    ids = [run.id for run in runs]
    for page, label, icon, shows in _PAGES:
        if any(map(shows, runs)):
            link_to_runs(ids, label, f":material/{icon}:", page=page)
    if trained := [run.id for run in runs if run.config.paradigm != OTHER]:
        clone = {"clone": ",".join(map(str, trained))}
        st.page_link("launch/page.py", label="Clone", icon=":material/content_copy:", query_params=clone)
    if len(runs) == 1 and can_be_added_to(runs[0]):
        label, icon = "Add a task to this run", ":material/add_task:"
        st.page_link("launch/page.py", label=label, icon=icon, query_params=with_task_added(runs[0]))
    if stops:
        _stop([run.id for run in runs if run.state in (RunState.QUEUED, RunState.RUNNING)])
    st.space("stretch")  # what changes runs stands apart from what shows them
    for label, icon, act, can, words in _ACTIONS:
        if able := [run.id for run in runs if can(run)]:
            icon = f":material/{icon}:"
            st.button(label, icon=icon, type="tertiary", on_click=act, args=(able,), help=words)
    _priority([run for run in runs if run.state is RunState.QUEUED])
    _keywords(runs)
    _delete([run.id for run in runs if run.state in ENDED or run.state is RunState.QUEUED])


def can_be_added_to(run: Run) -> bool:
    """Whether a task can be added to the run: it has succeeded, and all that it trained is linear heads."""
    done = run.state is RunState.SUCCEEDED and run.config_problem is None
    has_heads = run.config.head == "linear" and run.config.heads != "shared"
    return done and has_heads and trains_heads_alone(run.config)


def with_task_added(run: Run) -> dict[str, str]:
    """The link to a form that adds a task to this run, over its corpus."""
    data = {"corpus": run.config.corpus}
    if run.config.columns:
        data["columns"] = ",".join(run.config.columns)
    alike = {name: str(getattr(run.config, name)) for name in ("encoder", "encoder_training", "max_length")}
    asked = {"paradigm": "mrn", "prior": PREDICTED, "added_to": str(run.id), "epochs": str(ADDED_EPOCHS)}
    return data | alike | {"truecase": "yes" if run.config.truecase else "no"} | asked


def _stop(ids: list[int], key: str = "stop") -> None:
    """Stops one run at once, several after saying how many."""
    text = (
        "Queued runs are taken off the queue; runs in progress save their state and end at their next step."
    )
    stop = partial(st.button, on_click=actions.perform, args=(control.stop_all, ids))
    if len(ids) == 1:
        stop("Stop", icon=":material/stop:", type="tertiary", help=text, key=key)
    elif ids:
        with st.popover("Stop", icon=":material/stop:", type="tertiary", key="stop_runs"):
            st.markdown(text)
            stop(f"Stop {plural(len(ids), 'run')}", type="primary")


def _priority(queued: Sequence[Run]) -> None:
    if not queued:
        return
    ids = [run.id for run in queued]
    highest = max(run.priority for run in queued)
    # A new key for a new value: a value set by the session's state would first be drawn as the least.
    key = f"priority_{highest}_{hash(tuple(ids))}"
    with st.popover("Priority", icon=":material/low_priority:", type="tertiary"):
        st.number_input(
            f"Priority of {plural(len(ids), 'queued run')}",
            *PRIORITIES,
            value=highest,
            key=key,
            step=1,
            width=190,
            help="Higher priorities start first.",
            on_change=lambda: actions.perform(control.prioritise, ids, st.session_state[key]),
        )


def _keywords(runs: Sequence[Run]) -> None:
    """Draws the keywords that all runs have, for editing, and lists the keywords of some runs only."""
    everywhere = sorted(set.intersection(*(set(run.keywords) for run in runs)))
    somewhere = sorted({word for run in runs for word in run.keywords} - set(everywhere))
    key = f"keywords_{hash(tuple(run.id for run in runs))}"
    if st.session_state.get(key) != everywhere:
        st.session_state[key] = everywhere
    with st.popover("Keywords", icon=":material/label:", type="tertiary"):
        st.multiselect(
            f"Keywords of {'the run' if len(runs) == 1 else f'all {len(runs):,} runs'}",
            [*everywhere, *somewhere],
            key=key,
            accept_new_options=True,
            placeholder="Type a keyword and press Enter",
            on_change=lambda: actions.change_keywords(runs, everywhere, st.session_state[key]),
            width=360,
        )
        if somewhere:
            st.caption(f"Only some of them have {escape(all_of(somewhere))}.")


def _delete(ids: list[int]) -> None:
    if not ids:
        return
    text = plural(len(ids), "run")
    with st.popover(
        ":red[Delete]", icon=":material/delete:", type="tertiary", key="delete_runs", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        lost = remains(resources.store(), ids)
        parts = [plural(lost.scores, "score") + " with predictions"] * bool(lost.scores)
        parts += [plural(lost.snapshots, "relation snapshot")] * bool(lost.snapshots)
        parts += [f"{size(lost.checkpoint_bytes)} of checkpoints"] * bool(lost.checkpoint_bytes)
        lost_text = all_of([*parts, "all curves and logs"])
        kept = (
            f"{'It is' if len(ids) == 1 else 'They are'} kept for {duration(KEPT_S)}, then removed for good."
        )
        st.markdown(f"Delete **{text}**: {lost_text}. {kept} Archive instead to hide only.")
        st.button(f"Delete {text}", type="primary", on_click=actions.delete, args=(ids,))
