"""mrnlab study: lists the studies, runs one to its end, or reports what the store knows of it."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any

import typer

from core.config import RunConfig, applicable_fields
from core.config.fields import comma_list
from core.errors import ConfigError, MRNLabError
from core.evaluation.comparison import HIGHER, LOWER, Comparison
from core.evaluation.costs import COST_NOTE
from core.evaluation.statistics import MeanSD
from core.store import Run, Store
from core.studies import STUDIES, Setting, Study, load_study
from core.studies.analysis import MEAN, RARE, Outcome, Result, TableView, table_view
from core.studies.answer import answer
from core.studies.study import Layout, Planned
from core.wording import duration, p_text, percent, plural, signed_points
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import hand_out, print_json, print_table, say, tell
from jobs.reports.naming import COST_HEAD, correlation_text, cost_cells, differing
from jobs.reports.studies import Outstanding, StudyRuns, follow, laid_out, listed, outstanding

_WIDTH = 110
_MOST_LINES = 40
"""Of a dry run: what a terminal shows at once."""

Listed = Sequence[tuple[Planned, Run | None]]


def print_runs(study: Study, listing: Listed) -> None:
    """Setting by setting a line per run with what sets it apart."""
    titles = {setting.name: setting.title for setting in study.settings}
    for name, group in groupby(listing, key=lambda entry: entry[0].setting):
        runs = list(group)
        tell(f"{name}: {titles[name]}")
        rows = [
            (
                study.family(planned.family).title,
                planned.stage,
                "chosen on dev" if planned.open else differs,
                planned.run.seed,
                "to run" if run is None else f"{run.state.word} (run {run.id})",
            )
            for (planned, run), differs in zip(
                runs, differing([planned.run for planned, _ in runs]), strict=True
            )
        ]
        print_table(("family", "stage", "configuration", "seed", "state"), rows)
        tell()


def print_plan(study: Study, plan: Sequence[Outstanding], *, whole: bool = False) -> None:
    """A line per setting: its runs, and how long those to come take. Unless it is to be `whole`, settings are
    put together, part by part, so that all has `_MOST_LINES`.
    """
    protocol = textwrap.wrap(study.protocol, _WIDTH)
    shown, rest = list(plan), dict[str, list[Outstanding]]()
    # Beside the settings: a head, the sum, the hint at the end, a line above and one below the protocol.
    room = _MOST_LINES - 5 - len(protocol)
    if len(plan) > room and not whole:
        shown = shown[: max(0, room - len(study.parts()))]
        for setting in plan[len(shown) :]:
            rest.setdefault(setting.part, []).append(setting)
    rows = [(setting.setting, [setting]) for setting in shown]
    rows += [
        (f"… and {plural(len(settings), 'more setting')} ({part})", settings)
        for part, settings in rest.items()
    ]
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
            for name, settings in [*rows, ("all", plan)]
        ],
    )
    if protocol:
        tell("\n".join(["", *protocol, ""]))
    if not whole:
        tell("--runs lists every run, --json every run with all its fields.")


def _time(settings: Sequence[Outstanding]) -> str:
    """How long their runs take, and of how many runs that is unknown."""
    seconds = sum(setting.seconds or 0.0 for setting in settings)
    unknown = sum(setting.to_run for setting in settings if setting.seconds is None)
    if not any(setting.to_run for setting in settings):
        return ""
    parts = [f"about {duration(max(seconds, 1))}"] if seconds else []
    return ", ".join(parts + ([f"unknown for {plural(unknown, 'run')}"] if unknown else []))


def plan_document(listing: Listed, plan: Sequence[Outstanding]) -> dict[str, Any]:
    """The same as one document. A field that dev has yet to choose is null and stands in `chosen_on_dev`."""
    known = [setting.seconds for setting in plan if setting.seconds is not None]
    return {
        "settings": [dataclasses.asdict(setting) for setting in plan],
        "search": sum(setting.search for setting in plan),
        "final": sum(setting.final for setting in plan),
        "seconds": sum(known) if len(known) == len(plan) else None,
        "runs": [
            {
                "setting": planned.setting,
                "family": planned.family,
                "stage": planned.stage,
                "run": None if run is None else run.id,
                "state": None if run is None else str(run.state),
                "chosen_on_dev": list(planned.open),
                "config": _fields(planned.run) | dict.fromkeys(planned.open),
            }
            for planned, run in listing
        ],
    }


def _fields(run: RunConfig) -> dict[str, Any]:
    """The fields that this run has, by their public names."""
    applicable = applicable_fields(run.paradigm, run.encoder, run.encoder_training, run.prior)
    return {name: value for name, value in run.values().items() if name in applicable}


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
                "citation": paper.citation,
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
                **(fields(difference.paired) or {}),
                "p_holm": difference.p,
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
        "from_base": {
            target: {**(fields(difference.paired) or {}), "verdict": difference.verdict}
            for target, difference in outcome.from_base.items()
        },
        "dev_curve": {epoch: fields(cell) for epoch, cell in outcome.dev_curve.items()},
        "cost": fields(outcome.cost),
        "failed": outcome.failed,
        "learned": fields(outcome.learned),
    }


_Table = tuple[list[str], list[list[str]]]
"""Headers and rows."""
_NONE = "–"
_WORDS = ("chosen", "verdict", "its verdict")
"""The columns that hold words, which stand to the left."""
_MARKS = {HIGHER: "**", LOWER: "*"}


def report(study: Study, results: Sequence[Result]) -> Iterator[str | _Table]:
    """The headings (Markdown's), paragraphs and tables of a report, scores in percent, differences in points.

    First the answer of each setting in words. For each part the paper's table where it repeats one, an
    overview of families and settings, a table per task where settings differ in tasks, then the settings one
    by one.
    """
    known = [result for result in results if any(outcome.differences for outcome in result.outcomes)]
    if known:
        yield "## The answer"
        yield from (f"- {result.setting.title}: {answer(result)}" for result in known)
    for part, group in groupby(results, key=lambda result: result.setting.part):
        of_part = list(group)
        view = table_view(study, part, of_part)
        yield f"## {view.paper.title if view else part.capitalize()}"
        if view is not None:
            yield _paper_table(view)
            yield from filter(None, [view.summary])
            yield ["model", *COST_HEAD], [[model, *cost_cells(row.cost)] for model, row in view.rows.items()]
        yield _overview(study, of_part)
        if study.by_task:
            yield from _tables_by_task(study, of_part)
        for result in of_part:
            yield f"### {result.setting.title} (`{result.setting.name}`)"
            yield _result_table(result)
            if any(outcome.dev_curve for outcome in result.outcomes):
                yield "Mean over tasks of the development sentences, by epoch:"
                yield _curve_table(result)
    for citation, note in dict.fromkeys((paper.citation, paper.note) for paper in study.papers.values()):
        yield f"Published: {citation}. {note}"
    if study.papers:
        yield f"{study.protocol} {COST_NOTE}"
    yield (
        "Scores in percent, mean ± standard deviation over seeds (n); differences in points from "
        f"{study.family(study.reference).title}, paired by seed, with the 95% interval of each by itself; p "
        "is corrected for the families of a setting (Holm), and the verdict follows it. In the overviews, "
        "bold: higher; italic: lower. Arms were chosen on the development sentences. Rarer labels: "
        "mean F1 of the rarer half of each task's labels. Task correlation: learned in the end, the "
        "mean over pairs with a target."
    )


def print_report(parts: Iterable[str | _Table]) -> None:
    """A report on standard output, its tables aligned by spaces."""
    for part in parts:
        if not isinstance(part, str):
            print_table(*part)
            tell()
        elif part.startswith("#"):
            tell(part.lstrip("# "))
        else:
            tell(textwrap.fill(part, _WIDTH) + "\n")


def markdown(parts: Iterable[str | _Table]) -> str:
    """A report in Markdown."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    def text(part: str | _Table) -> str:
        if isinstance(part, str):
            return part
        headers, rows = part
        rule = ["---" if header in _WORDS or not place else "---:" for place, header in enumerate(headers)]
        return "\n".join([line(headers), line(rule), *map(line, rows)])

    return "\n\n".join(map(text, parts))


def _paper_table(view: TableView) -> _Table:
    """The rows that the paper quotes, then ours; beside the published figures, where these are compared."""
    headers = ["model", "chosen"]
    for task in view.tasks:
        headers += [task, *[f"{task} published", "verdict"] * view.paper.is_compared]
    rows = []
    for quoted in view.paper.reported:
        row = [f"{quoted.model} [{quoted.source}]", ""]
        for task in view.tasks:
            figure = f"{quoted.scores[task]:.2f} (reported)" if task in quoted.scores else _NONE
            row += [_NONE, figure, ""] if view.paper.is_compared else [figure]
        rows.append(row)
    for model, outcome in view.rows.items():
        row = [model, outcome.chosen]
        for task in view.tasks:
            cell = outcome.published.get(task)
            published = _NONE if cell is None else f"{cell.mean:.2f} ± {cell.sd:.2f}"
            row += [_scores(outcome.scores.get(task))]
            row += [published, outcome.verdict(task)] * view.paper.is_compared
        rows.append(row)
    return headers, rows


def _overview(study: Study, results: Sequence[Result]) -> _Table:
    """Families × settings: the mean difference, bold where the family is higher, italic where it is lower."""
    rows: dict[str, list[str]] = {}
    for place, result in enumerate(results):
        for outcome in result.outcomes:
            if outcome.family.name == study.reference:
                continue
            row = rows.setdefault(outcome.family.name, [outcome.family.title, *[_NONE] * len(results)])
            if (difference := outcome.differences.get(MEAN)) is not None:
                mark = _MARKS.get(difference.verdict, "")
                row[1 + place] = f"{mark}{signed_points(difference.mean)}{mark}"
    names = [result.setting.name for result in results]
    return [f"less {study.family(study.reference).title}", *names], list(rows.values())


def _tables_by_task(study: Study, results: Sequence[Result]) -> Iterator[str | _Table]:
    """For each task that several settings have, families × settings: the difference with its interval and the
    verdict.
    """
    for task in dict.fromkeys(target for result in results for target in result.setting.targets):
        having = [result for result in results if task in result.setting.targets]
        rows: dict[str, list[str]] = {}
        for place, result in enumerate(having):
            for outcome in result.outcomes:
                if (difference := outcome.differences.get(task)) is not None:
                    row = rows.setdefault(outcome.family.name, [outcome.family.title, *[_NONE] * len(having)])
                    row[1 + place] = f"{difference.in_points} {difference.verdict}"
        if len(having) > 1 and rows:
            names = [result.setting.title for result in having]
            yield f"### {task} beside other tasks, less {study.family(study.reference).title}"
            yield ["family", *names], list(rows.values())


_SHOWN_EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30)


