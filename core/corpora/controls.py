"""Controls: a corpus in which the training labels of one task say nothing of the words.

What a run learns of that task's relations is what it learns where there is none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.corpora.sampling import stream
from core.corpora.types import Corpus
from core.tasks.packed import Packed, places

_INSIDE = "I-"


def with_permuted(corpus: Corpus, name: str, seed: int) -> Corpus:
    """The corpus with the training labels of that task permuted over its training words, by the seed.

    Each label stays as frequent as it was. Spans stay whole: the contents of places of equal length (a span,
    or a word outside) are permuted over all sentences, then the places of each sentence. Labels of whole
    texts are permuted over the texts. Dev and test stay as they are.
    """
    train = corpus.split("train")
    column, numbers = train.column(name), stream(seed, "permuted", name)
    rows = column.rows
    if corpus.task(name).scheme == "iob2":
        order = _over_places(rows, numbers)
    else:
        order = numbers.permutation(len(rows.numbers))
    permuted = replace(column, rows=replace(rows, numbers=rows.numbers[order]))
    note = f"A control: the training labels of {name} are permuted with seed {seed}, so they say nothing."
    # What was planted between the tasks no longer holds.
    return replace(corpus, train=train.with_column(name, permuted), notes=(*corpus.notes, note), planted=None)


def _over_places(rows: Packed, numbers: np.random.Generator) -> NDArray[np.int64]:
    """(N,) the word whose label each word gets, so that spans stay whole and sentences as long."""
    inside = rows.flags(lambda label: label.startswith(_INSIDE))
    types = rows.mapped(lambda label: label.partition("-")[2]).numbers
    begins = ~inside
    begins[1:] |= types[1:] != types[:-1]
    begins[rows.offsets[:-1][rows.lengths > 0]] = True
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(inside)))
    contents = np.arange(len(starts))
    for length in np.unique(lengths):
        equal = np.flatnonzero(lengths == length)
        contents[equal] = numbers.permutation(equal)
    sentence = np.searchsorted(rows.offsets, starts, side="right")
    shuffled = contents[np.lexsort((numbers.random(len(starts)), sentence))]
    return places(starts[shuffled], lengths[shuffled])
