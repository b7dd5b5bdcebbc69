"""The `paper` prior: the procedure of the dissertation's *program*, kept for comparison.

Dissertation, appendix A.5 (`loss_reg`, `covariance_mat_update`, `eig_decomp`), for equations (23) to (26). It
differs from the equations, and this module follows the program:

* scatters are not divided by the number of columns, as in the code that Long et al. (2017) released
  (`UpdateCov` in `src/tensor_op.py` of https://github.com/thuml/MTlearn);
* all three are taken from the old precisions at once;
* a precision is U g(s) Vᵀ of the scatter plus εI with g(s) = 1/s above 0.1 and g(s) = s below, then scaled
  to a trace of at most 3000. Small scatters give small precisions, and these smaller scatters: the penalty
  can vanish, and the run, which notes it, then trains as MTL does.

| symbol              | shape            | meaning                                                |
|---------------------|------------------|--------------------------------------------------------|
| P_t, P_l, P_f       | (T,T) (C,C) (D,D)| precisions, dense, the identity at first               |
| W                   | (T, C, D)        | aligned weights                                        |

Dense on purpose (its cost is part of what is compared); float32 as published.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]  # public, yet not re-exported

from core.mrn.alignments.base import Alignment
from core.mrn.lowrank import semidefinite_factor
from core.mrn.priors.base import PriorSettings
from core.mrn.relations import Relations
from core.registry import MODES

EPSILON = 1e-5
"""ε of equations (24) to (26)."""
INVERT_ABOVE = 0.1
"""Singular values up to this are kept, larger ones inverted (appendix A.5, `func`)."""
MAX_TRACE = 3000.0
"""Largest trace of a precision (appendix A.5, `eig_decomp`)."""


class PaperPrior:
    """The program's penalty λ · <W, P_t ×1 P_l ×2 P_f ×3 W>, all precisions updated at once."""

    def __init__(self, alignment: Alignment, settings: PriorSettings, device: torch.device) -> None:
        self._settings = settings
        self._align = torch.as_tensor(alignment.matrix, dtype=torch.float32, device=device)
        tasks, labels, rank = self._align.shape
        sizes = {"task": tasks, "label": labels, "feature": settings.features}
        self._precision = {mode: torch.eye(size, device=device) for mode, size in sizes.items()}
        # What is shown: scatters less εI, as the dissertation's heatmaps are drawn. The feature scatter as F.
        self._shown = {
            "task": torch.eye(tasks, device=device),
            "label": torch.eye(labels, device=device),
            "feature": torch.zeros(settings.features, rank, device=device),
        }
        self._shown_diagonal = 1.0

    def penalty(self, heads: Tensor) -> Tensor:
        """λ · L_reg of equation (23)."""
        weights = self._align @ heads
        return self._settings.lambda_ * (weights * self._times(weights, MODES)).sum()

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """Equations (24) to (26) as programmed: all scatters from the old precisions, then new precisions."""
        rows = heads.detach()
        weights = self._align @ rows
        scatters = {
            mode: _unfold(weights, mode)
            @ _unfold(self._times(weights, [other for other in MODES if other != mode]), mode).T
            for mode in self._settings.learn
        }
        if "feature" in self._settings.learn:
            self._shown["feature"] = self._feature_factor(rows)
            self._shown_diagonal = 0.0
        for mode, scatter in scatters.items():
            if mode != "feature":
                self._shown[mode] = scatter
            ridge = EPSILON * torch.eye(len(scatter), device=scatter.device)
            self._precision[mode] = _precision(scatter + ridge)

    @torch.no_grad()
    def objective(self, heads: Tensor) -> Tensor:
        """J = <W, P W> − Σ_u n_u ln|P_u|: no hyperprior, as published. Infinite for a singular precision."""
        weights = (self._align @ heads.detach()).double()
        value = (weights * self._times(weights.float(), MODES)).sum()
        for precision in self._precision.values():
            columns = weights.numel() // len(precision)
            value = value - columns * torch.linalg.slogdet(precision.double()).logabsdet
        return value

    def _times(self, weights: Tensor, modes: tuple[str, ...] | list[str]) -> Tensor:
        """W ×_u P_u over the given modes, (T, C, D) → (T, C, D)."""
        if "task" in modes:
            weights = torch.einsum("st,tcd->scd", self._precision["task"], weights)
        if "label" in modes:
            weights = torch.einsum("bc,tcd->tbd", self._precision["label"], weights)
        if "feature" in modes:
            weights = weights @ self._precision["feature"].T
        return weights

    def _feature_factor(self, rows: Tensor) -> Tensor:
        """F (D, r) with F Fᵀ = W_(3) (P_t ⊗ P_l) W_(3)ᵀ, the feature scatter, from the heads' r rows."""
        lifted = torch.einsum(
            "st,bc,tcr->sbr", self._precision["task"], self._precision["label"], self._align
        )
        coupling = torch.einsum("sbq,sbr->qr", self._align, lifted)
        factor: Tensor = rows.T.to(torch.float64) @ semidefinite_factor(coupling.to(torch.float64))
        return factor.to(rows.dtype)

    def relations(self) -> Relations:
        return Relations(
            task=self._shown["task"].cpu().numpy(),
            label=self._shown["label"].cpu().numpy(),
            feature_factor=self._shown["feature"].cpu().numpy(),
            feature_diagonal=self._shown_diagonal,
        )

    def state_dict(self) -> dict[str, Tensor]:
        shown = {f"shown_{mode}": value for mode, value in self._shown.items()}
        precisions = {f"precision_{mode}": value for mode, value in self._precision.items()}
        return shown | precisions | {"shown_diagonal": torch.tensor(self._shown_diagonal)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        device = self._align.device
        self._shown = {mode: state[f"shown_{mode}"].to(device) for mode in MODES}
        self._precision = {mode: state[f"precision_{mode}"].to(device) for mode in MODES}
        self._shown_diagonal = float(state["shown_diagonal"])


def _unfold(weights: Tensor, mode: str) -> Tensor:
    """W_(u): (T, C, D) → (d_u, everything else), one row per index of the mode."""
    return weights.movedim(MODES.index(mode), 0).flatten(1)


def _precision(scatter: Tensor) -> Tensor:
    """U g(s) Vᵀ, scaled to a trace of at most MAX_TRACE (appendix A.5, `eig_decomp`)."""
    try:
        left, values, right = torch.linalg.svd(scatter)
    except LinAlgError:  # seen in float32 where a scatter has collapsed to εI
        left, values, right = (factor.to(scatter.dtype) for factor in torch.linalg.svd(scatter.double()))
    precision = left @ torch.diag(torch.where(values > INVERT_ABOVE, 1 / values, values)) @ right
    trace = torch.trace(precision)
    return torch.where(trace > MAX_TRACE, precision / trace * MAX_TRACE, precision)
