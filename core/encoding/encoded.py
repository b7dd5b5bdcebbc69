"""EncodedText: a split's words as subwords in windows, in flat arrays, cached on disk by content."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.encoding.tokenizer import SubwordTokenizer
from core.encoding.windows import cut

__all__ = ["EncodedText", "encode", "encode_cached", "text_key"]

_FORMAT = 1  # raise it when the arrays below change: old cache files are then left alone


@dataclass(frozen=True)
class EncodedText:
    """n windows over N words of consecutive sentences.

    ids (S,)        subwords of all windows one after the other, frames included
    offsets (n+1,)  window w has ids[offsets[w] : offsets[w+1]]
    firsts (N,)     for each word, the place of its first subword within its window
    words (n+1,)    the words words[w] … words[w+1]−1 belong to window w
    sentences (s+1,) sentence k has words sentences[k] … sentences[k+1]−1
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    firsts: NDArray[np.int32]
    words: NDArray[np.int64]
    sentences: NDArray[np.int64]

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) subwords in each window."""
        return np.diff(self.offsets)


def encode(sentences: Sequence[Sequence[str]], tokenizer: SubwordTokenizer, max_length: int) -> EncodedText:
    """Sentences as windows of at most `max_length` subwords, frame included.

    Raises ValueError where the frame leaves no room for a word.
    """
    budget = max_length - tokenizer.frame
    if budget < 1:
        raise ValueError(
            f"max_length must exceed the {tokenizer.frame} framing subwords, not be {max_length}"
        )
    all_ids, all_lengths = tokenizer.split(sentences)
    prefix = np.asarray(tokenizer.prefix, dtype=np.int32)
    suffix = np.asarray(tokenizer.suffix, dtype=np.int32)
    pieces: list[NDArray[np.int32]] = []
    firsts: list[NDArray[np.int64]] = []
    for ids, lengths in zip(all_ids, all_lengths, strict=True):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        for window in cut(lengths.tolist(), budget):
            begin = starts[window.start]
            body = ids[begin : min(int(starts[window.stop]), int(begin) + budget)]
            pieces.append(np.concatenate([prefix, body, suffix]))
            firsts.append(starts[window.own_start : window.own_stop] - begin + len(prefix))
    return EncodedText(
        ids=np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32),
        offsets=_offsets(pieces),
        firsts=np.concatenate(firsts).astype(np.int32) if firsts else np.zeros(0, dtype=np.int32),
        words=_offsets(firsts),
        sentences=_offsets(all_lengths),
    )


def _offsets(parts: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def text_key(sentences: Sequence[Sequence[str]], tokenizer: SubwordTokenizer, max_length: int) -> str:
    """Fingerprint of what `encode` would return: words, tokenizer, limit and format."""
    digest = hashlib.sha256(f"{_FORMAT}\0{tokenizer.fingerprint}\0{max_length}\0".encode())
    for words in sentences:
        digest.update("\x1f".join(words).encode("utf-8", "surrogatepass"))
        digest.update(b"\x1e")
    return digest.hexdigest()[:32]


def encode_cached(
    sentences: Sequence[Sequence[str]], tokenizer: SubwordTokenizer, max_length: int, cache: Path
) -> tuple[EncodedText, str]:
    """As `encode`, from the cache folder where it was encoded before; also the text's key.

    A cache file that cannot be read (a disk that filled up) is made anew.
    """
    key = text_key(sentences, tokenizer, max_length)
    path = cache / f"{key}.npz"
    if path.is_file():
        try:
            # Opened here: numpy forgets to close a damaged archive that it opened itself.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return EncodedText(**{field.name: stored[field.name] for field in fields(EncodedText)}), key
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            path.unlink(missing_ok=True)
    text = encode(sentences, tokenizer, max_length)
    # Written beside and renamed: two workers may encode the same text at once. The name must end in .npz.
    temporary = path.with_name(f"{key}.{os.getpid()}.tmp.npz")
    np.savez(temporary, **{field.name: getattr(text, field.name) for field in fields(EncodedText)})
    temporary.replace(path)
    return text, key
