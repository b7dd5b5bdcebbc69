"""Advice on a run that did not end well: the likely cause, and the next steps, best first.

After a kill, a full disk or a lost machine the first step is to resume the run, where a state is saved. Where
the run itself is the cause, it would fail again: the first step is a changed clone.

The cause is found by the type and the fields of the stored error (of `core.errors`, Python or torch), not by
its sentence. An unknown type gets the general advice of the run's state.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core.errors import LossCause
from core.registry import FROZEN
from core.store import Run, RunEvent, RunState, RunWithFacts
from core.wording import capitalised, number


@dataclass(frozen=True)
class Advice:
    """Advice on a run, in plain text.

    `happened` is how the run ended, `cause` the likely reason, `steps` the next steps. `clone` has the fields
    that a clone should change, as typed text. `word` replaces the word of the run's state where it says more.
    """

    happened: str
    cause: str
    steps: tuple[str, ...]
    clone: Mapping[str, str] = field(default_factory=dict)
    word: str = ""


def advice(run: RunWithFacts, history: Sequence[RunEvent] = ()) -> Advice | None:
    """Advice on the next steps for this run; None where it goes on or has succeeded.

    `history` are its events: a warning about its last attempt is part of `happened`.
    """
    if run.state not in _GENERAL:
        return None
    cause = _cause(run)
    happened = _happened(run, history)
    if run.saved_step and (run.error is None or run.error.type not in _SAYS_STEP):
        happened = f"{happened} Its state is saved at step {run.saved_step:,}."
    before, clone = cause.change(run)
    name, size = _batch(run)
    smaller = f" with a {name} under {size}" if size > 1 else ""
    again = (
        f"resume it: it goes on from step {run.saved_step:,}."
        if run.saved_step
        else "retry it: it starts from its beginning, since no state of it was saved yet."
    )
    steps = [*before, *(step.format(again=again, smaller=smaller, config=run.config) for step in cause.steps)]
    steps = [capitalised(step) for step in steps]
    return Advice(happened, cause.name, tuple(steps), clone, cause.word)


def _happened(run: Run, history: Sequence[RunEvent]) -> str:
    if run.state is not RunState.CANCELLED:
        return "The worker ended without saying why." if run.error is None else run.error.message
    stopped = f"It was stopped {f'at step {run.step:,}' if run.step else 'before it began'}."
    if run.error is not None:
        return f"{stopped} {run.error.message}"
    for event in reversed(history):
        if event.kind == "warning":
            return f"{stopped} {event.message}"
        if event.kind == RunState.RUNNING:
            break
    return stopped


class _Cause(NamedTuple):
    """A cause and its steps.

    `{again}` in a step is how to go on with the run. `change` returns the steps that come first, and the
    fields of a clone that they name.
    """

    name: str
    steps: tuple[str, ...]
    word: str = ""
    change: Callable[[RunWithFacts], tuple[Sequence[str], Mapping[str, str]]] = lambda _run: ((), {})


def _cause(run: RunWithFacts) -> _Cause:
    general = _GENERAL[run.state]
    if run.error is None:
        return general
    if run.error.type == LossCause.PROCESS_ENDED and run.error.exit_code is not None:
        return _SIGNALS.get(-run.error.exit_code, general)
    if run.error.type == "OSError":
        return _NO_ROOM if _error_data(run).get("errno") in (errno.ENOSPC, errno.EDQUOT) else general
    if run.error.type == "TrainingError" and not run.facts:  # the type in old stores
        return _NOTHING_TO_LEARN
    return _CAUSES.get(run.error.type, general)


def _error_data(run: RunWithFacts) -> Mapping[str, Any]:
    """The stored fields of the error; empty where there are none."""
    return run.facts.error if run.facts else {}


def _batch(run: Run) -> tuple[str, int]:
    """The field that bounds a batch, and its value."""
    if run.config.batch_tokens is not None:
        return "batch_tokens", run.config.batch_tokens
    return "batch_size", run.config.batch_size


def _smaller_batch(run: RunWithFacts) -> tuple[Sequence[str], Mapping[str, str]]:
    """The steps and fields of a clone with the largest batch known to fit, else half the batch."""
    config = run.config
    name, now = _batch(run)
    size = int(_error_data(run).get("fits", max(1, now // 2)))
    clone = {name: str(size)} if size < now else {}
    steps = [f"Clone it with {name} {size} (now {now})."] if clone else []
    if config.max_length > 64:
        steps.append(f"Or with max_length {config.max_length // 2} (now {config.max_length}).")
    if config.encoder_training != FROZEN:
        steps.append("Or with encoder_training frozen, which keeps no gradients of the encoder.")
    return steps, clone


def _lower_rates(run: RunWithFacts) -> tuple[Sequence[str], Mapping[str, str]]:
    config = run.config
    rates = {"lr_heads": config.lr_heads, "lr_encoder": config.lr_encoder}
    lower = {name: number(float(f"{rate / 3:.2g}")) for name, rate in rates.items() if rate}
    texts = [f"{name} {value} (now {number(rates[name])})" for name, value in lower.items()]
    steps = [
        f"Clone it with lower rates: {' and '.join(texts)}."
        if lower
        else "Clone it with lower learning rates."
    ]
    if config.paradigm == "mrn" and config.lambda_ is not None:
        steps.append(f"Or with a weaker prior: lambda {config.lambda_ / 10:.2g} (now {config.lambda_:g}).")
    if (run.facts.precision if run.facts else config.precision) != "fp32":
        steps.append("Or with precision fp32.")
    return steps, lower


# fmt: off
_NO_MEMORY = _Cause(
    "out of memory", ("if other programs filled the memory, end them and {again}",), change=_smaller_batch
)
_NO_ROOM = _Cause("the disk is full", (
    "Make room on the disk: delete runs, or files that you no longer need.",
    "then {again}",
))
_KILLED = _Cause("the worker process was killed", (
    "{again}",
    "If it happens again, the machine may be short of memory, and its system then kills the largest process: "
    "clone it{smaller}.",
))
_TERMINATED = _Cause("its worker was told to end", (
    "{again}",
    "A shutdown, a logout or Ctrl-C at `mrnlab worker` ends workers; drain a machine before you switch it "
    "off.",
))
_CRASHED = _Cause("its worker crashed", (
    "{again}",
    "If it crashes again, the end of its log below says where.",
))
_NOT_FINITE = _Cause("the loss is not a number", (
    "Curves shows where the loss diverged. Resuming would diverge again.",
), change=_lower_rates)
_NOTHING_TO_LEARN = _Cause("these settings leave nothing to learn", (
    "Clone it into the form and change what the sentence above names; retrying would fail again.",
), "Cannot train")
_NO_DEVICE = _Cause("the machine has no such device", (
    "Clone it with device auto (now {config.device}): it takes a GPU where there is one, else the processor.",
    "or on a machine that has {config.device}, {again}",
), change=lambda _run: ((), {"device": "auto"}))
_CAUSES: Mapping[str, _Cause] = {
    **dict.fromkeys(("OutOfMemory", "OutOfMemoryError", "MemoryError"), _NO_MEMORY),
    **dict.fromkeys(("NoRoom", "StoreFull"), _NO_ROOM),
    "WorkerTerminated": _TERMINATED,
    "NotFinite": _NOT_FINITE,
    "NothingToLearn": _NOTHING_TO_LEARN,
    "DeviceError": _NO_DEVICE,
    "CorpusError": _Cause("the corpus cannot be read", (
        "Check that the corpus {config.corpus} is where this machine can read it; `mrnlab doctor` checks "
        "the data folder.",
        "once it is there, {again}",
    )),
    "EncoderError": _Cause("the encoder cannot be loaded", (
        "Check the name {config.encoder}; a Hub name needs the network once, a folder must be here.",
        "Or clone it with encoder minilm, which is always here.",
        "once the encoder is there, {again}",
    )),
    "DataChanged": _Cause("its data have changed", (
        "Retry it: it starts from its beginning, on the data as they are now.",
        "Or put the data back as they were, and resume it.",
    )),
    "ConfigError": _Cause("the description does not hold", (
        "Clone it into the form and change the field that is named; retrying would fail again.",
    )),
    "ArtefactError": _Cause("the shared files could not be reached", (
        "Check that the folder of shared files can be reached from the machine that trains; `mrnlab doctor` "
        "tests it.",
        "then {again}",
    )),
    "StoreBusy": _Cause("the store was held by another program", (
        "once nothing else holds the store, {again}",
        "A backup, a database browser or a sync program may hold its file: close it, or let it copy what "
        "`mrnlab backup` writes.",
    )),
    "StoreReplaced": _Cause("the store was taken away", (
        "Put back the store's file, or a backup of it.",
        "then {again}",
    )),
    "StoreUnreachable": _Cause("the store could not be reached", (
        "Check that the store's server runs and can be reached from the machine that trains.",
        "then {again}",
    )),
    LossCause.FORCED: _TERMINATED,
    LossCause.HUNG: _Cause("its worker hung", (
        "{again}",
        "If it stands still again, the end of its log below says where; a GPU that no longer answers needs "
        "its machine restarted.",
    )),
    LossCause.RESTARTED: _Cause("its machine was restarted", (
        "{again}",
        "Runs with retries are resumed automatically when their machine restarts.",
    )),
    LossCause.MACHINE_LOST: _Cause("its machine was lost", (
        "{again}",
        "Another machine can resume it if both reach its saved state; drain the lost machine if it comes and "
        "goes.",
    )),
    LossCause.JOB_ENDED: _Cause("its cluster job was ended", (
        "{again}",
        "Most often a job ends at its time limit. Where the rest does not fit into one, ask the cluster for "
        "longer jobs, or clone it with fewer epochs (now {config.epochs}).",
    )),
}
# fmt: on
_SAYS_STEP = ("WorkerTerminated",)
"""The types of errors whose message says from which step the run can be resumed."""
_SIGNALS: Mapping[int, _Cause] = {
    signal.SIGTERM: _TERMINATED,
    signal.SIGINT: _TERMINATED,
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE), _CRASHED),
}
_GENERAL: Mapping[RunState, _Cause] = {
    RunState.FAILED: _Cause("unexpected", ("Read the end of the log below.", "fix the cause, then {again}")),
    RunState.LOST: _KILLED,
    RunState.CANCELLED: _Cause("stopped", ("to have its scores, {again}",)),
}
