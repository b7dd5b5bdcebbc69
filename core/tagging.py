"""Tag new sentences with every task of a finished run. Imports torch only when a tagger is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["TaggedSentence", "Tagger", "WordTag", "load_tagger", "split_words"]

# A word with inner apostrophes, hyphens or points, a number, or a single mark, as newswire corpora have it.
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|\w+(?:[-'’.]\w+)*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class WordTag:
    """One task's answer for one word: its label, its probability, and the best labels in falling order."""

    label: str
    confidence: float
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words and, for each task, one WordTag per word."""

    tokens: tuple[str, ...]
    tags: Mapping[str, tuple[WordTag, ...]]


class Tagger(Protocol):
    """A trained run, ready to tag. `schemes` tells for each task whether its labels are `iob2` or `plain`."""

    @property
    def schemes(self) -> Mapping[str, str]: ...

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word of every sentence, however long."""
        ...


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of a free text."""
    return _WORD.findall(text)


def load_tagger(checkpoint: str | Path) -> Tagger:
    """The tagger in that checkpoint folder. Raises MRNLabError where the folder is gone or damaged."""
    from core.models.checkpoint import load

    return load(Path(checkpoint))
