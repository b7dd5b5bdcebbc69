"""What an epoch's evaluation takes of the epoch, for a trained encoder and for a frozen one.

    python -m tests.benchmarks.evaluation --data ../shared/data/conll2003 --every 8 --steps 40

Every eighth sentence of the training, development and test splits, so that shares are those of the whole
corpus (`--every 1`). Between evaluations of the development sentences, step after step is trained, as in a
run; an epoch has its number of steps at their mean time. Times are of the processor, on one thread, which
other work on the machine does not lengthen much. Prints JSON; the last line has the larger of the two shares.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any, TypeVar

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.training.evaluate import Scorer, predict
from core.training.setup import set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import arguments, laboratory, tell

_ROUNDS = 4
Result = TypeVar("Result")


def measure(config: RunConfig, every: int, steps: int) -> dict[str, Any]:
    """Milliseconds of the processor, medians: of a step, of an evaluation and its parts; and its share."""
    corpus = prepare(config)
    parts = {name: getattr(corpus, name)[::every] for name in ("train", "dev", "test")}
    run = set_up(config, replace(corpus, **parts))
    run.compute_features(lambda _event: None, lambda: False)
    torch.set_num_threads(1)
    dev = run.splits["dev"]
    taken: dict[str, list[float]] = {name: [] for name in ("number", "step", "predict", "score", "result")}

    def timed(name: str, action: Callable[[], Result]) -> Result:
        began = time.process_time()
        result = action()
        taken[name].append(1000 * (time.process_time() - began))
        return result

    scorer = timed("number", lambda: Scorer(config, "dev", dev, run.facts.tasks))
    for _ in range(_ROUNDS):
        run.model.train()
        batches = run.epoch(skip=0)
        for _ in range(-(-steps // _ROUNDS) + 1):
            batch = next(batches)
            timed("step", lambda: train_step(run, batch))  # noqa: B023 — called at once
        taken["step"].pop(-steps // _ROUNDS - 1)  # libraries get ready for the first
        predicted = timed("predict", lambda: predict(run.model, run.enter("dev"), run.device))
        timed("score", lambda: scorer.headlines(predicted))  # noqa: B023
        timed("result", lambda: scorer.result(predicted, 1))  # noqa: B023
    # Of steps the mean: they differ in length, and an epoch has them all.
    epoch_ms = run.facts.steps_per_epoch * mean(taken["step"])
    evaluation_ms = median(taken["predict"]) + median(taken["score"])
    return {
        "training_sentences": len(parts["train"]),
        "dev_sentences": len(parts["dev"]),
        "step_ms": round(mean(taken["step"]), 2),
        "epoch_ms": round(epoch_ms),
        "gold_numbered_once_ms": round(taken["number"][0], 2),
        "predict_ms": round(median(taken["predict"]), 2),
        "score_ms": round(median(taken["score"]), 2),
        "score_with_details_ms": round(median(taken["result"]), 2),
        "share_of_epoch": round(evaluation_ms / (epoch_ms + evaluation_ms), 4),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", default="conll2003", help="a corpus, or a folder of CoNLL files")
    parser.add_argument("--columns", default="tokens,pos,chunk,ner", help="of such a folder")
    parser.add_argument("--tasks", default="pos,chunk,ner")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--every", type=int, default=8, help="which share of the sentences: 1 for all")
    parser.add_argument("--steps", type=int, default=40, help="training steps that are timed, in all")
    asked = parser.parse_args()
    if asked.quick:
        asked.data, asked.every, asked.steps = "demo", 50, _ROUNDS
    values: dict[str, Any] = {"corpus": asked.data, "tasks": asked.tasks, "encoder": asked.encoder}
    if Path(asked.data).is_dir():
        values["columns"] = asked.columns
    shares = []
    for training in ("full", "frozen"):
        config = RunConfig.build(paradigm="mtl", device="cpu", encoder_training=training, **values)
        with laboratory():  # encoded text and features are cached there
            figures = measure(config, asked.every, asked.steps)
        tell({"encoder_training": training} | figures)
        shares.append(figures["share_of_epoch"])
    tell({"evaluation_share_of_epoch": max(shares)})


if __name__ == "__main__":
    main()
