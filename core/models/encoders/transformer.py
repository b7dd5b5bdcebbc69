"""A pre-trained transformer, from a package, a folder or the Hub."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.errors import EncoderError
from core.models.encoders import at_words
from core.models.encoders.cuda_graphs import RecordedLayers, RecordedShapes, square
from core.models.encoders.fast_bert import Places, embed, packs, real_states, use_quick_dropout, weight_count
from core.models.sources import (
    INDEX,
    check_description,
    check_index,
    check_top,
    locate,
    signature,
    verify_packaged_weights,
)
from core.registry import ENCODERS, base_name

PooledBy = Literal["cls", "mean"]
"""The vector that represents a whole text: its first subword's state, or the mean over all subwords."""

_POOLING = "1_Pooling/config.json"


class HalfPrecision(nn.Module):
    """A module that computes in bfloat16 where `half_precision` is true, with weights in float32."""

    half_precision: bool


@contextmanager
def in_float32(model: nn.Module) -> Iterator[None]:
    """A context in which the model computes in float32, also one that trains in bfloat16.

    A saved model tags so; a run's scores are then those of its saved model.
    """
    halved = [part for part in model.modules() if isinstance(part, HalfPrecision) and part.half_precision]
    tf32 = torch.backends.cudnn.allow_tf32  # which a GPU's LSTMs would use
    torch.backends.cudnn.allow_tf32 = False
    for part in halved:
        part.half_precision = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = tf32
        for part in halved:
            part.half_precision = True


class Transformer(HalfPrecision):
    """The last hidden states of a Transformers model, computed in bfloat16 where `half` is true.

    BERT's family is computed without padding on a CPU (core.models.encoders.fast_bert). Other models, and a
    GPU, which small steps keep waiting for its next operation, run Transformers' own code: a quarter fewer
    operations.
    """

    def __init__(self, inner: Any, *, half: bool) -> None:
        super().__init__()
        self.inner = inner
        self.features = int(inner.config.hidden_size)
        self.half_precision = half
        self._packs = packs(inner)
        self.records_steps = False
        self.recorded_shapes = RecordedShapes()
        self._recorded: RecordedLayers | None = None
        self._reads_types = (
            "token_type_ids" in inspect.signature(inner.forward).parameters
            and getattr(inner.config, "type_vocab_size", None) != 1
        )
        use_quick_dropout(inner)

    def forward(self, batch: Batch) -> Tensor:
        with precision(batch, half=self.half_precision):
            if self.computes_packed(batch):
                real = real_states(self.inner, batch).float()
                places = Places(batch.real, batch.ids.numel())
                return places.scatter(real).view(*batch.ids.shape, -1)
            types = {"token_type_ids": batch.types} if self._reads_types and batch.types is not None else {}
            if self.records_steps and self.training:
                self._recorded = self._recorded or RecordedLayers(self.inner.encoder, self.recorded_shapes)
                return self._recorded(embed(self.inner, input_ids=batch.ids, **types), batch.mask).float()
            mask = batch.mask
            if self._packs:  # on a GPU, which would be asked whether a mask (B, L) has padding
                mask = square(mask)
            states: Tensor = self.inner(input_ids=batch.ids, attention_mask=mask, **types).last_hidden_state
            return states.float()

    def record_steps(self) -> None:
        """Train with recorded layers (core.models.encoders.cuda_graphs) where these are BERT's, on a GPU."""
        self.records_steps = self._packs and next(self.parameters()).is_cuda

    def words(self, batch: Batch) -> Tensor:
        if not self.computes_packed(batch):
            return at_words(self(batch), batch)
        with precision(batch, half=self.half_precision):
            return real_states(self.inner, batch, words=True).float()

    def computes_packed(self, batch: Batch) -> bool:
        """Whether layers read the batch's real subwords alone."""
        return self._packs and batch.ids.device.type == "cpu"

    @torch.no_grad()
    def reads_left_to_right(self) -> bool:
        """Whether a subword's state depends on no later subword, as in a decoder; in evaluation mode."""
        first, other = self.inner(input_ids=torch.tensor([[5, 6], [5, 7]])).last_hidden_state[:, 0]
        return torch.allclose(first, other, rtol=0, atol=1e-5 * float(first.abs().max()))

    def take_top(self, top: int) -> nn.ModuleList:
        """Remove the last layers, so that this gives the states below them, and return them.

        Raises ConfigError where there are not more of them, and where they are not laid out as BERT's.
        """
        layers: Any = self.inner.encoder.layer if self._packs else ()
        check_top(top, self.inner.config.model_type, len(layers))
        below = len(layers) - top
        self.inner.encoder.layer = layers[:below]
        taken: nn.ModuleList = layers[below:]
        return taken


def precision(batch: Batch, *, half: bool) -> torch.autocast:
    """A context that computes in bfloat16 on the batch's device where `half` is true."""
    return torch.autocast(batch.ids.device.type, dtype=torch.bfloat16, enabled=half)


def load_transformer(encoder: str, *, half: bool) -> Transformer:
    """The named encoder with its pre-trained weights in float32, without a pooler.

    Raises EncoderError where it cannot be loaded, and where packaged weights are not the official ones.
    """
    source, name = locate(encoder), base_name(encoder)
    spec = ENCODERS.get(name)
    if spec and spec.source.startswith("package:"):
        verify_packaged_weights(spec.source.removeprefix("package:"))
    return Transformer(_pretrained(source, name), half=half)


