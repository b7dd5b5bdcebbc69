"""What a study says, as a table for the terminal, as Markdown for the docs, and as one JSON document."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any

from core.costs import COST_NOTE
from core.evaluation.statistics import MeanSD
from core.studies import Study
from core.studies.analysis import HELPS, HURTS, MEAN, RARE, Difference, Outcome, Result
from core.studies.papers import TableView, table_view
from core.studies.published import CITATION, WITHIN, Published
from jobs.cli.output import print_table, tell
from jobs.wording import COST_HEAD, correlation_told, cost_told, p_told, signed_points

__all__ = ["document", "markdown", "table"]

_NONE = "–"
_WIDTH = 110
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
            one.arm_told or ("" if one.arm is not None else "open"),
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
    return [signed_points(found.paired.mean) + interval, p_told(found.p_holm), found.verdict]


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
