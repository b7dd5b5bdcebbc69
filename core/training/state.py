"""All that a training needs to go on exactly where it was, as safetensors and JSON, never pickle.

| in `state.safetensors`      | what                                                                  |
|-----------------------------|-----------------------------------------------------------------------|
| `model.NAME`                | weights; a frozen transformer, and rows that never occur, are no part |
| `optimiser.NUMBER.FIELD`    | AdamW's step and averages of each trained weight                      |
| `prior.NAME`                | the covariances                                                       |
| `random.cpu`, `random.cuda` | torch's generators, which dropout draws from                          |

`state.json` has the rest: how far it is, the rates, the schedule, the generator of the data's order as it was
when the epoch began, and what it was computed with.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.errors import TrainingError
from core.training.selection import DevMetrics
from core.training.setup import Setup

__all__ = ["Progress", "other_conditions", "read_state", "state_writer"]

_TENSORS, _REST = "state.safetensors", "state.json"


@dataclass
class Progress:
    """How far a training is: between two steps, every epoch that has ended evaluated.

    `history` has the development metrics of those epochs; `seconds` is the time it took so far. While it
    `learns_relations`, it was not told that its penalty has vanished.
    """

    step: int = 0
    seconds: float = 0.0
    learns_relations: bool = False
    history: list[DevMetrics] = field(default_factory=list)


def state_writer(run: Setup, at: Progress) -> tuple[int, Callable[[Path], None]]:
    """About how many bytes the state of a training has, and what writes it into a folder."""
    parts: dict[str, Mapping[str, Tensor]] = {
        "model": run.model.state_dict(),
        "prior": run.prior.state_dict(),
        "random": _generators(run.device),
    }
    optimiser = run.optimiser.state_dict()
    parts |= {f"optimiser.{number}": one for number, one in optimiser["state"].items()}
    tensors = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    rest = {
        "progress": asdict(at),
        "rates": optimiser["param_groups"],
        "schedule": run.schedule.state_dict(),
        "order": run.order_before,
        "conditions": _conditions(run),
    }

    def write(folder: Path) -> None:
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in tensors.items()}, folder / _TENSORS
        )
        (folder / _REST).write_text(json.dumps(rest, ensure_ascii=False, indent=1), encoding="utf-8")

    return sum(value.nbytes for value in tensors.values()), write


def read_state(folder: Path, run: Setup) -> Progress:
    """Puts a training, just set up, where it was when that state was written.

    Raises TrainingError where it was begun under another alignment.
    """
    rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for path, value in load_file(folder / _TENSORS).items():
        part, _, name = path.partition(".")
        # Cloned: the numbers of a file lie anywhere in memory, and sums may depend on where they begin.
        parts[part][name] = value.clone()
    _check_alignment(parts["prior"], run.prior.state_dict())
    run.model.load_state_dict(parts["model"])
    run.prior.load_state_dict(parts["prior"])
    averages: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for path, value in parts["optimiser"].items():
        number, _, name = path.partition(".")
        averages[int(number)][name] = value
    run.optimiser.load_state_dict({"state": dict(averages), "param_groups": rest["rates"]})
    run.schedule.load_state_dict(rest["schedule"])
    run.order.bit_generator.state = rest["order"]
    torch.set_rng_state(parts["random"]["cpu"])
    if run.device.type == "cuda" and "cuda" in parts["random"]:
        torch.cuda.set_rng_state(parts["random"]["cuda"], run.device)
    progress = rest["progress"]
    return Progress(**progress | {"history": [DevMetrics(**one) for one in progress["history"]]})


def _check_alignment(before: Mapping[str, Tensor], now: Mapping[str, Tensor]) -> None:
    """An older version may have chosen another alignment for `auto`: its label space has other rows."""
    for name in ("label", "shown_label"):
        if name in before and before[name].shape != now[name].shape:
            raise TrainingError(
                f"This run was begun under an alignment with {len(before[name])} label rows, and has "
                f"{len(now[name])} now: 'auto' chooses otherwise in this version. Retry the run from its "
                "beginning, or launch it with the alignment named."
            )


def other_conditions(folder: Path, run: Setup) -> list[str]:
    """What that state was computed with that is otherwise now, each as `torch 2.11.0, now 2.13.0`."""
    before: dict[str, Any] = json.loads((folder / _REST).read_text(encoding="utf-8"))["conditions"]
    now = _conditions(run)
    return [
        f"{name} {before.get(name)}, now {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _generators(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _conditions(run: Setup) -> dict[str, str]:
    """What the last digits of a training's numbers depend on besides its description."""
    processor = torch.backends.cpu.get_cpu_capability()
    device = torch.cuda.get_device_name(run.device) if run.device.type == "cuda" else run.device.type
    return {
        "device": device,
        "instructions": processor,
        "precision": run.facts.precision,
        "threads": str(torch.get_num_threads()),
        "torch": run.facts.versions["torch"],
        "transformers": run.facts.versions["transformers"],
        "MRN Lab": run.facts.versions["mrnlab"],
    }
