"""A tiny encoder of any type that Transformers has: random weights, and a tokenizer as the type has it."""

from __future__ import annotations

import inspect
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    CONFIG_MAPPING,
    MODEL_MAPPING,
    TOKENIZER_MAPPING,
    BertTokenizer,
    PreTrainedTokenizerFast,
)

from tests.tiny import WORDS

_NAMES = {
    2: "n_head n_heads n_layer n_layers num_attention_heads num_decoder_layers num_heads num_hidden_layers "
    "num_key_value_heads num_layers",
    32: "d_model dim embedding_size hidden_size input_embedding_size intra_bottleneck_size n_embd "
    "output_embedding_size true_hidden_size",
    64: "d_ff d_inner ffn_dim hidden_dim intermediate_size n_positions",
    16: "d_kv head_dim",
    8: "attention_window",
    1: "layers_block_size",
    66: "max_position_embeddings",
}
_SIZES = {name: size for size, names in _NAMES.items() for name in names.split()}
"""What configurations call their sizes; each type takes those that it knows."""

_LETTERS = string.ascii_lowercase
# How Qwen and Llama 3 split a text.
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s+(?!\S)|\s+"
)
_MERGES = [("Ġ", "E"), ("ĠE", "U"), ("E", "U")]
_WHOLE_WORDS = [word for word in WORDS if not word.startswith("##")]


def tiny_encoder(folder: Path, model_type: str, **values: Any) -> Path:
    """A model of that type, of two layers and 32 features; its configuration has `values` too.

    The configuration names its own padding subword, as published ones do, unless `values` name another.
    """
    config_class = CONFIG_MAPPING[model_type]
    tokenizer = tiny_tokenizer(model_type)
    known = config_class().to_dict() | dict.fromkeys(config_class.attribute_map)
    sizes = {name: size for name, size in _SIZES.items() if name in known}
    special = {
        name: number
        for name in ("pad_token_id", "bos_token_id", "eos_token_id")
        if (number := getattr(tokenizer, name)) is not None
    }
    config = config_class(**(sizes | special | {"vocab_size": len(tokenizer)} | values))
    torch.manual_seed(0)
    tokenizer.save_pretrained(folder)
    MODEL_MAPPING[config_class](config).save_pretrained(folder)
    return folder


def tiny_tokenizer(model_type: str) -> Any:
    """A tokenizer of the class that Transformers has for the type, which knows a few words."""
    own: Any = TOKENIZER_MAPPING.get(CONFIG_MAPPING[model_type], None)
    if model_type == "roformer":  # its own class reads Chinese, with a package that need not be there
        own = BertTokenizer
    if own is None or own is PreTrainedTokenizerFast:
        return _byte_level(framed=model_type != "llama")
    options: dict[str, int] = {"extra_ids": 0} if model_type == "t5" else {}
    empty = own(**options)
    kind = type(empty.backend_tokenizer.model)
    head = sorted(empty.get_vocab(), key=empty.get_vocab().__getitem__)
    if kind is models.BPE:
        pieces = [*head, *sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, _MERGES)]
        return own(vocab=_numbered(pieces), merges=_MERGES)
    if kind is models.WordPiece:
        return own(vocab=_numbered([*head, *WORDS, *map(str.lower, WORDS), *_LETTERS]))
    if "unk_id" in inspect.signature(own).parameters:
        options["unk_id"] = head.index(empty.unk_token)
    scored = dict.fromkeys([*head, "▁", *(f"▁{word}" for word in _WHOLE_WORDS), *_LETTERS, *"EU'."])
    return own(vocab=[(piece, 0.0 if piece in head else -100 / len(piece)) for piece in scored], **options)


def _byte_level(*, framed: bool) -> Any:
    """Bytes, merged within what a pattern finds, as Llama 3 has them: a leading space is part of a word.

    Without `framed` only the beginning is marked, and there is no subword for padding.
    """
    special = {"bos_token": "<|begin|>", "eos_token": "<|end|>"} | (
        {"pad_token": "<|pad|>"} if framed else {}
    )
    vocabulary = _numbered(
        [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, _MERGES), *special.values()]
    )
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=_MERGES))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    single = "<|begin|>:0 $A:0" + (" <|end|>:0" if framed else "")
    backend.post_processor = processors.TemplateProcessing(
        single=single,
        pair=f"{single} <|begin|>:1 $B:1",
        special_tokens=[(name, vocabulary[name]) for name in special.values()],
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def _numbered(pieces: Sequence[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
