"""Where one system scores higher than another: differences by bucket, and which of them stand alone.

A difference is decided where it holds for other sentences and for other seeds: approximate randomisation
over sentences and `joint_p`, each corrected for all buckets of the task (Holm), are below 0.05, and the 95%
interval over seeds does not hold 0. Buckets overlap, so a gain in one shows in others that share its items.
Of the decided buckets the one that stands out most from all other items is named; the others are tested
again without its items, and so on: what is then no longer decided is seen only through the named bucket
(docs/adr/0046).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.buckets import Bucket, Items, bucket_counts
from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED
from core.evaluation.statistics import (
    CONFIDENCE,
    PairedDifference,
    exchange,
    holm,
    paired_difference,
)
from core.tasks.scores import score_of_counts
from core.wording import all_of, plural, signed_points

_ROUNDS, _ROUNDS_PER_BUCKET = 2000, 100
"""Rounds of exchanges: so many that the least p, corrected for all buckets, is 0.01 at most."""


@dataclass(frozen=True)
class BucketDifference:
    """The scores of two systems on the items of a bucket, and the difference a − b.

    items     the annotated items per seed
    a, b      mean scores in [−1, 1] over the seeds with which both are defined
    paired    the difference over these seeds
    p         of approximate randomisation over sentences, corrected for all buckets; None without test
    joint     `joint_p`, corrected too
    explained_by   the bucket that explains a decided difference: without its items it is undecided
    """

    bucket: Bucket
    items: float
    a: float
    b: float
    paired: PairedDifference
    p: float | None
    joint: float | None
    explained_by: Bucket | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval over seeds; None where there is no spread."""
        low, high = self.paired.low, self.paired.high
        return None if not self.paired.sd or low is None or high is None else (low, high)

    @property
    def verdict(self) -> str:
        """HIGHER, LOWER or UNDECIDED, whether or not the difference stands alone."""
        if self.p is None or self.joint is None or self.interval is None:
            return UNDECIDED
        if max(self.p, self.joint) >= 1 - CONFIDENCE:
            return UNDECIDED
        low, high = self.interval
        return HIGHER if low > 0 else LOWER if high < 0 else UNDECIDED

    @property
    def is_named(self) -> bool:
        """Whether it is decided, and no other bucket explains it."""
        return self.verdict != UNDECIDED and self.explained_by is None

    @property
    def verdict_text(self) -> str:
        """`higher`, `higher (explained by words unseen in training)`."""
        by = "" if self.explained_by is None else f" (explained by {self.explained_by.phrase})"
        return f"{self.verdict}{by}"

    @property
    def in_points(self) -> str:
        """`+3.10 [+1.20, +5.00]`."""
        ends = "" if self.interval is None else f" [{', '.join(map(signed_points, self.interval))}]"
        return f"{signed_points(self.paired.mean)}{ends}"


@dataclass(frozen=True)
class PairedItems:
    """The items of two systems by seed, both trained with seeds[k]: a[k] and b[k] in the same sentences.

    `alike`: whether these are the same sentences for all seeds; if not, there is no test over sentences.
    """

    buckets: tuple[Bucket, ...]
    seeds: Sequence[int]
    a: Sequence[Items]
    b: Sequence[Items]
    sentences: Sequence[int]
    alike: bool = True


@dataclass(frozen=True)
class _Part:
    """Differences in all buckets, of the items outside some of them; None where nothing is scored.

    `strength` is how much larger each is than that of all other items, in standard errors.
    """

    differences: list[BucketDifference | None]
    strength: list[float]


def bucket_differences(pairs: PairedItems, rounds: int | None = None) -> list[BucketDifference]:
    """The differences in the buckets that hold some of the items, but not all; those named first stand alone.

    In the order of the buckets, by default from 2,000 rounds of exchanges, and 100 a bucket. Raises
    ValueError where there is no seed, or two systems were not tested on the same sentences.
    """
    rounds = rounds or max(_ROUNDS, _ROUNDS_PER_BUCKET * len(pairs.buckets))
    whole = _tested(pairs, (), rounds)
    by_place = dict(enumerate(whole.differences))
    decided = [place for place, each in by_place.items() if each is not None and each.verdict != UNDECIDED]
    part, named = whole, list[int]()
    while decided:
        best = max(decided, key=lambda place: part.strength[place])
        named.append(best)
        decided.remove(best)
        if not decided:
            break
        part = _tested(pairs, named, rounds)
        for place in list(decided):
            left, before = part.differences[place], by_place[place]
            if before is not None and (left is None or left.verdict != before.verdict):
                by_place[place] = replace(before, explained_by=pairs.buckets[best])
                decided.remove(place)
    return [each for each in by_place.values() if each is not None]


