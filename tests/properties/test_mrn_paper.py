"""The published procedure, against its own program at small sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from core.mrn.priors import Prior, PriorSettings, make_prior
from core.mrn.priors.paper import EPSILON
from core.mrn.relations import MODES
from tests.properties.test_mrn import CPU, dense_weights, problem


def shown(prior: Prior) -> list[Tensor]:
    relations = prior.relations()
    assert relations is not None
    return [torch.from_numpy(np.asarray(relations.covariance(mode), dtype=float)) for mode in MODES]


def kron3(task: Tensor, label: Tensor, feature: Tensor) -> Tensor:
    return torch.kron(torch.kron(task, label), feature)


def test_paper_update_follows_the_published_program() -> None:
    """Scatters undivided, from the identity; precisions inverted above 0.1; shown less εI."""
    alignment, heads = problem(8, (2, 2), 3, "disjoint")
    heads = heads.float()
    prior = make_prior("paper", alignment, PriorSettings(3, 0.05, 1.0), CPU)
    weights = dense_weights(alignment, heads.double())
    torch.testing.assert_close(
        prior.penalty(heads).double(), 0.05 * weights.square().sum(), rtol=1e-5, atol=1e-6
    )
    prior.update(heads)
    precisions = []
    for axis, scatter_shown in enumerate(shown(prior)):
        rows = weights.movedim(axis, 0).flatten(1)
        scatter = rows @ rows.T
        torch.testing.assert_close(scatter_shown, scatter, rtol=1e-4, atol=1e-4)
        values, vectors = torch.linalg.eigh(scatter + EPSILON * torch.eye(len(scatter), dtype=torch.float64))
        precisions.append(vectors @ torch.diag(torch.where(values > 0.1, 1 / values, values)) @ vectors.T)
    vector = weights.flatten()
    expected = 0.05 * vector @ kron3(*precisions) @ vector
    torch.testing.assert_close(prior.penalty(heads).double(), expected, rtol=1e-3, atol=1e-6)


def test_paper_penalty_can_vanish() -> None:
    """Small weights give small precisions: what the page must be able to say."""
    alignment, heads = problem(9, (3, 3), 8)
    heads = 0.01 * heads.float()
    prior = make_prior("paper", alignment, PriorSettings(8, 1.0, 1.0), CPU)
    first = float(prior.penalty(heads))
    for _ in range(3):
        prior.update(heads)
    assert float(prior.penalty(heads)) < 1e-6 * first


@pytest.mark.parametrize("learn", [("task",), ("label",), ("feature",), ("task", "feature")])
def test_what_is_not_learned_stays_the_identity(learn: tuple[str, ...]) -> None:
    alignment, heads = problem(4, (3, 3), 4)
    prior = make_prior("paper", alignment, PriorSettings(4, 1.0, 1.0, learn), CPU)
    prior.update(heads.float())
    for covariance, mode in zip(shown(prior), MODES, strict=True):
        identity = torch.eye(len(covariance), dtype=torch.float64)
        assert torch.equal(covariance, identity) == (mode not in learn)


def test_objective_is_the_penalty_less_the_log_determinants() -> None:
    """At the identity: the squared norm; after an update, with dense precisions from the published rule."""
    alignment, heads = problem(11, (2, 2), 3)
    prior = make_prior("paper", alignment, PriorSettings(3, 0.05, 1.0), CPU)
    weights = dense_weights(alignment, heads)
    torch.testing.assert_close(prior.objective(heads.float()), weights.square().sum(), rtol=1e-5, atol=1e-6)
    prior.update(heads.float())
    state = prior.state_dict()
    expected = prior.penalty(heads.float()).double() / 0.05
    for mode in MODES:
        precision = state[f"precision_{mode}"].double()
        expected = expected - weights.numel() / len(precision) * torch.logdet(precision)
    torch.testing.assert_close(prior.objective(heads.float()), expected, rtol=1e-4, atol=1e-3)


def test_gradient_of_the_penalty_is_right() -> None:
    alignment, heads = problem(2, (2, 3), 4)
    prior = make_prior("paper", alignment, PriorSettings(4, 0.5, 3.0), CPU)
    prior.update(heads.float())
    rows = heads.float().requires_grad_()
    (gradient,) = torch.autograd.grad(prior.penalty(rows), rows)
    step = 1e-2 * torch.ones_like(rows)
    change = prior.penalty(rows + step) - prior.penalty(rows - step)
    torch.testing.assert_close(change / 2, (gradient * step).sum(), rtol=1e-3, atol=1e-4)
