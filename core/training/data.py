"""A run's data: every split encoded, with label numbers, gold scores and the order of an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.corpora.assembly import SPLITS
from core.corpora.sampling import parts
from core.corpora.types import Corpus, Sentence, Sentences, Task
from core.encoding.batches import IGNORED, Batches, EpochOrder
from core.encoding.encoded import EncodedText, encode_cached
from core.encoding.texts import encode_sentences
from core.encoding.tokenizer import SubwordTokenizer, Tokenizer
from core.events import TaskFacts
from core.models.sources import longest_window
from core.paths import cache_dir
from core.registry import task_smoothing
from core.tasks import KINDS
from core.tasks.packed import offsets, places


@dataclass(frozen=True)
class SplitData:
    """One split, ready to be trained on or predicted.

    `labels` (N, T): label numbers of its N words, IGNORED where a task has none or training never saw it.
    `subwords`: what a frozen transformer reads of the split, and its key: `text`, or where `text` has whole
    words, their subwords in windows of their own.
    """

    sentences: Sentences
    text: EncodedText
    key: str
    labels: NDArray[np.int64]
    batches: Batches
    subwords: tuple[EncodedText, str]


def label_numbers(sentences: Sequence[Sentence], tasks: Sequence[Task | TaskFacts]) -> NDArray[np.int64]:
    """(N, T) label numbers of all words (or whole texts), sentence after sentence; of numbers 0."""
    packed = Sentences.of(sentences)
    numbers = np.full((len(tasks), int(packed.items.sum())), IGNORED)
    for row, task in zip(numbers, tasks, strict=True):
        number = KINDS[task.scheme].number(task.labels)
        labels = packed.column(task.name).rows
        rows = (number(name) for name in labels.names)
        table = np.array([IGNORED if at is None else at for at in rows], dtype=np.int64)
        row[labelled_items(packed, task.name)] = table[labels.numbers]
    return numbers.T


def labelled_items(sentences: Sequence[Sentence], task: str) -> NDArray[np.int64]:
    """The numbers of the items that a task labels, of all words (or whole texts), sentence after sentence."""
    packed = Sentences.of(sentences)
    column = packed.column(task)
    # The sentence as an item stands before its words.
    words_behind = packed.has_text_item & ~packed.is_of_text(task)
    starts = offsets(packed.items)[:-1] + words_behind
    return places(starts[column.at], column.rows.lengths)


def _annotated(sentences: Sentences, tasks: Sequence[Task]) -> NDArray[np.bool_]:
    """(s, T): the tasks that each sentence is annotated for."""
    return np.stack([sentences.annotated([task.name]) for task in tasks], axis=1)


def _gold_numbers(
    sentences: Sentences, text: EncodedText, tasks: Sequence[Task]
) -> NDArray[np.float32] | None:
    """(N, T): the gold numbers of the tasks that have numbers; None where no task does."""
    number_tasks = {index: task for index, task in enumerate(tasks) if KINDS[task.scheme].is_number}
    if not number_tasks:
        return None
    scores = np.zeros((len(text.firsts), len(tasks)), dtype=np.float32)
    for index, task in number_tasks.items():
        gold = sentences.column(task.name).rows
        values = np.array(list(map(float, gold.names)))[gold.numbers]
        scores[labelled_items(sentences, task.name), index] = values
    return scores


def encode_corpus(
    config: RunConfig, corpus: Corpus, tokenizer: Tokenizer, context: SubwordTokenizer | None
) -> Mapping[str, SplitData]:
    """Every split that has sentences, encoded (from the cache where it was before).

    `context` splits words for the context encoder, where the run has one.
    """
    together = config.pair_encoding == "together"
    window = longest_window(str(config.context_encoder), config.max_length) if context else 0
    splits = {}
    for name in SPLITS:
        if sentences := corpus.split(name):
            text, key = encode_sentences(
                sentences, tokenizer, config.max_length, together=together, cache=cache_dir("encoded")
            )
            subwords = text, key
            if context is not None:
                subwords = encode_cached(sentences.tokens, context, window, cache_dir("encoded"))
            numbers = label_numbers(sentences, corpus.tasks)
            order = _epoch_order(config, sentences, text, numbers) if name == "train" else EpochOrder()
            scores, window_tasks = _gold_numbers(sentences, text, corpus.tasks), None
            if config.embeds_tasks:
                window_tasks = _annotated(sentences, corpus.tasks)[text.sentence_of_window]
            batches = Batches(
                text,
                numbers,
                config.batch_size,
                tokenizer.pad,
                config.batch_tokens,
                order,
                scores,
                window_tasks,
            )
            splits[cast(str, name)] = SplitData(sentences, text, key, numbers, batches, subwords)
    return splits


def _epoch_order(
    config: RunConfig, sentences: Sentences, text: EncodedText, labels: NDArray[np.int64]
) -> EpochOrder:
    """The order in which training sentences make an epoch."""
    if config.draw_tasks != "together":
        window_of_word = np.repeat(np.arange(text.windows), np.diff(text.words))
        annotated = [np.unique(window_of_word[column != IGNORED]) for column in labels.T]
        smoothing = task_smoothing(config.draw_tasks)
        by_size = config.draw_tasks == "by_size" or smoothing is not None
        return EpochOrder(
            config.batching == "by_length", tasks=tuple(annotated), by_size=by_size, smoothing=smoothing
        )
    part_of_window = None
    if config.corpus_order == "in_turn":
        part_of_sentence = np.zeros(len(sentences), dtype=np.int64)
        for number, (_, which) in enumerate(parts(sentences)):
            part_of_sentence[which] = number
        part_of_window = part_of_sentence[text.sentence_of_window]
    fraction = config.fraction if config.fraction_draw == "each_epoch" else None
    return EpochOrder(config.batching == "by_length", part_of_window, fraction)
