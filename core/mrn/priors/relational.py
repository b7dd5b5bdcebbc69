"""The `relational` prior: learn how tasks, labels and features relate, not how large weights are.

Each scatter is divided by its mean diagonal before use (trace = d_u, as Zhang and Yeung's tr(Ω) = 1) and
drawn towards I by ρ_u; the overall scale stays the constant τ. Estimated jointly with the weights the scale
collapses: small weights shrink Ω, small Ω shrinks the weights. With the scale fixed only the shape is
learned, nothing can collapse, and λ is a plain strength.

    Ω_u ← (1 − ρ_u) · S_u / mean(diag S_u) + ρ_u · I
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.mrn.priors.tensor_normal import TensorNormal, initial_variance

__all__ = ["Prior"]


class Prior(TensorNormal):
    """Learns the shapes of Ω_task, Ω_label and Ω_feature at the fixed scale τ = 1/(3D)."""

    def _first_values(self, features: int) -> tuple[dict[str, float], float]:
        return {"task": 1.0, "label": 1.0, "feature": 1.0}, initial_variance(features)

    def _blend(self, mode: str, trace: Tensor) -> tuple[Tensor, Tensor]:
        """Heads at zero say nothing: their scatter is zero and Ω_u is I."""
        mean, shrinkage = trace / self._sizes[mode], self._shrinkage(mode)
        speaks = trace > 0
        share = torch.where(speaks, (1 - shrinkage) / mean, torch.zeros_like(mean))
        return share, torch.where(speaks, torch.full_like(trace, shrinkage), torch.ones_like(trace))
