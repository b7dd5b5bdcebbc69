"""A corpus as a run's numbers: encoded splits, label numbers, and what there is to say about each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence, Split
from core.encoding.batches import IGNORED, Batches, EpochOrder
from core.encoding.encoded import EncodedText, encode_cached
from core.encoding.tokenizer import SubwordTokenizer
from core.evaluation.scores import score_name
from core.mrn.alignments import LabelCounts
from core.paths import cache_dir
from core.training.events import TaskFacts

__all__ = ["SPLITS", "SplitData", "encode_corpus", "label_counts", "label_numbers", "task_facts"]

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True)
class SplitData:
    """One split, ready to be trained on or predicted.

    `labels` (N, T): label numbers of its N words, IGNORED where a task has none or training never saw it.
    """

    sentences: tuple[Sentence, ...]
    text: EncodedText
    key: str
    labels: NDArray[np.int64]
    batches: Batches


def label_numbers(
    sentences: Sequence[Sentence], tasks: Sequence[str], labels: Sequence[Sequence[str]]
) -> NDArray[np.int64]:
    """(N, T) label numbers of all words, sentence after sentence."""
    words = sum(len(sentence.tokens) for sentence in sentences)
    numbers = np.empty((len(tasks), words), dtype=np.int64)
    for row, task, own in zip(numbers, tasks, labels, strict=True):
        number: dict[str | None, int] = {label: index for index, label in enumerate(own)}
        given = chain.from_iterable(
            sentence.labels.get(task) or repeat(None, len(sentence.tokens)) for sentence in sentences
        )
        row[:] = np.fromiter((number.get(label, IGNORED) for label in given), np.int64, words)
    return numbers.T


def encode_corpus(config: RunConfig, corpus: Corpus, tokenizer: SubwordTokenizer) -> Mapping[str, SplitData]:
    """Every split that has sentences, encoded (from the cache where it was before)."""
    tasks = [task.name for task in corpus.tasks]
    labels = [task.labels for task in corpus.tasks]
    splits = {}
    for name in SPLITS:
        sentences = corpus.split(name)
        if not sentences:
            continue
        words = [sentence.tokens for sentence in sentences]
        text, key = encode_cached(words, tokenizer, config.max_length, cache_dir("encoded"))
        numbers = label_numbers(sentences, tasks, labels)
        order = _epoch_order(config, sentences, text) if name == "train" else EpochOrder()
        batches = Batches(text, numbers, config.batch_size, tokenizer.pad, config.batch_tokens, order)
        splits[cast(str, name)] = SplitData(sentences, text, key, numbers, batches)
    return splits


def _epoch_order(config: RunConfig, sentences: Sequence[Sentence], text: EncodedText) -> EpochOrder:
    """How the training sentences make an epoch."""
    parts = None
    if config.corpus_order == "in_turn":
        number = {part: place for place, part in enumerate(dict.fromkeys(one.part for one in sentences))}
        of_sentence = np.array([number[sentence.part] for sentence in sentences])
        of_window = np.searchsorted(text.sentences, text.words[:-1], side="right") - 1
        parts = of_sentence[of_window]
    share = config.fraction if config.fraction_draw == "each_epoch" else None
    return EpochOrder(config.batching == "by_length", parts, share)


def label_counts(corpus: Corpus, train: SplitData) -> LabelCounts:
    """How often labels of different tasks stand on the same training words."""
    return LabelCounts.from_words(
        [task.name for task in corpus.tasks], [task.labels for task in corpus.tasks], train.labels
    )


def task_facts(config: RunConfig, corpus: Corpus, train: SplitData) -> tuple[TaskFacts, ...]:
    """What this run knows of each task before it trains."""
    return tuple(
        TaskFacts(
            name=task.name,
            scheme=task.scheme,
            labels=task.labels,
            score_name=score_name(task.scheme, config.pos_score),
            train_sentences=sum(task.name in sentence.labels for sentence in train.sentences),
            train_tokens=int((train.labels[:, index] != IGNORED).sum()),
            unseen=dict(task.unseen),
            illegal=dict(task.illegal),
            auxiliary=task.auxiliary,
        )
        for index, task in enumerate(corpus.tasks)
    )
