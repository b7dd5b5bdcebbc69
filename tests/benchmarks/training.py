"""What training costs here, beside Hugging Face Trainer and the published program; tagging beside a pipeline.

    python -m tests.benchmarks.training --data ../shared/data/conll2003 --encoder minilm --steps 60

One model of three tasks is trained on the same sentences (a) by MRN Lab as MTL, (b) as MRN, (c) by Trainer,
with its best stock options and with its defaults, (d) by the published loop. Each has a process of its own,
and they take turns of a few steps. Prints JSON; the last line has ratios alone, medians, ours first: words a
second of our MTL over Trainer at its best, over Trainer's defaults and over the published loop; the time of
an MRN step over an MTL step; words a second of tagging one task over one pipeline at its best batch size;
peak memory of our MTL process over Trainer's. OMP_NUM_THREADS sets the threads.

`--grow` prints instead how a step and a run's set-up grow with the corpus, the length of sentences, T, C, D.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["arguments", "last_line", "main", "measure"]

QUICK_STEPS = 10


def measure(asked: argparse.Namespace) -> dict[str, float]:
    """Prints all figures as they come; the last line's."""
    # Imported here: the processes that train import this module too, and are to hold no more than they need.
    import psutil
    import torch
    import transformers

    from core.config import RunConfig
    from tests.benchmarks import inference, training_compare
    from tests.benchmarks.training_job import encoder_named, make_job

    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": psutil.cpu_count(logical=False),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    print(json.dumps(machine), flush=True)
    values = {name: getattr(asked, name) for name in ("tasks", "device", "precision")}
    values |= dict(one.split("=", 1) for one in asked.set)
    if Path(asked.data).is_dir():
        values["columns"] = asked.columns
    with encoder_named(asked.encoder) as encoder:
        config = RunConfig.build(
            corpus=asked.data, encoder=encoder, paradigm="mtl", batch_size=asked.batch, **values
        )
        training = training_compare.compare(make_job(config, QUICK_STEPS if asked.quick else asked.steps))
        print(json.dumps(training, indent=1), flush=True)
        tagging = inference.compare(config, inference.QUICK if asked.quick else inference.Effort())
        print(json.dumps(tagging, indent=1), flush=True)
    return last_line(training, tagging)


def last_line(training: Mapping[str, Any], tagging: Mapping[str, Any]) -> dict[str, float]:
    """The ratios that are asked for, medians."""
    names = ("over_trainer", "over_trainer_fp32", "over_published", "mrn_over_mtl")
    return {
        **{name: training["ratios"][name]["median"] for name in names},
        "inference_over_pipeline": tagging["ratios"]["one_task_over_best"]["median"],
        "memory_over_trainer": training["ratios"]["memory_over_trainer"],
    }


def main() -> None:
    from core.errors import MRNLabError

    asked = arguments(sys.argv[1:])
    try:
        if asked.grow:
            from tests.benchmarks import growth

            print(json.dumps(growth.measure(asked.quick)))
        else:
            print(json.dumps(measure(asked)))
    except MRNLabError as error:
        sys.exit(str(error))


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="../shared/data/conll2003", help="a corpus: folder or name")
    parser.add_argument("--columns", default="tokens,pos,chunk,ner", help="of a folder's files")
    parser.add_argument("--tasks", default="pos,chunk,ner")
    parser.add_argument("--encoder", default="minilm", help="name, folder, or bert-base (random weights)")
    parser.add_argument("--steps", type=int, default=60, help="of each way to train")
    parser.add_argument("--quick", action="store_true", help="few steps: a look, not a measurement")
    parser.add_argument("--batch", type=int, default=16, help="sentences in a batch")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--precision", default="auto", choices=("auto", "fp32", "bf16"))
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of our runs")
    parser.add_argument("--grow", action="store_true", help="how cost grows, instead")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
