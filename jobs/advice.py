"""What to do about a run that did not end well: the likely cause, and the next steps, best first.

What ended it from outside (a kill, a full disk, a lost machine) says nothing against the run: there Resume
comes first, wherever a state of it is saved. What lies in the run itself would only happen again: there a
changed clone comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from core.store import Run, RunEvent, RunState
from core.wording import number


@dataclass(frozen=True)
class Advice:
    """Plain text. `happened` is what the run tells of its end, `cause` the likely reason in a word or two,
    `steps` what to do. `clone` has the fields, as one types them, that a clone should have otherwise.
    """

    happened: str
    cause: str
    steps: tuple[str, ...]
    clone: Mapping[str, str] = field(default_factory=dict)


def advice(run: Run, history: Sequence[RunEvent] = ()) -> Advice | None:
    """What to do next about this run; None where it goes on or has ended well.

    `history` are its events: a run that was stopped by something else than its researcher says so there.
    """
    if run.state not in _OTHERWISE:
        return None
    happened = _happened(run)
    told = f"{run.error.type}: {run.error.message}" if run.error else ""
    if run.state is RunState.CANCELLED and (noted := _last_note(history)):
        happened, told = f"{happened} {noted}", noted
    if run.saved_step and f"step {run.saved_step:,}." not in told:
        happened = f"{happened} Its state is saved at step {run.saved_step:,}."
    for pattern, cause, steps in _CAUSES:
        if re.search(pattern, told, re.IGNORECASE):
            changes = _CHANGES.get(steps)
            return Advice(happened, cause, steps(run), changes(run) if changes else {})
    cause, steps = _OTHERWISE[run.state]
    return Advice(happened, cause, steps(run))


def _happened(run: Run) -> str:
    if run.state is RunState.CANCELLED:
        return f"It was stopped {f'at step {run.step:,}' if run.step else 'before it began'}."
    return "The worker ended without saying why." if run.error is None else run.error.message


def _last_note(history: Sequence[RunEvent]) -> str:
    """What the worker noted of the last attempt's end, if anything."""
    for event in reversed(history):
        if event.kind in ("note", "warning"):
            return event.message
        if event.kind == RunState.RUNNING:
            break
    return ""


def _again(run: Run, first: str = "") -> str:
    """To go on with it: from where its state is saved, else from its beginning."""
    if run.saved_step:
        what, how = "resume it", f"it goes on from step {run.saved_step:,}"
    else:
        what, how = "retry it", "it starts from its beginning, since no state of it was saved yet"
    sentence = f"{first}{what}: {how}."
    return sentence[0].upper() + sentence[1:]


def _changes(run: Run) -> dict[str, str]:
    """What a clone should have otherwise, where memory was short: a batch that fits."""
    field, now = _batch(run)
    size = _fitting(run)
    return {field: str(size)} if size < now else {}


def _batch(run: Run) -> tuple[str, int]:
    """The field that says how much is read at once, and its value."""
    if run.config.batch_tokens is not None:
        return "batch_tokens", run.config.batch_tokens
    return "batch_size", run.config.batch_size


