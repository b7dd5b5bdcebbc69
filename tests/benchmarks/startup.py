"""What one waits for: `python -m tests.benchmarks.startup --data ../shared/data/conll2003 [--times N]`.

From a run's being submitted, as the form does it, to its first loss in the store, with real workers in a
laboratory of its own: *cold*, no worker alive and the text never encoded, and *warm*, the worker having
trained another run. Then what that time is made of (one fresh process, seconds by the clock and of the
processor), what `import core` and the modules of each page take, and what encoding a corpus takes. Medians of
N. What the operating system keeps of files in memory is not thrown away: "cold" is not the first start after
a boot. The last line is JSON, all figures stand above it. `--quick` starts one worker, on `demo`.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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


_PARTS = {
    "import jobs.worker.loop": "import jobs.worker.loop",
    "read the corpus": """
from core.config import RunConfig
from core.corpora import prepare
config = RunConfig.from_json(sys.argv[1])
corpus = prepare(config)""",
    "import torch": "import torch",
    "import core.training": "import core.training.trainer as trainer",
    "import transformers": "import transformers.models.bert.modeling_bert",
    "load the tokenizer": """
from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
tokenizer = load_tokenizer(locate("minilm"))""",
    "check the weights and load the encoder": """
from core.models.encoders import load_transformer
load_transformer("minilm", half=False)""",
    "encode the corpus": """
from core.training.setup import encode_corpus
encode_corpus(config, corpus, tokenizer)""",
    "set up (all of it, from caches)": "run = trainer.set_up(config, corpus)",
    "first batch": "batch = next(run.epoch(skip=0))",
    "first step": "trainer.train_step(run, batch)",
}
_CLOCK = """
import json, sys, time
from jobs.worker.idle import collect_seldom
collect_seldom()
parts, clock, processor = {}, time.perf_counter(), time.process_time()
def part(name):
    global clock, processor
    parts[name] = [time.perf_counter() - clock, time.process_time() - processor]
    clock, processor = time.perf_counter(), time.process_time()
"""


def in_fresh_process(parts: Mapping[str, str], *given: str) -> dict[str, list[float]]:
    """Seconds of each part, by the clock and of the processor, run one after another in a new process."""
    script = _CLOCK + "".join(f"{code}\npart({name!r})\n" for name, code in parts.items())
    command = [sys.executable, "-c", script + "print(json.dumps(parts))", *given]
    with laboratory():
        done = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


_LIGHT = 'assert not {"torch", "transformers", "datasets", "seqeval"} & set(sys.modules), "imports too much"'


def imports(*, pages: bool) -> dict[str, float]:
    """Seconds to import `core`; `pages`: also, with Streamlit there, what `main.py` and each page import."""
    took = {"core": in_fresh_process({"core": "import core"})["core"][0]}
    paths = [_ROOT / "dashboard" / "main.py", *sorted((_ROOT / "dashboard" / "app_pages").glob("[!_]*.py"))]
    for path in paths if pages else ():
        body = ast.parse(path.read_text(encoding="utf-8")).body
        lines = [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        page = "\n".join(line for line in lines if "__future__" not in line)
        parts = {"streamlit": "import streamlit.web.bootstrap", "page": page, "light": _LIGHT}
        took[f"page {path.stem}"] = in_fresh_process(parts)["page"][0]
    return took


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


def _medians(measure: Callable[[], Mapping[str, float]], times: int) -> dict[str, float]:
    """Of each figure, over so many measurements."""
    figures = [measure() for _ in range(times)]
    return {name: statistics.median(figure[name] for figure in figures) for name in figures[0]}


def main() -> None:
    """Prints each figure, all as JSON, and last those that a start is judged by."""
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="a folder with CoNLL-2003's columns")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    if asked.data is None and not asked.quick:
        parser.error("--data is required")
    corpus = "demo" if asked.quick else str(asked.data.resolve())
    times = 1 if asked.quick else asked.times
    os.environ |= {"MRNLAB_SLOTS": "1", "MRNLAB_LINGER_S": "300", "HF_HUB_OFFLINE": "1"}
    load_before = os.getloadavg()[0]
    figures = _medians(lambda: encoding(corpus), times)
    imported = _medians(lambda: imports(pages=not asked.quick), times)
    figures |= {"import_core_s": imported["core"]}
    made_of = {} if asked.quick else in_fresh_process(_PARTS, described(corpus, 1).to_json())
    figures |= _medians(lambda: starts(corpus), times)
    if not asked.quick:
        figures |= _medians(lambda: other_starts(corpus), times)
    for name, value in figures.items():
        print(f"{name:>40}  {value:7.3f}")
    for name, value in imported.items():
        print(f"{'import ' + name:>40}  {value:7.3f} s")
    for name, (clock, processor) in made_of.items():
        print(f"{name:>40}  {clock:7.3f} s by the clock, {processor:7.3f} s of the processor")
    whole = {"corpus": Path(corpus).name, "times": times, "load": [load_before, os.getloadavg()[0]]}
    tell(whole | {"figures": figures, "imports": imported, "parts": made_of})
    judged = ("first_loss_cold_s", "first_loss_warm_s", "import_core_s", "encode_s", "encode_cached_s")
    tell({name: round(figures[name], 3) for name in judged})


if __name__ == "__main__":
    main()
