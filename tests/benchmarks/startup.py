"""How long a start takes: `python -m tests.benchmarks.startup --data ../shared/data/conll2003 [--times N]`.

The time from submitting a run, as the form does, to its first loss in the store, with real workers in a
temporary laboratory: *cold*, no worker is alive and the text was never encoded, and *warm*, the worker has
trained another run. Then the import of `core`, and the encoding of the corpus. Medians of N. The system's
file cache is not emptied: "cold" is not the first start after a boot. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from core.config import RunConfig
from core.corpora import load
from core.corpora.summary import summarise
from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from core.paths import home
from core.store import ENDED, Store
from jobs.engines.local import LocalEngine
from jobs.queue.submit import check, submit
from jobs.worker.logs import tail
from tests.benchmarks._harness import (
    CONLL2003,
    arguments,
    corpus_fields,
    laboratory,
    milliseconds,
    print_json,
)
from tests.supervised import owner_of, supervised, wait_for
from tests.trained import toy_config

_POLL_S = 0.02
_PATIENCE_S = 300.0
_IDLE_S = 3.0  # an idle worker returns memory to the system
_IMPORT = "import time; began = time.perf_counter(); import core; print(time.perf_counter() - began)"


def make_config(corpus: str, seed: int) -> RunConfig:
    """A run of three tasks that fine-tunes MiniLM."""
    return RunConfig.build(**corpus_fields(corpus), paradigm="mtl", epochs=1, seed=seed)


@contextlib.contextmanager
def fresh_engine(worker: str = "jobs.worker.loop") -> Iterator[tuple[Store, LocalEngine]]:
    """An empty store in a temporary laboratory; its workers end with the block."""
    variables = {"MRNLAB_SLOTS": "1", "MRNLAB_LINGER_S": "300", "HF_HUB_OFFLINE": "1"}
    with laboratory(None, **variables), supervised(worker) as made:
        yield made


def first_loss(store: Store, config: RunConfig, engine: LocalEngine) -> tuple[float, float, psutil.Process]:
    """Seconds from the form's button to the first loss that a page would find, the processor seconds of the
    worker's life until then, and the worker.

    What the form shows before (the corpus at a glance, the check) is done already. The run is stopped then.
    """
    summarise(config.corpus, config.columns)
    check([config])
    began = time.perf_counter()
    (run_id,), _ = submit(store, [config], "startup", engine=engine)
    while not store.last_metric_steps([run_id]).get(run_id):
        assert time.perf_counter() - began < _PATIENCE_S, "no loss yet"
        assert store.state(run_id) not in ENDED, store.run(run_id).error
        time.sleep(_POLL_S)
    seconds = time.perf_counter() - began
    worker = psutil.Process(owner_of(store, run_id).pid)
    cpu_s = processor_seconds(worker)
    store.request_stop(run_id)
    wait_for(lambda: store.state(run_id) in ENDED, _PATIENCE_S)
    return seconds, cpu_s, worker


def processor_seconds(worker: psutil.Process) -> float:
    """Of all its threads, so far."""
    return float(sum(worker.cpu_times()[:2]))


def starts(
    first: RunConfig,
    second: RunConfig,
    other: RunConfig,
    worker: str = "jobs.worker.loop",
    idle_s: float = _IDLE_S,
) -> dict[str, float]:
    """Seconds to the first loss: of a cold start, of another run of that worker, and of one on other text."""
    with fresh_engine(worker) as (store, engine):
        cold_s, cold_cpu_s, process = first_loss(store, first, engine)
        time.sleep(idle_s)
        idle_cpu_s = processor_seconds(process)
        warm_s, warm_cpu_s, same = first_loss(store, second, engine)
        other_s, _, also_same = first_loss(store, other, engine)
        assert process == same == also_same
        time.sleep(idle_s)
        return {
            "first_loss_cold_s": cold_s,
            "worker_cold_processor_s": cold_cpu_s,
            "first_loss_warm_s": warm_s,
            "worker_warm_processor_s": warm_cpu_s - idle_cpu_s,
            "first_loss_warm_other_corpus_s": other_s,
            "worker_waiting_mb": process.memory_info().rss / 1e6,
        }


def other_starts(corpus: str) -> dict[str, float]:
    """The same of a cold worker on `demo`, and of a worker started ahead."""
    with fresh_engine() as (store, engine):
        demo_s, _, _ = first_loss(store, make_config("demo", 1), engine)
    with fresh_engine() as (store, engine):
        engine.expect_run(store)
        wait_for(lambda: "Ready for a run." in tail(home() / "logs" / "workers.log"), _PATIENCE_S)
        ahead_s, _, _ = first_loss(store, make_config(corpus, 1), engine)
    return {"first_loss_cold_demo_s": demo_s, "first_loss_started_ahead_s": ahead_s}


def imports_and_encoding(config: RunConfig) -> dict[str, float]:
    """Seconds to import `core` in a new process, and to encode all splits: at first, and from the cache."""
    output = subprocess.run([sys.executable, "-c", _IMPORT], check=True, stdout=subprocess.PIPE, text=True)
    tokenizer = load_tokenizer(locate("minilm"))
    corpus = load(config.corpus, config.columns)
    splits = [[sentence.tokens for sentence in part] for part in (corpus.train, corpus.dev, corpus.test)]
    with laboratory() as folder:
        first, cached = milliseconds(
            lambda: [encode_cached(words, tokenizer, 128, folder) for words in splits], times=2
        )
    return {"import_core_s": float(output.stdout), "encode_s": first / 1e3, "encode_cached_s": cached / 1e3}


def main() -> None:
    parser = arguments(__doc__, data=CONLL2003)
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        with laboratory() as folder:
            first, second, other = (toy_config(folder, seed=seed) for seed in (1, 2, 3))
            quickly = starts(first, second, other, "tests.small_training", idle_s=0)
            rounds = [quickly | imports_and_encoding(first)]
    else:
        data = str(Path(args.data).resolve())
        first, second = (make_config(data, seed) for seed in (1, 2))
        rounds = [
            imports_and_encoding(first) | starts(first, second, make_config("demo", 3)) | other_starts(data)
            for _ in range(args.times)
        ]
    figures = {name: round(statistics.median(row[name] for row in rounds), 3) for name in rounds[0]}
    print_json({"times": len(rounds), "load": os.getloadavg()[0], "figures": figures})
    goals = ("first_loss_cold_s", "first_loss_warm_s", "import_core_s", "encode_s", "encode_cached_s")
    print_json({name: figures[name] for name in goals})


if __name__ == "__main__":
    main()
