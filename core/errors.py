"""The errors that a user can cause.

Each has one sentence on which a person acts: the fault, its location, and the remedy. Those on which a
program acts also have fields, for no program reads a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from core.plain_text import message_text, shortened

if TYPE_CHECKING:
    from pydantic import ValidationError


class MRNLabError(Exception):
    """The base of all errors with a message for the researcher.

    `data` are the values in the message that programs need; they are stored with a run that fails of it.
    """

    data: Mapping[str, int | float | str] = MappingProxyType({})

    def __init__(self, message: str) -> None:
        super().__init__(message_text(message))


FIELD = "{field}"
"""The placeholder of the field's name in the message of a ConfigError."""


class ConfigError(MRNLabError):
    """A run description that contradicts itself. `field` is the field to change.

    The message has FIELD where the field is named: `str(error)` writes its public name, `sentence` what a
    page calls it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message.replace(FIELD, shortened(field)))
        self.field = field
        self._message = message

    def sentence(self, label: str) -> str:
        """The message with this name of the field."""
        return message_text(self._message.replace(FIELD, label))


class NothingToLearn(ConfigError):
    """A run of these tasks has no weight to train."""

    def __init__(self, tasks: Sequence[str]) -> None:
        names = ", ".join(tasks)
        super().__init__(
            "encoder_training",
            f"{FIELD}: a run of {names} has nothing to learn over a frozen encoder. The similarity of two "
            "texts that are read apart is the cosine of their vectors, which has no weights. Set "
            "encoder_training to full, or pair_encoding to together.",
        )
        self.data = {"tasks": names}


class CorpusError(MRNLabError):
    """A corpus that cannot be found or read; the message has the file, the line and the expected content.

    `source` and `line` are the file and the line that a reader refuses, with which the message then begins;
    elsewhere they are None.
    """

    def __init__(self, problem: str, source: object = None, line: int | None = None) -> None:
        super().__init__(problem if line is None else f"{source}, line {line}: {problem}")
        self.source, self.line = None if source is None else str(source), line


class EncoderError(MRNLabError):
    """An encoder that cannot be found or loaded here."""


class RunNotFound(MRNLabError):
    """No run has the number `run_id`."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"There is no run {run_id}; `mrnlab runs` lists those there are.")
        self.run_id = run_id


class TrainingError(MRNLabError):
    """Training cannot go on (a loss that is not a number, say); the message names step and task."""


class NotFinite(TrainingError):
    """A loss that is not a number.

    `step`, `task` (empty for all together) and `value` say which; without a step no epoch could be scored.
    """

    def __init__(self, message: str, step: int | None = None, task: str = "", value: float = nan) -> None:
        super().__init__(message)
        self.step, self.task, self.value = step, task, value


class DataChanged(TrainingError):
    """The data or the description of a run differ from its saved training state, which lies in `state`.

    `changes` are the parts that differ, in words, where they are known.
    """

    def __init__(self, state: Path, changes: Sequence[str] = ()) -> None:
        named = f": {'; '.join(changes)}" if changes else ""
        super().__init__(
            f"The data or the description of this run is not what it was when it was begun{named}. Retry it, "
            "to train it from its beginning."
        )
        self.state = state
        self.changes = tuple(changes)


class DeviceError(TrainingError):
    """A device that this machine does not have. `device` is its name, `gpus` how many GPUs there are."""

    def __init__(self, device: str, gpus: int) -> None:
        gpus_here = "no GPU" if gpus == 0 else "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        super().__init__(f"device: {device} is not on this machine, which has {gpus_here} that CUDA can use.")
        self.device = device
        self.gpus = gpus


class OutOfMemory(TrainingError):
    """A training step ran out of memory.

    `fits` is the largest batch that would have fitted, None where not even a single sentence would; `field`
    is the field that sets it.
    """

    def __init__(self, message: str, field: str = "batch_size", fits: int | None = None) -> None:
        super().__init__(message)
        self.field, self.fits = field, fits
        self.data = {} if fits is None else {"field": field, "fits": fits}