def _tested(pairs: PairedItems, without: Collection[int], rounds: int) -> _Part:
    size = len(pairs.buckets)
    a, b = (
        [
            bucket_counts(items, sentences, size, without)
            for items, sentences in zip(side, pairs.sentences, strict=True)
        ]
        for side in (pairs.a, pairs.b)
    )
    # The last is the whole; then come all items but those of each bucket.
    sums_a, sums_b = (
        np.concatenate([sums, sums[:, -1:] - sums[:, :-1]], axis=1)
        for sums in (np.stack([counts.sum(axis=0) for counts in side]) for side in (a, b))
    )
    scores_a, scores_b = score_of_counts(sums_a), score_of_counts(sums_b)
    both = np.isfinite(scores_a) & np.isfinite(scores_b)
    is_tested = ~np.isin(np.arange(size), list(without)) & _splits(pairs, sums_a[:, :size, 0])
    kept = np.flatnonzero(both[:, :size].any(axis=0) & is_tested).tolist()
    paired = {
        place: paired
        for place in kept
        if (paired := _paired(pairs.seeds, scores_a[:, place], scores_b[:, place])) is not None
    }
    p_sentences: dict[int, float] = {}
    p_joint: dict[int, float] = {}
    strength = [0.0] * size
    if pairs.alike and kept:
        first, second = ([counts[:, [*kept, size]] for counts in side] for side in (a, b))
        exchanged = exchange(first, second, rounds, complements=True)
        sd, p = exchanged.sd, exchanged.p
        joint = [joint_p(paired[place], float(sd[index])) for index, place in enumerate(kept)]
        p_sentences = dict(zip(kept, holm(p[: len(kept)].tolist()), strict=True))
        p_joint = dict(zip(kept, holm(joint), strict=True))
        apart = exchanged.rounds[:, : len(kept)] - exchanged.rounds[:, len(kept) + 1 :]
        gaps = scores_a - scores_b
        for index, place in enumerate(kept):
            beside = _paired(pairs.seeds, gaps[:, place], gaps[:, size + 1 + place])
            if beside is not None:
                spread = float(np.sqrt(np.mean(np.nan_to_num(apart[:, index]) ** 2)))
                more = beside.mean if paired[place].mean > 0 else -beside.mean
                strength[place] = more / max(_error(beside, spread), _LEAST)
    differences: list[BucketDifference | None] = [None] * size
    for place in kept:
        defined = both[:, place]
        differences[place] = BucketDifference(
            pairs.buckets[place],
            float(sums_a[defined, place, 0].mean()),
            float(scores_a[defined, place].mean()),
            float(scores_b[defined, place].mean()),
            paired[place],
            p_sentences.get(place),
            p_joint.get(place),
        )
    return _Part(differences, strength)


def _paired(seeds: Sequence[int], a: NDArray[Any], b: NDArray[Any]) -> PairedDifference | None:
    """The difference over the seeds with which both scores are defined."""
    sides = (dict(zip(seeds, side.tolist(), strict=True)) for side in (a, b))
    first, second = ({seed: score for seed, score in side.items() if isfinite(score)} for side in sides)
    return paired_difference(first, second)


_LEAST = 1e-12


def _error(paired: PairedDifference, over_sentences: float) -> float:
    """The standard error of a difference for other seeds and other sentences."""
    return sqrt((paired.sd or 0.0) ** 2 / paired.n + over_sentences**2)


def joint_p(paired: PairedDifference, over_sentences: float) -> float:
    """The two-sided p of a difference for other seeds and other sentences.

    A t-test whose variance is that of the mean over seeds and, beside it, that over exchanges of sentences
    (`over_sentences` is their standard deviation); its degrees of freedom are Satterthwaite's (An approximate
    distribution of estimates of variance components, 1946), with n − 1 of the first and none missing of the
    second. What varies with seed and sentence alike is in both, so that it errs to the safe side. 1 for a
    single seed.
    """
    seeds, error = (paired.sd or 0.0) ** 2 / paired.n, _error(paired, over_sentences)
    if paired.n < 2 or error <= _LEAST:
        return 1.0
    freedom = (paired.n - 1) * (error**2 / seeds) ** 2 if seeds > _LEAST**2 else inf
    from scipy.special import ndtr, stdtr

    statistic = -abs(paired.mean) / error
    return float(2 * (ndtr(statistic) if freedom == inf else stdtr(freedom, statistic)))


def _splits(pairs: PairedItems, annotated: NDArray[Any]) -> NDArray[np.bool_]:
    """(buckets,) whether the bucket's feature has other buckets with annotated items (seeds, buckets)."""
    has = annotated.sum(axis=0) > 0
    names = zip(pairs.buckets, has.tolist(), strict=True)
    filled = Counter(bucket.feature for bucket, is_filled in names if is_filled)
    several: NDArray[np.bool_] = np.array(
        [filled[bucket.feature] > 1 for bucket in pairs.buckets], dtype=bool
    )
    both: NDArray[np.bool_] = np.logical_and(several, has)
    return both


_MOST_NAMED = 4


def where_headline(task: str, a: str, b: str, differences: Sequence[BucketDifference]) -> tuple[str, str]:
    """`On ner MRN gains over MTL with words unseen in training (+3.10).`, and a sentence on other buckets.

    The second is empty where none is decided.
    """
    named = [each for each in differences if each.is_named]
    if not named:
        return f"On {task} none of {plural(len(differences), 'bucket')} is decided between {a} and {b}.", ""
    parts = []
    for verdict, verb in ((HIGHER, f"gains over {b}"), (LOWER, f"loses to {b}")):
        of_verdict = [each for each in named if each.verdict == verdict]
        texts = [
            f"{each.bucket.phrase} ({signed_points(each.paired.mean)})" for each in of_verdict[:_MOST_NAMED]
        ]
        if len(of_verdict) > _MOST_NAMED:
            texts.append(f"{len(of_verdict) - _MOST_NAMED} more")
        if texts:
            parts.append(f"{verb} with {all_of(texts)}")
    explained = [each.bucket.phrase for each in differences if each.explained_by is not None]
    more = [f"{len(explained) - _MOST_NAMED} more"] * (len(explained) > _MOST_NAMED)
    explain = "These explain" if len(named) > 1 else "This explains"
    what = f"the difference{'s' * (len(explained) > 1)} with {all_of([*explained[:_MOST_NAMED], *more])}"
    rest = [f"{explain} {what}."] * bool(explained)
    if any(each.verdict == UNDECIDED for each in differences):
        rest.append("All others are undecided.")
    return f"On {task} {a} {' and '.join(parts)}.", " ".join(rest)
