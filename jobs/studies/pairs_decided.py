"""Seeds until decided over the pairs of a study: each look goes to the pair that is nearest a verdict.

Each ordered pair has a plan of its own (`jobs.studies.decide`): MTL of both tasks against STL of the main
one. Alpha is split over the auxiliary tasks of a main task (Bonferroni), which are a family in the matrix
too. Which plan goes on may depend on scores, since each keeps its level wherever it stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from core.evaluation.power import MOST_SEEDS, seeds_to_decide
from core.evaluation.statistics import paired_difference
from core.results.plan import ALPHA, Plan, PlanDeclared, PlanState, plan_state
from core.results.stored import PLANNED_SPLIT, side_scores, stored_results
from core.results.table import ResultRow
from core.store import Store
from core.studies.study import SettingRuns
from jobs.engines import Engine
from jobs.studies.decide import PlanOptions, declare, planned, take_look


@dataclass(frozen=True)
class PairPlan:
    """The plan of an ordered pair, its state, and how many seeds would probably decide it."""

    main: str
    aux: str
    state: PlanState
    more: int

    @property
    def sentence(self) -> str:
        """`ner beside pos: second of four looks: undecided, …`."""
        return f"{self.main} beside {self.aux}: {self.state.sentence(self.main)}"


def pair_plans(store: Store, settings: Sequence[SettingRuns]) -> list[PairPlan]:
    """The plans of the pairs of these settings that have runs, the nearest to a verdict first.

    Plans that were declared before are as they were declared.
    """
    results = stored_results(store)
    runs = {run.id: run for of_group in results.groups.values() for run in of_group}
    seeds = {run.id: run.config.seed for run in runs.values()}
    rows = {
        runs[run_id].configuration_id: row
        for table in results.tables(PLANNED_SPLIT).values()
        for row in table.rows
        for run_id in row.run_ids
    }
    pairs = [each for each in settings if {"stl", "mtl"} <= each.candidates.keys()]
    partners: dict[tuple[str, str], int] = {}
    for each in pairs:
        for task in each.setting.targets:
            partners[each.setting.part, task] = partners.get((each.setting.part, task), 0) + 1
    pair_plans = []
    for each in pairs:
        seed = each.seeds[0]
        (joint,) = each.candidates["mtl"][0].runs[seed]
        alone = {run.tasks[0]: run for run in each.candidates["stl"][0].runs[seed]}
        for main in each.setting.targets:
            row, base = rows.get(joint.configuration_id), rows.get(alone[main].configuration_id)
            if row is None or base is None or not {main} <= row.cells.keys() & base.cells.keys():
                continue
            (aux,) = set(each.setting.targets) - {main}
            alpha = ALPHA / partners[each.setting.part, main]
            named = replace(row, name=f"MTL of {main} and {aux}"), replace(base, name=f"STL of {main}")
            try:
                plan = planned(store, *named, PlanOptions(tasks=(main,), alpha=alpha))
            except PlanDeclared as declared:
                plan = declared.plan
            state = plan_state(plan, side_scores(row, seeds), side_scores(base, seeds))
            pair_plans.append(PairPlan(main, aux, state, _more_seeds(plan, row, base, main)))
    return sorted(pair_plans, key=lambda pair: pair.more)


def _more_seeds(plan: Plan, row: ResultRow, base: ResultRow, main: str) -> int:
    """The seeds to a verdict at the last look's level; more than MOST_SEEDS where none are foreseen."""
    paired = paired_difference(row.cells[main].by_seed, base.cells[main].by_seed)
    needed = None if paired is None else seeds_to_decide(paired, matters=plan.matters, level=plan.levels[-1])
    return MOST_SEEDS + 1 if needed is None or needed.more is None else needed.more


def decide_pairs(
    store: Store,
    settings: Sequence[SettingRuns],
    report: Callable[[str], object],
    *,
    ends_at: float | None = None,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> list[PairPlan]:
    """Takes look after look of the pair nearest a verdict, until all plans have ended or the time is over.

    `ends_at` is a time of the store's clock. A pair whose look fails, or would end too late, is passed over.
    Returns all pairs with their plans; what passed one over was reported.
    """
    passed: set[str] = set()
    while True:
        pairs = pair_plans(store, settings)
        open_ = [pair for pair in pairs if not (pair.state.has_ended or pair.state.plan.key in passed)]
        if not open_:
            return pairs
        pair = open_[0]
        plan = declare(store, pair.state.plan)
        state = take_look(store, plan, pair.state, report, ends_at=ends_at, engine=engine, sleep=sleep)
        if state is None:
            passed.add(plan.key)
        else:
            report(f"{replace(pair, state=state).sentence}.")
