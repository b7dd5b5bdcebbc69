"""A tokenizer that gives every word form one number: for encoders over word vectors."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from core.encoding.encoded import EncodedText
from core.encoding.tokenizer import Pieces, Tokenizer
from core.tasks.packed import places


class WordTokenizer(Tokenizer):
    """Numbers word forms from 1: the given ones in alphabetical order, later ones as they come.

    Number 0 is padding. Several threads may call `split`.
    """

    def __init__(self, forms: Iterable[str]) -> None:
        self.forms = ["", *sorted(set(forms))]
        self.fingerprint = hashlib.sha256(
            "\x1f".join(self.forms).encode("utf-8", "surrogatepass")
        ).hexdigest()
        self._numbers = {form: number for number, form in enumerate(self.forms)}
        self._lock = threading.Lock()

    def split(self, words: Sequence[str]) -> Pieces:
        """Each word as one piece, numbered by its form."""
        with self._lock:
            for form in words:
                if form not in self._numbers:
                    self._numbers[form] = len(self.forms)
                    self.forms.append(form)
        ids = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        return Pieces(ids, np.ones(len(words), dtype=np.int64))


def words_read(text: EncodedText) -> NDArray[np.int64]:
    """(S,) the index among the N words of each position of a text that a WordTokenizer has split."""
    belong = text.words[:-1]  # the first word that belongs to each window, which may begin before it
    return places(belong - text.firsts[belong], text.lengths)
