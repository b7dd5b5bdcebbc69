"""mrnlab relations: what a run learned, verdicts over seeds, controls, and the cosines of task embeddings."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core.config.fields import comma_list
from core.config.typed import whole_number
from core.errors import MRNLabError
from core.metrics import OBJECTIVE, PENALTY, STATISTICS, statistic, statistics_at
from core.mrn.relations import (
    Array,
    Relations,
    impossible_blocks,
    row_names,
    strongest_pairs,
    task_groups,
)
from core.plain_text import shortened
from core.registry import MODES
from core.results.cuts import cut_configs, cuts_of
from core.results.relations import RELATION_COLUMNS, control_configs, relation_tables, seeds_of
from core.store import RunWithFacts, SnapshotKey, Store
from core.wording import p_text, plural, which_runs
from jobs.cli.app import app, opened_store
from jobs.cli.options import JSON_OPTION, RUNS_ARGUMENT, grouped, one_of
from jobs.cli.output import log, print_json, print_table, print_text, write_document
from jobs.reports.render import csv_lines
from jobs.reports.transfer import run_embeddings

_PAIRS = 5
_EMBEDDING = "embedding"
_MODES = (*MODES, _EMBEDDING)


def numbers_document(store: Store, run: RunWithFacts, key: SnapshotKey, learned: Relations) -> dict[str, Any]:
    """The statistics of one snapshot; penalty and J are None where its step has none logged."""
    logged = {}
    statistics = (statistic(mode, name) for mode in MODES for name in STATISTICS)
    for metric in (PENALTY, OBJECTIVE, *statistics):
        for series in store.metrics([run.id], metric.key(), after_step=key.step - 1):
            if series.step[0] == key.step:
                logged[metric.name] = float(series.value[0])
    return {
        "run": run.id,
        "step": key.step,
        "epoch": key.epoch,
        "penalty": logged.get(PENALTY.name),
        "objective": logged.get(OBJECTIVE.name),
        "modes": {mode: _mode(run, learned, logged, mode) for mode in MODES},
    }


def _mode(run: RunWithFacts, learned: Relations, logged: dict[str, float], mode: str) -> dict[str, Any]:
    matrix = learned.correlation(mode)
    names, owners = row_names(run.facts, run.config.tasks, mode, len(matrix))
    pairs = strongest_pairs(matrix, _PAIRS, impossible_blocks(run.facts, mode, owners))
    return {
        "size": len(matrix),
        "learned": mode in run.config.learned,
        **dataclasses.asdict(statistics_at(logged, mode, learned)),
        "pairs": [{"first": names[i], "second": names[j], "correlation": value} for i, j, value in pairs],
    }


_HEADERS = ("mode", "rows", "learned", *(name.replace("_", " ") for name in STATISTICS))


def print_numbers(document: dict[str, Any], *, csv: bool) -> None:
    """Prints the document as two tables, a row per mode and a row per pair; as CSV only the first."""
    modes: dict[str, dict[str, Any]] = document["modes"]
    rows = [
        (
            mode,
            numbers["size"],
            "yes" if numbers["learned"] else "no",
            *(numbers[name] for name in STATISTICS),
        )
        for mode, numbers in modes.items()
    ]
    if csv:
        write_document(csv_lines(_HEADERS, rows))
        return
    penalty, objective = _written(document["penalty"]), _written(document["objective"])
    log(f"Run {document['run']}, step {document['step']}, epoch {document['epoch']:.1f}.")
    log(f"Penalty {penalty or 'not logged at this step'}, objective J {objective or 'not logged'}.")
    print_table(_HEADERS, [(*row[:3], *map(_written, row[3:])) for row in rows])
    pairs = [
        (mode, pair["first"], pair["second"], f"{pair['correlation']:z.3f}")
        for mode, numbers in modes.items()
        if numbers["learned"]
        for pair in numbers["pairs"]
    ]
    if pairs:
        print_text("")
        print_table(("mode", "first", "second", "correlation"), pairs)


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


_WIDEST_TABLE = 100


@dataclass(frozen=True)
class ShownOptions:
    """The options of `mrnlab relations` that choose what is printed, as typed."""

    mode: Annotated[
        str,
        typer.Option(
            metavar="|".join(_MODES), help="The correlations of what.", parser=one_of("--mode", _MODES)
        ),
    ] = "task"
    step: Annotated[str, typer.Option(help="A stored step, or 'last'.")] = "last"
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Print statistics of every mode, and its strongest pairs.")
    ] = False
    verdicts: Annotated[
        bool,
        typer.Option("--verdicts", help="Print verdicts of one run too, over its configuration's seeds."),
    ] = False
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False

    @property
    def step_number(self) -> int | None:
        """The step; None for the last one. Raises MRNLabError."""
        number = None if self.step == "last" else whole_number(self.step)
        if self.step != "last" and number is None:
            raise MRNLabError(f"--step: '{shortened(self.step)}' is neither a step's number nor 'last'.")
        return number


@dataclass(frozen=True)
class FurtherRuns:
    """The options of `mrnlab relations` that make further runs, as typed."""

    controls: Annotated[
        str | None,
        typer.Option(
            "--launch-controls",
            metavar="TASK,...",
            help="Queue controls: these runs with the training labels of that task permuted, a run for each "
            "task and seed.",
        ),
    ] = None
    cut: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Write a mapping that parts two labels (chunk:NP,ner:PER) or tasks (chunk,ner); print the "
            "command that trains all seeds with it; where they have, what the cut costs.",
        ),
    ] = None
    launch: Annotated[bool, typer.Option("--launch", help="With --cut: queue these runs.")] = False


@app.command()
@grouped
def relations(
    ctx: typer.Context,
    runs: Annotated[list[int], RUNS_ARGUMENT],
    shown: ShownOptions,
    further: FurtherRuns,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the correlations that an MRN run has learned, or of several runs the verdicts over seeds.

    One run: a matrix with labels, or numbers. `--mode embedding` prints the cosines of the task embeddings of
    an MTL or MRN run. Several runs, or --verdicts: for each configuration which pairs are related, opposed,
    without a relation that matters (within ±0.1), or undecided, against controls too where there are some.
    """
    if further.launch and further.cut is None:
        raise MRNLabError("--launch queues the runs of a cut; add --cut, as --cut chunk:NP,ner:PER.")
    if further.cut is not None:
        _cut(ctx, runs, further.cut, launch=further.launch, json_=json_)
    elif further.controls is not None:
        _launch_controls(ctx, runs, comma_list(further.controls), json_=json_)
    elif shown.verdicts or len(set(runs)) > 1:
        if shown.numbers or shown.step != "last":
            raise MRNLabError("--numbers and --step are of one run; verdicts are on the last step.")
        _print_verdicts(ctx, runs, shown.mode, csv=shown.csv, json_=json_)
    else:
        _print_relations(ctx, runs[0], shown, json_=json_)


