"""Saves a training's states and its best model, and resumes from the newest state.

A state is all that a training needs to go on exactly, as safetensors and JSON, never pickle:

| in `state.safetensors`      | what                                                                  |
|-----------------------------|-----------------------------------------------------------------------|
| `model.NAME`                | weights; those not trained, and rows that never occur, are no part    |
| `optimiser.NUMBER.FIELD`    | AdamW's step and moments of each trained weight                       |
| `prior.NAME`                | the covariances                                                       |
| `balancing.NAME`            | learned weights of tasks, or losses of epochs that weights follow     |
| `random.cpu`, `random.cuda` | torch's generators, which dropout draws from                          |

`state.json` has the rest: the progress, the learning rates, the schedule, the generator of the data's order
as it was when the epoch began, the shapes that a GPU records, and the conditions that the last digits depend
on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints import Checkpoint
from core.errors import DataChanged, NoRoom
from core.events import DevMetrics, Note, Saved, Sink
from core.models import model_io
from core.models.encoders.fast_bert import TrainedRows
from core.models.encoders.transformer import Transformer
from core.registry import FULL, reads_words
from core.training.setup import TrainingRun
from core.training.step_log import StepLog

_TENSORS, _REST = "state.safetensors", "state.json"
_NUMBER = "the number of "
_MOST_IN_MEMORY = 64_000_000
"""Bytes of a best model that waits in memory."""


@dataclass
class Progress:
    """The progress of a training, between two steps and with every ended epoch evaluated.

    `history` has the dev metrics of those epochs; `seconds` is the time so far. `learns_relations` until it
    was noted that the penalty has vanished.
    """

    step: int = 0
    seconds: float = 0.0
    learns_relations: bool = False
    history: list[DevMetrics] = field(default_factory=list)


def state_writer(
    run: TrainingRun, progress: Progress, data: Mapping[str, str | int]
) -> tuple[int, Callable[[Path], None]]:
    """The approximate bytes of the state of a training, and the function that writes it into a folder.

    `data` is what `data_of` says of the run.
    """
    generators = {"cpu": torch.get_rng_state()}
    if run.device.type == "cuda":
        generators["cuda"] = torch.cuda.get_rng_state(run.device)
    optimiser = run.optimiser.state_dict()
    parts: dict[str, Mapping[str, Tensor]] = {
        "model": run.model.state_dict(),
        "prior": run.prior.state_dict(),
        "balancing": run.balancing.state_dict(),
        "random": generators,
        **{f"optimiser.{number}": moments for number, moments in optimiser["state"].items()},
    }
    tensors = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    rest = {
        "progress": asdict(progress),
        "rates": optimiser["param_groups"],
        "schedule": run.schedule.state_dict(),
        "order": run.order_before,
        "conditions": _conditions(run),
        "recorded_shapes": [module.recorded_shapes.state for module in _transformers(run)],
        "data": data,
    }

    def write(folder: Path) -> None:
        on_cpu = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_file(on_cpu, folder / _TENSORS)
        (folder / _REST).write_text(json.dumps(rest, ensure_ascii=False, indent=1), encoding="utf-8")

    return sum(value.nbytes for value in tensors.values()), write


def read_state(folder: Path, run: TrainingRun) -> Progress:
    """Put a training, just set up, where it was when that state was written."""
    rest = json.loads((folder / _REST).read_text(encoding="utf-8"))
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for path, value in load_file(folder / _TENSORS).items():
        part, _, name = path.partition(".")
        # Cloned: tensors of a file lie anywhere in memory, and sums may depend on where they begin.
        parts[part][name] = value.clone()
    run.model.load_state_dict(parts["model"])
    run.prior.load_state_dict(parts["prior"])
    run.balancing.load_state_dict(parts["balancing"])
    moments: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for path, value in parts["optimiser"].items():
        number, _, name = path.partition(".")
        moments[int(number)][name] = value
    run.optimiser.load_state_dict({"state": dict(moments), "param_groups": rest["rates"]})
    run.schedule.load_state_dict(rest["schedule"])
    run.order.bit_generator.state = rest["order"]
    torch.set_rng_state(parts["random"]["cpu"])
    if run.device.type == "cuda" and "cuda" in parts["random"]:
        torch.cuda.set_rng_state(parts["random"]["cuda"], run.device)
    # States of before shapes were kept have none.
    for module, shapes in zip(_transformers(run), rest.get("recorded_shapes", []), strict=False):
        module.recorded_shapes.load(shapes)
    progress = rest["progress"]
    return Progress(**progress | {"history": [DevMetrics(**metrics) for metrics in progress["history"]]})


def _transformers(run: TrainingRun) -> list[Transformer]:
    return [module for module in run.model.modules() if isinstance(module, Transformer)]


def changed_conditions(folder: Path, run: TrainingRun) -> list[str]:
    """The conditions of that state that differ now, each as `torch 2.11.0, now 2.13.0`."""
    before: dict[str, Any] = json.loads((folder / _REST).read_text(encoding="utf-8"))["conditions"]
    now = _conditions(run)
    return [
        f"{name} {before.get(name)}, now {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _conditions(run: TrainingRun) -> dict[str, str]:
    """The conditions that decide the last digits of a training's numbers besides its description."""
    versions = run.facts.versions
    return {
        "device": torch.cuda.get_device_name(run.device) if run.device.type == "cuda" else run.device.type,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "precision": run.facts.precision,
        "threads": str(torch.get_num_threads()),
        "torch": versions["torch"],
        "transformers": versions["transformers"],
        "MRN Lab": versions["mrnlab"],
    }


