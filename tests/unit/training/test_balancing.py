"""How a step balances its tasks, held to closed forms of the papers and to TorchJD."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from core.config import RunConfig
from core.encoding.batches import Batch
from core.errors import ConfigError
from core.models.encoders import parts_of, shared_weights
from core.training import trainable
from core.training.balancing import DynamicWeights, Uncertainty
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.toys import config, corpus

CPU = torch.device("cpu")
_ALL = torch.tensor([True, True])
GRADIENTS = ("pcgrad", "upgrad", "cagrad")
needs_torchjd = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torchjd", "quadprog", "cvxpy")),
    reason="TorchJD is not installed",
)


def begun(encoder: str, balancing: str, **changes: Any) -> tuple[TrainingRun, Batch]:
    """A training without dropout, just set up over random heads, and its first batch."""
    described: dict[str, Any] = {"paradigm": "mtl", "head_init": "default", "balancing": balancing}
    run = set_up(config(encoder, **described | changes), corpus())
    run.model.eval()
    return run, next(run.epoch(0))


def gradients(run: TrainingRun, batch: Batch, task: int | None = None) -> dict[str, torch.Tensor]:
    """The gradient of one task's loss, or of their mean, by itself."""
    run.model.zero_grad()
    sums, counts = run.model.losses(run.model(batch), batch)
    losses = sums / counts
    torch.autograd.backward(losses.mean() if task is None else losses[task])
    return {name: w.grad.clone() for name, w in run.model.named_parameters() if w.grad is not None}


def of_step(run: TrainingRun, batch: Batch) -> dict[str, torch.Tensor]:
    """The gradients that a step leaves."""
    train_step(run, batch)
    return {name: w.grad.clone() for name, w in run.model.named_parameters() if w.grad is not None}


def test_uncertainty_is_that_of_the_paper() -> None:
    losses = torch.tensor([2.0, 0.5], requires_grad=True)
    balancing = Uncertainty(2, CPU)
    assert balancing.terms(losses, _ALL).tolist() == [2.0, 0.5]  # from σ² = 1 on: as without
    balancing.log_variances.data = torch.tensor([0.3, -0.7])
    balancing.terms(losses, _ALL).sum().backward()
    assert losses.grad is not None
    assert balancing.log_variances.grad is not None
    # d/ds (e^-s L + s/2) = 1/2 - e^-s L: zero where σ² is twice the loss.
    for loss, s, to_loss, to_s in zip(
        (2.0, 0.5), (0.3, -0.7), losses.grad.tolist(), balancing.log_variances.grad.tolist(), strict=True
    ):
        assert to_loss == pytest.approx(math.exp(-s))
        assert to_s == pytest.approx(0.5 - math.exp(-s) * loss)
    absent = balancing.terms(losses, torch.tensor([True, False]))
    assert absent[1] == 0


@needs_torchjd
def test_uncertainty_is_torchjds_with_moved_variances() -> None:
    from torchjd.scalarization import UW

    ours, theirs = Uncertainty(2, CPU), UW(2)
    ours.log_variances.data = torch.tensor([0.3, -0.7])
    theirs.log_var.data = ours.log_variances.data - math.log(2)
    losses = torch.tensor([2.0, 0.5], requires_grad=True)
    of_ours = torch.autograd.grad(ours.terms(losses, _ALL).sum(), [losses, ours.log_variances])
    torch.testing.assert_close(of_ours, torch.autograd.grad(theirs(losses), [losses, theirs.log_var]))


def test_the_weights_of_dwa_by_hand() -> None:
    balancing = DynamicWeights(2, CPU)
    for of_epoch, expected in (
        ([(4.0, 1.0), (2.0, 1.0)], (1.0, 1.0)),  # means 3 and 1
        ([(2.0, 1.0), (1.0, 0.5)], (1.0, 1.0)),  # 1.5 and 0.75: they fell to 0.5 and 0.75
        ([(1.0, 1.0)], [2 / (1 + math.exp(0.125)), 2 / (1 + math.exp(-0.125))]),
    ):
        for losses in of_epoch:
            terms = balancing.terms(torch.tensor(losses), _ALL)
            np.testing.assert_allclose(terms, np.multiply(losses, expected), rtol=1e-6)
        balancing.end_epoch()


def test_dwa_counts_the_batches_that_have_a_task() -> None:
    balancing = DynamicWeights(2, CPU)
    for present in (_ALL, torch.tensor([True, False])):
        balancing.terms(torch.tensor([3.0, 1.0]), present)
    balancing.end_epoch()
    assert balancing.state_dict()["last"].tolist() == [3.0, 1.0]
    balancing.terms(torch.tensor([3.0, 0.0]), torch.tensor([True, False]))
    balancing.end_epoch()  # the second task had no labels: its ratio counts as 1
    assert balancing.weights.tolist() == [1.0, 1.0]


@needs_torchjd
def test_dwa_is_torchjds() -> None:
    from torchjd.scalarization import DWA

    ours, theirs = DynamicWeights(3, CPU), DWA()
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        for _ in range(3):
            losses = torch.rand(3, generator=generator)
            torch.testing.assert_close(ours.terms(losses, torch.ones(3) > 0).sum(), theirs(losses))
        ours.end_epoch()
        theirs.step()