def _print_relations(ctx: typer.Context, run_id: int, shown: ShownOptions, *, json_: bool) -> None:
    """Prints a matrix of one run, or its numbers."""
    mode, step = shown.mode, shown.step_number
    with opened_store(ctx) as store:
        run = store.run(run_id)
        if mode == _EMBEDDING and not shown.numbers:
            key, cosines = _embeddings(store, run, step)
            _print_matrix(run, mode, key, cosines, csv=shown.csv, json_=json_)
            return
        if run.config.paradigm != "mrn":
            raise MRNLabError(
                f"Run {run_id} is {run.config.paradigm.upper()}; only MRN runs learn relations."
            )
        key, learned = store.relations(run_id, step)
        document = numbers_document(store, run, key, learned) if shown.numbers else {}
    alignment, reason = _alignment(run)
    if alignment and not (shown.csv or json_):
        log(f"Alignment {alignment}: {reason or 'as asked'}.")
    groups = task_groups(run.facts)
    if (shown.numbers or mode != "feature") and len(groups) > 1:
        log(_impossible("task" if shown.numbers else mode, alignment or "", groups))
    if shown.numbers:
        print_json(document) if json_ else print_numbers(document, csv=shown.csv)
        return
    if mode not in run.config.learned:
        log(f"The {mode} covariance is not learned in this run: its correlations stay zero.")
    _print_matrix(run, mode, key, learned.correlation(mode), csv=shown.csv, json_=json_)


def _print_verdicts(ctx: typer.Context, runs: Sequence[int], mode: str, *, csv: bool, json_: bool) -> None:
    with opened_store(ctx) as store:
        for run in runs:
            store.run(run)  # a number that is none is refused
        asked = set(runs) if len(set(runs)) > 1 else seeds_of(store, runs[0])
        tables = relation_tables(store, asked, mode)
    records = [record for table in tables for record in table.records]
    if json_:
        print_json(
            {
                "configurations": [
                    {
                        "configuration": table.name,
                        "mode": mode,
                        "runs": table.run_ids,
                        "headline": table.headline,
                        "basis": table.basis,
                        "pairs": table.records,
                    }
                    for table in tables
                ]
            }
        )
    elif csv:
        write_document(csv_lines(RELATION_COLUMNS, [[*record.values()] for record in records]))
    else:
        for table in tables:
            print_text(f"{table.name}. {table.headline}")
            log(table.basis)
            print_table(
                ("first", "second", "mean", "95% interval", "p", "verdict"),
                [
                    (
                        table.rows.names[cell.i],
                        table.rows.names[cell.j],
                        f"{cell.mean:z.3f}",
                        "" if cell.interval is None else "[{:z.3f}, {:z.3f}]".format(*cell.interval),
                        p_text(cell.p),
                        cell.verdict,
                    )
                    for cell in table.cells
                ],
            )