def data_of(run: TrainingRun) -> dict[str, str | int]:
    """Counts and hashes of what a run reads, by their names in messages."""
    data: dict[str, str | int] = {
        "the description": _hash(run.config.with_(device="auto").to_json().encode()),
        "the encoder": _hash(b"".join(_encoder_parts(run))),
    }
    for name, split in run.splits.items():
        data[f"{_NUMBER}{name} sentences"] = len(split.sentences)
        data[f"the text of {name}"] = split.key
        data[f"the labels of {name}"] = _hash(split.labels.tobytes())
    for task in run.facts.tasks:
        data[f"the set of labels of {task.name}"] = _hash("\n".join(task.labels).encode())
    return data


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def changed_data(folder: Path, run: TrainingRun) -> list[str]:
    """The parts of what a run reads that are not what they were at that state; empty where it does not say.

    A number is written: `the number of train sentences: 40, now 36`.
    """
    before = json.loads((folder / _REST).read_text(encoding="utf-8")).get("data", {})
    now = data_of(run)
    changed = [name for name in {**before, **now} if before and before.get(name) != now.get(name)]
    return [
        f"{name}: {before.get(name, 0):,}, now {now.get(name, 0):,}" if name.startswith(_NUMBER) else name
        for name in changed
    ]


def _identity(run: TrainingRun) -> str:
    """Hash of description (device excluded) and data. A saved state resumes only if its hash matches."""
    digest = hashlib.sha256(run.config.with_(device="auto").to_json().encode())
    for part in _encoder_parts(run):
        digest.update(part)
    for name, split in run.splits.items():
        digest.update(f"{name} {split.key} ".encode())
        digest.update(split.labels.tobytes())
    return digest.hexdigest()


def _encoder_parts(run: TrainingRun) -> Iterator[bytes]:
    """What a run begins from that is in no state of it."""
    yield run.encoder_fingerprint.encode()
    for part in run.model.modules():
        if isinstance(part, TrainedRows):  # the other rows are not in the state, but in the encoder's files
            yield part.pretrained[part.index < len(part.rows)].cpu().numpy().tobytes()
    if run.base_heads is not None:
        yield torch.cat(list(run.base_heads.heads)).numpy().tobytes()


