"""The differences that Compare shows, between two configurations and over one encoder.

Tested over seeds (paired t-test), corrected for all rows on a task, and over sentences (randomisation).
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from core.config import RunConfig, shares_nothing
from core.registry import ONE_STACK, reads_words
from core.results.choice import chosen_on_dev
from core.results.comparisons import Difference, answers
from core.results.figures import Forest, forest_of
from core.results.naming import confounds, fields_apart
from core.results.series import Series
from core.results.table import ResultRow, ResultTable
from core.wording import all_of, without_shared
from jobs.reports.parts import Entry, Sheet, difference_entry, p_entry


def default_pair(table: ResultTable) -> tuple[str, str] | None:
    """The two rows to compare first: MRN against MTL, else against STL, else the first two.

    Without STL, MRN is compared with the same MRN that relates nothing (`disjoint`), where both are there. Of
    several pairs, the one that differs in the fewest other fields, so that the paradigm is what is
    compared; then the one with the most seeds, then the best on dev.
    """
    if len(table.rows) < 2:
        return None
    mrn = _rows_of(table.rows, "mrn")
    apart = [row for row in mrn if row.config.alignment == "disjoint"]
    pair = (
        None if _rows_of(table.rows, "stl") else _most_alike([row for row in mrn if row not in apart], apart)
    )
    if pair is not None and confounds(pair[0].config, pair[1].config) == ("alignment",):
        return pair[0].key, pair[1].key
    for a, b in (("mrn", "mtl"), ("mrn", "stl"), ("mtl", "stl")):
        if pair := _most_alike(_rows_of(table.rows, a), _rows_of(table.rows, b)):
            return pair[0].key, pair[1].key
    first, second = table.rows[:2]
    return second.key, first.key


def _rows_of(rows: Iterable[ResultRow], paradigm: str, encoder: str = "") -> list[ResultRow]:
    """The rows of this paradigm, and of this encoder where one is named."""
    return [row for row in rows if row.config.paradigm == paradigm and encoder in ("", row.config.encoder)]


def _most_alike(
    firsts: Sequence[ResultRow], seconds: Sequence[ResultRow]
) -> tuple[ResultRow, ResultRow] | None:
    """The pair of rows that are most alike in all but the paradigm; None where one side has no row."""

    pairs = list(itertools.product(firsts, seconds))
    if not pairs:
        return None

    def likeness(pair: tuple[ResultRow, ResultRow]) -> tuple[int, int]:
        return -len(confounds(pair[0].config, pair[1].config)), min(pair[0].seeds, pair[1].seeds)

    known = {index: likeness(pair) for index, pair in enumerate(pairs)}
    alike = [pairs[index] for index, value in known.items() if value == max(known.values())]
    return _best_on_dev(alike) or alike[0]


def _best_on_dev(pairs: Sequence[tuple[ResultRow, ResultRow]]) -> tuple[ResultRow, ResultRow] | None:
    """The pair whose rows have the highest dev scores; None where these cannot be compared (`dev_means`)."""
    if len(pairs) == 1:
        return pairs[0]
    on_dev = {
        index: {(side, task): scores for side, row in enumerate(pair) for task, scores in row.dev.items()}
        for index, pair in enumerate(pairs)
    }
    chosen = chosen_on_dev(on_dev)
    return None if chosen is None else pairs[chosen]


def _steps(table: ResultTable) -> Iterator[tuple[ResultRow, ResultRow] | None]:
    """The steps of sharing for each encoder, each between the most similar rows.
    They are MTL over STL, MTL over MTL with one stack for all tasks, and MRN over MTL. An encoder without STL
    takes that of its family.
    """
    for rows in table.blocks.values():
        for encoder in dict.fromkeys(row.config.encoder for row in rows):
            stl, mtl, mrn = (_rows_of(rows, paradigm, encoder) for paradigm in ("stl", "mtl", "mrn"))
            yield _most_alike(mtl, stl or _rows_of(rows, "stl"))
            if encoder != ONE_STACK:
                yield _most_alike(mtl, _rows_of(rows, "mtl", ONE_STACK))
            yield _most_alike(mrn, mtl)


def _transformer_pair(table: ResultTable) -> tuple[ResultRow, ResultRow] | None:
    """The best rows on dev with and without a transformer, of the pairs with the most common tasks.

    None where dev cannot choose between several.
    """
    over_words = [row for row in table.rows if row.config.transformer is None]
    over_transformers = [row for row in table.rows if row.config.transformer is not None]
    pairs = list(itertools.product(over_transformers, over_words))
    shared = [len(a.cells.keys() & b.cells.keys()) for a, b in pairs]
    most = [pair for pair, count in zip(pairs, shared, strict=True) if count == max(shared)]
    return _best_on_dev(most) if most else None


def series_names(found: Sequence[Series]) -> list[str]:
    """A distinct name of each: its setting, and where several have that the fields in which they differ."""
    same: dict[str, list[RunConfig]] = defaultdict(list)
    for series in found:
        same[series.setting].append(series.config)
    apart = {setting: list(fields_apart(configs)) for setting, configs in same.items()}
    names = []
    for series in found:
        configs = same[series.setting]
        place = configs.index(series.config)
        differing = [
            texts[place]
            for field, texts in apart[series.setting]
            if field not in ("paradigm", series.setting)
        ]
        more = [series.config.paradigm.upper(), *filter(None, differing)] if len(configs) > 1 else []
        names.append(" · ".join([series.title, *more]))
    taken = Counter(names)
    return [name if taken[name] == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


_USUAL, _FEW = 5, 3


def missing_seeds(rows: Sequence[ResultRow], configs: Mapping[int, RunConfig]) -> list[RunConfig]:
    """The runs of these rows with seeds that only other rows have.
    If all have the same one or two seeds, the seeds up to five. `configs` are the descriptions of the runs.
    """
    known = _by_seed(rows, configs)
    wanted = set().union(*known)
    if len(wanted) < _FEW and all(by_seed.keys() == wanted for by_seed in known):
        wanted |= set(itertools.islice(_unused(wanted), _USUAL - len(wanted)))
    return _with_seeds(known, sorted(wanted))


def further_seeds(
    rows: Sequence[ResultRow], configs: Mapping[int, RunConfig], more: int, task: str | None = None
) -> list[RunConfig]:
    """The runs that give these rows so many more seeds in common, of STL only those of the task if named.
    Seeds that some of the rows have come first.
    """
    known = _by_seed(rows, configs, task)
    every = set().union(*known)
    lacking = sorted(every - set.intersection(*map(set, known))) if known else []
    return _with_seeds(known, list(itertools.islice(itertools.chain(lacking, _unused(every)), more)))


def _by_seed(
    rows: Sequence[ResultRow], configs: Mapping[int, RunConfig], task: str | None = None
) -> list[dict[int, RunConfig]]:
    """The newest description with each seed, by row and tasks, since STL has a run for each task."""
    known: dict[tuple[str, tuple[str, ...]], dict[int, RunConfig]] = defaultdict(dict)
    for row in rows:
        scored = (cell.run_ids.values() for cell in row.cells.values())
        for run_id in sorted(itertools.chain(*scored, *row.undefined.values())):
            if task is None or task in configs[run_id].tasks:
                known[row.key, configs[run_id].tasks][configs[run_id].seed] = configs[run_id]
    return list(known.values())


def _unused(seeds: Collection[int]) -> Iterator[int]:
    return (seed for seed in itertools.count(1) if seed not in seeds)


def _with_seeds(known: Sequence[Mapping[int, RunConfig]], seeds: Sequence[int]) -> list[RunConfig]:
    return [
        next(reversed(by_seed.values())).with_(seed=seed)
        for by_seed in known
        for seed in seeds
        if seed not in by_seed
    ]


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


# What sharing did: MTL − STL and MRN − MTL per task, encoder by encoder; and words against a transformer


@dataclass(frozen=True)
class Step:
    """Two rows that a question compares, and their difference on each task.
    A step goes from one paradigm to the next, from one stack for all tasks to another encoder over the same
    words, or from words to a transformer.
    """

    a: ResultRow
    b: ResultRow
    deltas: tuple[Difference, ...]
    asks_transformer: bool = False

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
        return self.a.config.paradigm == "mtl" and shares_nothing(self.a.config)


def sharing(table: ResultTable) -> list[Step]:
    """Returns the steps from STL to MTL to MRN of each encoder, between its most similar rows.
    The last step is the transformer against word vectors, if there are both.
    """
    pairs = [*((pair, False) for pair in _steps(table)), (_transformer_pair(table), True)]
    steps = (
        Step(
            *pair, tuple(delta for delta in answers(table, *(row.key for row in pair)) if delta.paired), asks
        )
        for pair, asks in pairs
        if pair is not None
    )
    return [step for step in steps if step.deltas]


def sharing_forest(steps: Sequence[Step], tasks: Sequence[str]) -> Forest:
    """The steps, named by their encoders where there are several, and their differences on each task."""
    several = len({(step.a.block, step.a.config.encoder) for step in steps}) > 1

    def name(step: Step) -> str:
        if not several or step.other_encoder:
            return step.title
        encoder = step.a.config.encoder
        return f"{step.title} · {encoder if reads_words(encoder) else step.a.block}"

    return forest_of({name(step): step.deltas for step in steps}, tasks, "the second of each pair")


def difference_sheet(
    differences: Sequence[Difference],
    table: ResultTable,
    baseline: str,
    setting: str,
    *,
    on_page: bool = False,
) -> Sheet:
    """A line per configuration and task; on a page with remarks on the verdicts and short names of tasks."""
    tasks = without_shared(table.tasks) if on_page else {task: task for task in table.tasks}
    lines = []
    for delta in differences:
        p_values = map(p_entry, (delta.p, delta.p_sentences))
        verdict = f"{delta.verdict} ({delta.remark})" if on_page and delta.remark else delta.verdict
        seeds = Entry(delta.seeds, form="d")
        lines.append(
            (delta.row.name, tasks[delta.task], difference_entry(delta, bold=True), verdict, seeds, *p_values)
        )
    sheet = Sheet.of(
        ("Configuration", "Task", "Difference, 95% interval", "Verdict", "Seeds", "p seeds", "p sentences"),
        lines,
        f"{setting}, {table.split} sentences: differences from {table.row(baseline).name} in points, paired "
        "by seed. p seeds: paired t-test over seeds; p sentences: approximate randomisation over sentences; "
        "the first corrected for all pairs of rows on a task, the second for all differences shown (Holm).",
    )
    return replace(sheet, bold="higher than the baseline by the corrected p over seeds.")
