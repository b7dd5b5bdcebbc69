"""The tensor-normal prior that `relational` and `map` share: vec W ~ N(0, s · Ω_task ⊗ Ω_label ⊗ Ω_feature).

Dissertation, equations (5) and (6), with covariance updates after (7) to (9), taken one after the other:
feature, label, task, each from the newest others. The subclass says how a scatter becomes a covariance.

| symbol   | shape        | meaning                                                              |
|----------|--------------|----------------------------------------------------------------------|
| H        | (r, D)       | heads stacked                                                        |
| A        | (C, r)       | [A_1 … A_T], the alignments side by side                             |
| E        | (T, r)       | 1 where a row of H is a task's; W[t] = A diag(E_t) H is never formed |
| d_u, n_u | int          | size of mode u; columns of its unfolding, n_u = T·C·D / d_u          |
| M_task   | (T, T)       | (1 − c)·I + c·11ᵀ, c the task correlation at first; M_label = I      |
| m_u      | float        | κ·d_u pseudo-observations of τ_u·M_u, an inverse-Wishart hyperprior  |
| ρ_u      | float        | m_u / (n_u + m_u), the share of τ_u·M_u in an update                 |
| Ω_f      | (D, D)       | a·I + F Fᵀ, F (D, r): S_feature = Hᵀ Q H has rank ≤ r                |
| K        | (r, r)       | H Ω_f^-1 Hᵀ                                                          |
| X, Y     | (r, r)       | X = Eᵀ Ω_task^-1 E and Y = Aᵀ Ω_label^-1 A                           |
| Q        | (r, r)       | X ∘ Y                                                                |

Everything happens among the r rows of the heads, each of which is one task's:

    <W, Ω^-1 W> = <Q, K>    S_feature = Hᵀ Q H    S_label = A (X ∘ K) Aᵀ    S_task = E (Y ∘ K) Eᵀ

A penalty costs O(r² D). State in float64, the penalty in the dtype of the heads; neither penalty nor update
waits for the device.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from core.mrn.alignments.base import Alignment
from core.mrn.lowrank import LowRankCovariance, semidefinite_factor
from core.mrn.priors.base import PriorSettings
from core.mrn.relations import Relations


def initial_variance(features: int) -> float:
    """The variance of an nn.Linear's initial weights over D features, 1/(3D)."""
    return 1.0 / (3.0 * features)


