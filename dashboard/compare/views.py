"""What may be said of two configurations: which two to look at first, and how they differ, in sentences."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.config import trains_heads_alone
from core.evaluation import Randomised
from core.evaluation.statistics import PairedDifference, holm, significant
from core.wording import all_of, p_text, plural, signed_points
from dashboard.shared.charts import Forest, Mark
from jobs.naming import confounds
from jobs.results import ResultRow, ResultTable, difference
from jobs.sheets import Block, Entry, Sheet

TINY = 0.0005
"""A difference below 0.05 points is told, but not made much of: published tables differ by more."""

ABOVE, BELOW, CLOSE, OPEN = "above", "below", "tiny", "not shown"
ALONE, STEADY, APART = "one seed", "no spread", "no common seed"


@dataclass(frozen=True)
class Answer:
    """What may be said of the difference of two rows on one task, as a sentence (plain text)
    and in numbers. `p` is corrected (`corrected`).
    """

    task: str
    sentence: str
    difference: PairedDifference | None
    p: float | None
    verdict: str


def default_pair(table: ResultTable) -> tuple[str, str] | None:
    """The two rows to compare first: MRN against MTL, else against STL, else the first two.

    Of several pairs, the one that differs in the fewest other fields, so that the paradigm is what is
    compared; then the one with the most seeds, then the best on dev.
    """
    if len(table.rows) < 2:
        return None
    for a, b in (("mrn", "mtl"), ("mrn", "stl"), ("mtl", "stl")):
        if pair := fittest(table.rows, a, b):
            return pair[0].key, pair[1].key
    first, second = table.rows[:2]
    return second.key, first.key


def fittest(rows: Sequence[ResultRow], a: str, b: str) -> tuple[ResultRow, ResultRow] | None:
    """The rows of two paradigms that are most alike in all else; None where one paradigm has no row."""
    by_paradigm: dict[str, list[ResultRow]] = defaultdict(list)
    for row in rows:
        by_paradigm[row.config.paradigm].append(row)
    return max(
        itertools.product(by_paradigm[a], by_paradigm[b]), key=lambda pair: _fitness(*pair), default=None
    )


def _fitness(a: ResultRow, b: ResultRow) -> tuple[int, int, float]:
    return -len(confounds(a.config, b.config)), min(a.seeds, b.seeds), a.dev + b.dev


def steps(table: ResultTable) -> dict[str, list[tuple[ResultRow, ResultRow]]]:
    """What sharing adds, encoder by encoder: MTL over STL and MRN over MTL, each by the rows most alike."""
    return {
        block: [pair for a, b in (("mtl", "stl"), ("mrn", "mtl")) if (pair := fittest(rows, a, b))]
        for block, rows in table.blocks.items()
    }


Pair = tuple[frozenset[str], str]
"""The keys of two rows, and a task."""


def corrected(table: ResultTable, baseline: str) -> dict[Pair, float]:
    """The p over seeds of every difference that Compare shows, corrected for their number (Holm): of each row
    to the baseline, and of each of the `steps`. One family, so that the page never says two things of one
    difference.
    """
    base = table.row(baseline)
    rows = [(row, base) for row in table.rows if row.key != baseline]
    rows += [pair for pairs in steps(table).values() for pair in pairs]
    p_values = {
        (frozenset((a.key, b.key)), task): found.p
        for a, b in rows
        for task in table.tasks
        if task in a.cells and task in b.cells and (found := difference(a, b, task)) is not None
    }
    tested = {pair: p_value for pair, p_value in p_values.items() if p_value is not None}
    return dict(zip(tested, holm(list(tested.values())), strict=True))


def verdict(found: PairedDifference | None, p_corrected: float | None) -> str:
    """What may be said of a difference over seeds, by its corrected p."""
    if found is None:
        return APART
    if found.n < 2:
        return ALONE
    if found.mean and not found.sd:
        return STEADY
    if not significant(p_corrected):
        return OPEN
    if abs(found.mean) < TINY:
        return CLOSE
    return ABOVE if found.mean > 0 else BELOW


def answers(table: ResultTable, a: str, b: str, p_values: Mapping[Pair, float] | None = None) -> list[Answer]:
    """For each task that both rows have: what may be said of their difference.

    `p_values` are the page's (`corrected`); without them, those with `b` as the baseline.
    """
    one, other = table.row(a), table.row(b)
    p_values = corrected(table, b) if p_values is None else p_values
    return [
        _answer(one, other, task, p_values.get((frozenset((a, b)), task)))
        for task in table.tasks
        if task in one.cells and task in other.cells
    ]


def _answer(a: ResultRow, b: ResultRow, task: str, p_value: float | None) -> Answer:
    found = difference(a, b, task)
    said = verdict(found, p_value)
    if found is None:
        gap = a.cells[task].summary.mean - b.cells[task].summary.mean
        words = f"{signed_points(gap)} between the means; no seed in common, so no paired interval"
    elif found.low is None or found.high is None:
        words = f"{signed_points(found.mean)}; one seed each, so no interval"
    elif said == STEADY:
        words = (
            f"{signed_points(found.mean)} with each of {plural(found.n, 'seed')}: no spread, so no interval"
        )
    else:
        half = 100 * (found.high - found.low) / 2
        told = "" if p_value is None else f", p {p_text(p_value)}"
        words = f"{signed_points(found.mean)} ± {half:.2f}, {plural(found.n, 'seed')}{told}"
    return Answer(task, words, found, p_value, said)


def headline(a: str, b: str, found: Sequence[Answer], quoted: Callable[[str], str] = str) -> str:
    """The answer in one sentence. `quoted` writes names and tasks, which come from users."""
    if not found:
        return f"{quoted(a)} and {quoted(b)} share no task."
    by_verdict: dict[str, list[str]] = defaultdict(list)
    for one in found:
        told = quoted(one.task)
        if one.verdict in (ABOVE, BELOW) and one.difference is not None:
            told += f" ({signed_points(one.difference.mean)})"
        by_verdict[one.verdict].append(told)
    parts = []
    for kind, words in ((ABOVE, "is above"), (BELOW, "is below")):
        if tasks := by_verdict[kind]:
            parts.append(
                f"{words} {quoted(b)} on {all_of(tasks)}" if not parts else f"{words} it on {all_of(tasks)}"
            )
    sentences = [f"{quoted(a)} {' and '.join(parts)}"] if parts else []
    if tasks := by_verdict[CLOSE]:
        sentences.append(f"on {all_of(tasks)} they differ by less than {100 * TINY:.2f} points")
    if tasks := by_verdict[OPEN]:
        between = "" if sentences else f" between {quoted(a)} and {quoted(b)}"
        sentences.append(f"no difference{between} is shown on {all_of(tasks)}")
    if tasks := by_verdict[STEADY]:
        sentences.append(f"every seed says the same on {all_of(tasks)}, which leaves nothing to test")
    if tasks := by_verdict[ALONE]:
        sentences.append(f"one seed cannot tell a difference from chance on {all_of(tasks)}")
    if tasks := by_verdict[APART]:
        sentences.append(f"they have no seed in common on {all_of(tasks)}")
    text = "; ".join(sentences)
    return f"{text if parts else text[0].upper() + text[1:]}."


def per_seed(table: ResultTable) -> list[dict[str, str | float | int | None]]:
    """A line per configuration and seed, scores in percent, for the CSV."""
    lines: list[dict[str, str | float | int | None]] = []
    for row in table.rows:
        seeds = sorted({seed for cell in row.cells.values() for seed in cell.by_seed})
        for seed in seeds:
            scores = {
                task: 100 * row.cells[task].by_seed[seed]
                if task in row.cells and seed in row.cells[task].by_seed
                else None
                for task in table.tasks
            }
            lines.append({"configuration": row.name, "seed": seed, **scores})
    return lines


# What sharing did: MTL − STL and MRN − MTL per task, encoder by encoder.


@dataclass(frozen=True)
class Delta:
    """The change on one task, in points with its interval; `told` in words. The verdict is the corrected one
    of `dashboard.compare.views.verdict`.
    """

    task: str
    points: float
    low: float | None
    high: float | None
    verdict: str
    told: str

    @property
    def shown(self) -> bool:
        """Whether the verdict is that there is a change."""
        return self.verdict in (ABOVE, BELOW, CLOSE)


@dataclass(frozen=True)
class Step:
    """From one paradigm to the next: `MTL − STL`, with the two rows compared and the changes per task."""

    title: str
    a: ResultRow
    b: ResultRow
    deltas: tuple[Delta, ...]

    @property
    def confounds(self) -> tuple[str, ...]:
        """In what else than the paradigm the two differ."""
        return confounds(self.a.config, self.b.config)


@dataclass(frozen=True)
class Sharing:
    """The steps over one encoder."""

    block: str
    steps: tuple[Step, ...]

    @property
    def shares_nothing(self) -> bool:
        """Whether MTL shares nothing that is trained: the encoder is frozen, with nothing on top."""
        return any(
            step.a.config.paradigm == "mtl" and trains_heads_alone(step.a.config) for step in self.steps
        )


def sharing(table: ResultTable, baseline: str) -> list[Sharing]:
    """For each encoder the steps from STL to MTL to MRN that its rows allow; of several the most alike.

    `baseline` is the page's, whose differences verdicts are corrected for too.
    """
    found = []
    p_values = corrected(table, baseline)
    for block, pairs in steps(table).items():
        taken = tuple(_step(table, p_values, *pair) for pair in pairs)
        if any(step.deltas for step in taken):
            found.append(Sharing(block, taken))
    return found


def _step(table: ResultTable, p_values: Mapping[Pair, float], a: ResultRow, b: ResultRow) -> Step:
    deltas = []
    for one in answers(table, a.key, b.key, p_values):
        paired = one.difference
        if paired is None:
            continue
        low, high = (paired.low, paired.high) if paired.sd else (None, None)
        deltas.append(
            Delta(
                one.task,
                100 * paired.mean,
                None if low is None else 100 * low,
                None if high is None else 100 * high,
                one.verdict,
                one.sentence,
            )
        )
    title = f"{a.config.paradigm.upper()} − {b.config.paradigm.upper()}"
    return Step(title, a, b, tuple(deltas))


def sharing_sentence(found: Sharing, quoted: Callable[[str], str] = str) -> str:
    """What each step did, in one sentence. `quoted` writes tasks, which come from users."""
    return "; ".join(f"{step.title} {_did(step.deltas, quoted)}" for step in found.steps if step.deltas) + "."


def _did(deltas: Sequence[Delta], quoted: Callable[[str], str]) -> str:
    parts = []
    for kind, word in ((ABOVE, "raises"), (BELOW, "lowers")):
        told = [
            f"{quoted(one.task)} ({signed_points(one.points / 100)})" for one in deltas if one.verdict == kind
        ]
        if told:
            parts.append(f"{word} {all_of(told)}")
    return " and ".join(parts) if parts else "shows no difference"


# Every row's difference to a baseline on every task, tested over seeds and over sentences.


Tested = Randomised | str
"""What a test over sentences found, or why there is none, in words."""


@dataclass(frozen=True)
class Difference:
    """A row minus the baseline on one task. Both p are corrected for all differences shown (Holm): `p_seeds`
    as `dashboard.compare.views.corrected` says, `p_sentences` for those to the baseline.

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
    return text if one.p_seeds is None else f"{text}, p {p_text(one.p_seeds)}"


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
                Entry(p_text(one.p_seeds) or "–"),
                Entry(p_text(one.p_sentences) or "–"),
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
