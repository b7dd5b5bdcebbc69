"""The chosen runs: what can be done with them, how they differ, and one of them in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core.config import FIELD_HELP
from core.evaluation.scores import averages
from core.store import Store
from core.store.records import ACTIVE, ENDED, RESTARTABLE, Run, RunState
from core.wording import ago, all_of, duration, percent, plural
from dashboard.runs.views import difference_sentence, differences
from dashboard.shared import actions, resources
from dashboard.shared.downloads import copy_table
from dashboard.shared.run_views import RunDetail, fraction_done
from dashboard.shared.selection import choose, chosen, focus
from dashboard.shared.states import problem, state_badge
from dashboard.text import escape, option
from dashboard.theme import STATES
from jobs import control
from jobs.advice import Advice
from jobs.control import PRIORITIES, Answer, remains
from jobs.naming import run_name, survival_text
from jobs.results import SCORE_NAMES
from jobs.sheets import REPORT_COLUMNS, report_records, report_sheet

_PAGES = (
    ("curves", "Curves", ":material/show_chart:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("relations", "Relations", ":material/grid_on:"),
    ("tag", "Tag", ":material/sell:"),
)
_FOCUS = "run_in_full"
_MOST_LABELS = 16
_MOST_COMPARED = 8


# What can be done with runs: label, icon, action, which runs it is for, and its help.
_ACTIONS: tuple[tuple[str, str, Callable[..., list[Answer]], Callable[[Run], object], str], ...] = (
    (
        "Resume",
        "resume",
        control.resume,
        lambda run: run.state in RESTARTABLE and (run.state is not RunState.FAILED or run.saved_step),
        "Queues again what was lost or stopped, or failed with its state saved: each goes on from there.",
    ),
    (
        "Retry",
        "replay",
        control.retry,
        lambda run: run.state in RESTARTABLE,
        "Queues again what failed, was lost or was stopped, from its beginning.",
    ),
    (
        "Archive",
        "archive",
        control.archive,
        lambda run: run.state in ENDED and not run.archived,
        "Puts ended runs out of sight. Nothing is lost: the filter archived:yes finds them.",
    ),
    (
        "Restore",
        "unarchive",
        control.restore,
        lambda run: run.archived,
        "Takes archived runs back into the lists.",
    ),
)


def run_actions(runs: Sequence[Run], elsewhere: int) -> None:
    """A row of links to other pages for the chosen runs, and a row of the buttons that can act on some.

    `elsewhere` runs are not on the table's page.
    """
    ids = ",".join(str(run.id) for run in runs)
    with st.container(horizontal=True, vertical_alignment="center"):
        hidden = f", {elsewhere:,} of them not in the table above" if elsewhere else ""
        st.markdown(f"**{plural(len(runs), 'run')} chosen**{hidden}", width="content")
        st.button("Clear", type="tertiary", icon=":material/close:", on_click=choose, args=((),))
        for page, label, icon in _PAGES:
            st.page_link(f"{page}/page.py", label=label, icon=icon, query_params={"run": ids})
        st.page_link(
            "launch/page.py",
            label="Clone into the form",
            icon=":material/content_copy:",
            query_params={"clone": ids},
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        _stop([run.id for run in runs if run.state in (RunState.QUEUED, RunState.RUNNING)])
        for label, icon, act, can, words in _ACTIONS:
            if able := [run.id for run in runs if can(run)]:
                icon = f":material/{icon}:"
                st.button(label, icon=icon, on_click=actions.ask, args=(act, able), help=words)
        _priority([run for run in runs if run.state is RunState.QUEUED])
        _keywords(runs)
        _delete([run.id for run in runs if run.state in ENDED or run.state is RunState.QUEUED])


def _stop(ids: list[int]) -> None:
    """Stops one run at once, several after saying how many."""
    stop = partial(st.button, on_click=actions.ask, args=(control.stop_all, ids))
    words = "What waits is taken off the queue, what trains saves its state and ends at its next step."
    if len(ids) == 1:
        stop("Stop", icon=":material/stop:", help=words)
    elif ids:
        with st.popover("Stop", icon=":material/stop:", key="stop_runs"):
            st.markdown(words)
            stop(f"Stop {plural(len(ids), 'run')}", type="primary")


def _priority(waiting: Sequence[Run]) -> None:
    """The priority of the queued runs among the chosen."""
    if not waiting:
        return
    ids = [run.id for run in waiting]
    highest = max(run.priority for run in waiting)
    # A new key for a new value: a value set by the session's state would first be drawn as the least.
    key = f"priority_{highest}_{hash(tuple(ids))}"
    st.number_input(
        f"Priority of {plural(len(ids), 'waiting run')}",
        *PRIORITIES,
        value=highest,
        key=key,
        step=1,
        width=190,
        help="Higher priorities start first.",
        on_change=lambda: actions.ask(control.prioritise, ids, st.session_state[key]),
    )


def _keywords(runs: Sequence[Run]) -> None:
    """The keywords that all runs have, to be changed; those that only some have are named."""
    everywhere = sorted(set.intersection(*(set(run.keywords) for run in runs)))
    somewhere = sorted({word for run in runs for word in run.keywords} - set(everywhere))
    ids = [run.id for run in runs]
    key = f"keywords_{hash(tuple(ids))}"
    if st.session_state.get(key) != everywhere:
        st.session_state[key] = everywhere
    with st.popover("Keywords", icon=":material/label:"):
        st.multiselect(
            f"Keywords of {'the run' if len(ids) == 1 else f'all {len(ids):,} runs'}",
            [*everywhere, *somewhere],
            key=key,
            accept_new_options=True,
            placeholder="Type a keyword and press Enter",
            on_change=lambda: actions.change_keywords(ids, everywhere, st.session_state[key]),
            width=360,
        )
        if somewhere:
            st.caption(f"Only some of them have {escape(all_of(somewhere))}.")


def _delete(ids: list[int]) -> None:
    if not ids:
        return
    words = plural(len(ids), "run")
    with st.popover("Delete", icon=":material/delete:", key="delete_runs", on_change="rerun") as popover:
        if not popover.open:
            return
        lost = remains(resources.store(), ids)
        files = f"{lost.checkpoint_bytes / 1e6:,.1f} MB of" if lost.checkpoint_bytes else "no"
        st.markdown(
            f"Delete **{words}** for good: {plural(lost.scores, 'score')} with predictions, "
            f"{plural(lost.snapshots, 'moment')} of relations, {files} checkpoints, and all curves and "
            "logs. This cannot be undone; archiving can."
        )
        st.button(f"Delete {words}", type="primary", on_click=actions.delete, args=(ids,))


def focus_picker(runs: Sequence[Run]) -> None:
    """Which of several chosen runs is shown in full: the first, until another is picked."""
    names = {run.id: run_name(run) for run in runs}
    first = next(run_id for run_id in chosen() if run_id in names)
    if st.session_state.get(_FOCUS) != first:
        st.session_state[_FOCUS] = first
    st.selectbox(
        "Run in full",
        sorted(names),
        key=_FOCUS,
        format_func=lambda run_id: names.get(run_id, str(run_id)),
        on_change=lambda: focus(st.session_state[_FOCUS]),
        width=360,
    )


def run_differences(store: Store, ids: Sequence[int]) -> None:
    """A sentence, and a table of the differences: a row per field, a column per run."""
    st.markdown(escape(difference_sentence(store.runs(ids, with_facts=False))))
    shown = ids[:_MOST_COMPARED]
    frame = differences(store, shown)
    if frame.empty:
        return
    st.dataframe(
        frame,
        height="content" if len(frame) <= 14 else 520,
        column_config={"Field": st.column_config.TextColumn(pinned=True, width=140)},
        alt="The fields in which the chosen runs differ, a column for each",
    )
    more = f" {plural(len(ids) - len(shown), 'more run')} not shown." if len(ids) > len(shown) else ""
    st.caption(f"≠ marks what is not as in the first column. All other fields are the same.{more}")


def run_detail(detail: RunDetail) -> None:
    """One run: state, what happened and what to do; then scores, configuration, history or log."""
    run = detail.run
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(f"Run {escape(run_name(run))}", anchor=False, width="content")
        state_badge(run.state)
        if run.archived:
            st.badge("Archived", icon=":material/archive:", color="gray")
        for word in run.keywords:
            st.badge(escape(word), icon=":material/label:", color="gray")
    if run.state in ACTIVE:
        st.progress(fraction_done(run), text=escape(detail.progress))
        if survival := survival_text(run):
            st.caption(f":material/save: {survival}")
    if run.config_problem:
        problem(run.config_problem)
    if detail.advice is not None:
        _advice(run, detail.advice)
    _bug_report(run)
    for note in run.facts.get("notes", ()):
        st.caption(f":material/info: {escape(note)}")
    parts = {
        "Scores and facts": _scores,
        "By label": _by_label,
        "Configuration": _configuration,
        "History": _history,
        "Log": _log,
    }
    part = st.segmented_control(
        "Part",
        list(parts),
        default="Scores and facts",
        required=True,
        key="run_part",
        bind="query-params",
        label_visibility="collapsed",
    )
    parts[part](detail)


def _advice(run: Run, advice: Advice) -> None:
    """What happened, the most likely cause and the steps to take, the first of them as a link or button."""
    if run.state is RunState.CANCELLED:
        st.info(f"{escape(advice.happened)} {escape(advice.steps[0])}", icon=":material/cancel:")
    else:
        look = STATES[run.state]
        steps = "\n".join(f"- {escape(step)}" for step in advice.steps)
        cause = f"**{look.word}: {escape(advice.cause)}.** {escape(advice.happened)}"
        st.warning(f"{cause}\n\n{steps}", icon=look.icon)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if advice.clone:
            changes = ", ".join(f"{name} {value}" for name, value in advice.clone.items())
            st.page_link(
                "launch/page.py",
                label=f"Clone it with {changes}",
                icon=":material/content_copy:",
                query_params={"clone": str(run.id), **advice.clone},
            )
        if run.saved_step:
            st.button(
                f"Resume from step {run.saved_step:,}",
                icon=":material/resume:",
                on_click=actions.ask,
                args=(control.resume, [run.id]),
            )


def _bug_report(run: Run) -> None:
    """The scheduler's name of the run and the traceback, in a fold."""
    trace = run.error.traceback if run.error is not None else ""
    if trace.strip() or run.engine_job:
        with st.expander("Details for a bug report"):
            if run.engine_job:
                st.markdown(f"The scheduler calls it {escape(run.engine_job)}.")
            if trace.strip():
                st.code(trace, language=None)


