"""How far the tasks of a corpus overlap: in the words annotated for both, and in their label names.

Measured on all training sentences, before a run draws any of them by its seed. What rests on it is the same
for every seed and every fraction of a configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

from core.corpora.loading import bases_of, read, recipe_of
from core.corpora.places import fingerprint
from core.corpora.types import Overlap, Sentence

__all__ = ["corpus_overlaps", "overlaps"]

_SEED = 1
"""A derived corpus is measured as drawn with this seed, whatever the seed of the run."""


def corpus_overlaps(corpus: str, columns: Sequence[str] | None, tasks: Sequence[str]) -> tuple[Overlap, ...]:
    """The overlap of each pair of these tasks. Measured anew only when the corpus's files change.

    Raises CorpusError as `prepare` does.
    """
    files = tuple(map(fingerprint, bases_of(corpus)))
    return _measured(corpus, tuple(columns) if columns is not None else None, tuple(tasks), files)


@lru_cache(maxsize=32)
def _measured(
    name: str, columns: tuple[str, ...] | None, tasks: tuple[str, ...], files: tuple[tuple[str, ...], ...]
) -> tuple[Overlap, ...]:
    del files  # part of the cache's key only: it changes when the files do
    corpus = read(name, columns)
    recipe = recipe_of(name)
    return overlaps((corpus if recipe is None else recipe.make(corpus, _SEED)).train, tasks)


def overlaps(sentences: Sequence[Sentence], tasks: Sequence[str]) -> tuple[Overlap, ...]:
    """The overlap of each pair of these tasks in these training sentences, in the order of the tasks."""
    words: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    labels: dict[str, Counter[str]] = {task: Counter() for task in tasks}
    for sentence in sentences:
        annotated = [task for task in tasks if task in sentence.labels]
        for task in annotated:
            words[task] += len(sentence.tokens)
            labels[task].update(sentence.labels[task])
        for pair in combinations(annotated, 2):
            together[pair] += len(sentence.tokens)
    for counts in labels.values():
        del counts["O"]  # says only what a word is not
    return tuple(
        Overlap(
            (a, b),
            _share(together[a, b], min(words[a], words[b])),
            min(_under_names_of(labels[a], labels[b]), _under_names_of(labels[b], labels[a])),
        )
        for a, b in combinations(tasks, 2)
    )


def _under_names_of(labels: Counter[str], others: Counter[str]) -> float:
    return _share(sum(number for name, number in labels.items() if name in others), labels.total())


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
