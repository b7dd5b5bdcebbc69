"""The results of a store: its successful runs by data, with their scores, as tables; the state of plans."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from core.config import RunConfig, comparison_key
from core.results.methods import by_method
from core.results.plan import Plan, PlanState, PlanUnreadable, SideScores, plan_state
from core.results.samples import DataGroup, group_by_data, readable
from core.results.table import ResultRow, ResultTable, tabulate
from core.store import Conditions, Run, RunState, Store, StoredScore


@dataclass(frozen=True)
class Results:
    """The runs that count, by the data that must not be mixed, with their conditions and scores.

    `note` is a sentence on successful runs that cannot be read; empty where there are none. `plans` are those
    of the store, in the order in which they were declared.
    """

    groups: Mapping[DataGroup, Sequence[Run]]
    conditions: Mapping[int, Conditions]
    scores: Sequence[StoredScore]
    note: str = ""
    plans: Sequence[Plan] = ()

    def table(self, group: DataGroup, split: str, tasks: Sequence[str] | None = None) -> ResultTable:
        """The table of a group's scores on that split (`tabulate`), with a note on each plan of its rows."""
        table = tabulate(self.groups[group], self.scores, split, tasks, self.conditions)
        states = [self._state(plan, group, table) for plan in self.plans] if split == PLANNED_SPLIT else []
        return replace(table, notes=(*table.notes, *(state.note for state in states if state is not None)))

    def tables(self, split: str) -> dict[DataGroup, ResultTable]:
        """The tables of all groups with scores on that split."""
        tables = {group: self.table(group, split) for group in self.groups}
        return {group: table for group, table in tables.items() if table.rows}

    def method_tables(self, split: str, *, every_row: bool = False) -> dict[DataGroup, ResultTable]:
        """The tables with a row a method (`by_method`); with `every_row` a row a configuration."""
        tables = self.tables(split)
        return tables if every_row else {group: by_method(table) for group, table in tables.items()}

    def state(self, plan: Plan) -> PlanState:
        """The state of a plan by these results."""
        states = (
            self._state(plan, group, tabulate(runs, self.scores, PLANNED_SPLIT, None, self.conditions))
            for group, runs in self.groups.items()
        )
        return next((state for state in states if state is not None), plan_state(plan, {}, {}))

    def _state(self, plan: Plan, group: DataGroup, table: ResultTable) -> PlanState | None:
        """The state of a plan by a group's table; None where neither configuration is in it on its text."""
        rows = [
            max(
                (row for row in table.rows if is_side(row, side, plan.text)),
                key=lambda row: (row.seeds, row.run_ids),
                default=None,
            )
            for side in plan.sides()
        ]
        if rows == [None, None]:
            return None
        seeds = {run.id: run.config.seed for run in self.groups[group]}
        return plan_state(plan, *(side_scores(row, seeds) for row in rows))


PLANNED_SPLIT = "test"
"""The split whose scores decide a plan."""


def is_side(row: ResultRow, side: Sequence[RunConfig], text: str | None) -> bool:
    """Whether a row of a table has the configuration that a plan has on one side, on the plan's text."""
    return row.conditions.text in (text, None) and comparison_key(row.config) == comparison_key(side[0])


def side_scores(row: ResultRow | None, seeds: Mapping[int, int]) -> SideScores:
    """The scores of a row as a plan reads them; `seeds` are those of the runs, by id."""
    if row is None:
        return {}
    scores: dict[str, dict[int, float | None]] = {
        task: {seeds[run_id]: None for run_id in run_ids} for task, run_ids in row.undefined.items()
    }
    for task, cell in row.cells.items():
        scores.setdefault(task, {}).update(cell.by_seed)
    return scores


def stored_plans(store: Store) -> list[Plan]:
    """The plans of a store that this version can read, in the order in which they were declared."""
    plans = []
    for stored in store.plans():
        with contextlib.suppress(PlanUnreadable):  # one of another version must not hide all tables
            plans.append(Plan.from_json(stored.plan))
    return plans


def stored_results(
    store: Store, run_ids: Collection[int] | None = None, *, with_facts: bool = False
) -> Results:
    """The results of these runs, or of all that are not archived. Costs need `with_facts`."""
    listed: Callable[..., Sequence[Run]] = store.runs_with_facts if with_facts else store.runs
    succeeded = listed(run_ids, states={RunState.SUCCEEDED})
    conditions = store.conditions(succeeded)
    runs, note = readable(succeeded, conditions)
    scores = store.scores([run.id for run in runs], with_reports=False)
    return Results(group_by_data(runs, conditions), conditions, scores, note, stored_plans(store))
