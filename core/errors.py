"""The errors a user can cause. Each carries one sentence: what was wrong, where, and what to do."""

from __future__ import annotations


class MRNLabError(Exception):
    """Base of every error whose message is meant for the researcher as it stands."""


class ConfigError(MRNLabError):
    """A run description that contradicts itself. `field` is the field to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class CorpusError(MRNLabError):
    """A corpus that cannot be found or read; the message names file, line and what was expected."""


class EncoderError(MRNLabError):
    """An encoder that cannot be found or loaded here."""


class RunNotFound(MRNLabError):
    """No run has the number that was asked for."""


class TrainingError(MRNLabError):
    """Training cannot go on (a loss that is not a number, say); the message names step and task."""


class DeviceError(TrainingError):
    """A device that this machine does not have. `device` is its name, `gpus` how many GPUs there are."""

    def __init__(self, device: str, gpus: int) -> None:
        there = "no GPU" if gpus == 0 else "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        super().__init__(f"device: {device} is not on this machine, which has {there} that CUDA can use.")
        self.device = device
        self.gpus = gpus


class OutOfMemory(TrainingError):
    """A training step that found no memory; the message names the batch size that would."""


class StoreError(MRNLabError):
    """The store cannot be opened, read or written; the message says which store and what to do."""


class ArtefactError(MRNLabError):
    """The shared artefacts cannot be reached, read or written; the message says where they are looked for."""


class StoreReplaced(StoreError):
    """Another file has taken the place of the store's while it was open; trying again is in vain."""


class IllegalMove(MRNLabError):
    """A change of state that a run's life does not have (a finished run stopped, say)."""


class NotOwner(MRNLabError):
    """A worker wrote to a run that is no longer its own (it was lost, stopped or started again)."""
