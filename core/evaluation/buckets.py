"""Buckets of a task's words, spans or texts, and what each sentence adds to the score of each bucket.

A bucket is a condition on an item and on the training sentences that are annotated for the task: no
prediction decides it. Of spans F1 is scored: annotated spans in a bucket decide recall, predicted spans in it
precision; a span that is both has the same words and type, so that it is in the same buckets on both sides.
Of words and texts accuracy is scored, of numbers Pearson's correlation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.tasks import TaskKind
from core.tasks.packed import Packed
from core.tasks.scores import Counts, sentence_counts
from core.tasks.spans import FlatSpans, Ints, Labels, numbered, span_pair

_MOST_VALUES = 12
"""The most frequent values of a column that have a bucket each; `other` has all others."""


@dataclass(frozen=True)
class Bucket:
    """A bucket of a feature. `phrase` names it in a sentence: `words unseen in training`."""

    feature: str
    name: str
    phrase: str


@dataclass(frozen=True)
class Feature:
    """A number of each item, cut into buckets.

    `least` are the least numbers of its buckets, ascending; an item below the first is in none.
    """

    buckets: tuple[Bucket, ...]
    least: tuple[float, ...]

    def of(self, values: NDArray[Any]) -> Ints:
        """(k,) the number of each item's bucket; −1 for none."""
        return np.searchsorted(self.least, values, side="right").astype(np.int64) - 1


def _feature(feature: str, phrase: str, least: Sequence[float], names: Sequence[str]) -> Feature:
    """A feature whose buckets have these names; `phrase` has `{}` for the name, or `ONE|OTHERS`."""
    one, _, others = phrase.partition("|")
    texts = [one if index == 0 or not others else others for index in range(len(names))]
    buckets = [Bucket(feature, name, text.format(name)) for name, text in zip(names, texts, strict=True)]
    return Feature(tuple(buckets), tuple(least))


_TIMES = ("unseen", "once", "2–9 times", "10–99 times", "100 times or more")
FREQUENCY = _feature(
    "frequency", "words {} in training|words seen {} in training", (0, 1, 2, 10, 100), _TIMES
)
LABELS = _feature(
    "labels", "words with {} in training", (1, 2, 3), ("1 label", "2 labels", "3 labels or more")
)
SPAN_LENGTH = _feature(
    "span length", "spans of {}", (1, 2, 3, 4), ("1 word", "2 words", "3 words", "4 words or more")
)
_LENGTHS = (1, 10, 20, 40), ("1–9 words", "10–19 words", "20–39 words", "40 words or more")
SENTENCE_LENGTH = _feature("sentence length", "sentences of {}", *_LENGTHS)
POSITION = _feature("position", "{}", (0, 1), ("first words", "later words"))
_LABEL_TIMES = ("unseen", "1–9 times", "10–99 times", "100–999 times", "1,000 times or more")
LABEL_FREQUENCY = _feature(
    "label frequency", "labels {} in training|labels seen {} in training", (0, 1, 10, 100, 1000), _LABEL_TIMES
)
TEXT_LENGTH = _feature("length", "texts of {}", *_LENGTHS)
UNSEEN_WORDS = _feature(
    "unseen words", "texts with {} unseen words", (0.0, 1e-9, 0.1), ("no", "under 10%", "10% or more")
)


FEATURE_HEADS = {"frequency": "How often seen", "labels": "Labels per word", "length": "Text length"}
"""What heads the buckets of a feature; of others it is their name."""


@dataclass(frozen=True)
class TaskText:
    """Sentences that are annotated for a task: their words (of a pair, of both texts), and their labels."""

    tokens: Packed
    labels: Packed


@dataclass(frozen=True)
class Shown:
    """What training shows for a task: how often each word, how many labels it has there, how often a label.

    Labels of spans are types, with O for words outside; of those only spans are counted.
    """

    words: Mapping[str, int]
    labels: Mapping[str, int]
    label_times: Mapping[str, int]


