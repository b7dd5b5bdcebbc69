"""What training costs beside Hugging Face Trainer and the published program, and tagging beside a pipeline.

    python -m tests.benchmarks.training --data ../shared/data/conll2003 --encoder minilm

One model of three tasks is trained on the same sentences (a) by MRN Lab as MTL, (b) as MRN, (c) by Trainer,
with its best stock options and with its defaults, (d) by the published loop, after a check that all minimise
the same loss. Each has a process of its own, and they take turns of a few steps: all ways for 16 turns, then
all but Trainer's defaults and the published loop, until the quartiles of MTL over Trainer lie within 3% of
their median, or until `--steps`. Prints JSON; the last line has median ratios, MRN Lab first: words a second
of MTL over Trainer at its best, how far from it the farther quartile lies, the same ratio by processor time,
words a second over Trainer's defaults and the published loop; the time of an MRN step over an MTL step; words
a second of tagging one task over one pipeline at its best batch size; peak memory of MTL over Trainer's.
OMP_NUM_THREADS sets the threads.

With `--set encoder_training=top:2`, or another one that does not train the whole encoder, (a) also runs in
full, and the last line has words a second over that one (`over_full`) and the seconds that the states of the
layers below took (`caching_s`, of all training sentences), which no ratio counts.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

# Other imports are in functions: the processes that train import this module, and their memory is measured.
from tests.benchmarks._harness import (
    CONLL2003,
    alternate,
    arguments,
    corpus_fields,
    minilm,
    print_json,
    ratio,
    spread,
)
from tests.benchmarks._turns import TURN, Block, Player

if TYPE_CHECKING:
    from core.config import RunConfig
    from tests.benchmarks._loops import Job

PAIRS = 8
"""Pairs of blocks that are compared, each of as many turns as were played: longer blocks vary less."""
COMMON_TURNS = 2 * PAIRS
"""Turns of all ways. The fewest in a block are two, so that each has an update of the covariances."""
SLOW = frozenset({"trainer_fp32", "published"})
"""Ways that play no further turns: their ratios are far from 1."""
WITHIN = 0.03
"""The distance of the quartiles from the median, as its fraction, at which enough turns were played."""
BF16_TFLOPS = {"NVIDIA H100": 798.0, "NVIDIA H200": 790.0}
"""The measured peak of matrix products in bfloat16, by the beginning of the GPU's name."""

Count = Callable[[Block], float]
Peaks = tuple[int, int | None]


