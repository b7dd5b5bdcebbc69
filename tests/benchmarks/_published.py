"""The published MRN as its program has it (dissertation, appendix A): its algebra and its model.

Speed is compared with this, so it stays as inefficient as the program: every sentence is padded to the limit,
heads and dropout are applied position by position into tensors of zeros, W is joined from zeros at every
step, scatters use dense precisions, and singular values pass through a Python function one by one.
`mrn_step` checks that `core.mrn.priors.paper` computes the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import AutoModel

from core.mrn.alignments import Alignment, LabelCounts, align
from core.mrn.priors.paper import EPSILON, INVERT_ABOVE, MAX_TRACE

IGNORED = -100


def align_tasks(kind: str, labels: Sequence[int]) -> Alignment:
    """Align tasks with these numbers of labels. Labels are numbered from 0 in each, so under `exact` the
    shorter list shares all its rows with the longer.
    """
    tasks = tuple(f"task{number}" for number in range(len(labels)))
    names = tuple(tuple(f"L{label}" for label in range(count)) for count in labels)
    return align(kind, LabelCounts(tasks, names, np.zeros((sum(labels), sum(labels)))))


class Algebra:
    """Precisions of tasks (T, T), labels (C, C), features (D, D) in float32, their penalty and update (A.5).

    For alignments that put each head row in one place (`disjoint`, `exact`), as the program's do.
    """

    def __init__(
        self, alignment: Alignment, features: int, lambda_: float, device: torch.device | str = "cpu"
    ) -> None:
        tasks, labels, _ = alignment.matrix.shape
        self._shape = (tasks, labels, features)
        self._lambda = lambda_
        # Head row i stands at W[task_i, label_i].
        task, label, row = torch.from_numpy(alignment.matrix).nonzero(as_tuple=True)
        order = row.argsort()
        self._places = (task[order].to(device), label[order].to(device))
        self.task, self.label, self.feature = (torch.eye(size, device=device) for size in self._shape)

    def penalty(self, heads: Tensor) -> Tensor:
        """λ · <W, P_t ×1 P_l ×2 P_f ×3 W> (`calculate_reg_…`, `loss_reg`)."""
        weights = self._join(heads)
        product = torch.matmul(self.label, torch.matmul(weights, self.feature.T))
        product = torch.matmul(self.task, product.permute(1, 0, 2)).permute(1, 0, 2)
        return self._lambda * (weights * product).sum()

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """All three precisions from the old ones."""
        weights = self._join(heads.detach())
        task = _scatter(weights, self.label, self.feature)
        label = _scatter(weights.permute(1, 0, 2), self.task, self.feature)
        feature = _scatter(weights.permute(2, 0, 1), self.task, self.label)
        self.task, self.label, self.feature = _precision(task), _precision(label), _precision(feature)

    def _join(self, heads: Tensor) -> Tensor:
        """W (T, C, D) from the heads' rows and zeros (`weights_cat_…`)."""
        return heads.new_zeros(self._shape).index_put(self._places, heads)


def _scatter(weights: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """S (d, d) of the first mode of W (d, e, f) from the others' precisions (`covariance_mat_update`)."""
    product = torch.matmul(second, torch.matmul(weights, third.T))
    scatter = weights.flatten(1) @ product.flatten(1).T
    return scatter + EPSILON * torch.eye(len(scatter), device=scatter.device)


def _precision(scatter: Tensor) -> Tensor:
    """U g(s) Vᵀ, scaled to a trace of at most MAX_TRACE (`eig_decomp`)."""
    left, values, right = torch.linalg.svd(scatter)
    values = values.cpu().apply_(lambda value: 1 / value if value > INVERT_ABOVE else value)  # `func`
    precision: Tensor = left @ torch.diag(values.to(scatter.device)) @ right
    trace = torch.trace(precision)
    return precision / trace * MAX_TRACE if trace > MAX_TRACE else precision


class Padded(Dataset[dict[str, Tensor]]):
    """Each sentence padded to `max_length` subwords, in floating-point numbers, when it is read."""

    def __init__(self, rows: Sequence[dict[str, Any]], tasks: Sequence[str], max_length: int) -> None:
        self._rows, self._tasks, self._max_length = rows, tasks, max_length

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        row = self._rows[index]
        zeros = torch.zeros(self._max_length - len(row["input_ids"]))
        item = {
            name: torch.cat((torch.FloatTensor(row[name]), zeros)) for name in ("input_ids", "attention_mask")
        }
        for name, labels in zip(self._tasks, torch.FloatTensor(row["labels"]).T, strict=True):
            item[name] = torch.cat((labels, zeros + IGNORED))
        return item


class Model(nn.Module):
    """The encoder, its pooler included, and a linear head for each task, followed by dropout."""

    def __init__(self, source: str, labels: Sequence[int], max_length: int) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(source, dtype=torch.float32, use_safetensors=True)
        self.features = self.encoder.config.hidden_size
        self.heads = nn.ModuleList(nn.Linear(self.features, count) for count in labels)
        self.dropout = nn.Dropout(0.1)
        self._labels, self._max_length = tuple(labels), max_length

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[list[Tensor], Tensor]:
        """Logits (B, L, C_t) of each task, and the heads' joined weights (r, D)."""
        embeddings = self.encoder(input_ids, attention_mask=attention_mask)[0]
        shape = (input_ids.shape[0], self._max_length)
        logits = [torch.zeros((*shape, count), device=input_ids.device) for count in self._labels]
        for position in range(self._max_length):
            for task_logits, head in zip(logits, self.heads, strict=True):
                task_logits[:, position, :] = self.dropout(head(embeddings[:, position, :]))
        return logits, torch.cat([head.get_parameter("weight").clone() for head in self.heads])


def total_loss(
    model: Model, batch: dict[str, Tensor], tasks: Sequence[str], algebra: Algebra
) -> tuple[Tensor, Tensor]:
    """The total loss, and the joined weights (r, D) that its penalty was computed from."""
    device = next(model.parameters()).device
    ids, mask = (batch[name].to(device, dtype=torch.long) for name in ("input_ids", "attention_mask"))
    logits, heads = model(ids, mask)
    loss = algebra.penalty(heads)
    for name, task_logits in zip(tasks, logits, strict=True):
        gold = batch[name].reshape(-1).type("torch.LongTensor").to(device)
        predicted = task_logits.reshape(-1, task_logits.shape[-1])
        loss = loss + nn.CrossEntropyLoss(ignore_index=IGNORED)(predicted, gold) / len(tasks)
    return loss, heads
