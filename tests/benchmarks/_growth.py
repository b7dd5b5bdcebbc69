"""How a run's set-up and its steps grow with the corpus, the length of sentences, T, C and D.

One of these varies at a time, the rest stays at `BASE`. The encoder is a BERT of two layers with random
weights, and the text is drawn from the demo corpus's words. Times are processor times. An exponent is the
slope of time over size, both in logarithms: 0 is constant, 1 is linear.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import numpy as np

from core.config import RunConfig
from core.corpora import load
from core.corpora.types import Corpus, Sentence, Task
from core.mrn.priors import NoPrior
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import laboratory, milliseconds
from tests.benchmarks._loops import random_bert

_STEPS = 6


BASE = {"sentences": 500, "words": 16, "tasks": 3, "labels": 20, "features": 128}
"""Training sentences of so many words each; T tasks of so many labels; D features of the encoder."""
AXES: dict[str, tuple[int, ...]] = {
    "sentences": (500, 2000, 8000),
    "words": (8, 16, 32, 64),
    "tasks": (2, 4, 8),
    "labels": (5, 20, 80),
    "features": (64, 128, 256),
}


def growth() -> dict[str, Any]:
    """For each axis: its sizes, each cost at each size, and each cost's exponent."""
    results: dict[str, Any] = {"base": BASE}
    for axis, sizes in AXES.items():
        rows = [_costs(**(BASE | {axis: size})) for size in sizes]
        results[axis] = {"sizes": sizes, "exponents": {}}
        for cost in rows[0]:
            values = [row[cost] for row in rows]
            results[axis][cost] = [round(value, 3) for value in values]
            slope = float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
            results[axis]["exponents"][cost] = round(slope, 2)
    return results


def _costs(sentences: int, words: int, tasks: int, labels: int, features: int) -> dict[str, float]:
    """Seconds of set-up; milliseconds of a step without and with the prior, and of its update."""
    with laboratory() as home:  # encoded text is cached there
        encoder = random_bert(
            home / "encoder",
            hidden_size=features,
            num_hidden_layers=2,
            num_attention_heads=features // 32,
            intermediate_size=4 * features,
        )
        corpus = _corpus(sentences, words, tasks, labels)
        names = [task.name for task in corpus.tasks]
        config = RunConfig.build(corpus="demo", tasks=names, encoder=encoder, lr_encoder=1e-5, device="cpu")
        began = time.process_time()
        run = set_up(config, corpus)
        setup_s = time.process_time() - began
        run.model.train()
        first, *batches = islice(run.enter("train").batches.shuffled(run.order), _STEPS + 1)
        train_step(run, first)

        def update() -> None:
            run.prior.update(run.model.heads.weight)

        def step_ms(trained: Any) -> float:
            steps = (partial(train_step, trained, batch) for batch in batches)
            return median(milliseconds(step, clock=time.process_time)[0] for step in steps)

        update()
        return {
            "setup_s": setup_s,
            "mtl_step_ms": step_ms(replace(run, prior=NoPrior())),
            "mrn_step_ms": step_ms(run),
            "update_ms": median(milliseconds(update, _STEPS, clock=time.process_time)),
        }


def _corpus(sentences: int, words: int, tasks: int, labels: int) -> Corpus:
    random = np.random.default_rng(0)
    vocabulary = sorted({word for sentence in load("demo").train for word in sentence.tokens})
    names = [f"L{label}" for label in range(labels)]
    made = tuple(Task(f"task{number}", "plain", tuple(names)) for number in range(tasks))

    def draw(number: int) -> tuple[Sentence, ...]:
        return tuple(
            Sentence(
                tuple(random.choice(vocabulary, words).tolist()),
                {task.name: tuple(random.choice(names, words).tolist()) for task in made},
            )
            for _ in range(number)
        )

    return Corpus("random", made, draw(sentences), draw(2), draw(2))
