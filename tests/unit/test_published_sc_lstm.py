"""The preset `sc-lstm` beside the values of its paper (Lu, Bai and Langlais, 2019), and where each stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.models.encoders import word_inputs
from core.models.word_vectors import GLOVE, read_vectors
from core.training.setup import make_optimiser

# field, value, where the paper says so
PUBLISHED: list[tuple[str, Any, str]] = [
    ("encoder", "sc-lstm", "3.2, equations (1) to (3)"),
    ("paradigm", "mtl", "5.1, trained once jointly on all tasks"),
    ("fraction", 1.0, "4.1, the pre-defined splits"),
    ("dev_sentences", 1000, "4.1, of the training set of CoNLL-2000, which has no dev split"),
    ("epochs", 30, "4.3, less than 30 epochs to converge"),
    ("batch_size", 10, "4.3"),
    ("batch_tokens", None, "4.3, batches are counted in sentences"),
    ("batching", "shuffled", "Algorithm 1, randomly choose an example not yet considered"),
    ("draw_tasks", "uniform", "Algorithm 1, randomly choose a task"),
    ("task_weights", None, "4.3 weights NER by 3 in SC-LSTM-LM-CNN only"),
    ("vectors", "glove", "4.2, GloVe 6B of dimension 100"),
    ("vectors_training", "tuned", "4.2, fine-tuned during training"),
    ("capitals", True, "4.2, eight features"),
    ("characters", "none", "4.2, the comparison is without them"),
    ("context_encoder", None, "4.2, the comparison is without contextual embeddings"),
    ("bilstm_hidden", 300, "Table 3, the best of the grid"),
    ("lstm_layers", 3, "Table 3, the best of the grid"),
    ("input_dropout", 0.5, "Table 2"),
    ("dropout", 0.5, "Table 2"),
    ("head", "linear", "3.3, equation (6)"),
    ("head_init", "default", "4.3, PyTorch"),
    ("optimiser", "adam", "4.3"),
    ("lr_encoder", 1e-3, "4.3, Adam with default setting"),
    ("lr_heads", 1e-3, "4.3, Adam with default setting"),
    ("lr_bilstm", 1e-3, "4.3, Adam with default setting"),
    ("lr_schedule", "constant", "4.3, Adam with default setting"),
    ("weight_decay", 0.0, "4.3, Adam with default setting"),
    ("clip_norm", 5.0, "4.3"),
    ("pos_score", "accuracy", "Table 6"),
    ("precision", "fp32", "4.3, PyTorch"),
]
# Set by the researcher, or not mentioned in the paper: the default of any run.
OF_NO_PAPER = {
    *("corpus", "columns", "tasks", "seed", "device", "truecase", "encoder_training", "max_length"),
    *("fraction_draw", "label_inventory", "corpus_order", "dropout_on", "patience", "select_by"),
    *("affinity_every", "window", "shared_dense", "task_dense", "pooling", "pair_encoding", "pair_heads"),
    "heads",
}
OF_MRN = {
    *("prior", "alignment", "lambda", "learn", "shrinkage", "update_every", "update_timing", "snapshots"),
    "label_scale",
    "task_correlation",
    "added_to",
}
OF_OTHER_ENCODERS = {"task_order", "task_embedding"}


def _run(**lists: list[Any]) -> RunConfig:
    (config,) = expand({"corpus": "conll2003", "tasks": "pos,chunk,ner"}, lists, PRESETS["sc-lstm"])
    return config


def test_the_preset_has_the_published_values_and_the_mathematics_page_prints_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mathematics.md").read_text(encoding="utf-8")
    values = _run().values()
    for field, value, where in PUBLISHED:
        assert values[field] == value, field
        assert f"| `{field}` | {value} | {where} |" in page
    named = {field for field, _, _ in PUBLISHED}
    assert named | OF_NO_PAPER | OF_MRN | OF_OTHER_ENCODERS == set(values)
    assert {values[field] for field in OF_MRN | OF_OTHER_ENCODERS} == {None}
    assert set(PRESETS["sc-lstm"]) <= named


@pytest.mark.parametrize(("encoder", "layers"), [("bilstm", 3), ("lstm-d", None)])
def test_its_rivals_take_the_same_values(encoder: str, layers: int | None) -> None:
    rival = _run(encoder=[encoder])
    assert (rival.encoder, rival.lstm_layers) == (encoder, layers)
    assert rival == _run().with_(encoder=encoder, lstm_layers=layers)


def test_what_is_fixed_in_the_paper_is_fixed_here() -> None:
    """Adam's default setting (4.3), the character CNN of Table 2, and the vectors' dimension (4.2)."""
    optimiser, schedule = make_optimiser(torch.nn.ModuleDict({"heads": torch.nn.Linear(2, 2)}), _run(), 100)
    (group,) = optimiser.param_groups
    assert (group["lr"], group["betas"], group["eps"]) == (1e-3, (0.9, 0.999), 1e-8)
    assert [schedule.lr_lambdas[0](step) for step in (0, 50, 100)] == [1.0, 1.0, 1.0]
    cnn = (word_inputs.CHARACTER_SIZE, word_inputs.CHARACTER_FILTERS, word_inputs.CHARACTER_WIDTH)
    assert cnn == (16, 128, 3)
    assert len(word_inputs.CAPITALS) == 8
    assert read_vectors(GLOVE, lambda word: word == "the").dimension == 100
