"""The answer of a comparison: methods against a baseline on each data, and claims that hold or do not."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.errors import ConfigError
from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER
from core.plain_text import shortened
from core.results.comparisons import Difference, answers, differences, headline, mean_answer, mean_differences
from core.results.naming import LAMBDA
from core.results.pairs import default_pair
from core.results.records import DIFFERENCE_COLUMNS, difference_records
from core.results.signature import signature
from core.results.stored import Results
from core.results.table import MEAN_OF_TASKS, ResultRow, ResultTable
from core.wording import first_of, plural

COMPARED_COLUMNS = ("data", *DIFFERENCE_COLUMNS, "more_seeds")
_CLAIM = re.compile(r"\s*(?P<row>.+?)\s*(?P<sign>[<>=])\s*(?P<base>.+?)\s+on\s+(?P<task>.+?)\s*")
_VERDICTS: Mapping[str, str] = {">": HIGHER, "<": LOWER, "=": EQUIVALENT}


@dataclass(frozen=True)
class Compared:
    """The rows of one data with their differences from a baseline, task by task and in the mean over tasks.

    `is_asked`: the reader named the baseline, so that the family is each other row against it; else it is all
    pairs of rows, and the baseline is that of the first comparison on the page.
    """

    data: str
    table: ResultTable
    baseline: ResultRow
    differences: tuple[Difference, ...]
    is_asked: bool

    @property
    def sentences(self) -> list[str]:
        """A sentence for each row on its differences from the baseline, with what would decide others."""
        sentences = []
        for row in self.table.rows:
            of_row = [delta for delta in self.differences if delta.row.key == row.key]
            if of_row:
                of_tasks = [delta for delta in of_row if delta.task != MEAN_OF_TASKS]
                sentences.append(headline(row.name, self.baseline.name, of_tasks or of_row))
                if of_tasks:
                    means = (delta for delta in of_row if delta.task == MEAN_OF_TASKS)
                    sentences += [f"{delta.task}: {delta.sentence}." for delta in means]
                sentences += [
                    f"{delta.task}: {needed.sentence[:1].lower()}{needed.sentence[1:]} would decide it."
                    for delta in of_row
                    if (needed := delta.seeds_needed) is not None
                ]
        return sentences

    @property
    def signature(self) -> str:
        """What the verdicts depend on, in a line."""
        return signature(self.table)

    @property
    def records(self) -> list[dict[str, object]]:
        """A record of COMPARED_COLUMNS for each difference, scores in [0, 1].

        `more_seeds` would decide an undecided one; None where it is decided, or needs more than are planned.
        """
        return [
            {"data": self.data} | record | {"more_seeds": needed and needed.more}
            for record, needed in zip(
                difference_records(self.differences, self.table),
                (delta.seeds_needed for delta in self.differences),
                strict=True,
            )
        ]


def compared(
    results: Results,
    split: str = "test",
    *,
    baseline: str | None = None,
    matters: float | None = None,
    tasks: Collection[str] | None = None,
    every_row: bool = False,
) -> list[Compared]:
    """The comparisons of each data on that split: of methods, with `every_row` of all configurations.

    `baseline` is the name of a row, of its method or its paradigm; data without it are left out. Without, it
    is the second row of `default_pair`. `matters` in [0, 1] is the smallest difference that matters. `tasks`
    are shown; the correction counts all rows on a task. Raises ConfigError for a baseline that no data has,
    or several rows of one, and for a task that none has.
    """
    tables = {group.name: table for group, table in results.method_tables(split, every_row=every_row).items()}
    named = dict.fromkeys(task for table in tables.values() for task in (*table.scored_tasks, MEAN_OF_TASKS))
    if tables and (unknown := [task for task in tasks or () if task not in named]):
        raise ConfigError(
            "task", f"task: '{shortened(unknown[0])}' has no {split} score; name {first_of(list(named))}."
        )
    comparisons = []
    for data, table in tables.items():
        pair = default_pair(table)
        row = None if pair is None else table.row(pair[1])
        if baseline is not None:
            row = row_named(table, baseline, "baseline")
        if row is None:
            continue
        asked = table.asking(matters=matters, baseline=None if baseline is None else row.key)
        deltas = (*differences(asked, row.key), *mean_differences(asked, row.key))
        shown = tuple(delta for delta in deltas if tasks is None or delta.task in tasks)
        comparisons.append(Compared(data, asked, row, shown, baseline is not None))
    if baseline is not None and tables and not comparisons:
        names = dict.fromkeys(row.name for table in tables.values() for row in table.rows)
        raise ConfigError(
            "baseline", f"baseline: no row is called '{shortened(baseline)}'; name {first_of(list(names))}."
        )
    return comparisons


def row_named(table: ResultTable, name: str, field: str) -> ResultRow | None:
    """The row with this name: its own, that of its method or candidate, or its paradigm, in any case.

    A number is that of a run, and `MRN 0.3` stands for `MRN λ=0.3`. None where there is no such row. Raises
    ConfigError, which names the `field`, where several fit.
    """
    wanted = _typed(name)
    if wanted.isdecimal():
        return next((row for row in table.rows if any(int(wanted) in of.run_ids for of in row.tried)), None)
    for names in (
        lambda row: (row.name, row.label, row.chosen),
        lambda row: (row.method,),
        lambda row: (row.config.paradigm,),
    ):
        fitting = [row for row in table.rows if wanted in map(_typed, names(row))]
        if len(fitting) > 1:
            rows = first_of([row.name for row in fitting])
            raise ConfigError(
                field, f"{field}: '{shortened(name)}' is the name of {plural(len(fitting), 'row')}: {rows}."
            )
        if fitting:
            return fitting[0]
    return None


def _typed(name: str) -> str:
    """The name as it is typed at a terminal: in lower case, without `λ=`."""
    return name.strip().casefold().replace(LAMBDA, "")


@dataclass(frozen=True)
class Claim:
    """An expected verdict on the difference of two rows on a task, as `mrn > mtl on ner`."""

    text: str
    row: str
    base: str
    verdict: str
    task: str


def parse_claim(text: str) -> Claim:
    """Reads `mrn > mtl on ner`, also `<` and `=` (equivalent). Raises ConfigError."""
    match = _CLAIM.fullmatch(text)
    if match is None:
        raise ConfigError(
            "expect",
            f"expect: '{shortened(text)}' is no claim; write 'mrn > mtl on ner', with >, < or =.",
        )
    return Claim(text.strip(), match["row"], match["base"], _VERDICTS[match["sign"]], match["task"])


def failures(claim: Claim, comparisons: Sequence[Compared]) -> list[str]:
    """A sentence for each data on which the claim does not hold; it is asked of all that have both rows.

    Raises ConfigError where no data has both rows with a score on the task.
    """
    sentences, is_answered = [], False
    for each in comparisons:
        row, base = (row_named(each.table, name, "expect") for name in (claim.row, claim.base))
        delta = None if row is None or base is None else _difference(each.table, row, base, claim.task)
        if delta is None:
            continue
        is_answered = True
        if delta.verdict != claim.verdict:
            sentences.append(f"'{claim.text}' does not hold on {each.data}: {delta.sentence}.")
    if not is_answered:
        rows = dict.fromkeys(row.name for each in comparisons for row in each.table.rows)
        tasks = dict.fromkeys(task for each in comparisons for task in each.table.scored_tasks)
        raise ConfigError(
            "expect",
            f"expect: '{shortened(claim.text)}' names no two rows that are compared on a task; rows are "
            f"{first_of(list(rows))}, tasks {first_of([*tasks, MEAN_OF_TASKS])}.",
        )
    return sentences


def _difference(table: ResultTable, row: ResultRow, base: ResultRow, task: str) -> Difference | None:
    if task == MEAN_OF_TASKS:
        return mean_answer(table, row.key, base.key)
    return next((delta for delta in answers(table, row.key, base.key) if delta.task == task), None)
