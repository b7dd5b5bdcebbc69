"""The published MRN's training loop as its program has it (dissertation, appendix A.1 to A.5).

Every sentence is padded to the limit when it is read, heads and their dropout are computed position by
position into tensors of zeros, the weights are joined from zeros at each step, each step's loss is printed,
and every ten batches three dense SVDs follow (`tests.benchmarks.published`). Its `cuda()` calls go to the
run's device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModel, get_scheduler

from core.corpora.types import Corpus
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from core.mrn.alignments import LabelCounts, align
from tests.benchmarks.published import Published
from tests.benchmarks.training_job import Job
from tests.benchmarks.training_trainer import dataset_of, quiet
from tests.benchmarks.turns import Between

__all__ = ["Model", "Padded", "algebra", "loss_of", "train_published"]

_STRENGTH = 0.05
_UPDATE_EVERY = 10
_IGNORED = -100


class Padded(Dataset[dict[str, Tensor]]):
    """Each sentence padded to `longest` subwords, in floating-point numbers, when it is asked for."""

    def __init__(self, rows: Sequence[dict[str, Any]], tasks: Sequence[str], longest: int) -> None:
        self._rows, self._tasks, self._longest = rows, tasks, longest

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        row = self._rows[index]
        spare = torch.zeros(self._longest - len(row["input_ids"]))
        item = {
            name: torch.cat((torch.FloatTensor(row[name]), spare)) for name in ("input_ids", "attention_mask")
        }
        for task, name in enumerate(self._tasks):
            labels = torch.FloatTensor([of_word[task] for of_word in row["labels"]])
            item[name] = torch.cat((labels, spare + _IGNORED))
        return item


class Model(nn.Module):
    """The encoder, its pooler included, and a head for each task with dropout behind it."""

    def __init__(self, source: str, labels: Sequence[int], longest: int) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(source, dtype=torch.float32, use_safetensors=True)
        features = self.encoder.config.hidden_size
        self.linears = nn.ModuleList(nn.Linear(features, own) for own in labels)
        self.dropout = nn.Dropout(0.1)
        self._labels, self._longest = tuple(labels), longest

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Logits (B, L, C_t) and a clone of the weight (C_t, D) of each task."""
        embeddings = self.encoder(input_ids, attention_mask=attention_mask)[0]
        weights = [linear.weight.clone() for linear in self.linears]
        size = input_ids.shape[0]
        logits = [torch.zeros((size, self._longest, own), device=input_ids.device) for own in self._labels]
        for place in range(self._longest):
            for own, linear in zip(logits, self.linears, strict=True):
                own[:, place, :] = self.dropout(linear(embeddings[:, place, :]))
        return logits, weights


def algebra(corpus: Corpus, features: int, device: str) -> Published:
    """The published prior of these tasks; their labels are kept apart."""
    labels = [task.labels for task in corpus.tasks]
    total = sum(map(len, labels))
    apart: NDArray[np.float64] = np.zeros((total, total))
    counts = LabelCounts(tuple(task.name for task in corpus.tasks), tuple(labels), apart)
    return Published(align("disjoint", counts), features, _STRENGTH, device)


def loss_of(
    model: Model, batch: dict[str, Tensor], tasks: Sequence[str], prior: Published
) -> tuple[Tensor, Tensor]:
    """The total loss, and the joined weights (r, D) that its penalty was computed from."""
    device = next(model.parameters()).device
    ids = batch["input_ids"].to(device, dtype=torch.long)
    mask = batch["attention_mask"].to(device, dtype=torch.long)
    logits, weights = model(ids, mask)
    heads = torch.cat(weights)
    loss = prior.penalty(heads)
    for name, own in zip(tasks, logits, strict=True):
        target = batch[name].reshape(-1).type(torch.LongTensor).to(device)
        predicted = own.reshape(-1, own.shape[-1])
        loss = loss + nn.CrossEntropyLoss(ignore_index=_IGNORED)(predicted, target) / len(tasks)
    return loss, heads


def train_published(job: Job, turns: Between) -> None:
    """In float32, as published. A tenth of one update is counted for each step, whenever it comes."""
    config, tasks = job.config, [task.name for task in job.corpus.tasks]
    source = locate(config.encoder)
    quiet()
    torch.manual_seed(config.seed)
    model = Model(source, [len(task.labels) for task in job.corpus.tasks], config.max_length).to(job.device)
    tokenizer = load_tokenizer(source).inner
    sentences = [one for batch in job.sentences for one in batch]
    rows = dataset_of(sentences, job.corpus.tasks, tokenizer, config.max_length).to_list()
    loader = DataLoader(Padded(rows, tasks, config.max_length), batch_size=config.batch_size, shuffle=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.lr_encoder, weight_decay=config.weight_decay)
    schedule = get_scheduler(
        "linear",
        optimiser,
        num_warmup_steps=0,
        num_training_steps=config.epochs * len(job.corpus.train) // config.batch_size,
    )
    prior = algebra(job.corpus, model.encoder.config.hidden_size, job.device)
    turns.tell(precision="fp32", threads=torch.get_num_threads())
    model.train()
    for _ in range(config.epochs):
        for batch in loader:
            if turns.between():
                return
            turns.saw(
                (batch[tasks[0]] != _IGNORED).sum(),
                int(batch["attention_mask"].sum()),
                batch["input_ids"].numel(),
            )
            optimiser.zero_grad()
            loss, heads = loss_of(model, batch, tasks, prior)
            loss.backward()
            optimiser.step()
            schedule.step()
            loss.item()
            began = time.perf_counter()
            prior.update(heads)
            turns.discount((1 - 1 / _UPDATE_EVERY) * (time.perf_counter() - began))