def _launch_controls(ctx: typer.Context, runs: Sequence[int], tasks: Sequence[str], *, json_: bool) -> None:
    from jobs.queue.submit import submit

    if not tasks:
        raise MRNLabError("--launch-controls: name the tasks to permute, with commas between them.")
    with opened_store(ctx) as store:
        configs = control_configs([store.run(run) for run in dict.fromkeys(runs)], tasks)
        ids, present = submit(store, configs, f"controls of {which_runs(runs)}", reuse=True)
    queued = [run for run in ids if run not in present]
    log(f"Queued {which_runs(queued)}." if queued else "The store has these controls.")
    if json_:
        print_json({"runs": list(ids)})
    else:
        print_text(",".join(map(str, ids)))


def _cut(ctx: typer.Context, runs: Sequence[int], text: str, *, launch: bool, json_: bool) -> None:
    from jobs.queue.submit import submit

    if len(set(runs)) > 1:
        raise MRNLabError("--cut is of one run: all seeds of its configuration are trained with the cut.")
    with opened_store(ctx) as store:
        made, configs = cut_configs(store, runs[0], text)
        losses = [each.sentence for each in cuts_of(store, store.run(runs[0])) if each.name == made.name]
        ids: Sequence[int] = ()
        if launch:
            ids, present = submit(store, configs, f"{made.name} cut in run {runs[0]}", reuse=True)
            queued = [run for run in ids if run not in present]
            log(f"Queued {which_runs(queued)}." if queued else "The store has these runs.")
    seeds = ",".join(str(config.seed) for config in configs)
    command = f"mrnlab relations {runs[0]} --cut {shlex.quote(text)} --launch"
    for note in made.notes:
        log(note)
    if json_:
        print_json(
            {
                "cut": made.name,
                "alignment": configs[0].alignment,
                "seeds": [config.seed for config in configs],
                "notes": made.notes,
                "losses": losses,
                "command": command,
                "runs": list(ids),
            }
        )
        return
    log(f"Mapping: {str(configs[0].alignment).partition(':')[2]}")
    for sentence in losses:
        print_text(sentence)
    if launch:
        print_text(",".join(map(str, ids)))
    elif not losses:
        log(f"{plural(len(configs), 'run')} with the cut, seed{'s' * (len(configs) > 1)} {seeds}:")
        print_text(command)


def _alignment(run: RunWithFacts) -> tuple[str | None, str | None]:
    """The alignment and its reason; None where the run has none."""
    return (run.facts.alignment, run.facts.alignment_reason) if run.facts else (None, None)


def _embeddings(store: Store, run: RunWithFacts, step: int | None) -> tuple[SnapshotKey, Array]:
    if not run.config.embeds_tasks:
        raise MRNLabError(f"Run {run.id} has no task embeddings; launch one with --set task_embedding=input.")
    cosines = run_embeddings(store, run)
    of_step = [key for key in cosines if step in (None, key.step)]
    if not of_step:
        at = "" if step is None else f" at step {step}"
        raise MRNLabError(f"Run {run.id} has no cosines of task embeddings stored{at}.")
    return of_step[-1], cosines[of_step[-1]]


def _print_matrix(
    run: RunWithFacts, mode: str, key: SnapshotKey, values: Array, *, csv: bool, json_: bool
) -> None:
    matrix = values.astype(float).round(6)
    rows_are = "task" if mode == _EMBEDDING else mode
    labels, _ = row_names(run.facts, run.config.tasks, rows_are, len(matrix))
    rows = [[label, *map(float, row)] for label, row in zip(labels, matrix, strict=True)]
    if json_:
        document = {"run": run.id, "mode": mode, "step": key.step, "epoch": key.epoch}
        if mode == _EMBEDDING:
            document["task_embedding"] = run.config.task_embedding
        else:
            document["alignment"], document["alignment_reason"] = _alignment(run)
        print_json(document | {"labels": labels, "matrix": [row[1:] for row in rows]})
    elif csv:
        write_document(csv_lines([mode, *labels], rows))
    elif len(labels) > _WIDEST_TABLE:
        raise MRNLabError(f"The {mode} matrix has {len(labels)} rows, too many to read here; add --csv.")
    else:
        content = "correlations"
        if mode == _EMBEDDING:
            content = f"cosines of the task embeddings ({run.config.task_embedding})"
        log(f"Run {run.id}, step {key.step}, epoch {key.epoch:.1f}: {content}.")
        print_table([mode, *labels], [[row[0], *(f"{value:z.3f}" for value in row[1:])] for row in rows])


def _impossible(mode: str, alignment: str, groups: Sequence[Sequence[str]]) -> str:
    which = (
        "off-diagonals of the task matrix" if mode == "task" else "correlations of labels of different tasks"
    )
    if all(len(group) == 1 for group in groups):
        return (
            f"Under the alignment '{alignment}' the {which} are always zero: every task has its own "
            "label rows, so no two tasks share one."
        )
    named = "; ".join(", ".join(group) for group in groups)
    return (
        f"Under the alignment '{alignment}' the {which} are always zero between these groups of tasks, "
        f"which share no label row: {named}."
    )
