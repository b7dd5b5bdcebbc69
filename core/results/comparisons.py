"""Differences between the rows of a table, with their verdicts over seeds and over sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from core.evaluation.comparison import (
    EQUIVALENT,
    HIGHER,
    LOWER,
    UNDECIDED,
    VERDICTS,
    Comparison,
    verdict_text,
)
from core.evaluation.repeated import is_skewed
from core.evaluation.statistics import Randomised, holm
from core.results.table import MEAN_OF_TASKS, ResultRow, ResultTable
from core.wording import all_of, plural, signed_points

Tested = Randomised | str
"""The result of a test over sentences, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class Difference(Comparison):
    """A row minus another on one task, or (MEAN_OF_TASKS) in the mean over tasks.

    `p_sentences` is corrected for the differences from the baseline; `untested` is the reason why there is no
    test over sentences.
    """

    row: ResultRow
    base: ResultRow
    task: str
    sentences: Randomised | None = None
    p_sentences: float | None = None
    untested: str = ""

    @property
    def title(self) -> str:
        """Both rows: `MTL − STL`, `MTL − STL · minilm, frozen`."""
        a, b = self.row, self.base
        if a.block != b.block or a.label == a.name:
            return f"{a.name} − {b.name}"
        return f"{a.label} − {b.label} · {a.block}"

    def reversed(self) -> Self:
        """The baseline less the row."""
        return replace(super().reversed(), row=self.base, base=self.row)


def answers(table: ResultTable, a: str, b: str) -> list[Difference]:
    """The difference of two rows on each task that both have; none where the table does not compare them."""
    return [
        Difference(**vars(comparison), row=table.row(a), base=table.row(b), task=task)
        for task in table.tasks
        if (comparison := table.comparisons[task].get((a, b))) is not None
    ]


def differences(table: ResultTable, baseline: str) -> list[Difference]:
    """The differences of every row from the row of that key, task by task."""
    others = [row.key for row in table.rows if row.key != baseline]
    return [delta for key in others for delta in answers(table, key, baseline)]


def mean_answer(table: ResultTable, a: str, b: str) -> Difference | None:
    """The difference of two rows in the mean over tasks; None unless both have the same tasks, several."""
    comparison = table.mean_comparisons.get((a, b))
    if comparison is None:
        return None
    return Difference(**vars(comparison), row=table.row(a), base=table.row(b), task=MEAN_OF_TASKS)


def mean_differences(table: ResultTable, baseline: str) -> list[Difference]:
    """The differences of every row from the row of that key in the mean over tasks."""
    deltas = (mean_answer(table, row.key, baseline) for row in table.rows if row.key != baseline)
    return [delta for delta in deltas if delta is not None]


def skewed_tasks(differences: Iterable[Difference]) -> list[str]:
    """The tasks on which the differences of the common seeds are skewed (`is_skewed`)."""
    skewed = []
    for delta in differences:
        a, b = (
            side.mean_by_seed if delta.task == MEAN_OF_TASKS else side.cells[delta.task].by_seed
            for side in (delta.row, delta.base)
        )
        if is_skewed([a[seed] - b[seed] for seed in a.keys() & b.keys()]):
            skewed.append(delta.task)
    return skewed


def verdict_counts(differences: Iterable[Difference]) -> dict[tuple[str, str], Counter[str]]:
    """The number of each verdict by the methods of row and baseline, over several tables `by_method`."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for delta in differences:
        counts.setdefault((delta.row.method, delta.base.method), Counter())[delta.verdict] += 1
    return counts


def counts_sentence(a: str, b: str, counts: Mapping[str, int], data: str) -> str:
    """`MRN against MTL, 8 differences on 2 corpora: 3 higher, 0 lower, 1 equivalent, 4 undecided.`"""
    number = plural(sum(counts.values()), "difference")
    each = ", ".join(f"{counts.get(word, 0)} {word}" for word in VERDICTS)
    return f"{a} against {b}, {number} on {data}: {each}."


FEW_TASKS = 4
"""Up to so many tasks are named in a headline, and are marks of a configuration's row in a forest."""


def headline(a: str, b: str, answers: Sequence[Difference], quoted: Callable[[str], str] = str) -> str:
    """The verdicts in one sentence: the tasks of each, of many tasks their number.
    `quoted` escapes names and tasks, which come from users.
    """
    if not answers:
        return f"{quoted(a)} and {quoted(b)} have no score on a common task."
    tasks: dict[str, list[str]] = defaultdict(list)
    for delta in answers:
        points = f" ({signed_points(delta.mean)})" if delta.verdict in (HIGHER, LOWER) else ""
        tasks[delta.verdict].append(quoted(delta.task) + points)
    verdicts = [word for word in VERDICTS if word in tasks]
    on = {word: all_of(of) for word, of in tasks.items()}
    if len(answers) > FEW_TASKS:
        on = {word: str(len(tasks[word])) for word in verdicts}
        on[verdicts[0]] += f" of {len(answers)} tasks"
    decided = [f"{word} than {quoted(b)} on {on[word]}" for word in (HIGHER, LOWER) if word in on]
    rest = [
        f"{verdict_text(word, answers[0].matters)} on {on[word]}"
        for word in (EQUIVALENT, UNDECIDED)
        if word in on
    ]
    if not decided:
        return f"{quoted(a)} against {quoted(b)}: {'; '.join(rest)}."
    return f"{quoted(a)} scores {'; '.join([' and '.join(decided), *rest])}."


def run_pairs(delta: Difference) -> tuple[tuple[int, int], ...]:
    """The runs to compare sentence by sentence: for each common seed that of the row and of the baseline."""
    run_ids, base_run_ids = delta.row.cells[delta.task].run_ids, delta.base.cells[delta.task].run_ids
    return tuple((run_ids[seed], base_run_ids[seed]) for seed in run_ids if seed in base_run_ids)


def with_sentences(differences: Sequence[Difference], results: Sequence[Tested]) -> list[Difference]:
    """The differences with the result of the test over sentences of each, corrected for all of them."""
    corrected = iter(holm([result.p for result in results if isinstance(result, Randomised)]))
    return [
        replace(delta, sentences=result, p_sentences=next(corrected))
        if isinstance(result, Randomised)
        else replace(delta, untested=result)
        for delta, result in zip(differences, results, strict=True)
    ]
