"""The report of a study's settings as tables and sentences, and as one document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.evaluation.comparison import Comparison
from core.evaluation.costs import COST_NOTE
from core.evaluation.statistics import MeanSD
from core.studies import Study
from core.studies.analysis import MEAN, RARE, Outcome, Result, TableView, table_view
from core.studies.answer import answer
from core.studies.published import WITHIN
from core.tasks.scores import percent_sign, scale_text
from core.wording import capitalised, uncapitalised
from jobs.reports.parts import (
    COST_HEAD,
    SIGNED,
    Entry,
    Heading,
    Items,
    Part,
    Sheet,
    cost_entries,
    difference_entry,
    mean_entry,
    p_entry,
    published_entry,
    score_entry,
)
from jobs.reports.render import csv_text

_IN_TABLES = {WITHIN: "within"}
"""The short texts of verdicts on published figures in tables."""
_SHOWN_EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30)


def report(study: Study, results: Sequence[Result]) -> Iterator[Part]:
    """Yields the report of a study, scores in percent, differences in points.

    It begins with the answer of each setting in a sentence. Each part has the paper's table where it repeats
    one, an overview of methods and settings, a table per task where settings differ in tasks, and a table per
    setting.
    """
    answered = [result for result in results if any(outcome.differences for outcome in result.outcomes)]
    if answered:
        yield Heading("The answer")
        yield Items(tuple(f"{result.setting.title}: {answer(result)}" for result in answered))
    for part in dict.fromkeys(result.setting.part for result in results):
        part_results = [result for result in results if result.setting.part == part]
        view = table_view(study, part, part_results)
        yield Heading(view.paper.title if view else capitalised(part))
        if view is not None:
            yield paper_sheet(view)
            yield from filter(None, [view.summary])
            yield cost_sheet(view)
        yield overview(study, part_results)
        if study.by_task:
            yield from _tables_by_task(study, part_results)
        for result in part_results:
            yield Heading(result.setting.title, 3, result.setting.name)
            yield setting_sheet(result)
            if any(outcome.dev_curve for outcome in result.outcomes):
                yield "Mean over tasks of the development sentences, by epoch:"
                yield _curve_sheet(result)
    for citation, note in dict.fromkeys((paper.citation, paper.note) for paper in study.papers.values()):
        yield f"Published: {citation}. {note}"
    if study.papers:
        yield f"{study.protocol} {COST_NOTE}"
    measured = {name for result in results for each in result.outcomes for name in each.measures(MEAN)}
    yield (
        f"Scores {scale_text(measured)}, mean ± standard deviation over seeds (n); differences in points "
        f"from {study.method(study.reference).title}, paired by seed, with the 95% interval of each by "
        "itself; p is corrected for the methods of a setting (Holm), and the verdict follows it. In the "
        "overviews, bold: higher; italic: lower. Candidates were chosen on the development sentences. "
        "Rarer labels: mean F1 of the rarer half of each task's labels. Task correlation: learned in the "
        "end, the mean over pairs with a target."
    )


def paper_sheet(view: TableView) -> Sheet:
    """The rows that the paper quotes, then ours, with published figures where they are compared."""
    beside = [" published"] * view.paper.is_compared
    head = ["Model", "Chosen", *(task + suffix for task in view.tasks for suffix in ("", *beside))]
    rows: list[list[Any]] = []
    for quoted in view.paper.reported:
        row: list[Any] = [f"{quoted.model} ({quoted.source})", Entry("reported", is_quoted=True)]
        for task in view.tasks:
            figure = quoted.scores.get(task)
            row += [None] * len(beside) + [None if figure is None else Entry(figure, is_quoted=True)]
        rows.append(row)
    for model, outcome in view.rows.items():
        row = [model, outcome.chosen]
        for task in view.tasks:
            verdict = outcome.verdict(task)
            published = published_entry(outcome.published.get(task), _IN_TABLES.get(verdict, verdict))
            row += [
                score_entry(outcome.scores.get(task), *outcome.measures(task)),
                *[published] * len(beside),
            ]
        rows.append(row)
    return Sheet.of(head, rows)


def cost_sheet(view: TableView) -> Sheet:
    """A table of the cost of each model of a paper's table."""
    return Sheet.of(
        ["Model", *map(capitalised, COST_HEAD)],
        [[model, *cost_entries(row.cost)] for model, row in view.rows.items()],
    )


def overview(study: Study, results: Sequence[Result]) -> Sheet:
    """Methods × settings: the mean difference from the reference, with its verdict as a mark."""
    rows: dict[str, list[Entry | None]] = {}
    for index, result in enumerate(results):
        for outcome in result.outcomes:
            if outcome.method.name == study.reference:
                continue
            row = rows.setdefault(outcome.method.title, [None] * len(results))
            if (difference := outcome.differences.get(MEAN)) is not None:
                row[index] = Entry(
                    100 * difference.mean, unit="points", verdict=difference.verdict, form=SIGNED
                )
    head = [
        f"Less {uncapitalised(study.method(study.reference).title)}",
        *(result.setting.name for result in results),
    ]
    return Sheet.of(head, [(title, *row) for title, row in rows.items()])


def _tables_by_task(study: Study, results: Sequence[Result]) -> Iterator[Part]:
    """Yields methods × settings for each task of several settings: differences, intervals and verdicts."""
    for task in dict.fromkeys(target for result in results for target in result.setting.targets):
        having = [result for result in results if task in result.setting.targets]
        rows: dict[str, list[Entry | None]] = {}
        for index, result in enumerate(having):
            for outcome in result.outcomes:
                if (difference := outcome.differences.get(task)) is not None:
                    row = rows.setdefault(outcome.method.title, [None] * len(having))
                    row[index] = difference_entry(difference, verdict=True)
        if len(having) > 1 and rows:
            yield Heading(f"{task} beside other tasks, less {study.method(study.reference).title}", 3)
            head = ["Method", *(result.setting.title for result in having)]
            yield Sheet.of(head, [(title, *row) for title, row in rows.items()], writes_verdicts=True)


