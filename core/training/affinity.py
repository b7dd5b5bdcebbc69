"""How the gradients of tasks agree, and whose step lowers whose loss, measured during a joint training.

After Fifty et al. (2021), Efficiently Identifying Task Groupings for Multi-Task Learning, section 3. At the
shared weights θ and with the heads as they are, the lookahead affinity of task i to task j is

    Z(i → j) = 1 − L_j(θ − η ∇L_i(θ)) / L_j(θ)

with the learning rates η of this step. The step is the paper's plain gradient step, not the optimiser's: the
moments of an optimiser hold the gradients of all tasks, so that its steps after different tasks' losses
would mostly be alike. Losses are those of training (21) without weights of tasks, penalty and dropout.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, permutations

import numpy as np
import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.tagger import MultiTaskTagger
from core.training.setup import TrainingRun, part_of
from core.transfer.affinity import affinity_curve, cosine_curve

_STREAM = 2  # of the seed: the batches of measurements are drawn apart from those of the training

_OF_ONE_TASK = re.compile(r"\.gate_|\.task_vectors")

SharedWeight = tuple[nn.Parameter, float]
"""A weight that all tasks train, and its learning rate."""


def measure_affinity(run: TrainingRun, batch: Batch, step: int) -> dict[tuple[str, str], float]:
    """The values of `affinity_curves` before the step that trains this batch.

    Pairs without a finite value are left out: tasks without labels in the batch, a cosine where a gradient is
    zero. Weights, optimiser and random numbers stay bit for bit as they are.
    """
    names = [task.name for task in run.facts.tasks]
    batches = [batch]
    train = run.splits["train"].batches
    if len(train.per_part) > 1:  # a step's batch has one task, or the tasks of one corpus
        batches = list(train.one_of_each(np.random.default_rng([run.config.seed, _STREAM, step])))
    on_device = [drawn.to(run.device) for drawn in batches]
    with _without_dropout(run.model):
        cosine, affinity = compare(run.model, shared_weights(run), on_device)
    cosines, affinities = cosine.tolist(), affinity.tolist()
    values = {cosine_curve(names[i], names[j]): cosines[i][j] for i, j in combinations(range(len(names)), 2)}
    values |= {
        affinity_curve(names[j], names[i]): affinities[j][i] for i, j in permutations(range(len(names)), 2)
    }
    return {curve: value for curve, value in values.items() if math.isfinite(value)}


def shared_weights(run: TrainingRun) -> list[SharedWeight]:
    """The trained weights below the heads, without those that each task has for itself: SC-LSTM's gates and
    task embeddings.
    """
    rates = {group["name"]: float(group["lr"]) for group in run.optimiser.param_groups}
    return [
        (weight, rates[part_of(name)])
        for name, weight in run.model.named_parameters()
        if weight.requires_grad and part_of(name) != "heads" and not _OF_ONE_TASK.search(name)
    ]


def compare(
    model: MultiTaskTagger, shared: Sequence[SharedWeight], batches: Sequence[Batch]
) -> tuple[Tensor, Tensor]:
    """Cosines (T, T) of tasks' gradients on the shared weights, and affinities (T, T): Z(i → j) at [j, i].
    A task is measured on the first batch that has labels of it; NaN where none has.
    """
    weights = [weight for weight, _ in shared]
    sizes = [weight.numel() for weight in weights]
    before = torch.full((model.tasks,), math.nan, device=weights[0].device)
    gradients = torch.zeros(len(before), sum(sizes), device=before.device)
    measured: list[list[int]] = []  # the tasks of each batch
    for batch in batches:
        losses, counts = _losses(model, batch)
        tasks = [task for task, words in enumerate(counts.tolist()) if words and before[task].isnan()]
        for task in tasks:
            of_task = torch.autograd.grad(
                losses[task], weights, retain_graph=task != tasks[-1], materialize_grads=True
            )
            gradients[task] = torch.cat([gradient.flatten() for gradient in of_task])
        before[tasks] = losses[tasks].detach()
        measured.append(tasks)

    products = gradients @ gradients.T
    norms = products.diag().sqrt()
    start = [weight.detach().clone() for weight in weights]
    affinity = torch.full_like(products, math.nan)
    try:
        for task in itertools.chain.from_iterable(measured):
            directions = gradients[task].split(sizes)
            for (weight, rate), value, direction in zip(shared, start, directions, strict=True):
                weight.data.copy_(value).sub_(direction.view_as(value), alpha=rate)
            with torch.no_grad():
                for batch, tasks in zip(batches, measured, strict=True):
                    affinity[tasks, task] = 1 - _losses(model, batch)[0][tasks] / before[tasks]
    finally:
        for weight, value in zip(weights, start, strict=True):
            weight.data.copy_(value)
    return products / norms.outer(norms), affinity


def _losses(model: MultiTaskTagger, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of each task (T,), a mean over its words, and how many these are (T,)."""
    sums, counts = model.losses(model(batch), batch)
    return sums / counts.clamp_min(1), counts


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
