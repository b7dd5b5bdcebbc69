"""Tiny encoders made on the spot: real Transformers folders, nothing downloaded."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
)

_MERGES = [("Ġ", "E"), ("ĠE", "U"), ("E", "U")]
_SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
WORDS = [
    "EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", ".", "a", "un", "##want", "##ed",
]  # fmt: skip


def tiny_bert(folder: Path, *, positions: int = 64, layers: int = 2) -> Path:
    """A BERT of so many layers and 16 features with random but seeded weights."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary = {word: index for index, word in enumerate(words)}
    BertTokenizerFast(vocab=vocabulary, do_lower_case=False).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        **_SIZES, vocab_size=len(vocabulary), num_hidden_layers=layers, max_position_embeddings=positions
    )
    BertModel(config).save_pretrained(folder)
    return folder


def tiny_roberta(folder: Path) -> Path:
    """A RoBERTa whose byte-level tokenizer tells "EU" from " EU"."""
    folder.mkdir(parents=True, exist_ok=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), "EU", "ĠE", "ĠEU"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    RobertaTokenizerFast(vocab=vocabulary, merges=_MERGES).save_pretrained(folder)
    torch.manual_seed(0)
    config = RobertaConfig(
        **_SIZES,
        vocab_size=len(vocabulary),
        type_vocab_size=1,
        num_hidden_layers=1,
        max_position_embeddings=66,
        pad_token_id=1,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder
