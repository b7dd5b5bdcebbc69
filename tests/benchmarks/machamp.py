"""What a fine-tuned epoch costs beside MaChAmp's, and what each has learned after so many epochs.

    python -m tests.benchmarks.machamp --data ../shared/data/conll2003 --machamp VENV/bin/python

MTL of three tasks over MiniLM trains on the same sentences, with the same batch size and number of epochs, in
turns of one epoch: with linear heads in the precision that the processor prefers (`linear`), with a CRF in
float32 (`crf`), and by MaChAmp with its own configuration (a CRF for spans, float32). `--machamp`, or
MRNLAB_MACHAMP_PYTHON, names an interpreter that imports MaChAmp, from a clone of its repository, and
Transformers 4.

Each number of epochs is a training of its own, because learning rates fall until the last epoch. Prints JSON;
the last line has, for each way, the seconds of a training epoch without its scoring, those over `crf`, epoch
by epoch, and the last epoch's dev scores by the number of epochs. OMP_NUM_THREADS sets the threads of all.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus
from core.events import Event, RunFacts
from core.metrics import TOTAL, EpochMetrics
from core.models.sources import locate
from core.training import trainer
from tests.benchmarks._harness import (
    CONLL2003,
    alternate,
    arguments,
    corpus_fields,
    laboratory,
    minilm,
    print_json,
    ratio,
    spread,
)
from tests.benchmarks._turns import Program
from tests.tiny import tiny_bert

OURS: dict[str, dict[str, Any]] = {"linear": {}, "crf": {"head": "crf", "precision": "fp32"}}


class Trainer(Program):
    """A training in a process of its own."""

    def epoch(self, _number: int) -> dict[str, Any]:
        """Train the next epoch: its seconds and dev scores."""
        return self.ask()


def train_ours(config: RunConfig) -> None:
    """In a process: trains an epoch for each line on standard input, and answers with a line of JSON."""
    step, steps_per_epoch = 0, 1
    began = ended = (0.0, 0.0)
    train_step = trainer.train_step

    def clocks() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def sink(event: Event) -> None:
        nonlocal steps_per_epoch
        if isinstance(event, RunFacts):
            steps_per_epoch = event.steps_per_epoch
            print_json({"precision": event.precision, "threads": event.threads})
        if isinstance(event, EpochMetrics):
            seconds, cpu_seconds = (end - begin for begin, end in zip(began, ended, strict=True))
            dev = {task: score for (task, name), score in event.values.items() if name == "score"}
            del dev[TOTAL]
            print_json({"seconds": seconds, "cpu_seconds": cpu_seconds, "dev": dev})

    def wait() -> bool:
        nonlocal began
        if step % steps_per_epoch == 0:
            sys.stdin.readline()
            began = clocks()
        return False

    def timed_step(run: Any, batch: Any) -> Any:
        nonlocal step, ended
        measured = train_step(run, batch)
        step, ended = step + 1, clocks()
        return measured

    with laboratory() as home, patch.object(trainer, "train_step", timed_step):
        trainer.train(
            config, prepare(config), sink=sink, checkpoint=Checkpoint(home / "run"), should_stop=wait
        )


def write_job(config: RunConfig, corpus: Corpus, folder: Path) -> None:
    """What MaChAmp needs: a line for each word with its labels, and the sizes of the training."""
    names = [task.name for task in corpus.tasks]
    for split in ("train", "dev"):
        lines = []
        for sentence in corpus.split(split):
            labels = [[label or "O" for label in sentence.labels[name]] for name in names]
            lines += ["\t".join(row) for row in zip(sentence.tokens, *labels, strict=True)] + [""]
        (folder / f"{split}.tsv").write_text("\n".join(lines), encoding="utf-8")
    job = {
        "encoder": str(locate(config.encoder)),
        "epochs": config.epochs,
        "batch_size": config.batch_size,
        "tasks": {task.name: "seq_bio" if task.scheme == "iob2" else "seq" for task in corpus.tasks},
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def train_side_by_side(config: RunConfig, machamp: str | None) -> dict[str, list[dict[str, Any]]]:
    """What each way answered after each epoch. Without an interpreter of MaChAmp only ours."""
    corpus = prepare(config)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        commands = {}
        for name, fields in OURS.items():
            (path := folder / name).write_text(json.dumps(config.with_(**fields).to_json()), encoding="utf-8")
            commands[name] = [sys.executable, "-m", "tests.benchmarks.machamp", "--train", str(path)]
        if machamp:
            write_job(config, corpus, folder)
            # Isolated: this folder has a module `machamp`.
            script = Path(__file__).with_name("_machamp.py")
            commands["machamp"] = [machamp, "-I", str(script), str(folder)]
        ways = {name: stack.enter_context(Trainer(command)) for name, command in commands.items()}
        print_json({name: way.facts for name, way in ways.items()} | {"sentences": len(corpus.train)})
        return alternate({name: way.epoch for name, way in ways.items()}, range(config.epochs))


def main() -> None:
    parser = arguments(__doc__, data=CONLL2003)
    parser.add_argument("--epochs", nargs="+", type=int, default=[3, 20], help="of each training")
    parser.add_argument("--fraction", type=float, default=0.05, help="of the training sentences")
    machamp = os.environ.get("MRNLAB_MACHAMP_PYTHON")
    parser.add_argument("--machamp", default=machamp, metavar="PYTHON", help="an interpreter with MaChAmp")
    parser.add_argument("--train", type=Path, metavar="FILE", help="used by this benchmark")
    args = parser.parse_args()
    if args.train:
        train_ours(RunConfig.from_json(json.loads(args.train.read_text(encoding="utf-8"))))
        return
    fields = corpus_fields("demo" if args.quick else args.data) | {"paradigm": "mtl", "device": "cpu"}
    seconds: dict[str, list[float]] = defaultdict(list)
    dev: dict[str, dict[int, Any]] = defaultdict(dict)
    with laboratory() as home:
        encoder = str(tiny_bert(home / "encoder", positions=256)) if args.quick else minilm()
        fields |= {"encoder": encoder, "fraction": 0.01 if args.quick else args.fraction}
        for number in [2] if args.quick else args.epochs:
            config = RunConfig.build(**fields, epochs=number)
            for name, answers in train_side_by_side(config, args.machamp).items():
                print_json({name: answers})
                seconds[name] += [answer["seconds"] for answer in answers]
                dev[name][number] = answers[-1]["dev"]
    over_crf = {name: ratio(values, seconds["crf"]) for name, values in seconds.items()}
    epoch_s = {name: spread(values, 2) for name, values in seconds.items()}
    print_json({"epoch_s": epoch_s, "over_crf": over_crf, "dev": dev})


if __name__ == "__main__":
    main()
