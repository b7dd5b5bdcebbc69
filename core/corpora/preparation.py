"""What a run trains on: its tasks, its share of the sentences, its dev split. The same for the same seed.

No draw looks at the tasks that a run learns. So STL, MTL and MRN runs of one seed see the same sentences, and
their scores can be paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.config import RunConfig
from core.corpora.assembly import SPLITS, describe, findings
from core.corpora.draws import draw, parts, stream
from core.corpora.loading import read, recipe_of
from core.corpora.overlap import corpus_overlaps
from core.corpora.truecasing import truecase
from core.corpora.types import Corpus, Sentence
from core.errors import CorpusError

__all__ = ["check_scored", "prepare"]

_DEV_SHARE = 0.1


def prepare(config: RunConfig) -> Corpus:
    """The sentences and tasks of this run, labels as the training sentences have them.

    Raises CorpusError where the corpus cannot be read, has no such task, or a split has no sentence for a
    task.
    """
    recipe = recipe_of(config.corpus)
    corpus = read(config.corpus, config.columns)
    names = [task.name for task in corpus.tasks]
    origins = {name: name for name in names} if recipe is None else recipe.tasks(names)
    for name in config.tasks:
        if name not in origins:
            whose = corpus.name if recipe is None else recipe.name
            raise CorpusError(f"{whose} has no task '{name}'; its tasks are {', '.join(origins)}.")
    corpus = _with_parts_for(corpus, [origins[name] for name in config.tasks])
    # Drawn before other tasks are left out, so that a run's choice of tasks does not change the draw.
    drawn = _with_dev(_with_fraction(corpus, config.fraction, config.seed), config.seed)
    if recipe is not None:
        drawn = recipe.make(drawn, config.seed)
    # What the whole corpus's tasks are was found when it was read.
    corpus = _with_tasks(drawn if drawn is corpus else describe(drawn), config.tasks)
    if config.truecase:
        corpus = _truecased(corpus)
    if config.alignment == "auto":
        corpus = replace(corpus, overlaps=corpus_overlaps(config.corpus, config.columns, config.tasks))
    return replace(corpus, notes=corpus.notes + findings(corpus))


def check_scored(corpus: Corpus, tasks: Sequence[str]) -> None:
    """Raises CorpusError where all of these tasks are auxiliary: nothing could choose the best epoch."""
    if all(corpus.task(name).auxiliary for name in tasks):
        raise CorpusError(
            f"{corpus.name}: a run of {', '.join(tasks)} alone cannot be scored, for only training sentences "
            "are annotated; add a task that can be."
        )


def _with_parts_for(corpus: Corpus, tasks: Sequence[str]) -> Corpus:
    """Of a joined corpus, only the parts that annotate one of these tasks."""
    needed = {one.part for one in corpus.train if not one.labels.keys().isdisjoint(tasks)}
    if all(one.part in needed for split in SPLITS for one in corpus.split(split)):
        return corpus
    kept = {split: tuple(one for one in corpus.split(split) if one.part in needed) for split in SPLITS}
    return replace(corpus, train=kept["train"], dev=kept["dev"], test=kept["test"])


def _with_fraction(corpus: Corpus, fraction: float, seed: int) -> Corpus:
    if fraction == 1.0:
        return corpus
    kept: list[Sentence] = []
    for part, sentences in parts(corpus.train):
        number = max(1, round(fraction * len(sentences)))
        kept += draw(sentences, number, stream(seed, "fraction", part))[0]
    note = f"Trains on {len(kept):,} of {len(corpus.train):,} training sentences, drawn with seed {seed}."
    return replace(corpus, train=tuple(kept), notes=(*corpus.notes, note))


def _with_dev(corpus: Corpus, seed: int) -> Corpus:
    """Sets a tenth of the training sentences aside as dev, for each part that has no dev split."""
    with_dev = {sentence.part for sentence in corpus.dev}
    if all(sentence.part in with_dev for sentence in corpus.train):
        return corpus
    train: list[Sentence] = []
    dev = list(corpus.dev)
    notes = []
    for part, sentences in parts(corpus.train):
        if part in with_dev:
            train += sentences
            continue
        if len(sentences) < 2:
            raise CorpusError(
                f"{part or corpus.name} has no dev split, and one training sentence is too few to set a "
                "tenth aside; add a dev file or use a larger fraction."
            )
        number = max(1, round(_DEV_SHARE * len(sentences)))
        aside, rest = draw(sentences, number, stream(seed, "dev", part))
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
    order = list(tasks)

    def kept(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
        chosen = (
            one
            if list(one.labels) == order
            else Sentence(
                one.tokens, {task: one.labels[task] for task in tasks if task in one.labels}, one.part
            )
            for one in sentences
        )
        return tuple(sentence for sentence in chosen if sentence.labels)

    corpus = replace(
        corpus,
        tasks=tuple(corpus.task(name) for name in tasks),
        train=kept(corpus.train),
        dev=kept(corpus.dev),
        test=kept(corpus.test),
        planted=corpus.planted and corpus.planted.of(tasks),
    )
    check_scored(corpus, tasks)
    for split in SPLITS:
        for task in corpus.tasks:
            if task.auxiliary and split != "train":
                continue
            if not any(task.name in sentence.labels for sentence in corpus.split(split)):
                raise CorpusError(
                    f"{corpus.name}: no sentence of the {split} split is annotated for {task.name}; "
                    "leave the task out or add such sentences."
                )
    return corpus


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
