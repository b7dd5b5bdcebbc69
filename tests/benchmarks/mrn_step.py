"""What MRN costs: its penalty and update beside the published way, and its training step beside MTL's.

`python -m tests.benchmarks.mrn_step` prints JSON: milliseconds of this run and their ratios. The goal is
an MRN step of at most 1.03 times the MTL step; the update is to be at least 20 times as fast as the
published one at 3 tasks, 78 labels and 768 features. The last line has just these ratios.
"""

from __future__ import annotations

import argparse
import json
import os
from tempfile import TemporaryDirectory

import torch

from core.errors import EncoderError
from core.training.device import choose_device, make_deterministic
from tests.benchmarks import mrn_algebra, paired_steps
from tests.benchmarks.timing import Effort

PAIRS, QUICK_PAIRS = 100, 10
EFFORT, QUICK_EFFORT = Effort(least=5, seconds=3.0), Effort(least=2, seconds=0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repetitions: a look, not a measurement")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    asked = parser.parse_args()
    device = choose_device(asked.device)
    make_deterministic(0, device)  # as a run is
    algebra = [
        mrn_algebra.compare(size, device, QUICK_EFFORT if asked.quick else EFFORT)
        for size in mrn_algebra.SIZES
    ]
    steps = [
        _steps(encoder, str(device), QUICK_PAIRS if asked.quick else PAIRS)
        for encoder in paired_steps.ENCODERS
    ]
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "quick": asked.quick,
                "algebra": algebra,
                "steps": steps,
            },
            indent=2,
        )
    )
    print(
        json.dumps(
            {
                "update_speedup": {
                    found["size"]: found["published_over"]["relational"]["update"] for found in algebra
                },
                "mrn_over_mtl": {found["encoder"]: found.get("mrn_over_mtl") for found in steps},
            }
        )
    )


def _steps(encoder: str, device: str, pairs: int) -> dict[str, object]:
    """The comparison, or why it could not be made here."""
    with TemporaryDirectory() as folder:
        os.environ["MRNLAB_HOME"] = folder  # encoded text is cached there
        try:
            return paired_steps.compare(encoder, device, pairs)
        except EncoderError as error:
            return {"encoder": encoder, "left_out": str(error)}


if __name__ == "__main__":
    main()
