"""Named starting points. Each is a set of values for `RunConfig.build`."""

from __future__ import annotations

from typing import Any

__all__ = ["PRESETS"]

PRESETS: dict[str, dict[str, Any]] = {
    # Every value of the dissertation's chapter 6.1 and of its published loop.
    "dissertation": {
        "encoder": "bert-base-cased",
        "encoder_training": "full",
        "truecase": True,
        "epochs": 5,
        "batch_size": 16,
        "max_length": 256,
        "lr_encoder": 5e-5,
        "lr_heads": 5e-5,
        "weight_decay": 1e-2,
        "head_init": "default",
        "select_by": "loss",
        "pos_score": "seqeval_f1",
        "prior": "paper",
        "alignment": "disjoint",
        "lambda": 0.05,
        "update_every": 10,
    },
}
