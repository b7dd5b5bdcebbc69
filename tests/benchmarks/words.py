"""What training word models costs: beside flair's SequenceTagger, and SC-LSTM beside LSTM-s.

    python -m tests.benchmarks.words --data ../shared/data/conll2003 --flair VENV/bin/python

NER by a BiLSTM with GloVe, capitals, character CNN and CRF trains on the same sentences as flair's model with
GloVe, its character BiLSTM and CRF, in turns of a few steps. `--flair`, or MRNLAB_FLAIR_PYTHON, names an
interpreter that has flair. Then three tasks train by SC-LSTM and by LSTM-s.

Prints JSON; the last line has words a second over flair's, null without it; the time of an SC-LSTM step over
an LSTM-s step, at the paper's size (three layers of 300, all tasks in a batch); words a second of our NER.
OMP_NUM_THREADS sets the threads of all.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Sentence
from core.encoding.batches import Batch
from core.errors import MRNLabError
from core.models.word_vectors import vectors_path
from core.tasks.spans import spans
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import (
    CONLL2003,
    alternate,
    arguments,
    corpus_fields,
    laboratory,
    milliseconds,
    print_json,
    ratio,
    spread,
)
from tests.benchmarks._loops import Job, make_job, train_ours
from tests.benchmarks._turns import TURN, Block, Player, Program

FLAIR: dict[str, dict[str, bool]] = {
    "flair": {"characters": True, "tuned": False},
    "flair_tuned": {"characters": True, "tuned": True},
    "flair_without_characters": {"characters": False, "tuned": False},
}
"""What flair reads: fixed vectors are its default and quicker, trained ones are as ours."""
PAPER = {"lstm_layers": 3, "bilstm_hidden": 300, "draw_tasks": "together"}
"""The size of the SC-LSTM paper."""


class FlairPlayer(Program):
    """flair's training, in the interpreter that has it."""

    def __init__(self, python: str, job: Mapping[str, Any], folder: Path) -> None:
        (folder / "job.json").write_text(json.dumps(job))
        # Isolated: this folder has a module `queue`.
        super().__init__([python, "-I", str(Path(__file__).with_name("_flair.py")), str(folder / "job.json")])

    def play(self, steps: int) -> Block:
        """Give it a turn of so many steps."""
        return Block(**self.ask(steps))


