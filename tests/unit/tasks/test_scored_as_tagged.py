"""A run's stored predictions are its saved model's, label for label, in whatever precision it trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.corpora.types import Sentence
from core.models.encoders.transformer import Transformer, in_float32, load_transformer
from core.tagging import load_tagger, tag_in_parts
from tests.tiny import tiny_bert
from tests.toys import config, corpus, sentences
from tests.trained import train_toy

_LABELS = {"pos": [".", "J", "N", "T", "V"], "ner": ["O", "B-ORG", "B-MISC"]}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny BERT with large weights: its states depend on the context, so that many labels are near ties."""
    folder = tiny_bert(tmp_path_factory.mktemp("encoder"))
    file = folder / "model.safetensors"
    weights = load_file(file)
    for name, weight in weights.items():
        if name.endswith("weight") and "LayerNorm" not in name:
            weight *= 20
    save_file(weights, file, metadata={"format": "pt"})
    return str(folder)


def _drawn(count: int, seed: int) -> list[Sentence]:
    """Sentences with labels that were drawn: nothing to learn, so that probabilities lie close together."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            each,
            labels={task: tuple(rng.choice(of, len(each.tokens)).tolist()) for task, of in _LABELS.items()},
        )
        for each in sentences(count, seed, longest=40)
    ]


REGIMES: dict[str, dict[str, Any]] = {
    "full": {"encoder_training": "full"},
    "frozen": {"encoder_training": "frozen"},
    "top": {"encoder_training": "top:1"},
    "context": {"encoder": "sc-lstm", "bilstm_hidden": 8, "lr_encoder": 2e-2, "lr_bilstm": 2e-2},
}


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_file_is_tagged_as_it_was_scored(encoder: str, tmp_path: Path, regime: str, precision: str) -> None:
    """`tag` reads a file in parts, so that its batches are others than those of the training."""
    changes = {"encoder": encoder, **REGIMES[regime]}
    if regime == "context":
        changes["context_encoder"] = encoder
    settings = config(**changes, paradigm="mtl", epochs=2, precision=precision)
    data = corpus(_drawn(40, 3), _drawn(600, 5))
    run = train_toy(settings, data, tmp_path / "run")
    assert run.facts.precision == precision
    tagger = load_tagger(run.checkpoint)
    tagged = [each for part in tag_in_parts([tagger], [s.tokens for s in data.test]) for each in part]
    for task, predicted in run.test.predictions.items():
        assert {label for labels in predicted for label in labels} > {_LABELS[task][0]}
        assert [[tag.label for tag in each.tags[task]] for each in tagged] == predicted


def test_float32_is_for_a_while(encoder: str) -> None:
    model = torch.nn.ModuleList([load_transformer(encoder, half=half) for half in (True, False)])
    halves = [part for part in model if isinstance(part, Transformer)]
    tf32 = torch.backends.cudnn.allow_tf32
    with in_float32(model):
        assert not any(part.half_precision for part in halves)
        assert not torch.backends.cudnn.allow_tf32
    assert [part.half_precision for part in halves] == [True, False]
    assert torch.backends.cudnn.allow_tf32 == tf32
