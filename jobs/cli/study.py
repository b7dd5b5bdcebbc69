"""mrnlab study: lists the studies, runs one to its end, or reports what the store knows of it."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any

import typer

from core.config import RunConfig, applicable_fields
from core.errors import ConfigError
from core.evaluation.costs import COST_NOTE
from core.evaluation.statistics import MeanSD
from core.store import Run
from core.studies import STUDIES, Setting, Study, load_study
from core.studies.analysis import HELPS, HURTS, MEAN, RARE, Difference, Outcome, Result, TableView, table_view
from core.studies.published import CITATION, WITHIN
from core.studies.study import Planned
from core.wording import duration, p_text, signed_points
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import hand_out, print_json, print_table, say, tell
from jobs.studies import Outstanding, StudyRuns, follow, laid_out, listed, outstanding
from jobs.wording import COST_HEAD, correlation_told, cost_told

_WIDTH = 110
_OPEN = "chosen on dev"

Listed = Sequence[tuple[Planned, Run | None]]


def print_plan(study: Study, listing: Listed, plan: Sequence[Outstanding]) -> None:
    """Setting by setting the fields that all runs share and a line per run, then what is still to be run."""
    titles = {setting.name: setting.title for setting in study.settings}
    for name, group in groupby(listing, key=lambda setting: setting[0].setting):
        runs = list(group)
        tell(f"{name}: {titles[name]}")
        _print_runs(study, runs)
        tell()
    if study.protocol:
        tell(textwrap.fill(study.protocol, _WIDTH) + "\n")
    rows = [(setting.setting, setting.search, setting.final, _time(setting.seconds)) for setting in plan]
    total = ("all", _count(plan, "search"), _count(plan, "final"), _time(_seconds(plan)))
    print_table(("setting", "search runs", "final runs", "time"), [*rows, total])
    for problem in dict.fromkeys(setting.problem for setting in plan if setting.problem):
        say(problem)


def plan_document(listing: Listed, plan: Sequence[Outstanding]) -> dict[str, Any]:
    """The same as one document. A field that dev has yet to choose is null and stands in `chosen_on_dev`."""
    return {
        "settings": [dataclasses.asdict(plan_run) for plan_run in plan],
        "search": _count(plan, "search"),
        "final": _count(plan, "final"),
        "seconds": _seconds(plan),
        "runs": [
            {
                "setting": plan_run.setting,
                "family": plan_run.family,
                "stage": plan_run.stage,
                "run": None if run is None else run.id,
                "state": None if run is None else str(run.state),
                "chosen_on_dev": list(plan_run.open),
                "config": _fields(plan_run.run) | dict.fromkeys(plan_run.open),
            }
            for plan_run, run in listing
        ],
    }


def _print_runs(study: Study, runs: Listed) -> None:
    fields = [_fields(planned_run.run) for planned_run, _ in runs]
    values: dict[str, set[str]] = {}
    for of_run in fields:
        for name, value in of_run.items():
            values.setdefault(name, set()).add(_text(value))
    common = {name: of_run.pop() for name, of_run in values.items() if len(of_run) == 1}
    everywhere = [name for name in common if all(name in of_run for of_run in fields)]
    _print_fields("every run", {name: common[name] for name in everywhere})
    _print_fields("where it applies", {name: common[name] for name in common if name not in everywhere})
    varying = [name for name in values if name not in common]
    print_table(
        ("family", "stage", *varying, "state"),
        [
            (
                study.family(planned_run.family).title,
                planned_run.stage,
                *(
                    _OPEN if name in planned_run.open else _text(of_run[name]) if name in of_run else ""
                    for name in varying
                ),
                "to run" if run is None else f"{run.state} (run {run.id})",
            )
            for (planned_run, run), of_run in zip(runs, fields, strict=True)
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


def _count(plan: Sequence[Outstanding], stage: str) -> int:
    return sum(getattr(setting, stage) for setting in plan)


def _seconds(plan: Sequence[Outstanding]) -> float | None:
    known = [setting.seconds for setting in plan if setting.seconds is not None]
    return sum(known) if len(known) == len(plan) else None


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"about {duration(max(seconds, 1))}"


def document(study: Study, results: Sequence[Result]) -> dict[str, Any]:
    """All that is known, scores in [0, 1], `mean` and `rarer labels` over a setting's targets.

    Published figures are in percent, as they were printed.
    """
    return {
        "study": study.name,
        "question": study.question,
        "reference": study.reference,
        "protocol": study.protocol,
        "papers": {
            part: {
                "title": paper.title,
                "reported": [dataclasses.asdict(row) for row in paper.reported],
                "citation": CITATION,
            }
            for part, paper in study.papers.items()
        },
        "settings": [
            {
                "name": result.setting.name,
                "title": result.setting.title,
                "part": result.setting.part,
                "targets": list(result.setting.targets),
                "families": [_family(outcome) for outcome in result.outcomes],
            }
            for result in results
        ],
    }


def _family(outcome: Outcome) -> dict[str, Any]:
    def fields(value: Any) -> dict[str, Any] | None:
        return None if value is None else dataclasses.asdict(value)

    return {
        "name": outcome.family.name,
        "arm": outcome.arm,
        "dev": fields(outcome.dev),
        "test": {target: fields(scores) for target, scores in outcome.scores.items()},
        "by_seed": outcome.by_seed,
        "differences": {
            target: {
                **dataclasses.asdict(difference.paired),
                "p_holm": difference.p_holm,
                "verdict": difference.verdict,
            }
            for target, difference in outcome.differences.items()
        },
        "published": {
            target: {
                "mean": cell.mean,
                "sd": cell.sd,
                "verdict": outcome.verdict(target) or None,
            }
            for target, cell in outcome.published.items()
        },
        "cost": fields(outcome.cost),
        "failed": outcome.failed,
        "learned": fields(outcome.learned),
    }


_Table = tuple[list[str], list[list[str]]]
"""Headers and rows."""
_NONE = "–"
_WORDS = ("chosen", "verdict")
"""The columns that hold words, which stand to the left."""
_MARKS = {HELPS: "**", HURTS: "*"}


def table(study: Study, results: Sequence[Result]) -> None:
    """Tables on standard output: those of the paper, then a table for each setting. Scores in percent,
    differences in points.
    """
    for part, group in groupby(results, key=lambda result: result.setting.part):
        if (view := table_view(study, part, list(group))) is not None:
            tell(view.title)
            print_table(*_paper_table(view))
            tell(view.summary + "\n")
            print_table(*_cost_table(view))
            tell()
    for place, result in enumerate(results):
        if place:
            tell()
        tell(f"{result.setting.name}: {result.setting.title}")
        print_table(*_result_table(result))
    if study.papers:
        tell("\n" + textwrap.fill(_paper_note(study), _WIDTH))


def markdown(study: Study, results: Sequence[Result]) -> str:
    """All tables: for each part the paper's table where it repeats one, an overview of families and settings,
    then the settings one by one.
    """
    lines = []
    for part, group in groupby(results, key=lambda result: result.setting.part):
        of_part = list(group)
        view = table_view(study, part, of_part)
        lines += [f"## {view.title if view else part.capitalize()}", ""]
        if view is not None:
            lines += [*_lines(*_paper_table(view)), "", view.summary, "", *_lines(*_cost_table(view)), ""]
        lines += [*_lines(*_overview(study, of_part)), ""]
        for result in of_part:
            lines += [f"### {result.setting.title} (`{result.setting.name}`)", ""]
            lines += [*_lines(*_result_table(result)), ""]
    if study.papers:
        lines += [_paper_note(study), ""]
    lines += [
        "Scores in percent, mean ± standard deviation over seeds (n); differences in points to "
        f"{study.family(study.reference).title}, paired by seed, with the 95% interval of each by itself; p "
        "is corrected for the families of a setting (Holm), and the verdict follows it. In the overviews, "
        "bold: helps; italic: hurts. Arms were chosen on the development sentences. Rarer labels: "
        "mean F1 of the rarer half of each task's labels. Task correlation: learned in the end, the "
        "mean over pairs with a target.",
    ]
    return "\n".join(lines)


def _lines(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---" if header in _WORDS or not place else "---:" for place, header in enumerate(headers)]
    return [line(headers), line(rule), *map(line, rows)]


def _paper_table(view: TableView) -> _Table:
    """The rows that the paper quotes, then ours beside the published figures."""
    headers = ["model", "chosen"]
    for task in view.tasks:
        headers += [task, f"{task} published", "verdict"]
    rows = []
    for quoted in view.reported:
        row = [f"{quoted.model} [{quoted.source}]", ""]
        for task in view.tasks:
            known = task in quoted.scores
            row += [_NONE, f"{quoted.scores[task]:.2f} (reported)" if known else _NONE, ""]
        rows.append(row)
    for model, outcome in view.rows.items():
        row = [model, outcome.chosen]
        for task in view.tasks:
            figure = outcome.published.get(task)
            published = _NONE if figure is None else f"{figure.mean:.2f} ± {figure.sd:.2f}"
            row += [_scores(outcome.scores.get(task)), published, outcome.verdict(task)]
        rows.append(row)
    return headers, rows


def _cost_table(view: TableView) -> _Table:
    return ["model", *COST_HEAD], [[model, *cost_told(row.cost)] for model, row in view.rows.items()]


def _paper_note(study: Study) -> str:
    return (
        f"Published: {CITATION}. {WITHIN}: |our mean − published mean| ≤ published SD, as printed. A "
        "published figure stands only beside a fine-tuned encoder of that name, trained and scored as there. "
        f"{study.protocol} {COST_NOTE}"
    )


def _overview(study: Study, results: Sequence[Result]) -> _Table:
    """Families × settings: the mean difference, bold where the family helps, italic where it hurts."""
    rows: dict[str, list[str]] = {}
    for place, result in enumerate(results):
        for outcome in result.outcomes:
            if outcome.family.name == study.reference:
                continue
            row = rows.setdefault(outcome.family.name, [outcome.family.title, *[_NONE] * len(results)])
            if (difference := outcome.differences.get(MEAN)) is not None:
                mark = _MARKS.get(difference.verdict, "")
                row[1 + place] = f"{mark}{signed_points(difference.paired.mean)}{mark}"
    names = [result.setting.name for result in results]
    return [f"less {study.family(study.reference).title}", *names], list(rows.values())


def _result_table(result: Result) -> _Table:
    """Families × targets of one setting, with the difference to the reference."""
    targets = [*result.setting.targets, *([MEAN] if len(result.setting.targets) > 1 else [])]
    has_rare = any(RARE in outcome.scores for outcome in result.outcomes)
    has_learned = any(outcome.learned is not None for outcome in result.outcomes)
    headers = ["family", "chosen", "dev", *targets, "difference", "p", "verdict"]
    headers += [RARE, "their difference"] * has_rare + ["task correlation"] * has_learned
    rows = []
    for outcome in result.outcomes:
        row = [
            outcome.family.title,
            outcome.chosen,
            _NONE if outcome.dev is None else f"{100 * outcome.dev.mean:.2f}",
            *(_scores(outcome.scores.get(target)) for target in targets),
            *_difference(outcome.differences.get(MEAN)),
        ]
        if has_rare:
            row += [_scores(outcome.scores.get(RARE)), _difference(outcome.differences.get(RARE))[0]]
        rows.append(row + [correlation_told(outcome.learned)] * has_learned)
    return headers, rows


def _difference(difference: Difference | None) -> tuple[str, str, str]:
    """The mean with its interval, p, the verdict."""
    if difference is None:
        return "", "", ""
    low, high = difference.paired.low, difference.paired.high
    interval = "" if low is None or high is None else f" [{signed_points(low)}, {signed_points(high)}]"
    return signed_points(difference.paired.mean) + interval, p_text(difference.p_holm), difference.verdict


def _scores(cell: MeanSD | None) -> str:
    if cell is None:
        return _NONE
    spread = "" if cell.sd is None else f" ± {100 * cell.sd:.2f}"
    return f"{100 * cell.mean:.2f}{spread} ({cell.n})"


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
        results = StudyRuns(store, layouts).results()
    if json_ or report is _Report.JSON:
        print_json(document(chosen, results))
    elif report is _Report.MARKDOWN:
        hand_out(markdown(chosen, results) + "\n")
    else:
        table(chosen, results)
    if not well:
        raise typer.Exit(1)


def _list(*, json_: bool) -> None:
    if json_:
        print_json([{"name": name, "question": study.question} for name, study in STUDIES.items()])
        return
    print_table(("study", "asks"), [(name, study.question) for name, study in STUDIES.items()])


def _settings(study: Study, part: str | None, names: str | None) -> Sequence[Setting]:
    """The settings asked for in that order, else all. Raises ConfigError for an unknown name."""
    parts = study.parts() if part is None else [name.strip() for name in part.split(",") if name.strip()]
    for name in parts:
        if name not in study.parts():
            raise ConfigError("part", f"--part: '{name}' is not one of {', '.join(study.parts())}.")
    known = {setting.name: setting for setting in study.settings if setting.part in parts}
    if names is None:
        return list(known.values())
    wanted = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if not wanted:
        raise ConfigError("setting", f"--setting: the list is empty; settings are {', '.join(known)}.")
    for name in wanted:
        if name not in known:
            raise ConfigError("setting", f"--setting: '{name}' is not one of {', '.join(known)}.")
    return [known[name] for name in wanted]
