"""The encoder of a run, built from its description: tokenizers, shared layers, cached features and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from core.config import RunConfig
from core.corpora.assembly import SPLITS
from core.corpora.types import Corpus, Sentence
from core.encoding.encoded import EncodedText, TextWindows
from core.encoding.texts import word_forms
from core.encoding.tokenizer import SubwordTokenizer, Tokenizer, load_tokenizer
from core.encoding.words import WordTokenizer
from core.models.encoders import Encoder
from core.models.encoders.bilstm import BiLSTM
from core.models.encoders.fast_bert import train_rows
from core.models.encoders.frozen import FeatureTables, FrozenFeatures
from core.models.encoders.partial import TopLayers
from core.models.encoders.task_embedding import TaskEmbeddedTransformer, embed_tasks
from core.models.encoders.transformer import LazyTransformer, PooledBy, load_transformer, text_pooling
from core.models.sources import (
    check_max_length,
    check_training,
    left_to_right_note,
    local_copy,
    locate,
    signature,
)
from core.models.word_model import word_encoder
from core.paths import cache_dir
from core.registry import FROZEN, FULL, GRADIENT_BALANCING, reads_words
from core.wording import plural


@dataclass(frozen=True)
class Tokenizers:
    """`main` reads for the encoder, `context` for the context encoder, where the run has one."""

    main: Tokenizer
    context: SubwordTokenizer | None


@dataclass(frozen=True)
class BuiltEncoder:
    """The shared layers of a run on its device.

    features         states of layers that are not trained, by split; None where all are
    lookup           what looks these up in place of the encoder, or below its last layers
    pooled_by        what stands for a whole text
    fixed_weights    number of weights that only compute `features`
    fingerprint      of a transformer of which a part is trained
    """

    encoder: Encoder
    features: FeatureTables | None
    lookup: FrozenFeatures | None
    pooled_by: PooledBy
    fixed_weights: int
    fingerprint: str
    notes: tuple[str, ...]


def load_tokenizers(config: RunConfig, corpus: Corpus) -> Tokenizers:
    """The tokenizers of an encoder: over words all forms of the corpus; else the encoder's own."""
    main: Tokenizer
    if reads_words(config.encoder):
        main = WordTokenizer(
            word for split in SPLITS for sentence in corpus.split(split) for word in word_forms(sentence)
        )
    else:
        check_max_length(config)
        check_training(config)
        main = _subword_tokenizer(config.encoder)
    context = None if config.context_encoder is None else _subword_tokenizer(config.context_encoder)
    return Tokenizers(main, context)


def _subword_tokenizer(encoder: str) -> SubwordTokenizer:
    source = locate(encoder)
    files = signature(source)
    return load_tokenizer(source) if files is None else _cached_tokenizer(source, files)


@lru_cache(maxsize=2)
def _cached_tokenizer(source: str, signature: str) -> SubwordTokenizer:
    """The tokenizer of the last runs of this process, as long as its files have the same signature."""
    del signature  # part of the cache's key only
    return load_tokenizer(source)


def build_encoder(
    config: RunConfig,
    tokenizers: Tokenizers,
    sentences: Sequence[Sentence],
    text: EncodedText,
    texts: Sequence[TextWindows],
    *,
    tasks: int,
    half: bool,
    device: torch.device,
) -> BuiltEncoder:
    """The encoder of a run with this number of tasks.

    `sentences` and `text` are the training data, `texts` the whole texts of every split. Raises MRNLabError
    where the encoder cannot be read or trained so.
    """
    base, features, lookup = _frozen_layers(config, tokenizers, half, device)
    encoder, left_to_right, notes = _shared_layers(
        config, tokenizers.main, sentences, text, base, lookup, tasks=tasks, half=half, device=device
    )
    has_first = bool(tokenizers.main.prefix) and not left_to_right
    pooled_by, text_notes = _text_reading(config, texts, has_first=has_first)
    return BuiltEncoder(
        encoder,
        features,
        lookup,
        pooled_by,
        fixed_weights=0 if base is None else base.fixed_parameters,
        fingerprint="" if base is None or config.encoder_training == FROZEN else base.fingerprint,
        notes=(*notes, *text_notes),
    )


