"""One run in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from core.config import FIELD_HELP
from core.evaluation import averages
from core.store.records import ACTIVE, Run, RunState
from core.wording import ago, duration, percent, plural
from dashboard.shared import actions
from dashboard.shared.downloads import copy_table
from dashboard.shared.run_views import RunDetail, configuration_fields
from dashboard.shared.selection import chosen, focus
from dashboard.shared.states import problem, state_badge
from dashboard.text import escape, option
from dashboard.theme import STATES
from jobs.advice import Advice
from jobs.naming import run_name
from jobs.results import SCORE_NAMES
from jobs.sheets import REPORT_COLUMNS, report_records, report_sheet

_FOCUS = "run_in_full"
_MOST_LABELS = 14


def run_detail(detail: RunDetail) -> None:
    """State, what happened and what to do next, then scores and facts, configuration, history or log."""
    run = detail.run
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(f"Run {escape(detail.name)}", anchor=False, width="content")
        state_badge(run.state)
        if run.archived:
            st.badge("Archived", icon=":material/archive:", color="gray")
        for tag in run.tags:
            st.badge(escape(tag), icon=":material/label:", color="gray")
        _note(run)
    if run.note:
        st.markdown(f":material/edit_note: {escape(run.note)}")
    if run.state in ACTIVE:
        st.progress(detail.done, text=escape(detail.progress))
        if detail.survival:
            st.caption(f":material/save: {detail.survival}")
    if run.config_problem:
        problem(run.config_problem)
    if detail.advice is not None:
        _ended_badly(run, detail.advice)
    _details(run)
    for note in run.facts.get("notes", ()):
        st.caption(f":material/info: {escape(note)}")
    part = st.segmented_control(
        "Part",
        ["Scores and facts", "By label", "Configuration", "History", "Log"],
        default="Scores and facts",
        required=True,
        key="run_part",
        bind="query-params",
        label_visibility="collapsed",
    )
    parts = {"By label": _by_label, "Configuration": _configuration, "History": _history, "Log": _log}
    parts.get(part, _scores)(detail)


def focus_picker(runs: Sequence[Run]) -> None:
    """Which of several chosen runs is shown in full: the first chosen, until another is picked."""
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


def _note(run: Run) -> None:
    """The note, to be changed; saved when the field is left."""
    key = f"note_{run.id}"
    with st.popover("Note", icon=":material/edit_note:", type="tertiary"):
        st.text_area(
            "Note",
            run.note,
            key=key,
            placeholder="What is worth remembering of this run",
            help="Saved when you leave the field, or press Ctrl and Enter.",
            on_change=lambda: actions.set_note(run.id, st.session_state[key]),
            width=380,
        )


def _ended_badly(run: Run, told: Advice) -> None:
    """What happened, why most likely, and what to do, best first; the details in a fold."""
    steps = "\n".join(f"- {escape(step)}" for step in told.steps)
    lead = f"**{STATES[run.state].word}: {escape(told.cause)}.** {escape(told.happened)}\n\n{steps}"
    if run.state is RunState.CANCELLED:
        st.info(f"{escape(told.happened)} {escape(told.steps[0])}", icon=":material/cancel:")
    else:
        st.warning(lead, icon=STATES[run.state].icon)
    _next_step(run, told)


def _next_step(run: Run, told: Advice) -> None:
    """The first of the steps as a press: a clone with what it changes, or the run itself again."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if told.clone:
            changes = ", ".join(f"{name} {value}" for name, value in told.clone.items())
            st.page_link(
                "launch/page.py",
                label=f"Clone it with {changes}",
                icon=":material/content_copy:",
                query_params={"clone": str(run.id), **told.clone},
            )
        if run.saved_step:
            st.button(
                f"Resume from step {run.saved_step:,}",
                icon=":material/resume:",
                on_click=actions.resume,
                args=([run.id],),
            )


def _details(run: Run) -> None:
    """What a bug report or the cluster's people ask for."""
    trace = run.error.traceback if run.error is not None else ""
    if not trace.strip() and not run.engine_job:
        return
    with st.expander("Details for a bug report"):
        if run.engine_job:
            st.markdown(f"The scheduler calls it {escape(run.engine_job)}.")
        if trace.strip():
            st.code(trace, language=None)


def _kept_epoch(detail: RunDetail) -> str:
    """Which epoch's model the run kept, and what chose it."""
    run = detail.run
    if run.best_epoch is None:
        return ""
    if run.facts.get("selected_by", run.config.select_by) == "last":
        return f"The last epoch, {run.best_epoch}, is kept."
    return f"The best epoch on dev is {run.best_epoch}."


def _scores(detail: RunDetail) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        if detail.scores:
            st.caption(f"Scores in percent. {_kept_epoch(detail)}".strip())
            st.dataframe(
                pd.DataFrame(
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
                ),
                hide_index=True,
                height="content",
                alt="Scores of this run by task and split",
            )
        else:
            _no_scores(detail.run)
        _data(detail)
    right.table(_facts(detail.run), border="horizontal")


def _no_scores(run: Run) -> None:
    st.caption(
        "Scores come when training ends; until then Curves shows the dev score of each epoch."
        if run.state in ACTIVE
        else "This run ended before it had scores. Curves shows how far it came."
    )


