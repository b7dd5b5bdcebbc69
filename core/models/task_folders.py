"""Tasks as folders that Transformers loads by itself: the encoder with one head, each in its own class."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.models.encoders.task_embedding import TaskEmbeddedTransformer
from core.models.model_io import inner_of, inner_tokenizer
from core.models.saved_tagger import SavedTagger
from core.registry import reads_words
from core.tasks import KINDS, TaskKind
from core.wording import all_of

_SMALL = 2.0**-14
"""The factor by which the layer before the classifier of a whole text shrinks its input.

Its tanh is then the identity but for a share of (x · 2⁻¹⁴)² / 3, less than float32 rounds for |x| < 9; a
power of two changes no digit.
"""


def save_task_folders(
    tagger: SavedTagger, folders: Mapping[str, Path], facts: Mapping[str, object]
) -> str | None:
    """Write each named task as a folder for Transformers.

    It has the encoder with the task's rows of the heads, a config with labels, and the tokenizer. Task
    embeddings become a part of its biases.

    Tasks on words are for `AutoModelForTokenClassification`, tasks on whole texts and on pairs that are read
    together for `AutoModelForSequenceClassification`. `facts` go into each config under `mrnlab`, beside what
    a reader of texts must know. Returns None, or what has no folder and why: no class of Transformers
    computes the same. The others are written.
    """
    reasons: dict[str, list[str]] = {}
    for task, folder in folders.items():
        if reason := _lack(tagger, KINDS[tagger.schemes[task]]) or _save_task(tagger, task, folder, facts):
            reasons.setdefault(reason, []).append(task)
    sentences = []
    for reason, tasks in reasons.items():
        some = f"{all_of(tasks)} {'has' if len(tasks) == 1 else 'have'} no folder"
        lost = "there is no folder per task" if len(tasks) == len(folders) else some
        sentences.append(f"{reason}, so {lost}; MRN Lab itself loads the model from `checkpoint`.")
    return " ".join(sentences) or None


def _lack(tagger: SavedTagger, kind: TaskKind) -> str:
    """Why no class of Transformers computes this tagger's task of this kind; empty where one may."""
    encoder = tagger.model.encoder
    of_words = kind.reads == "words"
    kept = isinstance(encoder, TaskEmbeddedTransformer) and not encoder.folds
    apart = kind.reads == "pair" and tagger.config.pair_encoding == "apart"
    for is_there, what in (
        (reads_words(tagger.config.encoder), "with an encoder that reads words"),
        (tagger.config.bilstm_hidden is not None, "with a BiLSTM on top"),
        (of_words and bool(tagger.model.chains), "with a CRF"),
        (kept, "with task embeddings that are no part of a bias"),
        (apart, "that reads the texts of a pair apart (pair_encoding=together is exported)"),
        (
            not of_words and tagger.model.pooled_by == "mean",
            "of the mean over a text's subwords (pooling=cls is exported)",
        ),
    ):
        if is_there:
            return f"Transformers has no class for {_classification(kind)} {what}"
    return ""


def _classification(kind: TaskKind) -> str:
    return "token classification" if kind.reads == "words" else "text classification"


def _save_task(tagger: SavedTagger, task: str, folder: Path, facts: Mapping[str, object]) -> str:
    """Why the class of Transformers does not compute the tagger's task; empty where it is written."""
    import transformers

    encoder, kind = tagger.model.encoder, KINDS[tagger.schemes[task]]
    number = list(tagger.labels).index(task)
    inner = inner_of(encoder)
    state = (
        encoder.folded_state(number) if isinstance(encoder, TaskEmbeddedTransformer) else inner.state_dict()
    )
    of_words = kind.reads == "words"
    loader = (
        transformers.AutoModelForTokenClassification
        if of_words
        else transformers.AutoModelForSequenceClassification
    )
    weight, bias = (value.detach() for value in tagger.model.heads.of(tagger.model.stacked.index(number)))
    if kind.is_number:
        low, high = tagger.scales[task]
        weight, bias = weight * (high - low), bias * (high - low) + low
    try:
        model = loader.from_config(_config(tagger, task, inner.config, kind, facts))
        problem = _problem(model, state, weight, bias, _set_words if of_words else _set_text)
    except ValueError:
        problem = "it offers none"
    if problem:
        return (
            f"Transformers has no class for {_classification(kind)} that computes what this run did over a "
            f"{inner.config.model_type} encoder ({problem})"
        )
    transformers.utils.logging.disable_progress_bar()  # commands print what they wrote
    model.eval().save_pretrained(folder)
    tokenizer = copy.deepcopy(inner_tokenizer(tagger.tokenizer))
    tokenizer.model_max_length = tagger.config.max_length
    tokenizer.save_pretrained(folder)
    return ""