def beside_flair(job: Job, python: str | None) -> dict[str, Any]:
    """Words a second of NER by both, and ours over flair's. Without an interpreter of flair's only ours."""
    with ExitStack() as stack:
        ours = stack.enter_context(Player("ours", partial(train_ours, "stl"), job, quick=job.quick))
        ours.wait_until_ready()
        players: dict[str, Any] = {"ours": ours}
        for name, reads in FLAIR.items() if python else ():
            folder = Path(stack.enter_context(TemporaryDirectory()))
            players[name] = stack.enter_context(FlairPlayer(str(python), _for_flair(job) | reads, folder))
        turns = range(-(-len(job.batches) // TURN))
        blocks = alternate({name: partial(_play, player) for name, player in players.items()}, turns)
        facts = {name: player.facts for name, player in players.items()}
    assert len({tuple(block.words for block in played) for played in blocks.values()}) == 1
    return {
        "ways": {name: facts[name] | _figures(played) for name, played in blocks.items()},
        "over": {
            name: ratio(*([1 / block.seconds for block in blocks[way]] for way in ("ours", name)))
            | {"cpu": ratio(*([1 / block.cpu_seconds for block in blocks[way]] for way in ("ours", name)))}
            for name in blocks
            if name != "ours"
        },
    }


def _play(player: Any, _turn: int) -> Block:
    block: Block = player.play(TURN)
    return block


def _for_flair(job: Job) -> dict[str, Any]:
    """The job's sentences with their spans, and the sizes of the model."""
    config = job.config
    (task,) = job.corpus.tasks

    def entities(sentence: Sentence) -> list[tuple[int, int, str]]:
        labels = [label or "O" for label in sentence.labels[task.name]]
        return [(span.start, span.end, span.type) for span in spans(labels)]

    return {
        "batches": [[(sentence.tokens, entities(sentence)) for sentence in batch] for batch in job.batches],
        "types": sorted({label[2:] for label in task.labels if label != "O"}),
        "vectors": str(vectors_path(str(config.vectors))),
        "hidden": config.bilstm_hidden,
        "lr": config.lr_bilstm,
    }


def _figures(blocks: Sequence[Block]) -> dict[str, Any]:
    return {
        "words_per_s": spread([block.words / block.seconds for block in blocks], 1)["median"],
        "ms_per_step": spread([1000 * block.seconds / block.steps for block in blocks], 1)["median"],
        "cpu_ms_per_step": spread([1000 * block.cpu_seconds / block.steps for block in blocks], 1)["median"],
    }


def sc_over_s(build: Callable[..., RunConfig], *, quick: bool) -> float:
    """The time of an SC-LSTM step over that of an LSTM-s step on the same batch."""
    batches, rounds = (2, 1) if quick else (12, 4)
    size = PAPER | ({"bilstm_hidden": 8} if quick else {})
    runs = {name: _set_up(build(encoder=name, paradigm="mtl", **size)) for name in ("bilstm", "sc-lstm")}
    drawn = list(islice(runs["bilstm"].epoch(skip=0), batches))
    ways = {name: partial(_timed_step, run) for name, run in runs.items()}
    alternate(ways, drawn)  # not counted: memory is allocated, and the optimiser's moments
    times = alternate(ways, drawn * rounds)
    wall, cpu = ({name: [pair[clock] for pair in pairs] for name, pairs in times.items()} for clock in (0, 1))
    over = ratio(wall["sc-lstm"], wall["bilstm"])
    print_json(
        {f"{name}_ms": spread(values, 1)["median"] for name, values in wall.items()}
        | {"sc_over_s": over, "cpu": ratio(cpu["sc-lstm"], cpu["bilstm"])}
    )
    return float(over["median"])


def _set_up(config: RunConfig) -> TrainingRun:
    run = set_up(config, prepare(config))
    run.model.train()
    return run


def _timed_step(run: TrainingRun, batch: Batch) -> tuple[float, float]:
    """Milliseconds of one training step, and processor milliseconds of all its threads."""
    began = time.process_time()
    (wall,) = milliseconds(lambda: train_step(run, batch))
    return wall, 1000 * (time.process_time() - began)


def measure(args: Namespace) -> dict[str, float | None]:
    """Print all figures as they come; return the last line's."""
    values = corpus_fields("demo" if args.quick else args.data) | {"batch_size": 16, "device": "cpu"}
    if args.quick:
        values |= {"fraction": 0.02, "batch_size": 4}

    def build(**fields: Any) -> RunConfig:
        return RunConfig.build(**values | fields)

    print_json({"torch": torch.__version__, "threads": torch.get_num_threads(), "load": os.getloadavg()[0]})
    hidden, steps = (8, TURN) if args.quick else (256, TURN * -(-args.steps // TURN))
    ner = build(tasks="ner", paradigm="stl", encoder="bilstm", bilstm_hidden=hidden, head="crf", dropout=0.5)
    words = beside_flair(make_job(ner, steps, quick=args.quick), args.flair)
    print_json(words)
    with laboratory():  # encoded text is cached there
        over_lstm_s = sc_over_s(build, quick=args.quick)
    with_characters = [over["median"] for name, over in words["over"].items() if FLAIR[name]["characters"]]
    return {
        "over_flair": min(with_characters, default=None),  # over the quicker of them
        "sc_over_s": over_lstm_s,
        "words_per_s": words["ways"]["ours"]["words_per_s"],
    }


def main() -> None:
    parser = arguments(__doc__, data=CONLL2003)
    parser.add_argument("--steps", type=int, default=60, help="of each way to train")
    flair = os.environ.get("MRNLAB_FLAIR_PYTHON")
    parser.add_argument("--flair", default=flair, metavar="PYTHON", help="an interpreter with flair")
    try:
        print_json(measure(parser.parse_args()))
    except MRNLabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
