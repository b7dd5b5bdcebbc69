"""The heads of a finished run, which a new task is added to: they stay as they are. Imports torch late."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.checkpoints.shared_storage import model_folder
from core.config import RunConfig, trains_heads_alone
from core.errors import FIELD, ConfigError
from core.paths import OUTSIDE, checkpoint_dir, first_outside, given_path
from core.tasks import KINDS

if TYPE_CHECKING:
    from torch import Tensor

_ALIKE = ("encoder", "encoder_training", "max_length", "truecase", "head")
"""The fields in which both runs must agree: one tagger has the heads of both."""
_HEADS = ("heads.weight", "heads.bias")


def trained_folder(text: str) -> Path:
    """The checkpoint folder of a finished run, given as its number here or as a folder."""
    folder = checkpoint_dir(int(text)) if text.isdecimal() else given_path(text)
    return model_folder(folder)


@dataclass(frozen=True)
class TrainedHeads:
    """T trained tasks on words with linear heads over a frozen encoder: name, scheme and labels of each."""

    folder: Path
    config: RunConfig
    tasks: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks' names, in the order of their heads."""
        return tuple(task["name"] for task in self.tasks)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The tasks' labels, in the order of the heads' rows."""
        return tuple(tuple(task["labels"]) for task in self.tasks)

    @cached_property
    def _state(self) -> Mapping[str, Tensor]:
        from safetensors.torch import load_file

        return load_file(self.folder / "weights.safetensors")

    @property
    def weight(self) -> Tensor:
        """H (Σ C_t, D)."""
        return self._state[_HEADS[0]]

    @cached_property
    def heads(self) -> Sequence[Tensor]:
        """H_t (C_t, D + 1) of each task, its bias in the last column."""
        import torch

        whole = torch.cat([self.weight, self._state[_HEADS[1]][:, None]], dim=1)
        return torch.split(whole, [len(labels) for labels in self.labels])

    def joined(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of both runs, from the new run's weights."""
        import torch

        return dict(state) | {name: torch.cat([self._state[name], state[name]]) for name in _HEADS}

    def parted(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of the new run, from the weights of both."""
        return dict(state) | {name: state[name][len(self.weight) :] for name in _HEADS}


def trained_heads(config: RunConfig) -> TrainedHeads | None:
    """The trained heads that the run's task is added to; None where it is added to none.

    Their weights are read later. Raises ConfigError where there are none, or this run's task cannot stand
    beside them.
    """
    if config.added_to is None:
        return None
    folder = trained_folder(config.added_to)
    if outside := first_outside(folder):
        raise ConfigError("added_to", f"{FIELD}: {outside} {OUTSIDE}")
    try:
        stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        before, tasks = RunConfig.from_stored(stored["config"]), tuple(stored["tasks"])
    except (OSError, ValueError, KeyError):
        raise ConfigError(
            "added_to",
            f"{FIELD}: {config.added_to} is no finished run; give the number or the checkpoint of one.",
        ) from None
    if not trains_heads_alone(before):
        raise ConfigError(
            "added_to",
            f"{FIELD}: that run trained more than heads; a task is added to a run over a frozen encoder.",
        )
    if (
        before.head != "linear"
        or before.heads == "shared"
        or any(KINDS[task["scheme"]].reads != "words" for task in tasks)
    ):
        raise ConfigError(
            "added_to", f"{FIELD}: a task is added to linear heads of words, one a task; that run has others."
        )
    for field in _ALIKE:
        old, new = getattr(before, field), getattr(config, field)
        if old != new:
            raise ConfigError(
                field, f"{FIELD} must be {old} here, as in the run that the task is added to, not {new}."
            )
    return TrainedHeads(folder, before, tasks)
