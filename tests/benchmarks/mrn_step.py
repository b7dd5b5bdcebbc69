"""What the penalty and the update of each prior cost beside the published program; an MRN step beside MTL's.

`python -m tests.benchmarks.mrn_step` prints milliseconds of one penalty with its gradient and of one update,
of every prior and of the published algebra, and the ratios. The last line has the speed-up of the
`relational` prior's update (20 is the goal at 3 tasks, 78 labels and 768 features), and the time of an MRN
step over an MTL step of each encoder (1.03 is the goal).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from core.config import RunConfig
from core.corpora import load
from core.corpora.types import Corpus, Task
from core.encoding.batches import Batch
from core.models.device import choose_device, make_deterministic
from core.models.encoders.transformer import Transformer
from core.mrn.priors import PRIOR_CLASSES, NoPrior, PriorSettings
from core.registry import MODES, PRIORS
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import (
    alternate,
    arguments,
    laboratory,
    milliseconds,
    minilm,
    print_json,
    ratio,
)
from tests.benchmarks._loops import random_encoder
from tests.benchmarks._published import Algebra, align_tasks

LAMBDA = 0.01
TOKENS = 600_000.0  # three tasks over CoNLL-2003's 200,000 training words
SIZES: tuple[tuple[Sequence[int], int, str], ...] = (
    ((47, 22, 9), 768, "disjoint"),  # POS, chunks and entities of CoNLL-2003 over BERT base
    ((47, 44), 1536, "exact"),  # POS of CoNLL-2003 and CoNLL-2000 over a BiLSTM: 44 rows shared, 3 not
    ((20,) * 15, 768, "disjoint"),  # fifteen tasks of twenty labels each
)


def assert_same_algebra() -> None:
    """Compare penalties, gradients and precisions of the `paper` prior and the published algebra."""
    for kind, labels, features in (("disjoint", (4, 3, 2), 12), ("exact", (5, 4), 7)):
        alignment = align_tasks(kind, labels)
        prior = PRIOR_CLASSES["paper"](alignment, PriorSettings(features, 0.05, 1.0), torch.device("cpu"))
        published = Algebra(alignment, features, 0.05)
        torch.manual_seed(1)
        for scale in (0.05, 0.3, 3.0):
            heads = scale * torch.randn(sum(labels), features)
            ours, theirs = (heads.clone().requires_grad_() for _ in range(2))
            penalties = prior.penalty(ours), published.penalty(theirs)
            torch.testing.assert_close(*penalties, rtol=1e-4, atol=1e-9)
            for penalty in penalties:
                penalty.backward()
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-7)
            prior.update(heads)
            published.update(heads)
            for mode in MODES:
                precision = prior.state_dict()[f"precision_{mode}"]
                torch.testing.assert_close(precision, getattr(published, mode), rtol=1e-3, atol=1e-6)


def costs(way: Any, heads: Tensor, seconds: float | None) -> dict[str, float]:
    """Median milliseconds of a penalty with its gradient, and of an update, each called for so many seconds,
    or once.
    """
    way.update(heads)  # covariances are no longer the identity
    rows = heads.clone().requires_grad_()

    def penalty() -> None:
        rows.grad = None
        way.penalty(rows).backward()

    def median_ms(action: Callable[[], object]) -> float:
        if seconds is None:
            return milliseconds(action)[0]
        timer = Timer("action()", globals={"action": action}, num_threads=torch.get_num_threads())
        return float(1000 * timer.blocked_autorange(min_run_time=seconds).median)

    return {"penalty": median_ms(penalty), "update": median_ms(lambda: way.update(heads))}


def labelled_at_random(sentences: int) -> Corpus:
    """Sentences of the demo corpus (6 to 25 words) with as many labels as CoNLL-2003 has."""
    draw = torch.Generator().manual_seed(0)
    counts = {"pos": 47, "chunk": 22, "ner": 9}
    tasks = tuple(
        Task(name, "plain", tuple(f"{name}{number}" for number in range(count)))
        for name, count in counts.items()
    )
    train = []
    for sentence in load("demo").train[:sentences]:
        size = (len(sentence.tokens),)
        labels = {
            task.name: tuple(
                task.labels[number]
                for number in torch.randint(len(task.labels), size, generator=draw).tolist()
            )
            for task in tasks
        }
        train.append(replace(sentence, labels=labels))
    return Corpus("demo", tasks, tuple(train), (), tuple(train[:1]))


def mrn_over_mtl(encoder: str, device: torch.device, *, quick: bool) -> float:
    """Median time of an MRN step, with its part of an update, over an MTL step on the same batch.

    On a GPU an MTL step without recorded layers is timed too.
    """
    batches, pairs = (2, 2) if quick else (10, 100)
    with laboratory() as home:
        values = {
            "encoder": random_encoder(home / encoder) if encoder == "bert-base" else minilm(),
            "device": str(device),
            "batch_size": 2 if quick else 16,
        }
        config = RunConfig.build(corpus="demo", tasks="pos,chunk,ner", **values)
        mrn = set_up(config, labelled_at_random(40 if quick else 2000))
    runs = {"mtl": replace(mrn, prior=NoPrior()), "mrn": mrn}
    mrn.model.train()
    drawn = list(islice(mrn.use_split("train").batches.shuffled(mrn.order), batches))

    def timed(action: Callable[[], object]) -> float:
        def finished() -> None:
            action()
            if device.type == "cuda":
                torch.cuda.synchronize(device)

        return milliseconds(finished)[0]

    # The first steps are not counted: memory is allocated for each shape, and the heads leave zero.
    for batch in drawn:
        for run in runs.values():
            train_step(run, batch)
    encoder_module = mrn.model.encoder
    assert isinstance(encoder_module, Transformer)

    def step(run: TrainingRun, batch: Batch, records: bool) -> float:
        encoder_module.records_steps = records
        return timed(lambda: train_step(run, batch))

    ways = {name: partial(step, run, records=encoder_module.records_steps) for name, run in runs.items()}
    if encoder_module.records_steps:
        ways["mtl_unrecorded"] = partial(step, runs["mtl"], records=False)
    times = alternate(ways, drawn * (pairs // batches))
    weights = mrn.model.heads.weight
    updates = [timed(lambda: mrn.prior.update(weights)) for _ in range(batches)]
    assert config.update_every is not None
    share = median(updates) / config.update_every
    over = ratio([step + share for step in times["mrn"]], times["mtl"])
    print_json({"encoder": encoder} | {f"{name}_ms": median(ms) for name, ms in times.items()} | over)
    return float(over["median"])


def main() -> None:
    parser = arguments(__doc__, device=True)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each penalty and each update")
    args = parser.parse_args()
    seconds = None if args.quick else args.seconds
    assert_same_algebra()
    device = choose_device(args.device)
    make_deterministic(0, device)  # as in a run
    print_json({"device": str(device), "torch": torch.__version__, "threads": torch.get_num_threads()})
    speedups = {}
    for labels, features, kind in SIZES[: 1 if args.quick else None]:
        alignment = align_tasks(kind, labels)
        size = "x".join(map(str, (*alignment.matrix.shape[:2], features)))
        heads = torch.randn(sum(labels), features, device=device) / (3 * features) ** 0.5
        published = costs(Algebra(alignment, features, LAMBDA, device), heads, seconds)
        print_json({"size": size, "alignment": kind, "published_ms": published})
        for name in PRIORS:
            prior = PRIOR_CLASSES[name](alignment, PriorSettings(features, LAMBDA, TOKENS), device)
            ours = costs(prior, heads, seconds)
            over = {part: round(published[part] / ours[part], 2) for part in ours}
            print_json({"size": size, "prior": name, "ms": ours, "published_over": over})
            if name == "relational":
                speedups[size] = over["update"]
    encoders = ("minilm",) if args.quick else ("minilm", "bert-base")
    steps = {encoder: mrn_over_mtl(encoder, device, quick=args.quick) for encoder in encoders}
    print_json({"update_speedup": speedups, "mrn_over_mtl": steps})


if __name__ == "__main__":
    main()
