"""mrnlab study: lists the studies, runs one to its end, or reports what the store knows of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from core.errors import ConfigError
from core.studies import STUDIES, Setting, Study, load_study
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import hand_out, print_json, print_table, say
from jobs.cli.study_report import document, markdown, table
from jobs.studies import follow
from jobs.study_runs import Outstanding, StudyRuns, laid_out, outstanding
from jobs.wording import seconds_told

__all__ = ["study"]


_MOST_SEEDS = 1000


class _Report(StrEnum):
    """How the report is written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


@app.command()
def study(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="Its name (default: list all).")] = None,
    part: Annotated[str | None, typer.Option(help="Only the settings of this part.")] = None,
    setting: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these settings, in this order.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many seeds (default: the study's own).",
            parser=whole("--seeds", 1, _MOST_SEEDS),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what is still to be run, and run nothing.")
    ] = False,
    report: Annotated[
        _Report | None, typer.Option(help="Run nothing; print what the finished runs say.")
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Run a study to its end, or go on with it, and print what it says.

    Of each method every candidate is trained with few seeds, and the one that the development sentences
    choose with all. Runs that are in the store already count. Ctrl-C or a kill loses nothing: the same
    command goes on.
    """
    if name is None:
        _list(json_=json_)
        return
    chosen = load_study(name)
    if seeds is not None:
        chosen = chosen.with_seeds(seeds)
    layouts = laid_out(chosen, _settings(chosen, part, setting))
    with opened_store(ctx) as store:
        if dry_run:
            _print_plan(outstanding(store, layouts), json_=json_)
            return
        well = True
        if report is None:
            try:
                well = follow(store, layouts, say)
            except KeyboardInterrupt:
                say("What is queued goes on in the background; the same command goes on with the study.")
                raise typer.Exit(130) from None
        found = StudyRuns(store, layouts).results()
    if json_ or report is _Report.JSON:
        print_json(document(chosen, found))
    elif report is _Report.MARKDOWN:
        hand_out(markdown(chosen, found) + "\n")
    else:
        table(found)
    if not well:
        raise typer.Exit(1)


def _list(*, json_: bool) -> None:
    if json_:
        print_json([{"name": name, "question": asks} for name, asks in STUDIES.items()])
        return
    print_table(("study", "asks"), STUDIES.items())


def _settings(study: Study, part: str | None, names: str | None) -> Sequence[Setting]:
    """The settings asked for in that order, else all. Raises ConfigError for an unknown name."""
    if part is not None and part not in study.parts():
        raise ConfigError("part", f"--part: '{part}' is not one of {', '.join(study.parts())}.")
    known = {one.name: one for one in study.settings if part in (None, one.part)}
    if names is None:
        return list(known.values())
    wanted = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if not wanted:
        raise ConfigError("setting", f"--setting: the list is empty; settings are {', '.join(known)}.")
    for name in wanted:
        if name not in known:
            raise ConfigError("setting", f"--setting: '{name}' is not one of {', '.join(known)}.")
    return [known[name] for name in wanted]


def _print_plan(plan: Sequence[Outstanding], *, json_: bool) -> None:
    known = [one.seconds for one in plan if one.seconds is not None]
    seconds = sum(known) if len(known) == len(plan) else None
    search, final = sum(one.search for one in plan), sum(one.final for one in plan)
    if json_:
        settings = [dataclasses.asdict(one) for one in plan]
        print_json({"settings": settings, "search": search, "final": final, "seconds": seconds})
        return
    rows = [(one.setting, one.search, one.final, _time(one.seconds)) for one in plan]
    total = ("all", search, final, _time(seconds))
    print_table(("setting", "search runs", "final runs", "time"), [*rows, total])
    for problem in dict.fromkeys(one.problem for one in plan if one.problem):
        say(problem)


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"about {seconds_told(seconds)}"
