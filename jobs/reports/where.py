"""Where a difference comes from, as tables of a report."""

from __future__ import annotations

from collections.abc import Sequence

from core.evaluation.comparison import HIGHER
from core.evaluation.span_differences import FigureDifference
from core.evaluation.where import BucketDifference
from core.results.where import ERRORS, SCHEME, Where
from core.wording import capitalised
from jobs.reports.parts import SIGNED, Entry, Sheet, difference_entry, p_entry


def where_sheets(each: Where) -> list[Sheet]:
    """The table of its buckets, and that of kinds of errors and schemes of F1; those that there are."""
    row, base = each.delta.row.name, each.delta.base.name
    head = ("A", "B", "Difference, 95% interval")
    setting = f"{each.data}, {each.split} sentences, {each.delta.task}: A is {row}, B is {base}. "
    sheets = []
    if each.buckets:
        sheets.append(
            Sheet.of(
                (
                    *("Bucket", "Feature", capitalised(each.items), *head),
                    *("p sentences", "p", "Verdict"),
                ),
                [_bucket_line(bucket) for bucket in each.buckets],
                f"{setting}Scores of the {each.items} in a bucket in percent, differences in points, means "
                "over common seeds with the interval over seeds. p sentences: approximate randomisation over "
                "sentences; p: over seeds and sentences; both corrected for all buckets (Holm).",
            )
        )
    for title, figures, about in (
        (ERRORS, each.kinds, "Per 100 annotated spans"),
        (SCHEME, each.schemes, "In percent"),
    ):
        if figures:
            sheets.append(
                Sheet.of(
                    (capitalised(title), *head, "p", "Verdict"),
                    [_figure_line(figure) for figure in figures],
                    f"{setting}{about}, means over common seeds, with the interval over seeds. p: paired "
                    "t-test over seeds, corrected for the rows of the table (Holm).",
                )
            )
    return sheets


def _bucket_line(each: BucketDifference) -> Sequence[Entry | str | None]:
    difference = Entry(
        100 * each.paired.mean,
        tuple(100 * end for end in each.interval or ()),
        unit="points",
        form=SIGNED,
        bold=each.is_named and each.verdict == HIGHER,
    )
    return (
        *(each.bucket.name, each.bucket.feature, Entry(each.items, form=",.0f")),
        *(Entry(100 * each.a), Entry(100 * each.b), difference),
        *(p_entry(each.p), p_entry(each.joint), each.verdict_text),
    )


def _figure_line(each: FigureDifference) -> Sequence[Entry | str | None]:
    difference = difference_entry(each.comparison)
    numbers = (Entry(100 * each.a), Entry(100 * each.b), difference)
    return (each.name, *numbers, p_entry(each.comparison.p), each.comparison.verdict)
