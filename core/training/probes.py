"""Probes: measurements of a training at some of its steps, beside its losses.

Each measurement says which events it sends, `Probes` at which steps. None changes the training: weights,
optimiser and random numbers stay bit for bit as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from core.encoding.batches import Batch
from core.events import Event, Sink, Snapshot
from core.metrics import StepMetrics, relation_metrics
from core.models.encoders.task_embedding import cosine_similarities, task_vectors
from core.training.gradient_cosines import measure_gradient_cosines
from core.training.setup import TrainingRun, snapshot_steps
from core.training.step_log import StepLog
from core.transfer.cosines import embedding_curve

_COSINES = 50
"""How often a run without snapshots measures its task embeddings: as often as MRN by default."""


class Moment(NamedTuple):
    """When something is measured: the step, the epoch, the seconds since training began."""

    step: int
    epoch: float
    seconds: float


def _relations(run: TrainingRun, now: Moment) -> Iterator[Event]:
    if (relations := run.prior.relations()) is not None:
        yield Snapshot(now.step, now.epoch, relations)
        yield relation_metrics(*now, relations, run.prior.objective(run.model.heads.weight))


def _cosines(run: TrainingRun, now: Moment) -> Iterator[Event]:
    if (vectors := task_vectors(run.model)) is not None:
        cosines = cosine_similarities(vectors.double()).tolist()
        tasks = [task.name for task in run.facts.tasks]
        pairs = combinations(range(len(tasks)), 2)
        yield StepMetrics(*now, {embedding_curve(tasks[i], tasks[j]): cosines[i][j] for i, j in pairs})


class Probes:
    """The measurements of one training. `updates` are the steps that update covariances."""

    def __init__(self, run: TrainingRun, updates: Sequence[int], sink: Sink, log: StepLog) -> None:
        snapshots, every, last = run.config.snapshots, run.config.affinity_every, updates[-1]
        self._run, self._sink, self._log = run, sink, log
        self._updates = frozenset(updates)
        self._snapshots = snapshot_steps(updates, snapshots or 1)
        cosines = self._snapshots if snapshots else snapshot_steps(range(1, last + 1), _COSINES)
        self._after = ((self._snapshots, _relations), (cosines, _cosines))
        self._gradients = range(every, last + 1, every) if every else ()

    def before_step(self, step: int, batch: Batch) -> None:
        """Measure, where it is due, how the gradients of tasks agree on the batch that the step trains."""
        if step in self._gradients:
            now = self._now(step)
            if values := measure_gradient_cosines(self._run, batch, step):
                self._sink(StepMetrics(*now, values))

    def after_step(self, step: int) -> None:
        """Take the measurements that are due after the step."""
        for due, measure in self._after:
            if step in due:
                self._send(measure, step)

    def finish_early(self, step: int) -> None:
        """Take the measurements of the last step, where a training ends after an earlier one.

        Where the step was no update of the covariances, they are updated, as after every last step.
        """
        if step not in self._updates:
            self._run.prior.update(self._run.model.heads.weight)
        for due, measure in self._after:
            if step not in due:
                self._send(measure, step)

    def _send(self, measure: Callable[[TrainingRun, Moment], Iterator[Event]], step: int) -> None:
        for event in measure(self._run, self._now(step)):
            self._sink(event)

    def _now(self, step: int) -> Moment:
        self._log.flush()
        return Moment(step, step / self._run.facts.steps_per_epoch, self._log.seconds)
