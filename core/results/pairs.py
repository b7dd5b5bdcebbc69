"""Which rows of a table are compared first, and the seeds that they lack."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from core.config import OTHER, RunConfig
from core.results.choice import chosen_on_dev
from core.results.naming import confounds
from core.results.table import ResultRow, ResultTable


def default_pair(table: ResultTable) -> tuple[str, str] | None:
    """The two rows to compare first: MRN against MTL, else against STL, else the first two.

    Without STL, MRN is compared with the same MRN that relates nothing (`disjoint`), where both are there. Of
    several pairs, the one that differs in the fewest other fields, so that the paradigm is what is
    compared; then the one with the most seeds, then the best on dev.
    """
    if len(table.rows) < 2:
        return None
    mrn = rows_of(table.rows, "mrn")
    apart = [row for row in mrn if row.config.alignment == "disjoint"]
    pair = None if rows_of(table.rows, "stl") else most_alike([row for row in mrn if row not in apart], apart)
    if pair is not None and confounds(pair[0].config, pair[1].config) == ("alignment",):
        return pair[0].key, pair[1].key
    for a, b in (("mrn", "mtl"), ("mrn", "stl"), ("mtl", "stl")):
        if pair := most_alike(rows_of(table.rows, a), rows_of(table.rows, b)):
            return pair[0].key, pair[1].key
    first, second = table.rows[:2]
    return second.key, first.key


def rows_of(rows: Iterable[ResultRow], paradigm: str, encoder: str = "") -> list[ResultRow]:
    """The rows of this paradigm, and of this encoder where one is named."""
    return [row for row in rows if row.config.paradigm == paradigm and encoder in ("", row.config.encoder)]


def most_alike(
    firsts: Sequence[ResultRow], seconds: Sequence[ResultRow]
) -> tuple[ResultRow, ResultRow] | None:
    """The pair of rows that are most alike in all but the paradigm; None where one side has no row."""

    pairs = list(itertools.product(firsts, seconds))
    if not pairs:
        return None

    def likeness(pair: tuple[ResultRow, ResultRow]) -> tuple[int, int]:
        return -len(confounds(pair[0].config, pair[1].config)), min(pair[0].seeds, pair[1].seeds)

    likenesses = {index: likeness(pair) for index, pair in enumerate(pairs)}
    alike = [pairs[index] for index, value in likenesses.items() if value == max(likenesses.values())]
    return best_on_dev(alike) or alike[0]


def best_on_dev(pairs: Sequence[tuple[ResultRow, ResultRow]]) -> tuple[ResultRow, ResultRow] | None:
    """The pair whose rows have the highest dev scores; None where these cannot be compared (`dev_means`)."""
    if len(pairs) == 1:
        return pairs[0]
    on_dev = {
        index: {(side, task): scores for side, row in enumerate(pair) for task, scores in row.dev.items()}
        for index, pair in enumerate(pairs)
    }
    chosen = chosen_on_dev(on_dev)
    return None if chosen is None else pairs[chosen]


_USUAL, _FEW = 5, 3


def missing_seeds(rows: Sequence[ResultRow], configs: Mapping[int, RunConfig]) -> list[RunConfig]:
    """The runs of these rows with seeds that only other rows have.
    If all have the same one or two seeds, the seeds up to five. `configs` are the descriptions of the runs.
    """
    by_row = _by_seed(rows, configs)
    wanted = set().union(*by_row)
    if len(wanted) < _FEW and all(by_seed.keys() == wanted for by_seed in by_row):
        wanted |= set(itertools.islice(_unused(wanted), _USUAL - len(wanted)))
    return _with_seeds(by_row, sorted(wanted))


def further_seeds(
    rows: Sequence[ResultRow], configs: Mapping[int, RunConfig], more: int, task: str | None = None
) -> list[RunConfig]:
    """The runs that give these rows so many more seeds in common, of STL only those of the task if named.
    Seeds that some of the rows have come first. None where a row is of a system trained elsewhere.
    """
    if any(row.config.paradigm == OTHER for row in rows):
        return []
    by_row = _by_seed(rows, configs, task)
    every: set[int] = set().union(*by_row)
    lacking = [seed for seed in sorted(every) if any(seed not in by_seed for by_seed in by_row)]
    return _with_seeds(by_row, list(itertools.islice(itertools.chain(lacking, _unused(every)), more)))


def _by_seed(
    rows: Sequence[ResultRow], configs: Mapping[int, RunConfig], task: str | None = None
) -> list[dict[int, RunConfig]]:
    """The newest description with each seed, by row and tasks, since STL has a run for each task."""
    by_row: dict[tuple[str, tuple[str, ...]], dict[int, RunConfig]] = defaultdict(dict)
    for row in rows:
        if row.config.paradigm == OTHER:
            continue  # trained elsewhere
        scored = (cell.run_ids.values() for cell in row.cells.values())
        for run_id in sorted(itertools.chain(*scored, *row.undefined.values())):
            if task is None or task in configs[run_id].tasks:
                by_row[row.key, configs[run_id].tasks][configs[run_id].seed] = configs[run_id]
    return list(by_row.values())


def _unused(seeds: Collection[int]) -> Iterator[int]:
    return (seed for seed in itertools.count(1) if seed not in seeds)


def _with_seeds(by_row: Sequence[Mapping[int, RunConfig]], seeds: Sequence[int]) -> list[RunConfig]:
    return [
        [*by_seed.values()][-1].with_(seed=seed)
        for by_seed in by_row
        for seed in seeds
        if seed not in by_seed
    ]
