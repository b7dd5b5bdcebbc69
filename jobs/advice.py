"""What to do about a run that did not end well: the likely cause, and the next steps, best first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.store import Run, RunState

__all__ = ["Advice", "advice"]


@dataclass(frozen=True)
class Advice:
    """Plain text. `happened` is what the run tells of its end, `cause` the likely reason in a word or two,
    `steps` what to do.
    """

    happened: str
    cause: str
    steps: tuple[str, ...]


def advice(run: Run) -> Advice | None:
    """What to do next about this run; None where it goes on or has ended well."""
    kept = f" Its last checkpoint is at step {run.step:,}." if run.checkpoint and run.step else ""
    if run.state is RunState.CANCELLED:
        at = f"at step {run.step:,}" if run.step else "before it began"
        return Advice(f"It was stopped {at}.{kept}", "stopped", ("Resume or retry it to have its scores.",))
    if run.state not in (RunState.FAILED, RunState.LOST):
        return None
    error = run.error
    happened = "The worker ended without saying why." if error is None else error.message
    if run.state is RunState.LOST:
        return Advice(happened + kept, "its worker was ended from outside", _killed(run))
    told = "" if error is None else f"{error.type}: {error.message}"
    for pattern, cause, steps in _CAUSES:
        if re.search(pattern, told, re.IGNORECASE):
            return Advice(happened + kept, cause, steps(run))
    return Advice(
        happened + kept,
        "unexpected",
        ("Read the end of the log below.", "Mend the cause, then retry the run."),
    )


def _no_memory(run: Run) -> tuple[str, ...]:
    config = run.config
    steps = []
    if config.batch_size > 1:
        steps.append(f"Clone it with batch_size {max(1, config.batch_size // 2)} (now {config.batch_size}).")
    if config.max_length > 64:
        steps.append(f"Or with max_length {config.max_length // 2} (now {config.max_length}).")
    if config.encoder_training == "full":
        steps.append("Or with encoder_training frozen, which keeps no gradients of the encoder.")
    return (*steps, "If other programs fill the memory, end them and retry.")


def _no_number(run: Run) -> tuple[str, ...]:
    config = run.config
    rates = {"lr_heads": config.lr_heads, "lr_encoder": config.lr_encoder}
    lower = " and ".join(f"{name} {rate / 3:.2g} (now {rate:.2g})" for name, rate in rates.items() if rate)
    steps = [f"Clone it with lower rates: {lower}." if lower else "Clone it with lower learning rates."]
    if config.paradigm == "mrn" and config.lambda_ is not None:
        steps.append(f"Or with a weaker prior: lambda {config.lambda_ / 10:.2g} (now {config.lambda_:g}).")
    if run.facts.get("precision", config.precision) != "fp32":
        steps.append("Or with precision fp32.")
    return (*steps, "Curves shows at which step the loss left its course.")


def _no_corpus(run: Run) -> tuple[str, ...]:
    return (
        f"Check that the corpus {run.config.corpus} is where this machine can read it; `mrnlab doctor` tells "
        "which corpora it finds.",
        "Once it is there, retry the run.",
    )


def _no_encoder(run: Run) -> tuple[str, ...]:
    return (
        f"Check the name {run.config.encoder}; a Hub name needs the network once, a folder must be here.",
        "Or clone it with encoder minilm, which is always here. Then retry.",
    )


def _no_room(_run: Run) -> tuple[str, ...]:
    return ("Make room on the disk: delete runs or their checkpoints that you no longer need.", "Then retry.")


def _wrong_description(_run: Run) -> tuple[str, ...]:
    return ("Clone it into the form and change the field that is named; retrying would fail again.",)


def _killed(run: Run) -> tuple[str, ...]:
    return (
        "Resume or retry it: the run itself gave no reason to fail.",
        "If it happens again, the machine may be short of memory, and its system then kills the largest "
        f"process: clone it with a batch_size under {run.config.batch_size}.",
    )


# What the error's type and message say, the cause in words, the steps; the first that fits counts.
_CAUSES = (
    (r"out ?of ?memory|MemoryError|can't allocate memory", "out of memory", _no_memory),
    (r"not a number|not finite|\bnan\b", "the loss is not a number", _no_number),
    (r"^CorpusError", "the corpus cannot be read", _no_corpus),
    (r"^EncoderError", "the encoder cannot be loaded", _no_encoder),
    (r"no space left|disk quota", "the disk is full", _no_room),
    (r"^ConfigError", "the description does not hold", _wrong_description),
    (r"exit code -9|was killed|SIGKILL", "its worker was ended from outside", _killed),
)
