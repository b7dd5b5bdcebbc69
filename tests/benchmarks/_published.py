"""The published MRN as its program has it (dissertation, appendix A): its algebra and its training loop.

`core.mrn.priors.paper` computes the same numbers (`assert_same_algebra`). This is what speed is compared
with, so it stays as the program has it: every sentence padded to the limit when it is read, heads and dropout
position by position into tensors of zeros, W joined from zeros at every step, three scatters from dense
precisions, three dense SVDs, singular values sent through a Python function one by one. Its `cuda()` calls go
to the run's device.
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
from core.mrn.priors import PriorSettings, make_prior
from core.mrn.priors.paper import EPSILON, INVERT_ABOVE, MAX_TRACE
from core.mrn.relations import MODES

__all__ = ["IGNORED", "Model", "Padded", "Published", "aligned", "assert_same_algebra", "loss_of"]

IGNORED = -100


def aligned(kind: str, labels: Sequence[int]) -> Alignment:
    """Tasks with these numbers of labels. They number their labels from 0, so under `exact` the shorter list
    shares all its rows with the longer.
    """
    names = tuple(f"task{number}" for number in range(len(labels)))
    own = tuple(tuple(f"L{label}" for label in range(count)) for count in labels)
    return align(kind, LabelCounts(names, own, np.zeros((sum(labels), sum(labels)))))


class Published:
    """Precisions P_t (T, T), P_l (C, C), P_f (D, D) in float32 and what the program does with them (A.5).

    For alignments that put each head row in one place (`disjoint`, `exact`), as the program's are.
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
        self.task = torch.eye(tasks, device=device)
        self.label = torch.eye(labels, device=device)
        self.feature = torch.eye(features, device=device)

    def penalty(self, heads: Tensor) -> Tensor:
        """λ · <W, P_t ×1 P_l ×2 P_f ×3 W> (`calculate_reg_…`, `loss_reg`)."""
        weights = self._joined(heads)
        product = torch.matmul(weights, self.feature.T)
        product = torch.matmul(self.label, product)
        product = torch.matmul(self.task, product.permute(1, 0, 2)).permute(1, 0, 2)
        return self._lambda * (weights * product).sum()

    @torch.no_grad()
    def update(self, heads: Tensor) -> None:
        """All three precisions anew, from the old ones."""
        weights = self._joined(heads.detach())
        task = _scatter(weights, self.label, self.feature)
        label = _scatter(weights.permute(1, 0, 2), self.task, self.feature)
        feature = _scatter(weights.permute(2, 0, 1), self.task, self.label)
        self.task, self.label, self.feature = _precision(task), _precision(label), _precision(feature)

    def _joined(self, heads: Tensor) -> Tensor:
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
    precision = left @ torch.diag(values.to(scatter.device)) @ right
    trace = torch.trace(precision)
    return precision / trace * MAX_TRACE if trace > MAX_TRACE else precision


def assert_same_algebra() -> None:
    """What is timed as published is what our `paper` prior computes: penalties, gradients and precisions,
    update after update. Raises AssertionError where it is not.
    """
    for kind, labels, features in (("disjoint", (4, 3, 2), 12), ("exact", (5, 4), 7)):
        alignment = aligned(kind, labels)
        prior = make_prior("paper", alignment, PriorSettings(features, 0.05, 1.0), torch.device("cpu"))
        published = Published(alignment, features, 0.05)
        torch.manual_seed(1)
        for scale in (0.05, 0.3, 3.0):
            heads = scale * torch.randn(sum(labels), features)
            ours, theirs = (heads.clone().requires_grad_() for _ in range(2))
            penalties = prior.penalty(ours), published.penalty(theirs)
            torch.testing.assert_close(*penalties, rtol=1e-4, atol=1e-9)
            for penalty in penalties:
                penalty.backward()
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-7)
            prior.update(heads)
            published.update(heads)
            for mode in MODES:
                torch.testing.assert_close(
                    prior.state_dict()[f"precision_{mode}"], getattr(published, mode), rtol=1e-3, atol=1e-6
                )


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
            labels = torch.FloatTensor([of_subword[task] for of_subword in row["labels"]])
            item[name] = torch.cat((labels, spare + IGNORED))
        return item


class Model(nn.Module):
    """The encoder, its pooler included, and a head for each task with dropout behind it."""

    def __init__(self, source: str, labels: Sequence[int], longest: int) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(source, dtype=torch.float32, use_safetensors=True)
        features = self.encoder.config.hidden_size
        self.heads = nn.ModuleList(nn.Linear(features, count) for count in labels)
        self.dropout = nn.Dropout(0.1)
        self._labels, self._longest = tuple(labels), longest

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Logits (B, L, C_t) and a clone of the weight (C_t, D) of each task."""
        embeddings = self.encoder(input_ids, attention_mask=attention_mask)[0]
        weights = [head.weight.clone() for head in self.heads]
        shape = (input_ids.shape[0], self._longest)
        logits = [torch.zeros((*shape, count), device=input_ids.device) for count in self._labels]
        for place in range(self._longest):
            for of_task, head in zip(logits, self.heads, strict=True):
                of_task[:, place, :] = self.dropout(head(embeddings[:, place, :]))
        return logits, weights


def loss_of(
    model: Model, batch: dict[str, Tensor], tasks: Sequence[str], prior: Published
) -> tuple[Tensor, Tensor]:
    """The total loss, and the joined weights (r, D) that its penalty was computed from."""
    device = next(model.parameters()).device
    ids, mask = (batch[name].to(device, dtype=torch.long) for name in ("input_ids", "attention_mask"))
    logits, weights = model(ids, mask)
    heads = torch.cat(weights)
    loss = prior.penalty(heads)
    for name, of_task in zip(tasks, logits, strict=True):
        target = batch[name].reshape(-1).type(torch.LongTensor).to(device)
        predicted = of_task.reshape(-1, of_task.shape[-1])
        loss = loss + nn.CrossEntropyLoss(ignore_index=IGNORED)(predicted, target) / len(tasks)
    return loss, heads
