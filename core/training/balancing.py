"""Balancing: how a step combines the losses of its tasks, or their gradients on the weights they share.

Without it a step descends the mean of the tasks' losses. All methods keep that scale: with equal weights, or
where no two gradients conflict, a step is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.autograd import backward, grad

from core.config import RunConfig
from core.models.encoders import shared_weights
from core.models.tagger import MultiTaskTagger
from core.registry import GRADIENT_BALANCING

_TEMPERATURE = 2.0
"""Of the softmax over tasks, as in the paper of DWA."""
_RADIUS = 0.5
"""CAGrad stays within this share of the mean gradient's norm around it: the paper's c, as LibMTL has it."""


class Balancing:
    """No balancing, and the interface of the methods."""

    @property
    def learned(self) -> list[nn.Parameter]:
        """Weights that the optimiser trains with those of the model."""
        return []

    def terms(self, losses: Tensor, present: Tensor) -> Tensor:
        """The terms (T,) whose mean a step descends, of the tasks' losses (T,).

        `present` (T,) says which tasks the batch has labels of.
        """
        return losses

    def backward(self, total: Tensor, shares: Callable[[], Tensor], present: Tensor) -> None:
        """Leave a gradient on each trained weight. `shares` gives the tasks' shares (T,) of the total."""
        backward(total)

    def end_epoch(self) -> None:
        """Take note that an epoch has ended."""

    def state_dict(self) -> dict[str, Tensor]:
        """What a resumed training needs."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state_dict` gave."""


class Uncertainty(Balancing):
    """Learns the variance σ² of each task: a loss L becomes L / σ² + log σ (Kendall et al., 2018, eq. 10).

    It learns s = log σ², from 0 on. A squared error's L / 2σ² + log σ is the same with s moved by log 2.
    """

    def __init__(self, tasks: int, device: torch.device) -> None:
        self.log_variances = nn.Parameter(torch.zeros(tasks, device=device))

    @property
    def learned(self) -> list[nn.Parameter]:
        return [self.log_variances]

    def terms(self, losses: Tensor, present: Tensor) -> Tensor:
        return present * (torch.exp(-self.log_variances) * losses + self.log_variances / 2)

    def state_dict(self) -> dict[str, Tensor]:
        return {"log_variances": self.log_variances.detach()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.log_variances.data.copy_(state["log_variances"])


class DynamicWeights(Balancing):
    """Weights T · softmax(r / 2) with r_t = L_t(e−1) / L_t(e−2), of mean losses of epochs (Liu et al., 2019).

    The first two epochs have equal weights. A ratio that is not finite counts as 1.
    """

    def __init__(self, tasks: int, device: torch.device) -> None:
        def zeros() -> Tensor:
            return torch.zeros(tasks, dtype=torch.float64, device=device)

        self._sums, self._batches, self.weights = zeros(), zeros(), zeros() + 1
        self._last = zeros() * torch.nan

    def terms(self, losses: Tensor, present: Tensor) -> Tensor:
        self._sums += torch.where(present, losses.detach(), 0)
        self._batches += present
        return self.weights.to(losses.dtype) * losses

    def end_epoch(self) -> None:
        means = self._sums / self._batches
        if not self._last.isnan().all():
            rates = means / self._last
            rates = torch.where(rates.isfinite(), rates, 1)
            self.weights = len(rates) * torch.softmax(rates / _TEMPERATURE, 0)
        self._last = means
        self._sums, self._batches = torch.zeros_like(means), torch.zeros_like(means)

    def state_dict(self) -> dict[str, Tensor]:
        return {"sums": self._sums, "batches": self._batches, "last": self._last, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        on_device = [state[name].to(self.weights.device) for name in ("sums", "batches", "last", "weights")]
        self._sums, self._batches, self._last, self.weights = on_device


class SharedGradients(Balancing):
    """Combines the tasks' gradients on the shared weights; other weights have the gradient of the total.

    `weigh` gives the factors (k,) of k gradients from their Gram matrix (k, k), whose trace is 1. A step has
    one pass forward and, through the shared layers, one backward for each task.
    """

    def __init__(self, model: MultiTaskTagger, weigh: Callable[[Tensor], Tensor]) -> None:
        self._weigh, self._shared = weigh, shared_weights(model)
        shared = set(self._shared)
        self._others = [
            weight for weight in model.parameters() if weight.requires_grad and weight not in shared
        ]

    def backward(self, total: Tensor, shares: Callable[[], Tensor], present: Tensor) -> None:
        of_tasks = [share for share, is_present in zip(shares(), present.tolist(), strict=True) if is_present]
        if len(of_tasks) < 2:
            backward(total)
            return
        rows = [grad(share, self._shared, retain_graph=True, allow_unused=True) for share in of_tasks]
        backward(total, inputs=self._others)
        jacobians = {
            weight: torch.stack([torch.zeros_like(weight) if part is None else part for part in parts])
            for weight, parts in zip(self._shared, zip(*rows, strict=True), strict=True)
            # A weight that no task reads gets no gradient, so that the optimiser leaves it alone.
            if any(part is not None for part in parts)
        }
        flat = [jacobian.flatten(1) for jacobian in jacobians.values()]
        gram = sum((rows @ rows.T for rows in flat), start=flat[0].new_zeros(len(rows), len(rows)))
        factors = self._factors(gram)
        for weight, jacobian in jacobians.items():
            weight.grad = torch.tensordot(factors.to(jacobian), jacobian, 1)

    def _factors(self, gram: Tensor) -> Tensor:
        trace = gram.trace()
        if not 0 < trace < torch.inf:  # a loss that is no number is reported by its name
            return torch.ones(len(gram))
        # TorchJD takes gradients whose squares sum to less than 1e-4 for zero.
        return self._weigh(gram.double() / trace)


def make_balancing(config: RunConfig, model: MultiTaskTagger, device: torch.device) -> Balancing:
    """The balancing of a run; its packages are installed (`core.training.trainable`)."""
    if config.balancing == "uncertainty":
        return Uncertainty(model.tasks, device)
    if config.balancing == "dwa":
        return DynamicWeights(model.tasks, device)
    if config.balancing in GRADIENT_BALANCING:
        return SharedGradients(model, _weighting(config.balancing))
    return Balancing()


def _weighting(name: str) -> Callable[[Tensor], Tensor]:
    """TorchJD's factors of gradients; where none conflict, those of PCGrad and UPGrad are 1 each."""
    from torchjd.aggregation import CAGradWeighting, PCGradWeighting, UPGradWeighting

    sums: Callable[[Tensor], Tensor] = PCGradWeighting()
    if name == "pcgrad":
        return sums
    means: Callable[[Tensor], Tensor] = UPGradWeighting() if name == "upgrad" else CAGradWeighting(_RADIUS)
    return lambda gram: len(gram) * means(gram)
