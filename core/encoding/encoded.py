"""EncodedText: a split's words as subwords in windows, in flat arrays, cached on disk by content."""

from __future__ import annotations

import hashlib
import itertools
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.encoding.tokenizer import Pieces, Tokenizer, split_different
from core.paths import written_whole
from core.tasks.packed import Packed, offsets, packed, places

OVERLAP = 0.25
"""Share of a window that the next one reads again, as context."""


@dataclass(frozen=True)
class TextWindows:
    """The windows of whole texts among n windows; each field is (n,).

    They say whether the first item of a window is a whole text, where in it subwords of the second type begin
    (its length where it holds none), whether it is the second text of the pair in the window before, and
    whether the text was too long and lost its end.
    """

    whole: NDArray[np.bool_]
    second: NDArray[np.int64]
    follows: NDArray[np.bool_]
    shortened: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """Words [start, stop) are read; words [own_start, own_stop) belong to this window."""

    start: int
    stop: int
    own_start: int
    own_stop: int


def cut(lengths: Sequence[int], budget: int) -> list[Window]:
    """Overlapping windows over words of these lengths in subwords, each at most `budget` subwords long.

    Every word lies in at least one window and *belongs* to exactly one: the one where it has more context on
    its shorter side. Labels are learned and predicted where a word belongs, so reading the words in order
    joins the windows again. A word longer than the budget gets a window of its own (the caller cuts
    its tail off). Raises ValueError for a budget below 1.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1 subword, not {budget}")
    ends = np.cumsum(lengths)
    starts = ends - np.asarray(lengths, dtype=ends.dtype)
    total = len(lengths)
    spans: list[tuple[int, int]] = []
    start = 0
    while start < total:
        stop = max(int(np.searchsorted(ends, starts[start] + budget, side="right")), start + 1)
        spans.append((start, stop))
        if stop == total:
            break
        # The next window begins `OVERLAP` of the budget before this one's end, but always further on.
        back = int(np.searchsorted(starts, ends[stop - 1] - int(budget * OVERLAP), side="left"))
        start = min(max(back, start + 1), stop)
    borders = [0, *((after + stop) // 2 for (_, stop), (after, _) in itertools.pairwise(spans)), total]
    return [
        Window(start, stop, first, end)
        for (start, stop), first, end in zip(spans, borders, borders[1:], strict=False)
    ]


_AT_ONCE = 5000  # sentences
_FORMAT = 1  # raise it when the arrays below change: old cache files are then left alone


@dataclass(frozen=True)
class EncodedText:
    """n windows over N words of consecutive sentences.

    A whole text counts as one word, as does a sentence that is also read as a whole; it comes before its
    words, in its first window.

    ids (S,)        subwords of all windows one after the other, frames included
    offsets (n+1,)  window w has ids[offsets[w] : offsets[w+1]]
    firsts (N,)     for each word, the place of its first subword within its window; 0 for a whole text
    words (n+1,)    the words words[w] … words[w+1]−1 belong to window w
    sentences (s+1,) sentence k has words sentences[k] … sentences[k+1]−1
    texts           what is known of windows that hold whole texts; None where none does
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    firsts: NDArray[np.int32]
    words: NDArray[np.int64]
    sentences: NDArray[np.int64]
    texts: TextWindows | None = None

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return len(self.offsets) - 1

    @property
    def sentence_of_window(self) -> NDArray[np.int64]:
        """(n,) the sentence that each window reads."""
        last = np.searchsorted(self.sentences, self.words[:-1], side="right") - 1
        return last if self.texts is None else last - self.texts.follows

    @property
    def first_places(self) -> NDArray[np.int64]:
        """(N,) index in `ids` of each word's first subword, in the window that the word belongs to."""
        return np.repeat(self.offsets[:-1], np.diff(self.words)) + self.firsts

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) subwords in each window."""
        return np.diff(self.offsets)


_ARRAYS = tuple(field.name for field in fields(EncodedText) if field.name != "texts")


def encode(sentences: Sequence[Sequence[str]], tokenizer: Tokenizer, max_length: int) -> EncodedText:
    """Sentences as windows of at most `max_length` subwords, frame included.

    Raises ValueError where the frame leaves no room for a word.
    """
    budget = max_length - tokenizer.frame
    if budget < 1:
        raise ValueError(
            f"max_length must exceed the {tokenizer.frame} framing subwords, not be {max_length}"
        )
    words = packed(sentences)
    pieces = split_different(words, tokenizer)
    # Some sentences at a time: what is needed on the way stays small.
    return join_texts(
        [
            _encode(words[first : first + _AT_ONCE], pieces, tokenizer, budget)
            for first in range(0, max(len(words), 1), _AT_ONCE)
        ]
    )


def _encode(words: Packed, different: Pieces, tokenizer: Tokenizer, budget: int) -> EncodedText:
    """Sentences as windows. `different` has the subwords of each different word, by its number."""
    pieces = different.take(words.numbers)
    ends = offsets(pieces.counts)  # of words, in subwords without frames
    owned, start, stop = _windows(words.offsets, pieces, ends, budget).T
    lengths = np.minimum(stop - start, budget)  # a word longer than a window loses its end
    begins = offsets(lengths + tokenizer.frame)
    body = places(begins[:-1] + len(tokenizer.prefix), lengths)
    ids = np.empty(begins[-1], dtype=np.int32)
    ids[begins[:-1, None] + np.arange(len(tokenizer.prefix))] = tokenizer.prefix
    ids[body] = pieces.ids[places(start, lengths)]
    ids[begins[1:, None] - np.arange(len(tokenizer.suffix), 0, -1)] = tokenizer.suffix
    return EncodedText(
        ids=ids,
        offsets=begins,
        firsts=(ends[:-1] - np.repeat(start, owned) + len(tokenizer.prefix)).astype(np.int32),
        words=offsets(owned),
        sentences=words.offsets,
    )


def join_texts(parts: Sequence[EncodedText]) -> EncodedText:
    """The windows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def stretched(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        return offsets(np.concatenate([np.diff(array) for array in arrays]))

    texts = None
    if any(part.texts is not None for part in parts):
        of_parts = [part.texts or no_texts(part) for part in parts]
        texts = TextWindows(
            **{
                field.name: np.concatenate([getattr(each, field.name) for each in of_parts])
                for field in fields(TextWindows)
            }
        )
    return EncodedText(
        ids=np.concatenate([part.ids for part in parts]),
        offsets=stretched([part.offsets for part in parts]),
        firsts=np.concatenate([part.firsts for part in parts]),
        words=stretched([part.words for part in parts]),
        sentences=stretched([part.sentences for part in parts]),
        texts=texts,
    )


def no_texts(text: EncodedText) -> TextWindows:
    """The facts on texts of windows that hold words alone."""
    no = np.zeros(text.windows, dtype=bool)
    return TextWindows(whole=no, second=text.lengths, follows=no, shortened=no)


def _windows(
    words: NDArray[np.int64], pieces: Pieces, ends: NDArray[np.int64], budget: int
) -> NDArray[np.int64]:
    """(n, 3) for each window how many words belong to it, and which subwords it reads, from and to.

    A sentence is a window, but for those that are too long for one. Sentence k has words words[k] to
    words[k+1], word i subwords ends[i] to ends[i+1].
    """
    sentences = np.stack([np.diff(words), ends[words[:-1]], ends[words[1:]], words[:-1]], axis=1)
    sentences = sentences[sentences[:, 0] > 0]
    parts: list[NDArray[np.int64]] = []
    done = np.int64(0)
    for long in np.flatnonzero(sentences[:, 2] - sentences[:, 1] > budget):
        count, first = sentences[long, 0], sentences[long, 3]
        windows = cut(pieces.counts[first : first + count].tolist(), budget)
        cuts = [(w.own_stop - w.own_start, first + w.start, first + w.stop) for w in windows]
        owned, start, stop = np.asarray(cuts).T
        parts += [sentences[done:long, :3], np.stack([owned, ends[start], ends[stop]], axis=1)]
        done = long + 1
    return np.concatenate([*parts, sentences[done:, :3]])


def text_key(sentences: Sequence[Sequence[str]], tokenizer: Tokenizer, max_length: int) -> str:
    """A fingerprint of everything that decides the result of `encode`: words, tokenizer, limit and format."""
    digest = hashlib.sha256(f"{_FORMAT}\0{tokenizer.fingerprint}\0{max_length}\0".encode())
    for words in sentences:
        digest.update(("\x1f".join(words) + "\x1e").encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def encode_cached(
    sentences: Sequence[Sequence[str]], tokenizer: Tokenizer, max_length: int, cache: Path
) -> tuple[EncodedText, str]:
    """The result of `encode`, read from the cache folder where it exists; also the text's key.

    A cache file that cannot be read (a disk that filled up) is made anew.
    """
    key = text_key(sentences, tokenizer, max_length)
    path = cache / f"{key}.npz"
    if path.is_file():
        try:
            # Opened here: numpy forgets to close a damaged archive that it opened itself.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return EncodedText(**{name: stored[name] for name in _ARRAYS}), key
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            path.unlink(missing_ok=True)
    text = encode(sentences, tokenizer, max_length)
    arrays = {name: getattr(text, name) for name in _ARRAYS}
    needs = sum(array.nbytes for array in arrays.values())
    with written_whole(path, needs, "The cache of subwords") as beside:
        np.savez(beside, **arrays)
    return text, key
