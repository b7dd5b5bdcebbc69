"""A corpus at a glance, for the form: sizes, tasks, labels, three sentences, notes. Quick the second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from core.corpora.assembly import SPLITS
from core.corpora.loading import bases_of, load
from core.corpora.places import fingerprint
from core.corpora.types import Corpus, Scheme, Sentence, Split, Task

__all__ = ["CorpusSummary", "SplitSize", "TaskSummary", "summarise"]

_SAMPLES = 3
_SAMPLE_WORDS = range(8, 25)


@dataclass(frozen=True)
class SplitSize:
    """How much text a split holds."""

    sentences: int
    tokens: int


@dataclass(frozen=True)
class TaskSummary:
    """One task: `labels`, those of the training words, and what was found in all splits.

    `counts` says for each split that is annotated how many words have each label, labels that training never
    shows among them. `sentences` is how many training sentences are annotated for it.
    """

    name: str
    scheme: Scheme
    labels: tuple[str, ...]
    counts: Mapping[Split, Mapping[str, int]]
    sentences: int
    unseen: Mapping[str, tuple[str, ...]]
    illegal: Mapping[str, int]


@dataclass(frozen=True)
class CorpusSummary:
    """What the form shows of a corpus. `splits` has train and test, and dev where the corpus has one."""

    name: str
    splits: Mapping[str, SplitSize]
    tasks: tuple[TaskSummary, ...]
    samples: tuple[Sentence, ...]
    notes: tuple[str, ...]


def summarise(name: str, columns: Sequence[str] | None = None) -> CorpusSummary:
    """The corpus at a glance. Read anew only when its files change. Raises CorpusError as `load` does."""
    files = tuple(map(fingerprint, bases_of(name)))
    return _summarised(name, tuple(columns) if columns is not None else None, files)


@lru_cache(maxsize=32)
def _summarised(
    name: str, columns: tuple[str, ...] | None, files: tuple[tuple[str, ...], ...]
) -> CorpusSummary:
    del files  # part of the cache's key only: it changes when the files do
    corpus = load(name, columns)
    return CorpusSummary(
        corpus.name,
        {
            split: SplitSize(len(sentences), sum(len(sentence.tokens) for sentence in sentences))
            for split in SPLITS
            if (sentences := corpus.split(split))
        },
        tuple(_task_summary(corpus, task) for task in corpus.tasks),
        _samples(corpus),
        corpus.notes,
    )


def _task_summary(corpus: Corpus, task: Task) -> TaskSummary:
    columns = {
        split: [one.labels[task.name] for one in corpus.split(split) if task.name in one.labels]
        for split in SPLITS
    }
    return TaskSummary(
        task.name,
        task.scheme,
        task.labels,
        {split: Counter(chain.from_iterable(column)) for split, column in columns.items() if column},
        len(columns["train"]),
        task.unseen,
        task.illegal,
    )


def _samples(corpus: Corpus) -> tuple[Sentence, ...]:
    """Three training sentences of a readable length, spread over the split so that each part shows."""
    readable = [one for one in corpus.train if len(one.tokens) in _SAMPLE_WORDS] or list(corpus.train)
    number = min(_SAMPLES, len(readable))
    return tuple(readable[place * len(readable) // number] for place in range(number))
