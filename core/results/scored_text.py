"""The sentences that a run was scored on for a task, with those that training had for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.loading import Files, derivation_of, files_of
from core.corpora.preparation import on_share
from core.corpora.types import Sentences
from core.errors import CorpusError
from core.store import Run
from core.tasks import KINDS, TaskKind

Labels = Sequence[Sequence[str]]
_KEPT = 12
"""Prepared corpora in memory: those of a few seeds, where training sentences are drawn with the seed."""


@dataclass(frozen=True)
class ScoredText:
    """The sentences of a split, and the training sentences, that are annotated for a task.

    `kinds` has the kinds of the task and of the columns that were asked for; `of_seed` is whether the
    training sentences depend on the seed.
    """

    sentences: Sentences
    training: Sentences
    kinds: dict[str, TaskKind]
    of_seed: bool


def scored_text(run: Run, split: str, task: str, gold: Labels, columns: Sequence[str] = ()) -> ScoredText:
    """What the stored labels `gold` of a run were predicted for, with these further columns of its corpus.

    Raises CorpusError where the corpus cannot be read, has no such column, or is no longer what the run was
    scored on.
    """
    config = run.config
    description = on_share(config, dict.fromkeys((task, *columns)), truecase=config.truecase)
    text = _read(description.to_json(), split, task, files_of(config.corpus))
    if list(map(list, text.sentences.column(task).rows)) != [list(labels) for labels in gold]:
        raise CorpusError(
            f"The text of {config.corpus} is no longer what run {run.id} was scored on, so the words of its "
            f"{split} sentences are not known."
        )
    return text


@lru_cache(maxsize=_KEPT)
def _read(description: str, split: str, task: str, files: Files) -> ScoredText:
    """`files` are part of the cache's key, and change when the files do."""
    config = RunConfig.from_json(description)
    corpus = prepare(config)

    def of_task(sentences: Sentences) -> Sentences:
        return sentences.where(sentences.annotated([task]))

    return ScoredText(
        of_task(corpus.split("dev" if split == "dev" else "test")),
        of_task(corpus.split("train")),
        {name: KINDS[corpus.task(name).scheme] for name in config.tasks},
        config.fraction < 1 or corpus.dev_from_train or derivation_of(config.corpus) is not None,
    )
