"""What one penalty with its gradient and one covariance update cost, beside the published way."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from core.mrn.alignments import Alignment, LabelCounts, align
from core.mrn.priors import PriorSettings, make_prior
from core.mrn.registry import PRIORS
from tests.benchmarks.published import Published
from tests.benchmarks.timing import Effort, milliseconds

__all__ = ["SIZES", "Size", "compare"]

STRENGTH = 0.01
TOKENS = 600_000.0  # three tasks over CoNLL-2003's 200,000 training words


class Regulariser(Protocol):
    """The part of a prior that training calls."""

    def penalty(self, heads: Tensor) -> Tensor: ...

    def update(self, heads: Tensor) -> None: ...


@dataclass(frozen=True)
class Size:
    """T tasks with these numbers of labels over D features, aligned so; C follows.

    Tasks number their labels from 0, so under `exact` the shorter list shares all its rows with the longer.
    """

    labels: tuple[int, ...]
    features: int
    alignment: str

    def aligned(self) -> Alignment:
        names = [f"task{number}" for number in range(len(self.labels))]
        labels = tuple(tuple(f"L{label}" for label in range(count)) for count in self.labels)
        together = np.zeros((sum(self.labels), sum(self.labels)))
        return align(self.alignment, LabelCounts(tuple(names), labels, together))


SIZES = (
    Size((47, 22, 9), 768, "disjoint"),  # POS, chunks and entities of CoNLL-2003 over BERT base
    Size((47, 44), 1536, "exact"),  # POS of CoNLL-2003 and CoNLL-2000 over a BiLSTM: 44 rows shared, 3 not
    Size((20,) * 15, 768, "disjoint"),  # fifteen tasks of twenty labels each
)


def compare(size: Size, device: torch.device, effort: Effort) -> dict[str, Any]:
    """Median milliseconds of every prior and of the published way, and the ratios published / prior."""
    alignment = size.aligned()
    settings = PriorSettings(size.features, STRENGTH, TOKENS)
    torch.manual_seed(0)
    heads = torch.randn(sum(size.labels), size.features, device=device) / (3 * size.features) ** 0.5
    ways: dict[str, Regulariser] = {
        name: make_prior(name, alignment, settings, device) for name in PRIORS
    } | {"published": Published(alignment, size.features, STRENGTH, device)}
    costs = {name: _costs(way, heads, device, effort) for name, way in ways.items()}
    slow = costs["published"]
    return {
        "size": "x".join(map(str, (*alignment.matrix.shape[:2], size.features))),
        "labels": size.labels,
        "alignment": size.alignment,
        "milliseconds": {
            name: {kind: round(value, 3) for kind, value in cost.items()} for name, cost in costs.items()
        },
        "published_over": {
            name: {kind: round(slow[kind] / value, 2) for kind, value in costs[name].items()}
            for name in PRIORS
        },
    }


def _costs(way: Regulariser, heads: Tensor, device: torch.device, effort: Effort) -> dict[str, float]:
    way.update(heads)  # covariances are learned ones from here on, not the identity
    rows = heads.clone().requires_grad_()

    def step() -> None:
        rows.grad = None
        way.penalty(rows).backward()

    return {
        "penalty": median(milliseconds(step, device, effort)),
        "update": median(milliseconds(lambda: way.update(heads), device, effort)),
    }
