"""How many small runs an hour: `python -m tests.benchmarks.small_runs [--runs 16 --slots 2]`.

Runs as a study has them by the thousand: 1,000 training sentences of `demo` (or `--corpus conll2003`) over
a frozen MiniLM, three tasks, with a BiLSTM of 2 x 100 on top and with heads alone; seeds and λ differ. They
wait in the queue of a laboratory of its own, and real supervised workers train them, first one, then more.
What is computed once for each seed (its sentences' features) is there before: `new_seed_s` tells what that
costs. An hour's runs are counted from the end of each worker's first run, which pays for the process's start.

Then one worker trains some of them again in this process, and tells where its time goes, in seconds a run.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from core.config import RunConfig
from core.corpora import prepare
from core.store import ENDED, Run, RunState, Store
from jobs.processes import this_process
from jobs.submit import submit
from jobs.worker import Worker
from tests.benchmarks.stages import Stage, Stages
from tests.supervised import supervised

_SENTENCES = 1000
_SEEDS = 4
_LOOK_S = 0.1
_KINDS: dict[str, dict[str, Any]] = {
    "bilstm": {"encoder": "minilm+bilstm", "bilstm_hidden": 100},
    "heads": {"encoder": "minilm"},
}


def descriptions(kind: str, corpus: str, number: int, epochs: int) -> list[RunConfig]:
    """So many runs of a study: all seeds of one λ, then all of the next."""
    common: dict[str, Any] = {
        "corpus": corpus,
        "tasks": "pos,chunk,ner",
        "encoder_training": "frozen",
        "epochs": epochs,
    }
    whole = prepare(RunConfig.build(**common))
    common |= {"fraction": min(1.0, _SENTENCES / len(whole.train))} | _KINDS[kind]
    strengths = (0.001 * 1.1**power for power in itertools.count())
    seeds = range(1, _SEEDS + 1)
    every = ({"lambda": strength, "seed": seed} for strength in strengths for seed in seeds)
    return [RunConfig.build(**common, **one) for one in itertools.islice(every, number)]


def trained(configs: Sequence[RunConfig], slots: int) -> list[Run]:
    """Queues the runs and waits until that many workers have trained them."""
    os.environ["MRNLAB_SLOTS"] = str(slots)
    with supervised("jobs.worker") as (store, engine):
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
    assert run.started_at is not None
    assert run.finished_at is not None
    return (run.finished_at - run.started_at).total_seconds()


def _stages() -> list[Stage]:
    """What a worker does, from claim to claim."""
    import core.corpora
    from core.checkpoints import Checkpoint
    from core.encoding.batches import Batches
    from core.training import setup, trainer
    from core.training.resuming import Resuming
    from core.training.scoring import Scorer
    from core.training.step_log import StepLog
    from jobs import worker
    from jobs.sink import StoreSink

    return [
        ("rest of the worker", Worker, "train_next"),
        ("claim", Store, "claim"),
        ("corpus prepared", core.corpora, "prepare"),
        ("set up: rest", trainer, "set_up"),
        ("set up: tokenizer", setup, "_tokenizer"),
        ("set up: encoder", setup, "_encoder"),
        ("set up: words encoded", setup, "encode_corpus"),
        ("set up: features", setup.Setup, "compute_features"),
        ("state looked for", Resuming, "begin"),
        ("loop: rest", trainer, "train"),
        ("loop: batches", Batches, "_batch"),
        ("loop: steps", trainer, "train_step"),
        ("loop: step log", StepLog, "add"),
        ("loop: step log", StepLog, "flush"),
        ("dev and test predicted", trainer, "predict"),
        ("dev and test scored", Scorer, "__init__"),
        ("dev and test scored", Scorer, "headlines"),
        ("dev and test scored", Scorer, "result"),
        ("best model kept", Resuming, "save_best"),
        ("best model restored", Resuming, "restore_best"),
        ("model published", Checkpoint, "publish"),
        ("states forgotten", Checkpoint, "forget_states"),
        ("store: events written", StoreSink, "_write"),
        ("store: run finished", Store, "finish"),
        ("dead looked for", worker, "reap"),
    ]


def profile(configs: Sequence[RunConfig]) -> dict[str, dict[str, float]]:
    """Seconds a run, by stage, of a worker that has trained the first of these before."""
    logging.disable()
    stages = Stages(_stages())
    with contextlib.closing(Store.open("sqlite:///" + tempfile.mkdtemp() + "/runs.db")) as store:
        store.add_runs(list(configs))
        worker = Worker(store, this_process(), log_to=lambda _: contextlib.nullcontext())
        worker.train_next()
        stages.clear()
        while worker.train_next():
            pass
        for run in store.runs():
            assert run.state is RunState.SUCCEEDED, run.error
    number = len(configs) - 1
    return {
        name: {
            "clock_s": clock / number,
            "processor_s": stages.processor[name] / number,
            "calls": stages.calls[name] / number,
        }
        for name, clock in stages.clock.items()
    }


def _show(kind: str, found: dict[str, dict[str, float]]) -> None:
    print(f"\n{kind}: where the time of one worker goes, in seconds a run")
    print(f"{'':34}{'clock':>8}{'processor':>11}{'calls':>8}")
    for name, one in sorted(found.items(), key=lambda pair: -pair[1]["clock_s"]):
        print(f"{name:34}{one['clock_s']:8.3f}{one['processor_s']:11.3f}{one['calls']:8.1f}")
    own = [one for name, one in found.items() if "another thread" not in name]
    print(f"{'all':34}{sum(o['clock_s'] for o in own):8.3f}{sum(o['processor_s'] for o in own):11.3f}")


def main() -> None:
    """Prints each figure, and all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16, help="of each kind, with each number of workers")
    parser.add_argument("--slots", type=int, default=2, help="the most workers at once")
    parser.add_argument("--corpus", default="demo")
    parser.add_argument(
        "--home", help="keeps the laboratory here, so that its caches are there the next time"
    )
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(_KINDS))
    parser.add_argument("--profiled", type=int, default=9, help="runs of which the stages are timed")
    given = parser.parse_args()
    # Told to end, it ends its workers first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # As on a machine of one's own: workers share its cores as the engine says.
    os.environ.pop("OMP_NUM_THREADS", None)
    figures: dict[str, object] = {}
    hourly: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MRNLAB_HOME"] = given.home or folder
        os.environ.pop("MRNLAB_DB", None)
        first = descriptions("heads", given.corpus, _SEEDS, 1)
        figures["new_seed_s"] = [round(seconds(run), 2) for run in trained(first, 1)]
        print(f"A seed's first run, of one epoch: {figures['new_seed_s']} s, the first with torch's start.")
        for kind in given.kinds.split(","):
            configs = descriptions(kind, given.corpus, given.runs, given.epochs)
            hourly[kind] = {}
            for slots in range(1, given.slots + 1) if given.runs else ():
                runs = trained(configs, slots)
                hourly[kind][f"{slots} workers" if slots > 1 else "1 worker"] = round(per_hour(runs), 1)
                took = sorted(seconds(run) for run in runs)[len(runs) // 2]
                print(f"{kind}, {slots} at once: {per_hour(runs):,.0f} runs an hour, {took:.2f} s a run")
            if given.profiled:
                os.environ["OMP_NUM_THREADS"] = "1"
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found = pool.apply(profile, (configs[: given.profiled],))
                del os.environ["OMP_NUM_THREADS"]
                _show(kind, found)
                figures[f"{kind}_stages"] = {
                    name: {what: round(value, 4) for what, value in one.items()}
                    for name, one in found.items()
                }
    print(json.dumps(figures | {"runs_per_hour": hourly}))


if __name__ == "__main__":
    main()
