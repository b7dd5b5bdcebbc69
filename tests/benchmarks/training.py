"""What training costs beside Hugging Face Trainer and the published program, and tagging beside a pipeline.

    python -m tests.benchmarks.training --data ../shared/data/conll2003 --encoder minilm --steps 60

One model of three tasks is trained on the same sentences (a) by MRN Lab as MTL, (b) as MRN, (c) by Trainer,
with its best stock options and with its defaults, (d) by the published loop, after a check that all minimise
the same loss. Each has a process of its own, and they take turns of a few steps. Prints JSON; the last line
has median ratios, MRN Lab first: words a second of MTL over Trainer at its best, Trainer's defaults and the
published loop; the time of an MRN step over an MTL step; words a second of tagging one task over one pipeline
at its best batch size; peak memory of MTL over Trainer's. OMP_NUM_THREADS sets the threads.

With `--set encoder_training=top:2`, or another one that does not train the whole encoder, (a) also runs in
full, and the last line has words a second over that one (`over_full`) and the seconds that the states of the
layers below took (`caching_s`, of all training sentences), which no ratio counts.
"""

from __future__ import annotations

import os
import platform
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

# Other imports are in functions: the processes that train import this module, and their memory is measured.
from tests.benchmarks._harness import COLUMNS, alternate, arguments, print_json, ratio, spread
from tests.benchmarks._turns import Block, Player

if TYPE_CHECKING:
    from core.config import RunConfig
    from core.registry import EncoderTraining
    from tests.benchmarks._loops import Job

TURN = 5
"""Steps of a turn: so few that all meet the same load of the machine."""
WINDOW = 2
"""Turns that are compared together: each window has an update of the covariances."""
BF16_TFLOPS = {"NVIDIA H200": 790.0}
"""The measured peak of matrix products in bfloat16, by the beginning of the GPU's name."""

Count = Callable[[Block], float]
Peaks = tuple[int, int | None]