def _by_label(detail: RunDetail) -> None:
    """The report of one task on one split: its averages, then every label; as a file too."""
    reported = {(score.task, score.split): score for score in detail.scores if score.report}
    if not reported:
        _no_scores(detail.run)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        tasks = [task for task in detail.run.config.tasks if any(task == one for one, _ in reported)]
        task = _choice("report_task", tasks)
        split = _choice("report_split", [one for one in ("test", "dev") if (task, one) in reported])
        st.space("stretch")
        score = reported[task, split]
        copy_table(
            report_sheet(detail.run, score),
            REPORT_COLUMNS,
            report_records(score),
            key=f"run_{score.run_id}_{task}",
        )
    averaged = averages(score)
    support = int(averaged["micro"]["support"])
    _report_table("Average", averaged, st.column_config.NumberColumn(format="localized", width=160))
    most = max(1, *(int(row["support"]) for row in score.report.values()))
    bar = st.column_config.ProgressColumn(format="localized", min_value=0, max_value=most, width=160)
    _report_table("Label" if score.f1_conll is None else "Type", score.report, bar)
    st.caption(
        f"In percent, over {plural(support, 'word')}. The micro average is the accuracy here."
        if score.f1_conll is None
        else f"In percent, over {plural(support, 'annotated span')}. Counted as conlleval does."
    )


def _choice(key: str, options: Sequence[str]) -> str:
    """One of these, kept in the page's address; the first where the address names another."""
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    chosen_option = st.segmented_control(
        key,
        options,
        default=options[0],
        required=True,
        key=key,
        bind="query-params",
        format_func=option,
        label_visibility="collapsed",
    )
    return str(chosen_option)


def _report_table(first: str, rows: Mapping[str, Mapping[str, float]], support: ColumnConfig) -> None:
    names = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
    st.dataframe(
        pd.DataFrame(
            {
                first: label,
                **{name: 100 * row[number] for number, name in names.items()},
                "Annotated": int(row["support"]),
            }
            for label, row in rows.items()
        ),
        hide_index=True,
        width="content",
        height="content" if len(rows) <= _MOST_LABELS else 520,
        column_config={
            first: st.column_config.TextColumn(pinned=True, width=96),
            **{
                name: st.column_config.NumberColumn(format="%.2f", width=72 if name == "Precision" else 62)
                for name in names.values()
            },
            "Annotated": support,
        },
        alt=f"Precision, recall, F1 and how many are annotated, a line per {first.lower()}",
    )


def _data(detail: RunDetail) -> None:
    if not detail.data:
        return
    st.caption("What training sees of each task.")
    st.dataframe(
        pd.DataFrame(
            {
                "Task": one.task,
                "Labels": one.labels,
                "Scheme": one.scheme,
                "Sentences": one.sentences,
                "Words": one.words,
                "Labels never seen": one.unseen or "none",
            }
            for one in detail.data
        ),
        hide_index=True,
        height="content",
        column_config={
            name: st.column_config.NumberColumn(format="localized") for name in ("Sentences", "Words")
        },
        alt="What the training data hold of each task",
    )


def _facts(run: Run) -> dict[str, str]:
    facts = run.facts
    lines = {
        "Queued": ago(run.created_at),
        "Training time": duration(run.seconds),
        "Attempt": str(run.attempt),
        **({"Priority": str(run.priority)} if run.priority else {}),
        **({"Retries left": str(run.retries)} if run.retries else {}),
        "Worker": f"process {run.owner.pid} on {run.owner.host}" if run.owner else "none",
    }
    if facts:
        lines |= {
            "Device": f"{facts['device']}, {facts['precision']}, {plural(int(facts['threads']), 'thread')}",
            "Steps": f"{facts['total_steps']:,} in all, {facts['steps_per_epoch']:,} an epoch",
            **(
                {"Alignment": f"{facts['alignment']}: {facts['alignment_reason'] or 'as asked'}"}
                if facts.get("alignment")
                else {}
            ),
            "Versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        }
    return {name: escape(text) for name, text in lines.items()}


def _configuration(detail: RunDetail) -> None:
    values = configuration_fields(detail.run)
    st.dataframe(
        pd.DataFrame(
            {
                "Field": name,
                "Value": value,
                "Meaning": FIELD_HELP[name].description if name in FIELD_HELP else "",
            }
            for name, value in values.items()
        ),
        hide_index=True,
        height="content",
        alt="Every field of this run's configuration",
    )


def _history(detail: RunDetail) -> None:
    st.dataframe(
        pd.DataFrame(
            {"Time": event.time, "What": event.kind, "Message": event.message}
            for event in reversed(detail.events)
        ),
        hide_index=True,
        height="content",
        column_config={"Time": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", width=150)},
        alt="History of this run, newest first",
    )


def _log(detail: RunDetail) -> None:
    if detail.log:
        with st.container(height=380, border=False, autoscroll=True):
            st.code(detail.log, language=None)
        st.caption(f"The end of {escape(detail.run.log)}")
    else:
        st.caption("The log begins when a worker takes the run.")
