"""The `map` prior: the joint maximum a posteriori estimate of weights and covariances, the textbook reading.

Dissertation, equation (6), with an inverse-Wishart hyperprior on each covariance that is worth m_u = κ·d_u
observations of τ_u·I (τ_task = τ_label = 1, τ_feature = 1/(3D)) in place of the εI of (7) to (9):

    Ω_u ← (1 − ρ_u) · S_u / n_u + ρ_u · τ_u · I

is the minimiser of J in Ω_u with the rest held, so no update raises J. With the weights held fixed it
recovers relations that were planted. Trained jointly with them it collapses at λ near 1, as a joint estimate
of a scale and of what is scaled does: small weights shrink Ω, small Ω shrinks the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.mrn.priors.tensor_normal import TensorNormal, initial_variance

__all__ = ["Prior"]


class Prior(TensorNormal):
    """Learns shapes and scales of Ω_task, Ω_label and Ω_feature."""

    def _first_values(self, features: int) -> tuple[dict[str, float], float]:
        return {"task": 1.0, "label": 1.0, "feature": initial_variance(features)}, 1.0

    def _blend(self, mode: str, trace: Tensor) -> tuple[Tensor, Tensor]:
        shrinkage = self._shrinkage(mode)
        share = (1 - shrinkage) / self._columns(mode)
        return torch.full_like(trace, share), torch.full_like(trace, shrinkage * self._means[mode])
