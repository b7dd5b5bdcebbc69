"""Seeds until decided: declares a plan, and trains its seeds look by look until its differences are decided.

A look is a small study of two methods, which `follow` runs like any other: its runs are found by their
description, and after a kill it goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from core.config import OTHER, RunConfig
from core.config.sweep import with_seeds
from core.corpora.loading import read
from core.errors import ConfigError, MRNLabError
from core.evaluation.looks import OBRIEN_FLEMING, check_looks
from core.evaluation.statistics import MATTERS
from core.results.plan import (
    ALPHA,
    LOOKS,
    Plan,
    PlanDeclared,
    PlanState,
    looks_within,
    plan_seeds,
    plan_state,
)
from core.results.stored import is_side, stored_plans, stored_results
from core.results.table import ResultRow
from core.store import RunState, Store
from core.studies.study import Candidate, Method, Setting, SettingRuns, Study
from core.wording import all_of, duration
from jobs.engines import Engine
from jobs.queue.estimates import cost, costs
from jobs.studies.follow import follow
from jobs.studies.followers import start_follower

_SIDES = ("row", "baseline")


class LookNotTaken(MRNLabError):
    """All runs of a look have succeeded, and the tables lack some of them."""

    def __init__(self, plan: Plan, seeds: Sequence[int]) -> None:
        super().__init__(
            f"The runs of {plan.names[0]} and {plan.names[1]} with seeds {', '.join(map(str, seeds))} have "
            "finished, but the table of results lacks some of them: they are archived, or trained on another "
            "text or in another precision than the newest. Restore them, or archive the newest."
        )
        self.seeds = tuple(seeds)


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan; None: the default of a new one, and as declared where there is one.

    `matters` is in [0, 1], `tasks` are by default all that both configurations have.
    """

    looks: tuple[int, ...] | None = None
    most_seeds: int | None = None
    matters: float | None = None
    alpha: float | None = None
    shape: str | None = None
    tasks: tuple[str, ...] | None = None
    of_mean: bool | None = None


def planned(store: Store, row: ResultRow, baseline: ResultRow, options: PlanOptions) -> Plan:
    """The plan of these rows of a table: the one that was declared, or a new one, which is not stored yet.

    Raises PlanDeclared where another was declared, LooksError, ConfigError, and MRNLabError where there is no
    task in common, the corpus has changed, or a row is of a system trained elsewhere.
    """
    for system in (each.config.system for each in (row, baseline) if each.config.paradigm == OTHER):
        raise MRNLabError(
            f"The predictions of {system} were imported, so no seeds of it can be trained here. Import more "
            "with `mrnlab import-predictions`, and compare."
        )
    order = [*max(row.config.tasks, baseline.config.tasks, key=len), *row.cells]
    common = tuple(dict.fromkeys(task for task in order if task in row.cells and task in baseline.cells))
    tasks = tuple(task for task in common if options.tasks is None or task in options.tasks)
    if missing := [task for task in options.tasks or () if task not in common]:
        raise ConfigError(
            "task",
            f"task: {row.name} and {baseline.name} have no test score of {all_of(missing)} in common; "
            f"their common tasks: {', '.join(common) or 'none'}.",
        )
    if not tasks:
        raise MRNLabError(f"{row.name} and {baseline.name} have no task in common.")
    looks = looks_within(options.looks or LOOKS, options.most_seeds)
    check_looks(looks)  # else there are no seeds to choose
    first, second = (
        set.intersection(*(set(each.cells[task].by_seed) for task in tasks)) for each in (row, baseline)
    )
    plan = Plan(
        _side(store, row, tasks),
        _side(store, baseline, tasks),
        names=(row.name, baseline.name),
        tasks=tasks,
        seeds=plan_seeds(first, second, looks[-1]),
        looks=looks,
        matters=MATTERS if options.matters is None else options.matters,
        alpha=ALPHA if options.alpha is None else options.alpha,
        shape=options.shape or OBRIEN_FLEMING,
        of_mean=bool(options.of_mean),
        text=row.conditions.text or baseline.conditions.text,
        seeds_before=len(first & second),
    )
    for other in stored_plans(store):
        if plan.has_overlap(other):
            if plan.sides() == other.sides() and (options == PlanOptions() or plan.same_design(other)):
                return other
            raise PlanDeclared(other)
    check_text(plan)
    return plan


