"""The interface of priors: a penalty on the heads, and three covariances updated from them now and then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from core.mrn.relations import Relations
from core.registry import MODES


@dataclass(frozen=True)
class PriorSettings:
    """Settings common to all priors.

    `features` is D; `lambda_` is λ; `tokens` is N, the labelled training words summed over tasks; `learn`
    names the covariances to learn, the others keep their first value; `shrinkage` is κ, the weight of that
    first value in pseudo-observations for each row of a covariance. `task_correlation` is c, that of every
    two tasks at first.
    """

    features: int
    lambda_: float
    tokens: float
    learn: tuple[str, ...] = MODES
    shrinkage: float = 1.0
    task_correlation: float = 0.0


class Prior(Protocol):
    """The regulariser of a run. `heads` is always H (r, D), the heads' weights stacked, task after task."""

    def penalty(self, heads: Tensor) -> Tensor:
        """λ·L_reg, the term of the total loss: a scalar, ≥ 0, with gradients to `heads`."""
        ...

    def update(self, heads: Tensor) -> None:
        """Learn the covariances from the current heads. No gradients."""
        ...

    def objective(self, heads: Tensor) -> Tensor | None:
        """J, twice the negative log posterior of heads and covariances up to a constant; None without."""
        ...

    def relations(self) -> Relations | None:
        """The three covariances as they are now; None where there are none."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """The state from which training resumes exactly."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...


class NoPrior:
    """STL and MTL: no penalty, nothing to learn. The loop is the same."""

    def penalty(self, heads: Tensor) -> Tensor:
        return torch.zeros((), device=heads.device)

    def update(self, heads: Tensor) -> None:
        pass

    def objective(self, heads: Tensor) -> None:
        pass

    def relations(self) -> Relations | None:
        return None

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        pass
