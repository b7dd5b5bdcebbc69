"""The form as a command: `mrnlab launch` with the options that make the same runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from core.config import RunConfig
from core.lists import seeds_typed
from dashboard.launch.draft import Draft, lists_of, values_of
from dashboard.launch.start import EXECUTION, NEEDED, START, option_of

__all__ = ["command"]

# What `mrnlab launch` takes when nothing is said: but for the data, the same as the defaults of a run.
_UNSAID = {**START, "encoder_training": ("full",), "seed": "1"}


def command(draft: Draft, runs: Sequence[RunConfig], placed: Sequence[RunConfig], *, reuse: bool) -> str:
    """The command that makes the runs of this form, one option a line.

    `runs` are those of the form, `placed` the same as they are queued: by their paths the command means the
    same in any folder.
    """
    whole = {
        (name, getattr(one, name)): getattr(other, name)
        for one, other in zip(runs, placed, strict=True)
        for name in ("corpus", "encoder", "alignment")
    }
    told = [("--corpus", whole["corpus", draft.corpus])]
    if draft.columns is not None:
        told.append(("--columns", ",".join(draft.columns)))
    told.append(("--tasks", ",".join(draft.tasks)))
    for name, values in lists_of(draft).items():
        if values != values_of(name, _UNSAID[name]):
            told.append(_option(name, [whole.get((name, value), value) for value in values]))
    if draft.learn:
        told.append(("--set", f"learn={','.join(draft.learn)}"))
    told += [(f"--{name}", str(number)) for name in EXECUTION if (number := getattr(draft, name))]
    options = [f"{option} {shlex.quote(value)}" for option, value in told]
    return " \\\n  ".join(["mrnlab launch", *options, *(["--reuse"] if reuse else [])])


def _option(name: str, values: Sequence[Any]) -> tuple[str, str]:
    if name == "seed" and values != [0]:
        return "--seeds", seeds_typed(values).replace(", ", ",")
    text = ",".join(map(option_of, values))
    if (name in NEEDED and name != "seed") or name == "lambda":
        return f"--{name.replace('_', '-')}", text
    return "--set", f"{name}={text}"
