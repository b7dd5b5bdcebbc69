"""The events of a training, which the loop sends to a sink. Needs no torch.

The loop does not know where they go: tests pass a list's `append`, workers the store's sink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from core.corpora.reading import Reading
from core.corpora.repeats import Repeat, repeats
from core.corpora.types import Corpus, Planted
from core.metrics import EpochMetrics as EpochMetrics
from core.metrics import StepMetrics as StepMetrics
from core.mrn.relations import Relations, TaskRelations
from core.tasks.kinds import TaskFacts as TaskFacts
from core.tasks.scores import TaskScore as TaskScore

SelectBy = Literal["score", "loss", "last"]


@dataclass(frozen=True)
class DevMetrics:
    """Mean dev score and mean dev loss over tasks after an epoch.

    NaN without development sentences, and where undefined.
    """

    epoch: int
    score: float
    loss: float


def best_epoch(history: Sequence[DevMetrics], by: SelectBy, epochs: int) -> int | None:
    """The best epoch in `history`.

    Test scores cannot even be passed in. The one with the highest score or the lowest loss, the earliest of
    equals; or the last, once it has ended. By score, that with the lowest loss as long as no score is
    defined. None where no epoch has a figure that is a number.
    """
    if by == "last":
        return epochs if len(history) == epochs else None
    scores = [(metrics.score, -metrics.epoch) for metrics in history if by == "score"]
    losses = [(-metrics.loss, -metrics.epoch) for metrics in history]
    for figures in (scores, losses):
        if valid := [pair for pair in figures if not math.isnan(pair[0])]:
            return -max(valid)[1]
    return None


@dataclass(frozen=True)
class Usage:
    """The cost of a training, sent once, at its end.

    `seconds` of training and scoring over all attempts, without loading, waiting and the features of a frozen
    encoder. `peak_memory` in bytes since the last start or resume: with `memory_of` "gpu" what torch held for
    tensors, with "process" the resident memory of the whole worker; None without Linux.
    """

    seconds: float
    peak_memory: int | None
    memory_of: Literal["gpu", "process"]


@dataclass(frozen=True, kw_only=True)
class RunFacts(TaskRelations):
    """The facts of a run, known when training begins; at its end also the `usage`.

    The store has them as JSON (`core.store.facts`). Scores on text of another `text_hash`, or in another
    `precision`, do not compare.

    device, hardware   what it trained on, and the model of the GPU or CPU
    precision          fp32 or bf16
    threads, versions  threads of the processor; versions of the libraries, by name
    total_steps, steps_per_epoch  as planned
    features           the length of a word's state
    dev_from_train     its development sentences were held out of training
    notes              what the researcher must know of its data and settings, a sentence each
    planted            how related simulated tasks are by construction
    parameters         weights of encoder, BiLSTM and heads; `trained_parameters` are those that are trained
    usage              seconds and memory, at the end
    selected_by        the description's `select_by`; last without development sentences, loss instead of
                       score where these allow no score of any task; None of versions without it
    feats_sentences    all where sentences without any feature of CoNLL-U are annotated for tasks on features;
                       runs of earlier versions left them out and have it empty
    sizes              sentences and words of each split as the run used them
    readings           what each column of the corpus's files was taken for
    repeats            dev and test sentences that are in another split too
    error              the fields of the error of a failed run
    """

    device: str
    precision: str
    threads: int
    versions: Mapping[str, str]
    tasks: tuple[TaskFacts, ...]
    total_steps: int
    steps_per_epoch: int
    features: int
    dev_from_train: bool
    notes: tuple[str, ...] = ()
    planted: Planted | None = None
    parameters: int | None = None
    trained_parameters: int | None = None
    usage: Usage | None = None
    selected_by: SelectBy | None = None
    text_hash: str = ""
    feats_sentences: Literal["", "all"] = ""
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    hardware: str = ""
    readings: tuple[Reading, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    error: Mapping[str, Any] = field(default_factory=dict)

    def without_alignment(self) -> RunFacts:
        """These facts, with all that the alignment makes of the tasks unset."""
        names = [each.name for each in fields(TaskRelations) if each.name != "tasks"]
        unset: dict[str, Any] = {name: getattr(TaskRelations(), name) for name in names}
        return replace(self, **unset)


def corpus_facts(corpus: Corpus) -> dict[str, Any]:
    """The fields of RunFacts on the data of a run, from its corpus as `core.corpora.prepare` returned it."""
    return {
        "dev_from_train": corpus.dev_from_train,
        "planted": corpus.planted and corpus.planted([task.name for task in corpus.tasks]),
        "text_hash": corpus.text_hash,
        "feats_sentences": "all",
        "sizes": corpus.sizes,
        "readings": corpus.readings,
        "repeats": repeats(corpus),
    }


@dataclass(frozen=True)
class Snapshot:
    """The covariances at one step."""

    step: int
    epoch: float
    relations: Relations


@dataclass(frozen=True)
class SplitResult:
    """Scores and predictions of the best epoch on `dev` or `test`.

    `predictions` has, per task, the labels of every sentence that the task is annotated on, in the order of
    the split; `gold` the true ones.
    """

    split: str
    epoch: int
    scores: tuple[TaskScore, ...]
    predictions: Mapping[str, Sequence[Sequence[str]]]
    gold: Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Note:
    """A sentence for the researcher about this run (the penalty has vanished, say).

    One with a step belongs to the training's course: told again by a resumed training it is the same note.
    """

    message: str
    step: int | None = None


@dataclass(frozen=True)
class Saved:
    """A training state is on disk: training can be resumed from its step. It took `seconds`, `size` bytes."""

    step: int
    epoch: float
    seconds: float
    size: int


Event = RunFacts | StepMetrics | EpochMetrics | Snapshot | SplitResult | Note | Saved | Usage
Sink = Callable[[Event], None]
