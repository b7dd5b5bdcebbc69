"""How a run's set-up and its steps grow with the corpus, the length of sentences, T, C and D.

One of these varies at a time, the rest stays at `BASE`. The encoder is a BERT of two layers with random
weights, the text is drawn from 2,000 words. Seconds are those of the processor, which a busy machine
lengthens little. An exponent is the slope of time against size, both in logarithms: 0 costs the same, 1 grows
alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence, Task
from core.mrn.priors import NoPrior
from core.training.setup import set_up
from core.training.trainer import train_step

__all__ = ["BASE", "Size", "exponent", "measure"]

_WORDS = [f"w{number}" for number in range(2000)]
_BATCH = 16


@dataclass(frozen=True)
class Size:
    """Training sentences of so many words each; T tasks of so many labels; D features of the encoder."""

    sentences: int = 500
    words: int = 16
    tasks: int = 3
    labels: int = 20
    features: int = 128


BASE = Size()
AXES: dict[str, tuple[int, ...]] = {
    "sentences": (500, 2000, 8000),
    "words": (8, 16, 32, 64),
    "tasks": (2, 4, 8),
    "labels": (5, 20, 80),
    "features": (64, 128, 256),
}
QUICK: dict[str, tuple[int, ...]] = {"words": (4, 8), "features": (32, 64)}
_QUICK_BASE = Size(sentences=64, words=4, tasks=2, labels=3, features=32)


def measure(quick: bool, steps: int = 6) -> dict[str, Any]:
    """For each thing that varies: a row per size, and the exponent of each cost."""
    base, axes, steps = (_QUICK_BASE, QUICK, 2) if quick else (BASE, AXES, steps)
    found: dict[str, Any] = {"base": asdict(base)}
    for axis, sizes in axes.items():
        rows = [_costs(replace(base, **{axis: size}), steps) for size in sizes]
        found[axis] = {
            "sizes": sizes,
            **{cost: [round(row[cost], 3) for row in rows] for cost in rows[0]},
            "exponents": {cost: exponent(sizes, [row[cost] for row in rows]) for cost in rows[0]},
        }
    return found


def exponent(sizes: tuple[int, ...], costs: list[float]) -> float:
    """The slope of the line through the points, both axes logarithmic."""
    return round(float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]), 2)


def _costs(size: Size, steps: int) -> dict[str, float]:
    """Seconds of set-up, milliseconds of a step without and with the prior, and of an update of it."""
    with TemporaryDirectory() as folder:
        os.environ["MRNLAB_HOME"] = folder  # encoded text is cached there: this one has none yet
        encoder = _encoder(Path(folder) / "encoder", size.features)
        corpus = _corpus(size)
        config = RunConfig.build(
            corpus="demo",
            tasks=[task.name for task in corpus.tasks],
            encoder=encoder,
            lr_encoder=1e-5,
            batch_size=_BATCH,
            device="cpu",
        )
        began = time.process_time()
        run = set_up(config, corpus)
        setup = time.process_time() - began
        run.model.train()
        without = replace(run, prior=NoPrior())
        batches = list(islice(run.enter("train").batches.shuffled(run.order), steps + 1))
        train_step(run, batches[0])
        run.prior.update(run.model.heads.weight)
        return {
            "setup_s": setup,
            "mtl_step_ms": median(
                _milliseconds(partial(train_step, without, batch)) for batch in batches[1:]
            ),
            "mrn_step_ms": median(_milliseconds(partial(train_step, run, batch)) for batch in batches[1:]),
            "update_ms": median(
                _milliseconds(lambda: run.prior.update(run.model.heads.weight)) for _ in range(steps)
            ),
        }


def _milliseconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return 1000 * (time.process_time() - began)


def _corpus(size: Size) -> Corpus:
    draw = np.random.default_rng(0)
    tasks = tuple(
        Task(f"task{number}", "plain", tuple(f"L{label}" for label in range(size.labels)))
        for number in range(size.tasks)
    )

    def drawn(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(names[place] for place in draw.integers(len(names), size=size.words).tolist())

    def sentence() -> Sentence:
        labels = {task.name: drawn(task.labels) for task in tasks}
        return Sentence(drawn(_WORDS), labels)

    held_out = tuple(sentence() for _ in range(2))
    return Corpus("made up", tasks, tuple(sentence() for _ in range(size.sentences)), held_out, held_out)


def _encoder(folder: Path, features: int) -> str:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
    BertTokenizerFast(
        vocab={word: number for number, word in enumerate(vocabulary)}, do_lower_case=False
    ).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=features,
            num_hidden_layers=2,
            num_attention_heads=max(1, features // 32),
            intermediate_size=4 * features,
        )
    ).save_pretrained(folder)
    return str(folder)
