"""The relations of configurations over their seeds, with verdicts and the controls that these rest on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation.relation_verdicts import (
    BOUND,
    NEGLIGIBLE,
    OPPOSED,
    RELATED,
    UNDECIDED,
    Bools,
    CellVerdict,
    Floats,
    RelationVerdicts,
    relation_verdicts,
)
from core.mrn.relations import Relations, impossible_blocks, row_names
from core.results.naming import group_names
from core.results.samples import by_configuration, one_per_seed, readable
from core.store import Run, RunState, RunWithFacts, Store
from core.wording import all_of, capitalised, plural

VERDICT_MODES = ("task", "label")
"""The kinds of rows that have verdicts: features belong to no task."""
_BETWEEN = {False: ("pair", "pairs"), True: ("pair between tasks", "pairs between tasks")}
_MOST_NAMED, _ROOM = 3, 90
_MANY = 8
"""Of so many pairs the row that most of them have says more than the strongest."""
"""A headline names so many pairs of a verdict, whose names have so many characters in all."""
RELATION_COLUMNS = (
    "configuration", "mode", "first", "second", "mean", "low", "high", "seeds", "p_holm", "verdict",
    "control",
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """The rows that all seeds have: their names, the tasks that own each, the places (s, n) in each seed."""

    names: tuple[str, ...]
    owners: tuple[tuple[str, ...], ...]
    places: NDArray[np.int64]


@dataclass(frozen=True)
class Hub:
    """A row that most cells of a verdict have, and its `partners` in them.

    `as_strong` are rows of the same task with as large a mean correlation with these partners, the largest
    first, whose cells are mostly undecided because their seeds differ more.
    """

    row: int
    partners: NDArray[np.int64]
    as_strong: tuple[int, ...]


@dataclass(frozen=True)
class RelationTable:
    """The relations of one configuration: its seeds, its rows and their verdicts.

    `controls` has for each permuted task the seeds with a control. `alone` (n, n) are the correlations that
    the `alignment` alone gives, None where it gives none or they are not recorded.
    """

    name: str
    mode: str
    run_ids: tuple[int, ...]
    rows: Rows
    verdicts: RelationVerdicts
    controls: Mapping[str, int]
    alone: Floats | None = None
    alignment: str | None = None

    @property
    def cells(self) -> Iterable[CellVerdict]:
        """The tested cells, the strongest first."""
        return self.verdicts.cells()

    @property
    def beyond(self) -> list[CellVerdict]:
        """The related cells, without those that the alignment alone relates as far; of labels those first
        that are furthest beyond it."""
        alone, not_learned = self.alone, counted(self.verdicts, self.alone)
        related = [c for c in self.cells if c.verdict == RELATED and not not_learned[c.i, c.j]]
        return related if alone is None else sorted(related, key=lambda c: alone[c.i, c.j] - c.mean)

    def decided(self, verdict: str) -> list[CellVerdict]:
        """The cells of a verdict that a headline counts: of related ones those `beyond` the alignment."""
        return self.beyond if verdict == RELATED else [c for c in self.cells if c.verdict == verdict]

    def hub(self, verdict: str) -> Hub | None:
        """The row that most of many cells of a verdict have, if there is one."""
        cells = self.decided(verdict)
        counts = Counter(place for cell in cells for place in (cell.i, cell.j))
        row, count = counts.most_common(1)[0] if counts else (0, 0)
        if not _MANY <= len(cells) < 2 * count:
            return None
        with_row = [(cell.i, cell.j) for cell in cells if row in (cell.i, cell.j)]
        partners = np.array([i + j - row for i, j in with_row])
        return Hub(row, partners, self._as_strong(row, partners))

    def _as_strong(self, row: int, partners: NDArray[np.int64]) -> tuple[int, ...]:
        of = self.verdicts
        means, widths = of.mean[:, partners].mean(axis=1), of.widths[:, partners].mean(axis=1)
        undecided = (of.tested & (of.verdict == UNDECIDED))[:, partners].mean(axis=1) > 0.5
        as_large = (np.sign(means) == np.sign(means[row])) & (np.abs(means) >= np.abs(means[row]))
        places = np.flatnonzero(as_large & undecided & (widths > widths[row])).tolist()
        of_task = [place for place in places if self.rows.owners[place] == self.rows.owners[row]]
        return tuple(sorted(of_task, key=lambda place: -abs(means[place])))

    @property
    def headline(self) -> str:
        """What is decided, in a sentence or two."""
        return headline(self)

    @property
    def pairs(self) -> str:
        """How many pairs are tested: `909 pairs between tasks`."""
        apart = self.mode == "label" and not any(
            {*self.rows.owners[cell.i]} & {*self.rows.owners[cell.j]} for cell in self.cells
        )
        return plural(int(np.triu(self.verdicts.tested, 1).sum()), *_BETWEEN[apart])

    @property
    def basis(self) -> str:
        """What the verdicts rest on, in a sentence."""
        return basis(self.verdicts, self.controls)

    @property
    def records(self) -> list[dict[str, object]]:
        """A record of RELATION_COLUMNS for each tested cell."""
        records: list[dict[str, object]] = []
        for cell in self.cells:
            low, high = cell.interval or (None, None)
            values = (
                *(self.name, self.mode, self.rows.names[cell.i], self.rows.names[cell.j], cell.mean),
                *(low, high, self.verdicts.seeds, cell.p, cell.verdict, cell.controlled),
            )
            records.append(dict(zip(RELATION_COLUMNS, values, strict=True)))
        return records


def aligned_alone(runs: Sequence[RunWithFacts], places: Sequence[NDArray[np.int64]]) -> Floats | None:
    """The label correlations (n, n) that the alignments of these runs alone give, their mean.

    `places` (s, n) are those of the rows in each run. None where one of them is not known, and where an
    alignment relates no label to another by itself.
    """
    matrices = [np.array(run.facts.aligned if run.facts else ()) for run in runs]
    if not all(map(np.size, matrices)):
        return None
    of_runs = zip(matrices, places, strict=True)
    return np.asarray(np.mean([matrix[np.ix_(at, at)] for matrix, at in of_runs], axis=0))


def counted(verdicts: RelationVerdicts, alone: Floats | None) -> Bools:
    """(n, n): the related cells whose mean is hardly beyond what the alignment alone gives, if that is known.

    They were counted by the alignment, not learned.
    """
    if alone is None:
        return np.zeros(verdicts.tested.shape, dtype=bool)
    return np.asarray((verdicts.verdict == RELATED) & (verdicts.mean - alone < BOUND))


def headline(table: RelationTable, quoted: Callable[[str], str] = str) -> str:
    """Which cells are decided, with their counts, the strongest by name; nothing of what is undecided.

    Where the correlations of the alignment alone are known, related are those beyond it, and more of them
    than fit are not named. Of many pairs, the row that most of them have is named instead.
    `quoted` escapes names, which come from users.
    """
    verdicts, names, alone = table.verdicts, table.rows.names, table.alone
    tested = sum(1 for _ in verdicts.cells())
    if not tested:
        return "No relation between tasks could be learned."
    if verdicts.seeds < 2:
        return "Nothing is decided: there is one seed."
    if tested == 1 and (cell := next(verdicts.cells())).is_decided:
        what = "have no relation that matters" if cell.verdict == NEGLIGIBLE else f"are {cell.verdict}"
        return f"{quoted(names[cell.i])} and {quoted(names[cell.j])} {what}: {_interval(cell)}."
    parts: list[str] = []
    of_labels = alone is not None
    for verdict in (RELATED, OPPOSED):
        of_verdict, hub = table.decided(verdict), table.hub(verdict)
        many = f"{len(of_verdict) or 'none'}"
        if of_labels:
            among = "" if parts else f" of {plural(tested, 'pair of labels', 'pairs of labels')}"
            are = f"{many}{among} came out {verdict}"
            are += f" more than {_explains(table.alignment)}" * (verdict == RELATED)
        else:
            are = f"{many} {'is' if len(of_verdict) == 1 else 'are'} {verdict}"
        shown = _that_fit([(names[cell.i], names[cell.j]) for cell in of_verdict])
        if hub is not None:
            parts.append(f"{are}, {len(hub.partners)} of them with {quoted(names[hub.row])}")
        elif of_labels and verdict == RELATED and len(shown) < len(of_verdict):
            parts.append(are)
        elif of_verdict:
            written = _interval
            if len(shown) < len(of_verdict):
                shown, written = shown[:1], _mean
            pairs = [
                f"{quoted(a)} and {quoted(b)} ({written(cell)})"
                for (a, b), cell in zip(shown, of_verdict, strict=False)
            ]
            first = ", the strongest" if len(of_verdict) > len(shown) else ":"
            parts.append(f"{are}{first} {all_of(pairs)}")
        elif verdict == RELATED and counted(verdicts, alone).any():
            parts.append(are)
    if count := verdicts.count(NEGLIGIBLE):
        parts.append(f"{count} {'has' if count == 1 else 'have'} no relation that matters")
    if not parts:
        return f"None of {table.pairs} is decided."
    text = "; ".join(parts)
    return f"{capitalised(text)}." if of_labels else f"Of {table.pairs} {text}."


def _explains(alignment: str | None) -> str:
    return "their words in common explain" if alignment == "cooccurrence" else "the alignment explains"


def headline_of(tables: Sequence[RelationTable], quoted: Callable[[str], str] = str) -> str:
    """`headline` of one configuration; of several, in how many of them which pairs are decided."""
    if len(tables) == 1:
        return headline(tables[0], quoted)
    if all(table.verdicts.seeds < 2 for table in tables):
        return "Nothing is decided: each configuration has one seed."
    tested: set[frozenset[str]] = set()
    decided: dict[str, dict[frozenset[str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for table in tables:
        for cell in table.cells:
            pair = frozenset((table.rows.names[cell.i], table.rows.names[cell.j]))
            tested.add(pair)
            if cell.is_decided:
                decided[cell.verdict][pair].append(abs(cell.mean))
    order = {name: place for table in reversed(tables) for place, name in enumerate(table.rows.names)}
    parts: list[str] = []
    for verdict in (RELATED, OPPOSED):
        ranked = sorted(decided[verdict].items(), key=lambda each: (-len(each[1]), -max(each[1])))
        pairs = [(*sorted(pair, key=order.__getitem__),) for pair, _ in ranked]
        shown = _that_fit(pairs)
        of_shown = zip(shown, (len(sizes) for _, sizes in ranked), strict=False)
        for count, some in groupby(of_shown, key=lambda each: each[1]):
            named = [f"{quoted(a)} and {quoted(b)}" for (a, b), _ in some]
            share = _share(count, len(tables), counts=not parts)
            parts.append(f"{verdict} in {share}: {', '.join(named)}")
        if more := len(pairs) - len(shown):
            parts[-1] += f" and {plural(more, 'more pair')}"
    negligible = [len(sizes) for sizes in decided[NEGLIGIBLE].values()]
    if count := negligible.count(len(tables)):
        have = "has" if count == 1 else "have"
        of = f"{len(tables)}{'' if parts else ' configurations'}"
        parts.append(f"{plural(count, 'pair')} {have} no relation that matters in any of {of}")
    if not parts:
        return f"None of {plural(len(tested), 'pair')} is decided in any of {len(tables)} configurations."
    return f"{capitalised('; '.join(parts))}."


def _share(count: int, every: int, *, counts: bool) -> str:
    """`all 5`, `2 of 5`; the share that `counts` says of what."""
    share = f"{count} of {every}" if count < every else "both" if every == 2 else f"all {every}"
    return f"{share}{' configurations' * counts}"


def _that_fit(pairs: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """The first pairs whose names fit into a headline, at least one."""
    lengths = accumulate(sum(map(len, pair)) for pair in pairs[:_MOST_NAMED])
    return pairs[: max(1, sum(length <= _ROOM for length in lengths))]


def _text(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def _mean(cell: CellVerdict) -> str:
    return _text(cell.mean)


def _interval(cell: CellVerdict) -> str:
    if cell.interval is None:
        return _mean(cell)
    low, high = cell.interval
    return f"{_mean(cell)} [{_text(low)}, {_text(high)}]"


def basis(verdicts: RelationVerdicts, controls: Mapping[str, int]) -> str:
    """Whether verdicts are against the bound alone or against controls too, in a sentence."""
    text = f"Against ±{BOUND:g} over {plural(verdicts.seeds, 'seed')}, corrected over all pairs tested"
    tested = int(np.triu(verdicts.tested, 1).sum())
    controlled = int(np.triu(verdicts.controlled, 1).sum())
    if not controlled:
        return f"{text}; no controls with shuffled labels."
    which = all_of([f"{task} permuted ({plural(seeds, 'seed')})" for task, seeds in controls.items()])
    return f"{text}; {controlled} of {tested} against controls too: {which}."


def basis_of(tables: Sequence[RelationTable]) -> str:
    """`basis` of one configuration, or of several in a sentence."""
    if len(tables) == 1:
        return tables[0].basis
    seeds = sorted({table.verdicts.seeds for table in tables})
    count = plural(seeds[-1], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    controlled = sum(bool(table.verdicts.controlled.any()) for table in tables)
    controls = (
        f"controls of {controlled} of {len(tables)}" if controlled else "no controls with shuffled labels"
    )
    return (
        f"Against ±{BOUND:g} over {count} of each configuration, corrected over all pairs of each; "
        f"{controls}."
    )


def shared(matrices: Sequence[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]]) -> Rows:
    """The rows of the first matrix that all of them have, by name. Each has names and owners."""
    common = set(matrices[0][0]).intersection(*(names for names, _ in matrices[1:]))
    kept = [place for place, name in enumerate(matrices[0][0]) if name in common]
    names = tuple(matrices[0][0][place] for place in kept)
    where = [{name: place for place, name in enumerate(of_run)} for of_run, _ in matrices]
    places = np.array([[of[name] for name in names] for of in where], dtype=np.int64)
    return Rows(names, tuple(matrices[0][1][place] for place in kept), places.reshape(len(matrices), -1))


def tested_cells(runs: Sequence[RunWithFacts], mode: str, rows: Rows) -> Bools:
    """(n, n) the cells whose verdicts are a family: pairs of rows of different tasks.

    Where no pair is between tasks, because tasks share their rows, it is all pairs. Left out are pairs that
    the alignment of a run fixes, and labels without training words.
    """
    size = len(rows.names)
    possible = ~np.eye(size, dtype=bool)
    for run, places in zip(runs, rows.places, strict=True):
        for block in impossible_blocks(run.facts, mode, rows.owners):
            possible[block.top : block.bottom, block.left : block.right] = False
        counted = run.facts.cooccurrence if run.facts and mode == "label" else ()
        if counted:  # a label without words correlates with nothing, not even with itself
            seen = np.diagonal(np.array(counted))[places] > 0
            possible &= seen[:, None] & seen
    between = possible & ~np.array(
        [[bool({*a} & {*b}) for b in rows.owners] for a in rows.owners], dtype=bool
    ).reshape(size, size)
    return between if between.any() else possible


def control_of(config: RunConfig, task: str) -> RunConfig:
    """The control of a run in which that task's training labels are permuted."""
    return config.with_(permuted=task)


