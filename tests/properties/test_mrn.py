"""The MRN algebra against dense Kronecker computations, and the published procedure against its program."""

from __future__ import annotations

import dataclasses
import math
import re
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from core.mrn.alignments import LabelCounts, align
from core.mrn.alignments.base import Alignment
from core.mrn.lowrank import LowRankCovariance, semidefinite_factor
from core.mrn.priors import PRIOR_CLASSES, Prior, PriorSettings
from core.mrn.priors.paper import EPSILON
from core.mrn.priors.tensor_normal import TensorNormal
from core.mrn.relations import correlation
from core.registry import MODES, PRIORS
from core.testing.priors import PriorClass, PriorContract

CPU = torch.device("cpu")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "mathematics.md").read_text(encoding="utf-8")
LEARNING = [
    name
    for name in PRIORS
    if isinstance(prior := PRIOR_CLASSES[name], type) and issubclass(prior, TensorNormal)
]
STRENGTH, WORDS, SHRINKAGE = 0.7, 50.0, 1.5


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


def make(
    name: str, alignment: Alignment, features: int, learn: tuple[str, ...] = MODES, related: float = 0.0
) -> Prior:
    settings = PriorSettings(features, STRENGTH, WORDS, learn, SHRINKAGE, related)
    return PRIOR_CLASSES[name](alignment, settings, CPU)


def first_values(sizes: tuple[int, ...], related: float) -> dict[str, Tensor]:
    """M_u of each mode: the identity, and for tasks the matrix of that correlation."""
    first = {mode: torch.eye(size, dtype=torch.float64) for mode, size in zip(MODES, sizes, strict=True)}
    first["task"][~torch.eye(sizes[0], dtype=torch.bool)] = related
    return first


def as_trained(name: str, heads: Tensor) -> Tensor:
    """The published procedure computes in single precision."""
    return heads.float() if name == "paper" else heads.clone()


def objective_of(prior: Prior, heads: Tensor) -> float:
    objective = prior.objective(heads)
    assert objective is not None
    return float(objective)


def covariances(prior: Prior) -> dict[str, Tensor]:
    """Dense and in float64, from what the prior itself keeps."""
    state = prior.state_dict()
    factor = state["feature_rows"].T @ state["feature_root"]
    feature = factor @ factor.T
    feature.diagonal().add_(state["feature_diagonal"])
    return {"task": state["task"], "label": state["label"], "feature": feature}


def shown(prior: Prior) -> list[Tensor]:
    relations = prior.relations()
    assert relations is not None
    return [torch.from_numpy(np.asarray(relations.covariance(mode), dtype=np.float32)) for mode in MODES]


RELATING = [name for name in PRIORS if make(name, problem(0, (2, 2), 2)[0], 2).relations() is not None]
"""The priors that have covariances."""


def kron3(parts: dict[str, Tensor]) -> Tensor:
    return torch.kron(torch.kron(parts["task"], parts["label"]), parts["feature"])


def means(name: str, features: int) -> tuple[dict[str, float], float]:
    """τ_u and the fixed scale of the prior of that name."""
    tau = 1 / (3 * features)
    return {
        "task": 1.0,
        "label": 1.0,
        "feature": tau if name == "map" else 1.0,
    }, 1.0 if name == "map" else tau


def dense_quadratic(weights: Tensor, parts: dict[str, Tensor]) -> Tensor:
    vector = weights.flatten()
    quadratic: Tensor = vector @ torch.linalg.solve(kron3(parts), vector)
    return quadratic


def dense_objective(name: str, weights: Tensor, parts: dict[str, Tensor], related: float) -> Tensor:
    """J as docs/mathematics.md prints it, from dense matrices."""
    tau, scale = means(name, weights.shape[2])
    total, first = weights.numel(), first_values(tuple(weights.shape), related)
    value = dense_quadratic(weights, parts) / scale
    for mode, covariance in parts.items():
        size = len(covariance)
        pseudo = SHRINKAGE * size
        value = value + (total / size + pseudo) * torch.logdet(covariance)
        value = value + pseudo * tau[mode] * torch.trace(first[mode] @ torch.linalg.inv(covariance))
    return value


