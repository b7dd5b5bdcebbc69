"""The training loop, for STL, MTL and MRN alike (dissertation, equations (21) to (26))."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.encoding.batches import Batch
from core.errors import NotFinite
from core.metrics import DEV_LOSS, DEV_SCORE, TOTAL, EpochMetrics
from core.records import DevMetrics, Note, Sink, best_epoch
from core.training.checkpoints import Progress, Resuming
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
    states = Resuming(run, checkpoint, sink)
    progress = states.begin()
    log = StepLog(sink, [task.name for task in run.facts.tasks], before=progress.seconds)
    updates = frozenset(steps := update_steps(config, run.splits["train"].batches.per_part))
    probes = Probes(run, steps, sink, log)
    memory = StepMemory(config.batch_size, config.batch_tokens, run.optimiser, gauge_of(run.device))
    dev = run.scorers.get("dev")
    chosen = partial(best_epoch, by=run.selected_by, epochs=config.epochs)
    best_on_dev: Predicted | None = None

    for epoch in range(len(progress.history) + 1, config.epochs + 1):
        # Before an epoch and not after one, so that a run that was stopped here ends when it is resumed.
        epochs_since_best = epoch - 1 - (chosen(progress.history) or 0)
        if run.patience is not None and epochs_since_best >= run.patience:
            message = f"No better epoch for {plural(run.patience, 'epoch')}: the training ends."
            sink(Note(message, progress.step))
            if checkpoint.is_due:  # before the last update, which the run makes again where it is resumed
                states.save(progress, log)
            probes.finish_early(progress.step)
            break
        run.model.train()
        for batch in run.epoch(skip=progress.step % run.facts.steps_per_epoch):
            if (stop := should_stop()) or checkpoint.is_due:
                states.save(progress, log)
            if stop:
                return Outcome(True, chosen(progress.history), progress.step)
            with memory.step():
                probes.before_step(progress.step + 1, batch)
                measured = train_step(run, batch)  # (21) to (23)
            progress.step += 1
            log.add(progress.step, progress.step / run.facts.steps_per_epoch, run.heads_lr, measured)
            run.schedule.step()
            if progress.step in updates:
                log.flush()
                run.prior.update(run.model.heads.weight)  # (24) to (26)
            probes.after_step(progress.step)
        predicted = _end_epoch(run, dev, progress, log, sink)
        if chosen(progress.history) == epoch:
            states.save_best(progress)
            best_on_dev = predicted
    else:
        if checkpoint.is_due:
            states.save(progress, log)

    best = chosen(progress.history)
    if best is None:
        raise NotFinite("No epoch could be scored on the development sentences: its losses are not numbers.")
    if run.selected_by == "score" and all(math.isnan(epoch.score) for epoch in progress.history):
        sink(
            Note(
                f"No epoch has a mean dev score: {_CONSTANT}. Epoch {best} has the lowest dev loss.",
                progress.step,
            )
        )
    states.restore_best(progress, best)
    if dev is not None:  # a run that was resumed after its best epoch predicts again
        sink(dev.result(best_on_dev or predict(run.model, run.enter("dev"), run.device), best))
    sink(run.scorers["test"].result(predict(run.model, run.enter("test"), run.device), best))
    checkpoint.publish()
    sink(memory.usage(log.seconds))
    return Outcome(False, best, progress.step)


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


def _end_epoch(
    run: TrainingRun, dev: Scorer | None, progress: Progress, log: StepLog, sink: Sink
) -> Predicted | None:
    """Score the development sentences, if there are any, and note a penalty that has vanished."""
    log.flush()
    epoch, predicted = len(progress.history) + 1, None
    mean = loss = math.nan
    if dev is not None:
        predicted = predict(run.model, run.enter("dev"), run.device)
        losses = dict(zip([task.name for task in run.facts.tasks], predicted.losses.tolist(), strict=True))
        headlines = dev.headlines(predicted)
        # Of tasks whose score the gold labels allow: NaN where one of these has none in this epoch.
        scores = {task.task: task.score for task in headlines if task.task not in dev.undefined}
        # A task that no development sentence is annotated for does not count.
        losses = {task.task: losses[task.task] for task in headlines if task.tokens}
        mean, loss = (sum(of.values()) / len(of) if of else math.nan for of in (scores, losses))
        defined = {task: score for task, score in (scores | {TOTAL: mean}).items() if not math.isnan(score)}
        values = {
            (task, metric.name): value
            for metric, by_task in ((DEV_SCORE, defined), (DEV_LOSS, losses | {TOTAL: loss}))
            for task, value in by_task.items()
        }
        sink(EpochMetrics(progress.step, epoch, log.seconds, values))
    progress.history.append(DevMetrics(epoch, mean, loss))
    run.balancing.end_epoch()
    if progress.learns_relations and log.last_penalty <= _VANISHED * log.last_loss:
        message = (
            f"The penalty has vanished ({log.last_penalty:.1e} beside a loss of {log.last_loss:.2g}): from "
            "here on this run trains as MTL does."
        )
        sink(Note(message, progress.step))
        progress.learns_relations = False
    return predicted