class NoRoom(MRNLabError):
    """Files do not fit on their disk: `needs` bytes in `folder`, where `free` bytes are free.

    `what` could not be saved, as the subject of a sentence; None where the caller says so.
    """

    def __init__(self, folder: Path, needs: int, free: int, what: str | None = None) -> None:
        message = (
            f"There is no space left for it: it needs {needs / 1e6:,.1f} MB in {folder}, where "
            f"{free / 1e6:,.1f} MB are free."
        )
        if what is not None:
            message = f"{what} could not be saved. {message} Make room there, then resume or retry the run."
        super().__init__(message)
        self.folder, self.needs, self.free = folder, needs, free


class LossCause(StrEnum):
    """Why a run was lost. The value is stored as the type of its error."""

    PROCESS_ENDED = "WorkerLost"  # the exit code says how; a signal's is minus its number
    FORCED = "WorkerForced"  # told to end twice
    HUNG = "WorkerHung"
    SILENT = "WorkerSilent"  # on another machine
    RESTARTED = "MachineRestarted"
    MACHINE_LOST = "MachineLost"
    JOB_ENDED = "JobEnded"  # by the scheduler that placed it


class WorkerLost(MRNLabError):
    """A worker that ended, or was given up, before its run. `exit_code` is its process's, where known."""

    def __init__(self, cause: LossCause, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.cause, self.exit_code = cause, exit_code


class StoreError(MRNLabError):
    """The store cannot be opened, read or written; the message has the store and the remedy."""


class StoreFull(StoreError):
    """The disk of the store is full."""


class StoreBusy(StoreError):
    """Another program has locked the store for longer than it is waited for."""


class StoreUnreachable(StoreError):
    """The store's server does not answer, or the connection to it broke."""


class ArtefactError(MRNLabError):
    """The shared artefacts cannot be reached, read or written; the message has their URL."""


class StoreReplaced(StoreError):
    """The store's file or its tables were deleted or replaced while it was open."""


class IllegalMove(MRNLabError):
    """A move that a run's `state` does not allow: to become `act`, a state, or an act of _REFUSED."""

    _REFUSED: ClassVar = {
        "stop": "has already ended ({state}); there is nothing to stop",
        "delete": "is being trained; stop it before deleting it",
        "archive": "is {state}; only runs that have ended are archived",
        "resume": "has {state} and has saved no training state; retry it once the cause is removed",
        "restart": "cannot start again: it {is_state}",
    }

    def __init__(self, run_id: int, state: str, act: str) -> None:
        sentence = self._REFUSED.get(act, "{is_state}; it cannot become {act}")
        is_state = "has succeeded" if state == "succeeded" else f"is {state}"
        super().__init__(f"Run {run_id} {sentence.format(state=state, is_state=is_state, act=act)}.")
        self.run_id, self.state, self.act = run_id, state, act


class NotOwner(MRNLabError):
    """A worker wrote to a run that is no longer its own (it was lost, stopped or started again)."""

    def __init__(self, run_id: int, state: str, pid: int, host: str) -> None:
        super().__init__(f"Run {run_id} is {state} and no longer belongs to process {pid} on {host}.")
        self.run_id, self.state, self.pid, self.host = run_id, state, pid, host


_WRONG = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "json_invalid": "is not JSON",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": "must be text",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "int_parsing_size": "has too many digits",
    "finite_number": "must be a finite number",
    "timezone_naive": "must have a time zone",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "dataclass_type"), "must have named values"),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), "must be a date and a time"
    ),
    "value_error": "is refused ({error})",
}


def first_problem(error: ValidationError) -> str:
    """The first wrong value's path in the data, and its fault: `workers must be a number, not 'two'`."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "it"
    what = _WRONG.get(first["type"], "must be of another kind").format(**first.get("ctx", {}))
    given = f", not {shortened(repr(first['input']))}" if what.startswith("must") else ""
    return f"{shortened(where)} {what}{given}"
