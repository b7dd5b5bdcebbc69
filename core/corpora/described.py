"""Which text a corpus holds, without reading its sentences.

Whoever reads a corpus leaves the hash of its text in the laboratory's cache, under the files it came from.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

from core.corpora.types import Corpus
from core.errors import NoRoom
from core.paths import cache_dir, written_whole


def _card(*key: object) -> Path:
    return cache_dir("corpora") / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.txt"


def keep_text_hash(corpus: Corpus, *key: object) -> None:
    """Keep the text hash of a corpus that was just read, under the signature of its files."""
    with contextlib.suppress(OSError, NoRoom):  # a disk that is full or read-only keeps nobody from reading
        if not (card := _card(*key)).exists():
            with written_whole(card, len(corpus.text_hash), f"The hash of {corpus.name}") as beside:
                beside.write_text(corpus.text_hash)


def kept_text_hash(*key: object) -> str | None:
    """The hash that `keep_text_hash` kept; None where there is none."""
    try:
        text = _card(*key).read_text()
    except (OSError, ValueError):
        return None
    return text if re.fullmatch("[0-9a-f]{16}", text) else None