def printed_penalty(prior: str, quadratic: Tensor, **symbols: float) -> Tensor:
    """The penalty by the formula that docs/mathematics.md prints for this prior, `quadratic` <W, Ω^-1 W>."""
    formulas = {
        name: weight
        for weight, names in re.findall(r"^    (.+) · <W, Ω\^-1 W> +(\w.*)$", PAGE, flags=re.MULTILINE)
        for name in names.split(", ")
    }
    weight = formulas[prior].replace("‖B‖²", "B_squared").replace("·", "*")
    weight = re.sub(r"(?<=\w) (?=\w)", " * ", weight)  # the page writes products with a space
    return quadratic * float(eval(weight, {}, symbols))


problems = st.tuples(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple),
    st.integers(2, 5),
    st.sampled_from(["disjoint", "exact", "cooccurrence"]),
)
Case = tuple[int, tuple[int, ...], int, str]


@settings(max_examples=20)
@given(problems, st.integers(0, 1000))
def test_scales_by_counts_are_those_of_the_label_covariance(case: Case, seed: int) -> None:
    """The penalty is that of S Ω_label S, with 1 / s_c² in proportion to the row's training words."""
    alignment, heads = problem(*case)
    rng = np.random.default_rng(seed)
    words = rng.integers(1, 100, len(heads)).astype(float)
    counts = LabelCounts(alignment.task_names, (), np.diag(words))
    squares = alignment.matrix.sum(axis=0) ** 2
    per_row = np.array([np.average(words, weights=row) for row in squares])
    scaled = alignment.scaled_by_counts(counts)
    prior = make("relational", scaled, heads.shape[1])
    prior.update(heads)
    parts = covariances(prior)
    scale = torch.diag(torch.from_numpy((per_row / per_row.mean()) ** -0.5))
    parts["label"] = scale @ parts["label"] @ scale
    weights = torch.from_numpy(alignment.matrix) @ heads
    copies = (scaled.matrix**2).sum() / len(heads)
    expected = STRENGTH / (2 * WORDS * copies / (3 * heads.shape[1])) * dense_quadratic(weights, parts)
    torch.testing.assert_close(prior.penalty(heads), expected, rtol=1e-8, atol=1e-10)


@settings(max_examples=10)
@given(problems)
def test_penalty_of_the_published_procedure_is_the_printed_formula(case: Case) -> None:
    alignment, heads = problem(*case)
    heads = heads.float()
    prior = make("paper", alignment, heads.shape[1])
    prior.update(heads)
    precisions = {mode: prior.state_dict()[f"precision_{mode}"].double() for mode in MODES}
    vector = (torch.from_numpy(alignment.matrix) @ heads.double()).flatten()
    expected = printed_penalty("paper", vector @ kron3(precisions) @ vector, λ=STRENGTH)
    torch.testing.assert_close(prior.penalty(heads).double(), expected, rtol=1e-3, atol=1e-5)


@settings(max_examples=40)
@given(
    problems,
    st.sampled_from([MODES, ("task",), ("label",), ("feature",), ("task", "feature")]),
    st.floats(-3, 3),
    st.sampled_from([0.0, 0.8]),
)
def test_map_updates_never_raise_the_objective(
    case: Case, learn: tuple[str, ...], scale: float, related: float
) -> None:
    alignment, heads = problem(*case)
    heads = 10**scale * heads
    prior = make("map", alignment, heads.shape[1], learn, related)
    before = objective_of(prior, heads)
    for _ in range(6):
        prior.update(heads)
        after = objective_of(prior, heads)
        assert after <= before + 1e-9 * abs(before)
        before = after