def controls_of(store: Store, runs: Sequence[Run]) -> dict[str, dict[int, Run]]:
    """The finished controls of runs of one configuration: by permuted task and seed, the newest of each.

    Nothing but descriptions is read: the control of a task has a description of its own.
    """
    config = runs[0].config
    if config.permuted is not None:
        return {}
    by_configuration = {control_of(config, task).configuration_id: task for task in config.tasks}
    controls: dict[str, dict[int, Run]] = {}
    stored = readable(store.runs_of(list(by_configuration), {RunState.SUCCEEDED}))[0]
    for run in one_per_seed(stored, store.conditions(stored)):
        controls.setdefault(by_configuration[run.configuration_id], {})[run.config.seed] = run
    return {task: controls[task] for task in config.tasks if task in controls}


def control_configs(runs: Sequence[Run], tasks: Collection[str]) -> list[RunConfig]:
    """The controls of these runs, one for each of these tasks and seed.

    Raises MRNLabError for a task that a run does not learn, and for a run that is a control or not MRN.
    """
    configs = []
    for run in runs:
        if run.config.paradigm != "mrn":
            name = run.config.paradigm.upper()
            raise MRNLabError(f"Run {run.id} is {name}; only MRN runs learn relations.")
        if run.config.permuted is not None:
            raise MRNLabError(f"Run {run.id} is a control itself; name the runs that it is a control of.")
        for task in tasks:
            if task not in run.config.tasks:
                names = ", ".join(run.config.tasks)
                raise MRNLabError(f"Run {run.id} has no task '{task}' to permute; its tasks are {names}.")
            configs.append(control_of(run.config, task))
    return list(dict.fromkeys(configs))


