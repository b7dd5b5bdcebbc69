"""MRN Lab's own loop: `core.training.trainer.train`, as a worker calls it, with all that it logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from core.checkpoints import Checkpoint
from core.encoding.batches import Batch
from core.models.encoders.packed import packs
from core.training import trainer
from core.training.events import Event, RunFacts
from core.training.setup import Setup
from tests.benchmarks.training_job import Job
from tests.benchmarks.turns import Between

__all__ = ["train_mrn", "train_mtl"]

_NEVER_S = 1e9


def train_mtl(job: Job, turns: Between) -> None:
    """An MTL run."""
    _train(job, turns, paradigm="mtl")


def train_mrn(job: Job, turns: Between) -> None:
    """An MRN run with the defaults, its covariances updated every ten steps and stored now and then."""
    _train(job, turns, paradigm="mrn")


def _train(job: Job, turns: Between, **changes: Any) -> None:
    """No training state is saved meanwhile: Trainer saves none either."""

    def sink(event: Event) -> None:
        if isinstance(event, RunFacts):
            turns.tell(precision=event.precision, threads=event.threads)

    with (
        TemporaryDirectory() as folder,
        patch.object(trainer, "train_step", _seen(trainer.train_step, turns)),
    ):
        trainer.train(
            job.config.with_(**changes),
            job.corpus,
            sink=sink,
            checkpoint=Checkpoint(Path(folder) / "run", every_s=_NEVER_S),
            should_stop=turns.between,
        )


def _seen(train_step: Callable[[Setup, Batch], Any], turns: Between) -> Callable[[Setup, Batch], Any]:
    """The loop's own step, with its batch told.

    While it warms up it also trains on the longest sentences, so that memory peaks as in a whole epoch.
    """

    def step(run: Setup, batch: Batch) -> Any:
        if turns.warming:
            train_step(run, next(run.splits["train"].batches.by_length()))
        encoder: Any = run.model.encoder
        packed = packs(getattr(encoder, "below", encoder).inner)
        turns.saw(len(batch.words), len(batch.real), len(batch.real) if packed else batch.ids.numel())
        return train_step(run, batch)

    return step
