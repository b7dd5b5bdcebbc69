"""mrnlab study: lists the studies, runs one to its end, or reports what the store knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from core.errors import ConfigError
from core.studies import STUDIES, Setting, Study, load_study
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import hand_out, print_json, print_table, say
from jobs.cli.study_plan import plan_document, print_plan
from jobs.cli.study_report import document, markdown, table
from jobs.studies import follow
from jobs.study_runs import StudyRuns, laid_out, listed, outstanding

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
    part: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the settings of these parts.")
    ] = None,
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
    encoder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run it over this encoder (default: the study's own)."),
    ] = None,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Run it over a frozen encoder: in minutes, and not as published.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="List every run with all its fields and what is still to be run; run nothing."
        ),
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
    chosen = load_study(name, encoder, "frozen" if frozen else "full")
    if seeds is not None:
        chosen = chosen.with_seeds(seeds)
    layouts = laid_out(chosen, _settings(chosen, part, setting))
    with opened_store(ctx) as store:
        if dry_run:
            listing, plan = listed(store, layouts), outstanding(store, layouts)
            if json_:
                print_json(plan_document(listing, plan))
            else:
                print_plan(chosen, listing, plan)
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
        table(chosen, found)
    if not well:
        raise typer.Exit(1)


def _list(*, json_: bool) -> None:
    if json_:
        print_json([{"name": name, "question": asks} for name, asks in STUDIES.items()])
        return
    print_table(("study", "asks"), STUDIES.items())


def _settings(study: Study, part: str | None, names: str | None) -> Sequence[Setting]:
    """The settings asked for in that order, else all. Raises ConfigError for an unknown name."""
    parts = study.parts() if part is None else [name.strip() for name in part.split(",") if name.strip()]
    for name in parts:
        if name not in study.parts():
            raise ConfigError("part", f"--part: '{name}' is not one of {', '.join(study.parts())}.")
    known = {one.name: one for one in study.settings if one.part in parts}
    if names is None:
        return list(known.values())
    wanted = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if not wanted:
        raise ConfigError("setting", f"--setting: the list is empty; settings are {', '.join(known)}.")
    for name in wanted:
        if name not in known:
            raise ConfigError("setting", f"--setting: '{name}' is not one of {', '.join(known)}.")
    return [known[name] for name in wanted]
