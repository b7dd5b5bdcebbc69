"""BERT from its own files: the weights and operations of Transformers' class, without importing it.

That import takes a third of a run's start (docs/adr/0035-a-lean-start.md). Other kinds of models, and files
that do not hold exactly these weights, are left to Transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

_WEIGHTS = "model.safetensors"
_NEEDED = (
    *("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),
)
_OTHER_MODELS = ("is_decoder", "add_cross_attention", "quantization_config", "chunk_size_feed_forward")


class _Settings(SimpleNamespace):
    """The values of a config.json, as attributes."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Bert(nn.Module):
    """BERT without a pooler, its modules named as Transformers names them."""

    def __init__(self, config: _Settings) -> None:
        super().__init__()
        self.config: Any = config
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> SimpleNamespace:
        """`last_hidden_state` (B, L, D) of ids (B, L), whose mask is 0 where there is padding."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        states = self.embeddings(input_ids, positions, token_type_ids)
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None]
        layers: Any = self.encoder.layer
        for layer in layers:
            states = layer(states, seen, self.config.num_attention_heads)
        return SimpleNamespace(last_hidden_state=states)

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, embeddings: nn.Module) -> None:
        self.embeddings.word_embeddings = embeddings

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder that Transformers and `read_bert` load."""
        folder.mkdir(parents=True, exist_ok=True)
        described = {**self.config.to_dict(), "architectures": ["BertModel"], "dtype": "float32"}
        described.pop("torch_dtype", None)
        (folder / "config.json").write_text(json.dumps(described, indent=2), encoding="utf-8")
        state = {name: value.contiguous() for name, value in self.state_dict().items()}
        save_file(state, folder / _WEIGHTS, metadata={"format": "pt"})


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """The file's weights come at once; random ones would take time, and torch's compiler to make."""


def _embedding(rows: int, size: int, padding: int | None = None) -> nn.Embedding:
    return nn.Embedding(rows, size, padding, _weight=torch.empty(rows, size))


class _Embeddings(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embeddings: nn.Module = _embedding(config.vocab_size, size, config.pad_token_id)
        self.position_embeddings = _embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = _embedding(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, position_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        states = self.word_embeddings(input_ids) + self.token_type_embeddings(types)
        normed: Tensor = self.LayerNorm(states + self.position_embeddings(position_ids))
        dropped: Tensor = self.dropout(normed)
        return dropped


class _Attention(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        size = config.hidden_size
        self.self = nn.Module()
        self.self.query = _Linear(size, size)
        self.self.key = _Linear(size, size)
        self.self.value = _Linear(size, size)
        self.self.dropout = nn.Dropout(config.attention_probs_dropout_prob)
        self.output = _Output(size, config)


class _Intermediate(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.dense = _Linear(config.hidden_size, config.intermediate_size)

    def forward(self, states: Tensor) -> Tensor:
        return nn.functional.gelu(self.dense(states))


class _Output(nn.Module):
    def __init__(self, size: int, config: Any) -> None:
        super().__init__()
        self.dense = _Linear(size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dropout(self.dense(states)) + before)
        return normed


class _Layer(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config.intermediate_size, config)

    def forward(self, states: Tensor, seen: Tensor | None, heads: int) -> Tensor:
        attention: Any = self.attention.self
        query, key, value = (
            part(states).unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in (attention.query, attention.key, attention.value)
        )
        p = attention.dropout.p if attention.training else 0.0
        read = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=p)
        attended = self.attention.output(read.transpose(1, 2).flatten(2), states)
        result: Tensor = self.output(self.intermediate(attended), attended)
        return result


def read_bert(folder: Path) -> Bert | None:
    """The model in a folder, in evaluation mode; None where it is none that this module computes.

    Raises SafetensorError and OSError where the file of the weights cannot be read.
    """
    file, weights = folder / "config.json", folder / _WEIGHTS
    if not file.is_file() or not weights.is_file():
        return None
    try:
        described = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    if not (
        isinstance(described, dict)
        and described.get("model_type") == "bert"
        and described.get("hidden_act") == "gelu"
        and described.get("position_embedding_type", "absolute") == "absolute"
        and all(described.get(name) is not None for name in _NEEDED)
        and not any(described.get(name) for name in _OTHER_MODELS)
    ):
        return None
    state = {
        name: value
        for name, value in load_file(weights).items()
        if not name.startswith("pooler.") and name != "embeddings.position_ids"
    }
    # Checked first: a description may be of any size, or no number.
    layers = len({name.split(".")[2] for name in state if name.startswith("encoder.layer.")})
    if described["num_hidden_layers"] != layers:
        return None
    try:
        if described["hidden_size"] % described["num_attention_heads"]:
            return None
        with torch.device("meta"):  # no memory for weights that are replaced
            model = Bert(_Settings(**described))
    except (TypeError, ValueError, RuntimeError, ZeroDivisionError):
        return None  # Transformers says what is wrong
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in state.items()} != shapes:
        return None
    model.load_state_dict({name: value.float() for name, value in state.items()}, assign=True)
    return model.eval()
