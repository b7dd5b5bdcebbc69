"""Tokenizers as this project needs them: words in, subwords of each word out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EncoderError
from core.tasks.packed import Numbers, Packed, offsets, places

_AT_ONCE = 1000  # words given to the tokenizer in one call


@dataclass(frozen=True)
class Pieces:
    """The subwords of N consecutive words: `ids` (S,) of all, and for each word how many: `counts` (N,)."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """(N,) where each word's subwords begin."""
        return offsets(self.counts)[:-1]

    def take(self, words: Numbers) -> Pieces:
        """The subwords of these words, by their numbers."""
        counts = self.counts[words]
        return Pieces(self.ids[places(self.starts[words], counts)], counts)


def split_different(words: Packed, tokenizer: Tokenizer) -> Pieces:
    """The subwords of each different word by its number; none of a word that does not occur.

    A corpus has ten times as many words as different ones, and each of these is read once.
    """
    occurs = np.zeros(len(words.names), dtype=bool)
    occurs[words.numbers] = True
    pieces = tokenizer.split([words.names[number] for number in np.flatnonzero(occurs).tolist()])
    counts = np.zeros(len(occurs), dtype=np.int64)
    counts[occurs] = pieces.counts
    return Pieces(pieces.ids, counts)


class Tokenizer(ABC):
    """Splits words into numbered pieces; has the pieces around and behind a window.

    `between` stands between two texts that are read together; `has_types` says that the second text's pieces
    are of another type (BERT's segments). The fingerprint is of all that decides how words are split.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    has_types: bool = False
    pad: int = 0
    fingerprint: str

    @property
    def frame(self) -> int:
        """How many pieces the frame takes of every window."""
        return len(self.prefix) + len(self.suffix)

    @abstractmethod
    def split(self, words: Sequence[str]) -> Pieces:
        """The pieces of these words."""


@dataclass(frozen=True)
class SubwordTokenizer(Tokenizer):
    """A fast tokenizer of Transformers, `inner`, with its frame (`[CLS]` and `[SEP]`, say)."""

    inner: Any
    unknown: int
    fingerprint: str
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    has_types: bool = False
    pad: int = 0

    def split(self, words: Sequence[str]) -> Pieces:
        """The subwords of these words.

        A fast tokenizer reads each pre-split word by itself. A word that it drops altogether (a lone
        zero-width character) becomes the unknown subword: every word keeps a place.
        """
        ids: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
        counts: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        backend = self.inner.backend_tokenizer
        for first in range(0, len(words), _AT_ONCE):
            some = list(words[first : first + _AT_ONCE])
            encoded = backend.encode(some, is_pretokenized=True, add_special_tokens=False)
            pieces = np.asarray(encoded.ids, dtype=np.int32)
            word_indices = np.asarray(encoded.word_ids, dtype=np.int64)
            count = np.bincount(word_indices, minlength=len(some))
            dropped = np.flatnonzero(count == 0)
            ids.append(
                np.insert(pieces, np.searchsorted(word_indices, dropped), self.unknown).astype(np.int32)
            )
            counts.append(np.maximum(count, 1))
        return Pieces(np.concatenate(ids), np.concatenate(counts))


def load_tokenizer(source: str) -> SubwordTokenizer:
    """The tokenizer of the encoder at that folder or Hub id.

    Raises EncoderError where there is none, or none that can be used.
    """
    inner = _pretrained(source)
    if inner.pad_token is None:  # padding is masked, so any subword without a text will do
        inner.pad_token = inner.eos_token or next(iter(inner.all_special_tokens), None)
    if inner.pad_token_id is None:
        raise EncoderError(
            f"The tokenizer of {source} has no special subword to pad with; choose an encoder that has one."
        )
    bare = inner("a", add_special_tokens=False)["input_ids"]
    framed = inner("a")["input_ids"]
    at = next(index for index in range(len(framed)) if framed[index : index + len(bare)] == bare)
    paired = inner("a", "a")
    ids = paired["input_ids"]
    at_second = len(ids) - len(framed[at + len(bare) :]) - len(bare)
    return SubwordTokenizer(
        inner=inner,
        prefix=tuple(framed[:at]),
        suffix=tuple(framed[at + len(bare) :]),
        pad=inner.pad_token_id,
        unknown=inner.pad_token_id if inner.unk_token_id is None else inner.unk_token_id,
        fingerprint=hashlib.sha256(inner.backend_tokenizer.to_str().encode()).hexdigest(),
        between=tuple(ids[at + len(bare) : at_second]),
        has_types=any(paired.get("token_type_ids", ())),
    )


def _pretrained(source: str) -> Any:
    """The fast tokenizer of Transformers, which reads each pre-split word as it does within a text.

    One that reads the first word of a text differently from the others (RoBERTa's) gets `add_prefix_space`,
    or a leading space where its class has no such option; without it every pre-split word would silently be
    read as a text's first. Raises EncoderError.
    """
    from transformers import AutoTokenizer

    def load(**options: bool) -> Any:
        return AutoTokenizer.from_pretrained(source, use_fast=True, trust_remote_code=False, **options)

    try:
        inner = load()
        if not inner.is_fast:
            raise EncoderError(f"The tokenizer of {source} is not a fast one; choose an encoder with one.")
        text = " ".join(_SAMPLE)
        within, at_start = (
            list(inner(part, add_special_tokens=False)["input_ids"]) for part in (f" {text}", text)
        )
        if _sample_subwords(inner) in (within, at_start):
            return inner
        if _sample_subwords(prefixed := load(add_prefix_space=True)) == within:
            return prefixed
        if _sample_subwords(spaced := _with_leading_space(inner)) == within:
            return spaced
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        if "trust_remote_code" in str(error):
            raise EncoderError(
                f"The tokenizer of {source} comes with Python code of its own, which is never run here; "
                "choose an encoder whose tokenizer Transformers has."
            ) from None
        raise EncoderError(f"The tokenizer of {source} cannot be loaded: {error}") from error
    raise EncoderError(
        f"The tokenizer of {source} reads a word by itself otherwise than within a text, so its subwords "
        "cannot be aligned with words; choose another encoder."
    )


def _with_leading_space(inner: Any) -> Any:
    """This tokenizer with a space before each word and text.

    Its class would build the splitting anew when it is loaded, without the space, so the result has the
    general class, which is loaded as it was saved.
    """
    from tokenizers import Tokenizer as Backend
    from tokenizers import normalizers
    from transformers import PreTrainedTokenizerFast

    backend = Backend.from_str(inner.backend_tokenizer.to_str())
    space = normalizers.Prepend(" ")
    own = backend.normalizer
    backend.normalizer = space if own is None else normalizers.Sequence([space, own])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=inner.model_max_length,
        model_input_names=inner.model_input_names,
        **inner.special_tokens_map,
    )


_SAMPLE = ("EU", "don't", "3.5", "EU")
"""Words that byte-level tokenizers read differently with and without a space, and in several parts."""


def _sample_subwords(tokenizer: Any) -> list[int] | None:
    """The subwords of the sample's words; None where a word has others alone than beside others."""

    def split(*words: str) -> list[int]:
        read = tokenizer([words], is_split_into_words=True, add_special_tokens=False)
        return list(read["input_ids"][0])

    together = split(*_SAMPLE)
    return together if together == [piece for word in _SAMPLE for piece in split(word)] else None
