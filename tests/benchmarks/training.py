"""What training costs here, beside Hugging Face Trainer and the published program; tagging beside a pipeline.

    python -m tests.benchmarks.training --data ../shared/data/conll2003 --encoder minilm --steps 60

One model of three tasks is trained on the same sentences (a) by MRN Lab as MTL, (b) as MRN, (c) by Trainer,
with its best stock options and with its defaults, (d) by the published loop. That all minimise the same loss
is checked first. Each has a process of its own, and they take turns of a few steps. Prints JSON; the last
line has ratios alone, medians, ours first: words a second of our MTL over Trainer at its best, over Trainer's
defaults and over the published loop; the time of an MRN step over an MTL step; words a second of tagging one
task over one pipeline at its best batch size; peak memory of our MTL process over Trainer's. OMP_NUM_THREADS
sets the threads.

`--grow` prints instead how a step and a run's set-up grow with the corpus, the length of sentences, T, C, D.
"""

from __future__ import annotations

import os
import platform
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

# What else is needed is imported where it is: the processes that train import this module too, and are to
# hold no more than they need.
from tests.benchmarks._harness import alternate, arguments, ratio, spread, tell
from tests.benchmarks._turns import Block, Memory, Player

if TYPE_CHECKING:
    from core.config import RunConfig
    from tests.benchmarks._loops import Job

TURN = 5
"""Steps of a turn: few enough for all to meet the same load of the machine."""
TOGETHER = 2
"""Turns that are compared as one: an update of the covariances lies in each."""
_BF16_TFLOPS = {"NVIDIA H200": 790.0}
"""What matrix products in bfloat16 were measured to reach, by the beginning of the GPU's name."""

Count = Callable[[Block], float]


