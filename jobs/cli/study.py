"""mrnlab study: lists the studies, runs one to its end, or reports what the store knows of it."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, groupby
from typing import Annotated, Any

import typer

from core.config import RunConfig, applicable_fields
from core.errors import ConfigError
from core.evaluation.costs import COST_NOTE
from core.evaluation.statistics import MeanSD
from core.store import Run
from core.studies import STUDIES, Setting, Study, load_study
from core.studies.analysis import HELPS, HURTS, MEAN, RARE, Difference, Outcome, Result, TableView, table_view
from core.studies.published import CITATION, WITHIN, Published
from core.studies.study import Planned
from core.wording import duration, p_text, signed_points
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import hand_out, print_json, print_table, say, tell
from jobs.studies import Outstanding, StudyRuns, follow, laid_out, listed, outstanding
from jobs.wording import COST_HEAD, correlation_told, cost_told

# What `mrnlab study NAME --dry-run` prints: every run with all its fields, and how long they take.


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
    return "unknown" if seconds is None else f"about {duration(max(seconds, 1))}"


# What a study says, as a table for the terminal, as Markdown for the docs, and as one JSON document.


_NONE = "–"
_LEARNED = "task correlation"
_WORDS = ("chosen", "verdict")
"""The columns that hold words, which stand to the left."""
_MARKS = {HELPS: "**", HURTS: "*"}


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
                "families": [_family(one) for one in result.outcomes],
            }
            for result in results
        ],
    }


def _family(one: Outcome) -> dict[str, Any]:
    return {
        "name": one.family.name,
        "arm": one.arm,
        "dev": None if one.dev is None else dataclasses.asdict(one.dev),
        "test": {target: dataclasses.asdict(scores) for target, scores in one.scores.items()},
        "by_seed": one.by_seed,
        "differences": {
            target: {
                **dataclasses.asdict(found.paired),
                "p_holm": found.p_holm,
                "verdict": found.verdict,
            }
            for target, found in one.differences.items()
        },
        "published": {
            target: {
                "mean": cell.mean,
                "sd": cell.sd,
                "verdict": cell.verdict(one.scores[target].mean) if target in one.scores else None,
            }
            for target, cell in one.published.items()
        },
        "cost": None if one.cost is None else dataclasses.asdict(one.cost),
        "failed": one.failed,
        "learned": None if one.learned is None else dataclasses.asdict(one.learned),
    }


def table(study: Study, results: Sequence[Result]) -> None:
    """Tables on standard output: those of the paper, then a table for each setting. Scores in percent,
    differences in points.
    """
    for part, group in groupby(results, key=lambda result: result.setting.part):
        if (view := table_view(study, part, list(group))) is not None:
            tell(view.title)
            print_table(_paper_head(view), _paper_rows(view))
            tell(view.summary + "\n")
            print_table(_COST_HEAD, _cost_rows(view))
            tell()
    for place, result in enumerate(results):
        if place:
            tell()
        tell(f"{result.setting.name}: {result.setting.title}")
        print_table(_headers(result), _rows(result))
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
            lines += [*_table(_paper_head(view), _paper_rows(view)), "", view.summary, ""]
            lines += [*_table(_COST_HEAD, _cost_rows(view)), ""]
        lines += [*_overview(study, of_part), ""]
        for result in of_part:
            lines += [f"### {result.setting.title} (`{result.setting.name}`)", ""]
            lines += [*_table(_headers(result), list(_rows(result))), ""]
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


_COST_HEAD = ("model", *COST_HEAD)


def _paper_head(view: TableView) -> list[str]:
    columns = (column for task in view.tasks for column in (task, f"{task} published", "verdict"))
    return ["model", "chosen", *columns]


def _paper_rows(view: TableView) -> list[list[str]]:
    """The rows that the paper quotes, then ours beside the published figures."""
    reported = [
        [
            f"{row.model} [{row.source}]",
            "",
            *chain.from_iterable(
                [_NONE, f"{row.scores[task]:.2f} (reported)" if task in row.scores else _NONE, ""]
                for task in view.tasks
            ),
        ]
        for row in view.reported
    ]
    ours = [
        [
            row.model,
            row.chosen,
            *chain.from_iterable(
                [_scores(cell.ours), _published(cell.published), cell.verdict] for cell in row.cells.values()
            ),
        ]
        for row in view.rows
    ]
    return reported + ours


def _published(cell: Published | None) -> str:
    return _NONE if cell is None else f"{cell.mean:.2f} ± {cell.sd:.2f}"


def _cost_rows(view: TableView) -> list[list[str]]:
    return [[row.model, *cost_told(row.cost)] for row in view.rows]


def _paper_note(study: Study) -> str:
    return (
        f"Published: {CITATION}. {WITHIN}: |our mean − published mean| ≤ published SD, as printed. A "
        "published figure stands only beside a fine-tuned encoder of that name, trained and scored as there. "
        f"{study.protocol} {COST_NOTE}"
    )


def _overview(study: Study, results: Sequence[Result]) -> list[str]:
    """Families × settings: the mean difference, bold where the family helps, italic where it hurts."""
    names = dict.fromkeys(
        one.family.name for result in results for one in result.outcomes if one.family.name != study.reference
    )
    rows = []
    for name in names:
        cells = []
        for result in results:
            known = {one.family.name: one for one in result.outcomes}
            found = known[name].differences.get(MEAN) if name in known else None
            if found is None:
                cells.append(_NONE)
                continue
            mark = _MARKS.get(found.verdict, "")
            cells.append(f"{mark}{signed_points(found.paired.mean)}{mark}")
        rows.append([study.family(name).title, *cells])
    return _table([f"less {study.family(study.reference).title}", *(r.setting.name for r in results)], rows)


def _headers(result: Result) -> list[str]:
    targets = result.setting.targets
    mean = [MEAN] if len(targets) > 1 else []
    rare = [RARE, "their difference"] if _knows_rare(result) else []
    learned = [_LEARNED] if _knows_learned(result) else []
    return ["family", "chosen", "dev", *targets, *mean, "difference", "p", "verdict", *rare, *learned]


def _knows_learned(result: Result) -> bool:
    return any(one.learned is not None for one in result.outcomes)


def _knows_rare(result: Result) -> bool:
    return any(RARE in one.scores for one in result.outcomes)


def _rows(result: Result) -> Iterator[list[str]]:
    several = len(result.setting.targets) > 1
    for one in result.outcomes:
        targets = [*result.setting.targets, *([MEAN] if several else [])]
        found = one.differences.get(MEAN)
        yield [
            one.family.title,
            one.chosen or ("" if one.arm is not None else "open"),
            _NONE if one.dev is None else f"{100 * one.dev.mean:.2f}",
            *(_scores(one.scores.get(target)) for target in targets),
            *(["", "", ""] if found is None else _difference(found)),
            *(_rare(one) if _knows_rare(result) else ()),
            *([correlation_told(one.learned)] if _knows_learned(result) else ()),
        ]


def _rare(one: Outcome) -> list[str]:
    found = one.differences.get(RARE)
    return [_scores(one.scores.get(RARE)), "" if found is None else _difference(found)[0]]


def _difference(found: Difference) -> list[str]:
    low, high = found.paired.low, found.paired.high
    interval = "" if low is None or high is None else f" [{signed_points(low)}, {signed_points(high)}]"
    return [signed_points(found.paired.mean) + interval, p_text(found.p_holm), found.verdict]


def _scores(cell: MeanSD | None) -> str:
    if cell is None:
        return _NONE
    spread = "" if cell.sd is None else f" ± {100 * cell.sd:.2f}"
    return f"{100 * cell.mean:.2f}{spread} ({cell.n})"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---" if header in _WORDS or not place else "---:" for place, header in enumerate(headers)]
    return [row(headers), row(rule), *map(row, rows)]


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
        print_json([{"name": name, "question": study.question} for name, study in STUDIES.items()])
        return
    print_table(("study", "asks"), [(name, study.question) for name, study in STUDIES.items()])


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
