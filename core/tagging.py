"""Tag new sentences with every task of a finished run. Imports torch only when a tagger is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

__all__ = ["TaggedSentence", "Tagger", "WordTag", "joined", "load_tagger", "tag_in_parts"]

_PART = 256


class WordTag(NamedTuple):
    """One task's answer for one word: its label, its probability, and the best labels in falling order.

    A tuple, which costs least to make: a text has as many of them as words times tasks.
    """

    label: str
    confidence: float
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words and, for each task, one WordTag per word."""

    tokens: tuple[str, ...]
    tags: Mapping[str, tuple[WordTag, ...]]


class Tagger(Protocol):
    """A trained run, ready to tag. `schemes` tells for each task whether its labels are `iob2` or `plain`,
    `labels` which there are.
    """

    @property
    def schemes(self) -> Mapping[str, str]: ...

    @property
    def labels(self) -> Mapping[str, Sequence[str]]: ...

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word of every sentence, however long."""
        ...


def load_tagger(checkpoint: str | Path) -> Tagger:
    """The tagger in that checkpoint folder. Raises MRNLabError where the folder is gone or damaged."""
    from core.models.checkpoint import load

    return load(Path(checkpoint))


def joined(answers: Sequence[TaggedSentence]) -> TaggedSentence:
    """One sentence with the tasks of all these, as of the STL runs of one launch."""
    return TaggedSentence(
        answers[0].tokens, {task: tags for one in answers for task, tags in one.tags.items()}
    )


def tag_in_parts(
    taggers: Sequence[Tagger], sentences: Sequence[Sequence[str]]
) -> Iterator[list[TaggedSentence]]:
    """Long texts a part at a time, so that one can tell how far it is and stop. Best labels only."""
    for start in range(0, len(sentences), _PART):
        part = sentences[start : start + _PART]
        answers = [tagger.tag(part, top=1) for tagger in taggers]
        yield [joined(of_one) for of_one in zip(*answers, strict=True)]
