"""The contract of priors (`core.mrn.priors.base.Prior`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from core.mrn.alignments import LabelCounts, align
from core.mrn.alignments.base import Alignment
from core.mrn.priors.base import Prior, PriorSettings
from core.registry import MODES

PriorClass = Callable[[Alignment, PriorSettings, torch.device], Prior]

_FEATURES, _LABELS = 4, (2, 3)


class PriorContract:
    """What training asks of a prior. A subclass overrides the fixture `prior_class`.

    `dtype` is the precision that the prior is asked in. A directional derivative is off by no more than
    `gradient_rtol` of the product of both norms. The heads (5, 4) are of two tasks on common words;
    `alignment` is the name of their alignment.
    """

    dtype: torch.dtype = torch.float64
    gradient_rtol: float = 1e-6
    alignment: str = "cooccurrence"

    @pytest.fixture
    def prior_class(self) -> PriorClass:
        """What makes the prior from an alignment, `PriorSettings` and a device."""
        raise NotImplementedError("override the fixture prior_class")

    @pytest.fixture
    def heads(self) -> Tensor:
        """Random heads (r, D)."""
        rng = np.random.default_rng(2)
        return torch.from_numpy(rng.standard_normal((sum(_LABELS), _FEATURES))).to(self.dtype)

    @pytest.fixture
    def make(self, prior_class: PriorClass) -> Callable[[], Prior]:
        """Makes the prior anew, as a run does before its first step."""
        words = np.stack([np.random.default_rng(2).integers(0, size, 200) for size in _LABELS], axis=1)
        labels = [[f"L{row}" for row in range(size)] for size in _LABELS]
        aligned = align(self.alignment, LabelCounts.from_words(["a", "b"], labels, words))
        settings = PriorSettings(_FEATURES, lambda_=0.7, tokens=50.0)
        return lambda: prior_class(aligned, settings, torch.device("cpu"))

    @pytest.fixture(params=["at first", "updated"])
    def prior(self, request: pytest.FixtureRequest, make: Callable[[], Prior], heads: Tensor) -> Prior:
        """The prior as it begins, and after two updates."""
        made = make()
        for scale in (1.0, 0.5) if request.param == "updated" else ():
            made.update(scale * heads)
        return made

    def test_the_penalty_is_a_finite_scalar_of_at_least_zero(self, prior: Prior, heads: Tensor) -> None:
        for scale in (0.0, 1e-3, 1.0, 1e3):
            penalty = prior.penalty(scale * heads)
            assert penalty.shape == ()
            assert torch.isfinite(penalty)
            assert penalty >= 0

    def test_the_gradient_is_the_finite_difference_of_the_penalty(self, prior: Prior, heads: Tensor) -> None:
        """Richardson's central differences along random directions: exact for polynomials of degree four."""
        rows = heads.clone().requires_grad_()
        penalty = prior.penalty(rows)
        if not penalty.requires_grad:  # no penalty at all
            assert penalty == 0
            return
        (gradient,) = torch.autograd.grad(penalty, rows)
        generator = torch.Generator().manual_seed(0)
        size = 1e-2 if self.dtype == torch.float32 else 1e-3
        for _ in range(4):
            step = size * torch.randn(heads.shape, generator=generator, dtype=self.dtype)

            def change(times: float, step: Tensor = step) -> Tensor:
                moved = [prior.penalty(heads + sign * times * step).detach() for sign in (1, -1)]
                return (moved[0] - moved[1]) / (2 * times)

            derivative = (4 * change(1.0) - change(2.0)) / 3
            scale = float(gradient.norm() * step.norm())
            torch.testing.assert_close(
                derivative, (gradient * step).sum(), rtol=0, atol=self.gradient_rtol * scale
            )

    def test_an_update_learns_without_gradients_and_leaves_the_heads(
        self, make: Callable[[], Prior], heads: Tensor
    ) -> None:
        rows, prior = heads.clone().requires_grad_(), make()
        prior.update(rows)
        assert torch.equal(rows, heads)
        assert rows.grad is None
        assert not any(tensor.requires_grad for tensor in prior.state_dict().values())

    def test_a_state_goes_round_and_training_resumes_from_it_exactly(
        self, prior: Prior, make: Callable[[], Prior], heads: Tensor
    ) -> None:
        resumed = make()
        resumed.load_state_dict({name: value.clone() for name, value in prior.state_dict().items()})
        for _ in range(2):
            assert torch.equal(prior.penalty(heads), resumed.penalty(heads))
            before, after = prior.state_dict(), resumed.state_dict()
            assert before.keys() == after.keys()
            assert all(torch.equal(before[name], after[name]) for name in before)
            prior.update(heads)
            resumed.update(heads)

    def test_an_objective_is_a_number(self, prior: Prior, heads: Tensor) -> None:
        objective = prior.objective(heads)
        assert objective is None or objective.shape == ()

    def test_covariances_are_symmetric_and_not_negative(self, prior: Prior) -> None:
        """Positive semidefinite within rounding, of the sizes of tasks, general labels and features."""
        relations = prior.relations()
        if relations is None:
            return
        sizes = {"task": len(_LABELS), "label": len(relations.label), "feature": _FEATURES}
        for mode in MODES:
            covariance = np.asarray(relations.covariance(mode), dtype=np.float64)
            assert covariance.shape == (sizes[mode], sizes[mode])
            np.testing.assert_allclose(covariance, covariance.T, rtol=1e-5, atol=1e-6)
            values = np.linalg.eigvalsh(covariance)
            assert values.min() >= -1e-5 * max(1.0, values.max())
            assert values.max() > 0
