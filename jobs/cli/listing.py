"""mrnlab runs, show and metrics: print the runs of the store and their curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core.config import FIELD_HELP
from core.errors import MRNLabError
from core.events import TaskFacts
from core.metrics import DEV_SCORE
from core.paths import own_log
from core.plain_text import shortened
from core.registry import FULL
from core.results.filter import parse_filter
from core.results.naming import value_text
from core.store import ACTIVE, ENDED, Run, RunState, RunWithFacts, Store, StoredScore
from core.store.facts import facts_document
from core.tasks import kind_of
from core.tasks.scores import score_text
from core.wording import UTC_FORMAT, duration, first_of, percent
from jobs.cli.app import app, opened_store
from jobs.cli.options import JSON_OPTION, RUN_ARGUMENT, number_option
from jobs.cli.output import log, print_json, print_rows, print_table, print_text, run_document
from jobs.queue.maintenance import resume_lost
from jobs.worker.logs import tail

_WORDS: dict[str, frozenset[RunState]] = {
    **{state.word: frozenset({state}) for state in RunState},
    "active": ACTIVE,
    "ended": ENDED,
}
_STATES = _WORDS | {state.value: frozenset({state}) for state in RunState}
"""The states by word, as `--filter` knows them, and by the value that JSON and the store have."""


@dataclass(frozen=True)
class _Row:
    """A run of the list, its description and tasks as stored, its best mean dev score (None: it has none)."""

    run: Run
    description: Mapping[str, Any]
    tasks: Sequence[TaskFacts]
    best: float | None

    def text(self, field: str) -> str:
        """A field of the description in words, though no longer valid; empty where the run lacks it."""
        return value_text(self.description[field]) if field in self.description else ""

    @property
    def progress(self) -> str:
        # Patience may end a run before its last step.
        run = self.run
        done = 1.0 if run.state is RunState.SUCCEEDED else run.step / (run.total_steps or 1)
        return f"{done:.0%}" if run.total_steps else ""

    @property
    def encoder(self) -> str:
        training = self.text("encoder_training")
        return self.text("encoder") + (f" ({training})" if training not in ("", FULL) else "")

    @property
    def corpus(self) -> str:
        corpus = self.text("corpus")
        return corpus if len(corpus) <= 24 else "…" + corpus[-23:]

    @property
    def dev_score(self) -> str:
        if self.best is None:
            return ""
        return score_text(self.best, *(task.score_name for task in self.tasks if not task.auxiliary))


@dataclass(frozen=True)
class _Column:
    """A column of `mrnlab runs`: its head, and its value of a row."""

    head: str
    value: Callable[[_Row], object]


_COLUMNS = (
    _Column("run", lambda row: row.run.id),
    _Column("state", lambda row: row.run.state.word),
    _Column("progress", lambda row: row.progress),
    _Column("paradigm", lambda row: row.description.get("system") or row.text("paradigm")),
    _Column("λ", lambda row: row.description.get("lambda")),
    _Column("tasks", lambda row: row.text("tasks").replace(", ", ",")),
    _Column("encoder", lambda row: row.encoder),
    _Column("corpus", lambda row: row.corpus),
    _Column("seed", lambda row: row.description.get("seed")),
    _Column("time", lambda row: "" if row.run.seconds is None else duration(row.run.seconds)),
    _Column("dev", lambda row: row.dev_score),
    _Column("keywords", lambda row: ",".join(row.run.keywords)),
)
"""The columns of `mrnlab runs`, from left to right. A new one is an entry."""


@app.command()
def runs(
    ctx: typer.Context,
    state: Annotated[
        str | None, typer.Option(help=f"Only runs in these states ({', '.join(_WORDS)}); a list.")
    ] = None,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", help="Words and fields: 'paradigm:mrn lambda<0.1 -keyword:old created<2d'."),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="The archived runs instead.")] = False,
    limit: Annotated[int, number_option("--limit", "List at most the N newest runs.", 1)] = 50,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """List runs, newest first."""
    with opened_store(ctx) as store:
        resume_lost(store)
        wanted = parse_filter(filter_ or "", store=store)
        listed = store.runs(states=_states(state), archived=True if archived else wanted.archived)
        matching = [run for run in listed if wanted.matches(run)][:limit]
        best = store.best_metrics([run.id for run in matching], DEV_SCORE.key())
        if json_:
            print_json(_documents(store, matching, best))
            return
        if not matching:
            log(_nothing_listed(state, filtered=archived or filter_ is not None))
            return
        # Facts name the scores: a mean over a Pearson is no percentage.
        tasks = {run.id: run.task_facts for run in store.runs_with_facts(list(best))}
        listing = [
            _Row(run, run.description, tasks.get(run.id, ()), best.get(run.id) if run.id in tasks else None)
            for run in matching
        ]
        rows = [[column.value(row) for column in _COLUMNS] for row in listing]
        print_table([column.head for column in _COLUMNS], rows)
    for run in matching:
        if run.config_problem is not None:
            log(f"Run {run.id}: {run.config_problem}")


def _documents(store: Store, listed: Sequence[Run], best: Mapping[int, float]) -> list[dict[str, Any]]:
    """These runs for `--json`, as `show` has them but for its description, facts and history."""
    scores: dict[int, list[StoredScore]] = {run.id: [] for run in listed}
    for score in store.scores(list(scores)):
        scores[score.run_id].append(score)
    conditions = store.conditions(listed)
    return [
        run_document(run, scores[run.id], conditions[run.id].alignment if run.id in conditions else None)
        | {"best_dev_score": best.get(run.id), "config_problem": run.config_problem}
        for run in listed
    ]


def _nothing_listed(state: str | None, *, filtered: bool) -> str:
    if filtered:
        return "No run matches; `mrnlab runs` without --filter, --state and --archived lists all."
    if state is not None:
        return f"No run is {' or '.join(state.split(','))}; `mrnlab runs` without --state lists all."
    return "There are no runs yet. `mrnlab launch --corpus demo --tasks pos,chunk,ner` queues one."


def _states(text: str | None) -> set[RunState] | None:
    if text is None:
        return None
    try:
        return set().union(*(_STATES[name.strip().casefold()] for name in text.split(",")))
    except KeyError:
        raise MRNLabError(
            f"--state: '{shortened(text)}' names no state; states are {', '.join(_WORDS)}."
        ) from None


@app.command()
def show(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    log: Annotated[int, number_option("--log", "Also print the last N lines of its log.", 0)] = 0,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show one run: its description, state, scores and history."""
    with opened_store(ctx) as store:
        resume_lost(store)
        shown = store.run(run)
        scores, events = store.scores([run]), store.events(run)
        if json_:
            history = [
                {"time": event.time.isoformat(), "kind": event.kind, "message": event.message}
                for event in events
            ]
            document = run_document(shown, scores, shown.alignment) | {
                "config": dict(shown.description),
                "facts": facts_document(shown.facts),
                "config_problem": shown.config_problem,
                "facts_problem": shown.facts_problem,
                "history": history,
                "log": shown.log,
            }
            print_json(document | ({"log_tail": tail(own_log(shown.log), log)} if log else {}))
            return
        print_text(
            f"Run {shown.id}, {shown.state.word}, attempt {shown.attempt}, "
            f"configuration {shown.configuration_id}"
        )
        for line in (
            shown.config_problem,
            shown.facts_problem,
            shown.error and shown.error.message,
            shown.archived and "Archived.",
            shown.keywords and f"Keywords: {', '.join(shown.keywords)}",
            shown.note and f"Note: {shown.note}",
        ):
            if line:
                print_text(line)
        print_table(
            ("field", "value", "unit"),
            [
                (field, value, FIELD_HELP[field].unit if field in FIELD_HELP else "")
                for field, value in shown.description_lines
            ],
        )
        if (facts := shown.facts) and facts.alignment:
            print_text(f"\nAlignment {facts.alignment}: {facts.alignment_reason or 'as asked'}.")
        if facts and facts.notes:
            print_text("\n".join(("", *facts.notes)))
        if scores:
            print_text("")
            print_table(("split", "task", "score", "by", "epoch", "beside"), _score_rows(shown, scores))
        print_text("")
        for event in events:
            print_text(f"{event.time:{UTC_FORMAT}} {event.kind}: {event.message}")
        if log:
            print_text(f"\n{shown.log}\n{tail(own_log(shown.log), log)}")


