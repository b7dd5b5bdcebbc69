"""The training loop, for STL, MTL and MRN alike (dissertation, equations (21) to (26))."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.encoding.batches import Batch
from core.errors import NotFinite
from core.events import DevMetrics, Note, Sink, best_epoch
from core.metrics import DEV_LOSS, DEV_SCORE, TOTAL, EpochMetrics
from core.training.checkpoints import Resuming
from core.training.evaluate import Predicted, Scorer, predict
from core.training.memory import StepMemory, gauge_of, restart_process_peak
from core.training.probes import Probes
from core.training.setup import TrainingRun, set_up, update_steps
from core.training.step_log import StepLog, StepLosses
from core.wording import plural

_CONSTANT = "in each one a task's predicted numbers are all the same"
_VANISHED = 1e-6
"""Fraction of the total loss under which a penalty no longer does anything."""


@dataclass(frozen=True)
class Outcome:
    """The end of a training: whether it was stopped on request, its best epoch, its number of steps."""

    stopped: bool
    best_epoch: int | None
    steps: int


def train(
    config: RunConfig,
    corpus: Corpus,
    *,
    sink: Sink,
    checkpoint: Checkpoint,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> Outcome:
    """Train one run on a corpus from `core.corpora.prepare`, and send its events to `sink`.

    `checkpoint` keeps the best epoch's model and, now and then, a training state to resume from.
    `should_stop` is asked at every step, and while a frozen encoder's features are computed. `threads`: of
    the processor, all by default.
    Raises MRNLabError where training cannot begin, NotFinite where a loss is not a number, OutOfMemory
    where a step finds no memory, NoRoom where the disk has none for the best model.
    """
    restart_process_peak()
    run = set_up(config, corpus, threads)
    sink(run.facts)
    if not run.compute_features(sink, should_stop):
        return Outcome(True, None, 0)
    training = _Training(run, sink, checkpoint, should_stop)
    for epoch in range(len(training.progress.history) + 1, config.epochs + 1):
        # Before an epoch and not after one, so that a run that was stopped here ends when it is resumed.
        if training.is_out_of_patience:
            training.end_early()
            break
        if not training.train_epoch():
            return Outcome(True, training.best_epoch, training.progress.step)
        predicted = training.score_epoch()
        if training.best_epoch == epoch:
            training.keep_best(predicted)
    else:
        training.save_if_due()
    best = training.finish()
    return Outcome(False, best, training.progress.step)


class _Training:
    """A training between its first step, or the one that it resumes from, and its end."""

    def __init__(
        self, run: TrainingRun, sink: Sink, checkpoint: Checkpoint, should_stop: Callable[[], bool]
    ) -> None:
        self._run, self._sink, self._checkpoint, self._should_stop = run, sink, checkpoint, should_stop
        self._states = Resuming(run, checkpoint, sink)
        self.progress = self._states.begin()
        tasks = [task.name for task in run.facts.tasks]
        self._log = StepLog(sink, tasks, before=self.progress.seconds)
        steps = update_steps(run.config, run.splits["train"].batches.per_part)
        self._updates = frozenset(steps)
        self._probes = Probes(run, steps, sink, self._log)
        batch_size, batch_tokens = run.config.batch_size, run.config.batch_tokens
        self._memory = StepMemory(batch_size, batch_tokens, run.optimiser, gauge_of(run.device))
        self._dev = run.scorers.get("dev")
        self._best_on_dev: Predicted | None = None

    @property
    def best_epoch(self) -> int | None:
        """The best epoch so far."""
        return best_epoch(self.progress.history, by=self._run.selected_by, epochs=self._run.config.epochs)

    @property
    def is_out_of_patience(self) -> bool:
        """Whether too many epochs have been no better than the best."""
        since_best = len(self.progress.history) - (self.best_epoch or 0)
        return self._run.patience is not None and since_best >= self._run.patience

    def end_early(self) -> None:
        """End before the last epoch."""
        message = f"No better epoch for {plural(self._run.patience or 0, 'epoch')}: the training ends."
        self._sink(Note(message, self.progress.step))
        self.save_if_due()  # before the last update, which the run makes again where it is resumed
        self._probes.finish_early(self.progress.step)

    def save_if_due(self, *, or_stopped: bool = False) -> None:
        """Save a state to resume from where it is time, or `or_stopped`."""
        if or_stopped or self._checkpoint.is_due:
            self._states.save(self.progress, self._log)

    def train_epoch(self) -> bool:
        """Train the rest of an epoch. False where it was stopped on request, with its state saved."""
        run, progress, log = self._run, self.progress, self._log
        run.model.train()
        for batch in run.epoch(skip=progress.step % run.facts.steps_per_epoch):
            stopped = self._should_stop()
            self.save_if_due(or_stopped=stopped)
            if stopped:
                return False
            with self._memory.step():
                self._probes.before_step(progress.step + 1, batch)
                measured = train_step(run, batch)  # (21) to (23)
            progress.step += 1
            log.add(progress.step, progress.step / run.facts.steps_per_epoch, run.heads_lr, measured)
            run.schedule.step()
            if progress.step in self._updates:
                log.flush()
                run.prior.update(run.model.heads.weight)  # (24) to (26)
            self._probes.after_step(progress.step)
        return True

    def score_epoch(self) -> Predicted | None:
        """Score the development sentences, if there are any, and note a penalty that has vanished."""
        run, progress, log = self._run, self.progress, self._log
        log.flush()
        epoch, predicted = len(progress.history) + 1, None
        mean = loss = math.nan
        if self._dev is not None:
            predicted = predict(run.model, run.use_split("dev"), run.device)
            mean, loss, values = _dev_metrics(run, self._dev, predicted)
            self._sink(EpochMetrics(progress.step, epoch, log.seconds, values))
        progress.history.append(DevMetrics(epoch, mean, loss))
        run.balancing.end_epoch()
        if progress.learns_relations and log.last_penalty <= _VANISHED * log.last_loss:
            message = (
                f"The penalty has vanished ({log.last_penalty:.1e} beside a loss of {log.last_loss:.2g}): "
                "from here on this run trains as MTL does."
            )
            self._sink(Note(message, progress.step))
            progress.learns_relations = False
        return predicted

    def keep_best(self, predicted: Predicted | None) -> None:
        """Keep the model of the epoch that has just been scored, and its dev predictions."""
        self._states.save_best(self.progress)
        self._best_on_dev = predicted

    def finish(self) -> int:
        """Put the best epoch's weights back, score them on dev and test, and publish the checkpoint.

        Returns that epoch. Raises NotFinite where no epoch could be scored.
        """
        run, sink, progress, best = self._run, self._sink, self.progress, self.best_epoch
        if best is None:
            raise NotFinite(
                "No epoch could be scored on the development sentences: its losses are not numbers."
            )
        if run.selected_by == "score" and all(math.isnan(epoch.score) for epoch in progress.history):
            message = f"No epoch has a mean dev score: {_CONSTANT}. Epoch {best} has the lowest dev loss."
            sink(Note(message, progress.step))
        self._states.restore_best(progress, best)
        if self._dev is not None:  # a run that was resumed after its best epoch predicts again
            predicted = self._best_on_dev or predict(run.model, run.use_split("dev"), run.device)
            sink(self._dev.result(predicted, best))
        sink(run.scorers["test"].result(predict(run.model, run.use_split("test"), run.device), best))
        self._checkpoint.publish()
        sink(self._memory.usage(self._log.seconds))
        return best


def _dev_metrics(
    run: TrainingRun, dev: Scorer, predicted: Predicted
) -> tuple[float, float, dict[tuple[str, str], float]]:
    """The mean dev score, the mean dev loss, and those of each task by task and metric.

    A mean score leaves out tasks that the gold labels leave undefined, and is NaN if a remaining one is
    undefined in this epoch. A task that no development sentence is annotated for does not count.
    """
    losses = dict(zip([task.name for task in run.facts.tasks], predicted.losses.tolist(), strict=True))
    headlines = dev.headlines(predicted)
    scores = {task.task: task.score for task in headlines if task.task not in dev.undefined}
    losses = {task.task: losses[task.task] for task in headlines if task.tokens}
    mean, loss = (
        sum(by_task.values()) / len(by_task) if by_task else math.nan for by_task in (scores, losses)
    )
    defined = {task: score for task, score in (scores | {TOTAL: mean}).items() if not math.isnan(score)}
    values = {
        (task, metric.name): value
        for metric, by_task in ((DEV_SCORE, defined), (DEV_LOSS, losses | {TOTAL: loss}))
        for task, value in by_task.items()
    }
    return mean, loss, values


def train_step(run: TrainingRun, batch: Batch) -> StepLosses:
    """One step of the optimiser."""
    batch = batch.to(run.device)
    sums, counts = run.model.losses(run.model(batch), batch)
    losses = sums / counts.clamp_min(1)  # L_t, (21)
    weighted = losses if run.task_weights is None else losses * run.task_weights
    present = counts > 0
    terms = run.balancing.terms(weighted, present)
    penalty = run.prior.penalty(run.model.heads.weight)  # λ · L_reg, (23)
    tasks = present.sum().clamp_min(1) if batch.partial else len(losses)
    total = terms.sum() / tasks + penalty  # (22), (23); the mean, as the program has it
    run.optimiser.zero_grad(set_to_none=True)
    run.balancing.backward(total, lambda: terms / tasks, present)
    if run.config.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), run.config.clip_norm)
    run.optimiser.step()
    return StepLosses(losses, counts, penalty, total)
