"""One run in full: events, actions, scores, configuration, history and log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.config import FIELD_HELP
from core.evaluation.statistics import summary
from core.paths import own_log
from core.recording.owner import hostname
from core.results.naming import SCORE_NAMES, survival_text, value_text
from core.results.table import undefined_notes
from core.store import Store
from core.store.types import ACTIVE, Owner, Run, RunState, RunWithFacts, StoredScore
from core.tasks import kind_of
from core.tasks.scores import averages, scale_text
from core.wording import ago, duration, percent, plural, spread_text, without_shared
from dashboard.runs.answer import ABOUT, run_answer
from dashboard.runs.controls import progress_line, run_actions
from dashboard.runs.curves import dev_curves_of, other_seeds, show_dev_curves, show_loss
from dashboard.runs.exchange import export_menu
from dashboard.runs.tasks import data_sheet, detailed_split, scores_sheet, tasks_of
from dashboard.shared import actions, resources
from dashboard.shared.downloads import copy_table, data_table, show_table
from dashboard.shared.newcomers import fold
from dashboard.shared.readings import show_reading
from dashboard.shared.run_views import ended_early, log_tail, progress_text
from dashboard.shared.selection import segments
from dashboard.shared.states import (
    learned_nothing_text,
    problem,
    show_answer,
    show_note,
    show_reason,
    show_warning,
    state_badge,
)
from dashboard.text import coloured, escape, option, with_code
from dashboard.theme import STATES
from jobs.queue import control
from jobs.queue.remedies import Advice, advice
from jobs.reports.parts import Sheet
from jobs.reports.render import NOT_ANNOTATED, REPORT_COLUMNS, report_records, report_sheet

_MOST_LABELS = 16
_TIME = "Time (UTC)"
_STRICT = (
    "F1 counts as conlleval does: an I- label that continues nothing opens a span. Strict F1 leaves such "
    "spans out, so it can be higher or lower."
)


def run_in_full(store: Store, run_id: int) -> None:
    """Draws a run: notes, state, actions, test scores and advice; then a part of its record."""
    run = store.run(run_id)
    scores = store.scores([run_id])
    for note in run.facts.notes if run.facts else ():
        show_note(escape(note))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="run_bar"):
        state_badge(run.state)
        if run.archived:
            st.badge("Archived", icon=":material/archive:", color="gray")
        for task in _learned_nothing(scores):
            st.badge(escape(learned_nothing_text(task)), color="orange")
        for word in run.keywords:
            st.badge(escape(word), icon=":material/label:", color="gray")
        run_actions([run], stops=False)
        export_menu(run)
    actions.undo_line()
    if run.state in ACTIVE:
        progress_line(run, with_code(progress_text(store, run)))
        if survival := survival_text(run):
            st.caption(f":material/save: {survival}")
    _test_scores(store, run, scores)
    if run.problem:
        problem(f"{run.problem} The run is left out of comparisons; it can be exported and deleted.")
    if what_to_do := advice(run, store.events(run_id)):
        _advice(run, what_to_do)
    _bug_report(run)
    parts = {
        "Overview": _scores,
        "By label": _by_label,
        "Configuration": _configuration,
        "History": _history,
        "Log": _log,
    }
    parts[segments("Part", {name: name for name in parts}, key="run_part")](store, run)


def _learned_nothing(scores: Sequence[StoredScore]) -> list[str]:
    """The tasks that the run scores 0 on, on test where there are such scores."""
    of_test = [score for score in scores if score.split == "test"] or scores
    return [score.task for score in of_test if score.score == 0]


def _advice(run: Run, advice: Advice) -> None:
    if run.state is RunState.CANCELLED:
        show_reason(f"{with_code(advice.happened)} {with_code(advice.steps[0])}", ":material/cancel:")
    else:
        look = STATES[run.state]
        steps = "\n".join(f"- {with_code(step)}" for step in advice.steps)
        cause = f"**{advice.word or look.word}: {escape(advice.cause)}.** {with_code(advice.happened)}"
        show_warning(f"{cause}\n\n{steps}", look.icon)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if advice.clone:
            changes = ", ".join(f"{name} {value}" for name, value in advice.clone.items())
            if st.button(f"Clone with {changes}", icon=":material/content_copy:"):
                st.switch_page("launch/page.py", query_params={"clone": str(run.id), **advice.clone})
        if run.saved_step:
            st.button(
                f"Resume from step {run.saved_step:,}",
                icon=":material/resume:",
                on_click=actions.perform,
                args=(control.resume, [run.id]),
            )


def _bug_report(run: Run) -> None:
    trace = run.error.traceback if run.error is not None else ""
    if trace.strip() or run.engine_job:
        with st.expander("Details for a bug report"):
            if run.engine_job:
                st.markdown(f"Job of the scheduler: {escape(run.engine_job)}.")
            if trace.strip():
                st.code(trace, language=None)


def _test_scores(store: Store, run: Run, scores: Sequence[StoredScore]) -> None:
    """Draws the run's answer, and its test score of each task with the mean of its seeds under it."""
    by_task = {score.task: score for score in scores if score.split == "test"}
    short = without_shared(list(by_task))
    seeds = other_seeds(store, run) if by_task else []
    of_seeds = store.scores([seed.id for seed in seeds], "test", with_reports=False)
    means = _means([*by_task.values(), *of_seeds])
    if by_task and run.state is RunState.SUCCEEDED and run.problem is None:
        others = {task: [score.score for score in of_seeds if _is_of(score, task)] for task in by_task}
        test_scores = {task: score.score for task, score in by_task.items() if score.is_defined}
        show_answer(run_answer(run, test_scores, others, dev_curves_of(run, seeds)), key="run", help=ABOUT)
    with st.container(horizontal=True, gap="medium", key="run_scores"):
        for task in filter(by_task.__contains__, tasks_of(run, scores)):
            name = by_task[task].score_name
            label = (
                f"{coloured(short[task], resources.task_colour(task))}, test {SCORE_NAMES.get(name, name)}"
            )
            full = escape(task) if short[task] != task else None
            st.metric(
                label,
                percent(by_task[task].score),
                means.get(task),
                "off",
                delta_arrow="off",
                width="content",
                help=full,
            )


