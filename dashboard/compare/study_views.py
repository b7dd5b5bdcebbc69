"""What a study says, as the page shows it: an answer per setting, a forest of differences, an overview."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.evaluation.statistics import MeanSD
from core.studies import Study
from core.studies.analysis import HELPS, HURTS, MEAN, NOT_SHOWN, RARE, Difference, Outcome, Result
from core.wording import all_of, p_text, percent, plural, signed_points
from dashboard.shared.charts import Forest, Mark
from jobs.wording import correlation_told


@dataclass(frozen=True)
class Cell:
    """A family in a setting: the mean difference in points; whether the corrected p shows one."""

    points: float
    shown: bool
    told: str


@dataclass(frozen=True)
class Overview:
    """Families × settings of a part, by titles and names. `cells` lack what is not known."""

    families: tuple[str, ...]
    settings: tuple[str, ...]
    reference: str
    cells: dict[tuple[int, int], Cell]


@dataclass(frozen=True)
class Row:
    """A line of a setting's table; `scores` by target, mean and rarer labels. Percent and points as text."""

    family: str
    chosen: str
    dev: str
    scores: dict[str, MeanSD | None]
    difference: str
    p: str
    verdict: str
    failed: int
    learned: str


def known(result: Result) -> bool:
    """Whether anything can be said of this setting yet."""
    return any(one.scores for one in result.outcomes)


def answer(result: Result) -> str:
    """The setting's answer in one sentence (plain text)."""
    reference = result.outcome(result.reference).family.title
    found = [(one.family.title, one.differences[MEAN]) for one in result.outcomes if MEAN in one.differences]
    if not found:
        return f"No family can be set against {reference} yet."
    by_verdict = {
        verdict: sorted(
            ((title, one) for title, one in found if one.verdict == verdict),
            key=lambda pair: -abs(pair[1].paired.mean),
        )
        for verdict in (HELPS, HURTS, NOT_SHOWN)
    }
    parts = []
    for verdict, word in ((HELPS, "help"), (HURTS, "hurt")):
        if pairs := by_verdict[verdict]:
            told = all_of([f"{title} ({_points(one)})" for title, one in pairs])
            parts.append(f"{told} {word + 's' if len(pairs) == 1 else word}")
    if pairs := by_verdict[NOT_SHOWN]:
        titles = [title for title, _ in pairs]
        listed = all_of(titles) if len(titles) <= 4 else f"{len(titles)} others"
        parts.append(f"no difference is shown for {listed}")
    sentence = f"Over {reference}, {'; '.join(parts)}."
    seeds = {one.paired.n for _, one in found}
    return f"{sentence} {_seeds(seeds)}"


def _seeds(counts: set[int]) -> str:
    if counts == {1}:
        return "One seed each, so no interval."
    least, most = min(counts), max(counts)
    return f"{plural(most, 'seed')}." if least == most else f"{least} to {plural(most, 'seed')}."


def _points(one: Difference) -> str:
    return f"{signed_points(one.paired.mean)}{_interval(one)}"


def _interval(one: Difference) -> str:
    low, high = one.paired.low, one.paired.high
    return "" if low is None or high is None else f" [{signed_points(low)}, {signed_points(high)}]"


def forest(result: Result) -> Forest:
    """The paired differences of every family to the reference, on each target and in the mean."""
    others = [one for one in result.outcomes if one.family.name != result.reference]
    targets = _targets(result)
    marks = [
        _mark(row, target, one.family.title, one.differences[target])
        for row, one in enumerate(others)
        for target in targets
        if target in one.differences
    ]
    return Forest(
        tuple(one.family.title for one in others),
        targets,
        result.outcome(result.reference).family.title,
        tuple(marks),
    )


def _mark(row: int, target: str, title: str, one: Difference) -> Mark:
    low, high = one.paired.low, one.paired.high
    return Mark(
        row,
        target,
        100 * one.paired.mean,
        None if low is None else 100 * low,
        None if high is None else 100 * high,
        f"{title}, {target}: {_told(one)}",
        one.verdict != NOT_SHOWN,
    )


def _told(one: Difference) -> str:
    p_value = f", p {p_text(one.p_holm)}" if one.p_holm is not None else ""
    return f"{_points(one)}, {plural(one.paired.n, 'seed')}{p_value}; {one.verdict}"


def overview(study: Study, results: Sequence[Result]) -> Overview:
    """Families × these settings: the mean difference to the reference."""
    names = [
        family.name
        for family in study.families
        if family.name != study.reference and any(_has(result, family.name) for result in results)
    ]
    cells = {}
    for column, result in enumerate(results):
        for row, name in enumerate(names):
            one = result.outcome(name).differences.get(MEAN) if _has(result, name) else None
            if one is not None:
                told = f"{study.family(name).title} in {result.setting.title}: {_told(one)}"
                cells[row, column] = Cell(100 * one.paired.mean, one.verdict != NOT_SHOWN, told)
    return Overview(
        tuple(study.family(name).title for name in names),
        tuple(result.setting.name for result in results),
        study.family(study.reference).title,
        cells,
    )


def _has(result: Result, family: str) -> bool:
    return any(one.family.name == family for one in result.outcomes)


def rows(result: Result) -> tuple[Row, ...]:
    """The setting's table, the reference among the families."""
    return tuple(_row(result, one) for one in result.outcomes)


def _row(result: Result, one: Outcome) -> Row:
    found = one.differences.get(MEAN)
    return Row(
        one.family.title,
        one.chosen if one.arm is not None else "open",
        percent(None if one.dev is None else one.dev.mean),
        {target: one.scores.get(target) for target in _targets(result)},
        "" if found is None else _points(found),
        "" if found is None else p_text(found.p_holm),
        "" if found is None else found.verdict,
        one.failed,
        correlation_told(one.learned),
    )


def _targets(result: Result) -> tuple[str, ...]:
    """The setting's targets, their mean where there are several, the rarer labels where known."""
    targets = result.setting.targets
    mean = (MEAN,) if len(targets) > 1 else ()
    rare = (RARE,) if any(RARE in one.scores for one in result.outcomes) else ()
    return (*targets, *mean, *rare)


def failures(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """The settings in which runs failed, and how many."""
    for result in results:
        if count := sum(one.failed for one in result.outcomes):
            yield result.setting.title, count