def _fitting(run: Run) -> int:
    """The size of a batch that the failed step has worked out, else the half."""
    field, now = _batch(run)
    named = re.search(rf"with {field} (\d+)", run.error.message if run.error else "")
    return int(named[1]) if named else max(1, now // 2)


def _no_memory(run: Run) -> tuple[str, ...]:
    config = run.config
    steps = []
    if _changes(run):
        field, now = _batch(run)
        steps.append(f"Clone it with {field} {_fitting(run)} (now {now}).")
    if config.max_length > 64:
        steps.append(f"Or with max_length {config.max_length // 2} (now {config.max_length}).")
    if config.encoder_training == "full":
        steps.append("Or with encoder_training frozen, which keeps no gradients of the encoder.")
    return (*steps, _again(run, "if other programs filled the memory, end them and "))


def _no_number(run: Run) -> tuple[str, ...]:
    config = run.config
    rates = {"lr_heads": config.lr_heads, "lr_encoder": config.lr_encoder}
    lower = " and ".join(
        f"{name} {number(float(f'{rate / 3:.2g}'))} (now {number(rate)})"
        for name, rate in rates.items()
        if rate
    )
    steps = [f"Clone it with lower rates: {lower}." if lower else "Clone it with lower learning rates."]
    if config.paradigm == "mrn" and config.lambda_ is not None:
        steps.append(f"Or with a weaker prior: lambda {config.lambda_ / 10:.2g} (now {config.lambda_:g}).")
    if run.facts.get("precision", config.precision) != "fp32":
        steps.append("Or with precision fp32.")
    return (*steps, "Curves shows at which step the loss left its course; resumed it would do so again.")


def _no_corpus(run: Run) -> tuple[str, ...]:
    return (
        f"Check that the corpus {run.config.corpus} is where this machine can read it; `mrnlab doctor` tells "
        "which corpora it finds.",
        _again(run, "once it is there, "),
    )


def _no_encoder(run: Run) -> tuple[str, ...]:
    return (
        f"Check the name {run.config.encoder}; a Hub name needs the network once, a folder must be here.",
        "Or clone it with encoder minilm, which is always here.",
        _again(run, "once the encoder is there, "),
    )


def _no_device(run: Run) -> tuple[str, ...]:
    return (
        f"Clone it with device auto (now {run.config.device}): it takes a GPU where there is one, else the "
        "processor.",
        _again(run, f"or on a machine that has {run.config.device}, "),
    )


def _no_room(run: Run) -> tuple[str, ...]:
    return (
        "Make room on the disk: delete runs, or files that you no longer need; `mrnlab doctor` says what "
        "takes how much.",
        _again(run, "then "),
    )


def _store_busy(run: Run) -> tuple[str, ...]:
    return (
        _again(run, "once nothing else holds the store, "),
        "A backup, a database browser or a sync program may hold its file: close it, or let it copy what "
        "`mrnlab backup` writes.",
    )


def _store_gone(run: Run) -> tuple[str, ...]:
    return (
        "Put back the store that you want: what it held is saved beside its place, in a file whose name has "
        "`rescued` in it; else a backup.",
        _again(run, "then "),
    )


def _store_away(run: Run) -> tuple[str, ...]:
    return (
        "See that the store's server runs and can be reached from the machine that trains.",
        _again(run, "then "),
    )


def _shared_away(run: Run) -> tuple[str, ...]:
    return (
        "See that the place of shared files can be reached from the machine that trains; `mrnlab doctor` "
        "tries it.",
        _again(run, "then "),
    )


def _other_data(_run: Run) -> tuple[str, ...]:
    return (
        "Retry it: it starts from its beginning, on the data as they are now.",
        "Or put the data back as they were, and resume it.",
    )


def _wrong_description(_run: Run) -> tuple[str, ...]:
    return ("Clone it into the form and change the field that is named; retrying would fail again.",)


def _killed(run: Run) -> tuple[str, ...]:
    field, now = _batch(run)
    smaller = f" with a {field} under {now}" if now > 1 else ""
    return (
        _again(run),
        "If it happens again, the machine may be short of memory, and its system then kills the largest "
        f"process: clone it{smaller}.",
    )


def _crashed(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "If it crashes again, the end of its log below says where.",
    )


def _told_to_end(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "A shutdown, a logout or Ctrl-C at `mrnlab worker` ends workers so; drain a machine before you "
        "switch it off.",
    )


def _hung(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "If it stands still again, the end of its log below says where; a GPU that no longer answers needs "
        "its machine restarted.",
    )


def _restarted(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "Launched with retries, runs are resumed by themselves when their machine restarts.",
    )


def _node_lost(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "Another machine can take it up where both reach its saved state; drain the one that was lost if it "
        "comes and goes.",
    )


def _out_of_time(run: Run) -> tuple[str, ...]:
    return (
        _again(run),
        "Most often a job ends at its time limit. Where the rest does not fit into one, ask the cluster for "
        f"longer jobs, or clone it with fewer epochs (now {run.config.epochs}).",
    )


def _unexpected(run: Run) -> tuple[str, ...]:
    return ("Read the end of the log below.", _again(run, "mend the cause, then "))


def _stopped(run: Run) -> tuple[str, ...]:
    return (_again(run, "to have its scores, "),)


# What the error's type and message (of a stopped run, its last note) say, the cause in words, the steps; the
# first that fits counts.
_CAUSES: tuple[tuple[str, str, Callable[[Run], tuple[str, ...]]], ...] = (
    (r"time ?limit|Slurm job .* has ended|Slurm started", "its cluster job was ended", _out_of_time),
    (r"out[ _]?of[ _]?memory|MemoryError|can't allocate memory", "out of memory", _no_memory),
    (r"not a number|not finite|\bnan\b", "the loss is not a number", _no_number),
    (r"^CorpusError", "the corpus cannot be read", _no_corpus),
    (r"^EncoderError", "the encoder cannot be loaded", _no_encoder),
    (r"^DeviceError", "the machine has no such device", _no_device),
    (r"^NoRoom|no space left|disk quota|disk (of its server )?is full", "the disk is full", _no_room),
    (r"not what it was when it was begun", "its data have changed", _other_data),
    (r"^ArtefactError", "the shared files could not be reached", _shared_away),
    (r"^StoreError.*\b(busy|locked)\b", "the store was held by another program", _store_busy),
    (r"^Store.*(lost its tables|deleted|replaced)", "the store was taken away", _store_gone),
    (r"^StoreError.*(connection|server|reach|answer)", "the store could not be reached", _store_away),
    (r"^ConfigError", "the description does not hold", _wrong_description),
    (r"started anew|restarted|rebooted|\bboot\b|switched off", "its machine was restarted", _restarted),
    (r"stood still|no progress|\bhung\b|\bhangs\b|not got on", "its worker hung", _hung),
    (r"(node|machine) .*\b(lost|gone)\b|taken from its machine", "its machine was lost", _node_lost),
    (r"told to end|SIGTERM|signal 15|SIGINT|Ctrl-C|interrupt", "its worker was told to end", _told_to_end),
    (r"SIG(SEGV|BUS|ABRT|ILL|FPE)", "its worker crashed", _crashed),
    (r"exit code -9|was killed|SIGKILL|signal 9", "its worker was ended from outside", _killed),
)
# The advice that a clone with other values follows, and which values.
_CHANGES: Mapping[Callable[[Run], tuple[str, ...]], Callable[[Run], dict[str, str]]] = {
    _no_memory: _changes,
    _no_device: lambda _: {"device": "auto"},
}
_OTHERWISE: Mapping[RunState, tuple[str, Callable[[Run], tuple[str, ...]]]] = {
    RunState.FAILED: ("unexpected", _unexpected),
    RunState.LOST: ("its worker was ended from outside", _killed),
    RunState.CANCELLED: ("stopped", _stopped),
}