def _curve_sheet(result: Result) -> Sheet:
    """Methods × dev scores of some epochs and the last."""
    outcomes = [outcome for outcome in result.outcomes if outcome.dev_curve]
    epochs = sorted({epoch for outcome in outcomes for epoch in outcome.dev_curve})
    shown = [epoch for epoch in epochs if epoch in _SHOWN_EPOCHS or epoch == epochs[-1]]
    rows = [
        (outcome.method.title, *(_dev_entry(outcome.dev_curve.get(epoch), outcome) for epoch in shown))
        for outcome in outcomes
    ]
    return Sheet.of(["Method", *(f"Epoch {epoch}" for epoch in shown)], rows)


def curves(results: Sequence[Result]) -> str:
    """The dev scores by epoch as CSV, in [0, 1]: mean over tasks, then over seeds."""
    records = [
        {
            "setting": result.setting.name,
            "family": outcome.method.name,
            "epoch": epoch,
            "mean": f"{cell.mean:.6f}",
            "sd": "" if cell.sd is None else f"{cell.sd:.6f}",
            "seeds": cell.n,
        }
        for result in results
        for outcome in result.outcomes
        for epoch, cell in outcome.dev_curve.items()
    ]
    return csv_text(("setting", "family", "epoch", "mean", "sd", "seeds"), records)


def setting_sheet(result: Result) -> Sheet:
    """Methods × targets of one setting, with the difference from the reference."""
    targets = [*result.setting.targets, *([MEAN] if len(result.setting.targets) > 1 else [])]
    has_rare = any(RARE in outcome.scores for outcome in result.outcomes)
    has_learned = any(outcome.learned is not None for outcome in result.outcomes)
    bases = {outcome.method.base for outcome in result.outcomes if outcome.from_base}
    base = uncapitalised(result.outcome(bases.pop()).method.title) if len(bases) == 1 else "its base"
    has_base = any(outcome.from_base for outcome in result.outcomes)
    head = ["Method", *targets, "Difference", "p", "Verdict"]
    head += [f"Less {base}", "Its verdict"] * has_base
    head += [capitalised(RARE), "Their difference"] * has_rare + ["Task correlation"] * has_learned
    is_chosen = any(outcome.chosen for outcome in result.outcomes)
    has_dev = any(outcome.dev is not None for outcome in result.outcomes)
    head += ["Chosen"] * is_chosen + ["Dev"] * has_dev
    rows = []
    for outcome in result.outcomes:
        row: list[Any] = [
            outcome.method.title,
            *(score_entry(outcome.scores.get(target), *outcome.measures(target)) for target in targets),
            *_difference(outcome, result),
        ]
        if has_base:
            from_base = outcome.from_base.get(MEAN)
            row += [
                difference_entry(from_base, seeds=not result.is_complete) or "",
                "" if from_base is None else from_base.verdict,
            ]
        if has_rare:
            rare = difference_entry(outcome.differences.get(RARE), seeds=not result.is_complete)
            row += [score_entry(outcome.scores.get(RARE), "f1"), rare or ""]
        learned = "" if outcome.learned is None else mean_entry(outcome.learned)
        row += [learned] * has_learned
        rows.append([*row, *[outcome.chosen] * is_chosen, *[_dev_entry(outcome.dev, outcome)] * has_dev])
    return Sheet.of(head, rows)


def _dev_entry(score: MeanSD | None, outcome: Outcome) -> Entry | None:
    unit = percent_sign(outcome.measures(MEAN))
    return None if score is None else Entry(100 * score.mean, unit=unit)


def _difference(outcome: Outcome, result: Result) -> tuple[Entry | str | None, Entry | str | None, str]:
    difference = outcome.differences.get(MEAN)
    if difference is None and outcome.method.name == result.reference:
        return "", "", "reference"
    if difference is None:
        return None, None, ""
    return (
        difference_entry(difference, bold=True, seeds=not result.is_complete),
        p_entry(difference.p) or "",
        difference.verdict,
    )


def study_document(study: Study, results: Sequence[Result]) -> dict[str, Any]:
    """All results, scores in [0, 1], `mean` and `rarer labels` over a setting's targets.
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
                "done": result.done,
                "runs": result.planned,
                "families": [_method(outcome) for outcome in result.outcomes],
            }
            for result in results
        ],
    }


def _method(outcome: Outcome) -> dict[str, Any]:
    def fields(value: Any) -> dict[str, Any] | None:
        return None if value is None else dataclasses.asdict(value)

    def compared(by_target: Mapping[str, Comparison]) -> dict[str, Any]:
        return {
            target: {**(fields(each.paired) or {}), "p_holm": each.p, "verdict": each.verdict}
            for target, each in by_target.items()
        }

    return {
        "name": outcome.method.name,
        "arm": outcome.candidate,
        "dev": fields(outcome.dev),
        "test": {target: fields(scores) for target, scores in outcome.scores.items()},
        "by_seed": outcome.by_seed,
        "differences": compared(outcome.differences),
        "published": {
            target: {"mean": cell.mean, "sd": cell.sd, "verdict": outcome.verdict(target) or None}
            for target, cell in outcome.published.items()
        },
        "from_base": compared(outcome.from_base),
        "dev_curve": {epoch: fields(cell) for epoch, cell in outcome.dev_curve.items()},
        "cost": fields(outcome.cost),
        "failed": outcome.failed,
        "learned": fields(outcome.learned),
    }
