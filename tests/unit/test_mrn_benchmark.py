"""The MRN benchmark runs, and what it calls the published way is what the `paper` prior computes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from core.mrn.priors import Prior, PriorSettings, make_prior
from core.mrn.priors.paper import MAX_TRACE
from core.mrn.registry import PRIORS
from core.mrn.relations import MODES
from tests.benchmarks import mrn_algebra, paired_steps
from tests.benchmarks.mrn_algebra import Size
from tests.benchmarks.published import Published
from tests.benchmarks.timing import Effort
from tests.tiny import tiny_bert

STRENGTH = 0.05


def assert_same_precisions(prior: Prior, published: Published) -> None:
    state = prior.state_dict()
    for mode in MODES:
        torch.testing.assert_close(state[f"precision_{mode}"], getattr(published, mode), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("scale", [0.05, 0.3, 3.0])
@pytest.mark.parametrize("size", [Size((4, 3, 2), 12, "disjoint"), Size((5, 4), 7, "exact")])
def test_published_equals_the_paper_prior(size: Size, scale: float) -> None:
    """Same penalties, gradients and precisions, update after update."""
    alignment = size.aligned()
    prior = make_prior("paper", alignment, PriorSettings(size.features, STRENGTH, 1.0), torch.device("cpu"))
    published = Published(alignment, size.features, STRENGTH)
    torch.manual_seed(1)
    for _ in range(3):
        heads = scale * torch.randn(sum(size.labels), size.features)
        ours, theirs = (heads.clone().requires_grad_() for _ in range(2))
        penalties = prior.penalty(ours), published.penalty(theirs)
        torch.testing.assert_close(*penalties, rtol=1e-4, atol=1e-9)
        for penalty in penalties:
            penalty.backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-7)
        prior.update(heads)
        published.update(heads)
        assert_same_precisions(prior, published)


def test_the_trace_is_cut_alike() -> None:
    """Singular values just above 0.1: precisions near 10·I, of a trace beyond the limit."""
    alignment = Size((310,), 310, "disjoint").aligned()
    prior = make_prior("paper", alignment, PriorSettings(310, STRENGTH, 1.0), torch.device("cpu"))
    published = Published(alignment, 310, STRENGTH)
    heads = 0.101**0.5 * torch.eye(310)
    prior.update(heads)
    published.update(heads)
    assert float(torch.trace(published.feature)) == pytest.approx(MAX_TRACE, rel=1e-5)
    assert_same_precisions(prior, published)


def test_sizes_are_those_asked_for() -> None:
    shapes = [(*size.aligned().matrix.shape[:2], size.features) for size in mrn_algebra.SIZES]
    assert shapes == [(3, 78, 768), (2, 47, 1536), (15, 300, 768)]
    shared = mrn_algebra.SIZES[1].aligned().label_owners
    assert sum(len(owners) == 2 for owners in shared) == 44


def test_every_prior_is_compared() -> None:
    found = mrn_algebra.compare(Size((3, 2), 8, "disjoint"), torch.device("cpu"), Effort(1, 0.0))
    assert found["size"] == "2x5x8"
    assert set(found["published_over"]) == set(PRIORS)
    assert all(time > 0 for way in found["milliseconds"].values() for time in way.values())


def test_steps_are_compared(tmp_path: Path) -> None:
    encoder = str(tiny_bert(tmp_path / "encoder", positions=256))
    found = paired_steps.compare(encoder, "cpu", pairs=10)
    assert found["prior"] == "relational"
    assert math.isfinite(found["mrn_over_mtl"])
    assert found["quartiles"][0] <= found["mrn_over_mtl"] <= found["quartiles"][1]
