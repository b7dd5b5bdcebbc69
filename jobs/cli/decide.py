"""mrnlab decide: adds seeds of two configurations until the differences between them are decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core.config.fields import comma_list
from core.config.typed import whole_number
from core.errors import ConfigError, MRNLabError
from core.evaluation.comparison import check_matters
from core.evaluation.looks import SHAPES, LooksError
from core.plain_text import shortened
from core.results.compared import row_named
from core.results.plan import SKEWED_NOTE, Plan, PlanState, state_document
from core.results.samples import DataGroup
from core.results.stored import PLANNED_SPLIT, stored_results
from core.results.table import ResultRow
from core.store import Store
from core.wording import duration, plural
from jobs.cli.app import app, check_numbers, opened_store
from jobs.cli.options import JSON_OPTION, grouped, number_option, one_of, run_number
from jobs.cli.output import log, print_json, print_table, print_text
from jobs.studies.decide import PlanOptions, decide, declare, looks_to_come, planned, state_of

_MOST_SEEDS = 1000


def looks_of(text: str) -> tuple[int, ...]:
    """The looks in a list of numbers, as `5,8,12,20`. Raises LooksError for other text."""
    numbers = [whole_number(word) for word in comma_list(text)]
    if not numbers or None in numbers or any(number and number > _MOST_SEEDS for number in numbers):
        problem = f"'{shortened(text)}' is no list of numbers of seeds up to {_MOST_SEEDS}; write 5,8,12,20."
        raise LooksError((), problem)
    return tuple(number for number in numbers if number is not None)


def points_of(text: str | float) -> float:
    """The smallest difference that matters, given in points, as a share. Raises ConfigError."""
    return check_matters(_number("matters", text, "points, as 0.5") / 100)


MATTERS_OPTION: Any = typer.Option(
    metavar="POINTS", help="The smallest difference that matters (default: 0.05).", parser=points_of
)


def alpha_of(text: str | float) -> float:
    """A probability as a number. Raises ConfigError for other text."""
    return _number("alpha", text, "a probability, as 0.05")


def minutes_of(text: str | float) -> float:
    """A number of minutes above 0. Raises ConfigError."""
    return _time_of("minutes", text, "minutes, as 30")


def hours_of(text: str | float) -> float:
    """A number of hours above 0. Raises ConfigError."""
    return _time_of("hours", text, "hours, as 2")


def _time_of(name: str, text: str | float, what: str) -> float:
    time = _number(name, text, what)
    if not 0 < time < 1e6:  # NaN too
        raise ConfigError(name, f"{name}: '{shortened(str(text))}' is not a number above 0.")
    return time


def _number(name: str, text: str | float, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(name, f"{name}: '{shortened(str(text))}' is no number of {what}.") from None


def rows_of(store: Store, run: int, baseline: int) -> tuple[ResultRow, ResultRow]:
    """The rows of the table in which both runs are. Raises MRNLabError where they are in none together."""
    check_numbers(store, (run, baseline))
    places: dict[int, tuple[DataGroup, ResultRow]] = {
        run_id: (group, row)
        for group, table in stored_results(store).tables(PLANNED_SPLIT).items()
        for run_id in (run, baseline)
        if (row := row_named(table, str(run_id), "run")) is not None
    }
    for run_id in (run, baseline):
        if run_id not in places:
            raise MRNLabError(f"Run {run_id} has no {PLANNED_SPLIT} score; its first seed must finish first.")
    (group, row), (other, base) = places[run], places[baseline]
    if group != other:
        raise MRNLabError(
            f"Run {run} is on {group.name}, and run {baseline} on {other.name}; only scores on the same text "
            "can be compared."
        )
    return row, base


def until_decided(
    store: Store,
    row: ResultRow,
    baseline: ResultRow,
    options: PlanOptions,
    *,
    minutes: float | None = None,
    dry_run: bool = False,
    json_: bool = False,
) -> None:
    """Declares the plan of these rows and trains its seeds until it has ended, or prints what it would do.

    Exits 1 where it has not ended: a run has failed, or the time is over.
    """
    plan = planned(store, row, baseline, options)
    if not dry_run:
        plan = declare(store, plan, minutes)
        log(f"{plan.title}: {plan.design}.")
        try:
            state = decide(store, plan, log)
        except KeyboardInterrupt:
            log("What is queued goes on in the background; the same command goes on with the plan.")
            raise typer.Exit(130) from None
    else:
        state = state_of(store, plan)
    if json_:
        print_json(state_document(state) | ({"to_come": _to_come(store, state)} if dry_run else {}))
    else:
        _print_state(state)
        if dry_run:
            _print_plan(store, state)
    if not (dry_run or state.has_ended):
        raise typer.Exit(1)


def _print_state(state: PlanState) -> None:
    rows = [(target, state.sentence(target)) for target in state.plan.targets]
    print_text(f"{state.plan.names[0]} less {state.plan.names[1]}")
    print_table(("difference", "verdict"), rows)
    if any(at.is_skewed for at in state.looks.values()):
        print_text(SKEWED_NOTE)


def _print_plan(store: Store, state: PlanState) -> None:
    plan: Plan = state.plan
    print_text(f"\n{plan.design}")
    rows = [
        (look.seeds, f"{look.level:.3g}", look.runs, "" if look.seconds is None else duration(look.seconds))
        for look in looks_to_come(store, state)
    ]
    print_table(("look at seeds", "level", "runs to train", "time"), rows)
    print_text(f"Each level is for one of {plural(len(plan.targets), 'difference')}.")


def _to_come(store: Store, state: PlanState) -> Sequence[dict[str, Any]]:
    return [vars(look) for look in looks_to_come(store, state)]


@dataclass(frozen=True)
class DecideOptions:
    """The options of `mrnlab decide` that declare a plan, as typed; None where one is not given."""

    looks: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Test after so many seeds (default: 5,8,12,20)."),
    ] = None
    most_seeds: Annotated[
        int | None, number_option("--most-seeds", "No more seeds than this.", 2, _MOST_SEEDS)
    ] = None
    matters: Annotated[float | None, MATTERS_OPTION] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="The probability of an error in any difference (default: 0.05).",
            parser=alpha_of,
        ),
    ] = None
    shape: Annotated[
        str | None,
        typer.Option(metavar="|".join(SHAPES), help="How looks spend it.", parser=one_of("--shape", SHAPES)),
    ] = None
    task: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these tasks (default: all in common).")
    ] = None
    mean: Annotated[bool, typer.Option("--mean", help="Decide the mean over the tasks alone.")] = False

    @property
    def plan(self) -> PlanOptions:
        """What they ask of a plan. Raises LooksError and ConfigError."""
        tasks = None if self.task is None else tuple(dict.fromkeys(comma_list(self.task)))
        if tasks == ():
            raise ConfigError("task", f"task: '{shortened(self.task or '')}' names no task.")
        return PlanOptions(
            looks=None if self.looks is None else looks_of(self.looks),
            most_seeds=self.most_seeds,
            matters=self.matters,
            alpha=self.alpha,
            shape=self.shape,
            tasks=tasks,
            of_mean=True if self.mean else None,
        )


@app.command("decide")
@grouped
def decide_verb(
    ctx: typer.Context,
    run: Annotated[
        int, typer.Argument(metavar="RUN", help="A run of the first configuration.", parser=run_number)
    ],
    baseline: Annotated[
        int, typer.Argument(metavar="BASELINE", help="A run of the other configuration.", parser=run_number)
    ],
    asked: DecideOptions,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="Begin no look that ends later than in M minutes.", parser=minutes_of),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print looks, levels, runs and time; declare and run nothing.")
    ] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Add seeds of two configurations until the differences between them are decided.

    The plan is declared before its first look and kept. At a look each difference is tested at a level that
    keeps all looks together at 0.05; it ends at higher, lower or equivalent, or after the last look. Ctrl-C
    or a kill loses nothing: the same command goes on.
    """
    options = asked.plan
    with opened_store(ctx) as store:
        rows = rows_of(store, run, baseline)
        until_decided(store, *rows, options, minutes=minutes, dry_run=dry_run, json_=json_)
