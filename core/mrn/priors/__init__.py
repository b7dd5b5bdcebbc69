"""Priors on the stacked head weights. A new one is a class, a line here and an entry of `core.registry`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from core.mrn.alignments.base import Alignment
from core.mrn.priors.base import NoPrior, Prior, PriorSettings
from core.mrn.priors.paper import PaperPrior
from core.mrn.priors.tensor_normal import MapPrior, RelationalPrior

__all__ = ["PRIOR_CLASSES", "NoPrior", "Prior", "PriorSettings"]

PRIOR_CLASSES: dict[str, Callable[[Alignment, PriorSettings, torch.device], Prior]] = {
    "relational": RelationalPrior,
    "map": MapPrior,
    "paper": PaperPrior,
}
"""By name, as `core.registry.PRIORS`, which pages read without torch."""
