"""What a label of each sentence costs beside those of its words: an epoch of `demo-intents` with and without.

    python -m tests.benchmarks.sentence_labels

A model of POS and slots and one of POS, slots and intent are trained on the same sentences, an epoch each in
turn. Prints JSON: seconds and processor seconds of an epoch of each, and their ratio, pair by pair; the last
line has the medians (at most 1.1 is the goal).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.models.device import choose_device
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import alternate, arguments, laboratory, print_json, ratio, spread
from tests.tiny import tiny_bert

TASKS = {"words": "pos,slots", "both": "pos,slots,intent"}


def training(tasks: str, encoder: str, device: str) -> TrainingRun:
    """The training of a run of these tasks, set up."""
    config = RunConfig.build(
        corpus="demo-intents", tasks=tasks, paradigm="mtl", encoder=encoder, device=device, epochs=1000
    )
    return set_up(config, prepare(config))


def epoch(run: TrainingRun, batches: int | None) -> Callable[[int], tuple[float, float]]:
    """Trains an epoch, or its first batches, and returns its seconds and processor seconds."""

    def timed(_round: int) -> tuple[float, float]:
        run.model.train()
        began, cpu_began = time.perf_counter(), time.process_time()
        for number, batch in enumerate(run.epoch(0)):
            if number == batches:
                break
            train_step(run, batch)
        if run.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began, time.process_time() - cpu_began

    return timed


def main() -> None:
    parser = arguments(__doc__, device=True)
    parser.add_argument("--encoder", default="minilm")
    args = parser.parse_args()
    device = str(choose_device(args.device))
    with laboratory() as home:
        encoder = str(tiny_bert(home / "encoder", positions=256)) if args.quick else args.encoder
        runs = {name: training(tasks, encoder, device) for name, tasks in TASKS.items()}
        ways = {name: epoch(run, 2 if args.quick else None) for name, run in runs.items()}
        for way in ways.values():  # memory is allocated for each shape
            way(0)
        times = alternate(ways, range(2 if args.quick else 4))
    figures = {}
    for number, clock in enumerate(("s", "cpu_s")):
        of_clock = {name: [round_[number] for round_ in rounds] for name, rounds in times.items()}
        both_over_words = ratio(of_clock["both"], of_clock["words"])
        print_json(
            {f"{name}_{clock}": spread(seconds) for name, seconds in of_clock.items()}
            | {"both_over_words": both_over_words}
        )
        figures[clock] = both_over_words["median"]
    facts = runs["both"].facts
    print_json({"device": facts.hardware, "threads": facts.threads, "precision": facts.precision})
    print_json({"both_over_words": figures["s"], "both_over_words_cpu": figures["cpu_s"]})


if __name__ == "__main__":
    main()