def _scores(detail: RunDetail) -> None:
    run = detail.run
    left, right = st.columns(2, gap="large")
    with left:
        if not detail.scores:
            _no_scores(run)
        else:
            kept = ""
            if run.best_epoch is not None:
                last = run.facts.get("selected_by", run.config.select_by) == "last"
                kept = " The last epoch, {}, is kept." if last else " The best epoch on dev is {}."
            st.caption(f"Scores in percent.{kept.format(run.best_epoch)}")
            records = [
                {
                    "Task": score.task,
                    "Split": score.split,
                    "Score": SCORE_NAMES.get(score.score_name, score.score_name),
                    "Value": percent(score.score),
                    "Precision": percent(score.precision),
                    "Recall": percent(score.recall),
                    "Strict F1": percent(score.f1_strict),
                    "Accuracy": percent(score.accuracy),
                }
                for score in detail.scores
            ]
            _table(records, "Scores of this run by task and split")
        if tasks := run.facts.get("tasks", ()):
            st.caption("What training sees of each task.")
            localized = st.column_config.NumberColumn(format="localized")
            _table(
                list(map(_task_facts, tasks)),
                "What the training data hold of each task",
                column_config={"Sentences": localized, "Words": localized},
            )
    right.table(_facts(run), border="horizontal")


