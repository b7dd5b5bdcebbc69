"""Training the rows that occur is training the whole vocabulary, with fewer numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from core.config import RunConfig
from core.models.encoders.fast_bert import TrainedRows, train_rows, whole_vocabulary
from core.models.encoders.transformer import Transformer, load_transformer
from core.models.model_io import saved_bytes
from core.models.tagger import Heads, MultiTaskTagger
from core.training.setup import make_optimiser
from tests.tiny import tiny_bert, tiny_roberta

STEPS = 20


def of_another_padding(folder: Path) -> Path:
    """A BERT whose configuration names a padding subword that its tokenizer does not have for it."""
    file = tiny_bert(folder) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pad_token_id": 15}))
    return folder


ENCODERS = {"bert": (tiny_bert, 0), "roberta": (tiny_roberta, 1), "another padding": (of_another_padding, 0)}


@pytest.fixture(scope="module", params=ENCODERS)
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """A tiny encoder's folder and its padding subword."""
    make, padding = ENCODERS[request.param]
    return str(make(tmp_path_factory.mktemp(request.param))), padding


def load(folder: str) -> Any:
    return load_transformer(folder, half=False).inner


def used_ids(padding: int) -> Tensor:
    """Two windows, one padded, whose words are a few of the vocabulary."""
    return torch.tensor([[2, 5, 9, 12, 3], [2, 7, 3, padding, padding]])


def trained(inner: Any, padding: int) -> MultiTaskTagger:
    """The tagger after some steps of a whole training, dropout included."""
    config = RunConfig.build(
        corpus="toy", tasks="a,b", paradigm="mtl", encoder="minilm", lr_encoder=1e-2, weight_decay=0.3
    )
    torch.manual_seed(1)
    model = MultiTaskTagger(Transformer(inner, half=False), Heads(16, [3, 2], init="default", dropout=0.1))
    optimiser, schedule = make_optimiser(model, config, STEPS + 5)
    ids = used_ids(padding)
    model.train()
    for _ in range(STEPS):
        states = inner(input_ids=ids, attention_mask=(ids != padding).long()).last_hidden_state
        optimiser.zero_grad()
        model.heads(states[:, :3].flatten(0, 1)).square().sum().backward()
        optimiser.step()
        schedule.step()
    return model.eval()


def test_all_weights_are_those_of_a_training_of_the_whole_and_are_saved_as_read(
    encoder: tuple[str, int], tmp_path: Path
) -> None:
    folder, padding = encoder
    expected = trained(load(folder), padding).state_dict()
    inner = load(folder)
    before = inner.get_input_embeddings().weight.detach().clone()
    rows = train_rows(inner, used_ids(padding).numpy())
    assert rows is not None
    assert len(rows.rows) == len(used_ids(padding).unique())
    model = trained(inner, padding)
    with torch.no_grad():
        read = rows(torch.arange(inner.config.vocab_size))
    with whole_vocabulary(inner):
        inner.save_pretrained(tmp_path)
        weights = model.state_dict()
        assert weights.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(weights[name], value, rtol=0, atol=1e-6, msg=name)
        # The test would see a row that is left as it was: the decay alone moves them by more than that.
        moved = (inner.get_input_embeddings().weight - before).abs().amax(dim=1)
        assert (moved[before.abs().amax(dim=1) > 0] > 1e-4).all()
    assert inner.get_input_embeddings() is rows
    usual = load_file(Path(folder) / "model.safetensors").keys()
    saved = load_file(tmp_path / "model.safetensors")
    assert saved.keys() == {name for name in usual if not name.startswith("pooler.")}
    assert torch.equal(saved["embeddings.word_embeddings.weight"], read)


def test_what_a_model_takes_on_the_disk_is_foreseen(encoder: tuple[str, int]) -> None:
    """With and without trained rows: the files have all of the vocabulary."""
    folder, padding = encoder
    transformer = load_transformer(folder, half=False)
    model = MultiTaskTagger(transformer, Heads(16, [3, 2], init="zeros", dropout=0))
    whole = saved_bytes(model)
    assert train_rows(transformer.inner, used_ids(padding).numpy()) is not None
    assert whole < saved_bytes(model) <= whole + 8  # one number more


def test_a_subword_that_never_occurred_is_refused_while_training(encoder: tuple[str, int]) -> None:
    folder, padding = encoder
    inner = load(folder)
    rows = train_rows(inner, used_ids(padding).numpy())
    assert rows is not None
    (never, *_) = set(range(inner.config.vocab_size)) - set(used_ids(padding).flatten().tolist())
    rows.eval()(torch.tensor([never]))
    with pytest.raises(IndexError):
        rows.train()(torch.tensor([never]))


def test_a_loaded_state_goes_on_decaying_at_its_own_rate(encoder: tuple[str, int]) -> None:
    """The optimiser's groups are new ones then."""
    rows = TrainedRows(nn.Embedding(4, 2), torch.tensor([1]))
    optimiser = torch.optim.AdamW([{"params": [nn.Parameter(torch.ones(1))]}, {"params": [rows.rows]}])
    rows.decay_with(optimiser)
    state = optimiser.state_dict()
    state["param_groups"][1] |= {"lr": 0.5, "weight_decay": 0.5}
    optimiser.load_state_dict(state)
    optimiser.step()
    optimiser.step()
    assert rows.decay.item() == 0.75**2


def nearly_all(inner: Any) -> Any:
    return inner, np.arange(inner.config.vocab_size)


def scaled(inner: Any) -> Any:
    class Scaled(nn.Embedding):
        """As some models have it."""

    inner.set_input_embeddings(Scaled(20, 16))
    return inner, np.arange(3)


def tied(inner: Any) -> Any:
    inner.decoder = nn.Linear(16, inner.config.vocab_size)
    inner.decoder.weight = inner.get_input_embeddings().weight
    return inner, np.arange(3)


@pytest.mark.parametrize("make", [nearly_all, scaled, tied])
def test_what_gains_nothing_or_is_used_otherwise_is_left_alone(encoder: tuple[str, int], make: Any) -> None:
    inner, used = make(load(encoder[0]))
    before = inner.get_input_embeddings()
    assert train_rows(inner, used) is None
    assert inner.get_input_embeddings() is before