@needs_torchjd
@pytest.mark.parametrize("balancing", GRADIENTS)
@pytest.mark.parametrize("changes", [{}, {"paradigm": "mrn"}], ids=["mtl", "mrn"])
def test_shared_weights_get_the_aggregate_of_the_tasks_gradients(
    encoder: str, balancing: str, changes: dict[str, Any]
) -> None:
    """The aggregate is that of TorchJD on the whole Jacobian; heads have the gradient of the mean loss."""
    from torchjd.aggregation import CAGrad, PCGrad, UPGrad

    run, batch = begun(encoder, balancing, **changes)
    names = [name for name, w in run.model.named_parameters() if w in set(shared_weights(run.model))]
    of_tasks = [gradients(run, batch, task) for task in range(2)]
    mean = gradients(run, batch)
    read = [name for name in names if name in mean]
    jacobian = torch.stack([torch.cat([of[name].flatten() for name in read]) for of in of_tasks])
    # PCGrad is a sum over tasks, and a step descends a mean.
    aggregator = {"pcgrad": PCGrad(), "upgrad": UPGrad(), "cagrad": CAGrad(0.5)}[balancing]
    expected = aggregator(jacobian) / (2 if balancing == "pcgrad" else 1)
    found = of_step(run, batch)
    torch.testing.assert_close(torch.cat([found[name].flatten() for name in read]), expected)
    assert found.keys() == mean.keys()  # what no task reads has no gradient
    if run.config.paradigm == "mtl":
        for name in mean.keys() - set(read):
            torch.testing.assert_close(found[name], mean[name])


@needs_torchjd
def test_opposed_gradients_by_hand() -> None:
    """g1 = (1, 0), g2 = (-1, 1): PCGrad takes from each what opposes the other (Yu et al., algorithm 1)."""
    from core.training.balancing import SharedGradients, _weighting

    model = nn.ModuleDict({"encoder": nn.Linear(2, 1, bias=False), "heads": nn.Linear(1, 1)})
    weight, head = [next(part.parameters()) for part in model.children()]
    for name, expected in {
        "pcgrad": (0.5, 1.5),  # (1, 0) - (-1/2)(-1, 1) = (1/2, 1/2), and (0, 1): their sum, of shares
        "upgrad": (0.5, 1.5),  # the same projections: each on the dual cone of both
    }.items():
        balancing = SharedGradients(model, _weighting(name))  # type: ignore[arg-type]
        assert parts_of(model)[weight] == "encoder"
        shares = torch.stack([weight[0, 0], weight[0, 1] - weight[0, 0]])
        total = shares.sum() + head.sum()
        balancing.backward(total, lambda shares=shares: shares, _ALL)  # type: ignore[misc]
        assert weight.grad is not None
        np.testing.assert_allclose(weight.grad[0], expected, atol=2e-3, err_msg=name)


@needs_torchjd
@pytest.mark.parametrize("balancing", GRADIENTS)
def test_a_batch_of_one_task_has_that_tasks_gradient(encoder: str, balancing: str) -> None:
    run, batch = begun(encoder, balancing)
    batch.labels[:, 1] = -100
    found = of_step(run, batch)
    plain, _ = begun(encoder, "none")
    expected = of_step(plain, batch)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient)
    batch.labels[:] = -100  # nothing to learn, and nothing breaks
    assert not any(gradient.any() for gradient in of_step(run, batch).values())


def test_the_learned_weights_of_uncertainty_are_trained_without_decay(encoder: str) -> None:
    run, batch = begun(encoder, "uncertainty", weight_decay=1.0)
    (group,) = [group for group in run.optimiser.param_groups if group["name"] == "balancing"]
    assert (group["lr"], group["weight_decay"]) == (run.config.lr_heads, 0.0)
    train_step(run, batch)
    assert (group["params"][0] != 0).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"paradigm": "stl", "tasks": "ner"}, "a run of one task has nothing to balance"),
        ({"draw_tasks": "uniform"}, "a step of draw_tasks trains one task, whose gradient meets no other"),
        ({"encoder_training": "frozen"}, "tasks share no trained weight"),
    ],
)
def test_what_cannot_be_balanced_is_refused(changes: dict[str, Any], sentence: str) -> None:
    values = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl", "balancing": "upgrad"} | changes
    with pytest.raises(ConfigError, match=sentence) as refused:
        RunConfig.build(**values)
    assert refused.value.field == "balancing"


@pytest.mark.parametrize("changes", [{"draw_tasks": "uniform"}, {"encoder_training": "frozen"}])
def test_losses_are_balanced_there_too(changes: dict[str, Any]) -> None:
    for balancing in ("uncertainty", "dwa"):
        RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl", balancing=balancing, **changes)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainable, "find_spec", lambda name: None if name == "quadprog" else object())
    run = config("minilm", paradigm="mtl", balancing="upgrad")
    with pytest.raises(ConfigError, match=r"upgrad needs quadprog .* pip install 'mrnlab\[balancing\]'"):
        trainable.check_trainable(run, corpus().tasks)
    trainable.check_trainable(run.with_(balancing="pcgrad"), corpus().tasks)


def test_stored_runs_keep_their_ids() -> None:
    plain = RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl")
    assert plain.balancing == "none"
    assert "balancing" not in plain.to_json()
    assert RunConfig.build(corpus="demo", tasks="ner", paradigm="stl").balancing is None
    assert plain.with_(balancing="dwa").with_(paradigm="stl", tasks=("ner",)).balancing is None