def control_values(
    controls: Mapping[str, Mapping[int, tuple[RunWithFacts, Relations]]],
    seeds: Sequence[int],
    mode: str,
    rows: Rows,
) -> Floats:
    """(s, n, n) the correlations of the controls with these seeds, NaN where a cell has none.

    A cell is controlled where the labels of one of its tasks are permuted. Of two controls the correlation
    of larger size counts, so a relation must exceed both.
    """
    size = len(rows.names)
    values = np.full((len(seeds), size, size), np.nan)
    for task, by_seed in controls.items():
        owned = np.array([task in owners for owners in rows.owners], dtype=bool)
        cells = owned[:, None] | owned
        for of_seed, seed in zip(values, seeds, strict=True):
            if seed not in by_seed:
                continue
            run, learned = by_seed[seed]
            matrix = learned.correlation(mode)
            names = row_names(run.facts, run.config.tasks, mode, len(matrix))[0]
            where = {name: place for place, name in enumerate(names)}
            here = [place for place, name in enumerate(rows.names) if name in where]
            there = [where[rows.names[place]] for place in here]
            of_control = np.full((size, size), np.nan)
            of_control[np.ix_(here, here)] = matrix[np.ix_(there, there)]
            takes = cells & ~(np.abs(of_control) <= np.abs(of_seed)) & np.isfinite(of_control)
            of_seed[takes] = of_control[takes]
    return values


