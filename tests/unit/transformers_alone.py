"""Small encoders of Transformers, batches of random subwords, and gradients to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    CamembertConfig,
    ElectraConfig,
    ModernBertConfig,
    PreTrainedConfig,
    RobertaConfig,
)

from core.encoding.batches import Batch

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


FAMILY: dict[str, PreTrainedConfig] = {
    "bert": BertConfig(**SIZES),
    "bert, one layer, relu": BertConfig(**SIZES | {"num_hidden_layers": 1, "hidden_act": "relu"}),
    "roberta": RobertaConfig(**SIZES, pad_token_id=1),
    "camembert": CamembertConfig(**SIZES, pad_token_id=1),
    "electra": ElectraConfig(**SIZES, embedding_size=16),
    "electra, projected": ElectraConfig(**SIZES, embedding_size=8),
}


MODERN = ModernBertConfig(
    **{name: SIZES[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers")},
    **{"num_attention_heads": 2, "intermediate_size": 24, "pad_token_id": 0, "cls_token_id": 2},
    **{"sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
)


LENGTHS = {"different": (5, 1, 9, 3), "alike": (6, 6), "one subword": (1,)}


def model(config: PreTrainedConfig, seed: int = 0) -> Any:
    """With weights far from their small start: biases, position and type embeddings count."""
    torch.manual_seed(seed)
    inner = AutoModel.from_config(config)
    with torch.no_grad():
        for weight in inner.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return inner.train()


def batch(lengths: Sequence[int], pad: int, *, seed: int = 0, labels: Sequence[int] = (3, 4)) -> Batch:
    """Random subwords; about every second one begins a word."""
    random = torch.Generator().manual_seed(seed)
    sizes = torch.tensor(lengths)
    mask = torch.arange(int(sizes.max())) < sizes[:, None]
    ids = torch.randint(2, 60, mask.shape, generator=random)
    real = mask.flatten().nonzero().flatten()
    rows = real[torch.rand(len(real), generator=random) < 0.6]
    rows = rows if len(rows) else real[:1]
    return Batch(
        ids=torch.where(mask, ids, pad),
        mask=mask.long(),
        places=torch.zeros_like(ids),
        real=real,
        lengths=sizes,
        counts=torch.bincount(rows // mask.shape[1], minlength=len(lengths)),
        rows=rows,
        words=torch.arange(len(rows)),
        labels=torch.stack(
            [torch.randint(0, size, (len(rows),), generator=random) for size in labels], dim=1
        ),
    )


def plain(inner: Any, given: Batch) -> Tensor:
    """What Transformers makes of it, padding and all: (B, L, D)."""
    states: Tensor = inner(input_ids=given.ids, attention_mask=given.mask).last_hidden_state
    return states


def gradients(inner: Any) -> dict[str, Tensor]:
    """Those there are, and none left behind."""
    left = {name: weight.grad for name, weight in inner.named_parameters() if weight.grad is not None}
    inner.zero_grad()
    return left


def assert_alike(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for weight, gradient in theirs.items():
        scale = max(1.0, gradient.abs().max().item())
        torch.testing.assert_close(ours[weight], gradient, rtol=0, atol=1e-5 * scale, msg=weight)


class Table(nn.Module):
    """States (B, L, D) that are trained, for any batch of the right size."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.features = shape[-1]
        self.states = nn.Parameter(torch.randn(shape))

    def forward(self, batch: Batch) -> Tensor:
        return self.states

    def words(self, batch: Batch) -> Tensor:
        return self.states.flatten(0, 1)[batch.rows]
