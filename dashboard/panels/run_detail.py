"""One run in full, and what can be done with the chosen ones."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.config import FIELD_HELP
from core.store.records import Run
from core.store.states import ACTIVE, ENDED, RunState
from dashboard import actions
from dashboard.queries.compare import SCORE_NAMES
from dashboard.queries.runs import RunDetail, configuration_fields, restartable, resumable
from dashboard.states import problem, state_badge
from dashboard.text import ago, all_of, duration, escape, percent, plural

__all__ = ["run_actions", "run_detail"]


def run_actions(runs: Sequence[Run]) -> None:
    """Buttons for the chosen runs; each acts on those that it can act on."""
    ids = [run.id for run in runs]
    stoppable = [run.id for run in runs if run.state in ACTIVE and run.state is not RunState.CANCELLING]
    again = restartable(runs)
    deletable = [run.id for run in runs if run.state in ENDED or run.state is RunState.QUEUED]
    query = {"run": ",".join(map(str, ids))}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plural(len(runs), 'run')} chosen**", width="content")
        _button("Stop", ":material/stop:", stoppable, actions.stop, "Ends them at the next step.")
        _button(
            "Resume",
            ":material/resume:",
            resumable(runs),
            actions.resume,
            "Queues again what was lost or stopped. In this version it starts from its beginning.",
        )
        _button(
            "Retry",
            ":material/replay:",
            again,
            actions.retry,
            "Queues again what failed, was lost or was stopped, from its beginning.",
        )
        with st.popover("Delete", icon=":material/delete:", disabled=not deletable):
            words = plural(len(deletable), "run")
            st.markdown(
                f"Delete {words} with all scores, curves, relations and checkpoints? This cannot be undone."
            )
            st.button(f"Delete {words}", type="primary", on_click=actions.delete, args=(deletable,))
        for page, label, icon in (
            ("curves", "Curves", ":material/show_chart:"),
            ("compare", "Compare", ":material/compare_arrows:"),
            ("relations", "Relations", ":material/grid_on:"),
            ("tag", "Tag", ":material/sell:"),
        ):
            st.page_link(f"app_pages/{page}.py", label=label, icon=icon, query_params=query)


def _button(label: str, icon: str, ids: list[int], act: object, help_: str) -> None:
    st.button(label, icon=icon, disabled=not ids, on_click=act, args=(ids,), help=help_)  # type: ignore[arg-type]  # a callback


def run_detail(detail: RunDetail) -> None:
    """State, what happened, scores, facts, configuration, history and log."""
    run = detail.run
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(f"Run {escape(detail.name)}", anchor=False, width="content")
        state_badge(run.state)
    if run.config_problem:
        problem(run.config_problem)
    if detail.happened:
        problem(detail.happened, run.error.traceback if run.error else "")
    for note in run.facts.get("notes", ()):
        st.caption(f":material/info: {escape(note)}")
    part = st.segmented_control(
        "Part",
        ["Scores and facts", "Configuration", "History", "Log"],
        default="Scores and facts",
        required=True,
        key="run_part",
        bind="query-params",
        label_visibility="collapsed",
    )
    {"Configuration": _configuration, "History": _history, "Log": _log}.get(part, _scores)(detail)


def _scores(detail: RunDetail) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        if detail.scores:
            best = (
                f" The best epoch on dev is {detail.run.best_epoch}."
                if detail.run.best_epoch is not None
                else ""
            )
            st.caption(f"Scores in percent.{best}")
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
            st.caption(
                "Scores come when training ends; until then Curves shows the dev score of each epoch."
                if detail.run.state in ACTIVE
                else "This run ended before it had scores. Curves shows how far it came."
            )
    right.table(_facts(detail.run), border="horizontal")


def _facts(run: Run) -> dict[str, str]:
    facts = run.facts
    lines = {
        "Queued": ago(run.created_at),
        "Training time": duration(run.seconds),
        "Attempt": str(run.attempt),
        "Worker": f"process {run.owner.pid} on {run.owner.host}" if run.owner else "none",
    }
    if facts:
        unseen = [
            f"{task['name']}: {len(labels)} in {split}"
            for task in facts.get("tasks", ())
            for split, labels in task.get("unseen", {}).items()
        ]
        lines |= {
            "Device": f"{facts['device']}, {facts['precision']}, {plural(int(facts['threads']), 'thread')}",
            "Steps": f"{facts['total_steps']:,} in all, {facts['steps_per_epoch']:,} an epoch",
            **(
                {"Alignment": f"{facts['alignment']}: {facts['alignment_reason'] or 'as asked'}"}
                if facts.get("alignment")
                else {}
            ),
            "Labels never seen in training": all_of(unseen) or "none",
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
        st.code(detail.log, language=None, height=360)
    else:
        st.caption("The log begins when a worker takes the run.")
