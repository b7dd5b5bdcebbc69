"""The gains in a grid of simulated tasks by the factors of the grid, and the answer that they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from core.evaluation.comparison import (
    EQUIVALENT,
    HIGHER,
    LOWER,
    UNDECIDED,
    VERDICTS,
    BySeed,
    Comparison,
    compare_paired,
)
from core.studies.analysis import MEAN, Result, joined
from core.studies.answer import losses, part_answer, short_points, study_answer, unit
from core.studies.simulator import Point, point_of
from core.studies.study import Study
from core.wording import all_of, any_of, in_words


@dataclass(frozen=True)
class Factor:
    """A factor of a grid: its name on an axis and in a sentence; a value in words, and what it counts."""

    title: str
    in_sentence: str
    value: Callable[[float], str]
    counted: str = ""


FACTORS: Mapping[str, Factor] = {
    "words": Factor("words of NER", "NER's training words", "{:,}".format, " words"),
    "words_beside": Factor("words of each other task", "the tasks' training words", "{:,}".format, " words"),
    "tasks": Factor("simulated tasks", "the number of tasks", lambda number: in_words(int(number))),
    "alpha": Factor("share of labels kept, α", "their relatedness", "{:.0%}".format, " of labels kept"),
}
"""The factors by the fields of `Point`."""


_Paired = dict[float, tuple[BySeed, BySeed]]
"""By value of a factor the scores of a method and of the reference, by seed."""


def gains_by_factor(results: Sequence[Result]) -> dict[str, dict[float, Comparison]]:
    """By factor and value the gain over the reference: the mean over settings, paired by seed.

    A setting counts for a factor where those that are like it in all else have a gain at each value, so that
    values differ in the factor alone. The p-values of the values of a factor are corrected together.
    """
    return {factor: compare_paired(by_value) for factor, by_value in _scores_by_factor(results).items()}


def _scores_by_factor(results: Sequence[Result]) -> dict[str, _Paired]:
    cells: dict[Point, tuple[BySeed, BySeed]] = {}
    for result in results:
        point = point_of(result.setting)
        for outcome in result.outcomes:
            if point is not None and MEAN in outcome.differences:
                cells[point] = outcome.by_seed[MEAN], result.outcome(result.reference).by_seed[MEAN]
    if all(point.words == point.words_beside for point in cells):
        cells = {replace(point, words_beside=0): scores for point, scores in cells.items()}
    by_factor = {}
    for factor in FACTORS:
        values = sorted({getattr(point, factor) for point in cells})
        alike: dict[Point, _Paired] = {}
        for point, scores in cells.items():
            others: dict[str, Any] = {factor: 0}
            alike.setdefault(replace(point, **others), {})[getattr(point, factor)] = scores
        whole = [by_value for by_value in alike.values() if len(by_value) == len(values)]
        if len(values) > 1 and whole:
            by_factor[factor] = {
                value: (
                    _mean_by_seed([by_value[value][0] for by_value in whole]),
                    _mean_by_seed([by_value[value][1] for by_value in whole]),
                )
                for value in values
            }
    return by_factor


def _mean_by_seed(scores: Sequence[BySeed]) -> BySeed:
    """The mean of these scores by seed, of the seeds that all have."""
    seeds = set.intersection(*(set(by_seed) for by_seed in scores))
    return {seed: fmean(by_seed[seed] for by_seed in scores) for seed in sorted(seeds)}


def trends(results: Sequence[Result]) -> dict[str, Comparison]:
    """By factor the gain at its largest value less that at its smallest, p corrected for the factors."""

    def gain(scores: tuple[BySeed, BySeed]) -> BySeed:
        method, reference = scores
        return {seed: method[seed] - reference[seed] for seed in method.keys() & reference.keys()}

    return compare_paired(
        {
            factor: (gain(by_value[max(by_value)]), gain(by_value[min(by_value)]))
            for factor, by_value in _scores_by_factor(results).items()
        }
    )


def grid_answer(results: Sequence[Result]) -> list[str]:
    """With which factors of a grid of simulated tasks the gain of NER grows or falls, and of which this is
    undecided, a sentence each; empty where nothing varies.
    """
    clauses: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    by_factor = gains_by_factor(results)
    for factor, trend in trends(results).items():
        gains = by_factor[factor]
        least, most = (
            (short_points(gains[end].mean), FACTORS[factor].value(end)) for end in (min(gains), max(gains))
        )
        first = f"{least[0]} {unit(results[0])} with {least[1]}{FACTORS[factor].counted}"
        ends = f"{first}, {most[0]} with {most[1]}"
        clauses[trend.verdict].append(f"{FACTORS[factor].in_sentence} ({ends})")
    gain = "NER's gain from simulated tasks"
    ways = {"grows": HIGHER, "falls": LOWER, "stays the same": EQUIVALENT}
    changes = [f"{way} with {all_of(clauses[verdict])}" for way, verdict in ways.items() if clauses[verdict]]
    texts = [f"{gain} {all_of(changes)}."] if changes else []
    if clauses[UNDECIDED]:
        undecided = f"depends on {any_of(clauses[UNDECIDED])} is undecided."
        texts.append(f"Whether {'it' if texts else gain} {undecided}")
    return texts


def first_grid(results: Sequence[Result]) -> list[Result]:
    """The results of the first part that is a grid with an answer; empty without one."""
    parts = dict.fromkeys(result.setting.part for result in results)
    grids = ([each for each in results if each.setting.part == part] for part in parts)
    return next((grid for grid in grids if grid_answer(grid)), [])


def answers_of(study: Study, results: Sequence[Result]) -> list[str]:
    """The answer of a part of a study over its settings, and what else is to be said; empty where none is."""
    merged = joined(results)
    counts = part_answer(merged)
    if study.by_relatedness and (by_factor := grid_answer(results)):
        return [*by_factor, counts]
    if answer := study_answer(study, merged):
        return list(filter(None, [answer, losses(merged)]))
    return [counts] if counts else []
