"""Priors on the stacked head weights. Each is a module of its registry name with a class `Prior`."""

from __future__ import annotations

from importlib import import_module

import torch

from core.mrn.alignments.base import Alignment
from core.mrn.priors.base import NoPrior, Prior, PriorSettings
from core.mrn.registry import PRIORS

__all__ = ["NoPrior", "Prior", "PriorSettings", "make_prior"]


def make_prior(name: str, alignment: Alignment, settings: PriorSettings, device: torch.device) -> Prior:
    """The prior of that name. Raises ValueError for a name that is not in the registry."""
    if name not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(PRIORS)}, not {name!r}")
    prior: Prior = import_module(f"core.mrn.priors.{name}").Prior(alignment, settings, device)
    return prior