def _frozen_layers(
    config: RunConfig, tokenizers: Tokenizers, half: bool, device: torch.device
) -> tuple[LazyTransformer | None, FeatureTables | None, FrozenFeatures | None]:
    """The transformer, its cached states, and the module that looks these up unless batches carry them.

    All are None where every weight is trained.
    """
    trains_all = config.context_encoder is None and config.encoder_training == FULL
    if config.transformer is None or trains_all:
        return None, None, None
    base = LazyTransformer(config.transformer, half=half, device=device, top=config.top_layer_count)
    if tokenizers.context is not None:  # batches carry contextual vectors to the device
        tables = FeatureTables(base, tokenizers.context.pad, cache_dir("features"), torch.device("cpu"))
        return base, tables, None
    tables = FeatureTables(base, tokenizers.main.pad, cache_dir("features"), device)
    return base, tables, FrozenFeatures(base.features).to(device)


def _shared_layers(
    config: RunConfig,
    tokenizer: Tokenizer,
    sentences: Sequence[Sentence],
    text: EncodedText,
    base: LazyTransformer | None,
    lookup: FrozenFeatures | None,
    *,
    tasks: int,
    half: bool,
    device: torch.device,
) -> tuple[Encoder, bool, tuple[str, ...]]:
    """The shared layers on the device, whether they read left to right, and notes."""
    folder = None if config.transformer is None else local_copy(config.transformer)
    notes = () if folder is None else (f"The encoder {config.transformer} was read from {folder}.",)
    if isinstance(tokenizer, WordTokenizer):
        context_size = 0 if base is None else base.features
        words = [word for sentence in sentences for word in word_forms(sentence)]
        over_words, note = word_encoder(config, tokenizer, words, context_size)
        return over_words.to(device), False, (note, *notes)
    encoder: Encoder
    if lookup is not None and base is not None:
        encoder = TopLayers(lookup, *base.top_layers(), half=half) if base.top else lookup
        left_to_right = base.left_to_right
    else:
        transformer = load_transformer(config.encoder, half=half)
        left_to_right = transformer.reads_left_to_right()
        train_rows(transformer.inner, np.append(text.ids, tokenizer.pad))
        encoder = embed_tasks(transformer, tasks, config.task_embedding).to(device)
        # A recorded step has one pass in each direction: task embeddings pass forward once for each task, and
        # gradients of tasks are several passes backward.
        if encoder is transformer and config.balancing not in GRADIENT_BALANCING:
            transformer.record_steps()
        if isinstance(encoder, TaskEmbeddedTransformer):
            notes = (*notes, encoder.note)
    if config.bilstm_hidden is not None:
        encoder = BiLSTM(encoder, config.bilstm_hidden).to(device)
    if left_to_right:
        notes = (*notes, left_to_right_note(config.encoder))
    return encoder, left_to_right, notes


def _text_reading(
    config: RunConfig, texts_of_splits: Sequence[TextWindows], *, has_first: bool
) -> tuple[PooledBy, tuple[str, ...]]:
    """The vector that represents a whole text, and notes on it.

    `has_first`: whether windows begin with a subword of the frame whose state knows the whole text.
    """
    if not texts_of_splits:
        return "cls", ()
    by: PooledBy
    if reads_words(config.encoder):
        by, reason = "mean", "for the encoder has no [CLS]"
    elif config.pooling != "auto":
        by, reason = config.pooling, "as asked for"
    else:
        by, reason = text_pooling(config.encoder), "as the encoder's own files say"
        if by == "cls" and not has_first:
            by, reason = "mean", "for the encoder has no first subword that reads all of it"
    vector = {"cls": "the state of its first subword", "mean": "the mean over its subwords"}[by]
    notes = [f"A text is represented by {vector}, {reason}."]
    if shortened := sum(int(texts.shortened.sum()) for texts in texts_of_splits):
        notes.append(
            f"{plural(shortened, 'text')} longer than {config.max_length} subwords lost the end; set "
            "max_length higher to read more."
        )
    return by, tuple(notes)
