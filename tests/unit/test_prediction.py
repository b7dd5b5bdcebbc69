"""A split predicted in batches is predicted as window by window, and scored as its sentences are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from core.corpora import prepare
from core.encoding.batches import AT_ONCE, IGNORED, Batches
from core.training.evaluate import predict
from core.training.setup import TrainingRun, set_up
from tests.trained import toy_config


@pytest.fixture
def run(laboratory: Path, request: pytest.FixtureRequest) -> TrainingRun:
    """A training whose heads are not zero, over windows shorter than many sentences."""
    config = toy_config(laboratory, max_length=8)
    values: dict[str, Any] = dict(request.param)
    if values.pop("bilstm", False):
        values |= {"encoder": f"{config.encoder}+bilstm", "bilstm_hidden": 8}
    config = toy_config(laboratory, max_length=8, **values)
    made = set_up(config, prepare(config))
    torch.nn.init.normal_(made.model.heads.weight)
    return made


@pytest.mark.parametrize("tokens", [1, 40])
@pytest.mark.parametrize(
    "run",
    [{}, {"encoder_training": "frozen", "lr_encoder": None}, {"bilstm": True}],
    indirect=True,
    ids=["full", "frozen", "lstm"],
)
def test_batches_of_any_budget_are_predicted_as_single_windows(
    run: TrainingRun, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AT_ONCE, "cpu", tokens)
    split = run.enter("dev")
    assert split.text.windows > len(split.sentences)
    found = predict(run.model, split, run.device)
    run.model.eval()
    logits = torch.full((len(split.labels), run.model.heads.weight.shape[0]), torch.nan)
    with torch.no_grad():
        for batch in Batches(split.text, split.labels, 1, run.tokenizer.pad).by_length():
            states = run.model.encoder(batch).flatten(0, 1)
            logits[batch.words] = run.model.heads(states[batch.rows])
    labels = torch.from_numpy(split.labels)
    for task, rows in enumerate(run.model.heads.slices):
        assert found.numbers[:, task].tolist() == logits[:, rows].argmax(dim=1).tolist()
        loss = torch.nn.functional.cross_entropy(logits[:, rows], labels[:, task], ignore_index=IGNORED)
        assert found.losses[task] == pytest.approx(loss.item(), rel=1e-5)