def _curve_table(result: Result) -> _Table:
    """Families × some epochs and the last."""
    known = [outcome for outcome in result.outcomes if outcome.dev_curve]
    epochs = sorted({epoch for outcome in known for epoch in outcome.dev_curve})
    shown = [epoch for epoch in epochs if epoch in _SHOWN_EPOCHS or epoch == epochs[-1]]
    rows = []
    for outcome in known:
        cells = [outcome.dev_curve.get(epoch) for epoch in shown]
        means = [_NONE if cell is None else percent(cell.mean) for cell in cells]
        rows.append([outcome.family.title, *means])
    return ["family", *(f"epoch {epoch}" for epoch in shown)], rows


def curves(results: Sequence[Result]) -> str:
    """The dev scores by epoch as CSV, in [0, 1]: mean over tasks, then over seeds."""
    lines = ["setting,family,epoch,mean,sd,seeds"]
    for result in results:
        for outcome in result.outcomes:
            for epoch, cell in outcome.dev_curve.items():
                sd = "" if cell.sd is None else f"{cell.sd:.6f}"
                name = f"{result.setting.name},{outcome.family.name}"
                lines.append(f"{name},{epoch},{cell.mean:.6f},{sd},{cell.n}")
    return "\n".join(lines) + "\n"


def _result_table(result: Result) -> _Table:
    """Families × targets of one setting, with the difference to the reference."""
    targets = [*result.setting.targets, *([MEAN] if len(result.setting.targets) > 1 else [])]
    has_rare = any(RARE in outcome.scores for outcome in result.outcomes)
    has_learned = any(outcome.learned is not None for outcome in result.outcomes)
    headers = ["family", "chosen", "dev", *targets, "difference", "p", "verdict"]
    bases = {outcome.family.base for outcome in result.outcomes if outcome.from_base}
    base = result.outcome(bases.pop()).family.title if len(bases) == 1 else "its base"
    has_base = any(outcome.from_base for outcome in result.outcomes)
    headers += [f"less {base}", "its verdict"] * has_base
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
        if has_base:
            from_base = _difference(outcome.from_base.get(MEAN))
            row += [from_base[0], from_base[2]]
        if has_rare:
            row += [_scores(outcome.scores.get(RARE)), _difference(outcome.differences.get(RARE))[0]]
        rows.append(row + [correlation_text(outcome.learned)] * has_learned)
    return headers, rows


