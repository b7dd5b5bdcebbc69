"""Named presets, and the values derived from a description: its comparison key and its warnings."""

from __future__ import annotations

import json
from typing import Any

from core.config.run_config import RunConfig
from core.registry import FROZEN

PRESETS: dict[str, dict[str, Any]] = {
    # The values of the dissertation's section 6.1 and of the program in its appendix A.3 to A.5, which
    # docs/mathematics.md lists one by one. Fields that a run does not have (the BiLSTM's) are left out.
    "dissertation": {
        "encoder": "bert-base-cased",
        "encoder_training": "full",
        "truecase": True,
        "dev_sentences": 0,
        "label_inventory": "corpus",
        "epochs": 5,
        "batch_size": 16,
        "batching": "shuffled",
        "max_length": 256,
        "lr_encoder": 5e-5,
        "lr_heads": 5e-5,
        "lr_bilstm": 5e-5,
        "bilstm_hidden": 768,
        "dropout": 0.1,
        "dropout_on": "logits",
        "weight_decay": 1e-2,
        "head_init": "default",
        "select_by": "loss",
        "pos_score": "seqeval_f1",
        "precision": "fp32",
        "prior": "paper",
        "alignment": "disjoint",
        "lambda": 0.05,
        "update_every": 10,
        "update_timing": "epoch_start",
    },
    # The model of Table 3 in Lu, Bai and Langlais (2019), value by value in docs/mathematics.md.
    "sc-lstm": {
        "encoder": "sc-lstm",
        "paradigm": "mtl",
        "dev_sentences": 1000,
        "epochs": 30,
        "batch_size": 10,
        "batching": "shuffled",
        "vectors": "glove",
        "vectors_training": "tuned",
        "capitals": True,
        "characters": "none",
        "bilstm_hidden": 300,
        "lstm_layers": 3,
        "input_dropout": 0.5,
        "dropout": 0.5,
        "head": "linear",
        "head_init": "default",
        "optimiser": "adam",
        "lr_schedule": "constant",
        "lr_encoder": 1e-3,
        "lr_heads": 1e-3,
        "lr_bilstm": 1e-3,
        "weight_decay": 0.0,
        "clip_norm": 5.0,
        "draw_tasks": "uniform",
        "precision": "fp32",
    },
    # The best model of Mou, Xu and Yao (TEA-BERT), value by value in docs/mathematics.md.
    "tea": {
        "encoder": "google-bert/bert-base-uncased",
        "encoder_training": "full",
        "paradigm": "mtl",
        "dev_sentences": 0,
        "epochs": 10,
        "batch_size": 16,
        "lr_encoder": 1e-5,
        "lr_heads": 1e-5,
        "lr_schedule": "constant",
        "optimiser": "adamw",
        "weight_decay": 0.0,
        "task_embedding": "input",
        "pooling": "cls",
        "pair_encoding": "apart",
        "pair_heads": "own",
        "head": "linear",
        "head_init": "default",
        "precision": "fp32",
    },
}
"""Values for `RunConfig.build`, by name."""


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

    The STL runs of all tasks are one row, as in the dissertation's tables, so theirs lack the tasks too.
    """
    values = config.values()
    del values["seed"]
    if config.paradigm == "stl":
        del values["tasks"]
    return values


def comparison_key(config: RunConfig) -> str:
    """Returns the key of a run's row in a comparison."""
    return json.dumps(comparison_values(config), sort_keys=True)


_OVER_FROZEN = {
    "mtl": "Over a frozen encoder without a BiLSTM, MTL shares no trained weights: each head learns what it "
    "learns in STL. A difference comes from batches, steps or the scale of the loss, not from sharing.",
    "mrn": "Over a frozen encoder without a BiLSTM, tasks share only the MRN prior: a difference from MTL "
    "comes from the prior.",
}


def config_warnings(config: RunConfig) -> tuple[str, ...]:
    """Warnings about legal but surprising values; shown before launch and kept with the run."""
    if config.added_to is not None or not shares_nothing(config) or config.paradigm not in _OVER_FROZEN:
        return ()
    return (_OVER_FROZEN[config.paradigm],)
