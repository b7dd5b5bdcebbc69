"""Where a gain is found: a planted one, and none elsewhere; the p of other seeds and other sentences."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp

from core.evaluation.buckets import BucketedText, TaskText, shown
from core.evaluation.comparison import HIGHER, LOWER
from core.evaluation.statistics import exchange, paired_difference, randomisation_test
from core.evaluation.where import BucketDifference, PairedItems, bucket_differences, joint_p, where_headline
from core.tasks import KINDS
from core.tasks.packed import packed
from core.tasks.scores import Counts, sentence_counts

SEEDS, SENTENCES, LABELS = 5, 400, ("N", "V", "A", "P")
UNSEEN = "words unseen in training"


def _text(random: np.random.Generator, sentences: int) -> list[list[str]]:
    """Words as frequent as those of a language."""
    lengths = np.clip(random.geometric(1 / 14, sentences), 2, 50)
    return [[f"w{min(int(word), 200_000)}" for word in random.zipf(1.35, length)] for length in lengths]


def _annotated(random: np.random.Generator, rows: list[list[str]]) -> list[list[str]]:
    return [
        [
            LABELS[(int(word[1:]) * 7919 + (random.random() < 0.2) * int(random.integers(4))) % 4]
            for word in row
        ]
        for row in rows
    ]


def simulated(number: int, gain: float, drift: float) -> PairedItems:
    """Two systems with five seeds, of which the first is better on unseen words by `gain` in log-odds.

    Some sentences suit the one, some the other, whatever the seed; a seed has a `drift` of its own.
    """
    random = np.random.default_rng(number)
    train, test = _text(random, 600), _text(random, SENTENCES)
    train_labels, gold = _annotated(random, train), _annotated(random, test)
    kind = KINDS["plain"]
    seen = shown(TaskText(packed(train), packed(train_labels)), kind)
    text = BucketedText(TaskText(packed(test), packed(gold)), kind, seen, {})
    words = text.text.tokens
    sentence = np.repeat(np.arange(SENTENCES), words.lengths)
    is_unseen = words.flags(lambda word: word not in seen.words)
    hard, suits = random.normal(1.6, 0.7, SENTENCES), random.normal(0, 0.35, SENTENCES)
    sides = []
    for sign in (1, -1):
        side = []
        for _ in range(SEEDS):
            odds = (hard + sign * suits)[sentence] + random.normal(0, drift) - is_unseen
            odds += gain * is_unseen * (sign > 0)
            right = (random.random(len(odds)) < 1 / (1 + np.exp(-odds))).tolist()
            flat = [label for row in gold for label in row]
            guess = [
                label if is_right else LABELS[(LABELS.index(label) + 1) % 4]
                for label, is_right in zip(flat, right, strict=True)
            ]
            borders = words.offsets.tolist()
            predicted = [guess[start:end] for start, end in pairwise(borders)]
            side.append(text.items(gold, predicted, "accuracy"))
        sides.append(side)
    return PairedItems(text.buckets, range(1, SEEDS + 1), sides[0], sides[1], [SENTENCES] * SEEDS)


def shares(gain: float, drift: float, simulations: int) -> tuple[float, float, float]:
    """How often the gain is named, how often another bucket is, and how often p over sentences is small."""
    named, blamed, small = 0, 0, 0
    for number in range(simulations):
        every = bucket_differences(simulated(number, gain, drift), 999)
        small += any(each.p is not None and each.p < 0.05 for each in every)
        found = [each for each in every if each.is_named]
        planted = [each for each in found if each.bucket.phrase == UNSEEN and each.verdict == HIGHER]
        named += bool(planted)
        blamed += len(found) > len(planted)
    return named / simulations, blamed / simulations, small / simulations


@pytest.mark.slow
@pytest.mark.parametrize("drift", [0.03, 0.1])
def test_a_planted_gain_is_named_and_nothing_else(drift: float) -> None:
    named, blamed, _ = shares(0.8, drift, 200)
    print(f"drift {drift}: named {named:.1%}, another bucket {blamed:.1%} of 200 simulations")
    assert named >= 0.95
    assert blamed <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_without_a_gain_nothing_is_named(drift: float) -> None:
    named, blamed, small = shares(0.0, drift, 200)
    print(
        f"drift {drift}: some bucket {named + blamed:.1%}, by sentences alone {small:.1%} of 200 simulations"
    )
    assert named + blamed <= 0.05


def test_the_headline_names_the_planted_gain_alone() -> None:
    found = bucket_differences(simulated(1, 1.0, 0.03), 999)
    decided = [each for each in found if each.verdict == HIGHER]
    assert [each.bucket.phrase for each in decided if each.is_named] == [UNSEEN]
    sentence, others = where_headline("pos", "MRN", "MTL", found)
    assert re.fullmatch(rf"On pos MRN gains over MTL with {UNSEEN} \(\+[\d.]+\)\.", sentence)
    explained = [each.bucket.phrase for each in found if each.explained_by is not None]
    explains = r"This explains the differences? with [^.]*\. "
    assert re.fullmatch(rf"{explains * bool(explained)}All others are undecided\.", others)
    for each in decided:
        assert each.is_named or "explained by words unseen in training" in each.verdict_text
    mirror = simulated(1, 1.0, 0.03)
    turned = bucket_differences(
        PairedItems(mirror.buckets, mirror.seeds, mirror.b, mirror.a, mirror.sentences), 999
    )
    assert [each.bucket.phrase for each in turned if each.is_named and each.verdict == LOWER] == [UNSEEN]
    assert "loses to MRN with" in where_headline("pos", "MTL", "MRN", turned)[0]


def test_without_a_test_or_with_one_seed_nothing_is_decided() -> None:
    pairs = simulated(1, 1.0, 0.03)
    apart = bucket_differences(
        PairedItems(pairs.buckets, pairs.seeds, pairs.a, pairs.b, pairs.sentences, alike=False)
    )
    one = bucket_differences(
        PairedItems(pairs.buckets, [1], pairs.a[:1], pairs.b[:1], pairs.sentences[:1]), 99
    )
    for found in (apart, one):
        assert not any(each.is_named for each in found)
        assert where_headline("pos", "MRN", "MTL", found)[0].startswith("On pos none of ")


def test_the_whole_as_one_bucket_is_the_test_over_sentences() -> None:
    random = np.random.default_rng(6)
    gold = [[str(label) for label in random.choice(LABELS, 9)] for _ in range(60)]
    sides = [
        [
            sentence_counts(
                "accuracy",
                gold,
                [[label if random.random() < 0.8 else "X" for label in row] for row in gold],
            )
            for _ in range(3)
        ]
        for _ in range(2)
    ]
    expected = randomisation_test(*sides, rounds=500)
    halves: list[list[Counts]] = [
        [np.stack([each, np.where(np.arange(60)[:, None] < 30, each, 0)], axis=1) for each in side]
        for side in sides
    ]
    exchanged = exchange(halves[0], halves[1], 500)
    assert (exchanged.observed[0], exchanged.p[0]) == (expected.difference, expected.p)
    assert exchanged.observed[1] == pytest.approx(
        randomisation_test(*([each[:30] for each in side] for side in sides), rounds=9).difference
    )


def test_the_joint_p_lies_between_those_of_its_parts() -> None:
    differences = {1: 0.02, 2: 0.035, 3: 0.01, 4: 0.03, 5: 0.022}
    paired = paired_difference(differences, dict.fromkeys(differences, 0.0))
    assert paired is not None
    alone = ttest_1samp(list(differences.values()), 0).pvalue
    assert joint_p(paired, 0.0) == pytest.approx(alone)
    same = paired_difference({1: 0.02, 2: 0.02}, {1: 0.0, 2: 0.0})
    assert same is not None
    assert joint_p(same, 0.01) == pytest.approx(2 * norm.sf(2))
    assert joint_p(paired, 0.01) > 2 * norm.sf(paired.mean / 0.01)
    single = paired_difference({1: 0.02}, {1: 0.0})
    assert single is not None
    assert joint_p(single, 0.01) == 1.0


def test_a_difference_is_written_in_points() -> None:
    pairs = simulated(2, 0.0, 0.1)
    each: BucketDifference = bucket_differences(pairs, 99)[0]
    assert each.in_points.count("[") == 1
    assert each.items > 0
