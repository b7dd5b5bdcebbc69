"""Between a frozen and a fine-tuned transformer: its last layers trained over cached states, and adapters."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.errors import EncoderError
from core.models.encoders import Encoder
from core.models.encoders.fast_bert import Places, through_layers
from core.models.encoders.frozen import CachedTransformer
from core.models.encoders.transformer import Transformer, load_transformer, precision

_SCALE = 2
"""α / r (Hu et al., 2022): what an adapter's product of matrices is multiplied by. Saved runs rely on it."""
_ATTENTION = {
    "query",
    "value",
    "q_lin",
    "v_lin",
    "query_proj",
    "value_proj",
    "q_proj",
    "v_proj",
    "q",
    "v",
    "Wqkv",
}
_A, _B = ".lora_A.default.weight", ".lora_B.default.weight"


class TopLayers(nn.Module):
    """The last layers of a transformer of BERT's family, over the states (B, L, D) that `below` gives.

    Layers read real subwords alone, on every device. `heads` is their number of attention heads; they compute
    in bfloat16 where `half` is true.
    """

    def __init__(self, below: Encoder, layers: nn.ModuleList, heads: int, *, half: bool) -> None:
        super().__init__()
        self.below = below
        self.layers = layers
        self.features = below.features
        self.half_precision = half
        self._heads = heads

    def forward(self, batch: Batch) -> Tensor:
        """The states (B, L, D), zeros or states of padding where there is padding."""
        places = Places(batch.real, batch.ids.numel())
        return places.scatter(self._states(batch)).view(*batch.ids.shape, -1)

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords."""
        return self._states(batch, words=True)

    def _states(self, batch: Batch, *, words: bool = False) -> Tensor:
        real = self.below(batch).flatten(0, 1).index_select(0, batch.real)
        layers: Sequence[Any] = list(self.layers)
        with precision(batch, half=self.half_precision):
            return through_layers(layers, self._heads, batch, real, words=words).float()

    def whole(self) -> Any:
        """A Transformers model of all layers, with copies of the weights. Raises EncoderError where those
        below are not there.
        """
        if not isinstance(self.below, CachedTransformer):
            raise EncoderError("The layers below the trained ones are not in memory; load the checkpoint.")
        inner = copy.deepcopy(self.below.transformer.inner)
        inner.encoder.layer.extend(copy.deepcopy(self.layers))
        return inner


def load_top(encoder: str, top: int) -> TopLayers:
    """The named encoder with copies of its last layers, to put trained weights into. The layers below are one
    in memory for all that use them. Raises EncoderError.
    """
    below, layers = _shared_below(encoder, top)
    heads = int(below.transformer.inner.config.num_attention_heads)
    return TopLayers(below, copy.deepcopy(layers), heads, half=False)


@lru_cache(maxsize=2)
def _shared_below(encoder: str, top: int) -> tuple[CachedTransformer, nn.ModuleList]:
    transformer = load_transformer(encoder, half=False).eval()
    layers = transformer.take_top(top)
    return CachedTransformer(transformer), layers


def adapt(transformer: Transformer, rank: int) -> None:
    """Give a transformer low-rank adapters in attention (Hu et al., 2022), the only weights that are trained
    and part of its state from now on.

    They adapt queries and values, or all of attention's input where that is one matrix. Raises EncoderError
    where the encoder has no linear layers of the names that these usually have.
    """
    from peft import LoraConfig, inject_adapter_in_model

    inner = transformer.inner
    targets = [
        name
        for name, part in inner.named_modules()
        if name.rpartition(".")[2] in _ATTENTION and isinstance(part, nn.Linear)
    ]
    if not targets:
        raise EncoderError(
            f"No adapters are known for an encoder of type {inner.config.model_type}; set encoder_training "
            "to full or frozen."
        )
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=_SCALE * rank, target_modules=targets), inner)
    hooked: Any = transformer  # torch has no types of these
    hooked.register_state_dict_post_hook(_keep_adapters)
    hooked.register_load_state_dict_post_hook(_expect_adapters)


def _keep_adapters(_module: nn.Module, state: dict[str, Tensor], prefix: str, _metadata: object) -> None:
    for name in [name for name in state if name.startswith(prefix) and not is_adapter(name)]:
        del state[name]


def _expect_adapters(_module: nn.Module, incompatible: Any) -> None:
    incompatible.missing_keys[:] = [
        name for name in incompatible.missing_keys if ".inner." not in name or is_adapter(name)
    ]


def is_adapter(name: str) -> bool:
    """Whether the weight of that name is one of an adapter."""
    return name.endswith((_A, _B))


@torch.no_grad()
def merge_adapters(inner: Any, state: Mapping[str, Tensor]) -> None:
    """Add the adapters in a saved state to the weights of a Transformers model without any.

    Raises KeyError, ValueError and RuntimeError where they do not fit it.
    """
    modules = dict(inner.named_modules())
    for name in state:
        if name.endswith(_A):
            place = name.removesuffix(_A)
            linear = modules[place.partition("inner.")[2]]
            if not isinstance(linear, nn.Linear):
                raise ValueError(f"no adapter belongs at {place}")
            linear.weight += _SCALE * state[place + _B] @ state[name]