def _difference(difference: Comparison | None) -> tuple[str, str, str]:
    """The mean with its interval, p, the verdict."""
    if difference is None:
        return "", "", ""
    return difference.in_points, p_text(difference.p), difference.verdict


def _scores(cell: MeanSD | None) -> str:
    if cell is None:
        return _NONE
    spread = "" if cell.sd is None else f" ± {100 * cell.sd:.2f}"
    return f"{100 * cell.mean:.2f}{spread} ({cell.n})"


_MOST_SEEDS = 1000


class _Report(StrEnum):
    """How the report is written. As CSV: `curves` are the dev scores by epoch alone, `csv` is the table of a
    study of simulated tasks, run by run.
    """

    TABLE = "table"
    MARKDOWN = "markdown"
    CURVES = "curves"
    CSV = "csv"
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
            "--dry-run",
            help="Say setting by setting what is done, still to be run and how long that takes; run nothing.",
        ),
    ] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="With --dry-run: list every run and what sets it apart.")
    ] = False,
    report_: Annotated[
        _Report | None,
        typer.Option("--report", help="Run nothing; print what the finished runs say."),
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Run a study to its end, or go on with it, and print what it says.

    Of each method every candidate is trained with few seeds, and the one that the development sentences
    choose with all. Runs that are in the store already count. Ctrl-C or a kill loses nothing: the same
    command goes on.
    """
    if name is None:
        questions = [{"name": name, "question": study.question} for name, study in STUDIES.items()]
        if json_:
            print_json(questions)
        else:
            print_table(("study", "asks"), [tuple(study.values()) for study in questions])
        return
    chosen = load_study(name, encoder, "frozen" if frozen else "full")
    if seeds is not None:
        chosen = chosen.with_seeds(seeds)
    if report_ is _Report.CSV and not chosen.by_relatedness:
        raise ConfigError("report", f"The study '{name}' has no table of simulated tasks; leave out csv.")
    if runs and not dry_run:
        raise ConfigError("runs", "--runs goes with --dry-run; `mrnlab runs` lists the runs of the store.")
    layouts = laid_out(chosen, _settings(chosen, part, setting))
    with opened_store(ctx) as store:
        if dry_run:
            progress = StudyRuns(store, layouts, may_read=False).look()
            plan = outstanding(store, layouts, progress)
            if json_:
                print_json(plan_document(listed(layouts, progress), plan))
                return
            if runs:
                print_runs(chosen, listed(layouts, progress))
            print_plan(chosen, plan, whole=runs)
            return
        well = True
        if report_ is None:
            try:
                well = follow(store, layouts, say)
            except KeyboardInterrupt:
                say("What is queued goes on in the background; the same command goes on with the study.")
                raise typer.Exit(130) from None
        if chosen.by_relatedness:
            _report_grid(store, chosen, layouts, _Report.JSON if json_ else report_)
        elif chosen.pairs:
            _report_pairs(store, chosen, layouts, _Report.JSON if json_ else report_)
        else:
            _report_results(chosen, StudyRuns(store, layouts).results(), _Report.JSON if json_ else report_)
    if not well:
        raise typer.Exit(1)


def _report_results(study: Study, results: Sequence[Result], form: _Report | None) -> None:
    if form is _Report.JSON:
        print_json(document(study, results))
    elif form is _Report.MARKDOWN:
        hand_out(markdown(report(study, results)) + "\n")
    elif form is _Report.CURVES:
        hand_out(curves(results))
    else:
        print_report(report(study, results))


def _report_pairs(store: Store, study: Study, layouts: Sequence[Layout], form: _Report | None) -> None:
    from jobs.cli.pairs import groups_of, pairs_document, pairs_report
    from jobs.reports.evidence import evidence
    from jobs.reports.transfer import pair_groups

    groups = groups_of(layouts, pair_groups(store, list(study.pairs)))
    if not groups:
        raise MRNLabError(f"The study '{study.name}' has no finished pair of tasks in this store yet.")
    known = {part: evidence(store, group) for part, group in groups.items()}
    if form is _Report.JSON:
        print_json({part: pairs_document(group, known[part]) for part, group in groups.items()})
        return
    parts = [
        each for part, group in groups.items() for each in pairs_report(part, group, known[part], study.pairs)
    ]
    if form is _Report.MARKDOWN:
        hand_out(markdown(parts) + "\n")
    else:
        print_report(parts)


def _report_grid(store: Store, study: Study, layouts: Sequence[Layout], form: _Report | None) -> None:
    from jobs.cli.grid import grid_document, grid_report, table_csv
    from jobs.reports.grids import GridRuns

    runs = GridRuns(store, layouts)
    if form is _Report.JSON:
        print_json(grid_document(runs))
    elif form is _Report.CSV:
        hand_out(table_csv(runs))
    elif form is _Report.MARKDOWN:
        hand_out(markdown(grid_report(study, runs)) + "\n")
    else:
        print_report(grid_report(study, runs))


def _settings(study: Study, part: str | None, names: str | None) -> Sequence[Setting]:
    """The settings asked for in that order, else all. Raises ConfigError for an unknown name."""
    parts = _known("part", part, study.parts())
    settings = {setting.name: setting for setting in study.settings if setting.part in parts}
    return [settings[name] for name in _known("setting", names, list(settings))]


def _known(option: str, text: str | None, known: Sequence[str]) -> Sequence[str]:
    """The names in a list, each once; all where it is not given. Raises ConfigError for an unknown name."""
    if text is None:
        return known
    names = list(dict.fromkeys(comma_list(text)))
    for name in names or [""]:
        if name not in known:
            raise ConfigError(option, f"--{option}: '{name}' is not one of {', '.join(known)}.")
    return names
