"""Batches of windows of like length, with the labels that their words have.

Sentences of like length go together, so little is padded; which go together, and in what order, changes
with every epoch and comes from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.encoded import EncodedText

__all__ = ["IGNORED", "Batch", "Batches"]

IGNORED = -100
"""Label number of a word that a task is not annotated on, or whose label training never saw."""

_POOL = 50
"""Batches whose windows are sorted by length together: enough to pad little, few enough to stay random."""


@dataclass(frozen=True)
class Batch:
    """B windows padded to L subwords, with the n words that belong to them.

    ids, mask (B, L)   subwords; 1 where there is one
    places (B, L)      where each subword stands among all subwords of the split (0 for padding)
    real (S,)          the subwords that are no padding, in the flattened (B·L)
    lengths (B,)       each window's number of subwords, in the processor's memory wherever the others are
    rows (n,)          each word's first subword in the flattened (B·L)
    words (n,)         each word's number in the split
    labels (n, T)      label numbers, IGNORED where a task has none for the word
    """

    ids: Tensor
    mask: Tensor
    places: Tensor
    real: Tensor
    lengths: Tensor
    rows: Tensor
    words: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Batch:
        """This batch on a device."""
        if device.type == "cpu":
            return self
        moved = {
            name: tensor.to(device, non_blocking=True)
            for name, tensor in vars(self).items()
            if name != "lengths"
        }
        return Batch(**moved, lengths=self.lengths)


class Batches:
    """The batches of one split. `labels` is (N, T) over its N words.

    Raises ValueError where words and labels do not fit each other.
    """

    def __init__(self, text: EncodedText, labels: NDArray[np.int64], size: int, pad: int) -> None:
        if len(labels) != len(text.firsts):
            raise ValueError(f"labels for {len(labels)} words, but the text has {len(text.firsts)}")
        self._text = text
        self._labels = torch.from_numpy(np.ascontiguousarray(labels))
        self._size = size
        self._pad = pad

    def __len__(self) -> int:
        """Batches in one pass."""
        return -(-self._text.windows // self._size)

    def shuffled(self, rng: np.random.Generator, skip: int = 0) -> Iterator[Batch]:
        """One pass in random order, windows of like length together, without its first `skip` batches."""
        order = rng.permutation(self._text.windows)
        lengths = self._text.lengths
        batches: list[NDArray[np.int64]] = []
        pool = _POOL * self._size
        for start in range(0, len(order), pool):
            near = order[start : start + pool]
            near = near[np.argsort(lengths[near], kind="stable")]
            batches.extend(near[first : first + self._size] for first in range(0, len(near), self._size))
        for index in rng.permutation(len(batches))[skip:]:
            yield self._batch(batches[index])

    def by_length(self, times: int = 1) -> Iterator[Batch]:
        """One pass, longest windows first: for prediction, where order does not matter.

        In batches of so many times the size.
        """
        order = np.argsort(-self._text.lengths, kind="stable")
        size = times * self._size
        for first in range(0, len(order), size):
            yield self._batch(order[first : first + size])

    def _batch(self, windows: NDArray[np.int64]) -> Batch:
        text = self._text
        lengths = text.lengths[windows]
        width = int(lengths.max())
        column = np.arange(width)
        mask = column < lengths[:, None]
        places = np.where(mask, text.offsets[windows][:, None] + column, 0)
        ids = np.where(mask, text.ids[places], self._pad).astype(np.int64)
        starts = text.words[windows]
        counts = text.words[windows + 1] - starts
        words = np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        rows = np.repeat(np.arange(len(windows)) * width, counts) + text.firsts[words]
        word_numbers = torch.from_numpy(words)
        return Batch(
            ids=torch.from_numpy(ids),
            mask=torch.from_numpy(mask.astype(np.int64)),
            places=torch.from_numpy(places),
            real=torch.from_numpy(np.flatnonzero(mask)),
            lengths=torch.from_numpy(lengths),
            rows=torch.from_numpy(rows),
            words=word_numbers,
            labels=self._labels[word_numbers],
        )