def relation_tables(
    store: Store, run_ids: Collection[int] | None = None, mode: str = "task"
) -> list[RelationTable]:
    """The relations at the last step of these MRN runs (of all that succeeded), a table a configuration.

    Of each seed the newest successful run counts, as in every table; one snapshot a run is read. Controls
    belong to the configuration that they are a control of, whether they are named or not. Raises MRNLabError
    for another mode, and where none of the runs has relations.
    """
    if mode not in VERDICT_MODES:
        raise MRNLabError(f"mode: '{mode}' has no verdicts; name one of {', '.join(VERDICT_MODES)}.")
    runs = readable(store.runs(run_ids, states={RunState.SUCCEEDED}))[0]
    runs = [run for run in runs if run.config.paradigm == "mrn" and run.config.permuted is None]
    counted = one_per_seed(runs, store.conditions(runs))
    groups = [same for same in by_configuration(counted).values() if mode in same[0].config.learned]
    if not groups:
        raise MRNLabError(
            f"None of these runs is a finished MRN run that learned relations of {mode}s; launch some with "
            "several seeds."
        )
    tables = []
    for name, same in zip(group_names(groups), groups, strict=True):
        with_facts = sorted(store.runs_with_facts([run.id for run in same]), key=lambda run: run.config.seed)
        if table := relation_table(store, name, with_facts, mode):
            tables.append(table)
    if not tables:
        raise MRNLabError("These runs have no relations stored; restored records may hold scores alone.")
    return tables


