"""A trained tagger as Transformers folders: one per task, which `AutoModelForTokenClassification` loads.

Of each task the encoder with its rows of the heads. Whether such a folder answers as the tagger does is not
taken for granted: it is loaded again and asked.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.encoding.batches import IGNORED, Batches
from core.encoding.encoded import EncodedText, encode
from core.errors import MRNLabError
from core.models.encoders import Remembering, Transformer
from core.models.saved_tagger import SavedTagger

__all__ = ["save_encoder", "save_task_folders"]

_PROBE = ("Angela", "Merkel", "visited", "Boston", ",", "didn't", "she", "?")
_ALIKE = 1e-5


def save_task_folders(
    tagger: SavedTagger, folders: Mapping[str, Path], facts: Mapping[str, object]
) -> str | None:
    """Writes each named task's folder: config with labels, safetensors, tokenizer.

    `facts` go into each config under `mrnlab`, beside what a reader of sentences must know. Returns None, or
    a sentence on why Transformers has no class for this tagger; nothing is written then.
    """
    if tagger.config.bilstm_hidden is not None:
        return (
            "Transformers has no class for an encoder with a BiLSTM on top, so there is no folder per task; "
            "MRN Lab itself loads the model from `checkpoint`."
        )
    inner = _inner(tagger)
    try:
        for task, rows in zip(tagger.labels, tagger.model.heads.slices, strict=True):
            if task in folders:
                own = {**facts, **_facts(tagger, task)}
                _save(tagger, inner, tagger.labels[task], rows, folders[task], own)
                _check_alike(tagger, rows, folders[task])
    except _Unlike as error:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        return (
            f"Transformers has no class for token classification that computes what this run did over a "
            f"{inner.config.model_type} encoder ({error}), so there is no folder per task; MRN Lab itself "
            "loads the model from `checkpoint`."
        )
    return None


def save_encoder(tagger: SavedTagger, folder: Path) -> None:
    """Writes the tagger's transformer and tokenizer as a Transformers folder."""
    _inner(tagger).save_pretrained(folder)
    tagger.tokenizer.inner.save_pretrained(folder)


class _Unlike(Exception):
    """Why a class of Transformers is not this tagger."""


def _inner(tagger: SavedTagger) -> Any:
    """The Transformers model under the heads."""
    encoder: Any = tagger.model.encoder
    encoder = getattr(encoder, "below", encoder)
    if isinstance(encoder, Remembering):
        encoder = encoder.transformer
    if not isinstance(encoder, Transformer):
        raise MRNLabError(f"A {type(encoder).__name__} holds no transformer to export.")
    return encoder.inner


def _facts(tagger: SavedTagger, task: str) -> dict[str, object]:
    config = tagger.config
    return {
        "task": task,
        "scheme": tagger.schemes[task],
        "max_length": config.max_length,
        "truecase": config.truecase,
        "label_of_word": "first subword",
    }


def _save(
    tagger: SavedTagger, inner: Any, labels: Any, rows: slice, folder: Path, facts: Mapping[str, object]
) -> None:
    from transformers import AutoModelForTokenClassification

    config = copy.deepcopy(inner.config)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.mrnlab = dict(facts)
    try:
        model = AutoModelForTokenClassification.from_config(config)
    except ValueError as error:
        raise _Unlike("it offers none") from error
    base = getattr(model, model.base_model_prefix)
    missing, _ = base.load_state_dict(inner.state_dict(), strict=False)
    if odd := [name for name in missing if "pooler" not in name]:
        raise _Unlike(f"it wants weights for {odd[0]}")
    classifier = _classifier(model)
    with torch.no_grad():
        classifier.weight.copy_(tagger.model.heads.weight[rows])
        classifier.bias.copy_(tagger.model.heads.bias[rows])
    model.eval().save_pretrained(folder)
    tokenizer = copy.deepcopy(tagger.tokenizer.inner)
    tokenizer.model_max_length = tagger.config.max_length
    tokenizer.save_pretrained(folder)


def _classifier(model: nn.Module) -> nn.Linear:
    """The one linear layer that such a model has on top of its encoder."""
    layers = [layer for layer in model.children() if isinstance(layer, nn.Linear)]
    if len(layers) != 1 or layers[0].bias is None:
        raise _Unlike("its classifier is not one linear layer")
    return layers[0]


@torch.inference_mode()
def _check_alike(tagger: SavedTagger, rows: slice, folder: Path) -> None:
    """Raises _Unlike where the folder, loaded, does not answer a sentence as the tagger does."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    text = encode([_PROBE], tagger.tokenizer, tagger.config.max_length)
    model = AutoModelForTokenClassification.from_pretrained(
        folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if text.windows == 1:
        read = tokenizer([list(_PROBE)], is_split_into_words=True)["input_ids"][0]
        if list(read) != text.ids.tolist():
            raise _Unlike("its tokenizer reads words differently")
    ours, batch = _logits(tagger, text)
    theirs = model(input_ids=batch.ids, attention_mask=batch.mask).logits
    theirs = theirs.reshape(-1, theirs.shape[-1])[batch.rows]
    difference = (theirs - ours[:, rows]).abs().max().item()
    if not difference <= _ALIKE * max(1.0, ours.abs().max().item()):
        raise _Unlike(f"its logits differ by {difference:.1g}")


def _logits(tagger: SavedTagger, text: EncodedText) -> tuple[Tensor, Any]:
    """All tasks' logits of a short text's words, and the one batch that it is."""
    blank = np.full((len(text.firsts), len(tagger.labels)), IGNORED, dtype=np.int64)
    (batch,) = Batches(text, blank, text.windows, tagger.tokenizer.pad).by_length()
    return tagger.model(batch), batch
