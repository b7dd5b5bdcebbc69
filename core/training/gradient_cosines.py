"""Cosines of the gradients of tasks on the weights that they share, measured during a joint training.

Losses are those of training (21), without weights of tasks, penalty and dropout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders import shared_weights
from core.models.tagger import MultiTaskTagger
from core.training.setup import TrainingRun
from core.transfer.cosines import gradient_curve

_STREAM = 2  # of the seed: the batches of measurements are drawn apart from those of the training


def measure_gradient_cosines(run: TrainingRun, batch: Batch, step: int) -> dict[tuple[str, str], float]:
    """The value of each pair's `gradient_curve` before the step that trains this batch.

    Pairs without a finite value are left out: tasks without labels in the batch, or without a gradient.
    Weights, optimiser and random numbers stay bit for bit as they are.
    """
    names = [task.name for task in run.facts.tasks]
    batches = [batch]
    train = run.splits["train"].batches
    if len(train.per_part) > 1:  # a step's batch has one task, or the tasks of one corpus
        batches = list(train.one_of_each(np.random.default_rng([run.config.seed, _STREAM, step])))
    on_device = [drawn.to(run.device) for drawn in batches]
    with _without_dropout(run.model):
        cosines = gradient_cosines(run.model, shared_weights(run.model), on_device).tolist()
    values = {
        gradient_curve(names[i], names[j]): cosines[i][j] for i, j in combinations(range(len(names)), 2)
    }
    return {curve: value for curve, value in values.items() if math.isfinite(value)}


def gradient_cosines(
    model: MultiTaskTagger, weights: Sequence[nn.Parameter], batches: Sequence[Batch]
) -> Tensor:
    """The cosines (T, T) of tasks' gradients on these weights.

    A task is measured on the first batch that has labels of it; NaN where none has, and where its gradient is
    zero.
    """
    is_measured = [False] * model.tasks
    size = sum(weight.numel() for weight in weights)
    gradients = torch.zeros(model.tasks, size, device=weights[0].device)
    for batch in batches:
        sums, counts = model.losses(model(batch), batch)
        losses = sums / counts.clamp_min(1)
        tasks = [task for task, words in enumerate(counts.tolist()) if words and not is_measured[task]]
        for task in tasks:
            task_gradients = torch.autograd.grad(
                losses[task], weights, retain_graph=task != tasks[-1], materialize_grads=True
            )
            gradients[task] = torch.cat([gradient.flatten() for gradient in task_gradients])
            is_measured[task] = True
    products = gradients @ gradients.T
    norms = products.diag().sqrt()
    return products / norms.outer(norms)


@contextmanager
def _without_dropout(model: MultiTaskTagger) -> Iterator[None]:
    """A context in which the model, which is in training, draws no random numbers."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.train()  # drops nothing itself, and cuDNN has no gradients of it otherwise
    try:
        yield
    finally:
        model.train()
