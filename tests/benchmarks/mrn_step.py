"""What MRN costs: its penalty and update beside the published way, and its training step beside MTL's.

`python -m tests.benchmarks.mrn_step` prints milliseconds of this run and their ratios. The goal is an MRN
step of at most 1.03 times the MTL step; the update is to be at least 20 times as fast as the published one at
3 tasks, 78 labels and 768 features. The last line has just these ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from core.config import RunConfig
from core.corpora.demo import demo
from core.corpora.types import Corpus, Sentence, Task
from core.errors import EncoderError
from core.models.device import choose_device, make_deterministic
from core.mrn.priors import NoPrior, PriorSettings, make_prior
from core.registry import PRIORS
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import alternate, arguments, laboratory, milliseconds, ratio, spread, tell
from tests.benchmarks._loops import random_bert
from tests.benchmarks._published import Published, aligned, assert_same_algebra

LAMBDA = 0.01
TOKENS = 600_000.0  # three tasks over CoNLL-2003's 200,000 training words
LABELS = {"pos": 47, "chunk": 22, "ner": 9}  # as many as CoNLL-2003 has
SIZES: tuple[tuple[Sequence[int], int, str], ...] = (
    (tuple(LABELS.values()), 768, "disjoint"),  # POS, chunks and entities of CoNLL-2003 over BERT base
    ((47, 44), 1536, "exact"),  # POS of CoNLL-2003 and CoNLL-2000 over a BiLSTM: 44 rows shared, 3 not
    ((20,) * 15, 768, "disjoint"),  # fifteen tasks of twenty labels each
)
ENCODERS = ("minilm", "bert-base")


def algebra(
    labels: Sequence[int], features: int, kind: str, device: torch.device, *, quick: bool
) -> dict[str, Any]:
    """Median milliseconds of one penalty with its gradient and of one update: of every prior and of the
    published way, and the ratios published / prior.
    """
    alignment = aligned(kind, labels)
    settings = PriorSettings(features, LAMBDA, TOKENS)
    torch.manual_seed(0)
    heads = torch.randn(sum(labels), features, device=device) / (3 * features) ** 0.5
    ways: dict[str, Any] = {name: make_prior(name, alignment, settings, device) for name in PRIORS}
    ways["published"] = Published(alignment, features, LAMBDA, device)
    costs = {name: _costs(way, heads, quick=quick) for name, way in ways.items()}
    return {
        "size": "x".join(map(str, (*alignment.matrix.shape[:2], features))),
        "labels": labels,
        "alignment": kind,
        "milliseconds": {
            name: {what: round(value, 3) for what, value in cost.items()} for name, cost in costs.items()
        },
        "published_over": {
            name: {what: round(costs["published"][what] / value, 2) for what, value in costs[name].items()}
            for name in PRIORS
        },
    }


def _costs(way: Any, heads: Tensor, *, quick: bool) -> dict[str, float]:
    way.update(heads)  # covariances are learned ones from here on, not the identity
    rows = heads.clone().requires_grad_()

    def penalty() -> None:
        rows.grad = None
        way.penalty(rows).backward()

    def median_ms(action: Callable[[], object]) -> float:
        if quick:
            return milliseconds(action)[0]
        timer = Timer("action()", globals={"action": action}, num_threads=torch.get_num_threads())
        return float(1000 * timer.blocked_autorange(min_run_time=3).median)

    return {"penalty": median_ms(penalty), "update": median_ms(lambda: way.update(heads))}


def steps(encoder: str, device: str, *, quick: bool) -> dict[str, Any]:
    """The MRN step over the MTL step, on the same batch pair by pair, with a share of the update in each MRN
    step; or why it could not be made here.
    """
    batches, pairs = (2, 2) if quick else (10, 100)
    with laboratory() as home:
        source = random_bert(home / encoder) if encoder == "bert-base" else encoder
        values = {"tasks": ",".join(LABELS), "encoder": source, "device": device}
        try:
            run = set_up(
                RunConfig.build(corpus="demo", batch_size=2 if quick else 16, **values), _corpus(quick=quick)
            )
        except EncoderError as error:
            return {"encoder": encoder, "left_out": str(error)}
        without = replace(run, prior=NoPrior())
        run.model.train()
        drawn = list(islice(run.enter("train").batches.shuffled(run.order), batches))

    def update() -> None:
        run.prior.update(run.model.heads.weight)

    def timed(action: Callable[[], object]) -> float:
        """Milliseconds by the clock, with nothing left to do on the device."""
        if run.device.type != "cuda":
            return milliseconds(action)[0]
        torch.cuda.synchronize(run.device)
        return milliseconds(lambda: (action(), torch.cuda.synchronize(run.device)))[0]

    # The first round is not counted: device and libraries get ready for each shape, and the heads leave zero.
    for batch in drawn:
        train_step(without, batch)
        train_step(run, batch)
    update()
    times: dict[str, list[float]] = {"mtl": [], "mrn": []}
    updates = []
    ways = {
        "mtl": lambda batch: timed(lambda: train_step(without, batch)),
        "mrn": lambda batch: timed(lambda: train_step(run, batch)),
    }
    for _ in range(pairs // batches):
        for name, taken in alternate(ways, drawn).items():
            times[name] += taken
        updates.append(timed(update))
    assert run.config.update_every is not None
    share = median(updates) / run.config.update_every
    found = ratio([taken + share for taken in times["mrn"]], times["mtl"], digits=4)
    return {
        "encoder": encoder,
        "tasks": LABELS,
        "batch_size": run.config.batch_size,
        "prior": run.config.prior,
        "alignment": run.facts.alignment,
        "precision": run.facts.precision,
        "pairs": pairs,
        "mtl_ms": spread(times["mtl"], 2)["median"],
        "mrn_ms": spread(times["mrn"], 2)["median"],
        "update_ms": round(median(updates), 2),
        "update_every": run.config.update_every,
        "mrn_over_mtl": found["median"],
        "quartiles": found["quartiles"],
    }


def _corpus(*, quick: bool) -> Corpus:
    """Sentences of the demo corpus (6 to 25 words, 14 in the middle), labelled at random."""
    draw = np.random.default_rng(0)
    tasks = tuple(
        Task(name, "plain", tuple(f"{name}{number}" for number in range(count)))
        for name, count in LABELS.items()
    )

    def labelled(sentence: Sentence) -> Sentence:
        size = len(sentence.tokens)
        labels = {task.name: tuple(draw.choice(task.labels, size).tolist()) for task in tasks}
        return replace(sentence, labels=labels)

    sentences = tuple(map(labelled, demo().train[: 40 if quick else None]))
    return Corpus("demo", tasks, sentences, (), sentences[:1])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    asked = parser.parse_args()
    assert_same_algebra()
    device = choose_device(asked.device)
    make_deterministic(0, device)  # as a run is
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    tell({"device": name, "torch": torch.__version__, "threads": torch.get_num_threads()})
    priors, trained = [], []
    for size in SIZES[: 1 if asked.quick else None]:
        priors.append(algebra(*size, device, quick=asked.quick))
        tell(priors[-1])
    for encoder in ENCODERS[: 1 if asked.quick else None]:
        trained.append(steps(encoder, str(device), quick=asked.quick))
        tell(trained[-1])
    tell(
        {
            "update_speedup": {one["size"]: one["published_over"]["relational"]["update"] for one in priors},
            "mrn_over_mtl": {one["encoder"]: one.get("mrn_over_mtl") for one in trained},
        }
    )


if __name__ == "__main__":
    main()
