"""mrnlab study: lists the studies, runs one to its end, or reports its finished runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.config import RunConfig, applicable_fields
from core.errors import ConfigError
from core.paths import given_path
from core.registry import FROZEN, FULL
from core.results.naming import shortest_names
from core.store import Run, Store
from core.studies import STUDIES, Study
from core.studies.study import SettingRuns, StudyRun
from core.wording import duration, plural
from jobs.cli.app import app, opened_store
from jobs.cli.decide import hours_of
from jobs.cli.options import JSON_OPTION, grouped, number_option, one_of
from jobs.cli.output import WIDTH, log, print_json, print_report, print_table, print_text, write_document
from jobs.reports.parts import Part
from jobs.reports.render import csv_files
from jobs.studies.follow import follow
from jobs.studies.progress import SettingCounts, StudyOptions, StudyRuns, counts_by_setting
from jobs.studies.report import curves, report, study_document

if TYPE_CHECKING:
    from jobs.exchange.run_table import RunTable

_MOST_LINES = 40
"""The most lines of a dry run: a terminal shows them at once."""

Listed = Sequence[tuple[StudyRun, Run | None]]


def print_runs(study: Study, listing: Listed) -> None:
    """Prints a line per run, setting by setting, with the fields that differ."""
    titles = {setting.name: setting.title for setting in study.settings}
    for name, group in groupby(listing, key=lambda entry: entry[0].setting):
        runs = list(group)
        print_text(f"{name}: {titles[name]}")
        rows = [
            (
                study.method(planned.method).title,
                planned.stage,
                "chosen on dev" if planned.open else differs,
                planned.config.seed,
                "to run" if run is None else f"{run.state.word} (run {run.id})",
            )
            for (planned, run), differs in zip(
                runs, shortest_names([planned.config for planned, _ in runs]), strict=True
            )
        ]
        print_table(("method", "stage", "configuration", "seed", "state"), rows)
        print_text()


def print_plan(study: Study, plan: Sequence[SettingCounts], *, whole: bool = False) -> None:
    """Prints a line per setting: its runs, and the time of the runs to come.

    Without `whole` it prints a line per part where the settings need more than `_MOST_LINES`.
    """
    protocol = textwrap.wrap(study.protocol, WIDTH)
    lines = {setting.setting: [setting] for setting in plan}
    # Beside the settings: a head, the sum, the hint at the end, a line above and one below the protocol.
    if len(plan) > _MOST_LINES - 5 - len(protocol) and not whole:
        by_part = {part: [each for each in plan if each.part == part] for part in study.parts()}
        lines = {f"{part} ({plural(len(of), 'setting')})": of for part, of in by_part.items() if of}
    failed = any(setting.failed for setting in plan)
    print_table(
        ("setting", "runs", "done", *["failed"] * failed, "to run", "time"),
        [
            (
                name,
                *(
                    sum(getattr(setting, count) for setting in settings)
                    for count in ("runs", "done", *["failed"] * failed, "to_run")
                ),
                _time(settings),
            )
            for name, settings in (lines | {"all": list(plan)}).items()
        ],
    )
    if protocol:
        print_text("\n".join(["", *protocol, ""]))
    if not whole:
        print_text("--runs lists every run, --json every run with all its fields.")


def _time(settings: Sequence[SettingCounts]) -> str:
    """Formats how long the runs to come take, and for how many that is unknown."""
    seconds = sum(setting.seconds or 0.0 for setting in settings)
    unknown = sum(setting.to_run for setting in settings if setting.seconds is None)
    if not any(setting.to_run for setting in settings):
        return ""
    parts = [f"about {duration(max(seconds, 1))}"] if seconds else []
    return ", ".join(parts + ([f"unknown for {plural(unknown, 'run')}"] if unknown else []))


def plan_document(listing: Listed, plan: Sequence[SettingCounts]) -> dict[str, Any]:
    """The plan as one document; fields still to be chosen on dev are null, and in `chosen_on_dev`."""
    estimates = [setting.seconds for setting in plan if setting.seconds is not None]
    return {
        "settings": [asdict(setting) for setting in plan],
        "search": sum(setting.search for setting in plan),
        "final": sum(setting.final for setting in plan),
        "seconds": sum(estimates) if len(estimates) == len(plan) else None,
        "runs": [
            {
                "setting": planned.setting,
                "family": planned.method,
                "stage": planned.stage,
                "run": None if run is None else run.id,
                "state": None if run is None else str(run.state),
                "chosen_on_dev": list(planned.open),
                "config": _fields(planned.config) | dict.fromkeys(planned.open),
            }
            for planned, run in listing
        ],
    }


def _fields(run: RunConfig) -> dict[str, Any]:
    applicable = applicable_fields(run.paradigm, run.encoder, run.encoder_training, run.prior)
    return {name: value for name, value in run.values().items() if name in applicable}


_MOST_SEEDS = 1000


class _Report(StrEnum):
    """The formats of the report.

    As CSV: `curves` are the dev scores by epoch, or the lines of Figure 3 of a study of simulated tasks, and
    `csv` is the table of a study of simulated tasks, a row per run.
    """

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CURVES = "curves"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True)
class ChosenStudy:
    """Which study, and which part of it, as typed."""

    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="Its name (default: list all).")] = None
    part: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the settings of these parts.")
    ] = None
    setting: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these settings, in this order.")
    ] = None
    seeds: Annotated[
        int | None, number_option("--seeds", "How many seeds (default: the study's own).", 1, _MOST_SEEDS)
    ] = None
    encoder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Use this encoder (default: the study's own)."),
    ] = None
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Use a frozen encoder: takes minutes, but is not as published.")
    ] = False

    def options(self, name: str) -> StudyOptions:
        """The options of the study of that name."""
        training = FROZEN if self.frozen else FULL
        return StudyOptions(name, self.part, self.setting, self.encoder, training, self.seeds)


@dataclass(frozen=True)
class Instead:
    """What is printed or written instead of training."""

    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print by setting how many runs are done and to come, and how long these take; run nothing.",
        ),
    ] = False
    runs: Annotated[
        bool, typer.Option("--runs", help="With --dry-run: list every run with the fields that differ.")
    ] = False
    report_: Annotated[
        _Report | None,
        typer.Option(
            "--report",
            metavar="|".join(_Report),
            help="Run nothing; print the report of the finished runs.",
            parser=one_of("--report", _Report),
        ),
    ] = None
    tables: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Run nothing; write each table of the report as a CSV file into this folder.",
        ),
    ] = None

    def check(self, name: str, study: Study, *, json_: bool) -> None:
        """Raises ConfigError where options exclude each other, or the study has no report of this format."""
        report = self.report_
        if report is _Report.CSV and not study.by_relatedness:
            raise ConfigError("report", f"The study '{name}' has no table of simulated tasks; leave out csv.")
        if report is _Report.CURVES and study.pairs:
            raise ConfigError("report", f"The study '{name}' has no curves; leave out curves.")
        if report is not None and (self.dry_run or (json_ and report is not _Report.JSON)):
            raise ConfigError(
                "report", "--report goes without --dry-run and --json; --report json is the document."
            )
        if self.runs and not self.dry_run:
            raise ConfigError(
                "runs", "--runs goes with --dry-run; `mrnlab runs` lists the runs of the store."
            )
        if self.tables is not None and (self.dry_run or json_ or report is not None):
            raise ConfigError("tables", "--tables goes without --dry-run, --report and --json.")

    @property
    def trains(self) -> bool:
        """Whether the study is run, since none of these is asked for."""
        return self.report_ is None and self.tables is None and not self.dry_run


@app.command()
@grouped
def study(
    ctx: typer.Context,
    choice: ChosenStudy,
    instead: Instead,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV file (.csv or .csv.gz) with a row a run. Its runs count as finished; each run that "
            "finishes is added.",
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Of pairs of tasks: then add seeds, first to the pairs nearest a verdict, look by look.",
        ),
    ] = False,
    hours: Annotated[
        float | None,
        typer.Option(metavar="H", help="With --until-decided: end after H hours.", parser=hours_of),
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Run a study to its end, or go on with it, and print its report.

    Every candidate of a method is trained with few seeds, then the one with the best dev score with all.
    Runs that are in the store already count. Ctrl-C or a kill loses nothing: the same command goes on.
    """
    if choice.name is None:
        _print_studies(as_json=json_)
        return
    options = choice.options(choice.name)
    definition = options.definition()
    instead.check(choice.name, definition, json_=json_)
    _check_until_decided(choice.name, definition, instead.trains, until_decided, hours)
    settings = options.settings()
    table = None if record is None else _record(record, is_written=instead.trains)
    with opened_store(ctx) as store:
        if table is not None and (restored := table.restore(store)):
            log(f"{plural(restored, 'run')} of {record} added to the store.")
        if instead.dry_run:
            _print_plan(store, definition, settings, runs=instead.runs, as_json=json_)
            return
        is_well = not instead.trains or _train(
            store, settings, table, until_decided=until_decided, hours=hours
        )
        report = _Report.JSON if json_ else instead.report_
        _print_results(store, definition, settings, report, instead.tables)
    if not is_well:
        raise typer.Exit(1)


