"""A pre-trained transformer, from a package, a folder or the Hub."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.errors import EncoderError
from core.models.dropout import use_quick_dropout
from core.models.encoders.base import at_words
from core.models.encoders.packed import packs, real_states, word_states
from core.models.encoders.places import Places
from core.models.harmless import INDEX, check_description, check_index
from core.models.registry import ENCODERS, base_name
from core.models.sources import locate, verify_packaged_weights

__all__ = ["Transformer", "load_transformer"]


class Transformer(nn.Module):
    """The last hidden states of a Transformers model, computed in bfloat16 where `half` asks for it.

    Of BERT's family on a processor without padding (`packed`). Any other model, and a GPU, which small steps
    keep waiting for its next operation, as Transformers does it, in a quarter fewer operations.
    """

    def __init__(self, inner: Any, *, half: bool) -> None:
        super().__init__()
        self.inner = inner
        self.features = int(inner.config.hidden_size)
        self.half_precision = half
        self._packs = packs(inner)
        use_quick_dropout(inner)

    def forward(self, batch: Batch) -> Tensor:
        with self._precision(batch):
            if self._computes_packed(batch):
                return _padded(real_states(self.inner, batch).float(), batch)
            states: Tensor = self.inner(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
            return states.float()

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords."""
        if not self._computes_packed(batch):
            return at_words(self(batch), batch)
        with self._precision(batch):
            return word_states(self.inner, batch).float()

    def _computes_packed(self, batch: Batch) -> bool:
        return self._packs and batch.ids.device.type == "cpu"

    def _precision(self, batch: Batch) -> torch.autocast:
        return torch.autocast(batch.ids.device.type, dtype=torch.bfloat16, enabled=self.half_precision)


def _padded(states: Tensor, batch: Batch) -> Tensor:
    """The states (S, D) of real subwords as (B, L, D), zeros for padding."""
    return Places(batch.real, batch.ids.numel()).spread(states).view(*batch.ids.shape, -1)


def load_transformer(encoder: str, *, half: bool) -> Transformer:
    """The named encoder with its pre-trained weights in float32, without a pooler.

    Raises EncoderError where it cannot be loaded, and where packaged weights are not the official ones.
    """
    from transformers import MODEL_MAPPING, AutoConfig, AutoModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # a worker's log is read by people
    source = locate(encoder)
    spec = ENCODERS.get(base_name(encoder))
    if spec and spec.source.startswith("package:"):
        verify_packaged_weights(spec.source.removeprefix("package:"))
    try:
        # float32 is asked for: the default would keep a half-precision checkpoint as it is.
        # The pooler reads [CLS] alone and would be weights that no task trains.
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        check_description(config.to_dict() | {"attn_implementation": config._attn_implementation}, source)
        check_index(_index(source), source)
        accepted = inspect.signature(MODEL_MAPPING[type(config)].__init__).parameters
        extra = {"add_pooling_layer": False} if "add_pooling_layer" in accepted else {}
        with _quiet("transformers"):
            inner, report = AutoModel.from_pretrained(
                source,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                **extra,
            )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        if "trust_remote_code" in str(error):
            raise EncoderError(
                f"The encoder '{base_name(encoder)}' comes with Python code of its own, which is never run "
                "here; choose one whose architecture Transformers has."
            ) from None
        raise EncoderError(f"The encoder '{base_name(encoder)}' cannot be loaded: {error}") from error
    # Transformers fills what is missing with random numbers and only mentions it.
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
    if missing:
        raise EncoderError(
            f"The encoder '{base_name(encoder)}' lacks weights of its architecture: {', '.join(missing[:3])}."
        )
    return Transformer(inner, half=half)


def _index(source: str) -> Path:
    """Where the index of an encoder's shards is, or would be."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if Path(source).is_dir():
        return Path(source) / INDEX
    try:
        return Path(hf_hub_download(source, INDEX))
    except EntryNotFoundError:  # also where the Hub cannot be asked, and no copy has one
        return Path(INDEX)


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Errors only from that logger, for a while: its report on left-out poolers is looked at here instead."""
    chosen = logging.getLogger(logger)
    before = chosen.level
    chosen.setLevel(logging.ERROR)
    try:
        yield
    finally:
        chosen.setLevel(before)
