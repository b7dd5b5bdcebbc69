"""The values of a study: its results with scores, its forests, its failures."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from core.evaluation.comparison import HIGHER, LOWER
from core.results.figures import Forest, Mark
from core.studies.analysis import MEAN, RARE, Result
from core.studies.simulator import point_of
from core.transfer.gains import Gains
from core.wording import capitalised, signed_points

_APART = 0.2
"""The least share of an axis between two of its numbers."""


def has_scores(result: Result) -> bool:
    """Whether anything is known of this setting yet."""
    return any(outcome.scores for outcome in result.outcomes)


def scored(results: Iterable[Result]) -> list[Result]:
    """The results with a mean over tasks of some method."""
    return [result for result in results if any(MEAN in outcome.scores for outcome in result.outcomes)]


def plainly_named(result: Result) -> Result:
    """The result with methods titled as its sentences name them: `The paper's prior` for `Paper, tasks`."""
    named = (
        replace(outcome, method=replace(outcome.method, title=capitalised(outcome.method.in_sentence)))
        for outcome in result.outcomes
    )
    return replace(result, outcomes=tuple(named))


def gains_forest(gains: Gains, names: Mapping[str, str]) -> Forest:
    """The decided gains and losses among pairs of tasks, from the largest gain to the largest loss.

    `names` are the tasks' titles.
    """
    decided = sorted(filter(lambda gain: gain.is_decided, gains.pairs.values()), key=lambda gain: -gain.mean)
    rows = tuple(f"{names[gain.main]} beside {names[gain.aux]}" for gain in decided)
    marks = tuple(
        Mark.from_comparison(gain, row, MEAN, f"{name}: {gain.sentence}")
        for row, (name, gain) in enumerate(zip(rows, decided, strict=True))
    )
    return Forest(rows, (MEAN,), "STL", marks)


def small_forest(view: Forest, axis: str) -> str:
    """A forest of one target as HTML: by row the name, the interval with a mark, and the difference.

    A mark is filled where the difference is decided. `axis` says what differences are, in which unit.
    """
    ends = [
        0.0,
        *(end for mark in view.marks for end in (mark.points, mark.low, mark.high) if end is not None),
    ]
    start, width = min(ends), max(ends) - min(ends) or 1.0

    def share(points: float) -> str:
        return f"{100 * (points - start) / width:.1f}%"

    rows = []
    for mark in view.marks:
        low, high = (mark.points if end is None else end for end in (mark.low, mark.high))
        filled = " filled" * (mark.verdict in (HIGHER, LOWER))
        rows.append(
            f'<tr title="{html.escape(mark.hover)}"><th scope="row">{html.escape(view.rows[mark.row])}</th>'
            f'<td><div class="track"><i class="zero" style="left: {share(0)}"></i>'
            f'<i class="bar" style="left: {share(low)}; right: calc(100% - {share(high)})"></i>'
            f'<i class="mark{filled}" style="left: {share(mark.points)}"></i></div></td>'
            f"<td>{signed_points(mark.points / 100)}</td></tr>"
        )
    ticks = (
        f'<i class="tick" style="left: {share(tick)}">{f"{tick:+g}".replace("-", "−") if tick else 0}</i>'
        for tick in dict.fromkeys(map(_round_down, (start, 0.0, start + width)))
        if not tick or abs(tick) >= _APART * width  # beside zero there is no room for another number
    )
    rows.append(f'<tr><th></th><td><div class="track">{"".join(ticks)}</div></td><td></td></tr>')
    rows.append(f'<tr><th></th><td class="axis">{html.escape(axis)}</td><td></td></tr>')
    label = f"{axis} with 95% intervals; a filled mark is a decided difference"
    return f'<table class="small-forest" aria-label="{html.escape(label)}">{"".join(rows)}</table>'


def _round_down(points: float) -> float:
    """The next number towards zero that is 1, 2 or 5 times a power of ten."""
    if not points:
        return 0.0
    power = 10.0 ** math.floor(math.log10(abs(points)))
    return math.copysign(max(step for step in (1, 2, 5) if step * power <= abs(points)) * power, points)


def study_forest(result: Result, shown: tuple[str, ...] = ()) -> Forest:
    """The paired differences of every method from the reference, on each target and in the mean."""
    shown = shown or targets(result)
    others = [outcome for outcome in result.outcomes if outcome.method.name != result.reference]
    marks = []
    for row, outcome in enumerate(others):
        for target in shown:
            if (delta := outcome.differences.get(target)) is not None:
                words = f"{outcome.method.title}, {target}: {delta.sentence}"
                marks.append(Mark.from_comparison(delta, row, target, words))
    titles = tuple(outcome.method.title for outcome in others)
    return Forest(titles, shown, result.outcome(result.reference).method.in_sentence, tuple(marks))


def targets(result: Result) -> tuple[str, ...]:
    """The setting's targets, their mean where there are several, the rarer labels where known."""
    mean = (MEAN,) if len(result.setting.targets) > 1 else ()
    rare = (RARE,) if any(RARE in outcome.scores for outcome in result.outcomes) else ()
    return (*result.setting.targets, *mean, *rare)


def grid_table(results: Sequence[Result]) -> pd.DataFrame:
    """The table of a grid of simulated tasks (`core.transfer.grid`) from results, which hold no AMI."""
    from core.transfer.grid import COLUMNS

    rows = {}
    for result in results:
        if (point := point_of(result.setting)) is None:
            continue
        for outcome in result.outcomes:
            has_others = outcome.method.name != result.reference
            beside = (point.words_beside, point.tasks) if has_others else (math.nan, 0)
            alpha = point.alpha if has_others else math.nan
            for seed, score in outcome.by_seed.get(MEAN, {}).items():
                cell = (point.part, point.words, *beside, math.nan, alpha, point.dense)
                rows[str(cell), seed] = (*cell, 100 * score, seed)  # NER alone stands in several settings
    return pd.DataFrame(list(rows.values()), columns=list(COLUMNS))


def failures(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """The settings in which runs failed, and how many."""
    for result in results:
        if count := sum(outcome.failed for outcome in result.outcomes):
            yield result.setting.title, count
