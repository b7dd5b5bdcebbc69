"""Encoders on real subwords alone, BiLSTM and dropout give what Transformers and torch give."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, DebertaV2Config, PreTrainedConfig

from core.encoding.batches import IGNORED
from core.models.encoders.bilstm import BiLSTM, read_packed
from core.models.encoders.fast_bert import Dropout, Places, dropout, packs, use_quick_dropout
from core.models.encoders.transformer import Transformer
from core.models.tagger import Heads, MultiTaskTagger
from tests.unit.transformers_alone import (
    FAMILY,
    LENGTHS,
    MODERN,
    SIZES,
    Table,
    assert_alike,
    batch,
    gradients,
    model,
    plain,
)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", FAMILY)
def test_states_and_gradients_are_those_of_transformers(
    name: str, lengths: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = FAMILY[name]
    inner = model(config)
    assert packs(inner)
    given = batch(LENGTHS[lengths], config.pad_token_id)
    encoder = Transformer(inner, half=False)
    expected = plain(inner, given).flatten(0, 1)
    outcomes = {"real": encoder(given).flatten(0, 1)[given.real], "words": encoder.words(given)}
    monkeypatch.setattr(Transformer, "computes_packed", lambda _self, _batch: False)  # as on a GPU
    outcomes["padded"] = encoder(given).flatten(0, 1)[given.real]
    for kind, at in (("real", given.real), ("words", given.rows), ("padded", given.real)):
        torch.testing.assert_close(outcomes[kind], expected[at], rtol=0, atol=1e-5)
        towards = torch.randn_like(expected[at])
        (expected[at] * towards).sum().backward(retain_graph=True)
        right = gradients(inner)
        (outcomes[kind] * towards).sum().backward()
        assert_alike(gradients(inner), right)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_attention_with_dropout_differs_by_the_dropout_alone(name: str) -> None:
    """So small a share that nothing is dropped takes the way that is spelt out."""
    config = type(FAMILY[name])(**FAMILY[name].to_dict() | {"attention_probs_dropout_prob": 1e-7})
    inner, given = model(config), batch(LENGTHS["different"], config.pad_token_id)
    words, expected = Transformer(inner, half=False).words(given), plain(inner, given).flatten(0, 1)
    torch.testing.assert_close(words, expected[given.rows], rtol=0, atol=1e-5)
    words.square().sum().backward()
    ours = gradients(inner)
    expected[given.rows].square().sum().backward()
    assert_alike(ours, gradients(inner))


def test_a_padding_subword_in_the_text_is_read() -> None:
    config = FAMILY["roberta"]
    inner, given = model(config), batch((5, 8), 1)
    given.ids[0, 2] = 1
    expected = plain(inner, given).flatten(0, 1)[given.rows]
    torch.testing.assert_close(Transformer(inner, half=False).words(given), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "electra, projected"])
def test_bfloat16_is_as_near_as_transformers_comes(name: str) -> None:
    inner, given = model(FAMILY[name]).eval(), batch((5, 1, 9, 3), 0)
    exact = plain(inner, given).flatten(0, 1)[given.rows]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs = plain(inner, given).flatten(0, 1)[given.rows].float()
    ours = Transformer(inner, half=True).words(given)
    assert ours.dtype == torch.float32
    assert 0 < (ours - exact).abs().mean() < 1.5 * (theirs - exact).abs().mean()


@pytest.mark.parametrize(
    "config",
    [
        MODERN,
        DebertaV2Config(**SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        BertConfig(**SIZES, is_decoder=True),
    ],
    ids=["modernbert", "deberta", "decoder"],
)
def test_others_are_computed_by_transformers(config: PreTrainedConfig) -> None:
    inner, given = model(config).eval(), batch((5, 1, 9, 3), 0)
    assert not packs(inner)
    encoder = Transformer(inner, half=False)
    assert torch.equal(encoder(given), plain(inner, given))
    assert torch.equal(encoder.words(given), plain(inner, given).flatten(0, 1)[given.rows])


def test_a_tagger_learns_as_the_plain_loop_does() -> None:
    """Losses and gradients of encoder and heads, labels that are ignored among them."""
    inner, given = model(FAMILY["bert"]), batch((5, 1, 9, 3), 0)
    given.labels[1::3, 0] = IGNORED
    heads = Heads(16, (3, 4), init="default", dropout=0.0)
    tagger = MultiTaskTagger(Transformer(inner, half=False), heads)
    sums, counts = tagger.losses(tagger(given), given)
    (sums / counts).mean().backward()
    ours, our_heads = gradients(inner), gradients(heads)

    states = plain(inner, given)
    total = torch.zeros(())
    for task, (start, stop) in enumerate(((0, 3), (3, 7))):
        labels = torch.full(given.ids.shape, IGNORED)
        labels.view(-1)[given.rows] = given.labels[:, task]
        logits = torch.nn.functional.linear(states, heads.weight[start:stop], heads.bias[start:stop])
        total = total + torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) / 2
    torch.testing.assert_close((sums / counts).mean(), total, rtol=0, atol=1e-5)
    total.backward()
    assert_alike(ours, gradients(inner))
    assert_alike(our_heads, gradients(heads))


@pytest.mark.parametrize("size", [3, 7])
def test_scatter_and_gather_are_each_other_s_adjoint(size: int) -> None:
    """With every place taken, and with places that hold no row."""
    at = torch.tensor([2, 0, 1])
    places = Places(at, size)
    rows, everywhere = torch.randn(3, 2, requires_grad=True), torch.randn(size, 2, requires_grad=True)
    scattered, gathered = places.scatter(rows), places.gather(everywhere)
    assert torch.equal(scattered[at], rows)
    assert torch.equal(gathered, everywhere[at])
    towards = torch.zeros(size, 2).index_copy(0, at, torch.randn(3, 2))
    assert torch.equal(torch.autograd.grad((scattered * towards).sum(), rows)[0], towards[at])
    assert torch.equal(torch.autograd.grad((gathered * towards[at]).sum(), everywhere)[0], towards)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_a_bilstm_has_the_states_and_gradients_of_torch(lengths: tuple[int, ...]) -> None:
    given = batch(lengths, 0)
    encoder = BiLSTM(Table(*given.ids.shape, 5), 6)
    expected = read_packed(encoder.lstm, encoder.below(given), given.lengths).flatten(0, 1)[given.real]
    towards = torch.randn_like(expected)
    (expected * towards).sum().backward()
    right = gradients(encoder)
    states = encoder(given).flatten(0, 1)[given.real]
    (states * towards).sum().backward()
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)
    assert_alike(gradients(encoder), right)
    torch.testing.assert_close(encoder.words(given), encoder(given).flatten(0, 1)[given.rows])


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 0.9])
def test_the_share_is_dropped_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(0)
    values = torch.full((1000, 401), 2.0)
    dropped = dropout(values, share)
    spread = (share * (1 - share) / values.numel()) ** 0.5
    assert abs((dropped == 0).double().mean().item() - share) < 5 * spread + 1 / 2**17
    assert abs(dropped.double().mean().item() / 2 - 1) < 5 * spread / (1 - share)
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 2 / (1 - share)), rtol=1e-3, atol=0)
    # Neither rows nor columns nor neighbours go together.
    gone = (dropped == 0).double()
    for part in (gone.mean(dim=0), gone.mean(dim=1)):
        assert abs(part.std().item() / (share * (1 - share) * len(part) / gone.numel()) ** 0.5 - 1) < 0.2
    together = (gone[:, 1:] * gone[:, :-1]).mean().item()
    assert abs(together - share**2) < 6 * share / values.numel() ** 0.5


def test_the_gradient_of_dropout_drops_the_same() -> None:
    values = torch.rand(30, 7).add_(1).requires_grad_()
    dropped = dropout(values, 0.4)
    dropped.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, dropped.detach() / values.detach())
    assert {0.0} < set(values.grad.flatten().tolist())


def test_dropout_at_its_ends() -> None:
    values = torch.rand(4, 5)
    assert dropout(values, 0.0) is values
    assert Dropout(0.5).eval()(values) is values
    assert dropout(values[:0], 0.5).shape == (0, 5)
    assert dropout(values, 1.0).abs().sum() == 0
    assert dropout(values.bfloat16().t(), 0.5).dtype == torch.bfloat16


def test_the_state_of_torchs_generator_says_what_is_dropped() -> None:
    values = torch.ones(50, 20)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = dropout(values, 0.3), dropout(values, 0.3)
    assert not torch.equal(first, second)
    torch.set_rng_state(state)
    assert torch.equal(dropout(values, 0.3), first)
    assert torch.equal(dropout(values, 0.3), second)
    torch.manual_seed(4)
    assert not torch.equal(dropout(values, 0.3), first)


def test_dropout_layers_are_replaced_and_the_state_is_as_before() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.2), nn.Sequential(nn.Dropout(0.4), nn.Linear(3, 1)))
    module[2].eval()
    names = list(module.state_dict())
    use_quick_dropout(module)
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Dropout)]
    assert [type(layer) for layer in layers] == [Dropout, Dropout]
    assert [(layer.p, layer.training) for layer in layers] == [(0.2, True), (0.4, False)]
    assert list(module.state_dict()) == names