def _config(
    tagger: SavedTagger, task: str, encoder_config: Any, kind: TaskKind, facts: Mapping[str, object]
) -> Any:
    """The config of the encoder with the labels of the task and notes for a reader."""
    from transformers import AutoConfig

    config = AutoConfig.for_model(**encoder_config.to_dict())
    config.id2label = dict(enumerate(tagger.labels[task]))
    config.label2id = {label: index for index, label in config.id2label.items()}
    if kind.reads == "words":
        read: dict[str, object] = {"label_of_word": "first subword"}
    else:
        config.problem_type = "regression" if kind.is_number else "single_label_classification"
        read = {"reads": kind.reads, "pooling": tagger.model.pooled_by}
    config.mrnlab = {
        **facts,
        "task": task,
        "scheme": tagger.schemes[task],
        "max_length": tagger.config.max_length,
        "truecase": tagger.config.truecase,
        **read,
    }
    return config


def _problem(
    model: Any,
    encoder_state: Mapping[str, Tensor],
    weight: Tensor,
    bias: Tensor,
    set_head: Callable[[Any, Tensor, Tensor], str],
) -> str:
    """Puts the weights into a model of Transformers; returns the problem, empty where there is none.

    A model that computes other outputs is a problem too.
    """
    encoder = getattr(model, model.base_model_prefix)
    missing, _ = encoder.load_state_dict(encoder_state, strict=False)
    if wanted := [name for name in missing if "pooler" not in name]:
        return f"it wants weights for {wanted[0]}"
    model.eval()
    with torch.no_grad():
        if problem := set_head(model, weight, bias):
            return problem
        # Another activation in place of tanh would be seen, and attention that is other for a whole text.
        ids = torch.arange(5, 13)[None] % model.config.vocab_size
        right = nn.functional.linear(encoder(input_ids=ids).last_hidden_state, weight, bias)
        computed = model(input_ids=ids).logits
        expected = right if computed.dim() == right.dim() else right[:, 0]
        same = torch.allclose(computed, expected, rtol=1e-5, atol=1e-3 * float((right - bias).abs().max()))
    return "" if same else "its logits are not linear in the encoder's states"


def _set_words(model: Any, weight: Tensor, bias: Tensor) -> str:
    """A linear layer over the encoder."""
    above = [
        layer
        for name, layer in model.named_children()
        if name != model.base_model_prefix and list(layer.parameters())
    ]
    if len(above) != 1 or not isinstance(above[0], nn.Linear) or above[0].bias is None:
        return "its classifier is not one linear layer"
    above[0].weight.copy_(weight)
    above[0].bias.copy_(bias)
    return ""


def _set_text(model: Any, weight: Tensor, bias: Tensor) -> str:
    """A linear layer over [CLS], through the tanh layer that BERT's and RoBERTa's classes have before it."""
    head: Any = getattr(model, "classifier", None)
    pooler: Any = getattr(getattr(model, model.base_model_prefix), "pooler", None)
    if isinstance(head, nn.Linear) and hasattr(pooler, "dense"):
        dense, last = pooler.dense, head
    elif hasattr(head, "dense") and hasattr(head, "out_proj"):
        dense, last = head.dense, head.out_proj
    else:
        return "its head is not a tanh layer and a linear one"
    dense.weight.copy_(_SMALL * torch.eye(len(dense.weight)))
    dense.bias.zero_()
    last.weight.copy_(weight / _SMALL)
    last.bias.copy_(bias)
    return ""
