"""How many small runs an hour: `python -m tests.benchmarks.small_runs [--runs 16 --slots 2]`.

Runs as a study has them by the thousand: 1,000 training sentences of `demo` (or `--corpus conll2003`) over
a frozen MiniLM, three tasks, with a BiLSTM of 2 x 100 on top and with heads alone; seeds and λ differ. They
wait in the queue of a laboratory of its own, and real supervised workers train them, first one, then more.
What is computed once for each seed (its sentences' features) is there before: `new_seed_s` tells what that
costs. An hour's runs are counted from the end of each worker's first run, which pays for the process's start.

Then one worker trains some of them again in this process under cProfile, and tells where its thread's
processor time goes: seconds a run of each stage, what it calls included, somewhat more than without a
profiler. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import cProfile
import itertools
import logging
import os
import pstats
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from core.config import RunConfig
from core.corpora import prepare
from core.recording.owner import this_process
from core.store import ENDED, Run, RunState, Store
from jobs.submit import submit
from jobs.worker.loop import Worker
from tests.benchmarks._harness import arguments, laboratory, processes, tell
from tests.supervised import supervised

_SENTENCES, _SEEDS, _LOOK_S = 1000, 4, 0.1
_KINDS: dict[str, dict[str, Any]] = {
    "bilstm": {"encoder": "minilm+bilstm", "bilstm_hidden": 100},
    "heads": {"encoder": "minilm"},
}
_OURS = ("core", "jobs")
_MOST_STAGES = 40


def descriptions(kind: str, corpus: str, number: int, epochs: int) -> list[RunConfig]:
    """So many runs of a study: all seeds of one λ, then all of the next."""
    common: dict[str, Any] = {"corpus": corpus, "tasks": "pos,chunk,ner", "encoder_training": "frozen"}
    common |= {"epochs": epochs}
    whole = prepare(RunConfig.build(**common))
    common |= {"fraction": min(1.0, _SENTENCES / len(whole.train))} | _KINDS[kind]
    lambdas = (0.001 * 1.1**power for power in itertools.count())
    grid = ({"lambda": lambda_, "seed": seed} for lambda_ in lambdas for seed in range(1, _SEEDS + 1))
    return [RunConfig.build(**common, **values) for values in itertools.islice(grid, number)]


def trained(configs: Sequence[RunConfig], slots: int, worker: str) -> list[Run]:
    """Queues the runs and waits until that many workers have trained them."""
    os.environ["MRNLAB_SLOTS"] = str(slots)
    with supervised(worker) as (store, engine):
        store.unpause_queue()  # those before were ended with the queue paused
        ids = submit(store, configs, engine=engine)
        while any(run.state not in ENDED for run in store.runs(ids, with_facts=False)):
            time.sleep(_LOOK_S)
        runs = store.runs(ids)
    for run in runs:
        assert run.state is RunState.SUCCEEDED, run.error
    return runs


def per_hour(runs: Sequence[Run]) -> float:
    """Of all workers together, each counted from the end of its first run."""
    ends = defaultdict(list)
    for run in runs:
        assert run.owner is not None
        assert run.finished_at is not None
        ends[run.owner.pid].append(run.finished_at.timestamp())
    several = [sorted(own) for own in ends.values() if len(own) > 1]
    return sum(3600 * (len(own) - 1) / (own[-1] - own[0]) for own in several)


def seconds(run: Run) -> float:
    """From claim to end."""
    assert run.seconds is not None
    return round(run.seconds, 2)


def profile(configs: Sequence[RunConfig]) -> dict[str, dict[str, float]]:
    """Processor seconds and calls a run of our functions, the costliest first, of a worker that has trained
    the first of these runs before.
    """
    logging.disable()
    with laboratory(os.environ["MRNLAB_HOME"]), contextlib.closing(Store.open("sqlite://")) as store:
        store.add_runs(list(configs))
        worker = Worker(store, this_process(), log_to=lambda _: contextlib.nullcontext())
        worker.train_next()
        profiler = cProfile.Profile(time.thread_time)
        with profiler:
            while worker.train_next():
                pass
        for run in store.runs():
            assert run.state is RunState.SUCCEEDED, run.error
    number = len(configs) - 1
    stages = {}
    for (file, _line, function), (_, calls, _, cumulative, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        place = os.path.relpath(file) if os.path.isabs(file) else file
        if place.startswith(_OURS):
            stages[f"{place}:{function}"] = {"processor_s": cumulative / number, "calls": calls / number}
    costliest = sorted(stages.items(), key=lambda stage: -stage[1]["processor_s"])[:_MOST_STAGES]
    return {name: {what: round(value, 4) for what, value in figures.items()} for name, figures in costliest}


def main() -> None:
    """Prints each figure, and all as JSON."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=16, help="of each kind, with each number of workers")
    parser.add_argument("--slots", type=int, default=2, help="the most workers at once")
    parser.add_argument("--corpus", default="demo")
    parser.add_argument(
        "--home", help="keeps the laboratory here, so that its caches are there the next time"
    )
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(_KINDS))
    parser.add_argument("--profiled", type=int, default=9, help="runs of which the stages are timed")
    asked = parser.parse_args()
    # Told to end, it ends its workers first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # As on a machine of one's own: workers share its cores as the engine says.
    os.environ.pop("OMP_NUM_THREADS", None)
    worker = "jobs.worker.loop"
    if asked.quick:
        asked.runs, asked.slots, asked.profiled, worker = 2, 1, 2, "tests.small_training"
    figures: dict[str, object] = {}
    hourly: dict[str, dict[str, float]] = {}
    with laboratory(asked.home) as home:
        kinds = asked.kinds.split(",")
        if asked.quick:
            from tests.trained import toy_config

            toys = [
                toy_config(home, encoder_training="frozen", lr_encoder=None, epochs=1, seed=seed)
                for seed in (1, 2)
            ]
        first = toys[:1] if asked.quick else descriptions("heads", asked.corpus, _SEEDS, 1)
        figures["new_seed_s"] = [seconds(run) for run in trained(first, 1, worker)]
        print(f"A seed's first run, of one epoch: {figures['new_seed_s']} s, the first with torch's start.")
        for kind in kinds:
            configs = toys if asked.quick else descriptions(kind, asked.corpus, asked.runs, asked.epochs)
            hourly[kind] = {}
            for slots in range(1, asked.slots + 1) if asked.runs else ():
                runs = trained(configs, slots, worker)
                hourly[kind][f"{slots} workers" if slots > 1 else "1 worker"] = round(per_hour(runs), 1)
                took = sorted(map(seconds, runs))[len(runs) // 2]
                print(f"{kind}, {slots} at once: {per_hour(runs):,.0f} runs an hour, {took:.2f} s a run")
            if asked.profiled:
                os.environ["OMP_NUM_THREADS"] = "1"
                with processes(asked.quick).Pool(1) as pool:
                    stages = pool.apply(profile, (configs[: asked.profiled],))
                del os.environ["OMP_NUM_THREADS"]
                for name, figure in stages.items():
                    print(f"{name:60}{figure['processor_s']:9.3f} s{figure['calls']:9.1f} calls")
                figures[f"{kind}_stages"] = stages
    tell(figures | {"runs_per_hour": hourly})


if __name__ == "__main__":
    main()