def _is_of(score: StoredScore, task: str) -> bool:
    return score.task == task and score.is_defined


def _means(scores: Iterable[StoredScore]) -> dict[str, str]:
    """`mean of 3 seeds: 92.81 ± 0.13` by task, for those with a score of several runs."""
    values: dict[str, list[float]] = {}
    for score in scores:
        if score.is_defined:
            values.setdefault(score.task, []).append(100 * score.score)
    known = {task: summary(of_task) for task, of_task in values.items() if len(of_task) > 1}
    return {
        task: f"mean of {mean.n} seeds: " + f"{mean.mean:.2f} {spread_text(mean.sd)}".replace(" ", "\u00a0")
        for task, mean in known.items()
    }


def _scores(store: Store, run: RunWithFacts) -> None:
    """The loss while it trains, dev scores by epoch, the tasks with their scores, and how it trained."""
    show_loss(run)
    show_dev_curves(store, run)
    scores = store.scores([run.id])
    if not scores:
        _no_scores(run)
    if scores:
        st.subheader("Scores", anchor=False)
        with st.container(key="run_tasks"):
            show_table(
                scores_sheet(run, scores),
                alt="The scores of this run by task",
                dots=list(map(resources.task_colour, tasks_of(run, scores))),
            )
        st.caption(" ".join(filter(None, _about_scores(scores))))
        for note in undefined_notes(scores):
            show_note(escape(note))
    columns = iter(st.columns(2, gap="large") if run.task_facts else [st.container()])
    if run.task_facts:
        with next(columns), st.container(key="run_data"):
            st.subheader("Training data", anchor=False)
            dots = list(map(resources.task_colour, tasks_of(run, ())))
            show_table(data_sheet(run), alt="The training data of this run by task", dots=dots)
    with next(columns), st.container(key="run_facts"):
        st.subheader("Training", anchor=False)
        show_table(Sheet.of(("Fact", "Value"), _facts(run).items()), alt="How this run waits and trains")
    if readings := run.facts.readings if run.facts else ():

        def show_readings() -> None:
            for reading in readings:
                show_reading(reading)

        fold(show_readings, key="run_readings", label="How the corpus was read")


def _about_scores(scores: Sequence[StoredScore]) -> Iterator[str]:
    """What a reader has to know of the table of scores."""
    details = f", on {detailed_split(scores)} but for the column Dev" * (
        len({score.split for score in scores}) > 1
    )
    yield f"Scores {scale_text(score.score_name for score in scores)}{details}."
    yield _STRICT * any(score.secondary("f1_strict") is not None for score in scores)