def compare(job: Job) -> dict[str, Any]:
    """Trains all ways, turn by turn; figures of each, and ratios."""
    from tests.benchmarks._loops import LOOPS

    before = os.getloadavg()[0]
    with ExitStack() as stack:
        players = {
            name: stack.enter_context(closing(Player(name, loop, job, quick=job.quick)))
            for name, loop in LOOPS.items()
        }
        # A step of the published loop costs the same whatever the sentences: few do.
        steps = {name: 1 if name == "published" else TURN for name in players}
        ways = {
            name: lambda _turn, name=name: players[name].play(steps[name])  # type: ignore[misc]
            for name in players
        }
        blocks: dict[str, list[Block]] = alternate(ways, range(-(-job.steps // TURN)))
        memory = {name: player.end() for name, player in players.items()}
        facts = {name: player.facts for name, player in players.items()}
    # As if each of its sentences had been of the mean length, which these steps' time does not depend on.
    words = sum(len(sentence.tokens) for sentence in job.flat) / job.steps
    blocks["published"] = [replace(block, words=round(block.steps * words)) for block in blocks["published"]]
    tens = {
        name: [sum(own[start : start + TOGETHER], Block()) for start in range(0, len(own), TOGETHER)]
        for name, own in blocks.items()
    }
    return {
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "variants": _variants(job, tens, memory, facts),
        "ratios": _ratios(tens, memory),
    }


def _variants(
    job: Job,
    blocks: Mapping[str, Sequence[Block]],
    memory: Mapping[str, Memory],
    facts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Figures of each way to train. `useful_tflops` is what its subwords need, padding left out."""
    flops, peak = _flops(job, sum(blocks["mtl"], Block())), _peak_tflops(job)
    variants = {}
    for name, own in blocks.items():
        total, size = sum(own, Block()), memory[name]
        reached = spread([flops(block) / block.seconds / 1e12 for block in own], 4)["median"]
        variants[name] = {
            **facts[name],
            "words_per_s": spread([block.words / block.seconds for block in own], 1)["median"],
            "ms_per_step": spread([1000 * block.seconds / block.steps for block in own], 1)["median"],
            "cpu_s_per_step": spread([block.cpu_seconds / block.steps for block in own])["median"],
            "padding": round(1 - total.subwords / total.places, 4),
            "steps": total.steps,
            "words": total.words,
            "peak_mb": round(size.peak / 2**20),
            "peak_mb_on_gpu": None if size.cuda is None else round(size.cuda / 2**20),
            "useful_tflops": reached,
            "mfu": None if peak is None else round(reached / peak, 4),
        }
    return variants


def _flops(job: Job, mtl: Block) -> Count:
    """How many floating-point operations training on a block needs: three times its forward pass (Kaplan et
    al. 2020, section 2.1), in sentences of as many subwords as ours, with the heads' rows.
    """
    from transformers import AutoConfig

    from core.models.sources import locate

    encoder = AutoConfig.from_pretrained(locate(job.config.encoder))
    layers, features, inner = encoder.num_hidden_layers, encoder.hidden_size, encoder.intermediate_size
    subwords = mtl.subwords / (mtl.steps * job.config.batch_size)
    of_subword = 2 * layers * (4 * features**2 + 2 * features * inner) + 4 * layers * subwords * features
    of_word = 2 * sum(job.labels) * features
    return lambda block: 3 * (block.subwords * of_subword + block.words * of_word)


def _peak_tflops(job: Job) -> float | None:
    """What the job's GPU reaches in bfloat16; None where that is not known here."""
    import torch

    if not job.device.startswith("cuda") or not job.half:
        return None
    gpu = torch.cuda.get_device_name(job.device)
    return next((peak for name, peak in _BF16_TFLOPS.items() if gpu.startswith(name)), None)


def _ratios(blocks: Mapping[str, Sequence[Block]], memory: Mapping[str, Memory]) -> dict[str, Any]:
    """Of our MTL to each other way by words a second, and of MRN to MTL by time."""

    def over(ours: str, theirs: str, of: Count) -> dict[str, Any]:
        total = of(sum(blocks[ours], Block())) / of(sum(blocks[theirs], Block()))
        pairs = ratio(list(map(of, blocks[ours])), list(map(of, blocks[theirs])))
        return {**pairs, "pairs": len(blocks[ours]), "total": round(total, 3)}

    ratios: dict[str, Any] = {}
    for other in ("trainer", "trainer_fp32", "published"):
        ratios[f"over_{other}"] = over("mtl", other, lambda block: block.words / block.seconds)
        # Of the processor's time, which other programs lengthen less; of all threads together.
        ratios[f"over_{other}_cpu"] = over("mtl", other, lambda block: block.words / block.cpu_seconds)
    ratios["mrn_over_mtl"] = over("mrn", "mtl", lambda block: block.seconds / block.steps)
    ratios["mrn_over_mtl_cpu"] = over("mrn", "mtl", lambda block: block.cpu_seconds / block.steps)
    return ratios | {"memory_over_trainer": round(memory["mtl"].peak / memory["trainer"].peak, 3)}


def measure(asked: Namespace) -> dict[str, float]:
    """Prints all figures as they come; the last line's."""
    import psutil
    import torch
    import transformers

    from tests.benchmarks._loops import assert_equal_losses, make_job
    from tests.benchmarks.tagging import Effort, beside_pipeline

    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": psutil.cpu_count(logical=False),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    tell(machine)
    with _described(asked) as config:
        job = make_job(config, 5 if asked.quick else asked.steps, quick=asked.quick)
        if not asked.set:
            assert_equal_losses(job)
        training = compare(job)
        tell(training)
        effort = Effort(blocks=1, sentences=4, batches=(1, 4)) if asked.quick else Effort()
        tagging = beside_pipeline(job, effort)
        tell(tagging)
    names = ("over_trainer", "over_trainer_fp32", "over_published", "mrn_over_mtl")
    return {
        **{name: training["ratios"][name]["median"] for name in names},
        "inference_over_pipeline": tagging["ratios"]["one_task_over_best"]["median"],
        "memory_over_trainer": training["ratios"]["memory_over_trainer"],
    }


@contextmanager
def _described(asked: Namespace) -> Iterator[RunConfig]:
    """The MTL run. `bert-base`, and what `--quick` trains, are written to a folder for the block."""
    from core.config import RunConfig
    from tests.benchmarks._loops import random_bert

    with TemporaryDirectory() as folder:
        if asked.quick:
            from tests.trained import toy_config

            yield toy_config(Path(folder), epochs=2, dropout=0.1)
            return
        values: dict[str, Any] = {name: getattr(asked, name) for name in ("tasks", "device", "precision")}
        values |= {"corpus": asked.data, "encoder": asked.encoder, "paradigm": "mtl"}
        if asked.encoder == "bert-base":
            values["encoder"] = random_bert(Path(folder))
        if Path(asked.data).is_dir():
            values["columns"] = asked.columns
        fields = dict(field.split("=", 1) for field in asked.set)
        yield RunConfig.build(batch_size=asked.batch, **values | fields)


def main() -> None:
    from core.errors import MRNLabError

    parser = arguments(__doc__)
    parser.add_argument("--data", default="../shared/data/conll2003", help="a corpus: folder or name")
    parser.add_argument("--columns", default="tokens,pos,chunk,ner", help="of a folder's files")
    parser.add_argument("--tasks", default="pos,chunk,ner")
    parser.add_argument("--encoder", default="minilm", help="name, folder, or bert-base (random weights)")
    parser.add_argument("--steps", type=int, default=60, help="of each way to train")
    parser.add_argument("--batch", type=int, default=16, help="sentences in a batch")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--precision", default="auto", choices=("auto", "fp32", "bf16"))
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of our runs")
    parser.add_argument("--grow", action="store_true", help="how cost grows, instead")
    asked = parser.parse_args()
    try:
        if asked.grow:
            from tests.benchmarks._growth import growth

            tell(growth(quick=asked.quick))
        else:
            tell(measure(asked))
    except MRNLabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
