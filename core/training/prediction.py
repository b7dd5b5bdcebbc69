"""Predict a split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core.encoding.batches import AT_ONCE
from core.models.tagger import MultiTaskTagger
from core.training.data import SplitData

__all__ = ["Predicted", "predict"]


@dataclass(frozen=True)
class Predicted:
    """Label numbers (N, T) of every word of a split, and each task's mean loss over labelled words (T,)."""

    numbers: NDArray[np.int64]
    losses: NDArray[np.float64]


@torch.inference_mode()
def predict(model: MultiTaskTagger, split: SplitData, device: torch.device) -> Predicted:
    """The most probable label of every word for every task: each belongs to one window, none is left out."""
    model.eval()
    tasks = len(model.heads.slices)
    numbers = torch.full((len(split.labels), tasks), -1, dtype=torch.int64, device=device)
    sums = torch.zeros(tasks, dtype=torch.float64, device=device)
    counts = torch.zeros(tasks, dtype=torch.int64, device=device)
    for batch in split.batches.by_length(AT_ONCE[device.type]):
        moved = batch.to(device)
        logits = model(moved)
        task_sums, task_counts = model.losses(logits, moved.labels)
        sums += task_sums
        counts += task_counts
        best = [logits[:, rows].argmax(dim=1) for rows in model.heads.slices]
        numbers[moved.words] = torch.stack(best, dim=1)
    losses = torch.where(counts > 0, sums / counts, torch.nan)
    return Predicted(numbers.cpu().numpy(), losses.cpu().numpy())
