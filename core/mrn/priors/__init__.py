"""Priors on the stacked head weights. A new prior is a class, a line here and one in `core.registry`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from core.mrn.alignments.base import Alignment
from core.mrn.priors.base import NoPrior, Prior, PriorSettings
from core.mrn.priors.paper import PaperPrior
from core.mrn.priors.tensor_normal import MapPrior, RelationalPrior

__all__ = ["NoPrior", "Prior", "PriorSettings", "make_prior"]

_CLASSES: dict[str, Callable[[Alignment, PriorSettings, torch.device], Prior]] = {
    "relational": RelationalPrior,
    "map": MapPrior,
    "paper": PaperPrior,
}


def make_prior(name: str, alignment: Alignment, settings: PriorSettings, device: torch.device) -> Prior:
    """The prior of that name. Raises ValueError for a name that is not in the registry."""
    if name not in _CLASSES:
        raise ValueError(f"prior must be one of {', '.join(_CLASSES)}, not {name!r}")
    return _CLASSES[name](alignment, settings, device)
