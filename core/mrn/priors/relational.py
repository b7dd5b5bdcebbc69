"""The `relational` prior: learn how tasks, labels and features relate, not how large weights are.

Tensor-normal prior of the dissertation, equations (5) and (6), with its covariance updates (7) to (9)
taken one after the other (feature, label, task, each from the newest others) and two deviations:

* each scatter is divided by its mean diagonal before use (trace = d_u, as Zhang and Yeung's tr(Ω) = 1), and
  the overall scale stays the constant τ. Estimated jointly with the weights the scale collapses: small
  weights shrink Ω, small Ω shrinks the weights. With the scale fixed, only the shape is learned;
* the εI of (7) to (9) becomes shrinkage towards I by ρ_u = κ d_u / (n_u + κ d_u), the weight of an
  inverse-Wishart prior worth κ d_u pseudo-observations: much where columns are few.

| symbol   | shape        | meaning                                                              |
|----------|--------------|----------------------------------------------------------------------|
| H        | (r, D)       | heads stacked                                                        |
| B        | (T, C, r)    | alignment; W = B H is (T, C, D) and is never formed                  |
| Ω_f      | (D, D)       | a·I + F Fᵀ, F (D, r): S_feature = Hᵀ Q H has rank ≤ r                |
| K        | (r, r)       | H Ω_f^-1 Hᵀ                                                          |
| Q        | (r, r)       | Σ_tu (Ω_task^-1)_tu B_tᵀ Ω_label^-1 B_u                              |

Because W = B H, everything happens among the r rows of the heads: <W, Ω^-1 W> = <Q, K>, and each scatter
is a product of matrices no larger than C or r. A step costs O(r² D).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from core.mrn.alignments.base import Alignment
from core.mrn.lowrank import LowRankCovariance, semidefinite_root
from core.mrn.priors.base import PriorSettings
from core.mrn.relations import Relations

__all__ = ["PSEUDO_OBSERVATIONS", "Prior"]

PSEUDO_OBSERVATIONS = 1.0
"""κ: the prior for the identity counts as κ·d_u columns of the weight tensor."""


class Prior:
    """Learns the shapes of Ω_task, Ω_label and Ω_feature at the fixed scale τ = 1/(3D).

    τ is the variance of an nn.Linear's initial weights. The penalty is

        λ / (2Nτ) · r / ‖B‖² · <W, (Ω_t⊗Ω_l⊗Ω_f)^-1 W>

    N counts the words of all tasks because the loss is the mean over tasks of means over words; so λ = 1 is
    the estimate itself, however many tasks and words there are. r / ‖B‖² (1 for `disjoint` and `exact`) takes
    back that `cooccurrence` writes a head's row into W many times over: λ means the same in every alignment.
    State in float64; the penalty in the dtype of the heads.
    """

    def __init__(self, alignment: Alignment, settings: PriorSettings, device: torch.device) -> None:
        self._settings = settings
        self._align = torch.as_tensor(alignment.matrix, dtype=torch.float64, device=device)
        tasks, labels, _ = self._align.shape
        features = settings.features
        self._sizes = {"task": tasks, "label": labels, "feature": features}
        self._task = torch.eye(tasks, dtype=torch.float64, device=device)
        self._label = torch.eye(labels, dtype=torch.float64, device=device)
        self._feature = LowRankCovariance.identity(features, dtype=torch.float64, device=device)
        scale = 1.0 / (3.0 * features)
        copies = float(self._align.square().sum()) / self._align.shape[2]
        self._weight = settings.strength / (2.0 * max(settings.tokens, 1.0) * scale * copies)
        self._refresh()

    def penalty(self, heads: Tensor) -> Tensor:
        """λ·L_reg of equation (23), scaled as the class says: <W, (Ω_t⊗Ω_l⊗Ω_f)^-1 W> = <Q, K>."""
        inner = self._feature.inverse_inner(heads)
        return self._weight * (self._coupling.to(inner.dtype) * inner).sum()

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """Equations (7), (8), (9), one after the other, on heads H (r, D)."""
        rows = heads.detach().to(torch.float64)
        if "feature" in self._settings.learn:
            self._feature = self._feature_covariance(rows)
        root = semidefinite_root(self._feature.inverse_inner(rows))
        spread = self._align @ root  # (T, C, r): W Ω_f^-1/2, up to a rotation of its last mode
        if "label" in self._settings.learn:
            white = _whiten(self._task, spread.flatten(1)).reshape(spread.shape)
            columns = white.transpose(0, 1).flatten(1)
            self._label = self._shrunk("label", columns @ columns.T)
        if "task" in self._settings.learn:
            white = _whiten(self._label, spread.transpose(0, 1).flatten(1))
            columns = white.reshape(spread.shape[1], spread.shape[0], -1).transpose(0, 1).flatten(1)
            self._task = self._shrunk("task", columns @ columns.T)
        self._refresh()

    def _feature_covariance(self, rows: Tensor) -> LowRankCovariance:
        factor = rows.T @ semidefinite_root(self._coupling)  # (D, r), F Fᵀ = S_feature
        trace = factor.square().sum()
        shrinkage = self._shrinkage("feature")
        # Heads at zero say nothing: their scatter is zero and the identity stays.
        scale = torch.where(trace > 0, (1 - shrinkage) * self._sizes["feature"] / trace, trace)
        return LowRankCovariance(shrinkage, factor * scale.sqrt()) if bool(trace > 0) else self._feature

    def _shrunk(self, mode: str, scatter: Tensor) -> Tensor:
        identity = torch.eye(len(scatter), dtype=scatter.dtype, device=scatter.device)
        mean = torch.diagonal(scatter).mean()
        shape = torch.where(mean > 0, scatter / mean, identity)
        shrinkage = self._shrinkage(mode)
        return (1 - shrinkage) * (shape + shape.T) / 2 + shrinkage * identity

    def _shrinkage(self, mode: str) -> float:
        size = self._sizes[mode]
        columns = math.prod(self._sizes.values()) / size
        return PSEUDO_OBSERVATIONS * size / (columns + PSEUDO_OBSERVATIONS * size)

    def _refresh(self) -> None:
        """Q from the newest Ω_task and Ω_label."""
        white = _whiten(self._label, self._align.transpose(0, 1).flatten(1))
        white = white.reshape(self._sizes["label"], self._sizes["task"], -1).transpose(0, 1)
        white = _whiten(self._task, white.flatten(1)).reshape(white.shape)
        columns = white.flatten(0, 1)
        self._coupling = columns.T @ columns

    def relations(self) -> Relations:
        return Relations(
            task=self._task.cpu().numpy(),
            label=self._label.cpu().numpy(),
            feature_factor=self._feature.factor.cpu().numpy(),
            feature_diagonal=self._feature.diagonal,
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "task": self._task,
            "label": self._label,
            "feature_factor": self._feature.factor,
            "feature_diagonal": torch.tensor(self._feature.diagonal, dtype=torch.float64),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        device = self._task.device
        self._task = state["task"].to(device)
        self._label = state["label"].to(device)
        self._feature = LowRankCovariance(
            float(state["feature_diagonal"]), state["feature_factor"].to(device)
        )
        self._refresh()


def _whiten(covariance: Tensor, columns: Tensor) -> Tensor:
    """L^-1 X for Ω = L Lᵀ, (d, d) and (d, n) → (d, n)."""
    white: Tensor = torch.linalg.solve_triangular(torch.linalg.cholesky(covariance), columns, upper=False)
    return white
