"""What one waits for: `python -m tests.benchmarks.startup --data ../shared/data/conll2003 [--times N]`.

From a run's being submitted, as the form does it, to its first loss in the store, with real workers in a
laboratory of its own: *cold*, no worker alive and the text never encoded, and *warm*, the worker having
trained another run. Then what `import core` takes, and what encoding a corpus takes. Medians of N. What the
operating system keeps of files in memory is not thrown away: "cold" is not the first start after a boot. The
last line is JSON, all figures stand above it. `--quick` starts one worker, on `demo`.
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
from core.corpora.loading import summarise
from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from core.paths import home
from core.store import ENDED, Store
from jobs.engines.local import LocalEngine
from jobs.submit import check, submit
from jobs.worker.logs import tail
from tests.benchmarks._harness import arguments, laboratory, milliseconds, tell
from tests.supervised import end_all, owner_of, wait_for

_ROOT = Path(__file__).resolve().parents[2]
_COLUMNS = "tokens,pos,chunk,ner"
_POLL_S = 0.02
_PATIENCE_S = 300.0
_REST_S = 3.0  # a worker that begins to wait gives memory back first


def described(corpus: str, seed: int, **values: object) -> RunConfig:
    """A run of three tasks that fine-tunes MiniLM."""
    if corpus != "demo":
        values["columns"] = _COLUMNS
    fields = {"corpus": corpus, "tasks": "pos,chunk,ner", "paradigm": "mtl", "epochs": 1, "seed": seed}
    return RunConfig.build(**fields, **values)


@contextlib.contextmanager
def opened() -> Iterator[Store]:
    """An empty store in a laboratory of its own; its workers are ended with it."""
    with laboratory(), contextlib.closing(Store.open()) as store:
        try:
            yield store
        finally:
            end_all(store)


def first_loss(store: Store, config: RunConfig, engine: LocalEngine) -> tuple[float, psutil.Process]:
    """Seconds from the form's button to the first loss that a page would find, and the worker.

    What the form shows before (the corpus at a glance, the check) is there already. The run is stopped then.
    """
    summarise(config.corpus, config.columns)
    check([config])
    pressed = time.perf_counter()
    (run_id,) = submit(store, [config], "startup", engine=engine)
    while not store.last_metric_steps([run_id]).get(run_id):
        waited = time.perf_counter() - pressed
        if waited > _PATIENCE_S or store.state(run_id) in ENDED:
            raise RuntimeError(f"no loss after {waited:.0f} s: {store.run(run_id).error}")
        time.sleep(_POLL_S)
    took = time.perf_counter() - pressed
    worker = psutil.Process(owner_of(store, run_id).pid)
    store.request_stop(run_id)
    wait_for(lambda: store.state(run_id) in ENDED, _PATIENCE_S)
    return took, worker


def starts(corpus: str) -> dict[str, float]:
    """Seconds to the first loss: of a cold start, and of one more run of that worker."""
    with opened() as store:
        engine = LocalEngine()
        cold_s, worker = first_loss(store, described(corpus, 1), engine)
        cpu_s = sum(worker.cpu_times()[:2])
        warm_s, same = first_loss(store, described(corpus, 2), engine)
        assert same == worker
        time.sleep(_REST_S)
        return {
            "first_loss_cold_s": cold_s,
            "worker_cold_processor_s": cpu_s,
            "first_loss_warm_s": warm_s,
            "worker_warm_processor_s": sum(worker.cpu_times()[:2]) - cpu_s,
            "worker_waiting_mb": worker.memory_info().rss / 1e6,
        }


def other_starts(corpus: str) -> dict[str, float]:
    """The same of a warm worker with another corpus, of a cold one on `demo`, and of one started ahead."""
    with opened() as store:
        engine = LocalEngine()
        demo_s, _ = first_loss(store, described("demo", 1), engine)
        other_s, _ = first_loss(store, described(corpus, 2), engine)
    with opened() as store:
        engine = LocalEngine()
        engine.expect_run(store)
        wait_for(lambda: "Ready for a run." in tail(home() / "logs" / "workers.log"), _PATIENCE_S)
        ahead_s, _ = first_loss(store, described(corpus, 1), engine)
    return {
        "first_loss_warm_other_corpus_s": other_s,
        "first_loss_cold_demo_s": demo_s,
        "first_loss_started_ahead_s": ahead_s,
    }


def import_core() -> dict[str, float]:
    """Seconds to import `core` in a new process."""
    script = "import time; began = time.perf_counter(); import core; print(time.perf_counter() - began)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return {"import_core_s": float(done.stdout)}


def encoding(corpus: str) -> dict[str, float]:
    """Seconds from the words of all splits to EncodedText, the first time and from the cache."""
    tokenizer = load_tokenizer(locate("minilm"))
    whole = load(corpus, None if corpus == "demo" else tuple(_COLUMNS.split(",")))
    splits = [[sentence.tokens for sentence in part] for part in (whole.train, whole.dev, whole.test)]
    with laboratory() as folder:
        took = milliseconds(
            lambda: [encode_cached(words, tokenizer, 128, folder) for words in splits], times=2
        )
    return {"encode_s": took[0] / 1000, "encode_cached_s": took[1] / 1000}


def main() -> None:
    """Prints all figures, and last those that a start is judged by."""
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="a folder with CoNLL-2003's columns")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    if asked.data is None and not asked.quick:
        parser.error("--data is required")
    corpus = "demo" if asked.quick else str(asked.data.resolve())
    times = 1 if asked.quick else asked.times
    os.environ |= {"MRNLAB_SLOTS": "1", "MRNLAB_LINGER_S": "300", "HF_HUB_OFFLINE": "1"}
    measures = [encoding, lambda _corpus: import_core(), starts] + ([] if asked.quick else [other_starts])
    rounds = [{name: s for measure in measures for name, s in measure(corpus).items()} for _ in range(times)]
    figures = {name: round(statistics.median(one[name] for one in rounds), 3) for name in rounds[0]}
    tell({"corpus": Path(corpus).name, "times": times, "load": os.getloadavg()[0], "figures": figures})
    judged = ("first_loss_cold_s", "first_loss_warm_s", "import_core_s", "encode_s", "encode_cached_s")
    tell({name: figures[name] for name in judged})


if __name__ == "__main__":
    main()
