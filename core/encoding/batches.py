"""Batches of windows of like length, with the labels that their words have.

By default sentences of like length go together, so that little is padded; which go together, and in what
order, changes with every epoch and comes from the seed. `EpochOrder` has the other ways to make an epoch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.encoding.encoded import EncodedText, TextWindows
from core.tasks.packed import offsets, places

IGNORED = -100
"""Label number of a word that a task is not annotated on, or whose label training never saw."""

SUBWORDS_TO_PREDICT = {"cpu": 2048, "cuda": 16_384}
"""Subwords to predict at once, by kind of device.

On a CPU larger batches are slower: memory of that size goes back to the system after every layer.
"""

_POOL = 50
"""Batches whose windows are sorted by length together: enough to pad little, few enough to stay random."""


@dataclass(frozen=True)
class TextItems:
    """The items of a batch that are whole texts, or pairs of texts.

    words (m,)          their numbers among the batch's n words
    windows (m, 2)      their windows: that of the text or the first text, that of the second one or the same
    other_counts (B,)   how many words of each window are none of them, in the processor's memory
    are_mixed           whether a sentence of words is also read as a whole
    """

    words: Tensor
    windows: Tensor
    other_counts: Tensor
    are_mixed: bool

    def to(self, device: torch.device) -> TextItems:
        """These items on a device, from pinned memory."""
        words, windows = (
            tensor.pin_memory().to(device, non_blocking=True) for tensor in (self.words, self.windows)
        )
        return replace(self, words=words, windows=windows)


@dataclass(frozen=True)
class Batch:
    """B windows padded to L subwords, with the n words that belong to them.

    ids, mask (B, L)   subwords; 1 where there is one
    places (B, L)      where each subword stands among all subwords of the split (0 for padding)
    real (S,)          the subwords that are no padding, in the flattened (B·L)
    lengths (B,)       each window's number of subwords, in the processor's memory wherever the others are
    counts (B,)        how many of the words belong to each window, there too
    rows (n,)          each word's first subword in the flattened (B·L)
    words (n,)         each word's number in the split
    labels (n, T)      label numbers, IGNORED where a task has none for the word
    context (B, L, C)  contextual vectors, where the ids are whole words and the run reads such
    task               the only task whose logits are needed, that of a drawn batch; None: all are
    tasks (B,)         the task that each window is read for, where an encoder is told its task
    texts              which of the words are whole texts, or pairs of texts; None: none is
    types (B, L)       1 in the second text of pairs that share a window, where the tokenizer has types
    scores (n, T)      the gold numbers, where a task has numbers and no labels
    partial            its epoch takes one corpus or one task at a time: the loss is a mean over the tasks
                       that it has labels of, not over all tasks
    """

    ids: Tensor
    mask: Tensor
    places: Tensor
    real: Tensor
    lengths: Tensor
    counts: Tensor
    rows: Tensor
    words: Tensor
    labels: Tensor
    context: Tensor | None = None
    task: int | None = None
    tasks: Tensor | None = None
    texts: TextItems | None = None
    types: Tensor | None = None
    scores: Tensor | None = None
    partial: bool = False

    def to(self, device: torch.device) -> Batch:
        """This batch on a device, from pinned memory: the copy does not wait for the device's queued work."""
        if device.type == "cpu":
            return self
        moved: dict[str, Any] = {
            name: tensor.pin_memory().to(device, non_blocking=True)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor) and name not in ("lengths", "counts")
        }
        return replace(self, **moved, texts=self.texts and self.texts.to(device))


@dataclass(frozen=True)
class Context:
    """A split's contextual vectors: row `rows[s]` of `table` (R, C) is that of the word at place s."""

    table: Tensor
    rows: NDArray[np.int64]

    def at(self, places: NDArray[np.int64]) -> Tensor:
        """The vectors (…, C) at these places."""
        return self.table[torch.from_numpy(self.rows[places])]


