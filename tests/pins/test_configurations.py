"""The identity and the stored form of configurations: runs of old stores keep their configuration."""

from __future__ import annotations

import json
from typing import Any

from core.config import PRESETS, RunConfig
from tests.pins.recorded import FOLDER, pinned

_MTL: dict[str, Any] = {"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl"}
_MRN: dict[str, Any] = {"corpus": "demo", "tasks": "pos,chunk,ner", "paradigm": "mrn"}
_BERT: dict[str, Any] = {"encoder": "bert-base-cased", "lr_encoder": 5e-5}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "mrn": _MRN,
    "mtl": _MTL,
    "stl": _MTL | {"tasks": "pos", "paradigm": "stl"},
    "another seed": _MRN | {"seed": 7},
    "paper": _MRN | {"prior": "paper"},
    "map": _MRN | {"prior": "map", "shrinkage": 2.5},
    "scales of labels": _MRN | {"label_scale": "counts"},
    "added to a run": {
        **{"corpus": "demo", "tasks": ("ner",), "encoder_training": "frozen"},
        "added_to": "/laboratory/checkpoints/1",
    },
    "frozen": _MRN | {"encoder_training": "frozen"},
    "frozen map": _MRN | {"encoder_training": "frozen", "prior": "map"},
    "top": _MTL | {"encoder_training": "top:2"},
    "disjoint": _MRN | {"alignment": "disjoint", "lambda": 0.1},
    "exact": _MRN | {"alignment": "exact", "learn": "feature,task"},
    "cooccurrence": _MRN | {"alignment": "cooccurrence", "snapshots": 20},
    "mapping": _MRN | {"alignment": "mapping:/kept/labels.csv"},
    "updates": _MRN | {"update_every": 25, "update_timing": "epoch_start"},
    "columns": _MTL | {"corpus": "/data/mine", "columns": "tokens,pos,chunk,ner"},
    "derived corpus": _MTL | {"corpus": "apart:demo?tokens=300", "corpus_order": "in_turn"},
    "fraction": _MTL | {"fraction": 0.05, "fraction_draw": "each_epoch"},
    "no dev": _MTL | {"dev_sentences": 0, "select_by": "last"},
    "dev of a size": _MTL | {"dev_sentences": 200, "select_by": "loss"},
    "labels of training": _MTL | {"label_inventory": "train", "truecase": True},
    "bert": _MTL | _BERT | {"lr_heads": 5e-4, "max_length": 128},
    "bilstm": _MTL | {"encoder": "roberta-base+bilstm", "lr_bilstm": 5e-4, "bilstm_hidden": 256},
    "bilstm defaults": _MTL | {"encoder": "minilm+bilstm"},
    "frozen bilstm": _MRN | {"encoder": "minilm+bilstm", "encoder_training": "frozen"},
    "batch of sentences": _MTL | {"batch_size": 64, "epochs": 12},
    "batch of subwords": _MTL | {"batch_tokens": 2048},
    "shuffled": _MTL | {"batching": "shuffled", "head_init": "default"},
    "dropout": _MTL | {"dropout": 0.3, "dropout_on": "logits", "weight_decay": 0.0},
    "scores": _MTL | {"pos_score": "seqeval_f1"},
    "device": _MTL | {"device": "cuda:1", "precision": "bf16"},
    "words": _MTL | {"encoder": "bilstm", "lstm_layers": 2, "head": "crf", "context_encoder": "minilm"},
    "words in order": _MTL
    | {"encoder": "lstm-d", "task_order": "ner,pos", "vectors": "mine.vec", "vectors_training": "fixed"},
    "words in gates": _MRN
    | {"encoder": "sc-lstm", "capitals": False, "characters": "none", "input_dropout": 0.2},
    "drawn": _MTL | {"draw_tasks": "uniform", "task_weights": (1, 3), "optimiser": "adadelta"},
    "balanced": _MTL | {"balancing": "dwa"},
    "words in windows": _MTL | {"encoder": "bilstm", "window": 3, "shared_dense": 1, "task_dense": 2},
    "texts": _MTL | {"pooling": "mean", "pair_encoding": "together", "pair_heads": "shared"},
    "shared heads": _MTL | {"heads": "shared"},
    "fixed": _MRN | {"learn": "none", "task_correlation": 0.8},
    "measured": _MRN | {"affinity_every": 50},
    "task embeddings": _MTL | {"task_embedding": "projected"},
    "control": _MRN | {"permuted": "ner"},
    "another system": {"corpus": "demo", "tasks": ("ner",), "paradigm": "other", "system": "flair"},
    "patient": _MTL | {"patience": 3, "lr_schedule": "constant", "clip_norm": 5.0},
    "dissertation": _MRN
    | {
        name: value
        for name, value in PRESETS["dissertation"].items()
        if name not in ("lr_bilstm", "bilstm_hidden")
    },
}


def test_configurations() -> None:
    built = {name: RunConfig.build(**values) for name, values in CONFIGURATIONS.items()}
    for field in built["mrn"].values():
        assert len({repr(config.values()[field]) for config in built.values()}) > 1, f"{field} never varies"
    pinned(
        "configurations",
        {
            name: {"configuration_id": config.configuration_id, "stored": config.to_json()}
            for name, config in built.items()
        },
    )


def test_stored_configurations_are_read() -> None:
    for record in json.loads((FOLDER / "configurations.json").read_text("utf-8")).values():
        config = RunConfig.from_json(record["stored"])
        assert config.configuration_id == record["configuration_id"]
        assert config.to_json() == record["stored"]