def _score_rows(run: RunWithFacts, scores: Sequence[StoredScore]) -> list[tuple[object, ...]]:
    """A row per score: the headline and the secondary scores."""
    rows: list[tuple[object, ...]] = []
    for score in scores:
        secondary = kind_of(run.task_facts, score.task, score.score_name).secondary_scores(score)
        beside = ", ".join(
            f"{name[0].lower()}{name[1:]} {percent(value)}"
            for name, value in secondary.items()
            if value is not None and name.lower() != score.score_name
        )
        headline = score_text(score.score, score.score_name)
        if not score.is_defined:
            beside = f"undefined: {score.reason}" + (f"; {beside}" if beside else "")
        rows.append((score.split, score.task, headline, score.score_name, score.epoch, beside))
    return rows


@app.command()
def metrics(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="loss, score, penalty, lr, ...; without it, the curves are listed."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only this task; 'total' for the whole.")] = None,
    split: Annotated[str | None, typer.Option(help="Only train or dev.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the curves of a run: a row per step, task and split."""
    with opened_store(ctx) as store:
        store.run(run)  # raises where there is no such run
        keys = store.metric_keys([run])
        if name is None:
            names = [(key.task or "total", key.split, key.name) for key in keys]
            print_rows(("task", "split", "name"), names, csv=csv, json_=json_)
            return
        chosen = [
            key
            for key in keys
            if key.name == name
            and (task is None or (key.task or "total") == task)
            and (split is None or key.split == split)
        ]
        if not chosen and (others := [key for key in keys if key.name == name]):
            asked = (f" of {shortened(task)}" if task else "") + (f" ({shortened(split)})" if split else "")
            has = first_of([f"{key.task or 'total'} ({key.split})" for key in others])
            raise MRNLabError(f"Run {run} has no {name}{asked}; it has that of {has}.")
        if not chosen:
            has = ", ".join(dict.fromkeys(key.name for key in keys)) or "none yet"
            raise MRNLabError(f"Run {run} has no such metric '{name}'; it has {has}.")
        rows = [
            (int(step), float(epoch), float(seconds), key.task or "total", key.split, float(value))
            for key in chosen
            for series in store.metrics([run], key)
            for step, epoch, seconds, value in zip(
                series.step, series.epoch, series.seconds, series.value, strict=True
            )
        ]
        rows.sort(key=lambda row: row[0])
        print_rows(("step", "epoch", "seconds", "task", "split", name), rows, csv=csv, json_=json_)