def _pretrained(source: str, name: str) -> Any:
    """The model of Transformers at that folder or Hub id. Raises EncoderError."""
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, MODEL_MAPPING, AutoConfig
    from transformers.utils.logging import disable_progress_bar, set_verbosity_error

    disable_progress_bar()  # a worker's log is read by people
    set_verbosity_error()  # what it would report is checked here
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        check_description(config.to_dict() | {"attn_implementation": config._attn_implementation}, source)
        check_index(_file(source, INDEX), source)
        # Of an encoder with a decoder (T5) the former alone, where Transformers has a class for it.
        model_class = MODEL_FOR_TEXT_ENCODING_MAPPING.get(type(config), None) or MODEL_MAPPING[type(config)]
        # The pooler reads [CLS] alone and would be weights that no task trains.
        accepted = inspect.signature(model_class.__init__).parameters
        extra = {"add_pooling_layer": False} if "add_pooling_layer" in accepted else {}
        # Given a folder, Transformers would also open adapters that lie in it.
        inner, report = model_class.from_pretrained(
            None,
            config=config,
            state_dict=_weights(source),
            dtype=torch.float32,  # the default would keep a half-precision checkpoint as it is
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **extra,
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        if "trust_remote_code" in str(error):
            raise EncoderError(
                f"The encoder '{name}' comes with Python code of its own, which is never run here; choose "
                "one whose architecture Transformers has."
            ) from None
        raise EncoderError(f"The encoder '{name}' cannot be loaded: {error}") from error
    # Transformers fills what is missing with random numbers and only mentions it.
    if missing := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        raise EncoderError(
            f"The encoder '{name}' lacks weights of its architecture: {', '.join(missing[:3])}."
        )
    return inner


def text_pooling(encoder: str) -> PooledBy:
    """The vector of a whole text by the encoder's own convention: `mean` where its files say so, else `cls`.

    The files of sentence-transformers say it. Raises EncoderError where the file is damaged.
    """
    file = _file(locate(encoder), _POOLING)
    if not file.is_file():
        return "cls"
    try:
        pooling = json.loads(file.read_text(encoding="utf-8"))
        return "mean" if pooling["pooling_mode_mean_tokens"] else "cls"
    except (ValueError, KeyError, TypeError) as error:
        raise EncoderError(f"The file {_POOLING} of {encoder} cannot be read ({error}).") from error


def _weights(source: str) -> dict[str, Tensor]:
    """The encoder's weights, from its one file of safetensors or from all of its shards."""
    index = _file(source, INDEX)
    sharded = json.loads(index.read_text(encoding="utf-8"))["weight_map"] if index.is_file() else {}
    files = sorted(set(sharded.values())) or ["model.safetensors"]
    return {name: weight for file in files for name, weight in load_file(_file(source, file)).items()}


def _file(source: str, name: str) -> Path:
    """The path of an encoder's file, which need not exist."""
    if Path(source).is_dir():
        return Path(source) / name
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(hf_hub_download(source, name))
    except EntryNotFoundError:  # also where the Hub cannot be asked, and no copy has one
        return Path(name)


_KNOWN: dict[tuple[str | None, bool], tuple[int, str, str, int, bool]] = {}
"""The facts of an encoder by its files and precision, which runs need even where all features are cached.

Their number, the fingerprint, that in float32, the number of weights, whether it reads left to right.
"""


class LazyTransformer:
    """A pre-trained encoder, or its layers below the last `top`, loaded only when its weights are needed.

    `features`, `parameters`, `left_to_right` and the `fingerprint` of its weights and precision
    (`exact_fingerprint`: that in float32) are remembered for as long as the encoder's files have the same
    signature, so that a worker reads these once and not for each of a thousand runs: they are those of the
    whole encoder. Raises as `load_transformer`, and ConfigError where the encoder has no such last layers.
    """

    def __init__(self, encoder: str, *, half: bool, device: torch.device, top: int = 0) -> None:
        self._encoder, self.half, self._device, self.top = encoder, half, device, top
        self._loaded: Transformer | None = None
        self._layers = nn.ModuleList()
        files = signature(locate(encoder))
        if files is None or (files, half) not in _KNOWN:
            loaded = load_transformer(encoder, half=half)
            exact = _fingerprint(loaded, half=False)
            fingerprint = _fingerprint(loaded, half=True) if half else exact
            reads = loaded.reads_left_to_right()
            _KNOWN[files, half] = loaded.features, fingerprint, exact, weight_count(loaded), reads
            self._keep(loaded)
        facts = _KNOWN[files, half]
        self.features, self.fingerprint, self.exact_fingerprint, self.parameters, self.left_to_right = facts

    def load(self) -> Transformer:
        """The encoder on the device, in evaluation mode; in memory from then on."""
        if self._loaded is None:
            self._keep(load_transformer(self._encoder, half=self.half))
        assert self._loaded is not None
        return self._loaded

    @property
    def fixed_parameters(self) -> int:
        """The number of weights without the last `top` layers, which must be loaded."""
        return self.parameters - weight_count(self._layers)

    def top_layers(self) -> tuple[nn.ModuleList, int]:
        """The last layers, with their pre-trained weights, and their number of attention heads."""
        heads = int(self.load().inner.config.num_attention_heads)
        return self._layers, heads

    def release(self) -> None:
        """Release the loaded weights: all needed states are computed."""
        self._loaded, self._layers = None, nn.ModuleList()

    def _keep(self, loaded: Transformer) -> None:
        if self.top:
            self._layers = loaded.take_top(self.top)
        self._loaded = loaded.to(self._device).eval()


def _fingerprint(encoder: Transformer, *, half: bool) -> str:
    """Hash of an encoder's weights and of the precision that it computes in."""
    digest = hashlib.sha256(str(half).encode())
    for name, value in encoder.inner.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
