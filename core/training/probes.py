"""Probes: what a training measures of itself at some of its steps, beside its losses.

A probe says at which steps it is due and which events it then sends. None changes the training: weights,
optimiser and random numbers stay bit for bit as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from core.encoding.batches import Batch
from core.models.encoders.task_embedding import cosine_similarities, task_vectors
from core.records import Event, Sink, Snapshot, StepMetrics, relation_metrics
from core.training.affinity import measure_affinity
from core.training.setup import TrainingRun, snapshot_steps
from core.training.step_log import StepLog
from core.transfer.affinity import embedding_curve

_COSINES = 50
"""How often a run without snapshots measures its task embeddings: as often as MRN by default."""


class Moment(NamedTuple):
    """When something is measured: the step, the epoch, the seconds since training began."""

    step: int
    epoch: float
    seconds: float


@dataclass(frozen=True)
class Probe:
    """A measurement: the steps at which it is due, and its events. One of a batch (`before_step`) is made
    before the step that trains this batch, the others after the step.
    """

    due: Container[int]
    measure: Callable[[TrainingRun, Moment, Batch | None], Iterator[Event]]
    before_step: bool = False


def _relations(run: TrainingRun, now: Moment, batch: Batch | None) -> Iterator[Event]:
    """The covariances that MRN has learned, and figures of them."""
    if (relations := run.prior.relations()) is not None:
        yield Snapshot(now.step, now.epoch, relations)
        yield relation_metrics(*now, relations, run.prior.objective(run.model.heads.weight))


def _cosines(run: TrainingRun, now: Moment, batch: Batch | None) -> Iterator[Event]:
    """How alike the tasks' embeddings are."""
    if (vectors := task_vectors(run.model)) is not None:
        cosines = cosine_similarities(vectors.double()).tolist()
        tasks = [task.name for task in run.facts.tasks]
        pairs = combinations(range(len(tasks)), 2)
        yield StepMetrics(*now, {embedding_curve(tasks[i], tasks[j]): cosines[i][j] for i, j in pairs})


def _affinity(run: TrainingRun, now: Moment, batch: Batch | None) -> Iterator[Event]:
    """How the gradients of tasks agree, and whose step lowers whose loss."""
    if batch is not None and (values := measure_affinity(run, batch, now.step)):
        yield StepMetrics(*now, values)


class Probes:
    """The probes of one training, whose `updates` are the steps that update covariances."""

    def __init__(self, run: TrainingRun, updates: Sequence[int], sink: Sink, log: StepLog) -> None:
        snapshots, every, last = run.config.snapshots, run.config.affinity_every, updates[-1]
        self._run, self._sink, self._log = run, sink, log
        self._relations = Probe(snapshot_steps(updates, snapshots or 1), _relations)
        self._others = (
            Probe(
                self._relations.due if snapshots else snapshot_steps(range(1, last + 1), _COSINES), _cosines
            ),
            Probe(range(every, last + 1, every) if every else (), _affinity, before_step=True),
        )

    def before_step(self, step: int, batch: Batch) -> None:
        """Measure what is due of the batch that the step trains."""
        for probe in self._others:
            if probe.before_step and step in probe.due:
                self._send(probe, step, batch)

    def after_step(self, step: int) -> None:
        """Measure what is due after the step."""
        for probe in (self._relations, *self._others):
            if not probe.before_step and step in probe.due:
                self._send(probe, step)

    def finish_early(self, step: int) -> None:
        """Measure what the last step always shows, where a training ends after an earlier one."""
        if step not in self._relations.due:
            self._run.prior.update(self._run.model.heads.weight)
        for probe in (self._relations, *self._others):
            if not probe.before_step and step not in probe.due:
                self._send(probe, step)

    def _send(self, probe: Probe, step: int, batch: Batch | None = None) -> None:
        self._log.flush()
        now = Moment(step, step / self._run.facts.steps_per_epoch, self._log.seconds)
        for event in probe.measure(self._run, now, batch):
            self._sink(event)
