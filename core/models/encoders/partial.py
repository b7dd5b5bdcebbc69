"""Between a frozen and a fine-tuned transformer: its last layers trained over cached states."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from core.encoding.batches import Batch
from core.errors import EncoderError
from core.models.encoders import Encoder
from core.models.encoders.fast_bert import Places, through_layers
from core.models.encoders.frozen import CachedTransformer
from core.models.encoders.transformer import HalfPrecision, load_transformer, precision


class TopLayers(HalfPrecision):
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
        places = Places(batch.real, batch.ids.numel())
        return places.scatter(self._states(batch)).view(*batch.ids.shape, -1)

    def words(self, batch: Batch) -> Tensor:
        return self._states(batch, words=True)

    def _states(self, batch: Batch, *, words: bool = False) -> Tensor:
        real = self.below(batch).flatten(0, 1).index_select(0, batch.real)
        layers: Sequence[Any] = list(self.layers)
        with precision(batch, half=self.half_precision):
            return through_layers(layers, self._heads, batch, real, words=words).float()

    def whole(self) -> Any:
        """A Transformers model of all layers, with copies of the weights.

        Raises EncoderError where the lower layers are missing.
        """
        if not isinstance(self.below, CachedTransformer):
            raise EncoderError("The layers below the trained ones are not in memory; load the checkpoint.")
        inner = copy.deepcopy(self.below.transformer.inner)
        inner.encoder.layer.extend(copy.deepcopy(self.layers))
        return inner


def load_top(encoder: str, top: int) -> TopLayers:
    """The named encoder with copies of its last layers, to put trained weights into.

    All models that use the lower layers share them in memory. Raises EncoderError.
    """
    below, layers = _shared_below(encoder, top)
    heads = int(below.transformer.inner.config.num_attention_heads)
    return TopLayers(below, copy.deepcopy(layers), heads, half=False)


@lru_cache(maxsize=2)
def _shared_below(encoder: str, top: int) -> tuple[CachedTransformer, nn.ModuleList]:
    transformer = load_transformer(encoder, half=False).eval()
    layers = transformer.take_top(top)
    return CachedTransformer(transformer), layers
