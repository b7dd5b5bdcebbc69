"""Recorded layers compute what the same layers do when the processor starts each of their kernels."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from core.encoding.batches import Batch
from core.models.encoders import cuda_graphs
from core.models.encoders.transformer import Transformer
from core.training.checkpoints import Progress, read_state, state_writer
from core.training.setup import TrainingRun, set_up
from tests.toys import config, corpus

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def a_run(encoder: str, dropout: float, precision: str = "fp32") -> TrainingRun:
    values = {"paradigm": "mtl", "device": "cuda", "batch_size": 3, "head_init": "default"}
    run = set_up(config(encoder, dropout=dropout, precision=precision, **values), corpus())
    if dropout == 0.0:
        for module in run.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    run.model.train()
    return run


def loss_and_gradients(run: TrainingRun, batch: Batch, records: bool) -> tuple[Tensor, list[Tensor]]:
    assert isinstance(run.model.encoder, Transformer)
    run.model.encoder.records_steps = records
    run.model.zero_grad(set_to_none=True)
    sums, _ = run.model.losses(run.model(batch), batch)
    sums.sum().backward()
    named = run.model.named_parameters()
    return sums.detach().clone(), [weight.grad.clone() for _, weight in named if weight.grad is not None]


def shapes_of(run: TrainingRun) -> cuda_graphs.RecordedShapes:
    assert isinstance(run.model.encoder, Transformer)
    return run.model.encoder.recorded_shapes


def test_a_resumed_training_records_the_same_shapes(encoder: str) -> None:
    """155 steps in 39 shapes, more than are recorded: which ones are decides what dropout draws."""
    values = {"paradigm": "mtl", "batch_size": 3, "head_init": "default"}
    drawn = np.random.default_rng(5).integers(0, 39, 155)
    steps = [(1 + int(shape), 16) for shape in drawn]
    whole = set_up(config(encoder, **values), corpus())
    recorded = [shapes_of(whole).admits(shape) for shape in steps]
    assert not all(recorded)
    for stop in (1, 100):
        begun, resumed = (set_up(config(encoder, **values), corpus()) for _ in range(2))
        first = [shapes_of(begun).admits(shape) for shape in steps[:stop]]
        next(begun.epoch(skip=0))
        with tempfile.TemporaryDirectory() as folder:
            state_writer(begun, Progress(), {})[1](Path(folder))
            read_state(Path(folder), resumed)
        rest = [shapes_of(resumed).admits(shape) for shape in steps[stop:]]
        assert first + rest == recorded, stop


@on_gpu
def test_a_resumed_training_draws_the_same_dropout(
    encoder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cuda_graphs, "_MOST", 1)
    whole = a_run(encoder, dropout=0.5)
    batches = [batch.to(whole.device) for batch in whole.epoch(skip=0)]
    assert len({batch.ids.shape for batch in batches}) > 1
    for batch in batches[:1]:
        loss_and_gradients(whole, batch, records=True)
    state_writer(whole, Progress(), {})[1](tmp_path)
    losses = [loss_and_gradients(whole, batch, records=True)[0] for batch in batches[1:]]
    resumed = a_run(encoder, dropout=0.5)
    read_state(tmp_path, resumed)
    again = [loss_and_gradients(resumed, batch, records=True)[0] for batch in batches[1:]]
    assert all(map(torch.equal, losses, again))


@on_gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_losses_and_gradients_are_those_of_the_layers(encoder: str, precision: str) -> None:
    run = a_run(encoder, dropout=0.0, precision=precision)
    batches = [batch.to(run.device) for batch in run.epoch(skip=0)]
    assert len({batch.ids.shape for batch in batches}) > 1
    rtol, atol = (1e-4, 1e-5) if precision == "fp32" else (0.1, 0.05)
    for batch in batches * 2:
        recorded, their_gradients = loss_and_gradients(run, batch, records=True)
        computed, gradients = loss_and_gradients(run, batch, records=False)
        torch.testing.assert_close(recorded, computed, rtol=rtol, atol=atol)
        for recorded, computed in zip(their_gradients, gradients, strict=True):
            torch.testing.assert_close(recorded, computed, rtol=rtol, atol=atol)


@on_gpu
def test_recording_draws_no_random_numbers(encoder: str) -> None:
    run = a_run(encoder, dropout=0.5)
    batch = next(run.epoch(skip=0)).to(run.device)
    drawn = torch.cuda.get_rng_state()
    first, first_gradients = loss_and_gradients(run, batch, records=True)
    after = torch.cuda.get_rng_state()
    other, _ = loss_and_gradients(run, batch, records=True)
    torch.cuda.set_rng_state(drawn)
    again, gradients = loss_and_gradients(run, batch, records=True)
    assert torch.equal(torch.cuda.get_rng_state(), after)
    assert torch.equal(first, again)
    assert all(map(torch.equal, first_gradients, gradients))
    assert not torch.equal(first, other)


@on_gpu
def test_shapes_beyond_the_most_are_computed(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "_MOST", 0)
    run = a_run(encoder, dropout=0.0)
    batch = next(run.epoch(skip=0)).to(run.device)
    recorded, _ = loss_and_gradients(run, batch, records=True)
    computed, _ = loss_and_gradients(run, batch, records=False)
    torch.testing.assert_close(recorded, computed)
