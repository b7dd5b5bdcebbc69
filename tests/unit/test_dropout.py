"""Dropout with random bits of its own: the right share, the right mean, and the same again from a seed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from core.models.encoders.fast_bert import Dropout, dropout, use_quick_dropout


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


def test_the_gradient_drops_the_same() -> None:
    values = torch.rand(30, 7).add_(1).requires_grad_()
    dropped = dropout(values, 0.4)
    dropped.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, dropped.detach() / values.detach())
    assert {0.0} < set(values.grad.flatten().tolist())


def test_nothing_is_dropped_where_nothing_should_be() -> None:
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


def test_layers_are_replaced_and_the_state_is_as_before() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.2), nn.Sequential(nn.Dropout(0.4), nn.Linear(3, 1)))
    module[2].eval()
    names = list(module.state_dict())
    use_quick_dropout(module)
    found = [layer for layer in module.modules() if isinstance(layer, nn.Dropout)]
    assert [(type(layer), layer.p, layer.training) for layer in found] == [
        (Dropout, 0.2, True),
        (Dropout, 0.4, False),
    ]
    assert list(module.state_dict()) == names