@settings(max_examples=30)
@given(problems, st.sampled_from(LEARNING), st.sampled_from([0.0, 0.8]), st.sampled_from([MODES, ("none",)]))
def test_updates_penalty_and_objective_are_the_printed_ones_over_dense_matrices(
    case: Case, name: str, related: float, learn: tuple[str, ...]
) -> None:
    """Updates are the shrunk scatters: feature, then label, then task, each from the newest others."""
    assert "J(W, Ω) = <W, Ω^-1 W> / s + Σ_u [ (n_u + κd_u) ln|Ω_u| + κ d_u τ_u tr(M_u Ω_u^-1) ]" in PAGE
    alignment, heads = problem(*case)
    tau, scale = means(name, heads.shape[1])
    prior = make(name, alignment, heads.shape[1], learn, related)
    weights = torch.from_numpy(alignment.matrix) @ heads
    first = first_values(tuple(weights.shape), related)
    expected = {mode: tau[mode] * matrix for mode, matrix in first.items()}
    for _ in range(3):
        objective = dense_objective(name, weights, expected, related)
        torch.testing.assert_close(prior.objective(heads), objective, rtol=1e-7, atol=1e-7)
        prior.update(heads)
        for mode in ("feature", "label", "task"):
            rows = weights.movedim(MODES.index(mode), 0).flatten(1)
            if mode not in learn:
                continue
            others = [expected[other] for other in MODES if other != mode]
            scatter = rows @ torch.linalg.solve(torch.kron(*others), rows.T)
            size, columns = rows.shape
            shrinkage = SHRINKAGE * size / (columns + SHRINKAGE * size)
            divisor = columns if name == "map" else torch.diagonal(scatter).mean()
            expected[mode] = (1 - shrinkage) * scatter / divisor + shrinkage * tau[mode] * first[mode]
    for mode, covariance in covariances(prior).items():
        torch.testing.assert_close(covariance, expected[mode], rtol=1e-7, atol=1e-9)
    penalty = printed_penalty(
        name,
        dense_quadratic(weights, expected),
        λ=STRENGTH,
        r=len(heads),
        N=WORDS,
        B_squared=float((alignment.matrix**2).sum()),
        s=scale,
    )
    torch.testing.assert_close(prior.penalty(heads), penalty, rtol=1e-7, atol=1e-9)


class TestPriors(PriorContract):
    """What holds of every prior in the table."""

    @pytest.fixture(params=[name for name in PRIORS if name != "paper"])
    def prior_class(self, request: pytest.FixtureRequest) -> PriorClass:
        return PRIOR_CLASSES[request.param]


class TestPaperPrior(PriorContract):
    """The published procedure computes in single precision."""

    dtype, gradient_rtol = torch.float32, 1e-3

    @pytest.fixture
    def prior_class(self) -> PriorClass:
        return PRIOR_CLASSES["paper"]


@pytest.mark.parametrize("name", LEARNING)
def test_penalty_in_single_precision_is_that_in_double(name: str) -> None:
    """Heads far larger than the prior expects, where Woodbury's difference would lose its digits."""
    alignment, heads = problem(3, (9, 23), 96, "disjoint")
    heads = 30 * heads
    prior = make(name, alignment, 96)
    for _ in range(3):
        prior.update(heads)
    single = prior.penalty(heads.float()).double()
    torch.testing.assert_close(single, prior.penalty(heads), rtol=1e-4, atol=0)


def test_zero_heads_leave_the_identity() -> None:
    alignment, heads = problem(3, (2, 3), 4)
    prior = make("relational", alignment, 4)
    prior.update(torch.zeros_like(heads))
    for covariance in covariances(prior).values():
        torch.testing.assert_close(covariance, torch.eye(len(covariance), dtype=torch.float64))


@pytest.mark.parametrize("learn", [(), ("task",), ("label",), ("feature",), ("task", "feature")])
@pytest.mark.parametrize("name", RELATING)
def test_what_is_not_learned_stays_as_it_was(name: str, learn: tuple[str, ...]) -> None:
    alignment, heads = problem(4, (3, 3), 4)
    prior = make(name, alignment, 4, learn)
    before = shown(prior)
    if name == "paper":
        assert all(torch.equal(covariance, torch.eye(len(covariance))) for covariance in before)
    prior.update(as_trained(name, heads))
    for mode, covariance, unlearned in zip(MODES, shown(prior), before, strict=True):
        assert torch.equal(covariance, unlearned) == (mode not in learn)


