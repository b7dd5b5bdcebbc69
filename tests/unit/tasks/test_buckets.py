"""Buckets of words, spans, texts and numbers; their scores against a brute-force definition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.buckets import Bucket, BucketedText, TaskText, bucket_counts, shown
from core.tasks import KINDS
from core.tasks.packed import packed
from core.tasks.scores import score_of_counts
from core.tasks.spans import Span, spans

Rows = list[list[str]]
TRAIN: Rows = [
    ["Rome", "is", "old"],
    ["Rome", "won"],
    ["Rome", "Paris"],
    ["is", "it"],
    ["a", "Rome", "b", "c"],
]
TRAIN_NER: Rows = [
    ["B-LOC", "O", "O"],
    ["B-ORG", "O"],
    ["B-LOC", "B-LOC"],
    ["O", "O"],
    ["O", "B-LOC", "O", "O"],
]


def bucketed(
    kind: str, train: Rows, train_labels: Rows, test: Rows, labels: Rows, **columns: list[list[str] | None]
) -> BucketedText:
    training = TaskText(packed(train), packed(train_labels))
    text = TaskText(packed(test), packed(labels))
    return BucketedText(text, KINDS[kind], shown(training, KINDS[kind]), columns)


def scores(text: BucketedText, gold: Rows, predicted: Rows, name: str) -> dict[Bucket, float]:
    items = text.items(gold, predicted, name)
    counts = bucket_counts(items, len(gold), len(text.buckets)).sum(axis=0)[:-1]
    return dict(zip(text.buckets, score_of_counts(counts).tolist(), strict=True))


def test_what_training_shows() -> None:
    known = shown(TaskText(packed(TRAIN), packed(TRAIN_NER)), KINDS["iob2"])
    assert (known.words["Rome"], known.labels["Rome"], known.labels["is"]) == (4, 2, 1)
    assert known.label_times == {"LOC": 4, "ORG": 1}


# The definitions, written once more without numpy: the bucket of a span in its sentence.


def _times(words: list[str], span: Span) -> str:
    times = min(sum(row.count(word) for row in TRAIN) for word in words[span.start : span.end])
    return ["unseen", "once"][times] if times < 2 else "2–9 times"


def _labels(words: list[str], span: Span) -> str:
    most = max(
        len({label.partition("-")[2] for row, of in zip(TRAIN, TRAIN_NER, strict=True)
             for seen, label in zip(row, of, strict=True) if seen == word})
        for word in words[span.start : span.end]
    )  # fmt: skip
    return {0: "", 1: "1 label", 2: "2 labels"}[most]


def _span_length(words: list[str], span: Span) -> str:
    return {1: "1 word", 2: "2 words", 3: "3 words"}.get(span.end - span.start, "4 words or more")


def _sentence_length(words: list[str], span: Span) -> str:
    return "1–9 words" if len(words) < 10 else "10–19 words"


def _position(words: list[str], span: Span) -> str:
    return "later words" if span.start else "first words"


def _label_times(words: list[str], span: Span) -> str:
    return {"LOC": "1–9 times", "ORG": "1–9 times"}.get(span.type, "unseen")


BY_HAND: dict[str, Callable[[list[str], Span], str]] = {
    "frequency": _times,
    "labels": _labels,
    "span length": _span_length,
    "sentence length": _sentence_length,
    "position": _position,
    "label frequency": _label_times,
}
WORDS = ["Rome", "is", "Paris", "it", "new", "other"]
LABELS = ["O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-NEW"]
pairs = st.lists(
    st.lists(st.tuples(*map(st.sampled_from, (WORDS, LABELS, LABELS))), min_size=1, max_size=12),
    min_size=1,
    max_size=5,
)


@given(pairs)
def test_f1_in_a_bucket_is_of_the_annotated_and_the_predicted_spans_in_it(
    drawn: list[list[tuple[str, str, str]]],
) -> None:
    words, gold, predicted = ([[each[at] for each in row] for row in drawn] for at in (0, 1, 2))
    text = bucketed("iob2", TRAIN, TRAIN_NER, words, gold)
    for bucket, score in scores(text, gold, predicted, "f1_conll").items():
        true, guess = (
            {
                (number, span)
                for number, (row, labels) in enumerate(zip(words, side, strict=True))
                for span in spans(labels)
                if BY_HAND[bucket.feature](row, span) == bucket.name
            }
            for side in (gold, predicted)
        )
        if not true:
            assert math.isnan(score)
        else:
            assert score == pytest.approx(2 * len(true & guess) / (len(true) + len(guess)))


def test_words_have_accuracy_and_columns_are_buckets() -> None:
    test = [["Rome", "new", "is"], ["is", "new"]]
    gold, predicted = [["N", "N", "V"], ["V", "N"]], [["N", "V", "V"], ["N", "N"]]
    labels = [["N" if word[0].isupper() else "V" for word in row] for row in TRAIN]
    text = bucketed(
        "plain", TRAIN, labels, test, gold, ner=[["LOC", "O", "O"], None], genre=[["news"], ["mail"]]
    )
    found = {
        (bucket.feature, bucket.name): score
        for bucket, score in scores(text, gold, predicted, "accuracy").items()
    }
    assert found["frequency", "unseen"] == 0.5
    assert found["frequency", "2–9 times"] == pytest.approx(2 / 3)
    assert (found["ner", "LOC"], found["ner", "O"]) == (1.0, 0.5)
    assert found["genre", "news"] == pytest.approx(2 / 3)
    assert found["genre", "mail"] == 0.5
    phrases = {bucket.phrase for bucket in text.buckets}
    assert {"words unseen in training", "words seen once in training", "genre news", "first words"} <= phrases


def test_a_column_with_many_values_has_a_bucket_for_the_others() -> None:
    values = [[f"v{number % 20:02}"] for number in range(60)]
    test, gold = [["Rome"]] * 60, [["N"]] * 60
    text = bucketed("plain", TRAIN, [["N"] * len(row) for row in TRAIN], test, gold, genre=list(values))
    names = [bucket.name for bucket in text.buckets if bucket.feature == "genre"]
    assert len(names) == 12
    assert names[-1] == "other"


def test_texts_and_numbers() -> None:
    random = np.random.default_rng(3)
    test = [["Rome"] * length for length in (1, 3, 12, 15, 30)] + [["new", "Rome"]]
    gold = [["good"], ["bad"], ["good"], ["bad"], ["good"], ["bad"]]
    predicted = [["good"], ["good"], ["good"], ["bad"], ["bad"], ["bad"]]
    text = bucketed("text", TRAIN, [["good"]] * len(TRAIN), test, gold)
    found = {bucket.phrase: score for bucket, score in scores(text, gold, predicted, "accuracy").items()}
    assert found["texts of 1–9 words"] == pytest.approx(2 / 3)
    assert found["texts with 10% or more unseen words"] == 1.0
    assert found["labels unseen in training"] == pytest.approx(2 / 3)
    numbers = [[[str(value)] for value in random.normal(size=6)] for _ in range(2)]
    text = bucketed("score", TRAIN, [["1"]] * len(TRAIN), test, numbers[0])
    of_short = [index for index, row in enumerate(test) if len(row) < 10]
    short = [np.array([float(side[index][0]) for index in of_short]) for side in numbers]
    found = {
        bucket.phrase: score for bucket, score in scores(text, numbers[0], numbers[1], "pearson").items()
    }
    assert found["texts of 1–9 words"] == pytest.approx(np.corrcoef(short[0], short[1])[0, 1])


def test_the_items_of_other_buckets_can_be_left_out() -> None:
    gold = predicted = [["N", "N", "V"], ["V", "N"]]
    test = [["Rome", "new", "is"], ["is", "new"]]
    text = bucketed("plain", TRAIN, [["N"] * len(row) for row in TRAIN], test, gold)
    names = [(bucket.feature, bucket.name) for bucket in text.buckets]
    items = text.items(gold, predicted, "accuracy")
    left_out = [names.index(("position", "first words"))]
    counts = bucket_counts(items, 2, len(names), left_out).sum(axis=0)
    assert counts[names.index(("frequency", "unseen")), 0] == 2
    assert counts[names.index(("frequency", "2–9 times")), 0] == 1  # `is` in the middle
