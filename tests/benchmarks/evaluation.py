"""What an epoch's evaluation takes of the epoch, for a trained encoder and for a frozen one.

    python -m tests.benchmarks.evaluation --data ../shared/data/conll2003 --every 8 --steps 40

Every eighth sentence of the training, development and test splits, so that shares are those of the whole
corpus (`--every 1`). Between evaluations of the development sentences, step after step is trained, as in a
run; an epoch has its number of steps at their mean time. Times are of the processor, on one thread, which
other work on the machine does not lengthen much. Prints JSON; the last line has the larger of the two shares.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.training.prediction import predict
from core.training.scoring import Scorer
from core.training.setup import Setup, set_up
from core.training.trainer import train_step

__all__ = ["main", "measure"]

_ROUNDS = 4
_T = TypeVar("_T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="conll2003", help="a corpus, or a folder of CoNLL files")
    parser.add_argument("--columns", default="tokens,pos,chunk,ner", help="of such a folder")
    parser.add_argument("--tasks", default="pos,chunk,ner")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--every", type=int, default=8, help="which share of the sentences: 1 for all")
    parser.add_argument("--steps", type=int, default=40, help="training steps that are timed, in all")
    asked = parser.parse_args()
    values: dict[str, Any] = {"corpus": asked.data, "tasks": asked.tasks, "encoder": asked.encoder}
    if Path(asked.data).is_dir():
        values["columns"] = asked.columns
    shares = {}
    for training in ("full", "frozen"):
        with TemporaryDirectory() as home:
            os.environ["MRNLAB_HOME"] = home  # encoded text and features are cached there
            config = RunConfig.build(paradigm="mtl", device="cpu", encoder_training=training, **values)
            figures = measure(config, asked.every, asked.steps)
        print(json.dumps({"encoder_training": training} | figures), flush=True)
        shares[training] = figures["share_of_epoch"]
    print(json.dumps({"evaluation_share_of_epoch": max(shares.values())}))


def measure(config: RunConfig, every: int, steps: int) -> dict[str, Any]:
    """Milliseconds of the processor, medians: of a step, of an evaluation and its parts; and its share."""
    corpus = prepare(config)
    parts = {name: getattr(corpus, name)[::every] for name in ("train", "dev", "test")}
    run = set_up(config, replace(corpus, **parts))
    run.compute_features(lambda _event: None, lambda: False)
    torch.set_num_threads(1)
    dev = run.splits["dev"]
    scorer, numbering = _timed(lambda: Scorer(config, "dev", dev, run.tasks))
    taken: dict[str, list[float]] = {"step": [], "predict": [], "score": [], "result": []}
    for _ in range(_ROUNDS):
        taken["step"] += _steps(run, -(-steps // _ROUNDS))
        predicted, spent = _timed(lambda: predict(run.model, run.enter("dev"), run.device))
        taken["predict"].append(spent)
        for name, score in (
            ("score", lambda: scorer.headlines(predicted)),  # noqa: B023 — called at once
            ("result", lambda: scorer.result(predicted, 1)),  # noqa: B023
        ):
            taken[name].append(_timed(score)[1])
    # Of steps the mean: they differ in length, and an epoch has them all.
    epoch = run.facts.steps_per_epoch * sum(taken["step"]) / len(taken["step"])
    evaluation = median(taken["predict"]) + median(taken["score"])
    return {
        "training_sentences": len(parts["train"]),
        "dev_sentences": len(parts["dev"]),
        "step_ms": round(sum(taken["step"]) / len(taken["step"]), 2),
        "epoch_ms": round(epoch),
        "gold_numbered_once_ms": round(numbering, 2),
        "predict_ms": round(median(taken["predict"]), 2),
        "score_ms": round(median(taken["score"]), 2),
        "score_with_details_ms": round(median(taken["result"]), 2),
        "share_of_epoch": round(evaluation / (epoch + evaluation), 4),
    }


def _steps(run: Setup, number: int) -> list[float]:
    """Each of some steps of an epoch; one before them, for which libraries get ready, is not counted."""
    run.model.train()
    taken = []
    batches = run.epoch(skip=0)
    for _ in range(number + 1):
        _, spent = _timed(lambda: train_step(run, next(batches)))
        taken.append(spent)
    return taken[1:]


def _timed(action: Callable[[], _T]) -> tuple[_T, float]:
    """What it gives, and the milliseconds of the processor that it took."""
    began = time.process_time()
    result = action()
    return result, 1000 * (time.process_time() - began)


if __name__ == "__main__":
    main()