def _table(records: Sequence[Mapping[str, Any]], alt: str, **look: Any) -> None:
    st.dataframe(pd.DataFrame(records), **{"hide_index": True, "height": "content", "alt": alt, **look})


def _no_scores(run: Run) -> None:
    st.caption(
        "Scores come when training ends; until then Curves shows the dev score of each epoch."
        if run.state in ACTIVE
        else "This run ended before it had scores. Curves shows how far it came."
    )


def _task_facts(task: Mapping[str, Any]) -> dict[str, Any]:
    unseen = "; ".join(f"{', '.join(labels)} in {split}" for split, labels in task["unseen"].items())
    return {
        "Task": task["name"],
        "Labels": len(task["labels"]),
        "Scheme": task["scheme"],
        "Sentences": task["train_sentences"],
        "Words": task["train_tokens"],
        "Labels never seen": unseen or "none",
    }


def _facts(run: Run) -> dict[str, str]:
    facts = run.facts
    lines = {
        "Queued": ago(run.created_at),
        "Training time": duration(run.seconds),
        "Attempt": str(run.attempt),
    }
    if run.priority:
        lines["Priority"] = str(run.priority)
    if run.retries:
        lines["Retries left"] = str(run.retries)
    lines["Worker"] = f"process {run.owner.pid} on {run.owner.host}" if run.owner else "none"
    if facts:
        threads = plural(int(facts["threads"]), "thread")
        lines["Device"] = f"{facts['device']}, {facts['precision']}, {threads}"
        lines["Steps"] = f"{facts['total_steps']:,} in all, {facts['steps_per_epoch']:,} an epoch"
        if facts.get("alignment"):
            lines["Alignment"] = f"{facts['alignment']}: {facts['alignment_reason'] or 'as asked'}"
        lines["Versions"] = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return {name: escape(text) for name, text in lines.items()}


