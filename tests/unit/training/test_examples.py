"""The examples run as they are printed, and MRN in 80 lines computes what the trainer does."""

from __future__ import annotations

import io
import re
import runpy
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.config import RunConfig
from core.corpora import prepare
from core.mrn.priors import PRIOR_CLASSES
from core.registry import MODES, PRIORS
from core.testing.priors import PriorClass, PriorContract
from core.training.setup import set_up, update_steps
from core.training.trainer import train_step

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
IN_80_LINES = EXAMPLES / "mrn_in_80_lines.py"
MOST_LINES = 80
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def code_lines(text: str) -> int:
    """The lines of a Python file without blank lines, comments and docstrings."""
    text = re.sub(r'^ *""".*?"""\n', "", text, flags=re.DOTALL | re.MULTILINE)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in _NO_CODE]
    return len({line for span in spans for line in span})


def test_it_is_80_lines() -> None:
    assert code_lines('"""a\nb"""\n\nx = (\n    1\n)  # y\n') == 3
    assert code_lines(IN_80_LINES.read_text(encoding="utf-8")) <= MOST_LINES


def test_its_losses_and_covariances_are_the_trainers(laboratory: Path) -> None:
    example = runpy.run_path(str(IN_80_LINES))
    config = RunConfig.build(
        corpus="demo-both-pos?train=20&dev=5&test=5",
        tasks=("pos-a", "pos-b"),
        encoder="minilm",
        encoder_training="frozen",
        paradigm="mrn",
        prior="relational",
        alignment="exact",
        learn=MODES,
        lambda_=example["LAMBDA"],
        shrinkage=example["KAPPA"],
        update_every=example["UPDATE_EVERY"],
        lr_heads=example["RATE"],
        dropout=0.0,
        epochs=4,
        batch_size=4,
        precision="fp32",  # as the example computes
    )
    corpus = prepare(config)
    run = set_up(config, corpus)
    run.compute_features(lambda event: None, lambda: False)
    assert run.frozen is not None
    data = run.splits["train"]
    labels, states = torch.from_numpy(data.labels), torch.zeros(len(data.labels), run.frozen.features)
    batches, losses = [], []
    updates = update_steps(config, data.batches.per_part)
    for _ in range(config.epochs):
        for batch in run.epoch(0):
            states[batch.words] = run.frozen.words(batch)
            batches.append(batch.words)
            losses.append(train_step(run, batch)[-1].item())
            run.schedule.step()
            if len(batches) in updates:
                run.prior.update(run.model.heads.weight)
    assert len(updates) > 3

    torch.testing.assert_close(example["word_states"](corpus.train, example["locate"]("minilm")), states)
    numbers = [example["label_numbers"](corpus.train, task) for task in corpus.tasks]
    assert torch.equal(torch.stack(numbers, dim=1), labels)
    heads, prior, own_losses = example["train"](
        states, labels, [task.labels for task in run.facts.tasks], batches
    )
    np.testing.assert_allclose(own_losses, losses, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(heads, run.model.heads.weight, rtol=1e-5, atol=1e-5)
    relations = run.prior.relations()
    assert relations is not None
    for mode, covariance in zip(MODES, prior.covariances, strict=True):
        np.testing.assert_allclose(covariance, relations.covariance(mode), rtol=1e-6, atol=1e-6)
    assert abs(relations.correlation("task")[0, 1]) > 0.01


@pytest.mark.slow
def test_it_prints_the_learned_correlation(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(IN_80_LINES), run_name="__main__")
    found = re.fullmatch(r"loss (\S+), task correlation (\S+)\n", capsys.readouterr().out)
    assert found is not None
    assert 0 < float(found[1]) < 1
    assert 0.3 < float(found[2]) < 1


@pytest.fixture
def compare_a_prior(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The example's names; it adds its prior to both registries."""
    for registry in (PRIORS, PRIOR_CLASSES):
        monkeypatch.setitem(registry, "common-mean", None)
    return runpy.run_path(str(EXAMPLES / "compare_a_prior.py"))


class TestCommonMean(PriorContract):
    alignment = "exact"

    @pytest.fixture
    def prior_class(self, compare_a_prior: dict[str, Any]) -> PriorClass:
        made: PriorClass = compare_a_prior["CommonMean"]
        return made


@pytest.mark.slow
def test_a_prior_is_compared(
    laboratory: Path, capsys: pytest.CaptureFixture[str], compare_a_prior: dict[str, Any]
) -> None:
    compare_a_prior["main"](seeds=(1, 2), epochs=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["pos-a", "pos-b"]
    assert all(re.search(r"common-mean \d+\.\d\d, MRN \d+\.\d\d; .+, 2 seeds, p ", line) for line in lines)
