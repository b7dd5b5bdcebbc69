"""Over a frozen encoder MTL shares no trained weights with STL, and its heads differ all the same."""

from __future__ import annotations

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step


def made(encoder: str, corpus: str, tasks: tuple[str, ...]) -> TrainingRun:
    config = RunConfig.build(
        corpus=corpus, tasks=tasks, encoder=encoder, encoder_training="frozen", max_length=32, dropout=0,
        paradigm="mtl" if len(tasks) > 1 else "stl", device="cpu", precision="fp32",
    )  # fmt: skip
    run = set_up(config, prepare(config))
    assert run.compute_features(lambda _: None, lambda: False)
    return run


def test_the_mean_over_tasks_scales_each_head_s_gradient(encoder: str) -> None:
    gradients = {}
    for tasks in (("pos", "chunk", "ner"), ("pos",)):
        run = made(encoder, "demo?train=40", tasks)
        run.model.train()
        train_step(run, next(run.epoch(skip=0)))
        gradient = run.model.heads.weight.grad
        assert gradient is not None
        gradients[tasks] = gradient[run.model.heads.slices[0]]
    together, alone = gradients.values()
    torch.testing.assert_close(3 * together, alone)
