"""Would the difference of two systems be as large on other text? Approximate randomisation over sentences.

Noreen, Computer-Intensive Methods for Testing Hypotheses, 1989; for scores that are no mean over sentences,
as F1: Yeh, More accurate tests for the statistical significance of result differences, COLING 2000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.sentence_counts import Counts, score_of_counts

__all__ = ["ROUNDS", "Randomised", "randomisation_test"]

ROUNDS = 10_000
_AT_ONCE = 4_000_000
"""Coins tossed at once: 16 MB of them."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Randomised:
    """The mean over seeds of the difference of scores, and its two-sided p over sentences."""

    difference: float
    p: float
    seeds: int
    sentences: int


def randomisation_test(
    a: Sequence[Counts], b: Sequence[Counts], *, rounds: int = ROUNDS, seed: int = 2000
) -> Randomised:
    """Tests the mean over seeds of score(a) - score(b), each (sentences, 3) of `sentence_counts`.

    a[k] and b[k] were trained with the same seed. In each round a coin per sentence decides whether the two
    systems exchange what they predicted of it. One coin serves all seeds of a sentence: under the hypothesis
    only whole sentences are exchangeable, since a sentence that suits one system's kind does so whatever the
    seed. With a coin per sentence and seed, as if seeds made new sentences, the test is wrong far too often
    (tests/properties/test_randomisation.py measures both). The seeds are taken as they are: whether other
    seeds would differ is asked by `paired_difference`.

    p is (b + 1) / (rounds + 1) for b rounds with a difference at least as large (Noreen's estimate, never 0).
    The coins come from `seed`, so that the same predictions always have the same p.

    Raises ValueError where there is no seed, their numbers differ, or the sentences are not the same.
    """
    if not len(a) or len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} seeds cannot be paired")
    one, other = np.stack(a), np.stack(b)
    if one.shape != other.shape or not np.array_equal(one[..., 0], other[..., 0]):
        raise ValueError("the systems were not tested on the same sentences")
    moved = other - one
    differs = moved.any(axis=(0, 2))
    # (sentences that differ, seeds * 3): what a gains where the two are exchanged, small whole numbers.
    moved = moved[:, differs].transpose(1, 0, 2).reshape(-1, 3 * len(one)).astype(np.float32)
    totals = one.sum(axis=1), other.sum(axis=1)
    observed = _difference(*totals)
    random = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // max(1, len(moved)))
    extreme = 0
    for start in range(0, rounds, step):
        tossed = min(step, rounds - start)
        bits = random.integers(0, 256, (tossed, -(-len(moved) // 8)), dtype=np.uint8)
        coins = np.unpackbits(bits, axis=1, count=len(moved)).astype(np.float32)
        gained = (coins @ moved).astype(np.float64).reshape(tossed, *totals[0].shape)
        differences = _difference(totals[0] + gained, totals[1] - gained)
        extreme += int(np.sum(np.abs(differences) >= abs(observed) - _ROUNDING))
    return Randomised(float(observed), (extreme + 1) / (rounds + 1), len(one), one.shape[1])


def _difference(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """The mean over seeds of the difference of scores; counts are (..., seeds, 3)."""
    return np.asarray(np.mean(score_of_counts(a) - score_of_counts(b), axis=-1))
