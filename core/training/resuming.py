"""Saves a training's states and its best model, and takes the newest state up again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from core.checkpoints import Checkpoint, NoRoom
from core.models import checkpoint as models
from core.models.encoders import TrainedRows
from core.training.events import Note, Saved, Sink
from core.training.setup import Setup
from core.training.state import Progress, other_conditions, read_state, state_writer
from core.training.step_log import StepLog

__all__ = ["Resuming"]


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

    def __init__(self, run: Setup, checkpoint: Checkpoint, sink: Sink) -> None:
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


def _identity(run: Setup) -> str:
    """Of a run's description and data: what a state must be of to be taken up. The device may be another."""
    digest = hashlib.sha256(run.config.with_(device="auto").to_json().encode())
    for part in run.model.modules():
        if isinstance(part, TrainedRows):  # the other rows are not in the state, but in the encoder's files
            digest.update(part.pretrained[part.place < len(part.rows)].cpu().numpy().tobytes())
    for name, split in run.splits.items():
        digest.update(f"{name} {split.key} ".encode())
        digest.update(split.labels.tobytes())
    return digest.hexdigest()
