"""Whether one configuration scores higher than another: the one rule of all tables and pages.

A family is the differences that one table shows on one task: between all of its rows, or of each row from a
declared reference. Its p-values are corrected together (Holm), and what is bold, coloured or said of a
difference follows from its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self, TypeVar

from core.errors import ConfigError
from core.evaluation.power import SeedsNeeded, seeds_to_decide
from core.evaluation.statistics import (
    CONFIDENCE,
    MATTERS,
    PairedDifference,
    holm,
    paired_difference,
    summary,
)
from core.wording import p_sentence, plural, signed_points

HIGHER, LOWER, EQUIVALENT, UNDECIDED = "higher", "lower", "equivalent", "undecided"
"""The verdicts on a difference."""
VERDICTS = (HIGHER, LOWER, EQUIVALENT, UNDECIDED)

BySeed = Mapping[int, float]
"""The scores of a configuration on a task, by seed, in [0, 1]."""
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Comparison:
    """The differences between the scores of two configurations on a task.

    `paired` is over the seeds that both have, None where there is none. `mean` in [−1, 1] is its mean;
    without a common seed the difference of the means. `p` (that they differ) and `p_within` (that they differ
    by less than `matters`) are corrected for the family; None where no test can be made. `level` and
    `level_within` are what Holm's correction leaves for the next of the family to be decided by either test.
    """

    paired: PairedDifference | None
    mean: float
    p: float | None = None
    p_within: float | None = None
    matters: float = MATTERS
    level: float = 1 - CONFIDENCE
    level_within: float = 1 - CONFIDENCE

    @property
    def verdict(self) -> str:
        """Whether it is equivalent; if not, whether it is significant, and on which side of zero.

        What would be equivalent by itself is never higher or lower: so no family of tests can decide the
        opposite of what a larger one decides.
        """
        if _is_significant(self.p_within):
            return EQUIVALENT
        if not _is_significant(self.p) or (
            self.paired and _is_significant(self.paired.p_within(self.matters))
        ):
            return UNDECIDED
        return HIGHER if self.mean > 0 else LOWER

    @property
    def verdict_text(self) -> str:
        """The verdict with the difference that matters where it is needed: `equivalent within 0.5`."""
        return verdict_text(self.verdict, self.matters)

    @property
    def is_decided(self) -> bool:
        """Whether it is higher or lower."""
        return self.verdict in (HIGHER, LOWER)

    @property
    def seeds(self) -> int:
        """How many seeds both have."""
        return 0 if self.paired is None else self.paired.n

    @property
    def seeds_needed(self) -> SeedsNeeded | None:
        """How many seeds would decide it, were the truth as observed; None if decided or without spread."""
        if self.paired is None or self.verdict != UNDECIDED:
            return None
        return seeds_to_decide(
            self.paired, matters=self.matters, level=self.level, level_within=self.level_within
        )

    @property
    def is_equal(self) -> bool:
        """Whether both have the same score on every seed."""
        return self.paired is not None and not self.paired.sd and self.mean == 0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of this difference by itself, where there is a spread over seeds."""
        paired = self.paired
        if paired is None or not paired.sd or paired.low is None or paired.high is None:
            return None
        return paired.low, paired.high

    @property
    def in_points(self) -> str:
        """`+1.20 [+0.40, +2.00]`: the difference and its interval in points."""
        return f"{signed_points(self.mean)} {self.interval_in_points}".rstrip()

    @property
    def interval_in_points(self) -> str:
        """`[+0.40, +2.00]`; empty without interval."""
        return "" if self.interval is None else f"[{', '.join(map(signed_points, self.interval))}]"

    @property
    def remark(self) -> str:
        """Why it is undecided, where more is to be said than that p is too large."""
        paired = self.paired
        if paired is None:
            return "no seed in common"
        if not paired.sd:
            return "1 seed" if paired.n == 1 else f"the same with each of {plural(paired.n, 'seed')}"
        return f"{alone} before correction" if (alone := self.only_before_correction) else ""

    @property
    def only_before_correction(self) -> str:
        """The verdict by the difference's own p, where the family's p takes it back; else empty."""
        if self.paired is None:
            return ""
        alone = replace(self, p=self.paired.p, p_within=self.paired.p_within(self.matters)).verdict
        return "" if alone == self.verdict else alone

    @property
    def sentence(self) -> str:
        """The verdict and the numbers behind it (plain text)."""
        text = f"{self.verdict_text}, {self.in_points}"
        if self.interval is not None:
            text += f", {plural(self.seeds, 'seed')}, {p_sentence(self.p)}"
        return f"{text} ({self.remark})" if self.remark else text

    def reversed(self) -> Self:
        """The second configuration less the first."""
        paired = self.paired
        if paired is not None:
            low, high = paired.low, paired.high
            paired = replace(
                paired,
                mean=-paired.mean,
                low=None if high is None else -high,
                high=None if low is None else -low,
            )
        return replace(self, paired=paired, mean=-self.mean)


