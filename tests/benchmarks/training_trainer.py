"""Hugging Face Trainer as its documentation sets up token classification, here for several tasks at once.

One encoder and one linear head per task in one model; labels stand on words' first subwords, the others have
-100; batches are padded to their longest sentence.
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
from transformers import (
    AutoModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.data.data_collator import pad_without_fast_tokenizer_warning
from transformers.trainer_callback import PrinterCallback
from transformers.trainer_pt_utils import get_length_grouped_indices
from transformers.utils import logging

from core.corpora.types import Sentence, Task
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from tests.benchmarks.training_job import Job
from tests.benchmarks.turns import Between

__all__ = ["Collator", "Model", "dataset_of", "quiet", "train_best", "train_fp32"]

_IGNORED = -100
_POOL = 50


class Model(nn.Module):
    """The encoder without a pooler, dropout, and a linear head for each task."""

    def __init__(self, source: str, labels: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(
            source, dtype=torch.float32, use_safetensors=True, add_pooling_layer=False
        )
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleList(nn.Linear(self.encoder.config.hidden_size, own) for own in labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The mean over tasks of their cross-entropies over words; `labels` is (B, L, T)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        states = self.dropout(states)
        losses = [
            nn.functional.cross_entropy(
                head(states).flatten(0, 1), labels[..., task].flatten(), ignore_index=_IGNORED
            )
            for task, head in enumerate(self.heads)
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass
class Collator:
    """As DataCollatorForTokenClassification: the tokenizer pads the subwords, labels get -100 there."""

    tokenizer: PreTrainedTokenizerBase
    multiple_of: int | None = None

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        subwords = [{name: one[name] for name in ("input_ids", "attention_mask")} for one in features]
        batch = pad_without_fast_tokenizer_warning(
            self.tokenizer, subwords, pad_to_multiple_of=self.multiple_of, return_tensors="pt"
        )
        width, tasks = batch["input_ids"].shape[1], len(features[0]["labels"][0])
        labels = torch.full((len(features), width, tasks), _IGNORED)
        for place, one in enumerate(features):
            labels[place, : len(one["labels"])] = torch.tensor(one["labels"])
        return {**batch, "labels": labels}


def dataset_of(
    sentences: Sequence[Sentence], tasks: Sequence[Task], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Dataset:
    """Columns input_ids, attention_mask, labels (L, T) and length, aligned as in Hugging Face's guide."""
    encoded = tokenizer(
        [list(one.tokens) for one in sentences],
        is_split_into_words=True,
        truncation=True,
        max_length=max_length,
        return_token_type_ids=False,
    )
    numbers = [{label: number for number, label in enumerate(task.labels)} for task in tasks]
    rows = []
    for place, sentence in enumerate(sentences):
        before = None
        row = []
        for word in encoded.word_ids(place):
            first = word is not None and word != before
            row.append(
                [own[sentence.labels[task.name][word]] for task, own in zip(tasks, numbers, strict=True)]
                if first
                else [_IGNORED] * len(tasks)
            )
            before = word
        rows.append(row)
    return Dataset.from_dict({**encoded, "labels": rows, "length": [len(row) for row in rows]})


def quiet() -> None:
    """Nothing of what Transformers prints while it loads: standard output is JSON here."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def train_best(job: Job, turns: Between) -> None:
    """With the stock options that made it fastest on such a machine (docs/performance.md tells of others):
    sentences of like length together, bfloat16 where the hardware has it, no gradient clipping and no look
    at each step's loss, which the other loops do without; on a GPU processes that read, and widths of 8.
    """
    cuda = job.device.startswith("cuda")
    options: dict[str, Any] = {
        "train_sampling_strategy": "group_by_length",
        "bf16": job.half,
        "weight_decay": job.config.weight_decay,
        "max_grad_norm": 0.0,
        "logging_nan_inf_filter": False,
    }
    if cuda:
        options |= {"dataloader_num_workers": 2, "dataloader_persistent_workers": True}
    _train(job, turns, options, multiple_of=8 if cuda and job.half else None)


def train_fp32(job: Job, turns: Between) -> None:
    """With nothing set but batch size, epochs and learning rate."""
    _train(job, turns, {})


def _train(job: Job, turns: Between, options: Mapping[str, Any], multiple_of: int | None = None) -> None:
    config, tasks = job.config, job.corpus.tasks
    source = locate(config.encoder)
    sentences = job.longest if turns.warming else [one for batch in job.sentences for one in batch]
    quiet()
    tokenizer = load_tokenizer(source).inner
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = (Trainer if turns.warming else _SameLengths)(
            model=Model(source, [len(task.labels) for task in tasks], config.dropout),
            args=TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=config.batch_size,
                num_train_epochs=config.epochs,
                learning_rate=config.lr_encoder,
                seed=config.seed,
                use_cpu=job.device == "cpu",
                # No checkpoint and no bar are written in any loop here; all columns are the model's.
                save_strategy="no",
                disable_tqdm=True,
                remove_unused_columns=False,
                **options,
            ),
            data_collator=Collator(tokenizer, multiple_of),
            train_dataset=dataset_of(sentences, tasks, tokenizer, config.max_length),
            callbacks=[_TakesTurns(turns)],
        )
        trainer.lengths = [sum(len(one.tokens) for one in batch) for batch in job.sentences]
        trainer.remove_callback(PrinterCallback)
        trainer.model.register_forward_pre_hook(_seen(turns), with_kwargs=True)
        turns.tell(
            precision="bf16" if options.get("bf16") else "fp32",
            threads=torch.get_num_threads(),
            options=dict(options),
        )
        trainer.train()


class _SameLengths(Trainer):
    """Trainer with its own batches in another order: grouped by length they come longest first within each 50
    of them, and no few steps would stand for an epoch. Here the batch of each step is as long, among all, as
    ours of that step is. Grouping is done in pools of 50 batches, as on a whole corpus.
    """

    lengths: Sequence[int]
    """Words of our batches."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if self.args.train_sampling_strategy == "random":
            return super()._get_train_sampler(train_dataset)
        own, size = list(self.train_dataset["length"]), self.args.train_batch_size
        places = get_length_grouped_indices(own, size, mega_batch_mult=_POOL)
        batches = [places[start : start + size] for start in range(0, len(places), size)]
        batches.sort(key=lambda batch: sum(own[place] for place in batch))
        ranks = np.argsort(np.argsort(np.resize(self.lengths, len(batches))))
        return [place for rank in ranks for place in batches[rank]]


class _TakesTurns(TrainerCallback):
    def __init__(self, turns: Between) -> None:
        self._turns = turns

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_kwargs: Any
    ) -> None:
        control.should_training_stop = self._turns.between()


def _seen(turns: Between) -> Any:
    """Tells of each batch that the model gets."""

    def before(_model: nn.Module, _args: Any, batch: Mapping[str, Tensor]) -> None:
        words = (batch["labels"][..., 0] != _IGNORED).sum()
        turns.saw(words, batch["attention_mask"].sum(), batch["input_ids"].numel())

    return before