def _no_scores(run: Run) -> None:
    st.caption(
        "Scores are computed when training ends. Until then, Curves shows the dev score of each epoch."
        if run.state in ACTIVE
        else "This run ended without scores. Curves shows how far it came."
    )


def _facts(run: RunWithFacts) -> dict[str, str]:
    facts = run.facts
    lines = {
        "Queued": ago(run.created_at),
        "Training time": duration(run.seconds),
        "Attempt": str(run.attempt) if run.attempt > 1 else "",
        "Priority": str(run.priority or ""),
        "Retries left": str(run.retries or ""),
        "Worker": _worker_text(run.owner) if run.owner else "none",
    }
    if facts:
        threads = plural(facts.threads, "thread")
        early, patience = ended_early(run), plural(run.config.patience or 0, "epoch")
        steps = f"{run.step:,} of {facts.total_steps:,}" if early else f"{facts.total_steps:,} in all"
        lines |= {
            "Device": f"{facts.device}, {facts.precision}, {threads}",
            "Steps": f"{steps}, {facts.steps_per_epoch:,} an epoch",
            "Ended early": f"After {early}: {patience} without a better one" if early else "",
            "Alignment": f"{facts.alignment}: {facts.alignment_reason or 'as asked'}"
            if facts.alignment
            else "",
        }
    return {name: text for name, text in lines.items() if text}


def _worker_text(owner: Owner) -> str:
    here = owner.host == hostname()
    return f"process {owner.pid} on {'this machine' if here else f'machine {owner.host}'}"


def _by_label(store: Store, run: RunWithFacts) -> None:
    """The report of one task on one split: its averages, then every label; to copy too."""
    scores = store.scores([run.id])
    reported = {(score.task, score.split): score for score in scores if score.report}
    if not reported:
        if scores:
            st.caption(
                "Tasks of numbers have no labels. Compare shows their predictions beside the gold ones."
            )
        else:
            _no_scores(run)
        return
    tasks_reported = {task for task, _ in reported}
    with st.container(horizontal=True, vertical_alignment="center"):
        tasks = {task: option(task) for task in tasks_of(run, scores) if task in tasks_reported}
        task = segments("Task", tasks, key="report_task")
        splits = {split: split for split in ("test", "dev") if (task, split) in reported}
        split = segments("Split", splits, key="report_split")
        st.space("stretch")
        score = reported[task, split]
        sheet, records = report_sheet(run, score), report_records(run, score)
        copy_table(sheet, REPORT_COLUMNS, records, key=f"run_{score.run_id}_{task}")
    kind = kind_of(run.task_facts, task, score.score_name)
    alt = f"Precision, recall, F1 and how many are annotated, a line per {kind.row_title.lower()}"
    with st.container(height=520 if len(score.report) > _MOST_LABELS else "content", border=False):
        show_table(replace(sheet, blocks=sheet.blocks[::-1]), alt=alt)
    support = int(averages(score)["micro"]["support"])
    counted = "Counted as conlleval does." if kind.has_spans else "The micro average is the accuracy here."
    missing = NOT_ANNOTATED * any(not row["support"] for row in score.report.values())
    items = plural(support, "annotated span" if kind.has_spans else kind.item)
    st.caption(f"In percent, over {items}. {counted}{missing}")


def _configuration(_store: Store, run: RunWithFacts) -> None:
    records = [
        {
            "Field": name,
            "Value": value_text(value),
            "Meaning": FIELD_HELP[name].description if name in FIELD_HELP else "",
        }
        for name, value in run.description.items()
        if value is not None
    ]
    records += [
        {"Field": f"{name} version", "Value": str(version), "Meaning": "The package that trained the run."}
        for name, version in (run.facts.versions if run.facts else {}).items()
    ]
    data_table(pd.DataFrame(records), alt="Every field of this run's configuration")


def _history(store: Store, run: Run) -> None:
    words = {state.value: state.word for state in RunState}
    records = [
        {_TIME: event.time, "What": words.get(event.kind, event.kind), "Message": event.message}
        for event in reversed(store.events(run.id))
    ]
    times = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", timezone="UTC", width=150)
    alt = "History of this run, newest first"
    data_table(pd.DataFrame(records), alt=alt, column_config={_TIME: times})


def _log(_store: Store, run: Run) -> None:
    log = log_tail(own_log(run.log))
    if not log:
        st.caption("The run has no log until a worker takes it.")
        return
    with st.container(height=380, border=False, autoscroll=True):
        st.code(log, language=None)
    st.caption(f"The end of {escape(run.log)}")
