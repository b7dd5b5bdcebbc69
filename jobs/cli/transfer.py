"""mrnlab transfer: which task gains from which, by the pairs of tasks that the store's runs have trained."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import MRNLabError
from jobs.cli.app import JSON_OPTION, app, opened_store
from jobs.cli.output import print_json, print_report, print_rows
from jobs.reports.naming import corpus_name


@app.command()
def transfer(
    ctx: typer.Context,
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", help="A group's key (default: list the groups).")
    ] = None,
    markdown_: Annotated[bool, typer.Option("--markdown", help="The report in Markdown.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Which task gains from which: MTL of pairs of tasks less STL of each.

    A group has the STL runs and the MTL runs of two tasks that are alike in all but tasks and seed; `mrnlab
    launch --task-groups pairs --paradigm stl,mtl` makes one. Its report has the matrix of gains, what
    predicts them, and the best groups of tasks.
    """
    from jobs.reports.evidence import evidence
    from jobs.reports.pairs import pairs_document, pairs_report
    from jobs.reports.transfer import pair_groups

    with opened_store(ctx) as store:
        known = {each.key: each for each in pair_groups(store)}
        if group is None:
            rows = [
                (each.key, corpus_name(each.config), len(each.gains.tasks), len(each.gains.pairs))
                for each in known.values()
            ]
            print_rows(("group", "corpus", "tasks", "ordered pairs"), rows, csv=False, json_=json_)
            return
        if group not in known:
            raise MRNLabError(
                f"There is no group '{group}'; `mrnlab transfer` lists those with a trained pair of tasks."
            )
        chosen = known[group]
        known_of_pairs = evidence(store, chosen)
    if json_:
        print_json(pairs_document(chosen, known_of_pairs))
        return
    parts = pairs_report(corpus_name(chosen.config), chosen, known_of_pairs, {})
    print_report(parts, "markdown" if markdown_ else "")
