"""What a whole training step costs as MRN and as MTL: the same model, optimiser and batches, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from core.config import RunConfig
from core.corpora.demo import demo
from core.corpora.types import Corpus, Sentence, Task
from core.mrn.priors import NoPrior
from core.training.setup import Setup, set_up
from core.training.trainer import train_step
from tests.benchmarks.timing import once

__all__ = ["ENCODERS", "compare"]

LABELS = {"pos": 47, "chunk": 22, "ner": 9}  # as many as CoNLL-2003 has
BATCHES = 10
ENCODERS = ("minilm", "bert-base")


@dataclass(frozen=True)
class Pair:
    """Milliseconds of one batch, trained on both ways."""

    mtl: float
    mrn: float


def compare(encoder: str, device: str, pairs: int) -> dict[str, Any]:
    """The MRN step over the MTL step, pair by pair, with a share of the update in each MRN step."""
    with _folder_of(encoder) as source:
        run = set_up(
            RunConfig.build(corpus="demo", tasks=",".join(LABELS), encoder=source, device=device), _corpus()
        )
    assert run.config.update_every is not None
    times, updates = _measure(run, pairs)
    share = median(updates) / run.config.update_every
    ratios = np.array([(pair.mrn + share) / pair.mtl for pair in times])
    lower, middle, upper = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
    return {
        "encoder": encoder,
        "tasks": LABELS,
        "batch_size": run.config.batch_size,
        "prior": run.config.prior,
        "alignment": run.facts.alignment,
        "precision": run.facts.precision,
        "threads": torch.get_num_threads(),
        "pairs": pairs,
        "mtl_ms": round(median(pair.mtl for pair in times), 2),
        "mrn_ms": round(median(pair.mrn for pair in times), 2),
        "update_ms": round(median(updates), 2),
        "update_every": run.config.update_every,
        "mrn_over_mtl": round(middle, 4),
        "quartiles": [round(lower, 4), round(upper, 4)],
    }


def _measure(run: Setup, pairs: int) -> tuple[list[Pair], list[float]]:
    """Steps on the same batch with and without the prior, and an update after each round of batches.

    Who is first on a batch alternates. The first round is not counted: it has the device and the libraries
    get ready for each batch's shape, and the heads leave zero.
    """
    without = replace(run, prior=NoPrior())
    run.model.train()
    batches = list(islice(run.enter("train").batches.shuffled(run.order), BATCHES))
    for batch in batches:
        train_step(without, batch)
        train_step(run, batch)
    run.prior.update(run.model.heads.weight)
    times: list[Pair] = []
    updates: list[float] = []
    for number in range(pairs):
        batch = batches[number % BATCHES]
        first, second = (without, run) if number % 2 == 0 else (run, without)
        one = once(lambda: train_step(first, batch), run.device)  # noqa: B023 — called at once
        two = once(lambda: train_step(second, batch), run.device)  # noqa: B023
        times.append(Pair(one, two) if number % 2 == 0 else Pair(two, one))
        if number % BATCHES == BATCHES - 1:
            updates.append(once(lambda: run.prior.update(run.model.heads.weight), run.device))
    return times, updates


def _corpus() -> Corpus:
    """Sentences of the demo corpus (6 to 25 words, 14 in the middle), labelled at random."""
    draw = np.random.default_rng(0)
    tasks = tuple(
        Task(name, "plain", tuple(f"{name}{number}" for number in range(count)))
        for name, count in LABELS.items()
    )

    def labelled(sentence: Sentence) -> Sentence:
        size = len(sentence.tokens)
        return replace(
            sentence,
            labels={task.name: tuple(draw.choice(task.labels, size).tolist()) for task in tasks},
        )

    sentences = [labelled(sentence) for sentence in demo().train]
    return Corpus("demo", tasks, tuple(sentences), (), tuple(sentences[:1]))


@contextmanager
def _folder_of(encoder: str) -> Iterator[str]:
    """The encoder's name as a run's description has it; `bert-base` is written to a folder on the spot."""
    if encoder != "bert-base":
        yield encoder
        return
    with TemporaryDirectory() as folder:
        yield _random_bert_base(Path(folder))


def _random_bert_base(folder: Path) -> str:
    """BERT base (12 layers, 768 features) with random weights; its subwords are the demo corpus's words."""
    words = sorted({word for sentence in demo().train for word in sentence.tokens})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    BertTokenizerFast(
        vocab={word: number for number, word in enumerate(vocabulary)}, do_lower_case=False
    ).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(BertConfig()).save_pretrained(folder)
    return str(folder)
