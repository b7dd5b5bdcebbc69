"""An encoder over words: from a run's description for a training, and from a checkpoint's folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from core.config import RunConfig
from core.encoding.batches import SUBWORDS_TO_PREDICT, Batches, Context
from core.encoding.encoded import EncodedText, encode
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.encoding.words import WordTokenizer, words_read
from core.models.encoders import Encoder
from core.models.encoders.dense import Dense
from core.models.encoders.frozen import CachedTransformer, shared_transformer
from core.models.encoders.lstm import StackedBiLSTM, word_stack
from core.models.encoders.transformer import load_transformer
from core.models.encoders.word_inputs import Inventory, WordInputs, inventory_of
from core.models.sources import locate, longest_window
from core.models.word_vectors import lookup, read_vectors
from core.wording import plural

INVENTORY = "words.json"
"""The file of a checkpoint that says which words and characters its rows are."""


def word_encoder(
    config: RunConfig, tokenizer: WordTokenizer, training_words: Sequence[str], context_size: int = 0
) -> tuple[StackedBiLSTM | Dense, str]:
    """The encoder that `config` describes, at its start, and a sentence on the words that have no vector.

    `tokenizer` has numbered all forms of the corpus. Raises ConfigError where the vectors cannot be read.
    """
    training_forms, forms = set(training_words), tokenizer.forms[1:]
    needed = {*forms, *map(str.lower, forms)}
    vectors = read_vectors(str(config.vectors), needed.__contains__)
    inventory = inventory_of(vectors, training_forms, forms)
    inputs = _inputs(config, tokenizer, inventory, vectors.dimension, context_size)
    inputs.start_from(vectors)
    places = dict.fromkeys(vectors.words, 0)
    missing = {form for form in training_forms if lookup(form, places) is None}
    words = sum(word in missing for word in training_words)
    note = (
        f"{Path(str(config.vectors)).name} has vectors of "
        f"{100 * (1 - words / max(1, len(training_words))):.1f}% of the training words, as written or else "
        f"in lower case. The other {plural(len(missing), 'form')} share the vector of unknown words."
    )
    return _above(config, inputs), note


def save_inventory(folder: Path, model: nn.Module) -> None:
    """Write the inventory of the model's word inputs, where it has any."""
    for part in model.modules():
        if isinstance(part, WordInputs):
            document = vars(part.inventory) | {"dimension": part.trained.shape[1]}
            (folder / INVENTORY).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


class ContextReader:
    """The transformer that computes contextual vectors of typed sentences."""

    def __init__(self, transformer: CachedTransformer, tokenizer: SubwordTokenizer, window: int) -> None:
        self.transformer, self.tokenizer, self._window = transformer, tokenizer, window

    def read(self, sentences: Sequence[Sequence[str]], text: EncodedText) -> Context:
        """The context of sentences that a WordTokenizer has split into `text`."""
        subwords = encode(sentences, self.tokenizer, self._window)
        no_labels = np.zeros((len(subwords.firsts), 0), dtype=np.int64)
        table = torch.zeros(len(no_labels), self.transformer.features)
        for batch in Batches(subwords, no_labels, 1, self.tokenizer.pad).by_length(
            SUBWORDS_TO_PREDICT["cpu"]
        ):
            table[batch.words] = self.transformer.words(batch)
        return Context(table, words_read(text))


def load_context(config: RunConfig, folder: Path) -> ContextReader | None:
    """The context encoder of a checkpoint's run, where it has one.

    It is the transformer that an export has put into the folder, or else the one it was trained with. Raises
    EncoderError.
    """
    if config.context_encoder is None:
        return None
    if (folder / "encoder").is_dir():
        source = str(folder / "encoder")
        transformer = CachedTransformer(load_transformer(source, half=False).eval())
    else:
        source, transformer = config.context_encoder, shared_transformer(config.context_encoder)
    return ContextReader(
        transformer, load_tokenizer(locate(source)), longest_window(source, config.max_length)
    )


def load_word_encoder(config: RunConfig, folder: Path, context_size: int) -> tuple[Encoder, WordTokenizer]:
    """The encoder of a checkpoint without its weights, and its tokenizer.

    Raises OSError, ValueError and KeyError where the folder is damaged.
    """
    document = json.loads((folder / INVENTORY).read_text(encoding="utf-8"))
    dimension = int(document.pop("dimension"))
    inventory = Inventory(**{name: tuple(document[name]) for name in document})
    tokenizer = WordTokenizer(())
    inputs = _inputs(config, tokenizer, inventory, dimension, context_size)
    inputs.source = config.vectors
    return _above(config, inputs), tokenizer


def _inputs(
    config: RunConfig, tokenizer: WordTokenizer, inventory: Inventory, dimension: int, context_size: int
) -> WordInputs:
    return WordInputs(
        tokenizer,
        inventory,
        dimension,
        tuned=config.vectors_training == "tuned",
        with_capitals=bool(config.capitals),
        with_characters=config.characters == "cnn",
        context_size=context_size,
    )


def _above(config: RunConfig, inputs: WordInputs) -> StackedBiLSTM | Dense:
    """All layers between word inputs and heads."""
    stack, shared, own = word_stack(config, inputs), config.shared_dense or 0, config.task_dense or 0
    return Dense(stack, shared, own, len(config.tasks)) if shared or own else stack