@dataclass(frozen=True)
class EpochOrder:
    """How a split's n windows make an epoch of training.

    by_length     windows of like length share a batch, else windows drawn at random
    parts (n,)    the corpus that each window comes from: an epoch takes one corpus after the other, and no
                  batch mixes them. None: all windows together
    share         the share of each corpus's batches that an epoch trains on, drawn anew in every epoch. Of L
                  batches those up to the first whose index exceeds share · L, as the dissertation's program
                  counts (appendix A.5). None: all
    tasks         the windows annotated for each task: every batch belongs to one task, drawn anew for each
                  batch among those with windows left, and the labels of the others do not count (Algorithm 1
                  of the SC-LSTM paper). None: a batch trains all tasks that it has labels of
    by_size       tasks are drawn in proportion to the batches they have left, else all alike
    smoothing     an epoch has as many batches as the tasks together; a task with n gets a share in proportion
                  to n to this power, at least one. It is repeated or cut, drawn anew in every epoch (as in
                  MaChAmp; van der Goot et al., 2021). None: each task's batches once
    """

    by_length: bool = True
    parts: NDArray[np.int64] | None = None
    share: float | None = None
    tasks: tuple[NDArray[np.int64], ...] | None = None
    by_size: bool = False
    smoothing: float | None = None

    @property
    def partial(self) -> bool:
        """Whether a batch is of one corpus or one task alone."""
        return self.parts is not None or self.tasks is not None

    def count(self, batches: int) -> int:
        """How many of one corpus's batches an epoch trains on."""
        return batches if self.share is None else min(batches, math.floor(self.share * batches) + 2)

    def counts(self, batches: Sequence[int]) -> tuple[int, ...]:
        """How many batches of each part an epoch trains on, of parts with so many."""
        if self.smoothing is None:
            return tuple(map(self.count, batches))
        powers = np.array(batches, dtype=np.float64) ** self.smoothing
        wanted = sum(batches) * powers / powers.sum()
        counts = np.maximum(1, np.floor(wanted)).astype(int)
        # The largest remainders are rounded up, so that an epoch has as many batches as before.
        left = max(0, sum(batches) - int(counts.sum()))
        counts[np.argsort(counts - wanted, kind="stable")[:left]] += 1
        return tuple(counts.tolist())


