"""No step of a training makes the processor wait for the device, with no prior of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.mrn.alignments import LabelCounts, align
from core.mrn.priors import PRIOR_CLASSES, Prior, PriorSettings
from core.registry import PRIORS
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.toys import config, corpus
from tests.unit.host_sync import NoHostSync

FEATURES = 6


def learned(name: str) -> tuple[Prior, Tensor]:
    """A prior after two updates, and heads of two tasks that need a gradient."""
    rng = np.random.default_rng(0)
    words = np.stack([rng.integers(0, 3, 200), rng.integers(0, 4, 200)], axis=1)
    labels = [[f"L{index}" for index in range(size)] for size in (3, 4)]
    alignment = align("cooccurrence", LabelCounts.from_words(["a", "b"], labels, words))
    settings = PriorSettings(FEATURES, lambda_=0.1, tokens=100.0)
    prior = PRIOR_CLASSES[name](alignment, settings, torch.device("cpu"))
    heads = torch.from_numpy(rng.standard_normal((7, FEATURES)).astype(np.float32))
    for _ in range(2):
        prior.update(heads)
    return prior, heads.requires_grad_()


@pytest.mark.parametrize("name", PRIORS)
def test_penalty_and_gradient_do_not_wait(name: str) -> None:
    prior, heads = learned(name)
    with NoHostSync():
        prior.penalty(heads).backward()
    assert heads.grad is not None
    assert heads.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["relational", "map"])  # the published one decomposes, and asks how it went
def test_updates_do_not_wait(name: str) -> None:
    prior, heads = learned(name)
    before = prior.state_dict()["task"]
    with NoHostSync():
        prior.update(2 * heads.detach().cos())
    assert not torch.equal(prior.state_dict()["task"], before)


STEPS: dict[str, dict[str, Any]] = {
    "mtl": {},
    "mrn": {"paradigm": "mrn"},
    "bilstm": {"encoder": "+bilstm"},
    "frozen": {"encoder_training": "frozen"},
    "top": {"encoder_training": "top:1"},
    "top bilstm": {"encoder": "+bilstm", "encoder_training": "top:1"},
    "budget": {"batch_size": 16, "batch_tokens": 70},
}


@pytest.mark.parametrize("kind", STEPS)
def test_steps_do_not_wait(kind: str, encoder: str) -> None:
    """Without dropout, for its masks are drawn otherwise on a processor than on a device."""
    values: dict[str, Any] = {"paradigm": "mtl", "dropout": 0.0} | STEPS[kind]
    run = set_up(config(encoder + values.pop("encoder", ""), **values), corpus())
    run.compute_features(lambda event: None, lambda: False)
    for module in run.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    run.model.train()
    before = run.model.heads.weight.detach().clone()
    batches = list(run.epoch(skip=0))
    with NoHostSync():
        for batch in batches:
            train_step(run, batch)
            run.schedule.step()
    assert not torch.equal(run.model.heads.weight, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("training", ["full", "frozen", "top:1"])
def test_steps_on_a_gpu_do_not_wait(training: str, precision: str, encoder: str) -> None:
    """With dropout, by torch's own watch. The first epoch sets up kernels, graphs and optimiser."""
    values = {"paradigm": "mrn", "encoder_training": training, "precision": precision, "device": "cuda"}
    run = set_up(config(encoder, **values), corpus())
    run.compute_features(lambda event: None, lambda: False)
    run.model.train()
    batches = list(run.epoch(skip=0))
    for batch in batches:
        train_step(run, batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses = [train_step(run, batch)[-1] for batch in batches]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.stack(losses).isfinite().all()


@pytest.mark.parametrize(
    "waits",
    [
        lambda values: values.sum().item(),
        lambda values: bool(values.sum() > 0),
        lambda values: values[values > 0],
        lambda values: torch.linalg.cholesky(values @ values.T + torch.eye(len(values))),
        lambda values: torch.linalg.solve(values @ values.T + torch.eye(len(values)), values),
        lambda values: values.to("meta"),
    ],
    ids=["item", "if", "mask", "cholesky", "solve", "copy"],
)
def test_waiting_is_noticed(waits: Callable[[Tensor], object]) -> None:
    _, heads = learned("relational")
    with NoHostSync(), pytest.raises(AssertionError, match="waits for the device"):
        waits(heads)