@dataclass(frozen=True)
class _Best:
    """The best model so far, kept in memory; `written` once it is on the disk too."""

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
        self._no_room_noted = False
        self._best: _Best | None = None

    @cached_property
    def _data(self) -> dict[str, str | int]:
        return data_of(self._run)  # tens of megabytes are hashed: once, not at every save

    def begin(self) -> Progress:
        """Resume from the newest whole state, else start from the beginning. A note says which.

        Raises DataChanged where the run's data or description are not those of the state.
        """
        try:
            folder = self._checkpoint.resume(_identity(self._run), self._note)
        except DataChanged as error:
            raise DataChanged(error.state, changed_data(error.state, self._run)) from None
        if folder is None:
            if self._checkpoint.resumes:
                self._note("There is no training state to resume from: it starts from its beginning.")
            return Progress(learns_relations=self._run.prior.relations() is not None)
        progress = read_state(folder, self._run)
        self._saved_step = progress.step
        self._note(f"Resumed from step {progress.step:,}.")
        if changes := changed_conditions(folder, self._run):
            self._note(
                f"It was begun under other conditions ({'; '.join(changes)}), so its numbers may differ in "
                "their last digits from those of a run that was never interrupted."
            )
        return progress

    def _note(self, message: str) -> None:
        self._sink(Note(message))

    def save(self, progress: Progress, log: StepLog) -> None:
        """Save the current state. A full disk is noted once, and does not end the training.

        Raises NoRoom where there is none for the best model, which a state must have beside it.
        """
        log.flush()
        if progress.step == self._saved_step:
            return
        progress.seconds = log.seconds
        began = time.monotonic()
        self._settle_best()  # the state names it
        try:
            size = self._checkpoint.save_state(progress.step, *state_writer(self._run, progress, self._data))
        except NoRoom as error:
            if not self._no_room_noted:
                self._note(
                    f"The training state of step {progress.step:,} could not be saved. {error} The training "
                    "goes on, and it is tried again."
                )
            self._no_room_noted = True
            return
        self._no_room_noted = False
        self._saved_step = progress.step
        epoch = progress.step / self._run.facts.steps_per_epoch
        self._sink(Saved(progress.step, epoch, time.monotonic() - began, size))

    def save_best(self, progress: Progress) -> None:
        """Keep the current model as the best so far. Raises NoRoom.

        Models over word vectors, and what is trained of a transformer that is not trained in full, are mostly
        small: they wait in memory until a state or the end of the training needs them on the disk, since the
        next epoch may do better.
        """
        model, epoch, size = self._run.model, len(progress.history), model_io.saved_bytes(self._run.model)
        config = self._run.config
        is_light = config.encoder_training != FULL or reads_words(config.encoder)
        if not is_light or size > _MOST_IN_MEMORY:
            self._write_best(epoch, progress.step, size)
            return
        weights = {name: value.to("cpu", copy=True) for name, value in model_io.own_weights(model).items()}
        self._best = _Best(epoch, progress.step, size, weights)

    def restore_best(self, progress: Progress, epoch: int) -> None:
        """Put the weights of the best epoch back into the model, and have them on the disk. Raises NoRoom."""
        self._settle_best()
        if epoch == len(progress.history):
            return  # they are those of the last step
        if self._best is not None:
            model_io.restore_own(self._run.model, self._best.weights)
        else:
            model_io.restore(self._checkpoint.best, self._run.model, self._run.base_heads)

    def _settle_best(self) -> None:
        """Return once the best model so far is on the disk. Raises NoRoom."""
        if (best := self._best) is not None and not best.written:
            self._write_best(best.epoch, best.step, best.size, best.weights)
            self._best = replace(best, written=True)

    def _write_best(
        self, epoch: int, step: int, size: int, weights: Mapping[str, Tensor] | None = None
    ) -> None:
        run = self._run

        def write(folder: Path) -> None:
            tasks = run.facts.tasks
            if run.base_heads is not None:
                tasks = tuple(replace(task, name=run.facts.related[-1]) for task in tasks)
            model_io.save(folder, run.config, tasks, run.tokenizer, run.model, weights, run.base_heads)

        try:
            self._checkpoint.save_best(step, size, write)
        except NoRoom as error:
            what = f"The model of epoch {epoch}, the best so far,"
            raise NoRoom(error.folder, error.needs, error.free, what) from error