class TensorNormal(ABC):
    """Three covariances learned from the heads, and the penalty λ · r / (2 N ‖A‖² s) · <W, Ω^-1 W>.

    N counts the labelled words of all tasks. The loss is the mean over tasks of means over words, so λ = 1 is
    the maximum a posteriori estimate where every task has N / T words. Elsewhere a word of task t weighs
    N / (T N_t) times its share. r / ‖A‖² (1 for `disjoint` and `exact`) takes back that `cooccurrence` writes
    a head's row into W many times over: λ means the same in every alignment.
    """

    def __init__(self, alignment: Alignment, settings: PriorSettings, device: torch.device) -> None:
        self._settings = settings
        tasks, labels = len(alignment.task_names), len(alignment.label_names)
        self._align = torch.as_tensor(alignment.matrix.sum(axis=0), dtype=torch.float64, device=device)
        owners = (alignment.matrix != 0).any(axis=1)
        self._owners = torch.as_tensor(owners, dtype=torch.float64, device=device)
        self._sizes = {"task": tasks, "label": labels, "feature": settings.features}
        total = math.prod(self._sizes.values())
        self._columns = {mode: total // size for mode, size in self._sizes.items()}  # n_u
        self._pseudo = {mode: settings.shrinkage * size for mode, size in self._sizes.items()}  # m_u
        self._means, self._scale = self._first_values(settings.features)
        identity = {"task": torch.eye(tasks, dtype=torch.float64, device=device)}
        identity["label"] = torch.eye(labels, dtype=torch.float64, device=device)
        correlation = settings.task_correlation
        self._towards = identity | {"task": (1 - correlation) * identity["task"] + correlation}
        self._task, self._label = (self._means[mode] * self._towards[mode] for mode in identity)
        nothing = torch.zeros(0, settings.features, dtype=torch.float64, device=device)
        self._feature = LowRankCovariance(self._means["feature"], nothing, nothing[:, :0])
        copies = float(self._align.square().sum()) / self._align.shape[1]
        self._scaled_lambda = settings.lambda_ / (2.0 * max(settings.tokens, 1.0) * copies * self._scale)
        self._coupling = self._between_tasks() * self._between_labels()

    @abstractmethod
    def _first_values(self, features: int) -> tuple[Mapping[str, float], float]:
        """τ_u of each mode, the multiple of M_u that its covariance begins with, and the fixed scale s."""

    def _shrinkage(self, mode: str) -> float:
        """ρ_u."""
        return self._pseudo[mode] / (self._columns[mode] + self._pseudo[mode])

    @abstractmethod
    def _blend(self, mode: str, trace: Tensor) -> tuple[Tensor, Tensor]:
        """(a, b) of the update Ω_u ← a · S_u + b · M_u for a scatter of this trace (a scalar)."""

    def penalty(self, heads: Tensor) -> Tensor:
        """λ·L_reg of equation (23), scaled as the class says: <W, (Ω_t⊗Ω_l⊗Ω_f)^-1 W> = <Q, K>."""
        return self._scaled_lambda * self._feature.inverse_form(self._coupling, heads)

    @torch.no_grad()
    def objective(self, heads: Tensor) -> Tensor:
        """J = <W, Ω^-1 W> / s + Σ_u [(n_u + m_u) ln|Ω_u| + m_u τ_u tr(M_u Ω_u^-1)].

        Equation (6) prints a minus before the log-determinants; the posterior has a plus. Covariances that
        are not learned add a constant, which is counted.
        """
        rows = heads.detach().to(torch.float64)
        value = self._feature.inverse_form(self._coupling, rows) / self._scale
        for mode, (logdet, inverse_trace) in self._determinants().items():
            pseudo = self._pseudo[mode]
            value = value + (self._columns[mode] + pseudo) * logdet
            value = value + pseudo * self._means[mode] * inverse_trace
        return value

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """Equations (7), (8), (9), one after the other, on heads H (r, D)."""
        rows = heads.detach().to(torch.float64, copy=True)  # training changes the heads in place
        gram, multiple, root = rows @ rows.T, self._feature.diagonal, rows[:, :0]
        if "feature" in self._settings.learn:
            scale, multiple = self._blend("feature", (self._coupling * gram).sum())  # tr S_feature
            root = semidefinite_factor(self._coupling) * scale.sqrt()
        self._feature = LowRankCovariance(multiple, rows, root, gram)
        inner = self._feature.own_inner()
        if "label" in self._settings.learn:
            scatter = self._align @ (self._between_tasks() * inner) @ self._align.T
            self._label = self._estimate("label", scatter)
        between_labels = self._between_labels()
        if "task" in self._settings.learn:
            scatter = self._owners @ (between_labels * inner) @ self._owners.T
            self._task = self._estimate("task", scatter)
        self._coupling = self._between_tasks() * between_labels

    def _between_tasks(self) -> Tensor:
        """X = Eᵀ Ω_task^-1 E."""
        return _inverse_inner(self._task, self._owners)

    def _between_labels(self) -> Tensor:
        """Y = Aᵀ Ω_label^-1 A."""
        return _inverse_inner(self._label, self._align)

    def _estimate(self, mode: str, scatter: Tensor) -> Tensor:
        scale, multiple = self._blend(mode, torch.trace(scatter))
        return scale * (scatter + scatter.T) / 2 + multiple * self._towards[mode]

    def _determinants(self) -> dict[str, tuple[Tensor, Tensor]]:
        """ln|Ω_u| and tr(M_u Ω_u^-1) of each mode."""
        values = {"feature": (self._feature.logdet(), self._feature.inverse_trace())}
        for mode, covariance in (("task", self._task), ("label", self._label)):
            chol = torch.linalg.cholesky_ex(covariance).L
            white = torch.linalg.solve_triangular(chol, self._towards[mode], upper=False)
            # tr(M Ω^-1) = tr(L^-1 M L^-ᵀ)
            trace = torch.trace(torch.linalg.solve_triangular(chol, white.T, upper=False))
            values[mode] = (2 * torch.log(torch.diagonal(chol)).sum(), trace)
        return values

    def relations(self) -> Relations:
        """The three covariances; the fixed scale s is not in them."""
        return Relations(
            task=self._task.cpu().numpy(),
            label=self._label.cpu().numpy(),
            feature_factor=self._feature.factor.cpu().numpy(),
            feature_diagonal=float(self._feature.diagonal),
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "task": self._task,
            "label": self._label,
            "feature_rows": self._feature.rows,
            "feature_root": self._feature.root,
            "feature_diagonal": self._feature.diagonal,
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        device = self._task.device
        self._task = state["task"].to(device)
        self._label = state["label"].to(device)
        if (factor := state.get("feature_factor")) is not None:  # written by a version that kept F
            state = {**state, "feature_rows": factor.T, "feature_root": torch.eye(factor.shape[1]).to(factor)}
        self._feature = LowRankCovariance(
            *(state[f"feature_{part}"].to(device) for part in ("diagonal", "rows", "root"))
        )
        self._coupling = self._between_tasks() * self._between_labels()


def _inverse_inner(covariance: Tensor, columns: Tensor) -> Tensor:
    """Xᵀ Ω^-1 X, (d, d) and (d, n) → (n, n), symmetric to the last digit."""
    chol = torch.linalg.cholesky_ex(covariance).L
    white = torch.linalg.solve_triangular(chol, columns, upper=False)
    inner: Tensor = white.T @ white
    return inner


class MapPrior(TensorNormal):
    """`map`: the joint maximum a posteriori estimate of weights and covariances, shapes and scales.

    Dissertation, equation (6), with an inverse-Wishart hyperprior on each covariance that is worth m_u =
    κ·d_u observations of τ_u·M_u (τ_task = τ_label = 1, τ_feature = 1/(3D)) in place of the εI of (7) to (9):

        Ω_u ← (1 − ρ_u) · S_u / n_u + ρ_u · τ_u · M_u

    is the minimiser of J in Ω_u with the rest held, so no update raises J. Trained jointly with the weights
    it collapses at λ near 1: small weights shrink Ω, small Ω shrinks the weights.
    """

    def _first_values(self, features: int) -> tuple[dict[str, float], float]:
        return {"task": 1.0, "label": 1.0, "feature": initial_variance(features)}, 1.0

    def _blend(self, mode: str, trace: Tensor) -> tuple[Tensor, Tensor]:
        shrinkage = self._shrinkage(mode)
        scale = (1 - shrinkage) / self._columns[mode]
        return torch.full_like(trace, scale), torch.full_like(trace, shrinkage * self._means[mode])


class RelationalPrior(TensorNormal):
    """`relational`: learns how tasks, labels and features relate, at the fixed scale τ = 1/(3D).

    Each scatter is divided by its mean diagonal (trace = d_u, as Zhang and Yeung's tr(Ω) = 1) and drawn
    towards M_u by ρ_u. With the scale fixed nothing can collapse as under `map`, and λ is a plain strength.

        Ω_u ← (1 − ρ_u) · S_u / mean(diag S_u) + ρ_u · M_u
    """

    def _first_values(self, features: int) -> tuple[dict[str, float], float]:
        return {"task": 1.0, "label": 1.0, "feature": 1.0}, initial_variance(features)

    def _blend(self, mode: str, trace: Tensor) -> tuple[Tensor, Tensor]:
        """Heads at zero have a scatter of zero, and leave Ω_u at M_u."""
        mean, shrinkage = trace / self._sizes[mode], self._shrinkage(mode)
        positive = trace > 0
        scale = torch.where(positive, (1 - shrinkage) / mean, torch.zeros_like(mean))
        return scale, torch.where(positive, torch.full_like(trace, shrinkage), torch.ones_like(trace))
