"""A ridge on all heads as a prior."""

from tests.recipes.edits import Edit, Recipe

_CLASS = '''\
"""A ridge: the squared heads, in no relation to one another."""

from __future__ import annotations

import torch
from torch import Tensor

from core.mrn.alignments.base import Alignment
from core.mrn.priors.base import NoPrior, PriorSettings


class Ridge(NoPrior):
    """Penalty λ / N · ‖H‖²; no covariances to learn."""

    def __init__(self, alignment: Alignment, settings: PriorSettings, device: torch.device) -> None:
        self._strength = settings.lambda_ / settings.tokens

    def penalty(self, heads: Tensor) -> Tensor:
        return self._strength * heads.square().sum()
'''

RECIPE = Recipe(
    "Add a prior",
    (
        Edit("core/mrn/priors/ridge.py", _CLASS),
        Edit(
            "core/mrn/priors/__init__.py",
            "from core.mrn.priors.ridge import Ridge\n",
            after="from core.mrn.priors.paper import PaperPrior\n",
        ),
        Edit("core/mrn/priors/__init__.py", '    "ridge": Ridge,\n', after='    "paper": PaperPrior,\n'),
        Edit(
            "core/registry.py",
            '    "ridge": PriorSpec("The squared heads.", lambda_=1.0, has_scales=False),\n',
            after="PRIORS: dict[str, PriorSpec] = {\n",
        ),
        Edit(
            "docs/mathematics.md",
            "    λ / N · ‖H‖²                            ridge\n",
            after="    λ · <W, Ω^-1 W>                         paper\n",
        ),
    ),
)
