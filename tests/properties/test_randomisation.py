"""The test over sentences: its p by hand, its level where nothing differs, its power where something does."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.evaluation import statistics
from core.evaluation.statistics import Randomised, randomisation_test
from core.tasks import score_task
from core.tasks.scores import score_of_counts, sentence_counts

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
rows = st.lists(st.lists(st.sampled_from(LABELS), max_size=8), min_size=1, max_size=6)
SENTENCES, SEEDS, WORDS = 150, 4, 20
EXPERIMENTS, ROUNDS = 400, 199


def compared(a: NDArray[np.int64], b: NDArray[np.int64], **settings: int) -> Randomised:
    """The test of two systems, their counts stacked over seeds: (seeds, sentences, 3) each."""
    return randomisation_test(list(a), list(b), **settings)


def systems(random: np.random.Generator, gain: float = 0.0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Right words of two systems over the same sentences: (seeds, sentences, 3) each.

    Some sentences suit the one, some the other, whatever the seed, as with real systems; `gain` suits the
    first everywhere.
    """
    hard = random.normal(1.5, 0.7, SENTENCES)
    suits = random.normal(0.0, 0.35, SENTENCES)
    made = []
    for sign in (1, -1):
        chance = 1 / (1 + np.exp(-(hard + sign * (suits + gain))))
        right = random.binomial(WORDS, np.broadcast_to(chance, (SEEDS, SENTENCES)))
        made.append(np.stack([np.full_like(right, WORDS), np.full_like(right, WORDS), right], axis=-1))
    return made[0], made[1]


def rejected(gain: float, *, jointly: bool) -> float:
    """The share of experiments with p at most 0.05. Not jointly: as if each seed had sentences of its own."""
    random = np.random.default_rng(7)
    rejections = 0
    for _ in range(EXPERIMENTS):
        a, b = systems(random, gain)
        if not jointly:
            a, b = (system.reshape(1, -1, 3) for system in (a, b))
        rejections += compared(a, b, rounds=ROUNDS, seed=int(random.integers(2**31))).p <= 0.05
    return rejections / EXPERIMENTS


@pytest.mark.parametrize(
    ("gain", "jointly", "low", "high"),
    [
        # 400 experiments at a true level of 0.05: 0.05 ± 0.033 is three standard deviations.
        (0.0, True, 0.017, 0.083),
        (0.15, True, 0.9, 1),  # a real difference
        (0.0, False, 0.12, 1),  # a coin per seed would be wrong far too often
    ],
)
def test_how_often_a_difference_is_found(gain: float, jointly: bool, low: float, high: float) -> None:
    assert low <= rejected(gain, jointly=jointly) <= high


def test_p_is_that_of_all_exchanges() -> None:
    """Six sentences have 64 exchanges, which can all be tried."""
    random = np.random.default_rng(3)
    predicted = random.integers(1, 5, (2, 2, 6))
    gold = np.broadcast_to(random.integers(2, 5, 6), predicted.shape)
    right = np.minimum(random.integers(0, 2, (2, 2, 6)), predicted)
    first, second = np.stack([gold, predicted, right], axis=-1)
    observed = np.mean(score_of_counts(first.sum(1)) - score_of_counts(second.sum(1)))
    extreme = 0
    for coins in itertools.product([False, True], repeat=6):
        turned = np.array(coins)[:, None]
        a, b = np.where(turned, second, first), np.where(turned, first, second)
        difference = np.mean(score_of_counts(a.sum(1)) - score_of_counts(b.sum(1)))
        extreme += abs(difference) >= abs(observed) - 1e-12
    assert 0 < extreme < 64
    result = compared(first, second, rounds=20_000)
    assert result.difference == pytest.approx(observed)
    assert result.p == pytest.approx(extreme / 64, abs=0.012)


def test_the_same_predictions_always_have_the_same_p() -> None:
    a, b = systems(np.random.default_rng(1), 0.05)
    first = compared(a, b, rounds=999)
    assert first == compared(a, b, rounds=999)
    back = compared(b, a, rounds=999)
    assert (back.p, back.difference) == (first.p, -first.difference)
    assert 0 < first.p <= 1


def test_rounds_are_added_up_over_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = systems(np.random.default_rng(2), 0.01)
    whole = compared(a, b, rounds=4000).p
    monkeypatch.setattr(statistics, "_AT_ONCE", SENTENCES * 64)
    assert compared(a, b, rounds=4000).p == pytest.approx(whole, abs=0.04)


def test_other_sentences_are_refused() -> None:
    a, b = systems(np.random.default_rng(1))
    with pytest.raises(ValueError, match="same sentences"):
        compared(a, b[:, 1:])
    other = b.copy()
    other[..., 0] += 1
    with pytest.raises(ValueError, match="same sentences"):
        compared(a, other)
    with pytest.raises(ValueError, match="cannot be paired"):
        compared(a, b[:2])
    with pytest.raises(ValueError, match="cannot be paired"):
        randomisation_test([], [])
    with pytest.raises(ValueError, match="sentence 1: 2 gold labels and 1"):
        sentence_counts("accuracy", [["A", "B"]], [["A"]])
    assert compared(a, a, rounds=99).p == 1


@given(rows, st.randoms(use_true_random=False))
def test_counts_of_sentences_add_up_to_the_score(gold: list[list[str]], chance: Random) -> None:
    predicted = [[chance.choice(LABELS) for _ in labels] for labels in gold]
    for scheme, name in (("iob2", "f1_conll"), ("plain", "accuracy")):
        counts = sentence_counts(name, gold, predicted)
        assert counts.shape == (len(gold), 3)
        whole = score_task("task", scheme, gold, predicted, details=False).score
        assert score_of_counts(counts.sum(axis=0)) == pytest.approx(whole, nan_ok=True)
        for row, true, guess in zip(counts, gold, predicted, strict=True):
            alone = score_task("task", scheme, [true], [guess], details=False).score
            assert score_of_counts(row) == pytest.approx(alone, nan_ok=True)


@given(rows, st.randoms(use_true_random=False))
def test_counts_of_what_seqeval_takes_for_spans(gold: list[list[str]], chance: Random) -> None:
    pytest.importorskip("seqeval.metrics")
    tags = {"O": "NN", "B-PER": "NNP", "I-PER": "VB", "B-LOC": "VBD", "I-LOC": "."}
    true = [[tags[label] for label in labels] for labels in gold]
    guess = [[chance.choice(list(tags.values())) for _ in labels] for labels in gold]
    counts = sentence_counts("seqeval_f1", true, guess)
    score = score_task("pos", "plain", true, guess, plain_score="seqeval_f1").score
    assert score_of_counts(counts.sum(axis=0)) == pytest.approx(score, nan_ok=True)