def plan_between(store: Store, row: ResultRow, baseline: ResultRow) -> Plan | None:
    """The first declared plan of these rows; None where there is none."""
    for plan in stored_plans(store):
        if is_side(row, plan.row, plan.text) and is_side(baseline, plan.baseline, plan.text):
            return plan
    return None


def _side(store: Store, row: ResultRow, tasks: Sequence[str]) -> tuple[RunConfig, ...]:
    """The configurations of a row that have these tasks: of STL one for each, in their order."""
    runs = store.runs(row.run_ids)
    configs = list(dict.fromkeys(run.config.model_copy(update={"seed": 0}) for run in runs))
    if row.config.added_to is not None:
        raise MRNLabError(
            f"{row.name} adds its task to other runs; seeds until decided are for runs that stand alone."
        )
    if row.config.paradigm != "stl":
        return tuple(configs)
    return tuple(config for task in tasks for config in configs if config.tasks == (task,))


def check_text(plan: Plan) -> None:
    """Raises MRNLabError where the corpus is no longer that of the plan, CorpusError where it is not here."""
    config = plan.row[0]
    if plan.text not in (None, read(config.corpus, config.columns).text_hash):
        raise MRNLabError(
            f"The corpus {config.corpus} has changed since these runs were trained: new seeds would be on "
            "other text. Put the text back, or train both configurations on the new one first."
        )


def declare(store: Store, plan: Plan, minutes: float | None = None) -> Plan:
    """Stores the plan unless it is, sets its end, and returns the stored one.

    Raises PlanDeclared where another process has declared one meanwhile.
    """
    with store.queueing_alone():
        stored = Plan.from_json(store.declare_plan(plan.key, plan.to_json()).plan)
        if not plan.same_design(stored):
            raise PlanDeclared(stored)
        store.end_plan_at(plan.key, None if minutes is None else store.now() + 60 * minutes)
    return stored


def state_of(store: Store, plan: Plan) -> PlanState:
    """The state of the plan by the results of the store."""
    configurations = {config.configuration_id for side in plan.sides() for config in side}
    runs = store.runs_of(configurations, {RunState.SUCCEEDED})
    return stored_results(store, [run.id for run in runs]).state(plan) if runs else plan_state(plan, {}, {})


def follower_name(plan: Plan) -> str:
    """The name of the plan's follower, and of the studies that are its looks."""
    return f"until-decided-{plan.key[:8]}"


def look_runs(plan: Plan, seeds: Sequence[int], tasks: Sequence[str]) -> SettingRuns:
    """The runs of both configurations with these seeds, as a study; of STL those of these tasks."""
    methods = tuple(
        Method(side, name, ({"paradigm": configs[0].paradigm},))
        for side, name, configs in zip(_SIDES, plan.names, plan.sides(), strict=True)
    )
    setting = Setting(
        f"{len(seeds)} seeds", plan.title, "until decided", {"tasks": plan.tasks}, tuple(tasks), _SIDES
    )
    study = Study(
        follower_name(plan),
        "Seeds until decided",
        plan.title,
        (setting,),
        methods,
        _SIDES[1],
        search_seeds=tuple(seeds[:1]),
        seeds=tuple(seeds),
    )
    candidates: dict[str, tuple[Candidate, ...]] = {}
    for method, configs in zip(methods, plan.sides(), strict=True):
        needed = [config for config in configs if config.paradigm != "stl" or config.tasks[0] in tasks]
        by_seed = zip(*(with_seeds(config, seeds) for config in needed), strict=True)
        runs: Mapping[int, tuple[RunConfig, ...]] = dict(zip(seeds, by_seed, strict=True))
        candidates[method.name] = (Candidate(method.candidates[0], runs, runs),)
    return SettingRuns(study, setting, study.methods_in(setting), candidates)


@dataclass(frozen=True)
class LookToCome:
    """A look with its level, its runs that are to be trained after those before it, and their seconds."""

    seeds: int
    level: float
    runs: int
    seconds: float | None