def relation_table(store: Store, name: str, runs: Sequence[RunWithFacts], mode: str) -> RelationTable | None:
    """The relations at the last step of these runs of one configuration; None where none has a snapshot."""
    stored = [(run, store.relations(run.id)[1]) for run in runs if store.snapshots(run.id)]
    if not stored:
        return None
    runs = [run for run, _ in stored]
    matrices = [learned.correlation(mode) for _, learned in stored]
    rows = shared(
        [
            row_names(run.facts, run.config.tasks, mode, len(matrix))
            for run, matrix in zip(runs, matrices, strict=True)
        ]
    )
    values = np.stack(
        [matrix[np.ix_(places, places)] for matrix, places in zip(matrices, rows.places, strict=True)]
    )
    controls = stored_controls(store, runs)
    seeds = [run.config.seed for run in runs]
    verdicts = relation_verdicts(
        values, tested_cells(runs, mode, rows), control_values(controls, seeds, mode, rows)
    )
    return RelationTable(
        name,
        mode,
        tuple(run.id for run in runs),
        rows,
        verdicts,
        {task: len(by_seed.keys() & set(seeds)) for task, by_seed in controls.items()},
        aligned_alone(runs, list(rows.places)) if mode == "label" else None,
        runs[0].alignment,
    )


def seeds_of(store: Store, run_id: int) -> list[int]:
    """The successful runs of that run's configuration, by number. Raises RunNotFound."""
    configuration = store.run(run_id).configuration_id
    return [run.id for run in store.runs_of([configuration], {RunState.SUCCEEDED})]


def stored_controls(
    store: Store, runs: Sequence[Run]
) -> dict[str, dict[int, tuple[RunWithFacts, Relations]]]:
    """The controls of runs of one configuration with their facts and last relations, by task and seed."""
    seeds = {run.config.seed for run in runs}
    wanted = {
        task: {seed: run for seed, run in by_seed.items() if seed in seeds}
        for task, by_seed in controls_of(store, runs).items()
    }
    ids = [run.id for by_seed in wanted.values() for run in by_seed.values()]
    with_facts = {run.id: run for run in store.runs_with_facts(ids)} if ids else {}
    return {
        task: {
            seed: (with_facts[run.id], store.relations(run.id)[1])
            for seed, run in by_seed.items()
            if store.snapshots(run.id)
        }
        for task, by_seed in wanted.items()
        if by_seed
    }
