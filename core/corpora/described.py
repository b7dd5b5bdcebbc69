"""How much text a corpus has to train on, and which text it is, without reading its sentences.

Whoever reads a corpus leaves its description in the laboratory's cache, under the files it was read from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from core.corpora.sampling import parts, words_of
from core.corpora.types import Corpus, Sentence
from core.errors import NoRoom
from core.paths import cache_dir, written_whole


@dataclass(frozen=True)
class PartSize:
    """The training split of a corpus, or of one that is joined in it: its words, by task the words of the
    sentences annotated for it, and its sentences (None where their number is not known).
    """

    words: float
    by_task: Mapping[str, float]
    sentences: float | None = None

    def first(self, sentences: float) -> PartSize:
        """At most so many of its sentences."""
        share = min(1.0, sentences / self.sentences) if self.sentences else 1.0
        by_task = {task: share * words for task, words in self.by_task.items()}
        return PartSize(share * self.words, by_task, sentences)


@dataclass(frozen=True)
class TrainingSize:
    """How much text a corpus has to train on, part by part, and whether it has a dev split of its own."""

    parts: tuple[PartSize, ...]
    has_dev: bool

    @property
    def by_task(self) -> dict[str, float]:
        """By task the words of the sentences annotated for it."""
        tasks = dict.fromkeys(task for part in self.parts for task in part.by_task)
        return {task: sum(part.by_task.get(task, 0.0) for part in self.parts) for task in tasks}

    def words(self, tasks: Sequence[str], *, per_task: bool = False) -> float:
        """How many words a run of these tasks trains on: those of the sentences annotated for one of them;
        where they are read `per_task`, those of every task.
        """
        by_task = self.by_task
        annotated = sum(by_task.get(task, 0.0) for task in tasks)
        words = annotated if per_task else min(sum(part.words for part in self.parts), annotated)
        return words if self.has_dev else 0.9 * words  # a tenth is held out


def drawn(words: float, by_task: Mapping[str, float], base: TrainingSize | None) -> TrainingSize:
    """The size of a corpus that is drawn from this base, which may not be known."""
    # Most corpora have a dev split, and it is a tenth of the words that is at stake.
    return TrainingSize((PartSize(words, by_task),), base is None or base.has_dev)


@dataclass(frozen=True)
class Description:
    """What is known of a corpus without reading it. `text_hash` is that of `Corpus`."""

    text_hash: str
    size: TrainingSize


def describe_size(corpus: Corpus) -> TrainingSize:
    """How much text this corpus has to train on."""

    def size(sentences: Sequence[Sentence]) -> PartSize:
        by_task = {
            task.name: words
            for task in corpus.tasks
            if (words := words_of(sentence for sentence in sentences if task.name in sentence.labels))
        }
        return PartSize(words_of(sentences), by_task, len(sentences))

    return TrainingSize(tuple(size(part) for _, part in parts(corpus.train)), bool(corpus.dev))


def _card(*key: object) -> Path:
    return cache_dir("corpora") / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.json"


def keep_description(corpus: Corpus, *key: object) -> None:
    """Leave the description of a corpus that was just read, under what stands for its files."""
    with contextlib.suppress(OSError, NoRoom):  # a disk that is full or read-only keeps nobody from reading
        if not (card := _card(*key)).exists():
            text = json.dumps(asdict(Description(corpus.text_hash, describe_size(corpus))))
            with written_whole(card, len(text), f"What is known of the corpus {corpus.name}") as beside:
                beside.write_text(text)


def kept_description(*key: object) -> Description | None:
    """What `keep_description` left; None where there is nothing."""
    try:
        values = json.loads(_card(*key).read_text())
        size = values["size"]
        return Description(
            values["text_hash"],
            TrainingSize(tuple(PartSize(**part) for part in size["parts"]), size["has_dev"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