def compare(job: Job) -> dict[str, Any]:
    """Train all ways in turns; figures of each, and ratios."""
    from core.registry import EncoderTraining
    from tests.benchmarks._loops import ways

    load = os.getloadavg()[0]
    with ExitStack() as stack:
        players = {
            name: stack.enter_context(Player(name, loop, given, quick=job.quick))
            for name, (loop, given) in ways(job).items()
        }

        def play(name: str, _turn: int) -> Block:
            # A step of the published loop costs the same for all sentences: one is enough.
            return players[name].play(1 if name == "published" else TURN)

        turns = range(-(-len(job.batches) // TURN))
        blocks = alternate({name: partial(play, name) for name in players}, turns)
        peaks = {name: player.end() for name, player in players.items()}
        facts = {name: player.facts for name, player in players.items()}
    # As if its sentences had the mean length: the time of its steps does not depend on it.
    words = sum(len(sentence.tokens) for sentence in job.sentences) / len(job.batches)
    blocks["published"] = [replace(block, words=round(block.steps * words)) for block in blocks["published"]]
    windows = {
        name: [sum(played[start : start + WINDOW], Block()) for start in range(0, len(played), WINDOW)]
        for name, played in blocks.items()
    }
    mtl = sum(windows["mtl"], Block())
    partly, fully = _work(job, mtl, job.config.training), _work(job, mtl, EncoderTraining("full"))
    work = {name: partly if name in ("mtl", "mrn") else fully for name in windows}
    return {
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "variants": {
            name: facts[name] | _figures(windows[name], peaks[name], *work[name]) for name in windows
        },
        "ratios": _ratios(windows) | {"memory_over_trainer": round(peaks["mtl"][0] / peaks["trainer"][0], 3)},
    }


def _figures(
    blocks: Sequence[Block], peaks: Peaks, flops: Count, peak_tflops: float | None
) -> dict[str, Any]:
    """Figures of one way to train. `useful_tflops` is the work that its subwords need, without padding."""
    total, (peak, gpu_peak) = sum(blocks, Block()), peaks
    tflops = spread([flops(block) / block.seconds / 1e12 for block in blocks], 4)["median"]
    return {
        "words_per_s": spread([block.words / block.seconds for block in blocks], 1)["median"],
        "ms_per_step": spread([1000 * block.seconds / block.steps for block in blocks], 1)["median"],
        "cpu_s_per_step": spread([block.cpu_seconds / block.steps for block in blocks])["median"],
        "padding": round(1 - total.subwords / total.positions, 4),
        "steps": total.steps,
        "words": total.words,
        "peak_mb": round(peak / 2**20),
        "peak_mb_on_gpu": None if gpu_peak is None else round(gpu_peak / 2**20),
        "useful_tflops": tflops,
        "mfu": None if peak_tflops is None else round(tflops / peak_tflops, 4),
    }


def _work(job: Job, mtl: Block, training: EncoderTraining) -> tuple[Count, float | None]:
    """The floating-point operations of training on a block, and the peak TFLOP/s of the job's GPU if known.

    Three times the forward pass of what is trained (Kaplan et al. 2020, section 2.1), in sentences of as many
    subwords as MTL's, with the heads' rows. Adapters need no gradients of the other weights: twice.
    """
    import torch
    from transformers import AutoConfig

    from core.models.sources import locate

    encoder = AutoConfig.from_pretrained(locate(job.config.encoder))
    layers, features, inner = encoder.num_hidden_layers, encoder.hidden_size, encoder.intermediate_size
    subwords = mtl.subwords / (mtl.steps * job.config.batch_size)
    passes = {"full": 3 * layers, "top": 3 * training.number, "lora": 2 * layers, "frozen": 0}[training.kind]
    per_subword = passes * (2 * (4 * features**2 + 2 * features * inner) + 4 * subwords * features)
    per_word = 2 * sum(job.labels) * features
    gpu = torch.cuda.get_device_name(job.device) if job.device.type == "cuda" and job.half else ""
    peak = next((peak for name, peak in BF16_TFLOPS.items() if gpu.startswith(name)), None)
    return lambda block: block.subwords * per_subword + 3 * block.words * per_word, peak


def _ratios(windows: Mapping[str, Sequence[Block]]) -> dict[str, Any]:
    """MTL over each other way by words a second, and MRN over MTL by time."""

    def over(ours: str, theirs: str, count: Count) -> dict[str, Any]:
        total = count(sum(windows[ours], Block())) / count(sum(windows[theirs], Block()))
        pairs = ratio([count(block) for block in windows[ours]], [count(block) for block in windows[theirs]])
        return {**pairs, "pairs": len(windows[ours]), "total": round(total, 3)}

    ratios: dict[str, Any] = {}
    # By processor time too, of all threads together: other programs lengthen it less.
    for suffix, clock in (("", "seconds"), ("_cpu", "cpu_seconds")):

        def words_per_s(block: Block, clock: str = clock) -> float:
            return float(block.words / getattr(block, clock))

        def s_per_step(block: Block, clock: str = clock) -> float:
            return float(getattr(block, clock) / block.steps)

        for other in ("trainer", "trainer_fp32", "published"):
            ratios[f"over_{other}{suffix}"] = over("mtl", other, words_per_s)
        if "full" in windows:
            ratios[f"over_full{suffix}"] = over("mtl", "full", words_per_s)
        ratios[f"mrn_over_mtl{suffix}"] = over("mrn", "mtl", s_per_step)
    return ratios


def measure(args: Namespace) -> dict[str, float]:
    """Print all figures as they come; return the last line's."""
    import psutil
    import torch
    import transformers

    from tests.benchmarks._loops import assert_equal_losses, make_job
    from tests.benchmarks.tagging import beside_pipeline

    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": psutil.cpu_count(logical=False),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    print_json(machine)
    with _config(args) as config:
        job = make_job(config, 5 if args.quick else args.steps, quick=args.quick)
        if not args.set:
            assert_equal_losses(job)
        training = compare(job)
        print_json(training)
        tagging = beside_pipeline(job)
        print_json(tagging)
    names = ["over_trainer", "over_trainer_fp32", "over_published", "mrn_over_mtl"]
    caching = training["variants"]["mtl"].get("caching_s")
    if "over_full" in training["ratios"]:
        names.append("over_full")
    return {
        **({} if caching is None else {"caching_s": caching}),
        **{name: training["ratios"][name]["median"] for name in names},
        "inference_over_pipeline": tagging["ratios"]["one_task_over_best"]["median"],
        "memory_over_trainer": training["ratios"]["memory_over_trainer"],
    }


@contextmanager
def _config(args: Namespace) -> Iterator[RunConfig]:
    """The MTL run. `bert-base`, and what `--quick` trains, are written to a temporary folder."""
    from core.config import RunConfig
    from tests.benchmarks._loops import random_bert
    from tests.trained import toy_config

    given = dict(field.split("=", 1) for field in args.set)
    with TemporaryDirectory() as folder:
        if args.quick:
            yield toy_config(Path(folder), epochs=2, dropout=0.1).with_(**given)
            return
        values: dict[str, Any] = {"columns": COLUMNS} if Path(args.data).is_dir() else {}
        values |= {"corpus": args.data, "tasks": "pos,chunk,ner", "paradigm": "mtl", "batch_size": 16}
        values["device"] = args.device
        values["encoder"] = random_bert(Path(folder)) if args.encoder == "bert-base" else args.encoder
        yield RunConfig.build(**values | given)


def main() -> None:
    from core.errors import MRNLabError

    parser = arguments(__doc__)
    parser.add_argument("--data", default="../shared/data/conll2003", help="a corpus: folder or name")
    parser.add_argument("--encoder", default="minilm", help="name, folder, or bert-base (random weights)")
    parser.add_argument("--steps", type=int, default=60, help="of each way to train")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of our runs")
    args = parser.parse_args()
    try:
        print_json(measure(args))
    except MRNLabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