def _by_label(detail: RunDetail) -> None:
    """The report of one task on one split: its averages, then every label; as a file too."""
    reported = {(score.task, score.split): score for score in detail.scores if score.report}
    if not reported:
        _no_scores(detail.run)
        return
    tasks_reported = {task for task, _ in reported}
    with st.container(horizontal=True, vertical_alignment="center"):
        task = _choice("report_task", [task for task in detail.run.config.tasks if task in tasks_reported])
        split = _choice("report_split", [split for split in ("test", "dev") if (task, split) in reported])
        st.space("stretch")
        score = reported[task, split]
        sheet, records = report_sheet(detail.run, score), report_records(score)
        copy_table(sheet, REPORT_COLUMNS, records, key=f"run_{score.run_id}_{task}")
    averaged = averages(score)
    first = "Label" if score.f1_conll is None else "Type"
    rows = [
        {
            first: f"{name} average" if place < len(averaged) else name,
            **{column: 100 * row[column.lower()] for column in ("Precision", "Recall", "F1")},
            "Annotated": int(row["support"]),
        }
        for place, (name, row) in enumerate([*averaged.items(), *score.report.items()])
    ]
    numbers = {name: st.column_config.NumberColumn(format="%.2f") for name in ("Precision", "Recall", "F1")}
    _table(
        rows,
        f"Precision, recall, F1 and how many are annotated, a line per {first.lower()}",
        width="content",
        height="content" if len(rows) <= _MOST_LABELS else 520,
        column_config={**numbers, "Annotated": st.column_config.NumberColumn(format="localized")},
    )
    support = int(averaged["micro"]["support"])
    st.caption(
        f"In percent, over {plural(support, 'word')}. The micro average is the accuracy here."
        if score.f1_conll is None
        else f"In percent, over {plural(support, 'annotated span')}. Counted as conlleval does."
    )


def _choice(key: str, options: Sequence[str]) -> str:
    """One of these options, kept in the URL; the first if the URL names another."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    return str(
        st.segmented_control(
            key,
            options,
            default=options[0],
            required=True,
            key=key,
            bind="query-params",
            format_func=option,
            label_visibility="collapsed",
        )
    )


def _configuration(detail: RunDetail) -> None:
    records = [
        {
            "Field": name,
            "Value": ", ".join(map(str, value)) if isinstance(value, list) else str(value),
            "Meaning": FIELD_HELP[name].description if name in FIELD_HELP else "",
        }
        for name, value in detail.run.config.values().items()
        if value is not None
    ]
    _table(records, "Every field of this run's configuration")


def _history(detail: RunDetail) -> None:
    records = [
        {"Time": event.time, "What": event.kind, "Message": event.message}
        for event in reversed(detail.events)
    ]
    times = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", width=150)
    _table(records, "History of this run, newest first", column_config={"Time": times})


def _log(detail: RunDetail) -> None:
    if not detail.log:
        st.caption("The log begins when a worker takes the run.")
        return
    with st.container(height=380, border=False, autoscroll=True):
        st.code(detail.log, language=None)
    st.caption(f"The end of {escape(detail.run.log)}")