class Batches:
    """The batches of one split. `labels` is (N, T) over its N words.

    A batch has `size` windows; for training, where a budget of `tokens` is given, as many as padded to the
    same length have no more subwords than that, and at least one. `epoch_order` says how an epoch is made.
    `scores` (N, T) are the gold numbers of tasks that have such, `window_tasks` (n, T) the tasks that each
    window is read for, where an encoder is told its task. `context` is set where batches carry contextual
    vectors. The two windows of a pair count as one. Raises ValueError where words and labels do not fit.
    """

    def __init__(
        self,
        text: EncodedText,
        labels: NDArray[np.int64],
        size: int,
        pad: int,
        tokens: int | None = None,
        epoch_order: EpochOrder = EpochOrder(),
        scores: NDArray[np.float32] | None = None,
        window_tasks: NDArray[np.bool_] | None = None,
    ) -> None:
        if len(labels) != len(text.firsts):
            raise ValueError(f"labels for {len(labels)} words, but the text has {len(text.firsts)}")
        self.context: Context | None = None
        self._text = text
        self.scores, self._window_tasks = scores, window_tasks
        self._units = _Units(text)
        self._labels = torch.from_numpy(np.ascontiguousarray(labels))
        self._size = size
        self._pad = pad
        self._epoch_order = epoch_order
        if epoch_order.tasks is not None:
            self._parts = [self._units.containing(windows) for windows in epoch_order.tasks]
        else:
            parts = np.zeros(text.windows, np.int64) if epoch_order.parts is None else epoch_order.parts
            parts = parts[self._units.starts]
            self._parts = [np.flatnonzero(parts == part) for part in dict.fromkeys(parts.tolist())]
        self._borders = [
            None if tokens is None else self._units.borders(self._by_length(units), tokens)
            for units in self._parts
        ]

    @property
    def per_part(self) -> tuple[int, ...]:
        """The batches of one epoch, corpus by corpus; a single number where corpora are mixed."""
        return self._epoch_order.counts(
            [
                -(-len(windows) // self._size) if borders is None else len(borders) - 1
                for windows, borders in zip(self._parts, self._borders, strict=True)
            ]
        )

    def __len__(self) -> int:
        """Batches in one epoch: as many in every epoch."""
        return sum(self.per_part)

    def shuffled(self, rng: np.random.Generator, skip: int = 0) -> Iterator[Batch]:
        """One epoch in random order, without its first `skip` batches."""
        by_part: list[list[NDArray[np.int64]]] = []
        for windows, borders, count in zip(self._parts, self._borders, self.per_part, strict=True):
            drawn: list[NDArray[np.int64]] = []
            while len(drawn) < count:  # more than once where a task is repeated
                batches = self._cut(windows, borders, rng)
                order = rng.permutation(len(batches))[: count - len(drawn)]
                drawn += [batches[index] for index in order]
            by_part.append(drawn)
        parts = self._order_of_parts([len(batches) for batches in by_part], rng)
        following = [iter(batches) for batches in by_part]
        epoch = [(next(following[part]), part) for part in parts]
        tasks = self._epoch_order.tasks is not None
        yield from (self._batch(windows, part if tasks else None) for windows, part in epoch[skip:])

    def one_of_each(self, rng: np.random.Generator) -> Iterator[Batch]:
        """A batch of each task, where an epoch draws tasks, else of each corpus; all epochs have them."""
        for part, (windows, borders) in enumerate(zip(self._parts, self._borders, strict=True)):
            batches = self._cut(windows, borders, rng)
            drawn = batches[int(rng.integers(len(batches)))]
            yield self._batch(drawn, None if self._epoch_order.tasks is None else part)

    def _cut(
        self, windows: NDArray[np.int64], borders: Sequence[int] | None, rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """The batches of a part's windows in a random order."""
        order = windows[rng.permutation(len(windows))]
        return self._by_size(order) if borders is None else self._by_tokens(order, borders)

    def _order_of_parts(self, counts: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Which part each batch of an epoch comes from: one after the other, or drawn."""
        in_turn = [part for part, count in enumerate(counts) for _ in range(count)]
        if self._epoch_order.tasks is None:
            return in_turn
        if self._epoch_order.by_size:
            return [in_turn[index] for index in rng.permutation(len(in_turn))]
        left, order = np.array(counts), []
        while (open_parts := np.flatnonzero(left)).size:
            part = int(rng.choice(open_parts))
            left[part] -= 1
            order.append(part)
        return order

    def by_length(self, tokens: int | None = None) -> Iterator[Batch]:
        """One pass, longest windows first: for prediction, where order does not matter.

        In batches of the training size, or of at most `tokens` subwords with padding, at least one window.
        """
        order = self._by_length(np.arange(len(self._units.starts)))
        if tokens is None:
            batches = self._by_size(order)
        else:
            batches = self._by_tokens(order, self._units.borders(order, tokens))
        yield from map(self._batch, reversed(batches))

    def _by_size(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Groups windows near each other in `order`, by length where the epoch groups by length."""
        if not self._epoch_order.by_length:
            return [order[first : first + self._size] for first in range(0, len(order), self._size)]
        batches: list[NDArray[np.int64]] = []
        pool = _POOL * self._size
        for start in range(0, len(order), pool):
            near = self._by_length(order[start : start + pool])
            batches.extend(near[first : first + self._size] for first in range(0, len(near), self._size))
        return batches

    def _by_tokens(self, order: NDArray[np.int64], borders: Sequence[int]) -> list[NDArray[np.int64]]:
        """Windows of like length among all: `order` decides which of the same length go together.

        The lengths of sorted windows are the same in every order, and so are the borders between batches.
        """
        near = self._by_length(order)
        return [near[start:end] for start, end in itertools.pairwise(borders)]

    def _by_length(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        return windows[np.lexsort((self._units.sizes[windows], self._units.lengths[windows]))]

    def _batch(self, units: NDArray[np.int64], task: int | None = None) -> Batch:
        """The batch of these units, with the labels of all tasks or of one."""
        text = self._text
        tasks = None
        if self._window_tasks is not None:  # each unit once for each of its tasks
            wanted = self._window_tasks[self._units.starts[units]]
            which, tasks = np.nonzero(
                wanted if task is None else wanted & (np.arange(wanted.shape[1]) == task)
            )
            units, tasks = units[which], np.repeat(tasks, self._units.sizes[units[which]])
        windows = places(self._units.starts[units], self._units.sizes[units])
        lengths = text.lengths[windows]
        width = int(lengths.max())
        column = np.arange(width)
        mask = column < lengths[:, None]
        at = np.where(mask, text.offsets[windows][:, None] + column, 0)
        ids = np.where(mask, text.ids[at], self._pad).astype(np.int64)
        starts = text.words[windows]
        counts = text.words[windows + 1] - starts
        words = places(starts, counts)
        rows = np.repeat(np.arange(len(windows)) * width, counts) + text.firsts[words]
        word_numbers = torch.from_numpy(words)
        labels = self._labels[word_numbers]
        if task is not None:
            labels[:, torch.arange(labels.shape[1]) != task] = IGNORED
        if tasks is not None:
            other = np.repeat(tasks, counts)[:, None] != np.arange(labels.shape[1])
            labels[torch.from_numpy(other)] = IGNORED
        return Batch(
            ids=torch.from_numpy(ids),
            mask=torch.from_numpy(mask.astype(np.int64)),
            places=torch.from_numpy(at),
            real=torch.from_numpy(np.flatnonzero(mask)),
            lengths=torch.from_numpy(lengths),
            counts=torch.from_numpy(counts),
            rows=torch.from_numpy(rows),
            words=word_numbers,
            labels=labels,
            context=None if self.context is None else self.context.at(at),
            task=task,
            tasks=None if tasks is None else torch.from_numpy(tasks),
            scores=None if self.scores is None else torch.from_numpy(self.scores[words]),
            partial=self._epoch_order.partial,
            texts=_text_items(text.texts, windows, counts),
            types=_second_texts(text.texts, windows, mask),
        )


class _Units:
    """The units that are drawn: windows, or the two windows of a pair. (u,) each.

    starts  the first window; sizes  how many windows; lengths  subwords of the longest of them
    """

    def __init__(self, text: EncodedText) -> None:
        self._leads = np.ones(text.windows, bool) if text.texts is None else ~text.texts.follows
        self.starts = np.flatnonzero(self._leads)
        self.sizes = np.diff([*self.starts, text.windows])
        self.lengths = np.maximum.reduceat(text.lengths, self.starts) if text.windows else text.lengths

    def containing(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The units that these windows belong to."""
        return (np.cumsum(self._leads) - 1)[windows]

    def borders(self, order: NDArray[np.int64], tokens: int) -> list[int]:
        """The borders between batches of at most `tokens` padded subwords, of units of ascending lengths."""
        borders, windows = [0], 0
        for index, (length, size) in enumerate(
            zip(self.lengths[order].tolist(), self.sizes[order].tolist(), strict=True)
        ):
            if windows and (windows + size) * length > tokens:
                borders.append(index)
                windows = 0
            windows += size
        return [*borders, len(order)] if len(order) else borders


def _text_items(
    texts: TextWindows | None, windows: NDArray[np.int64], counts: NDArray[np.int64]
) -> TextItems | None:
    if texts is None or not texts.whole[windows].any():
        return None
    is_first_text = texts.whole[windows] & (counts > 0)  # no word belongs to the second text of a pair
    first = np.flatnonzero(is_first_text)
    paired = np.append(texts.follows[windows], False)[first + 1]
    return TextItems(
        words=torch.from_numpy(offsets(counts)[first]),
        windows=torch.from_numpy(np.stack([first, first + paired], axis=1)),
        other_counts=torch.from_numpy(counts - is_first_text),
        are_mixed=bool((is_first_text & (counts > 1)).any()),
    )


def _second_texts(
    texts: TextWindows | None, windows: NDArray[np.int64], mask: NDArray[np.bool_]
) -> Tensor | None:
    """The types (B, L) of subwords; None where no window has two texts."""
    if texts is None or not texts.whole[windows].any():
        return None
    types = mask & (np.arange(mask.shape[1]) >= texts.second[windows][:, None])
    return torch.from_numpy(types.astype(np.int64)) if types.any() else None
