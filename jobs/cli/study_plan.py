"""What `mrnlab study NAME --dry-run` prints: every run with all its fields, and how long they take."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from core.config import RunConfig, applicable_fields
from core.store import Run
from core.studies import Study
from core.studies.plan import Planned
from jobs.cli.output import print_table, say, tell
from jobs.study_runs import Outstanding
from jobs.wording import seconds_told

__all__ = ["plan_document", "print_plan"]

_WIDTH = 110
_OPEN = "chosen on dev"

Listed = Sequence[tuple[Planned, Run | None]]


def print_plan(study: Study, listing: Listed, plan: Sequence[Outstanding]) -> None:
    """Setting by setting the fields that all runs share and a line per run, then what is still to be run."""
    titles = {setting.name: setting.title for setting in study.settings}
    for name, group in groupby(listing, key=lambda one: one[0].setting):
        runs = list(group)
        tell(f"{name}: {titles[name]}")
        _print_runs(study, runs)
        tell()
    if study.protocol:
        tell(textwrap.fill(study.protocol, _WIDTH) + "\n")
    rows = [(one.setting, one.search, one.final, _time(one.seconds)) for one in plan]
    total = ("all", _sum(plan, "search"), _sum(plan, "final"), _time(_seconds(plan)))
    print_table(("setting", "search runs", "final runs", "time"), [*rows, total])
    for problem in dict.fromkeys(one.problem for one in plan if one.problem):
        say(problem)


def plan_document(listing: Listed, plan: Sequence[Outstanding]) -> dict[str, Any]:
    """The same as one document. A field that dev has yet to choose is null and stands in `chosen_on_dev`."""
    return {
        "settings": [dataclasses.asdict(one) for one in plan],
        "search": _sum(plan, "search"),
        "final": _sum(plan, "final"),
        "seconds": _seconds(plan),
        "runs": [
            {
                "setting": one.setting,
                "family": one.family,
                "stage": one.stage,
                "run": None if run is None else run.id,
                "state": None if run is None else str(run.state),
                "chosen_on_dev": list(one.open),
                "config": _fields(one.run) | dict.fromkeys(one.open),
            }
            for one, run in listing
        ],
    }


def _print_runs(study: Study, runs: Listed) -> None:
    fields = [_fields(one.run) for one, _ in runs]
    values: dict[str, set[str]] = {}
    for found in fields:
        for name, value in found.items():
            values.setdefault(name, set()).add(_text(value))
    common = {name: found.pop() for name, found in values.items() if len(found) == 1}
    everywhere = [name for name in common if all(name in found for found in fields)]
    _print_fields("every run", {name: common[name] for name in everywhere})
    _print_fields("where it applies", {name: common[name] for name in common if name not in everywhere})
    varying = [name for name in values if name not in common]
    print_table(
        ("family", "stage", *varying, "state"),
        [
            (
                study.family(one.family).title,
                one.stage,
                *(
                    _OPEN if name in one.open else _text(found[name]) if name in found else ""
                    for name in varying
                ),
                "to run" if run is None else f"{run.state} (run {run.id})",
            )
            for (one, run), found in zip(runs, fields, strict=True)
        ],
    )


def _print_fields(head: str, values: Mapping[str, str]) -> None:
    text = ", ".join(f"{name}={value}" for name, value in values.items())
    if text:
        tell(textwrap.fill(f"{head}: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    "))


def _fields(run: RunConfig) -> dict[str, Any]:
    """The fields that this run has, by their public names."""
    applicable = applicable_fields(run.paradigm, run.encoder, run.encoder_training, run.prior)
    return {name: value for name, value in run.values().items() if name in applicable}


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return "+".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unset"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sum(plan: Sequence[Outstanding], stage: str) -> int:
    return sum(getattr(one, stage) for one in plan)


def _seconds(plan: Sequence[Outstanding]) -> float | None:
    known = [one.seconds for one in plan if one.seconds is not None]
    return sum(known) if len(known) == len(plan) else None


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"about {seconds_told(seconds)}"