def looks_to_come(store: Store, state: PlanState) -> list[LookToCome]:
    """The looks that are not taken, were each difference open until the last."""
    plan = state.plan
    lots, planned_runs = [], _succeeded(store, plan)
    for count in plan.looks[state.taken :] if state.open else ():
        runs = look_runs(plan, plan.seeds[:count], state.open_tasks).runs()
        lots.append([run for run in runs if run not in planned_runs])
        planned_runs |= set(lots[-1])
    return [
        LookToCome(seeds, level, len(lot), estimate.seconds)
        for seeds, level, lot, estimate in zip(
            plan.looks[state.taken :], plan.levels[state.taken :], lots, costs(store, lots), strict=False
        )
    ]


def _succeeded(store: Store, plan: Plan) -> set[RunConfig]:
    configurations = {config.configuration_id for side in plan.sides() for config in side}
    return {run.config for run in store.runs_of(configurations, {RunState.SUCCEEDED})}


def decide(
    store: Store,
    plan: Plan,
    report: Callable[[str], object],
    *,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> PlanState:
    """Trains the seeds of look after look until the declared plan has ended, or its time is over.

    Returns its state, which has not ended where the time is over or a run has failed: both are reported.
    Raises MRNLabError, also where the corpus has changed.
    """
    state = state_of(store, plan)
    _report_looks(report, None, state)
    while not state.has_ended:
        (stored,) = store.plans([plan.key])
        ends_at = None if stored.ends_at is None else stored.ends_at.timestamp()
        after = take_look(store, plan, state, report, ends_at=ends_at, engine=engine, sleep=sleep)
        if after is None:
            return state
        _report_looks(report, state, after)
        state = after
    return state


def take_look(
    store: Store,
    plan: Plan,
    state: PlanState,
    report: Callable[[str], object],
    *,
    ends_at: float | None = None,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> PlanState | None:
    """Trains the seeds of the next look, and returns the state after it.

    None where a run has failed, or the time is over or too short for it: both are reported.
    Raises MRNLabError, also where the corpus has changed.
    """
    check_text(plan)
    setting_runs = look_runs(plan, state.next_seeds, state.open_tasks)
    if problem := _out_of_time(store, plan, setting_runs, ends_at):
        report(problem)
        return None
    is_over = partial(_is_over, store, ends_at)
    run_all = partial(follow, store, [setting_runs], report, stages=False, is_over=is_over)
    if not run_all(engine=engine, sleep=sleep):
        if is_over():
            report("The time is over: runs that wait are stopped. The same command goes on.")
        return None
    after = state_of(store, plan)
    if after.taken == state.taken:
        raise LookNotTaken(plan, state.next_seeds)
    return after


def _report_looks(report: Callable[[str], object], before: PlanState | None, state: PlanState) -> None:
    for target, at in state.looks.items():
        if before is None or before.looks.get(target) != at:
            report(f"{target}: {state.sentence(target)}.")


def _is_over(store: Store, ends_at: float | None) -> bool:
    return ends_at is not None and store.now() >= ends_at


def _out_of_time(store: Store, plan: Plan, setting_runs: SettingRuns, ends_at: float | None) -> str:
    """Why the next look is not begun; empty where it may be."""
    if ends_at is None:
        return ""
    missing = [run for run in setting_runs.runs() if run not in _succeeded(store, plan)]
    needed, left = cost(store, missing).seconds or 0.0, ends_at - store.now()
    if left > needed:
        return ""
    return (
        f"The next look, at {setting_runs.setting.name}, needs about {duration(needed)}, and "
        f"{duration(max(0.0, left))} is left. The same command with more time goes on."
    )


def start_deciding(store: Store, plan: Plan, runs: tuple[int, int], minutes: float | None = None) -> Plan:
    """Declares the plan, and starts a process that decides it unless one does; returns the stored plan.

    `runs` are one of each configuration, by which the process names them.
    """
    stored = declare(store, plan, minutes)
    limit = [] if minutes is None else ["--minutes", f"{minutes:g}"]
    start_follower(store, follower_name(stored), ["decide", *map(str, runs), *limit])
    return stored
