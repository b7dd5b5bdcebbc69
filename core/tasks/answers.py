"""What a trained run answers on a word, a span, a text: the values of `core.tagging`. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class WordTag(NamedTuple):
    """One task's answer for one word: its label, its probability, and the best labels in falling order.

    A tuple, which costs least to make: a text has as many of them as words times tasks.
    """

    label: str
    confidence: float
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """A span that a task found in a text: the characters from `start` up to, not including, `end`.

    Places count code points. `score` is the mean of the probabilities of its words' labels, as pipelines of
    Transformers have it.
    """

    label: str
    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """One task's answer on a sentence, a text or a pair.

    It is a label with the probabilities of the best labels in falling order, or a number, which has none.

    `shortened`: the text was too long, and its end was not read.
    """

    value: str | float
    probabilities: tuple[tuple[str, float], ...] = ()
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words, for each task on words one WordTag per word, and the answer of each task on sentences."""

    tokens: tuple[str, ...]
    tags: Mapping[str, tuple[WordTag, ...]]
    answers: Mapping[str, TextAnswer] = field(default_factory=dict)
