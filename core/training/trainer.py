"""The training loop, for STL, MTL and MRN alike (dissertation, equations (21) to (26))."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import torch
from torch.autograd import backward

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.encoding.batches import Batch
from core.errors import NotFinite
from core.models.encoders.task_embedding import cosine_similarities, task_vectors
from core.records import (
    TOTAL,
    DevMetrics,
    EpochMetrics,
    Note,
    Sink,
    Snapshot,
    StepMetrics,
    Usage,
    best_epoch,
    relation_metrics,
)
from core.training.affinity import measure_affinity
from core.training.checkpoints import Resuming
from core.training.evaluate import Predicted, Scorer, predict
from core.training.memory import StepMemory, gauge_of, process_peak, restart_process_peak
from core.training.setup import TrainingRun, set_up, snapshot_steps, update_steps
from core.training.step_log import Measured, StepLog
from core.transfer.embeddings import embedding_curve
from core.wording import plural

_VANISHED = 1e-6
"""Fraction of the total loss under which a penalty no longer does anything."""

_COSINES = 50
"""How often a run without snapshots tells how alike its task embeddings are: as often as MRN by default."""


@dataclass(frozen=True)
class Outcome:
    """How a training ended: stopped on request or run to its end, its best epoch, the steps it made."""

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
) -> Outcome:
    """Train one run on a corpus from `core.corpora.prepare`, and send its events to `sink`.

    `checkpoint` keeps the best epoch's model and, now and then, a training state to resume from.
    `should_stop` is asked at every step, and while a frozen encoder's features are computed.
    Raises MRNLabError where training cannot begin, NotFinite where a loss is not a number, OutOfMemory
    where a step finds no memory, NoRoom where the disk has none for the best model.
    """
    restart_process_peak()
    run = set_up(config, corpus)
    gauge = gauge_of(run.device)
    sink(run.facts)
    if not run.compute_features(sink, should_stop):
        return Outcome(True, None, 0)
    model, prior, heads, tasks = run.model, run.prior, run.model.heads, run.facts.tasks
    states = Resuming(run, checkpoint, sink)
    at = states.begin()
    log = StepLog(sink, [task.name for task in tasks], before=at.seconds)
    budget = config.batch_tokens
    memory = StepMemory(budget or config.batch_size, run.optimiser, gauge, budget=budget is not None)
    per_epoch = run.facts.steps_per_epoch
    steps = update_steps(config, run.splits["train"].batches.per_part)
    updates, snapshots = frozenset(steps), snapshot_steps(steps, config.snapshots or 1)
    tells_cosines = snapshots if config.snapshots else snapshot_steps(range(1, steps[-1] + 1), _COSINES)
    dev = Scorer(config, "dev", run.splits["dev"], tasks) if "dev" in run.splits else None
    chosen = partial(best_epoch, by=run.facts.selected_by, epochs=config.epochs)
    best_on_dev: Predicted | None = None

    for epoch in range(len(at.history) + 1, config.epochs + 1):
        # Before an epoch and not after one, so that a run that was stopped here ends when it is resumed.
        if config.patience is not None and epoch - 1 - (chosen(at.history) or 0) >= config.patience:
            sink(Note(f"No better epoch for {plural(config.patience, 'epoch')}: the training ends.", at.step))
            if at.step not in snapshots:
                prior.update(heads.weight)
                _send_relations(run, sink, at.step, log.seconds)
            if at.step not in tells_cosines:
                _send_cosines(run, sink, at.step, log.seconds)
            break
        model.train()
        for batch in run.epoch(skip=at.step % per_epoch):
            if (stop := should_stop()) or checkpoint.due:
                states.save(at, log)
            if stop:
                return Outcome(True, chosen(at.history), at.step)
            with memory.step():
                affinity = measure_affinity(run, batch, at.step + 1)
                measured = train_step(run, batch)  # (21) to (23)
            at.step += 1
            log.add(at.step, at.step / per_epoch, run.heads_lr, measured)
            if affinity:
                log.flush()
                sink(StepMetrics(at.step, at.step / per_epoch, log.seconds, affinity))
            run.schedule.step()
            if at.step in updates:
                log.flush()
                prior.update(heads.weight)  # (24) to (26)
            if at.step in snapshots:
                _send_relations(run, sink, at.step, log.seconds)
            if at.step in tells_cosines:
                _send_cosines(run, sink, at.step, log.seconds)
        log.flush()
        metrics, predicted = DevMetrics(epoch, math.nan, math.nan), None
        if dev is not None:
            metrics, predicted = _evaluate(run, dev, sink, epoch, at.step, log.seconds)
        at.history.append(metrics)
        if at.learns_relations and log.last_penalty <= _VANISHED * log.last_loss:
            sink(Note(_vanished(log), at.step))
            at.learns_relations = False
        if chosen(at.history) == epoch:
            states.save_best(at)
            best_on_dev = predicted

    if checkpoint.due:
        states.save(at, log)
    best = chosen(at.history)
    if best is None:
        raise NotFinite("No epoch could be scored on the development sentences: its losses are not numbers.")
    states.restore_best(at, best)
    if dev is not None:
        if best_on_dev is None:  # resumed after its best epoch
            best_on_dev = predict(model, run.enter("dev"), run.device)
        sink(dev.result(best_on_dev, best))
    test = run.enter("test")
    sink(Scorer(config, "test", test, tasks).result(predict(model, test, run.device), best))
    checkpoint.publish()
    if gauge is None:
        sink(Usage(log.seconds, process_peak(), "process"))
    else:
        sink(Usage(log.seconds, gauge.most(), "gpu"))
    return Outcome(False, best, at.step)


def train_step(run: TrainingRun, batch: Batch) -> Measured:
    """One step of the optimiser."""
    batch = batch.to(run.device)
    sums, counts = run.model.losses(run.model(batch), batch)
    losses = sums / counts.clamp_min(1)  # L_t, (21)
    weighted = losses if run.task_weights is None else losses * run.task_weights
    penalty = run.prior.penalty(run.model.heads.weight)  # λ · L_reg, (23)
    if run.config.corpus_order == "in_turn" or run.config.draw_tasks != "together":
        total = weighted.sum() / (counts > 0).sum().clamp_min(1) + penalty  # not all tasks are in the batch
    else:
        total = weighted.mean() + penalty  # (22), (23); the mean, as the program has it
    run.optimiser.zero_grad(set_to_none=True)
    backward(total)
    if run.config.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), run.config.clip_norm)
    run.optimiser.step()
    return losses, counts, penalty, total


def _send_relations(run: TrainingRun, sink: Sink, step: int, seconds: float) -> None:
    """Send what MRN has learned until now, if the run is one, and figures of it."""
    if (relations := run.prior.relations()) is None:
        return
    epoch = step / run.facts.steps_per_epoch
    sink(Snapshot(step, epoch, relations))
    objective = run.prior.objective(run.model.heads.weight)
    sink(relation_metrics(step, epoch, seconds, relations, objective))


def _send_cosines(run: TrainingRun, sink: Sink, step: int, seconds: float) -> None:
    """Send how alike the tasks' embeddings are by now, if the run has such."""
    if (vectors := task_vectors(run.model)) is None:
        return
    cosines = cosine_similarities(vectors.double()).tolist()
    names = [task.name for task in run.facts.tasks]
    values = {
        embedding_curve(names[i], names[j]): cosines[i][j] for i, j in combinations(range(len(names)), 2)
    }
    sink(StepMetrics(step, step / run.facts.steps_per_epoch, seconds, values))


def _evaluate(
    run: TrainingRun, dev: Scorer, sink: Sink, epoch: int, step: int, seconds: float
) -> tuple[DevMetrics, Predicted]:
    """Predict and score the development sentences."""
    predicted = predict(run.model, run.enter("dev"), run.device)
    losses = {task.name: loss for task, loss in zip(run.facts.tasks, predicted.losses.tolist(), strict=True)}
    # A task that no development sentence is annotated for does not count.
    scored = [(task, losses[task.task]) for task in dev.headlines(predicted) if task.tokens]
    values = {(task.task, "score"): task.score for task, _ in scored}
    values |= {(task.task, "loss"): loss for task, loss in scored}
    mean = sum(task.score for task, _ in scored) / len(scored)
    loss = sum(loss for _, loss in scored) / len(scored)
    sink(EpochMetrics(step, epoch, seconds, values | {(TOTAL, "score"): mean, (TOTAL, "loss"): loss}))
    return DevMetrics(epoch, mean, loss), predicted


def _vanished(log: StepLog) -> str:
    return (
        f"The penalty has vanished ({log.last_penalty:.1e} beside a loss of {log.last_loss:.2g}): from "
        "here on this run trains as MTL does."
    )
