"""The published MRN's algebra as its program does it (dissertation, appendix A.5): dense, mode by mode.

`core.mrn.priors.paper` computes the same numbers (a test compares them). This is what speed is compared with,
so it stays as the program has it: W joined from zeros at every step, three scatters from dense precisions,
three dense SVDs, singular values sent through a Python function one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.mrn.alignments import Alignment
from core.mrn.priors.paper import EPSILON, INVERT_ABOVE, MAX_TRACE


class Published:
    """Precisions P_t (T, T), P_l (C, C), P_f (D, D) in float32 and what the program does with them.

    For alignments that put each head row in one place (`disjoint`, `exact`), as the program's are.
    """

    def __init__(
        self, alignment: Alignment, features: int, strength: float, device: torch.device | str = "cpu"
    ) -> None:
        tasks, labels, _ = alignment.matrix.shape
        self._shape = (tasks, labels, features)
        self._strength = strength
        # Head row i stands at W[task_i, label_i].
        task, label, row = torch.from_numpy(alignment.matrix).nonzero(as_tuple=True)
        order = row.argsort()
        self._places = (task[order].to(device), label[order].to(device))
        self.task = torch.eye(tasks, device=device)
        self.label = torch.eye(labels, device=device)
        self.feature = torch.eye(features, device=device)

    def penalty(self, heads: Tensor) -> Tensor:
        """λ · <W, P_t ×1 P_l ×2 P_f ×3 W> (`calculate_reg_…`, `loss_reg`)."""
        weights = self._joined(heads)
        product = torch.matmul(weights, self.feature.T)
        product = torch.matmul(self.label, product)
        product = torch.matmul(self.task, product.permute(1, 0, 2)).permute(1, 0, 2)
        return self._strength * (weights * product).sum()

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """All three precisions anew, from the old ones."""
        weights = self._joined(heads.detach())
        task = _scatter(weights, self.label, self.feature)
        label = _scatter(weights.permute(1, 0, 2), self.task, self.feature)
        feature = _scatter(weights.permute(2, 0, 1), self.task, self.label)
        self.task, self.label, self.feature = _precision(task), _precision(label), _precision(feature)

    def _joined(self, heads: Tensor) -> Tensor:
        """W (T, C, D) from the heads' rows and zeros (`weights_cat_…`)."""
        return heads.new_zeros(self._shape).index_put(self._places, heads)


def _scatter(weights: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """S (d, d) of the first mode of W (d, e, f) from the others' precisions (`covariance_mat_update`)."""
    product = torch.matmul(second, torch.matmul(weights, third.T))
    scatter = weights.flatten(1) @ product.flatten(1).T
    return scatter + EPSILON * torch.eye(len(scatter), device=scatter.device)


def _precision(scatter: Tensor) -> Tensor:
    """U g(s) Vᵀ, scaled to a trace of at most MAX_TRACE (`eig_decomp`)."""
    left, values, right = torch.linalg.svd(scatter)
    values = values.cpu().apply_(_inverted).to(scatter.device)
    precision = left @ torch.diag(values) @ right
    trace = torch.trace(precision)
    return precision / trace * MAX_TRACE if trace > MAX_TRACE else precision


def _inverted(value: float) -> float:
    """g (`func`)."""
    return 1.0 / value if value > INVERT_ABOVE else value
