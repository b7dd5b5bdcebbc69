"""Which fraction of an epoch its evaluation takes, for a trained encoder and for a frozen one.

    python -m tests.benchmarks.evaluation --data ../shared/data/conll2003

Every eighth sentence of each split is used (`--every`), so that fractions are those of the whole corpus.
Training steps alternate with evaluations of the development sentences, as in a run; an epoch has its number
of steps at their mean time. Times are processor time of one thread. Prints JSON; the last line has the larger
fraction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from statistics import mean, median
from typing import Any

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.training.evaluate import Scorer, predict
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import arguments, corpus_fields, laboratory, milliseconds, print_json


def measure(config: RunConfig, every: int, rounds: int, steps: int) -> dict[str, Any]:
    """Milliseconds of a step and of the parts of an evaluation, and the evaluation's fraction of an epoch."""
    corpus = prepare(config)
    parts = {name: getattr(corpus, name)[::every] for name in ("train", "dev", "test")}
    run = set_up(config, replace(corpus, **parts))
    run.compute_features(lambda _event: None, lambda: False)
    torch.set_num_threads(1)
    scorer = Scorer(config, "dev", run.splits["dev"], run.facts.tasks)
    times: dict[str, list[float]] = {"step": [], "predict": [], "score": [], "details": []}
    predictions: list[Any] = []

    def time_part(name: str, action: Callable[[], object]) -> None:
        times[name] += milliseconds(action, clock=time.process_time)

    for _ in range(rounds):
        run.model.train()
        batches = run.epoch(skip=0)
        train_step(run, next(batches))  # not timed: after an evaluation, the first step is slower
        for batch in islice(batches, steps):
            time_part("step", lambda: train_step(run, batch))  # noqa: B023
        time_part("predict", lambda: predictions.append(predict(run.model, run.use_split("dev"), run.device)))
        time_part("score", lambda: scorer.headlines(predictions[-1]))
        time_part("details", lambda: scorer.result(predictions[-1], 1))
    # The mean of the steps: they differ in length, and an epoch has them all.
    epoch_ms = run.facts.steps_per_epoch * mean(times["step"])
    evaluation_ms = median(times["predict"]) + median(times["score"])
    return {
        "training_sentences": len(parts["train"]),
        "dev_sentences": len(parts["dev"]),
        "step_ms": round(mean(times["step"]), 2),
        "epoch_ms": round(epoch_ms),
        "predict_ms": round(median(times["predict"]), 2),
        "score_ms": round(median(times["score"]), 2),
        "score_with_details_ms": round(median(times["details"]), 2),
        "fraction_of_epoch": round(evaluation_ms / (epoch_ms + evaluation_ms), 4),
    }


def main() -> None:
    parser = arguments(__doc__, data="conll2003")
    parser.add_argument("--every", type=int, default=8, help="use every Nth sentence")
    args = parser.parse_args()
    rounds, steps = 4, 10
    if args.quick:
        args.data, args.every, rounds, steps = "demo", 50, 1, 1
    values = corpus_fields(args.data) | {"paradigm": "mtl", "device": "cpu"}
    fractions = []
    for training in ("full", "frozen"):
        with laboratory():  # encoded text and features are cached there
            figures = measure(RunConfig.build(encoder_training=training, **values), args.every, rounds, steps)
        print_json({"encoder_training": training} | figures)
        fractions.append(figures["fraction_of_epoch"])
    print_json({"evaluation_share_of_epoch": max(fractions)})


if __name__ == "__main__":
    main()
