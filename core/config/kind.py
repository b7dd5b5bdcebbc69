"""What kind of run a description is: asked by remarks, training and comparisons alike."""

from __future__ import annotations

import json
from typing import Any

from core.config.run_config import RunConfig

__all__ = ["kind_key", "kind_values", "trains_heads_alone"]


def trains_heads_alone(config: RunConfig) -> bool:
    """Whether nothing under the heads is trained: a frozen encoder and no BiLSTM."""
    return config.encoder_training == "frozen" and config.bilstm_hidden is None


def kind_values(config: RunConfig) -> dict[str, Any]:
    """The fields that the runs of one row of a comparison share: all but the seed.

    The STL runs of all tasks are one row, as in the dissertation's tables, so theirs lack the tasks too.
    """
    values: dict[str, Any] = json.loads(config.to_json())
    del values["seed"]
    if config.paradigm == "stl":
        del values["tasks"]
    return values


def kind_key(config: RunConfig) -> str:
    """The same for all runs that stand in one row of a comparison."""
    return json.dumps(kind_values(config), sort_keys=True)