def _print_studies(*, as_json: bool) -> None:
    """Prints the questions of all studies."""
    questions = [{"name": name, "question": study.question} for name, study in STUDIES.items()]
    if as_json:
        print_json(questions)
    else:
        print_table(("study", "question"), [tuple(study.values()) for study in questions])


def _record(path: Path, *, is_written: bool) -> RunTable:
    """Opens the record of runs. Raises MRNLabError where it cannot be written, or is missing to be read."""
    from jobs.exchange.run_table import RunTable

    table = RunTable(path)
    if is_written:
        table.check_writable()
    else:
        table.check_exists()
    return table


def _print_plan(
    store: Store, study: Study, settings: Sequence[SettingRuns], *, runs: bool, as_json: bool
) -> None:
    """Prints how many runs are done and to come by setting, and with `runs` each of them."""
    by_state = StudyRuns(store, settings, may_read=False).look()
    plan = counts_by_setting(store, by_state)
    if as_json:
        print_json(plan_document(by_state.listed(), plan))
        return
    if runs:
        print_runs(study, by_state.listed())
    print_plan(study, plan, whole=runs)


def _check_until_decided(
    name: str, study: Study, trains: bool, until_decided: bool, hours: float | None
) -> None:
    """Raises ConfigError where --until-decided or --hours do not fit the study or other options."""
    if until_decided and not study.pairs:
        raise ConfigError(
            "until_decided",
            f"--until-decided is for studies of pairs of tasks, as transfer; for runs of '{name}' there is "
            "`mrnlab decide RUN BASELINE`.",
        )
    if hours is not None and not until_decided:
        raise ConfigError("hours", "--hours goes with --until-decided.")
    if until_decided and not trains:
        raise ConfigError("until_decided", "--until-decided goes without --dry-run, --report and --tables.")


