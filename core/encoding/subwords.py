"""One sentence as an encoder's tokenizer reads it, from its `tokenizer.json`: without torch or Transformers.

Training uses `core.encoding.tokenizer`, whose import takes seconds; a test holds both to the same subwords.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from core.errors import EncoderError

__all__ = ["Subword", "SubwordReader", "load_subword_reader"]


@dataclass(frozen=True)
class Subword:
    """A subword of a sentence: its text, its id in the vocabulary, and the number of its word.

    `word` is None for the tokenizer's own (`[CLS]`, `[SEP]`). The first subword of a word carries its label.
    """

    text: str
    id: int
    word: int | None
    is_first: bool


@dataclass(frozen=True)
class SubwordReader:
    """A tokenizer of the package `tokenizers`, set to read words as training reads them."""

    inner: Any
    unknown: str

    def read(self, words: Sequence[str]) -> list[Subword]:
        """The subwords of these words, with those that the tokenizer puts around a sentence.

        Each word is read by itself. One that the tokenizer drops (zero-width characters) becomes unknown.
        """
        framed = self.inner.encode(["a"], is_pretokenized=True)
        frame = list(zip(framed.tokens, framed.ids, framed.special_tokens_mask, strict=True))
        prefix = list(takewhile(lambda one: one[2], frame))
        suffix = list(takewhile(lambda one: one[2], reversed(frame)))[::-1]
        found = [Subword(text, id_, None, is_first=False) for text, id_, _ in prefix]
        for number, word in enumerate(words):
            read = self.inner.encode([word], is_pretokenized=True, add_special_tokens=False)
            pieces = list(zip(read.tokens, read.ids, strict=True))
            pieces = pieces or [(self.unknown, self.inner.token_to_id(self.unknown))]
            found += [Subword(text, id_, number, place == 0) for place, (text, id_) in enumerate(pieces)]
        return found + [Subword(text, id_, None, is_first=False) for text, id_, _ in suffix]


def load_subword_reader(file: Path) -> SubwordReader:
    """The reader of a `tokenizer.json`. Raises EncoderError where it cannot be read or knows no `[UNK]`."""
    from tokenizers import Tokenizer

    try:
        description = json.loads(file.read_text(encoding="utf-8"))
        _read_words_alike(description, _settings(file.parent))
        inner = Tokenizer.from_str(json.dumps(description))
    except Exception as error:  # `tokenizers` raises nothing more specific
        raise EncoderError(f"The tokenizer {file} cannot be read: {error}") from error
    inner.no_truncation()
    inner.no_padding()
    unknown = next((name for name in ("[UNK]", "<unk>") if inner.token_to_id(name) is not None), None)
    if unknown is None:
        raise EncoderError(f"The tokenizer {file} has no subword for unknown words.")
    return SubwordReader(inner, unknown)


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _read_words_alike(description: dict[str, Any], settings: dict[str, Any]) -> None:
    """Sets what training sets through Transformers: lower case as in tokenizer_config.json, and every
    word read as one that follows a space.
    """
    for part in _parts(description):
        if part.get("type") == "BertNormalizer" and "do_lower_case" in settings:
            part["lowercase"] = bool(settings["do_lower_case"])
        if part.get("type") in ("ByteLevel", "RobertaProcessing") and "add_prefix_space" in part:
            part["add_prefix_space"] = True


def _parts(description: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a tokenizer, those inside of sequences included."""
    steps = [description.get(name) for name in ("normalizer", "pre_tokenizer", "post_processor")]
    while steps:
        step = steps.pop()
        if isinstance(step, dict):
            yield step
            steps += [
                one for name in ("normalizers", "pretokenizers", "processors") for one in step.get(name, ())
            ]
