"""What a run trains on: its tasks, its share of the sentences, its dev split. The same for the same seed.

Every draw has a stream of its own, made from the run's seed, the draw's purpose and the part of the corpus.
So STL, MTL and MRN runs of one seed see the same sentences, whichever tasks they learn, and their scores can
be paired.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.config import RunConfig
from core.corpora.assembly import SPLITS, describe, findings
from core.corpora.loading import read
from core.corpora.truecasing import truecase
from core.corpora.types import Corpus, Sentence
from core.errors import CorpusError

__all__ = ["prepare"]

_DEV_SHARE = 0.1


def prepare(config: RunConfig) -> Corpus:
    """The sentences and tasks of this run, labels as the training sentences have them.

    Raises CorpusError where the corpus cannot be read, has no such task, or a split has no sentence for a
    task.
    """
    corpus = read(config.corpus, config.columns)
    available = [task.name for task in corpus.tasks]
    for name in config.tasks:
        if name not in available:
            raise CorpusError(f"{corpus.name} has no task '{name}'; its tasks are {', '.join(available)}.")
    corpus = _with_parts_for(corpus, config.tasks)
    # Drawn before other tasks are left out, so that a run's choice of tasks does not change the draw.
    corpus = _with_dev(_with_fraction(corpus, config.fraction, config.seed), config.seed)
    corpus = _with_tasks(corpus, config.tasks)
    if config.truecase:
        corpus = _truecased(corpus)
    return replace(corpus, notes=corpus.notes + findings(corpus))


def _with_parts_for(corpus: Corpus, tasks: Sequence[str]) -> Corpus:
    """Of a joined corpus, only the parts that annotate one of these tasks."""
    parts = {one.part for one in corpus.train if not one.labels.keys().isdisjoint(tasks)}
    kept = {split: tuple(one for one in corpus.split(split) if one.part in parts) for split in SPLITS}
    return replace(corpus, train=kept["train"], dev=kept["dev"], test=kept["test"])


def _with_fraction(corpus: Corpus, fraction: float, seed: int) -> Corpus:
    if fraction == 1.0:
        return corpus
    kept: list[Sentence] = []
    for part, sentences in _parts(corpus.train):
        number = max(1, round(fraction * len(sentences)))
        kept += _draw(sentences, number, _stream(seed, "fraction", part))[0]
    note = f"Trains on {len(kept):,} of {len(corpus.train):,} training sentences, drawn with seed {seed}."
    return replace(corpus, train=tuple(kept), notes=(*corpus.notes, note))


def _with_dev(corpus: Corpus, seed: int) -> Corpus:
    """Sets a tenth of the training sentences aside as dev, for each part that has no dev split."""
    with_dev = {sentence.part for sentence in corpus.dev}
    train: list[Sentence] = []
    dev = list(corpus.dev)
    notes = []
    for part, sentences in _parts(corpus.train):
        if part in with_dev:
            train += sentences
            continue
        if len(sentences) < 2:
            raise CorpusError(
                f"{part or corpus.name} has no dev split, and one training sentence is too few to set a "
                "tenth aside; add a dev file or use a larger fraction."
            )
        number = max(1, round(_DEV_SHARE * len(sentences)))
        aside, rest = _draw(sentences, number, _stream(seed, "dev", part))
        dev += aside
        train += rest
        notes.append(
            f"{part or corpus.name} has no dev split: {number:,} of its training sentences, drawn with "
            f"seed {seed}, serve as one."
        )
    return replace(
        corpus,
        train=tuple(train),
        dev=tuple(dev),
        notes=(*corpus.notes, *notes),
        dev_from_train=bool(notes),
    )


def _with_tasks(corpus: Corpus, tasks: Sequence[str]) -> Corpus:
    """Only these tasks, in this order, and only sentences annotated for one of them at least."""

    def kept(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
        chosen = (
            replace(one, labels={task: one.labels[task] for task in tasks if task in one.labels})
            for one in sentences
        )
        return tuple(sentence for sentence in chosen if sentence.labels)

    corpus = replace(
        corpus,
        tasks=tuple(corpus.task(name) for name in tasks),
        train=kept(corpus.train),
        dev=kept(corpus.dev),
        test=kept(corpus.test),
    )
    for split in SPLITS:
        for task in tasks:
            if not any(task in sentence.labels for sentence in corpus.split(split)):
                raise CorpusError(
                    f"{corpus.name}: no sentence of the {split} split is annotated for {task}; "
                    "leave the task out or add such sentences."
                )
    return describe(corpus)


def _truecased(corpus: Corpus) -> Corpus:
    changed = {split: truecase(corpus.split(split)) for split in SPLITS}
    counts = {
        split: sum(
            new.tokens != old.tokens for new, old in zip(changed[split], corpus.split(split), strict=True)
        )
        for split in SPLITS
    }
    note = "Case restored in sentences all in capitals: " + ", ".join(
        f"{count:,} in {split}" for split, count in counts.items()
    )
    return replace(
        corpus,
        train=changed["train"],
        dev=changed["dev"],
        test=changed["test"],
        notes=(*corpus.notes, note + "."),
    )


def _parts(sentences: Sequence[Sentence]) -> list[tuple[str, list[Sentence]]]:
    """The sentences by the corpus they came from, in order."""
    parts: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        parts.setdefault(sentence.part, []).append(sentence)
    return list(parts.items())


def _draw(
    sentences: Sequence[Sentence], number: int, stream: np.random.Generator
) -> tuple[list[Sentence], list[Sentence]]:
    """`number` sentences drawn without replacement, and the others; both in the corpus's order."""
    drawn = np.zeros(len(sentences), dtype=bool)
    drawn[stream.choice(len(sentences), size=number, replace=False)] = True
    pairs = list(zip(sentences, drawn, strict=True))
    return [one for one, taken in pairs if taken], [one for one, taken in pairs if not taken]


def _stream(seed: int, purpose: str, part: str) -> np.random.Generator:
    # crc32 rather than hash(): Python salts the latter anew in every process.
    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(f"{purpose}/{part}".encode())]))
