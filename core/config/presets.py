"""Named presets, and the values derived from a description: its comparison key and its warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.config.parts import OTHER
from core.config.run_config import RunConfig
from core.registry import FROZEN

PRESETS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Values for `RunConfig.build`, by name.

`dissertation`: section 6.1 of the dissertation, and the program in its appendix A.3 to A.5. `sc-lstm`: the
model of Table 3 in Lu, Bai and Langlais (2019). `tea`: the best model of Mou, Xu and Yao (TEA-BERT).
docs/mathematics.md lists them value by value. Fields that a run does not have (the BiLSTM's) are left out.
"""

ADDED_EPOCHS = 60
"""Epochs for a task that is added to a run: its sentences are few, and so are the steps of an epoch."""


def trains_heads_alone(config: RunConfig) -> bool:
    """Whether nothing under the heads is trained: a frozen encoder and no BiLSTM."""
    return config.encoder_training == FROZEN and config.bilstm_hidden is None


def shares_nothing(config: RunConfig) -> bool:
    """Whether MTL with these settings trains nothing that two tasks share: only heads of their own."""
    return trains_heads_alone(config) and "shared" not in (config.heads, config.pair_heads)


def comparison_values(config: RunConfig) -> dict[str, Any]:
    """The fields that the runs of one row of a comparison share: all but the seed.

    The STL runs of all tasks are one row, as in the dissertation's tables, so theirs lack the tasks too, and
    so do those of a system trained elsewhere.
    """
    values = config.values()
    del values["seed"]
    if config.paradigm in ("stl", OTHER):
        del values["tasks"]
    return values


def comparison_key(config: RunConfig) -> str:
    """The key of a run's row in a comparison."""
    return json.dumps(comparison_values(config), sort_keys=True)


_OVER_FROZEN = {
    "mtl": "The encoder is frozen and has no BiLSTM, so MTL equals STL: they share no trained "
    "weights. A difference comes from batches, steps or the scale of the loss.",
    "mrn": "The encoder is frozen and has no BiLSTM, so tasks influence each other through the MRN "
    "prior alone: a difference from MTL comes from it.",
}


def config_warnings(config: RunConfig) -> tuple[str, ...]:
    """Warnings about legal but surprising values; shown before launch and kept with the run."""
    if config.added_to is not None or not shares_nothing(config) or config.paradigm not in _OVER_FROZEN:
        return ()
    return (_OVER_FROZEN[config.paradigm],)