def _train(
    store: Store,
    settings: Sequence[SettingRuns],
    table: RunTable | None,
    *,
    until_decided: bool,
    hours: float | None,
) -> bool:
    """Trains what is missing, and adds what has finished to the record.

    Returns whether no run failed, and all pairs are decided where that is asked for.
    """
    ends_at = math.inf if hours is None else store.now() + 3600 * hours
    keep = None if table is None else partial(table.add, store)
    try:
        is_well = follow(store, settings, log, keep=keep, is_over=lambda: store.now() >= ends_at)
        if until_decided and is_well:
            is_well = _decide_pairs(store, settings, None if hours is None else ends_at)
        return is_well
    except KeyboardInterrupt:
        log("What is queued goes on in the background; the same command goes on with the study.")
        raise typer.Exit(130) from None


def _decide_pairs(store: Store, settings: Sequence[SettingRuns], ends_at: float | None) -> bool:
    """Decides the pairs, prints where each stands, and returns whether all plans have ended."""
    from jobs.studies.pairs_decided import decide_pairs

    pairs = decide_pairs(store, settings, log, ends_at=ends_at)
    for pair in pairs:
        log(f"{pair.sentence}.")
    return all(pair.state.has_ended for pair in pairs)


def _print_results(
    store: Store, study: Study, settings: Sequence[SettingRuns], form: _Report | None, tables: Path | None
) -> None:
    """Prints the report of the finished runs, or writes its tables into the folder `tables`."""
    document: Callable[[], Any]
    parts: Iterable[Part]
    if study.by_relatedness:
        from jobs.studies.grids import GridRuns, figure_csv, grid_document, grid_report, table_csv

        grid = GridRuns(store, settings)
        if form in (_Report.CSV, _Report.CURVES):
            write_document(table_csv(grid) if form is _Report.CSV else figure_csv(grid))
            return
        document, parts = partial(grid_document, grid), grid_report(study, grid)
    elif study.pairs:
        from jobs.studies.pairs import pairs_document, pairs_of, pairs_report

        by_part = pairs_of(store, study, settings)
        document = partial(dict, ((part, pairs_document(*pairs)) for part, pairs in by_part.items()))
        parts = chain.from_iterable(
            pairs_report(part, *pairs, study.pairs) for part, pairs in by_part.items()
        )
    else:
        results = StudyRuns(store, settings).results()
        if form is _Report.CURVES:
            write_document(curves(results))
            return
        document, parts = partial(study_document, study, results), report(study, results)
    if tables is not None:
        folder = given_path(tables)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in csv_files(study.name, parts):
            (folder / name).write_text(text, encoding="utf-8")
            print_text(str(tables / name))
    elif form is _Report.JSON:
        print_json(document())
    else:
        print_report(parts, form or "")
