"""A task that is added to T trained ones: the tensor normal's prediction of its head, given theirs.

| symbol | shape       | meaning                                                                       |
|--------|-------------|-------------------------------------------------------------------------------|
| T, C, D| int         | trained tasks; labels of the new task; features and, last, the bias           |
| H_t    | (C_t, D)    | the trained head of task t with its bias; it stays as it is                   |
| L_t    | (C, C_t)    | links: which labels of task t stand for a label of the new one, and how much  |
| W_t    | (C, D)      | L_t H_t; zero in the row of a label that nothing links to task t              |
| W      | (C, D)      | the new head with its bias                                                    |
| Ω_TT, ω| (T,T), (T,) | Ω_task of the trained tasks, and their covariances with the new one           |
| b      | (T,)        | Ω_TT^-1 ω, the weights of the trained heads                                   |
| M, v   | (C, D), ()  | Σ_t b_t W_t; 1 − ωᵀ b, the share of the variance that is left                 |

Under the tensor normal vec [W_1 … W_T W] ~ N(0, s · Ω ⊗ I ⊗ I), where Ω is Ω_TT with the row ω and the
diagonal entry 1 for the new task, so that

    vec W | W_1 … W_T ~ N(vec M, s · v · I)

Labels and features have the identity, as in `relational` over a frozen encoder. The trained heads being
fixed, ω and b = Ω_TT^-1 ω are the same unknown. The new sentences tell it before training (`fit_weights`): of
the heads Σ_t b_t W_t the one under which their labels are most probable, b being drawn to 1/T as strongly as
some thirty words would. The head begins at M and is drawn to it by λ, which contains 1/v (`PredictedPrior`).

The update of `relational` does not serve here: begun at M, the new head correlates fully with M, v closes on
zero, and the head never leaves M (docs/studies/new-task.md).

Links come from an alignment of the T + 1 tasks: by name, by a mapping, or by the words that have both labels.
The new task's sentences have no labels of the trained tasks: the trained heads' own probabilities count
(`soft_counts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from core.mrn.alignments.base import Alignment, LabelCounts, Matrix
from core.mrn.priors.base import PriorSettings
from core.mrn.priors.tensor_normal import RelationalPrior, initial_variance
from core.mrn.relations import Relations

_PULL = 30.0
"""How strongly b is drawn to 1/T: the curvature of the log-likelihood that some thirty words have."""
_NEWTON_STEPS = 50
_SETTLED = 1e-10


def soft_counts(
    names: Sequence[str], labels: Sequence[Sequence[str]], together: Sequence[Matrix], seen: Matrix
) -> LabelCounts:
    """Counts of new labels on words where the trained heads predict theirs.

    `together` (C, C_t) sums their probabilities on the words of each new label, `seen` (C,) counts these
    words. The new task is the last.
    """
    counts = LabelCounts(tuple(names), tuple(map(tuple, labels)), np.zeros((0, 0)))
    *trained, new = counts.slices
    matrix = np.zeros((new.stop, new.stop))
    matrix[new, new] = np.diag(seen)
    for part, block in zip(trained, together, strict=True):
        matrix[new, part], matrix[part, new] = block, block.T
        matrix[part, part] = np.diag(block.sum(axis=0))
    return LabelCounts(counts.names, counts.labels, matrix)


def links(alignment: Alignment, counts: LabelCounts) -> list[Matrix]:
    """L_t (C, C_t) of an alignment of the trained tasks and, last, the new one.

    Where every label has a row of its own, the new labels' rows are read. Elsewhere L_t = A^+ A_t with the
    new task's alignment A: a label is what its general labels are.
    """
    *trained, new = counts.slices
    rows = alignment.matrix.sum(axis=0)
    if alignment.keeps_rows(counts):
        return [rows[new, part] for part in trained]
    inverse = np.linalg.pinv(rows[:, new])
    return [np.where(np.abs(link := inverse @ rows[:, part]) > 1e-12, link, 0.0) for part in trained]


def fit_weights(logits: Sequence[Tensor], labels: Tensor) -> Tensor:
    """b (T,) that minimises −ln p(labels | Σ_t b_t z_t) + ½ · 30 · |b − 1/T|², by Newton's method.

    logits z_t (n, C) of n words under W_t, labels (n,); both in float64. The problem is convex.
    """
    stack = torch.stack(list(logits), dim=1)  # (n, T, C)
    tasks = stack.shape[1]
    target = torch.full((tasks,), 1 / tasks, dtype=stack.dtype)
    gold = stack.gather(2, labels[:, None, None].expand(-1, tasks, 1))[:, :, 0]

    def loss(weights: Tensor) -> Tensor:
        mixed = torch.einsum("t,ntc->nc", weights, stack)
        fit: Tensor = mixed.logsumexp(dim=1).sum() - (gold @ weights).sum()
        return fit + _PULL / 2 * (weights - target).square().sum()

    weights, value = target, loss(target)
    for _ in range(_NEWTON_STEPS):
        chances = torch.einsum("t,ntc->nc", weights, stack).softmax(dim=1)
        means = torch.einsum("nc,ntc->nt", chances, stack)
        gradient = (means - gold).sum(dim=0) + _PULL * (weights - target)
        curvature = torch.einsum("nc,ntc,nuc->tu", chances, stack, stack) - means.T @ means
        curvature.diagonal().add_(_PULL)
        step = torch.linalg.solve(curvature, gradient)
        while (lower := loss(weights - step)) > value:
            step = step / 2
            if step.abs().max() < _SETTLED:
                return weights
        weights, value = weights - step, lower
        if step.abs().max() < _SETTLED:
            break
    return weights


class PredictedPrior:
    """`predicted`: λ / (2 N s) · |W − M|², the bias being a column of both.

    `mean` is M (C, D + 1); `bias` is the new head's, which training changes in place; `trained` (Σ C_t, D)
    the trained heads' weights, without their biases. `relations` are those of all T + 1 heads, once `update`
    has seen the new one; nothing that is trained depends on them.
    """

    def __init__(
        self, mean: Tensor, bias: Tensor, trained: Tensor, alignment: Alignment, settings: PriorSettings
    ) -> None:
        self._mean, self._bias, self._trained = mean.to(bias), bias, trained
        self._between = RelationalPrior(alignment, settings, bias.device)
        self._strength = settings.lambda_ / (2.0 * settings.tokens * initial_variance(settings.features))

    def penalty(self, heads: Tensor) -> Tensor:
        """λ·L_reg of H (C, D), the new head without its bias."""
        weights, biases = heads - self._mean[:, :-1], self._bias - self._mean[:, -1]
        return self._strength * (weights.square().sum() + biases.square().sum())

    def update(self, heads: Tensor) -> None:
        self._between.update(torch.cat([self._trained, heads.detach()]))

    def objective(self, heads: Tensor) -> None:
        pass

    def relations(self) -> Relations:
        return self._between.relations()

    def state_dict(self) -> dict[str, Tensor]:
        between = {f"between_{name}": value for name, value in self._between.state_dict().items()}
        return {"mean": self._mean} | between

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._mean = state["mean"].to(self._bias)
        self._between.load_state_dict(
            {
                name.removeprefix("between_"): value
                for name, value in state.items()
                if name.startswith("between_")
            }
        )
