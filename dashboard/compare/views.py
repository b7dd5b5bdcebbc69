"""The differences that Compare shows, between two configurations and over one encoder.

Tested over seeds (paired t-test), corrected for all rows on a task, and over sentences (randomisation).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from core.config import shares_nothing
from core.registry import ONE_STACK, reads_words
from core.results.comparisons import Difference, answers, mean_answer
from core.results.figures import Forest, forest_of
from core.results.naming import confounds
from core.results.pairs import best_on_dev, most_alike, rows_of
from core.results.table import ResultRow, ResultTable
from core.wording import all_of, without_shared
from jobs.reports.parts import Entry, Sheet, score_entry


def _steps(table: ResultTable) -> Iterator[tuple[ResultRow, ResultRow] | None]:
    """The steps of sharing for each encoder, each between the most similar rows.
    They are MTL over STL, MTL over MTL with one stack for all tasks, MRN over MTL, and MRN over STL. An
    encoder without STL takes that of its family.
    """
    for rows in table.blocks.values():
        for encoder in dict.fromkeys(row.config.encoder for row in rows):
            stl, mtl, mrn = (rows_of(rows, paradigm, encoder) for paradigm in ("stl", "mtl", "mrn"))
            yield most_alike(mtl, stl or rows_of(rows, "stl"))
            if encoder != ONE_STACK:
                yield most_alike(mtl, rows_of(rows, "mtl", ONE_STACK))
            yield most_alike(mrn, mtl)
            yield most_alike(mrn, stl or rows_of(rows, "stl"))


def _transformer_pair(table: ResultTable) -> tuple[ResultRow, ResultRow] | None:
    """The best rows on dev with and without a transformer, of the pairs with the most common tasks.

    None where dev cannot choose between several.
    """
    over_words = [row for row in table.rows if row.config.transformer is None]
    over_transformers = [row for row in table.rows if row.config.transformer is not None]
    pairs = list(itertools.product(over_transformers, over_words))
    shared = [len(a.cells.keys() & b.cells.keys()) for a, b in pairs]
    most = [pair for pair, count in zip(pairs, shared, strict=True) if count == max(shared)]
    return best_on_dev(most) if most else None


def candidate_sheet(table: ResultTable, row: ResultRow) -> Sheet:
    """The candidates of a method with the mean dev score by which one was chosen (bold), and their scores."""
    short = without_shared(table.tasks)
    lines = [
        (
            of.label,
            Entry(100 * row.dev_means[of.key], bold=of.key == row.key) if of.key in row.dev_means else None,
            *(
                score_entry(of.cells[task].summary, table.scored_by[task]) if task in of.cells else None
                for task in table.tasks
            ),
        )
        for of in row.candidates
    ]
    return Sheet.of(
        ("Candidate", "Mean dev score", *(f"{short[task]}, {table.split}" for task in table.tasks)), lines
    )


def family_text(table: ResultTable) -> str:
    """Which differences the correction counts: `all 3 tested pairs of rows on a task`."""
    if table.tests < 2:
        return "the one pair of rows on a task"
    if table.baseline is None:
        return f"all {table.tests} tested pairs of rows on a task"
    return f"the {table.tests} tested differences from {table.row(table.baseline).name} on a task"


def per_seed(table: ResultTable) -> pd.DataFrame:
    """A line per configuration and seed, a column per task: scores in percent."""
    return pd.DataFrame(
        {"configuration": row.name, "seed": seed}
        | {
            task: 100 * row.cells[task].by_seed[seed]
            if task in row.cells and seed in row.cells[task].by_seed
            else None
            for task in table.tasks
        }
        for row in table.rows
        for seed in sorted({seed for cell in row.cells.values() for seed in cell.by_seed})
    )


def listed_seeds(seeds: Iterable[int]) -> str:
    """`seed 2`, `seeds 2 to 5`, `seeds 2, 4 and 5`."""
    known = sorted(seeds)
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"seeds {known[0]} to {known[-1]}"
    return f"seed{'s' * (len(known) > 1)} {all_of([str(seed) for seed in known])}"


# What sharing did, per task and encoder by encoder; and words against a transformer


@dataclass(frozen=True)
class Step:
    """Two rows that a question compares, and their difference on each task.
    A step goes from one paradigm to another, from one stack for all tasks to another encoder over the same
    words, from words to a transformer, or is what the reader asked.
    """

    a: ResultRow
    b: ResultRow
    deltas: tuple[Difference, ...]
    asks_transformer: bool = False
    mean: Difference | None = None
    is_of_sharing: bool = True

    @property
    def with_mean(self) -> tuple[Difference, ...]:
        """Its difference on each task, and in the mean of tasks where there is one."""
        return self.deltas if self.mean is None else (*self.deltas, self.mean)

    @property
    def title(self) -> str:
        """Both paradigms: `MTL − STL`; with the encoders where these differ: `MTL sc-lstm − STL bilstm`."""
        sides = (self.a.config, self.b.config)
        return " − ".join(side.paradigm.upper() + f" {side.encoder}" * self.other_encoder for side in sides)

    @property
    def other_encoder(self) -> bool:
        """Whether the two rows have different encoders."""
        return self.a.config.encoder != self.b.config.encoder

    @property
    def confounds(self) -> tuple[str, ...]:
        """The fields in which the rows differ, except the fields in the title."""
        compared = ("encoder_training", "context_encoder") if self.asks_transformer else ()
        return confounds(self.a.config, self.b.config, ("paradigm", "encoder", *compared))

    @property
    def shares_nothing(self) -> bool:
        """Whether it is of MTL that shares nothing trained."""
        sides = {side.paradigm: side for side in (self.b.config, self.a.config)}
        return "mtl" in sides and "mrn" not in sides and shares_nothing(sides["mtl"])


def sharing(table: ResultTable, asked: tuple[str, str] | None = None) -> list[Step]:
    """Returns the steps from STL to MTL to MRN of each encoder, between its most similar rows.
    The last step is the transformer against word vectors, if there are both. The first step is between the
    rows of the keys `asked`, from the second to the first, as the reader asked.
    """
    of_sharing = [pair for pair in _steps(table) if pair is not None]
    pairs = [(a.key, b.key) for a, b in of_sharing]
    transformer = _transformer_pair(table)

    def step(a: str, b: str, *, asks_transformer: bool = False) -> Step:
        is_of_sharing = not {(a, b), (b, a)}.isdisjoint(pairs)
        deltas = tuple(delta for delta in answers(table, a, b) if delta.paired or (a, b) == asked)
        mean = mean_answer(table, a, b)
        return Step(table.row(a), table.row(b), deltas, asks_transformer, mean, is_of_sharing)

    others = [pair for pair in pairs if asked is None or {*pair} != {*asked}]
    steps = [step(*pair) for pair in ([] if asked is None else [asked]) + others]
    if transformer is not None:
        steps.append(step(*(row.key for row in transformer), asks_transformer=True))
    return [step for step in steps if step.deltas]


def signed_as(steps: Sequence[Step], differences: Iterable[Difference]) -> list[Difference]:
    """These differences, turned where a step is the same the other way round: one sign for one difference."""
    of_steps = {(step.a.key, step.b.key) for step in steps}
    return [
        delta.reversed() if (delta.base.key, delta.row.key) in of_steps else delta for delta in differences
    ]


def sharing_forest(steps: Sequence[Step], tasks: Sequence[str]) -> Forest:
    """The steps, named by their encoders where there are several, and their differences on each task.

    Where one is no step of sharing, each is named by its rows.
    """
    several = len({(step.a.block, step.a.config.encoder) for step in steps}) > 1

    def name(step: Step) -> str:
        if not all(each.is_of_sharing for each in steps):
            return step.deltas[0].title
        if not several or step.other_encoder:
            return step.title
        encoder = step.a.config.encoder
        return f"{step.title} · {encoder if reads_words(encoder) else step.a.block}"

    reference = steps[0].b.name if len(steps) == 1 else "the second of each pair"
    return forest_of({name(step): step.with_mean for step in steps}, tasks, reference)