@pytest.mark.parametrize("name", LEARNING)
@pytest.mark.parametrize("planted", [-0.8, -0.3, 0.0, 0.3, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_task_correlation_is_recovered(planted: float, name: str, seed: int) -> None:
    """Two heads over one label set, rows correlated as planted: the value within 0.1, so the sign."""
    rng = np.random.default_rng(seed)
    first, independent = rng.standard_normal((2, 47, 128))
    second = planted * first + math.sqrt(1 - planted**2) * independent
    labels = [[f"L{index}" for index in range(47)]] * 2
    words = np.tile(np.arange(47)[:, None], (1, 2))
    alignment = align("exact", LabelCounts.from_words(["a", "b"], labels, words))
    prior = PRIOR_CLASSES[name](alignment, PriorSettings(128, 1.0, 1.0), CPU)
    heads = torch.from_numpy(np.concatenate([first, second]))
    for _ in range(20):
        prior.update(heads)
    relations = prior.relations()
    assert relations is not None
    assert relations.correlation("task")[0, 1] == pytest.approx(planted, abs=0.1)


@pytest.mark.parametrize("name", LEARNING)
def test_a_state_of_a_version_that_kept_the_factor_alone_is_read(name: str) -> None:
    alignment, heads = problem(10, (2, 3), 4)
    first, second = make(name, alignment, 4), make(name, alignment, 4)
    first.update(heads)
    state = first.state_dict()
    state["feature_factor"] = state.pop("feature_rows").T @ state.pop("feature_root")
    second.load_state_dict(state)
    torch.testing.assert_close(second.penalty(heads), first.penalty(heads), rtol=1e-9, atol=0)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(0, 10), st.floats(-12, 1))
def test_low_rank_is_exact_where_a_dense_inverse_is_not(
    seed: int, size: int, rank: int, exponent: float
) -> None:
    """Against the singular values of F, since a dense Ω has lost a tiny a among its digits."""
    rng, diagonal = np.random.default_rng(seed), 10**exponent
    factor = torch.from_numpy(rng.standard_normal((size, rank)))
    turn = torch.linalg.qr(torch.from_numpy(rng.standard_normal((rank, rank)))).Q
    covariance = LowRankCovariance(diagonal, turn @ factor.T, turn)
    rows, coupling = (torch.from_numpy(rng.standard_normal((3, columns))) for columns in (size, 3))
    basis, singular, _ = torch.linalg.svd(factor)
    values = torch.full((size,), diagonal, dtype=torch.float64)
    values[: len(singular)] += singular.square()
    turned = rows @ basis
    close = partial(torch.testing.assert_close, rtol=1e-6, atol=1e-8 / diagonal)
    if diagonal >= 0.05:
        close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-10)
        close(covariance.inverse_trace(), values.reciprocal().sum())
    coupling = coupling + coupling.T
    close(covariance.inverse_form(coupling, rows), (coupling * ((turned / values) @ turned.T)).sum())
    close(covariance.logdet(), values.log().sum(), atol=1e-6 if diagonal < 0.05 else 1e-10)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 10))
def test_the_factor_of_a_scatter_gives_it_back(seed: int, size: int, columns: int) -> None:
    """Singular ones too, where there are fewer columns than rows."""
    spread = torch.from_numpy(np.random.default_rng(seed).standard_normal((size, columns)))
    factor = semidefinite_factor(spread @ spread.T)
    torch.testing.assert_close(factor @ factor.T, spread @ spread.T, rtol=1e-10, atol=1e-10)


def test_correlation_of_a_zero_diagonal_is_zero_not_nan() -> None:
    covariance = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 1.0]])
    expected = np.array([[1.0, 0, 1.0], [0, 0, 0], [1.0, 0, 1.0]])
    np.testing.assert_allclose(correlation(covariance), expected)


