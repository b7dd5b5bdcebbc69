"""A hash of a corpus's text: whether two runs saw the same words with the same labels."""

from __future__ import annotations

import hashlib

from core.corpora.assembly import SPLITS
from core.corpora.types import Corpus

__all__ = ["text_hash"]

_LENGTH = 16


def text_hash(corpus: Corpus) -> str:
    """16 hexadecimal digits of SHA-256 over all words, labels and parts of a corpus, split by split.

    It is the same for the same text, wherever its files lie and however they are written. Words, columns,
    sentences and splits are separated by control characters, which text does not hold.
    """
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        for sentence in corpus.split(split):
            columns = [sentence.part, "\x1f".join(sentence.tokens)]
            for task, labels in sorted(sentence.labels.items()):
                columns += (task, "\x1f".join(labels))
            digest.update("\x1e".join(("", *columns)).encode(errors="surrogatepass"))
    return digest.hexdigest()[:_LENGTH]
