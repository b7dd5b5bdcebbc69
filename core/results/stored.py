"""The results of a store: its successful runs by data, with their scores, as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.results.samples import DataGroup, group_by_data, readable
from core.results.table import ResultTable, tabulate
from core.store import Conditions, Run, RunState, Store, StoredScore


@dataclass(frozen=True)
class Results:
    """The runs that count, by the data that must not be mixed, with their conditions and scores.

    `note` is a sentence on successful runs that cannot be read; empty where there are none.
    """

    groups: Mapping[DataGroup, Sequence[Run]]
    conditions: Mapping[int, Conditions]
    scores: Sequence[StoredScore]
    note: str = ""

    def table(self, group: DataGroup, split: str, tasks: Sequence[str] | None = None) -> ResultTable:
        """The table of a group's scores on that split (`tabulate`)."""
        return tabulate(self.groups[group], self.scores, split, tasks, self.conditions)

    def tables(self, split: str) -> dict[DataGroup, ResultTable]:
        """The tables of all groups with scores on that split."""
        tables = {group: self.table(group, split) for group in self.groups}
        return {group: table for group, table in tables.items() if table.rows}


def stored_results(
    store: Store, run_ids: Collection[int] | None = None, *, with_facts: bool = False
) -> Results:
    """The results of these runs, or of all that are not archived. Costs need `with_facts`."""
    succeeded = store.runs(run_ids, states={RunState.SUCCEEDED}, with_facts=with_facts)
    conditions = store.conditions(succeeded)
    runs, note = readable(succeeded, conditions)
    scores = store.scores([run.id for run in runs], with_reports=False)
    return Results(group_by_data(runs, conditions), conditions, scores, note)