@settings(max_examples=25)
@given(problems, st.sampled_from(LEARNING), st.randoms(use_true_random=False))
def test_permuting_a_mode_permutes_what_is_learned(case: Case, name: str, random: Random) -> None:
    """Tasks, labels and features in another order: the same covariances in that order, J as before."""
    alignment, heads = problem(*case)
    tasks, labels, _ = alignment.matrix.shape
    order = {
        mode: torch.tensor(random.sample(range(size), size))
        for mode, size in zip(MODES, (tasks, labels, heads.shape[1]), strict=True)
    }
    matrix = alignment.matrix[order["task"].numpy()][:, order["label"].numpy()]
    moved = dataclasses.replace(alignment, matrix=matrix)
    first, second = (make(name, version, heads.shape[1]) for version in (alignment, moved))
    shuffled = heads[:, order["feature"]]
    for _ in range(2):
        first.update(heads)
        second.update(shuffled)
    permuted = covariances(second)
    for mode, covariance in covariances(first).items():
        expected = covariance[order[mode]][:, order[mode]]
        torch.testing.assert_close(permuted[mode], expected, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(first.objective(heads), second.objective(shuffled), rtol=1e-9, atol=1e-8)
    torch.testing.assert_close(first.penalty(heads), second.penalty(shuffled), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", RELATING)
def test_disjoint_rows_never_relate_tasks(name: str) -> None:
    alignment, heads = problem(5, (3, 2, 4), 6, "disjoint")
    prior = make(name, alignment, 6)
    for _ in range(5):
        prior.update(as_trained(name, heads))
    relations = prior.relations()
    assert relations is not None
    np.testing.assert_allclose(relations.correlation("task"), np.eye(3), atol=1e-6)
    owner = np.repeat([0, 1, 2], [3, 2, 4])
    between = owner[:, None] != owner[None, :]
    np.testing.assert_allclose(relations.correlation("label")[between], 0, atol=1e-6)


def test_a_low_rank_covariance_refuses_what_is_none() -> None:
    with pytest.raises(ValueError, match="positive, not 0"):
        LowRankCovariance(0.0, torch.zeros(1, 3), torch.zeros(1, 1))
    with pytest.raises(ValueError, match=r"\(n, D\) and root \(n, r\): \(1, 3\), \(2, 1\)"):
        LowRankCovariance(1.0, torch.zeros(1, 3), torch.zeros(2, 1))


def test_paper_update_follows_the_published_program() -> None:
    """Scatters undivided, from the identity; precisions inverted above 0.1; shown less εI.

    The objective is the quadratic less the log determinants of the precisions.
    """
    alignment, heads = problem(8, (2, 2), 3, "disjoint")
    weights = torch.from_numpy(alignment.matrix) @ heads
    heads = heads.float()
    prior = PRIOR_CLASSES["paper"](alignment, PriorSettings(3, 0.05, 1.0), CPU)
    squares = weights.square().sum()
    torch.testing.assert_close(prior.penalty(heads).double(), 0.05 * squares, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(prior.objective(heads), squares, rtol=1e-5, atol=1e-6)
    prior.update(heads)
    precisions = {}
    for axis, (mode, covariance) in enumerate(zip(MODES, shown(prior), strict=True)):
        rows = weights.movedim(axis, 0).flatten(1)
        scatter = rows @ rows.T
        torch.testing.assert_close(covariance.double(), scatter, rtol=1e-4, atol=1e-4)
        values, vectors = torch.linalg.eigh(scatter + EPSILON * torch.eye(len(scatter), dtype=torch.float64))
        precisions[mode] = vectors @ torch.diag(torch.where(values > 0.1, 1 / values, values)) @ vectors.T
    quadratic = weights.flatten() @ kron3(precisions) @ weights.flatten()
    torch.testing.assert_close(prior.penalty(heads).double(), 0.05 * quadratic, rtol=1e-3, atol=1e-6)
    logs = sum(weights.numel() / len(part) * torch.logdet(part) for part in precisions.values())
    torch.testing.assert_close(prior.objective(heads), quadratic - logs, rtol=1e-3, atol=1e-3)


def test_paper_update_goes_on_where_the_svd_in_float32_does_not_converge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alignment, heads = problem(9, (3, 3), 8)
    heads = heads.float()
    svd = torch.linalg.svd

    def diverging(matrix: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if matrix.dtype == torch.float32:
            raise LinAlgError("linalg.svd: The algorithm failed to converge")
        left, values, right = svd(matrix)
        return left, values, right

    penalties = []
    for decompose in (svd, diverging):
        monkeypatch.setattr(torch.linalg, "svd", decompose)
        prior = PRIOR_CLASSES["paper"](alignment, PriorSettings(8, 1.0, 1.0), CPU)
        prior.update(heads)
        penalties.append(prior.penalty(heads))
    torch.testing.assert_close(*penalties, rtol=1e-4, atol=1e-6)
