"""A part of a study as the table of a paper: our figures beside the published ones, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.costs import Cost
from core.evaluation.statistics import MeanSD
from core.studies.analysis import Result
from core.studies.published import ABOVE, BELOW, WITHIN, Published, Reported
from core.studies.study import Study

__all__ = ["Cell", "Row", "TableView", "table_view"]


@dataclass(frozen=True)
class Cell:
    """One model's scores on one task: ours, and the published figure where both mean the same."""

    ours: MeanSD | None
    published: Published | None

    @property
    def verdict(self) -> str:
        """`WITHIN`, `ABOVE` or `BELOW`; empty where either figure is missing."""
        return "" if self.ours is None or self.published is None else self.published.verdict(self.ours.mean)


@dataclass(frozen=True)
class Row:
    """A model under a paradigm, such as `BERT (STL)`: what dev chose (`open` until then), a cell per task."""

    model: str
    chosen: str
    cells: Mapping[str, Cell]
    cost: Cost | None


@dataclass(frozen=True)
class TableView:
    """The whole table. `reported` are the rows that the paper quotes from the literature."""

    title: str
    tasks: tuple[str, ...]
    reported: tuple[Reported, ...]
    rows: tuple[Row, ...]

    @property
    def summary(self) -> str:
        """How many figures agree with the published ones, in a sentence."""
        counts = Counter(cell.verdict for row in self.rows for cell in row.cells.values())
        compared = counts[WITHIN] + counts[ABOVE] + counts[BELOW]
        if not compared:
            return "No figure of ours stands beside a published one yet."
        return (
            f"Figures beside a published one: {compared}. Within its standard deviation: {counts[WITHIN]}, "
            f"above: {counts[ABOVE]}, below: {counts[BELOW]}."
        )


def table_view(study: Study, part: str, results: Sequence[Result]) -> TableView | None:
    """The table that this part repeats, from the results that belong to it; None where there is none."""
    paper = study.papers.get(part)
    of_part = [result for result in results if result.setting.part == part]
    if paper is None or not of_part:
        return None
    tasks = of_part[0].setting.targets
    rows = [
        Row(
            f"{paper.models[result.setting.name]} ({outcome.family.title})",
            outcome.arm_told if outcome.arm is not None else "open",
            {task: Cell(outcome.scores.get(task), outcome.published.get(task)) for task in tasks},
            outcome.cost,
        )
        for result in of_part
        for outcome in result.outcomes
    ]
    return TableView(paper.title, tasks, paper.reported, tuple(rows))
