"""What training word models costs: beside flair's SequenceTagger, and SC-LSTM beside LSTM-s.

    python -m tests.benchmarks.words --data ../shared/data/conll2003 --flair VENV/bin/python

NER by a BiLSTM with GloVe, capitals, character CNN and CRF trains on the same sentences as flair's model with
GloVe, its character BiLSTM and CRF, in turns of a few steps. `--flair`, or MRNLAB_FLAIR_PYTHON, names an
interpreter that has flair. Then three tasks train by SC-LSTM and by LSTM-s, all tasks in a batch and one
drawn.

Prints JSON; the last line has words a second over flair's, null without it; the time of an SC-LSTM step over
an LSTM-s step, at the paper's size (three layers of 300, all tasks in a batch); words a second of our NER.
OMP_NUM_THREADS sets the threads of all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.encoding.batches import Batch
from core.errors import MRNLabError
from core.models.word_vectors import vectors_path
from core.tasks.spans import spans
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.benchmarks._harness import (
    COLUMNS,
    alternate,
    arguments,
    laboratory,
    milliseconds,
    print_json,
    ratio,
    spread,
)
from tests.benchmarks._loops import Job, make_job, train_ours
from tests.benchmarks._turns import Block, Player

TURN = 5
"""Steps of a turn: so few that all meet the same load of the machine."""
FLAIR: dict[str, dict[str, bool]] = {
    "flair": {"characters": True, "tuned": False},
    "flair_tuned": {"characters": True, "tuned": True},
    "flair_without_characters": {"characters": False, "tuned": False},
}
"""What flair reads: fixed vectors are its default and quicker, trained ones are as ours."""
PAPER = (3, 300, "together")
"""Layers, hidden size and `draw_tasks` of the SC-LSTM paper."""


class FlairPlayer:
    """flair's training, in the interpreter that has it. Ends the process with its `with` block."""

    def __init__(self, python: str, job: Mapping[str, Any], folder: Path) -> None:
        (folder / "job.json").write_text(json.dumps(job))
        # Isolated: this folder has a module `queue`.
        command = [python, "-I", str(Path(__file__).with_name("_flair.py")), str(folder / "job.json")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = self._answer()

    def play(self, steps: int) -> Block:
        """Give it a turn of so many steps."""
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)
        return Block(**self._answer())

    def __enter__(self) -> FlairPlayer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # flair logs there, too
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError("flair ended before its turn; its output says why")


def beside_flair(job: Job, python: str | None) -> dict[str, Any]:
    """Words a second of NER by both, and ours over flair's. Without an interpreter of flair's only ours."""
    with ExitStack() as stack:
        players: dict[str, Any] = {
            "ours": stack.enter_context(Player("ours", partial(train_ours, "stl"), job, quick=job.quick))
        }
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
    batches = [
        [
            (
                sentence.tokens,
                [(span.start, span.end, span.type) for span in spans(_labels(sentence.labels[task.name]))],
            )
            for sentence in batch
        ]
        for batch in job.batches
    ]
    return {
        "batches": batches,
        "types": sorted({label[2:] for label in task.labels if label != "O"}),
        "vectors": str(vectors_path(str(config.vectors))),
        "hidden": config.bilstm_hidden,
        "lr": config.lr_bilstm,
    }


def _labels(labels: Sequence[str | None]) -> list[str]:
    return [label or "O" for label in labels]


def _figures(blocks: Sequence[Block]) -> dict[str, Any]:
    return {
        "words_per_s": spread([block.words / block.seconds for block in blocks], 1)["median"],
        "ms_per_step": spread([1000 * block.seconds / block.steps for block in blocks], 1)["median"],
        "cpu_ms_per_step": spread([1000 * block.cpu_seconds / block.steps for block in blocks], 1)["median"],
    }


def sc_over_s(
    build: Callable[..., RunConfig], rows: Sequence[tuple[int, int, str]], *, quick: bool
) -> dict[tuple[int, int, str], float]:
    """The time of an SC-LSTM step over that of an LSTM-s step on the same batch, row by row."""
    batches, rounds = (2, 1) if quick else (12, 4)
    medians = {}
    for layers, hidden, draw_tasks in rows:
        runs = {
            encoder: _set_up(
                build(
                    encoder=encoder,
                    paradigm="mtl",
                    lstm_layers=layers,
                    bilstm_hidden=hidden,
                    draw_tasks=draw_tasks,
                )
            )
            for encoder in ("bilstm", "sc-lstm")
        }
        drawn = list(islice(runs["bilstm"].epoch(skip=0), batches))
        ways = {name: partial(_timed_step, run) for name, run in runs.items()}
        alternate(ways, drawn)  # not counted: memory is allocated, and the optimiser's moments
        times = alternate(ways, drawn * rounds)
        wall, cpu = (
            {name: [pair[clock] for pair in pairs] for name, pairs in times.items()} for clock in (0, 1)
        )
        over = ratio(wall["sc-lstm"], wall["bilstm"])
        medians[layers, hidden, draw_tasks] = float(over["median"])
        print_json(
            {"layers": layers, "hidden": hidden, "draw_tasks": draw_tasks}
            | {f"{name}_ms": spread(values, 1)["median"] for name, values in wall.items()}
            | {"sc_over_s": over, "cpu": ratio(cpu["sc-lstm"], cpu["bilstm"])}
        )
    return medians


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
    values: dict[str, Any] = {"corpus": args.data, "batch_size": 16, "device": "cpu"}
    if args.quick:
        values |= {"corpus": "demo", "fraction": 0.02, "batch_size": 4}
    elif Path(args.data).is_dir():
        values["columns"] = COLUMNS
    build = partial(RunConfig.build, **values)
    print_json({"torch": torch.__version__, "threads": torch.get_num_threads(), "load": os.getloadavg()[0]})
    hidden, steps = (8, TURN) if args.quick else (256, TURN * -(-args.steps // TURN))
    ner = build(tasks="ner", paradigm="stl", encoder="bilstm", bilstm_hidden=hidden, head="crf", dropout=0.5)
    words = beside_flair(make_job(ner, steps, quick=args.quick), args.flair)
    print_json(words)
    rows = list(product((1, 3), (200, 300), ("together", "uniform")))
    if args.quick:
        rows = [(1, 8, "together"), (3, 8, "uniform")]
    with laboratory():  # encoded text is cached there
        ratios = sc_over_s(partial(build, tasks="pos,chunk,ner"), rows, quick=args.quick)
    worst = max(ratios, key=ratios.__getitem__)
    print_json(
        {"worst_sc_over_s": ratios[worst], "layers": worst[0], "hidden": worst[1], "draw_tasks": worst[2]}
    )
    with_characters = [over["median"] for name, over in words["over"].items() if FLAIR[name]["characters"]]
    return {
        "over_flair": min(with_characters, default=None),  # over the quicker of them
        "sc_over_s": ratios.get(PAPER, ratios[worst]),
        "words_per_s": words["ways"]["ours"]["words_per_s"],
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", default="../shared/data/conll2003", help="a corpus: folder or name")
    parser.add_argument("--steps", type=int, default=60, help="of each way to train")
    parser.add_argument(
        "--flair",
        default=os.environ.get("MRNLAB_FLAIR_PYTHON"),
        metavar="PYTHON",
        help="an interpreter with flair",
    )
    try:
        print_json(measure(parser.parse_args()))
    except MRNLabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