def compare(job: Job) -> dict[str, Any]:
    """Train all ways in turns; figures of each, and ratios."""
    from tests.benchmarks._loops import ways

    load, began = os.getloadavg()[0], time.perf_counter()
    with ExitStack() as stack:
        players = {
            name: stack.enter_context(Player(name, loop, given, quick=job.quick))
            for name, (loop, given) in ways(job).items()
        }
        for player in players.values():
            player.wait_until_ready()
            print(f"{player.name} is ready after {time.perf_counter() - began:.0f} s", file=sys.stderr)

        def play(name: str, _turn: int) -> Block:
            # A step of the published loop costs the same for all sentences: one is enough.
            return players[name].play(1 if name == "published" else TURN)

        most = -(-len(job.batches) // TURN)
        plays = {name: partial(play, name) for name in players}
        blocks = alternate(plays, range(min(COMMON_TURNS, most)))
        close = {name: action for name, action in plays.items() if name not in SLOW}
        while (played := len(blocks["mtl"])) < most and not _settled(blocks):
            for name, more in alternate(close, range(played, min(played + PAIRS, most))).items():
                blocks[name] += more
        peaks = {name: player.end() for name, player in players.items()}
        facts = {name: player.facts for name, player in players.items()}
    # As if its sentences had the mean length: the time of its steps does not depend on it.
    words = sum(len(sentence.tokens) for sentence in job.sentences) / len(job.batches)
    blocks["published"] = [replace(block, words=round(block.steps * words)) for block in blocks["published"]]
    mtl = sum(blocks["mtl"], Block())
    partly, fully = _work(job, mtl, job.config.encoder_training), _work(job, mtl, "full")
    work = {name: partly if name in ("mtl", "mrn") else fully for name in blocks}
    return {
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "variants": {
            name: facts[name] | _figures(_merged(played), peaks[name], *work[name])
            for name, played in blocks.items()
        },
        "ratios": _ratios(blocks) | {"memory_over_trainer": round(peaks["mtl"][0] / peaks["trainer"][0], 3)},
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


def _work(job: Job, mtl: Block, encoder_training: str) -> tuple[Count, float | None]:
    """The floating-point operations of training on a block, and the peak TFLOP/s of the job's GPU if known.

    Three times the forward pass of what is trained (Kaplan et al. 2020, section 2.1), in sentences of as many
    subwords as MTL's, with the heads' rows.
    """
    import torch
    from transformers import AutoConfig

    from core.models.sources import locate
    from core.registry import FULL, top_layer_count

    encoder = AutoConfig.from_pretrained(locate(job.config.encoder))
    layers, features, inner = encoder.num_hidden_layers, encoder.hidden_size, encoder.intermediate_size
    subwords = mtl.subwords / (mtl.steps * job.config.batch_size)
    trained_layers = layers if encoder_training == FULL else top_layer_count(encoder_training)
    per_subword = (
        3 * trained_layers * (2 * (4 * features**2 + 2 * features * inner) + 4 * subwords * features)
    )
    per_word = 2 * sum(job.labels) * features
    gpu = torch.cuda.get_device_name(job.device) if job.device.type == "cuda" and job.half else ""
    peak = next((peak for name, peak in BF16_TFLOPS.items() if gpu.startswith(name)), None)
    return lambda block: block.subwords * per_subword + 3 * block.words * per_word, peak


def _merged(played: Sequence[Block]) -> list[Block]:
    """The blocks of turns, neighbours added up, as at most PAIRS longer ones."""
    count = min(PAIRS, len(played))
    ends = [len(played) * number // count for number in range(count + 1)]
    return [sum(played[start:end], Block()) for start, end in pairwise(ends)]


def _words_per_s(block: Block, clock: str = "seconds") -> float:
    return float(block.words / getattr(block, clock))


def _s_per_step(block: Block, clock: str = "seconds") -> float:
    return float(getattr(block, clock) / block.steps)


def _over(blocks: Mapping[str, Sequence[Block]], ours: str, theirs: str, count: Count) -> dict[str, Any]:
    """The ratio of one way to another over the turns that both played."""
    common = min(len(blocks[ours]), len(blocks[theirs]))
    played = [blocks[name][:common] for name in (ours, theirs)]
    pairs = ratio(*([count(block) for block in _merged(way)] for way in played))
    within = max(abs(quartile / pairs["median"] - 1) for quartile in pairs["quartiles"])
    mine, other = (count(sum(way, Block())) for way in played)
    return {**pairs, "within": round(within, 3), "turns": common, "total": round(mine / other, 3)}


def _settled(blocks: Mapping[str, Sequence[Block]]) -> bool:
    """Whether the quartiles of MTL over Trainer lie close enough to their median."""
    return bool(_over(blocks, "mtl", "trainer", _words_per_s)["within"] <= WITHIN)


def _ratios(blocks: Mapping[str, Sequence[Block]]) -> dict[str, Any]:
    """MTL over each other way by words a second, and MRN over MTL by time."""
    ratios: dict[str, Any] = {}
    # By processor time too, of all threads together: other programs lengthen it less.
    for suffix, clock in (("", "seconds"), ("_cpu", "cpu_seconds")):
        speed, time = partial(_words_per_s, clock=clock), partial(_s_per_step, clock=clock)
        for other in ("trainer", "trainer_fp32", "published"):
            ratios[f"over_{other}{suffix}"] = _over(blocks, "mtl", other, speed)
        if "full" in blocks:
            ratios[f"over_full{suffix}"] = _over(blocks, "mtl", "full", speed)
        ratios[f"mrn_over_mtl{suffix}"] = _over(blocks, "mrn", "mtl", time)
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
        if not args.set and args.only != "tagging":
            assert_equal_losses(job)
        training = compare(job) if args.only != "tagging" else None
        if training is not None:
            print_json(training)
        over_pipeline: dict[str, float] = {}
        if args.only != "training":
            tagging = beside_pipeline(job)
            print_json(tagging)
            over_pipeline["inference_over_pipeline"] = tagging["ratios"]["one_task_over_best"]["median"]
    if training is None:
        return over_pipeline
    names = ["over_trainer_cpu", "over_trainer_fp32", "over_published", "mrn_over_mtl"]
    caching = training["variants"]["mtl"].get("caching_s")
    if "over_full" in training["ratios"]:
        names.append("over_full")
    return {
        **({} if caching is None else {"caching_s": caching}),
        "over_trainer": training["ratios"]["over_trainer"]["median"],
        "over_trainer_within": training["ratios"]["over_trainer"]["within"],
        **{name: training["ratios"][name]["median"] for name in names},
        **over_pipeline,
        "memory_over_trainer": training["ratios"]["memory_over_trainer"],
    }


@contextmanager
def _config(args: Namespace) -> Iterator[RunConfig]:
    """The MTL run. Encoders of random weights, and what `--quick` trains, are in a temporary folder."""
    from core.config import RunConfig
    from tests.benchmarks._loops import BASE_ENCODERS, random_encoder
    from tests.trained import toy_config

    given = dict(field.split("=", 1) for field in args.set)
    with TemporaryDirectory() as folder:
        if args.quick:
            yield toy_config(Path(folder), epochs=2, dropout=0.1).with_(**given)
            return
        values = corpus_fields(args.data) | {"paradigm": "mtl", "batch_size": 16, "device": args.device}
        values["encoder"] = minilm() if args.encoder == "minilm" else args.encoder
        if args.encoder in BASE_ENCODERS:
            values["encoder"] = random_encoder(Path(folder), args.encoder)
        yield RunConfig.build(**values | given)


def main() -> None:
    from core.errors import MRNLabError

    parser = arguments(__doc__, data=CONLL2003, device=True)
    parser.add_argument(
        "--encoder", default="minilm", help="name, folder, or of random weights: bert-base, roberta-base"
    )
    parser.add_argument("--steps", type=int, default=320, help="of each way to train, at most")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of our runs")
    parser.add_argument("--only", choices=("training", "tagging"), help="compare this alone (default: both)")
    args = parser.parse_args()
    try:
        print_json(measure(args))
    except MRNLabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
