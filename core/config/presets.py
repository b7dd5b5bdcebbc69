"""Named starting points. Each is a set of values for `RunConfig.build`."""

from __future__ import annotations

from typing import Any

__all__ = ["PRESETS"]

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
}
