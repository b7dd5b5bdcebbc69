"""A corpus at a glance, for the form: sizes, tasks, labels, three sentences, notes. Quick the second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from core.corpora.assembly import SPLITS
from core.corpora.catalogue import CATALOGUE
from core.corpora.files import find_splits
from core.corpora.loading import load, locate
from core.corpora.types import Corpus, Scheme, Sentence, Task
from core.paths import data_dir

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
    """One task: `labels` and how many training words have each, and what was found in the other splits.

    `sentences` is how many training sentences are annotated for it.
    """

    name: str
    scheme: Scheme
    labels: tuple[str, ...]
    counts: Mapping[str, int]
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
    return _summarised(name, tuple(columns) if columns is not None else None, _fingerprint(name))


@lru_cache(maxsize=32)
def _summarised(name: str, columns: tuple[str, ...] | None, fingerprint: tuple[str, ...]) -> CorpusSummary:
    del fingerprint  # part of the cache's key only: it changes when the files do
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


def _fingerprint(name: str) -> tuple[str, ...]:
    """Names, sizes and times of the files that the corpus is read from."""
    folders: list[Path] = []
    spec = CATALOGUE.get(name)
    if spec is None:
        folders = [locate(name)]
    elif spec.needs_hub and (data := data_dir()) is not None:
        # A corpus joined from others has no columns of its own: any of their folders may be the source.
        parts = [name] if spec.columns else list(CATALOGUE)
        folders = [data / part for part in parts if (data / part).is_dir()]
    found = []
    for folder in folders:
        for path in find_splits(folder).values():
            stat = path.stat()
            found.append(f"{path}:{stat.st_size}:{stat.st_mtime_ns}")
    return tuple(found)


def _task_summary(corpus: Corpus, task: Task) -> TaskSummary:
    annotated = [one.labels[task.name] for one in corpus.train if task.name in one.labels]
    counts = Counter(label for labels in annotated for label in labels)
    return TaskSummary(
        task.name,
        task.scheme,
        task.labels,
        {label: counts[label] for label in task.labels},
        len(annotated),
        task.unseen,
        task.illegal,
    )


def _samples(corpus: Corpus) -> tuple[Sentence, ...]:
    """Three training sentences of a readable length, spread over the split so that each part shows."""
    readable = [one for one in corpus.train if len(one.tokens) in _SAMPLE_WORDS] or list(corpus.train)
    number = min(_SAMPLES, len(readable))
    return tuple(readable[place * len(readable) // number] for place in range(number))
