"""What may be said of two configurations: which two to look at first, and how they differ, in sentences."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.evaluation.statistics import PairedDifference, holm, significant
from dashboard.queries.naming import confounds
from dashboard.text import all_of, plural, signed_points
from jobs.results import SCORE_NAMES, ResultRow, ResultTable, difference
from jobs.wording import p_told

__all__ = [
    "ABOVE",
    "BELOW",
    "SCORE_NAMES",
    "TINY",
    "Answer",
    "Pair",
    "answers",
    "corrected",
    "default_pair",
    "fittest",
    "headline",
    "per_seed",
    "steps",
    "verdict",
]

TINY = 0.0005
"""A difference below 0.05 points is told, but not made much of: published tables differ by more."""

ABOVE, BELOW, CLOSE, OPEN = "above", "below", "tiny", "not shown"
ALONE, STEADY, APART = "one seed", "no spread", "no common seed"


@dataclass(frozen=True)
class Answer:
    """What may be said of the difference of two rows on one task, as a sentence (plain text)
    and in numbers. `p` is corrected (`corrected`).
    """

    task: str
    sentence: str
    difference: PairedDifference | None
    p: float | None
    verdict: str


def default_pair(table: ResultTable) -> tuple[str, str] | None:
    """The two rows to compare first: MRN against MTL, else against STL, else the first two.

    Of several pairs, the one that differs in the fewest other fields, so that the paradigm is what is
    compared; then the one with the most seeds, then the best on dev.
    """
    if len(table.rows) < 2:
        return None
    for a, b in (("mrn", "mtl"), ("mrn", "stl"), ("mtl", "stl")):
        if pair := fittest(table.rows, a, b):
            return pair[0].key, pair[1].key
    first, second = table.rows[:2]
    return second.key, first.key


def fittest(rows: Sequence[ResultRow], a: str, b: str) -> tuple[ResultRow, ResultRow] | None:
    """The rows of two paradigms that are most alike in all else; None where one paradigm has no row."""
    by_paradigm: dict[str, list[ResultRow]] = defaultdict(list)
    for row in rows:
        by_paradigm[row.config.paradigm].append(row)
    return max(
        itertools.product(by_paradigm[a], by_paradigm[b]), key=lambda pair: _fitness(*pair), default=None
    )


def _fitness(a: ResultRow, b: ResultRow) -> tuple[int, int, float]:
    return -len(confounds(a.config, b.config)), min(a.seeds, b.seeds), a.dev + b.dev


def steps(table: ResultTable) -> dict[str, list[tuple[ResultRow, ResultRow]]]:
    """What sharing adds, encoder by encoder: MTL over STL and MRN over MTL, each by the rows most alike."""
    return {
        block: [pair for a, b in (("mtl", "stl"), ("mrn", "mtl")) if (pair := fittest(rows, a, b))]
        for block, rows in table.blocks.items()
    }


Pair = tuple[frozenset[str], str]
"""The keys of two rows, and a task."""


def corrected(table: ResultTable, baseline: str) -> dict[Pair, float]:
    """The p over seeds of every difference that Compare shows, corrected for their number (Holm): of each row
    to the baseline, and of each of the `steps`. One family, so that the page never says two things of one
    difference.
    """
    base = table.row(baseline)
    rows = [(row, base) for row in table.rows if row.key != baseline]
    rows += [pair for pairs in steps(table).values() for pair in pairs]
    p_values = {
        (frozenset((a.key, b.key)), task): found.p
        for a, b in rows
        for task in table.tasks
        if task in a.cells and task in b.cells and (found := difference(a, b, task)) is not None
    }
    tested = {pair: p_value for pair, p_value in p_values.items() if p_value is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))


def verdict(found: PairedDifference | None, p_corrected: float | None) -> str:
    """What may be said of a difference over seeds, by its corrected p."""
    if found is None:
        return APART
    if found.n < 2:
        return ALONE
    if found.mean and not found.sd:
        return STEADY
    if not significant(p_corrected):
        return OPEN
    if abs(found.mean) < TINY:
        return CLOSE
    return ABOVE if found.mean > 0 else BELOW


def answers(table: ResultTable, a: str, b: str, p_values: Mapping[Pair, float] | None = None) -> list[Answer]:
    """For each task that both rows have: what may be said of their difference.

    `p_values` are the page's (`corrected`); without them, those with `b` as the baseline.
    """
    one, other = table.row(a), table.row(b)
    p_values = corrected(table, b) if p_values is None else p_values
    return [
        _answer(one, other, task, p_values.get((frozenset((a, b)), task)))
        for task in table.tasks
        if task in one.cells and task in other.cells
    ]


def _answer(a: ResultRow, b: ResultRow, task: str, p_value: float | None) -> Answer:
    found = difference(a, b, task)
    said = verdict(found, p_value)
    if found is None:
        gap = a.cells[task].summary.mean - b.cells[task].summary.mean
        words = f"{signed_points(gap)} between the means; no seed in common, so no paired interval"
    elif found.low is None or found.high is None:
        words = f"{signed_points(found.mean)}; one seed each, so no interval"
    elif said == STEADY:
        words = (
            f"{signed_points(found.mean)} with each of {plural(found.n, 'seed')}: no spread, so no interval"
        )
    else:
        half = 100 * (found.high - found.low) / 2
        told = "" if p_value is None else f", p {p_told(p_value)}"
        words = f"{signed_points(found.mean)} ± {half:.2f}, {plural(found.n, 'seed')}{told}"
    return Answer(task, words, found, p_value, said)


def headline(a: str, b: str, found: Sequence[Answer], quoted: Callable[[str], str] = str) -> str:
    """The answer in one sentence. `quoted` writes names and tasks, which come from users."""
    if not found:
        return f"{quoted(a)} and {quoted(b)} share no task."
    by_verdict: dict[str, list[str]] = defaultdict(list)
    for one in found:
        told = quoted(one.task)
        if one.verdict in (ABOVE, BELOW) and one.difference is not None:
            told += f" ({signed_points(one.difference.mean)})"
        by_verdict[one.verdict].append(told)
    parts = []
    for kind, words in ((ABOVE, "is above"), (BELOW, "is below")):
        if tasks := by_verdict[kind]:
            parts.append(
                f"{words} {quoted(b)} on {all_of(tasks)}" if not parts else f"{words} it on {all_of(tasks)}"
            )
    sentences = [f"{quoted(a)} {' and '.join(parts)}"] if parts else []
    if tasks := by_verdict[CLOSE]:
        sentences.append(f"on {all_of(tasks)} they differ by less than {100 * TINY:.2f} points")
    if tasks := by_verdict[OPEN]:
        between = "" if sentences else f" between {quoted(a)} and {quoted(b)}"
        sentences.append(f"no difference{between} is shown on {all_of(tasks)}")
    if tasks := by_verdict[STEADY]:
        sentences.append(f"every seed says the same on {all_of(tasks)}, which leaves nothing to test")
    if tasks := by_verdict[ALONE]:
        sentences.append(f"one seed cannot tell a difference from chance on {all_of(tasks)}")
    if tasks := by_verdict[APART]:
        sentences.append(f"they have no seed in common on {all_of(tasks)}")
    text = "; ".join(sentences)
    return f"{text if parts else text[0].upper() + text[1:]}."


def per_seed(table: ResultTable) -> list[dict[str, str | float | int | None]]:
    """A line per configuration and seed, scores in percent, for the CSV."""
    lines: list[dict[str, str | float | int | None]] = []
    for row in table.rows:
        seeds = sorted({seed for cell in row.cells.values() for seed in cell.by_seed})
        for seed in seeds:
            scores = {
                task: 100 * row.cells[task].by_seed[seed]
                if task in row.cells and seed in row.cells[task].by_seed
                else None
                for task in table.tasks
            }
            lines.append({"configuration": row.name, "seed": seed, **scores})
    return lines
