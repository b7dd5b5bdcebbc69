"""What kind of run a description is: asked by remarks, training and comparisons alike."""

from __future__ import annotations

import json
from typing import Any

from core.config.conditions import CONDITIONS, CONTEXT_FIELDS
from core.config.run_config import RunConfig

__all__ = ["applicable_fields", "kind_key", "kind_values", "trains_heads_alone"]


def trains_heads_alone(config: RunConfig) -> bool:
    """Whether nothing under the heads is trained: a frozen encoder and no BiLSTM."""
    return config.encoder_training == "frozen" and config.bilstm_hidden is None


def kind_values(config: RunConfig) -> dict[str, Any]:
    """The fields that the runs of one row of a comparison share: all but the seed.

    The STL runs of all tasks are one row, as in the dissertation's tables, so theirs lack the tasks too.
    """
    values = config.values()
    del values["seed"]
    if config.paradigm == "stl":
        del values["tasks"]
    return values


def kind_key(config: RunConfig) -> str:
    """The same for all runs that stand in one row of a comparison."""
    return json.dumps(kind_values(config), sort_keys=True)


def applicable_fields(
    paradigm: str, encoder: str, encoder_training: str, prior: str | None = None
) -> frozenset[str]:
    """The names of the fields that a run of this kind has (λ is `lambda`). No prior named: the default."""
    values = (paradigm, encoder, encoder_training, prior)
    context = dict(zip(CONTEXT_FIELDS, values, strict=True))
    hidden = {c.field for c in CONDITIONS if not c.applies(context)}
    return frozenset(
        "lambda" if name == "lambda_" else name for name in RunConfig.model_fields if name not in hidden
    )
