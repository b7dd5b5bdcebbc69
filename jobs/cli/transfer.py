"""mrnlab transfer: the gains between tasks, from runs that trained pairs of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.errors import MRNLabError
from core.results.naming import corpus_name
from core.wording import plural
from jobs.cli.app import app, opened_store
from jobs.cli.options import JSON_OPTION
from jobs.cli.output import log, print_json, print_report, print_rows, print_table


@app.command()
def transfer(
    ctx: typer.Context,
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="A group's key (default: list the groups).")
    ] = None,
    markdown_: Annotated[bool, typer.Option("--markdown", help="The report in Markdown.")] = False,
    loss_log: Annotated[
        Path | None,
        typer.Option(
            help="Instead: the seven features of each loss curve in a file of lines `Iter N, task T, loss L`."
        ),
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print which task gains from which: MTL of pairs of tasks less STL of each.

    A group has the STL runs and the MTL runs of two tasks that are alike in all but tasks and seed; `mrnlab
    launch --task-groups pairs --paradigm stl,mtl` makes one. Its report has the matrix of gains and what
    predicts them.
    """
    if loss_log is not None:
        _loss_features(loss_log, json_=json_)
        return
    from jobs.reports.transfer import pair_groups
    from jobs.studies.evidence import evidence
    from jobs.studies.pairs import pairs_document, pairs_report

    with opened_store(ctx) as store:
        groups = {each.key: each for each in pair_groups(store)}
        if group is None:
            rows = [
                (each.key, corpus_name(each.config.corpus), len(each.gains.tasks), len(each.gains.pairs))
                for each in groups.values()
            ]
            print_rows(("group", "corpus", "tasks", "ordered pairs"), rows, csv=False, json_=json_)
            return
        if group not in groups:
            raise MRNLabError(
                f"There is no group '{group}'; `mrnlab transfer` lists those with a trained pair of tasks."
            )
        chosen = groups[group]
        pair_evidence = evidence(store, chosen)
    if json_:
        print_json(pairs_document(chosen, pair_evidence))
        return
    parts = pairs_report(corpus_name(chosen.config.corpus), chosen, pair_evidence, {})
    print_report(parts, "markdown" if markdown_ else "")


def _loss_features(path: Path, *, json_: bool) -> None:
    from core.transfer.features import CURVE_FEATURES, curve_features, read_loss_log

    curves = read_loss_log(path)
    for task, curve in curves.items():
        if curve.superseded:
            left_out = plural(curve.superseded, "loss", "losses")
            log(
                f"{task}: {left_out} left out; a later line of the log has the same step, as after a restart."
            )
    fitted = {task: curve_features(curve.steps, curve.losses) for task, curve in curves.items()}
    for task, features in fitted.items():
        for note in features.notes:
            log(f"{task}: {note}")
    if json_:
        print_json({task: dict(features.values) for task, features in fitted.items()})
        return
    rows = [
        (task, *(f"{features.values[name]:.4g}" for name in CURVE_FEATURES))
        for task, features in fitted.items()
    ]
    print_table(("task", *CURVE_FEATURES.values()), rows)
