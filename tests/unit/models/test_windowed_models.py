"""Windows of words and dense layers: the same as a plain loop; and where the configuration refuses them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from core.encoding.batches import Batch, Batches
from core.encoding.encoded import encode
from core.encoding.words import WordTokenizer
from core.models.encoders import at_words, parts_of
from core.models.encoders.dense import Dense
from core.models.encoders.lstm import SCLSTM, StackedBiLSTM, WindowedBiLSTM
from core.training.setup import set_up
from tests.toys import config, corpus


class Vectors(torch.nn.Module):
    """Five random numbers for each word form."""

    features = 5

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(40, 5)

    def forward(self, batch: Batch) -> Tensor:
        states: Tensor = self.table(batch.ids)
        return states

    def words(self, batch: Batch) -> Tensor:
        return at_words(self(batch), batch)


SENTENCES = [list("abcdefg"), list("h"), list("ijab"), list("ba")]


@pytest.fixture
def batch() -> Batch:
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    tokenizer = WordTokenizer("abcdefghij")
    text = encode(SENTENCES, tokenizer, 32)
    (made,) = Batches(text, np.zeros((len(text.firsts), 0), np.int64), 9, tokenizer.pad).by_length()
    return made


@pytest.fixture(autouse=True)
def _float32_again() -> Any:
    yield
    torch.set_default_dtype(torch.float32)


def linear(module: torch.nn.Module) -> torch.nn.Linear:
    return cast(torch.nn.Linear, module)


@pytest.mark.parametrize("size", [3, 5, 99])
def test_a_window_is_a_sequence_of_its_own(size: int, batch: Batch) -> None:
    below = Vectors()
    model = WindowedBiLSTM(below, 4, size, dropout=0.0)
    number = WordTokenizer("abcdefghij").forms.index
    expected = []
    for sentence in SENTENCES:
        for place in range(len(sentence)):
            start = max(0, place - size // 2)
            window = sentence[start : place + size // 2 + 1]
            inputs = below.table(torch.tensor([[number(word) for word in window]]))
            expected.append(model.lstm[0](inputs)[0][0, place - start])
    states = model.words(batch)[batch.words.argsort()]  # sentence after sentence
    torch.testing.assert_close(states, torch.stack(expected), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(model(batch).flatten(0, 1)[batch.rows], model.words(batch))
    if size == 99:  # no sentence is longer
        whole = StackedBiLSTM(below, 4, 1, dropout=0.0)
        whole.load_state_dict(model.state_dict())
        torch.testing.assert_close(whole.words(batch), model.words(batch))


@pytest.mark.parametrize("by_task", [False, True])
def test_dense_layers_are_the_products_they_say(by_task: bool, batch: Batch) -> None:
    below = SCLSTM(Vectors(), 3, 1, 0.0, tasks=2) if by_task else StackedBiLSTM(Vectors(), 3, 1, 0.0)
    model = Dense(below, shared=2, own=1, tasks=2)
    states = below.words(batch)
    assert model.features == states.shape[-1]
    for task, result in enumerate(model.words(batch)):
        for word, row in zip(states[task] if by_task else states, result, strict=True):
            value = word
            of_task = list(cast(torch.nn.ModuleList, model.own[0]))[task]
            for layer in map(linear, (*model.shared, of_task)):
                value = (layer.weight @ value + layer.bias).clamp(min=0)
            torch.testing.assert_close(row, value, rtol=1e-12, atol=1e-12)
    everywhere = model(batch)
    assert everywhere.shape == (2, *batch.ids.shape, model.features)
    torch.testing.assert_close(everywhere.flatten(1, 2)[:, batch.rows], model.words(batch))
    shared = Dense(below, shared=1, own=0, tasks=2)
    assert shared.words(batch).dim() == (3 if by_task else 2)


@pytest.mark.parametrize("drawn", ["together", "uniform"])
def test_a_run_trains_them_at_the_rate_of_the_bilstm(drawn: str) -> None:
    made = set_up(
        config("bilstm", window=3, shared_dense=1, task_dense=2, bilstm_hidden=8, draw_tasks=drawn), corpus()
    )
    part_of_weight = parts_of(made.model)
    parts = {name: part_of_weight[weight] for name, weight in made.model.named_parameters()}
    dense = [name for name in parts if "shared" in name or "own" in name]
    assert len(dense) == 2 + 2 * 2 * len(made.facts.tasks)
    assert {parts[name] for name in dense} == {"bilstm"}
    batch = next(made.epoch(skip=0))
    losses, counts = made.model.losses(made.model(batch), batch)
    losses.sum().backward()
    trained = {name for name, weight in made.model.named_parameters() if weight.grad is not None}
    assert ("encoder.own.1.0.weight" in trained) == (counts[0] > 0)
