"""The MRN algebra against dense Kronecker computations, in float64 at small sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from core.mrn.alignments import LabelCounts, align
from core.mrn.alignments.base import Alignment
from core.mrn.lowrank import LowRankCovariance
from core.mrn.priors import PriorSettings, make_prior
from core.mrn.priors.paper import EPSILON
from core.mrn.relations import MODES, correlation

CPU = torch.device("cpu")


def problem(
    seed: int, sizes: tuple[int, ...], features: int, name: str = "cooccurrence"
) -> tuple[Alignment, Tensor]:
    """An alignment of tasks with these numbers of labels, and random heads (r, D)."""
    rng = np.random.default_rng(seed)
    words = np.stack([rng.integers(0, size, 200) for size in sizes], axis=1)
    labels = [[f"L{index}" for index in range(size)] for size in sizes]
    counts = LabelCounts.from_words([f"t{t}" for t in range(len(sizes))], labels, words)
    heads = torch.from_numpy(rng.standard_normal((sum(sizes), features)))
    return align(name, counts), heads


def dense_weights(alignment: Alignment, heads: Tensor) -> Tensor:
    return torch.from_numpy(alignment.matrix) @ heads


def kron3(task: Tensor, label: Tensor, feature: Tensor) -> Tensor:
    return torch.kron(torch.kron(task, label), feature)


def tensors(prior: object) -> tuple[Tensor, Tensor, Tensor]:
    relations = prior.relations()  # type: ignore[attr-defined] # any prior that learns has them
    return tuple(torch.from_numpy(np.asarray(relations.covariance(mode), dtype=float)) for mode in MODES)  # type: ignore[return-value] # three modes


problems = st.tuples(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple),
    st.integers(2, 5),
    st.sampled_from(["disjoint", "exact", "cooccurrence"]),
)


@settings(max_examples=30, deadline=None)
@given(problems)
def test_relational_penalty_is_the_dense_quadratic_form(case: tuple[int, tuple[int, ...], int, str]) -> None:
    alignment, heads = problem(*case)
    prior = make_prior("relational", alignment, PriorSettings(heads.shape[1], 0.7, 50.0), CPU)
    for _ in range(3):
        prior.update(heads)
    vector = dense_weights(alignment, heads).flatten()
    quadratic = vector @ torch.linalg.solve(kron3(*tensors(prior)), vector)
    scale = 1 / (3 * heads.shape[1])
    # The factor F is shown in float32, hence the tolerance; the state itself is float64.
    copies = (alignment.matrix**2).sum() / alignment.matrix.shape[2]
    torch.testing.assert_close(
        prior.penalty(heads), 0.7 / (2 * 50.0 * scale * copies) * quadratic, rtol=1e-4, atol=1e-9
    )


def test_identity_covariances_reduce_the_penalty_to_the_squared_norm() -> None:
    alignment, heads = problem(1, (3, 2), 4, "disjoint")
    prior = make_prior("relational", alignment, PriorSettings(4, 1.0, 10.0), CPU)
    torch.testing.assert_close(prior.penalty(heads), 12 / 20 * heads.square().sum())


@pytest.mark.parametrize("name", ["relational", "paper"])
def test_gradient_of_the_penalty_is_right(name: str) -> None:
    alignment, heads = problem(2, (2, 3), 4)
    prior = make_prior(name, alignment, PriorSettings(4, 0.5, 3.0), CPU)
    prior.update(heads.float() if name == "paper" else heads)
    if name == "relational":
        assert torch.autograd.gradcheck(prior.penalty, heads.clone().requires_grad_())
    else:
        rows = heads.float().requires_grad_()
        (gradient,) = torch.autograd.grad(prior.penalty(rows), rows)
        step = 1e-2 * torch.ones_like(rows)
        change = prior.penalty(rows + step) - prior.penalty(rows - step)
        torch.testing.assert_close(change / 2, (gradient * step).sum(), rtol=1e-3, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(problems)
def test_relational_updates_are_the_shrunk_normalised_scatters(
    case: tuple[int, tuple[int, ...], int, str],
) -> None:
    """Feature, then label, then task: each from the newest others, against dense unfoldings."""
    alignment, heads = problem(*case)
    features = heads.shape[1]
    prior = make_prior("relational", alignment, PriorSettings(features, 1.0, 1.0), CPU)
    weights = dense_weights(alignment, heads)
    covariance = dict(
        zip(MODES, (torch.eye(size, dtype=torch.float64) for size in weights.shape), strict=True)
    )
    for _ in range(2):
        prior.update(heads)
        for mode in ("feature", "label", "task"):
            axis = MODES.index(mode)
            rows = weights.movedim(axis, 0).flatten(1)
            first, second = (covariance[other] for other in MODES if other != mode)
            scatter = rows @ torch.linalg.solve(torch.kron(first, second), rows.T)
            size = len(scatter)
            shrinkage = size / (rows.shape[1] + size)
            shape = scatter / torch.diagonal(scatter).mean()
            covariance[mode] = (1 - shrinkage) * shape + shrinkage * torch.eye(size, dtype=torch.float64)
    for learned, mode in zip(tensors(prior), MODES, strict=True):
        torch.testing.assert_close(learned, covariance[mode], rtol=1e-4, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(problems)
def test_covariances_are_symmetric_positive_definite_with_trace_d(
    case: tuple[int, tuple[int, ...], int, str],
) -> None:
    alignment, heads = problem(*case)
    prior = make_prior("relational", alignment, PriorSettings(heads.shape[1], 1.0, 1.0), CPU)
    prior.update(heads)
    for covariance in tensors(prior):
        torch.testing.assert_close(covariance, covariance.T)
        assert torch.linalg.eigvalsh(covariance)[0] > 0
        assert float(torch.trace(covariance)) == pytest.approx(len(covariance), rel=1e-4)


def test_zero_heads_leave_the_identity() -> None:
    alignment, heads = problem(3, (2, 3), 4)
    prior = make_prior("relational", alignment, PriorSettings(4, 1.0, 1.0), CPU)
    prior.update(torch.zeros_like(heads))
    for covariance in tensors(prior):
        torch.testing.assert_close(covariance, torch.eye(len(covariance), dtype=torch.float64))


@pytest.mark.parametrize("learn", [("task",), ("label",), ("feature",), ("task", "feature")])
@pytest.mark.parametrize("name", ["relational", "paper"])
def test_what_is_not_learned_stays_the_identity(name: str, learn: tuple[str, ...]) -> None:
    alignment, heads = problem(4, (3, 3), 4)
    prior = make_prior(name, alignment, PriorSettings(4, 1.0, 1.0, learn), CPU)
    prior.update(heads.float() if name == "paper" else heads)
    for covariance, mode in zip(tensors(prior), MODES, strict=True):
        identity = torch.eye(len(covariance), dtype=torch.float64)
        assert torch.equal(covariance, identity) == (mode not in learn)


@pytest.mark.parametrize("name", ["relational", "paper"])
def test_disjoint_rows_never_relate_tasks(name: str) -> None:
    alignment, heads = problem(5, (3, 2, 4), 6, "disjoint")
    heads = heads.float() if name == "paper" else heads
    prior = make_prior(name, alignment, PriorSettings(6, 1.0, 1.0), CPU)
    for _ in range(5):
        prior.update(heads)
    relations = prior.relations()
    assert relations is not None
    np.testing.assert_allclose(relations.correlation("task"), np.eye(3), atol=1e-6)
    owner = np.repeat([0, 1, 2], [3, 2, 4])
    between = owner[:, None] != owner[None, :]
    np.testing.assert_allclose(relations.correlation("label")[between], 0, atol=1e-6)


@pytest.mark.parametrize("planted", [-0.8, -0.3, 0.0, 0.3, 0.8])
def test_a_planted_task_correlation_is_recovered(planted: float) -> None:
    """Two heads over one label set whose rows are correlated as planted (seeded, within 0.1)."""
    rng = np.random.default_rng(7)
    common, own = rng.standard_normal((2, 47, 128))
    second = planted * common + math.sqrt(1 - planted**2) * own
    labels = [[f"L{index}" for index in range(47)]] * 2
    words = np.tile(np.arange(47)[:, None], (1, 2))
    alignment = align("exact", LabelCounts.from_words(["a", "b"], labels, words))
    prior = make_prior("relational", alignment, PriorSettings(128, 1.0, 1.0), CPU)
    heads = torch.from_numpy(np.concatenate([common, second]))
    for _ in range(5):
        prior.update(heads)
    relations = prior.relations()
    assert relations is not None
    assert relations.correlation("task")[0, 1] == pytest.approx(planted, abs=0.1)


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
    for axis, shown in enumerate(tensors(prior)):
        rows = weights.movedim(axis, 0).flatten(1)
        scatter = rows @ rows.T
        torch.testing.assert_close(shown, scatter, rtol=1e-4, atol=1e-4)
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


@pytest.mark.parametrize("name", ["relational", "paper"])
def test_state_goes_round(name: str) -> None:
    alignment, heads = problem(10, (2, 3), 4)
    heads = heads.float()
    first = make_prior(name, alignment, PriorSettings(4, 0.5, 3.0), CPU)
    first.update(heads)
    second = make_prior(name, alignment, PriorSettings(4, 0.5, 3.0), CPU)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.penalty(heads), second.penalty(heads))
    first.update(heads)
    second.update(heads)
    assert torch.equal(first.penalty(heads), second.penalty(heads))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(0, 10), st.floats(0.01, 10))
def test_low_rank_equals_dense(seed: int, size: int, rank: int, diagonal: float) -> None:
    rng = np.random.default_rng(seed)
    covariance = LowRankCovariance(diagonal, torch.from_numpy(rng.standard_normal((size, rank))))
    rows = torch.from_numpy(rng.standard_normal((3, size)))
    dense = covariance.dense()
    expected = rows @ torch.linalg.solve(dense, rows.T)
    torch.testing.assert_close(covariance.inverse_inner(rows), expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(covariance.logdet(), torch.logdet(dense), rtol=1e-10, atol=1e-9)


def test_correlation_of_a_zero_diagonal_is_zero_not_nan() -> None:
    covariance = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0]])
    expected = np.array([[1.0, 0, 1.0], [0, 0, 0], [1.0, 0, 1.0]])
    np.testing.assert_allclose(correlation(covariance), expected)
