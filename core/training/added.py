"""A task added to trained heads: its head starts at, and is regularised towards, their prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.config import RunConfig
from core.corpora.types import Corpus
from core.errors import FIELD, ConfigError
from core.events import TaskFacts
from core.models.encoders.frozen import FeatureTables
from core.models.tagger import MultiTaskTagger
from core.models.trained_heads import TrainedHeads
from core.mrn.alignments import align, alignment_facts
from core.mrn.alignments.base import Matrix
from core.mrn.new_task import PredictedPrior, fit_weights, links, soft_counts
from core.mrn.priors import Prior, PriorSettings
from core.training.data import SplitData
from core.wording import all_of, plural

_NAMES_AGREE = 0.5
"""A trained task with so many of the new task's labelled words by name is linked by name."""
_MOST_WORDS = 20_000
"""Training words that tell links and weights: many more than a few numbers need."""


def predicted_prior(
    config: RunConfig,
    corpus: Corpus,
    train: SplitData,
    task: TaskFacts,
    model: MultiTaskTagger,
    base_heads: TrainedHeads,
    features: FeatureTables | None,
) -> tuple[Prior, dict[str, Any], tuple[str, ...]]:
    """The prior, the fields of RunFacts on its alignment, and notes on it.

    The model's head starts at the trained heads' prediction. Raises ConfigError where they cannot predict it.
    """
    heads = model.heads
    assert features is not None  # the encoder of such a run is frozen
    if base_heads.weight.shape[1] != heads.weight.shape[1]:
        raise ConfigError(
            "added_to",
            f"{FIELD}: its heads read {base_heads.weight.shape[1]} features and this encoder gives "
            f"{heads.weight.shape[1]}; use the encoder of that run.",
        )
    words = _words(train, features, len(task.labels), base_heads.heads)
    name = f"{task.name}@{corpus.name}" if task.name in base_heads.names else task.name
    names = (*base_heads.names, name)
    together = words.together
    alignment_name, reason = config.alignment or "auto", ""
    if alignment_name == "auto":
        shares = [_share_of_names(task.labels, words.seen, labels) for labels in base_heads.labels]
        by_name = [share >= _NAMES_AGREE for share in shares]
        together = [block * (not named) for block, named in zip(together, by_name, strict=True)]
        alignment_name = "exact" if all(by_name) else "cooccurrence"
        reason = _reason(base_heads.names, by_name)
    counts = soft_counts(names, (*base_heads.labels, task.labels), together, words.seen)
    alignment = align(alignment_name, counts)
    linked_by = [torch.from_numpy(link) for link in links(alignment, counts)]
    linked = [index for index, link in enumerate(linked_by) if link.any()]
    mean = torch.zeros(len(task.labels), heads.weight.shape[1] + 1, dtype=torch.float64)
    weights = torch.zeros(0, dtype=torch.float64)
    if linked:
        weights = fit_weights([words.logits[at] @ linked_by[at].T for at in linked], words.labels)
        for weight, at in zip(weights, linked, strict=True):
            mean += weight * linked_by[at] @ base_heads.heads[at].double()
    with torch.no_grad():
        heads.weight.copy_(mean[:, :-1])
        heads.bias.copy_(mean[:, -1])
    settings = PriorSettings(
        heads.weight.shape[1], config.lambda_ or 0.0, float(task.train_tokens), learn=("task",)
    )
    prior = PredictedPrior(mean, heads.bias, base_heads.weight.to(heads.weight.device), alignment, settings)
    facts = alignment_facts(alignment, counts) | {"related": names}
    alone = int((mean == 0).all(dim=1).sum())
    notes = _notes([base_heads.names[at] for at in linked], weights, alone, task, name)
    return prior, facts | ({"alignment_reason": reason} if reason else {}), (*notes, *alignment.notes)


@dataclass(frozen=True)
class _Words:
    """The first training words: labels (n,) and the trained heads' logits (n, C_t) on them.

    Also how often each new label was seen (C,), and with which probabilities of the trained labels together
    (C, C_t).
    """

    labels: Tensor
    logits: Sequence[Tensor]
    seen: Matrix
    together: Sequence[Matrix]


@torch.no_grad()
def _words(train: SplitData, features: FeatureTables, labels: int, heads: Sequence[Tensor]) -> _Words:
    table, numbers = features.table(*train.subwords, for_training=True), torch.from_numpy(train.labels[:, 0])
    places = torch.from_numpy(train.text.first_places)
    labelled = torch.nonzero(numbers >= 0)[:_MOST_WORDS, 0]
    states, gold = table[places[labelled].to(table.device)].cpu().double(), numbers[labelled]
    logits = [states @ head[:, :-1].double().T + head[:, -1].double() for head in heads]
    together = [torch.zeros(labels, each.shape[1], dtype=torch.float64) for each in logits]
    for block, each in zip(together, logits, strict=True):
        block.index_add_(0, gold, each.softmax(dim=1))
    seen = np.bincount(gold.numpy(), minlength=labels).astype(np.float64)
    return _Words(gold, logits, seen, [block.numpy() for block in together])


def _share_of_names(labels: Sequence[str], seen: Matrix, others: Sequence[str]) -> float:
    """The share of words with a label that the other task has too; `O` is not counted."""
    inside = np.array([label != "O" for label in labels])
    return float(seen[inside & np.isin(labels, others)].sum() / max(seen[inside].sum(), 1.0))


def _reason(names: Sequence[str], by_name: Sequence[bool]) -> str:
    joined_by_name = [name for name, named in zip(names, by_name, strict=True) if named]
    others = [name for name, named in zip(names, by_name, strict=True) if not named]
    parts = [f"{all_of(joined_by_name)} by label name"] * bool(joined_by_name)
    parts += [f"{all_of(others)} by what the heads say of the training words"] * bool(others)
    return f"auto links the labels of {' and those of '.join(parts)}"


def _notes(linked: Sequence[str], weights: Tensor, alone: int, task: TaskFacts, name: str) -> tuple[str, ...]:
    if not linked:
        return ("No label is linked to a trained task: this head is drawn to zero, as ridge does.",)
    shares = all_of(
        [f"{weight:.2f} of {each}" for each, weight in zip(linked, weights.tolist(), strict=True)]
    )
    rest = f"; {plural(alone, 'label')} of {len(task.labels)} without a link at zero" if alone else ""
    renamed = f" It is called {name}, for the run has a task {task.name}." if name != task.name else ""
    return (f"The head begins at {shares}{rest}, and is drawn there.{renamed}",)
