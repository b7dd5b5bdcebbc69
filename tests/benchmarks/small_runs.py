"""How many small runs an hour: `python -m tests.benchmarks.small_runs [--runs 16 --slots 2]`.

Runs of a typical study: 1,000 training sentences of `demo` over a frozen MiniLM, three tasks, with a BiLSTM
of 2 x 100 on top and with heads alone; seeds and λ differ. Real supervised workers train them from the queue
of a temporary laboratory: one at a time (the default of earlier versions), two at once, and as many as the
default says, in turn. Each seed's features are computed before (`new_seed_s`). Runs per hour are counted from
the end of each worker's first run, which pays for the start. `--kinds fine_tuned --runs 20` measures a sweep
of MiniLM trained in full.

Then one worker trains some of them again under cProfile: processor seconds of each function per run, with
what it calls. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import cProfile
import itertools
import logging
import os
import pstats
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.recording.owner import this_process
from core.store import ENDED, Run, RunState, Store
from jobs.queue.submit import submit
from jobs.worker.loop import Worker
from tests.benchmarks._harness import alternate, arguments, laboratory, minilm, print_json, processes, spread
from tests.supervised import supervised
from tests.trained import toy_config

_SENTENCES, _SEEDS, _EPOCHS, _POLL_S = 1000, 4, 5, 0.1
_ENCODERS: dict[str, dict[str, Any]] = {
    "bilstm": {"encoder": minilm() + "+bilstm", "bilstm_hidden": 100},
    "heads": {"encoder": minilm()},
    "fine_tuned": {"encoder": minilm(), "encoder_training": "full"},
}
_PROFILED, _STAGES = 9, 40
_EPOCHS_FINE_TUNED = 3


def make_configs(number: int, first: float = 0.001, **values: Any) -> list[RunConfig]:
    """So many runs of a study: all seeds of the first λ, then all of the next."""
    base: dict[str, Any] = {"corpus": "demo", "tasks": "pos,chunk,ner", "encoder_training": "frozen"}
    fraction = min(1.0, _SENTENCES / len(prepare(RunConfig.build(**base)).train))
    lambdas = (first * 1.1**power for power in itertools.count())
    base |= values
    grid = ({"lambda": lambda_, "seed": seed} for lambda_ in lambdas for seed in range(1, _SEEDS + 1))
    return [RunConfig.build(fraction=fraction, **base, **varied) for varied in itertools.islice(grid, number)]


def train(configs: Sequence[RunConfig], slots: int | None, worker: str) -> Sequence[Run]:
    """Queue the runs and wait until that many workers, or as many as the settings say, have trained them."""
    os.environ.pop("MRNLAB_SLOTS", None)
    if slots is not None:
        os.environ["MRNLAB_SLOTS"] = str(slots)
    with supervised(worker) as (store, engine):
        store.unpause_queue()  # `supervised` leaves it paused
        ids, _ = submit(store, configs, engine=engine)
        while any(run.state not in ENDED for run in store.runs(ids)):
            time.sleep(_POLL_S)
        runs = store.runs(ids)
    for run in runs:
        assert run.state is RunState.SUCCEEDED, run.error
    return runs


def runs_per_hour(runs: Sequence[Run]) -> float:
    """Of all workers together, each counted from the end of its first run."""
    ends = defaultdict(list)
    for run in runs:
        assert run.owner is not None
        assert run.finished_at is not None
        ends[run.owner.pid].append(run.finished_at.timestamp())
    return round(sum(3600 * (len(e) - 1) / (max(e) - min(e)) for e in ends.values() if len(e) > 1), 1)


def sharing_a_gpu(numbers: Sequence[int], *, quick: bool) -> dict[str, float]:
    """Fine-tuned runs an hour where so many share each GPU."""
    hourly = {}
    for number in numbers:
        with laboratory(MRNLAB_RUNS_PER_GPU=str(number)) as home:
            if quick:
                configs = [toy_config(home, epochs=1, seed=seed) for seed in (1, 2)]
                runs = train(configs, None, "tests.small_training")
            else:
                values: dict[str, Any] = {
                    "encoder": minilm(),
                    "encoder_training": "full",
                    "epochs": _EPOCHS_FINE_TUNED,
                }
                runs = train(make_configs(4 + 2 * number, **values), None, "jobs.worker.loop")
        hourly[str(number)] = runs_per_hour(runs)
        print(f"{number} a GPU: {hourly[str(number)]:,.0f} an hour", flush=True)
    return hourly


def profile(configs: Sequence[RunConfig]) -> dict[str, dict[str, float]]:
    """Processor seconds and calls per run of our functions, the costliest first, in a worker that has trained
    the first of these runs before.
    """
    torch.set_num_threads(1)
    logging.disable()
    with contextlib.closing(Store.open("sqlite://")) as store:
        store.add_runs(list(configs))
        worker = Worker(store, this_process(), log_to=lambda _: contextlib.nullcontext())
        worker.train_next()
        profiler = cProfile.Profile(time.thread_time)
        with profiler:
            while worker.train_next():
                pass
        for run in store.runs():
            assert run.state is RunState.SUCCEEDED, run.error
    stages = {}
    for (file, _line, function), (_, calls, _, cumulative, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        path = os.path.relpath(file) if os.path.isabs(file) else file
        if path.startswith(("core", "jobs")):
            number = len(configs) - 1
            figures = {"processor_s": round(cumulative / number, 4), "calls": round(calls / number, 1)}
            stages[f"{path}:{function}"] = figures
    return dict(sorted(stages.items(), key=lambda stage: -stage[1]["processor_s"])[:_STAGES])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=16, help="of each kind, with each number of workers")
    parser.add_argument("--slots", type=int, default=2, help="the most workers at once")
    parser.add_argument("--rounds", type=int, default=1, help="how often each number of workers is measured")
    parser.add_argument("--kinds", default="bilstm,heads", metavar=",".join(_ENCODERS), help="of runs")
    parser.add_argument(
        "--runs-per-gpu", metavar="N,...", help="instead: fine-tuned runs an hour, with so many on each GPU"
    )
    args = parser.parse_args()
    if args.runs_per_gpu:
        numbers = [int(number) for number in args.runs_per_gpu.split(",")]
        print_json({"runs_per_hour": sharing_a_gpu(numbers, quick=args.quick)})
        return
    worker, slots = ("tests.small_training", 1) if args.quick else ("jobs.worker.loop", args.slots)
    os.environ.pop("OMP_NUM_THREADS", None)  # workers share the cores as the engine says
    figures: dict[str, object] = {}
    hourly: dict[str, dict[str, dict[str, Any]]] = {}
    with laboratory() as home:
        frozen = {"encoder_training": "frozen", "lr_encoder": None, "epochs": 1}
        toys = [toy_config(home, seed=seed, **frozen) for seed in (1, 2)] if args.quick else []
        first = toys[:1] or make_configs(_SEEDS, epochs=1)
        figures["new_seed_s"] = [run.seconds for run in train(first, 1, worker)]
        for kind in args.kinds.split(","):
            values = {"epochs": _EPOCHS_FINE_TUNED if kind == "fine_tuned" else _EPOCHS} | _ENCODERS[kind]
            # A λ of its own each time: runs of one configuration would take the threads of the first.
            first_lambda = itertools.count(1)

            def measured(
                number: int | None, _round: int, values: Any = values, firsts: Any = first_lambda
            ) -> float:
                configs = toys or make_configs(args.runs, next(firsts) / 1000, **values)
                return runs_per_hour(train(configs, number, worker))

            ways = {f"{number} at once": partial(measured, number) for number in range(1, slots + 1)}
            results = alternate(ways | {"by default": partial(measured, None)}, range(args.rounds))
            hourly[kind] = {way: spread(found, 1) for way, found in results.items()}
            print(f"{kind}: {hourly[kind]}", flush=True)
            configs = toys or make_configs(_PROFILED, **values)
            with processes(args.quick).Pool(1) as pool:
                figures[f"{kind}_stages"] = pool.apply(profile, (configs[:_PROFILED],))
    print_json(figures | {"runs_per_hour": hourly})


if __name__ == "__main__":
    main()