def shown(training: TaskText, kind: TaskKind) -> Shown:
    """What these training sentences show."""
    tokens, labels = training.tokens, training.labels
    times = tokens.counts()
    if kind.reads != "words":
        return Shown(times, {}, {} if kind.is_number else labels.counts())
    types = labels.mapped(_type) if kind.has_spans else labels
    size = max(len(types.names), 1)
    pairs = np.unique(tokens.numbers.astype(np.int64) * size + types.numbers)
    different = np.bincount(pairs // size, minlength=len(tokens.names)).tolist()
    label_times: Mapping[str, int] = labels.counts()
    if kind.has_spans:
        names, true, _ = span_pair(labels, labels.numbers.astype(np.int64))
        label_times = dict(zip(names, np.bincount(true.type, minlength=len(names)).tolist(), strict=True))
    return Shown(times, dict(zip(tokens.names, different, strict=True)), label_times)


def span_types(labels: Sequence[str]) -> list[str]:
    """The types of IOB labels, O for words outside."""
    return list(map(_type, labels))


def _type(label: str) -> str:
    return label.partition("-")[2] or label


class Items(NamedTuple):
    """k items of a system's predictions.

    sentence (k,)     the sentence of each
    bucket (k, F)     the number of its bucket by feature; −1 for none
    values (k, c)     what it adds to the counts of a score (`core.tasks.scores.sentence_counts`)
    """

    sentence: Ints
    bucket: Ints
    values: Counts


@dataclass(frozen=True)
class BucketedText:
    """The scored sentences of a task with the buckets of their items.

    `columns` are buckets of one's own by name: a value for each word, or one for the sentence; a sentence
    without values is in no bucket of that column.
    """

    text: TaskText
    kind: TaskKind
    shown: Shown
    columns: Mapping[str, Sequence[Sequence[str] | None]]

    @cached_property
    def _column_features(self) -> dict[str, tuple[Feature, Ints]]:
        """Each column with the number of the bucket of each word (N,), or of each text (s,)."""
        made = {}
        for name, rows in self.columns.items():
            if self.kind.reads == "words":
                lengths = self.text.tokens.lengths.tolist()
                values = [
                    value
                    for row, length in zip(rows, lengths, strict=True)
                    for value in (
                        [None] * length if row is None else row if len(row) == length else [row[0]] * length
                    )
                ]
            else:
                values = [row[0] if row else None for row in rows]
            times: dict[str, int] = {}
            for value in values:
                if value is not None:
                    times[value] = times.get(value, 0) + 1
            most = sorted(times, key=lambda value: (-times[value], value))
            kept = most if len(most) <= _MOST_VALUES else [*most[: _MOST_VALUES - 1], "other"]
            place = {value: min(index, len(kept) - 1) for index, value in enumerate(most)}
            numbers = np.array([-1 if value is None else place[value] for value in values], dtype=np.int64)
            made[name] = _feature(name, f"{name} {{}}", range(len(kept)), kept), numbers
        return made

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features of this kind of task."""
        fixed: tuple[Feature, ...] = (TEXT_LENGTH, UNSEEN_WORDS)
        if self.kind.reads == "words":
            lengths = (SPAN_LENGTH, SENTENCE_LENGTH) if self.kind.has_spans else (SENTENCE_LENGTH,)
            fixed = (FREQUENCY, LABELS, *lengths, POSITION)
        labels = () if self.kind.is_number else (LABEL_FREQUENCY,)
        return (*fixed, *labels, *(feature for feature, _ in self._column_features.values()))

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """The buckets of all features, in order."""
        return tuple(bucket for feature in self.features for bucket in feature.buckets)

    @cached_property
    def _word_facts(self) -> tuple[Ints, Ints]:
        """(N,) how often training shows each word, and how many labels it has there."""
        tokens = self.text.tokens
        facts = (self.shown.words, self.shown.labels)
        times, labels = (
            np.array([fact.get(name, 0) for name in tokens.names], dtype=np.int64)[tokens.numbers]
            for fact in facts
        )
        return times, labels

    def items(self, gold: Labels, predicted: Labels, score_name: str) -> Items:
        """The items of predictions of these sentences. Raises ValueError for lengths that differ."""
        if self.kind.reads != "words":
            return self._texts(gold, predicted, score_name)
        packed, guess = numbered(gold, predicted)
        if not self.kind.has_spans:
            every = np.arange(len(guess))
            right = (packed.numbers == guess).astype(np.int64)
            ones = np.ones_like(right)
            return self._placed(
                FlatSpans(every, every + 1, packed.numbers.astype(np.int64)),
                packed.names,
                np.stack([ones, ones, right], axis=1),
            )
        types, true, guesses = span_pair(packed, guess)
        both = guesses.among(true).astype(np.int64)
        ones, none = np.ones(len(true.end), dtype=np.int64), np.zeros(len(true.end), dtype=np.int64)
        annotated = self._placed(true, types, np.stack([ones, none, none], axis=1))
        predicted_spans = self._placed(
            guesses, types, np.stack([np.zeros_like(both), np.ones_like(both), both], axis=1)
        )
        sentence, bucket = (np.concatenate([annotated[at], predicted_spans[at]]) for at in (0, 1))
        values = np.concatenate([annotated.values, predicted_spans.values])
        return Items(sentence, bucket, values)

    def _placed(self, spans: FlatSpans, names: Sequence[str], values: Counts) -> Items:
        """Words or spans of words as items; `names` are those of their labels."""
        tokens = self.text.tokens
        sentence = np.searchsorted(tokens.offsets, spans.start, side="right") - 1
        edges = np.stack([spans.start, spans.end], axis=1).ravel()
        times, labels = (np.append(fact, 0) for fact in self._word_facts)

        def over(reduce: np.ufunc, fact: Ints) -> Ints:
            return reduce.reduceat(fact, edges)[::2] if len(edges) else np.zeros(0, np.int64)

        label_times = np.array([self.shown.label_times.get(name, 0) for name in names], dtype=np.int64)
        numbers: dict[Feature, NDArray[Any]] = {
            FREQUENCY: over(np.minimum, times),
            LABELS: over(np.maximum, labels),
            SPAN_LENGTH: spans.end - spans.start,
            SENTENCE_LENGTH: tokens.lengths[sentence],
            POSITION: np.minimum(spans.start - tokens.offsets[sentence], 1),
            LABEL_FREQUENCY: label_times[spans.type] if len(names) else np.zeros(0, np.int64),
        }
        columns = {feature: values[spans.start] for feature, values in self._column_features.values()}
        return Items(sentence, self._numbered(numbers | columns, len(sentence)), values)

    def _texts(self, gold: Labels, predicted: Labels, score_name: str) -> Items:
        """Whole texts as items."""
        tokens = self.text.tokens
        unseen = self._word_facts[0] == 0
        sums = np.concatenate([[0], np.cumsum(unseen)])
        lengths = tokens.lengths
        numbers: dict[Feature, NDArray[Any]] = {
            TEXT_LENGTH: lengths,
            UNSEEN_WORDS: np.diff(sums[tokens.offsets]) / np.maximum(lengths, 1),
            LABEL_FREQUENCY: np.array(
                [self.shown.label_times.get(row[0], 0) for row in gold], dtype=np.int64
            ),
        }
        columns = dict(self._column_features.values())
        every = np.arange(len(lengths))
        bucket = self._numbered(numbers | columns, len(lengths))
        return Items(every, bucket, sentence_counts(score_name, gold, predicted))

    def _numbered(self, numbers: Mapping[Feature, NDArray[Any]], items: int) -> Ints:
        """(k, F) the number of each item's bucket among all, by feature."""
        bucket = np.full((items, len(self.features)), -1)
        first = 0
        for column, feature in enumerate(self.features):
            of_feature = feature.of(numbers[feature])
            bucket[:, column] = np.where(of_feature < 0, -1, of_feature + first)
            first += len(feature.buckets)
        return bucket


def bucket_counts(items: Items, sentences: int, buckets: int, without: Collection[int] = ()) -> Counts:
    """(sentences, buckets + 1, c): the sums of the items in each bucket, and last of all items.

    Items in one of the buckets `without` do not count.
    """
    kept = ~np.isin(items.bucket, list(without)).any(axis=1) if without else slice(None)
    sentence, bucket, values = items.sentence[kept], items.bucket[kept], items.values[kept]
    size = buckets + 1
    places = [sentence * size + buckets]
    rows = [np.arange(len(sentence))]
    for column in bucket.T:
        is_in = np.flatnonzero(column >= 0)
        places.append(sentence[is_in] * size + column[is_in])
        rows.append(is_in)
    flat, row = np.concatenate(places), np.concatenate(rows)
    sums = [np.bincount(flat, column[row], minlength=sentences * size) for column in values.T]
    counts: Counts = np.stack(sums, axis=1).reshape(sentences, size, -1)
    return counts.astype(np.int64) if np.issubdtype(values.dtype, np.integer) else counts
