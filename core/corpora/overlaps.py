"""How far tasks overlap in words and in names of labels, by which the alignment `auto` chooses another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.config.typed import real_number
from core.corpora.loading import PREVIEW_SEED, Files, column_key, derivation_of, files_of, read
from core.corpora.types import Overlap, Sentence, Sentences


def corpus_overlaps(corpus: str, columns: Sequence[str] | None, tasks: Sequence[str]) -> tuple[Overlap, ...]:
    """The overlap of each pair of these tasks in all training sentences, before a run draws any by its seed.

    A derived corpus is measured as drawn with seed 1. Raises CorpusError as `prepare` does.
    """
    return _measured(corpus, column_key(columns), tuple(tasks), files_of(corpus))


@lru_cache(maxsize=1024)
def _measured(
    name: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...], files: Files
) -> tuple[Overlap, ...]:
    corpus, made_by = read(name, columns), derivation_of(name)
    return overlaps((corpus if made_by is None else made_by.make(corpus, PREVIEW_SEED)).train, tasks)


def overlaps(sentences: Sequence[Sentence], tasks: Sequence[str]) -> tuple[Overlap, ...]:
    """The overlap of each pair of these tasks in these training sentences, in the order of the tasks.

    Labels of whole texts that are numbers name nothing: the 0 of a sentiment is not that of a paraphrase.
    """
    packed = Sentences.of(sentences)
    annotated = {task: packed.annotated([task]) for task in tasks}
    is_of_text = {task: packed.is_of_text(task) for task in tasks}
    labels: dict[str, Counter[str]] = {}
    sizes: dict[str, NDArray[np.int64]] = {}  # how many labels each sentence has
    for task in tasks:
        column = packed.column(task)
        sizes[task] = np.zeros(len(packed), dtype=np.int64)
        sizes[task][column.at] = column.rows.lengths
        of_text = is_of_text[task][column.at]
        of_texts, of_words = (
            column.rows.take(np.flatnonzero(which)).counts() for which in (of_text, ~of_text)
        )
        names = {name: count for name, count in of_texts.items() if real_number(name) is None}
        labels[task] = of_words + Counter(names)

    def share_of_names(task: str, other: str) -> float:
        inside = {label: number for label, number in labels[task].items() if label != "O"}
        shared = sum(number for label, number in inside.items() if label in labels[other])
        return shared / sum(inside.values()) if inside else 0.0

    pairs = []
    for a, b in combinations(tasks, 2):
        fewer = min(int(sizes[a].sum()), int(sizes[b].sum()))
        is_both = annotated[a] & annotated[b] & (is_of_text[a] == is_of_text[b])
        share = int(sizes[a][is_both].sum()) / fewer if fewer else 0.0
        pairs.append(Overlap((a, b), share, min(share_of_names(a, b), share_of_names(b, a))))
    return tuple(pairs)
