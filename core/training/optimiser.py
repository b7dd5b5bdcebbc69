"""AdamW with a rate for each part of the model, all falling linearly to zero (dissertation, section 6.1)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from core.config import RunConfig
from core.models.encoders import TrainedRows

__all__ = ["make_optimiser", "part_of"]

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


def part_of(parameter_name: str) -> str:
    """Which part a parameter of the tagger belongs to: `heads`, `bilstm` or `encoder`."""
    if parameter_name.startswith("heads."):
        return "heads"
    return "bilstm" if ".lstm." in parameter_name else "encoder"


def make_optimiser(
    model: nn.Module, config: RunConfig, total_steps: int
) -> tuple[torch.optim.AdamW, torch.optim.lr_scheduler.LambdaLR]:
    """The optimiser and its schedule over `total_steps` steps, without warm-up."""
    rates = {"encoder": config.lr_encoder, "bilstm": config.lr_bilstm, "heads": config.lr_heads}
    groups: list[dict[str, Any]] = []
    for part, rate in rates.items():
        own = [value for name, value in model.named_parameters() if part_of(name) == part]
        if own and rate is not None:
            groups.append({"params": own, "lr": rate, "name": part})
    optimiser = torch.optim.AdamW(
        groups, betas=_BETAS, eps=_EPSILON, weight_decay=config.weight_decay, fused=True
    )
    for module in model.modules():
        if isinstance(module, TrainedRows):
            module.decay_with(optimiser)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / total_steps))
    return optimiser, schedule
