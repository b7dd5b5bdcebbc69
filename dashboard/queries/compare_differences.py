"""Every row's difference to a baseline on every task, tested over seeds and over sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.evaluation import Randomised, holm
from core.evaluation.statistics import PairedDifference
from dashboard.queries.compare import ABOVE, BELOW, CLOSE, corrected, verdict
from dashboard.queries.forest import Forest, Mark
from dashboard.text import plural, signed_points
from jobs.results import ResultRow, ResultTable, difference
from jobs.sheets import Block, Entry, Sheet
from jobs.wording import p_told

__all__ = [
    "DIFFERENCE_COLUMNS",
    "Difference",
    "Tested",
    "difference_records",
    "difference_sheet",
    "differences",
    "forest",
    "pairs",
    "with_sentences",
]

Tested = Randomised | str
"""What a test over sentences found, or why there is none, in words."""


@dataclass(frozen=True)
class Difference:
    """A row minus the baseline on one task. Both p are corrected for all differences shown (Holm): `p_seeds`
    as `dashboard.queries.compare.corrected` says, `p_sentences` for those to the baseline.

    `paired` is over the seeds that both have, None where there is none; `gap` is that of the means.
    `unasked` says why there is no test over sentences.
    """

    row: ResultRow
    task: str
    gap: float
    paired: PairedDifference | None
    p_seeds: float | None
    sentences: Randomised | None = None
    p_sentences: float | None = None
    unasked: str = ""

    @property
    def verdict(self) -> str:
        """What may be said of it over seeds, by the corrected p."""
        return verdict(self.paired, self.p_seeds)

    @property
    def shown(self) -> bool:
        """Whether the verdict is that the two differ."""
        return self.verdict in (ABOVE, BELOW, CLOSE)


def differences(table: ResultTable, baseline: str) -> list[Difference]:
    """Row by row, task by task, to the row of that key."""
    base = table.row(baseline)
    p_values = corrected(table, baseline)
    return [
        Difference(
            row,
            task,
            row.cells[task].summary.mean - base.cells[task].summary.mean,
            difference(row, base, task),
            p_values.get((frozenset((row.key, baseline)), task)),
        )
        for row in table.rows
        if row.key != baseline
        for task in table.tasks
        if task in row.cells and task in base.cells
    ]


def pairs(one: Difference, base: ResultRow) -> tuple[tuple[int, int], ...]:
    """The runs to compare sentence by sentence: for each common seed that of the row and of the baseline."""
    own, other = one.row.cells[one.task].run_ids, base.cells[one.task].run_ids
    return tuple((own[seed], other[seed]) for seed in own if seed in other)


def with_sentences(found: Sequence[Difference], tests: Mapping[tuple[str, str], Tested]) -> list[Difference]:
    """The differences with what tests by row and task found."""
    asked = [tests.get((one.row.key, one.task), "") for one in found]
    p_values = iter(holm([test.p for test in asked if isinstance(test, Randomised)]))
    return [
        replace(one, sentences=test, p_sentences=next(p_values))
        if isinstance(test, Randomised)
        else replace(one, unasked=test)
        for one, test in zip(found, asked, strict=True)
    ]


def forest(found: Sequence[Difference], table: ResultTable, baseline: str) -> Forest:
    """The differences as a forest: a row per configuration, a mark per task."""
    keys = list(dict.fromkeys(one.row.key for one in found))
    return Forest(
        tuple(table.row(key).name for key in keys),
        tuple(task for task in table.tasks if any(one.task == task for one in found)),
        table.row(baseline).name,
        tuple(_marks(found, keys)),
    )


def _marks(found: Sequence[Difference], keys: Sequence[str]) -> Iterator[Mark]:
    for one in found:
        paired = one.paired
        low, high = (paired.low, paired.high) if paired is not None and paired.sd else (None, None)
        points = one.gap if paired is None else paired.mean
        yield Mark(
            keys.index(one.row.key),
            one.task,
            100 * points,
            None if low is None else 100 * low,
            None if high is None else 100 * high,
            f"{one.row.name}, {one.task}: {_told(one)}; {one.verdict}",
            one.shown,
        )


def _told(one: Difference) -> str:
    if one.paired is None:
        return f"{signed_points(one.gap)} between the means"
    text = signed_points(one.paired.mean)
    if interval := _interval(one.paired):
        text += f" {interval}"
    text += f", {plural(one.paired.n, 'seed')}"
    return text if one.p_seeds is None else f"{text}, p {p_told(one.p_seeds)}"


def _interval(paired: PairedDifference) -> str:
    if not paired.sd or paired.low is None or paired.high is None:
        return ""
    return f"[{signed_points(paired.low)}, {signed_points(paired.high)}]"


DIFFERENCE_COLUMNS = (
    "configuration", "baseline", "task", "split", "difference", "low", "high", "seeds", "p_seeds_holm",
    "sentences", "p_sentences_holm", "verdict",
)  # fmt: skip


def difference_records(
    found: Sequence[Difference], table: ResultTable, baseline: str
) -> list[dict[str, object]]:
    """A record of DIFFERENCE_COLUMNS per difference, scores in [0, 1]."""
    return [
        {
            "configuration": one.row.name,
            "baseline": table.row(baseline).name,
            "task": one.task,
            "split": table.split,
            "difference": one.gap if one.paired is None else one.paired.mean,
            "low": None if one.paired is None else one.paired.low,
            "high": None if one.paired is None else one.paired.high,
            "seeds": 0 if one.paired is None else one.paired.n,
            "p_seeds_holm": one.p_seeds,
            "sentences": None if one.sentences is None else one.sentences.sentences,
            "p_sentences_holm": one.p_sentences,
            "verdict": one.verdict,
        }
        for one in found
    ]


def difference_sheet(found: Sequence[Difference], table: ResultTable, baseline: str, setting: str) -> Sheet:
    """The differences as a table to paste: a line per configuration and task."""
    lines = tuple(
        (
            one.row.name,
            (
                Entry(one.task),
                Entry(
                    signed_points(one.gap if one.paired is None else one.paired.mean),
                    "" if one.paired is None else _interval(one.paired),
                    one.verdict == ABOVE,
                ),
                Entry("0" if one.paired is None else str(one.paired.n)),
                Entry(p_told(one.p_seeds) or "–"),
                Entry(p_told(one.p_sentences) or "–"),
            ),
        )
        for one in found
    )
    return Sheet(
        ("Configuration", "Task", "Difference, 95% interval", "Seeds", "p seeds", "p sentences"),
        (Block("", lines),),
        f"{setting}, {table.split} sentences: differences to {table.row(baseline).name} in points, paired by "
        "seed. p seeds: paired t-test over seeds; p sentences: approximate randomisation over sentences; "
        "both corrected for all differences shown (Holm).",
        "above the baseline by the corrected p over seeds.",
    )
