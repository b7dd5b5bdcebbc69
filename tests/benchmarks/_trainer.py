"""Hugging Face Trainer as its documentation sets up token classification, here for several tasks at once.

One model has the encoder and a linear head per task; labels stand on words' first subwords, other positions
have -100; batches are padded to their longest sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedTokenizerBase, Trainer, TrainerCallback, TrainingArguments
from transformers.data.data_collator import pad_without_fast_tokenizer_warning
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_pt_utils import get_length_grouped_indices

from core.config import RunConfig
from core.corpora.types import Sentence, Task
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from tests.benchmarks._published import IGNORED
from tests.benchmarks._turns import Turns

_POOL = 50
"""Batches among which Trainer sorts sentences by length."""


class Model(nn.Module):
    """The encoder without a pooler, dropout, and a linear head for each task."""

    def __init__(self, source: str, labels: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(
            source, dtype=torch.float32, use_safetensors=True, add_pooling_layer=False
        )
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleList(nn.Linear(self.encoder.config.hidden_size, count) for count in labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The mean over tasks of their cross-entropies over words; `labels` is (B, L, T)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        states = self.dropout(states)
        losses = [
            nn.functional.cross_entropy(head(states).flatten(0, 1), gold.flatten(), ignore_index=IGNORED)
            for head, gold in zip(self.heads, labels.unbind(-1), strict=True)
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass
class Collator:
    """DataCollatorForTokenClassification for several tasks."""

    tokenizer: PreTrainedTokenizerBase
    multiple_of: int | None = None

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        subwords = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in rows]
        batch = pad_without_fast_tokenizer_warning(
            self.tokenizer, subwords, pad_to_multiple_of=self.multiple_of, return_tensors="pt"
        )
        labels = torch.full((*batch["input_ids"].shape, len(rows[0]["labels"][0])), IGNORED)
        for number, row in enumerate(rows):
            labels[number, : len(row["labels"])] = torch.tensor(row["labels"])
        return {**batch, "labels": labels}


def encode(
    sentences: Sequence[Sentence], tasks: Sequence[Task], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Dataset:
    """Columns input_ids, attention_mask, labels (L, T) and length, aligned as in Hugging Face's guide."""
    encoded = tokenizer(
        [list(sentence.tokens) for sentence in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=max_length,
        return_token_type_ids=False,
    )
    ids = {task.name: {label: id_ for id_, label in enumerate(task.labels)} for task in tasks}
    rows = []
    for number, sentence in enumerate(sentences):
        words = np.array([-1 if word is None else word for word in encoded.word_ids(number)])
        first = (words >= 0) & np.diff(words, prepend=-1).astype(bool)
        word_labels = [[ids[task.name][label] for label in sentence.labels[task.name]] for task in tasks]
        labels = np.full((len(words), len(tasks)), IGNORED)
        labels[first] = np.array(word_labels).T[words[first]]
        rows.append(labels.tolist())
    return Dataset.from_dict({**encoded, "labels": rows, "length": [len(row) for row in rows]})


def train(
    config: RunConfig,
    sentences: Sequence[Sentence],
    tasks: Sequence[Task],
    lengths: Sequence[int],
    turns: Turns,
    options: Mapping[str, Any],
    multiple_of: int | None,
) -> None:
    """Train with the stock Trainer and these options. `lengths` are the words of MRN Lab's batches."""
    source = locate(config.encoder)
    tokenizer = load_tokenizer(source).inner
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = (Trainer if turns.warming_up else _SameLengths)(
            model=Model(source, [len(task.labels) for task in tasks], config.dropout),
            args=TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=config.batch_size,
                num_train_epochs=config.epochs,
                learning_rate=config.lr_encoder,
                seed=config.seed,
                # No loop here writes a checkpoint or a progress bar; the model takes all columns.
                save_strategy="no",
                disable_tqdm=True,
                remove_unused_columns=False,
                **options,
            ),
            data_collator=Collator(tokenizer, multiple_of),
            train_dataset=encode(sentences, tasks, tokenizer, config.max_length),
            callbacks=[_TakeTurns(turns)],
        )
        trainer.lengths = lengths
        trainer.remove_callback(PrinterCallback)

        def count(_model: nn.Module, _args: Any, batch: Mapping[str, Tensor]) -> None:
            words = (batch["labels"][..., 0] != IGNORED).sum()
            turns.count(words, batch["attention_mask"].sum(), batch["input_ids"].numel())

        trainer.model.register_forward_pre_hook(count, with_kwargs=True)
        trainer.train()


class _SameLengths(Trainer):
    """Trainer with its own batches in another order. Grouped by length they come longest first within each
    pool of 50, so that the first steps would not represent an epoch. Here the batch of each step has the same
    rank in length as MRN Lab's batch of that step.
    """

    lengths: Sequence[int]

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if self.args.train_sampling_strategy == "random":
            return super()._get_train_sampler(train_dataset)
        lengths, size = list(self.train_dataset["length"]), self.args.train_batch_size
        indices = get_length_grouped_indices(lengths, size, mega_batch_mult=_POOL)
        batches = [indices[start : start + size] for start in range(0, len(indices), size)]
        # A shorter batch stays last: elsewhere it would shift the sentences of all batches after it.
        rest = batches.pop() if len(indices) % size else []
        batches.sort(key=lambda batch: sum(lengths[index] for index in batch))
        ranks = np.argsort(np.argsort(np.resize(self.lengths, len(batches))))
        return [index for rank in ranks for index in batches[rank]] + rest


class _TakeTurns(TrainerCallback):
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def on_step_begin(self, _args: Any, _state: Any, control: Any, **_kwargs: Any) -> None:
        control.should_training_stop = self._turns.wait()