def verdict_text(verdict: str, matters: float) -> str:
    """The verdict; of an equivalence with the difference that matters, in points: `equivalent within 0.5`."""
    return f"{EQUIVALENT} within {100 * matters:g}" if verdict == EQUIVALENT else verdict


def check_matters(matters: float) -> float:
    """The smallest difference that matters, in [0, 1]. Raises ConfigError for any other number."""
    if not 0 <= matters <= 1:  # NaN too
        raise ConfigError(
            "matters",
            f"matters: {100 * matters:g} is no difference of scores; name points from 0 to 100, as 0.5.",
        )
    return matters


def compare(family: Mapping[_Key, tuple[BySeed, BySeed]], matters: float = MATTERS) -> dict[_Key, Comparison]:
    """The first scores of each pair less the second. The p-values are corrected for the whole family.

    `matters` is the smallest difference that matters, in [0, 1].
    """
    comparisons = {}
    for key, (first, second) in family.items():
        paired = paired_difference(first, second)
        mean = summary(first.values()).mean - summary(second.values()).mean if paired is None else paired.mean
        comparisons[key] = Comparison(paired, mean, matters=matters)
    tested = {key: comparison.paired for key, comparison in comparisons.items() if comparison.paired}
    differs = _corrected({key: paired.p for key, paired in tested.items()})
    within = _corrected({key: paired.p_within(matters) for key, paired in tested.items()})
    level, level_within = _level_left(differs.values()), _level_left(within.values())
    return {
        key: replace(
            comparison,
            p=differs.get(key),
            p_within=within.get(key),
            level=level,
            level_within=level_within,
        )
        for key, comparison in comparisons.items()
    }


def compare_paired(
    family: Mapping[_Key, tuple[BySeed, BySeed]], matters: float = MATTERS
) -> dict[_Key, Comparison]:
    """The result of `compare` for the pairs that have a seed in common."""
    return compare({key: (a, b) for key, (a, b) in family.items() if a.keys() & b.keys()}, matters)


def compare_rows(
    rows: Mapping[_Key, BySeed], matters: float = MATTERS, baseline: _Key | None = None
) -> dict[tuple[_Key, _Key], Comparison]:
    """Each row of a column of scores less each other one.

    The family is all pairs; with a `baseline` each row less the baseline, which alone are compared then.
    """
    pairs = combinations(rows, 2) if baseline is None else ((a, baseline) for a in rows if a != baseline)
    one_way = compare({(a, b): (rows[a], rows[b]) for a, b in pairs if b in rows}, matters)
    return one_way | {(b, a): comparison.reversed() for (a, b), comparison in one_way.items()}


def highest_row(comparisons: Mapping[tuple[_Key, _Key], Comparison]) -> _Key | None:
    """The row that is HIGHER than each other one, from all pairs of `compare_rows`: its score is bold."""
    not_highest = {a for (a, _), comparison in comparisons.items() if comparison.verdict != HIGHER}
    return next((a for a, _ in comparisons if a not in not_highest), None)


def _corrected(p_values: Mapping[_Key, float | None]) -> dict[_Key, float]:
    tested = {key: p_value for key, p_value in p_values.items() if p_value is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))


def _level_left(corrected: Iterable[float]) -> float:
    """The level at which Holm's correction tests the next hypothesis of a family, by their corrected p."""
    return (1 - CONFIDENCE) / max(1, sum(not _is_significant(p) for p in corrected))


def _is_significant(p: float | None) -> bool:
    return p is not None and p < 1 - CONFIDENCE
