"""How a run's set-up and its steps grow with the corpus, the length of sentences, T, C and D.

One of these varies at a time, the rest stays at `BASE`. The encoder is a BERT of two layers with random
weights, the text is drawn from the demo corpus's words. Seconds are those of the processor, which a busy
machine lengthens little. An exponent is the slope of time against size, both in logarithms: 0 costs the same,
1 grows alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import numpy as np

from core.config import RunConfig
from core.corpora.demo import demo
from core.corpora.types import Corpus, Sentence, Task
from core.mrn.priors import NoPrior
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import laboratory, milliseconds
from tests.benchmarks._loops import random_bert

__all__ = ["growth"]

_STEPS = 6


@dataclass(frozen=True)
class Size:
    """Training sentences of so many words each; T tasks of so many labels; D features of the encoder."""

    sentences: int = 500
    words: int = 16
    tasks: int = 3
    labels: int = 20
    features: int = 128


AXES: dict[str, tuple[int, ...]] = {
    "sentences": (500, 2000, 8000),
    "words": (8, 16, 32, 64),
    "tasks": (2, 4, 8),
    "labels": (5, 20, 80),
    "features": (64, 128, 256),
}
_QUICK_AXES: dict[str, tuple[int, ...]] = {"words": (4, 8), "features": (32, 64)}
_QUICK_BASE = Size(sentences=64, words=4, tasks=2, labels=3, features=32)


def growth(*, quick: bool) -> dict[str, Any]:
    """For each thing that varies: its sizes, each cost at each of them, and the exponent of each cost."""
    base, axes = (_QUICK_BASE, _QUICK_AXES) if quick else (Size(), AXES)
    found: dict[str, Any] = {"base": asdict(base)}
    for axis, sizes in axes.items():
        rows = [_costs(replace(base, **{axis: size})) for size in sizes]
        costs = {cost: [row[cost] for row in rows] for cost in rows[0]}
        slopes = {cost: np.polyfit(np.log(sizes), np.log(own), 1)[0] for cost, own in costs.items()}
        found[axis] = {
            "sizes": sizes,
            **{cost: [round(value, 3) for value in own] for cost, own in costs.items()},
            "exponents": {cost: round(float(slope), 2) for cost, slope in slopes.items()},
        }
    return found


def _costs(size: Size) -> dict[str, float]:
    """Seconds of set-up, milliseconds of a step without and with the prior, and of an update of it."""
    with laboratory() as home:  # encoded text is cached there: this one has none yet
        encoder = random_bert(
            home / "encoder",
            hidden_size=size.features,
            num_hidden_layers=2,
            num_attention_heads=max(1, size.features // 32),
            intermediate_size=4 * size.features,
        )
        corpus = _corpus(size)
        tasks = [task.name for task in corpus.tasks]
        config = RunConfig.build(corpus="demo", tasks=tasks, encoder=encoder, lr_encoder=1e-5, device="cpu")
        began = time.process_time()
        run = set_up(config, corpus)
        setup_s = time.process_time() - began
        run.model.train()
        batches = list(islice(run.enter("train").batches.shuffled(run.order), _STEPS + 1))
        train_step(run, batches[0])
        run.prior.update(run.model.heads.weight)

        def step_ms(trained: Any) -> float:
            each = (partial(train_step, trained, batch) for batch in batches[1:])
            return median(milliseconds(step, clock=time.process_time)[0] for step in each)

        updates = milliseconds(
            lambda: run.prior.update(run.model.heads.weight), _STEPS, clock=time.process_time
        )
        return {
            "setup_s": setup_s,
            "mtl_step_ms": step_ms(replace(run, prior=NoPrior())),
            "mrn_step_ms": step_ms(run),
            "update_ms": median(updates),
        }


def _corpus(size: Size) -> Corpus:
    draw = np.random.default_rng(0)
    words = sorted({word for sentence in demo().train for word in sentence.tokens})
    labels = tuple(f"L{label}" for label in range(size.labels))
    tasks = tuple(Task(f"task{number}", "plain", labels) for number in range(size.tasks))

    def drawn(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names[place] for place in draw.integers(len(names), size=size.words).tolist())

    def sentences(number: int) -> tuple[Sentence, ...]:
        return tuple(
            Sentence(drawn(words), {task.name: drawn(task.labels) for task in tasks}) for _ in range(number)
        )

    return Corpus("made up", tasks, sentences(size.sentences), sentences(2), sentences(2))
