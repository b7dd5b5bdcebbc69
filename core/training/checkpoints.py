"""Saves a training's states and its best model, and takes the newest state up again."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints import Checkpoint, NoRoom
from core.errors import TrainingError
from core.models import model_io as models
from core.models.encoders import TrainedRows
from core.records import DevMetrics, Note, Saved, Sink
from core.training.setup import TrainingRun
from core.training.step_log import StepLog

# All that a training needs to go on exactly where it was, as safetensors and JSON, never pickle.
#
# | in `state.safetensors`      | what                                                                  |
# |-----------------------------|-----------------------------------------------------------------------|
# | `model.NAME`                | weights; a frozen transformer, and rows that never occur, are no part |
# | `optimiser.NUMBER.FIELD`    | AdamW's step and averages of each trained weight                      |
# | `prior.NAME`                | the covariances                                                       |
# | `random.cpu`, `random.cuda` | torch's generators, which dropout draws from                          |
#
# `state.json` has the rest: how far it is, the rates, the schedule, the generator of the data's order as it
# was
# when the epoch began, and what it was computed with.


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


def state_writer(run: TrainingRun, at: Progress) -> tuple[int, Callable[[Path], None]]:
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


def read_state(folder: Path, run: TrainingRun) -> Progress:
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


def other_conditions(folder: Path, run: TrainingRun) -> list[str]:
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


def _conditions(run: TrainingRun) -> dict[str, str]:
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


_MOST_IN_MEMORY = 64_000_000
"""Bytes of a best model that waits in memory."""


@dataclass(frozen=True)
class _Best:
    """The best model so far, kept in memory: of which epoch and step, its bytes and its weights, and whether
    it is on the disk too.
    """

    epoch: int
    step: int
    size: int
    weights: Mapping[str, Tensor]
    written: bool = False


class Resuming:
    """The states of one training, in the folders of its checkpoint."""

    def __init__(self, run: TrainingRun, checkpoint: Checkpoint, sink: Sink) -> None:
        self._run, self._checkpoint, self._sink = run, checkpoint, sink
        self._saved_step = 0
        self._no_room_told = False
        self._best: _Best | None = None

    def begin(self) -> Progress:
        """The newest state that is whole, taken up; else the beginning. Says which.

        Raises TrainingError where the run's data or description are not those of the state.
        """
        folder = self._checkpoint.resume(_identity(self._run), lambda message: self._sink(Note(message)))
        if folder is None:
            if self._checkpoint.resumes:
                self._sink(Note("There is no training state to resume from: it starts from its beginning."))
            return Progress(learns_relations=self._run.prior.relations() is not None)
        at = read_state(folder, self._run)
        self._saved_step = at.step
        self._sink(Note(f"Resumed from step {at.step:,}."))
        if others := other_conditions(folder, self._run):
            self._sink(
                Note(
                    f"It was begun under other conditions ({'; '.join(others)}), so its numbers may differ "
                    "in their last digits from those of a run that was never interrupted."
                )
            )
        return at

    def save(self, at: Progress, log: StepLog) -> None:
        """Saves the state as it is now. A disk without room is told, once, and does not end the training.

        Raises NoRoom where there is none for the best model, which a state must have beside it.
        """
        log.flush()
        if at.step == self._saved_step:
            return
        at.seconds = log.seconds
        began = time.monotonic()
        self._settle_best()  # the state names it
        try:
            size = self._checkpoint.save_state(at.step, *state_writer(self._run, at))
        except NoRoom as error:
            if not self._no_room_told:
                self._sink(
                    Note(
                        f"The training state of step {at.step:,} could not be saved. {error} The training "
                        "goes on, and it is tried again."
                    )
                )
            self._no_room_told = True
            return
        self._no_room_told = False
        self._saved_step = at.step
        epoch = at.step / self._run.facts.steps_per_epoch
        self._sink(Saved(at.step, epoch, time.monotonic() - began, size))

    def save_best(self, at: Progress) -> None:
        """Keeps the model as it is now as the best so far. Raises NoRoom.

        What stands over a frozen encoder is mostly small: it waits in memory until a state or the end of the
        training needs it on the disk, for the next epoch may do better.
        """
        model, frozen = self._run.model, self._run.config.encoder_training == "frozen"
        epoch, size = len(at.history), models.saved_bytes(model)
        if not frozen or size > _MOST_IN_MEMORY:
            self._write_best(epoch, at.step, size)
            return
        weights = {name: value.to("cpu", copy=True) for name, value in models.own_weights(model).items()}
        self._best = _Best(epoch, at.step, size, weights)

    def restore_best(self, at: Progress, epoch: int) -> None:
        """Puts the weights of the best epoch back into the model, and has them on the disk. Raises NoRoom."""
        self._settle_best()
        if epoch == len(at.history):
            return  # they are those of the last step
        if self._best is not None:
            models.restore_own(self._run.model, self._best.weights)
        else:
            models.restore(self._checkpoint.best, self._run.model)

    def _settle_best(self) -> None:
        """Returns once the best model so far is on the disk. Raises NoRoom."""
        if (best := self._best) is not None and not best.written:
            self._write_best(best.epoch, best.step, best.size, best.weights)
            self._best = replace(best, written=True)

    def _write_best(
        self, epoch: int, step: int, size: int, weights: Mapping[str, Tensor] | None = None
    ) -> None:
        run = self._run
        try:
            self._checkpoint.save_best(
                step,
                size,
                lambda folder: models.save(folder, run.config, run.tasks, run.tokenizer, run.model, weights),
            )
        except NoRoom as error:
            raise NoRoom(
                f"The model of epoch {epoch}, the best so far, could not be saved. {error} Make room there, "
                "then resume the run."
            ) from error


def _identity(run: TrainingRun) -> str:
    """Of a run's description and data: what a state must be of to be taken up. The device may be another."""
    digest = hashlib.sha256(run.config.with_(device="auto").to_json().encode())
    for part in run.model.modules():
        if isinstance(part, TrainedRows):  # the other rows are not in the state, but in the encoder's files
            digest.update(part.pretrained[part.place < len(part.rows)].cpu().numpy().tobytes())
    for name, split in run.splits.items():
        digest.update(f"{name} {split.key} ".encode())
        digest.update(split.labels.tobytes())
    return digest.hexdigest()
