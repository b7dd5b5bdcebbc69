"""What a step costs with each way of balancing tasks, over a step without, on the same batches.

`python -m tests.benchmarks.balancing` trains POS, chunks and NER on the demo corpus, and prints for each
encoder milliseconds of a step (of processor time on a CPU) and their ratios. The last line has the medians of
the ratios; the goal is at most the number of tasks, 3, since gradients of tasks share the pass forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any, get_args

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.models.device import choose_device, make_deterministic
from core.training.balancing import make_balancing
from core.training.setup import set_up
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

ENCODERS: dict[str, dict[str, Any]] = {
    "minilm": {},
    "minilm, last two layers": {"encoder_training": "top:2"},
    "minilm+bilstm, frozen": {"encoder_training": "frozen", "bilstm_hidden": 64},
}


def over_none(name: str, device: torch.device, *, quick: bool) -> dict[str, float]:
    """The median ratios of this encoder, by balancing."""
    fields = {"encoder": minilm() + "+bilstm" * ("bilstm" in name), **ENCODERS[name]}
    batches, rounds, corpus = (1, 1, "demo?train=20&dev=4&test=4") if quick else (6, 5, "demo")
    with laboratory():
        config = RunConfig.build(
            corpus=corpus, tasks="pos,chunk,ner", paradigm="mtl", fraction=0.1, device=str(device), **fields
        )
        run = set_up(config, prepare(config))
        run.compute_features(lambda _: None, lambda: False)
    run.model.train()
    drawn = list(islice(run.epoch(0), batches))
    first, *_ = get_args(RunConfig.model_fields["balancing"].annotation)
    ways: dict[str, Callable[..., object]] = {}
    for balancing in get_args(first):
        balanced = make_balancing(config.with_(balancing=balancing), run.model, device)
        ways[balancing] = partial(train_step, replace(run, balancing=balanced))
        for batch in drawn:  # not counted: memory is allocated for each shape
            ways[balancing](batch)
    on_gpu = device.type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time

    def timed(step: Callable[..., object], batch: object) -> float:
        def finished() -> None:
            step(batch)
            if on_gpu:
                torch.cuda.synchronize(device)

        return milliseconds(finished, clock=clock)[0]

    times = alternate({way: partial(timed, step) for way, step in ways.items()}, drawn * rounds)
    over = {way: ratio(ms, times["none"]) for way, ms in times.items() if way != "none"}
    print_json({"encoder": name, "ms": {way: round(median(ms), 2) for way, ms in times.items()}} | over)
    return {way: float(figures["median"]) for way, figures in over.items()}


def main() -> None:
    args = arguments(__doc__, device=True).parse_args()
    device = choose_device(args.device)
    make_deterministic(0, device)  # as in a run
    print_json({"device": str(device), "torch": torch.__version__, "threads": torch.get_num_threads()})
    names = list(ENCODERS)[-1 if args.quick else 0 :]
    print_json({"over_none": {name: over_none(name, device, quick=args.quick) for name in names}})


if __name__ == "__main__":
    main()
