"""Scores of finished runs as a table of configurations × tasks over seeds, for pages and the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from statistics import fmean

from core.config import RunConfig, comparison_key
from core.evaluation.comparison import Comparison, compare_rows, highest_row
from core.evaluation.costs import Cost, cost_of, run_cost
from core.evaluation.statistics import MeanSD, summary
from core.registry import WORD_ENCODERS, family
from core.results.naming import (
    UNREADABLE,
    corpus_name,
    encoder_title,
    field_text,
    field_texts,
    shortest_names,
)
from core.store import Conditions, Run, RunState, StoredScore
from core.tasks.scores import PEARSON
from core.wording import which_runs

UNKNOWN = Conditions()
"""The conditions of a run that has not begun, or was trained before conditions were stored."""

_Of = Callable[[Conditions], str | None]

TEXT: _Of = attrgetter("text")
RESOLVED: Mapping[str, _Of] = {name: attrgetter(name) for name in ("precision", "alignment")}
"""By field, the value that was chosen for `auto` in a run."""


def alike(runs: Sequence[Run], conditions: Mapping[int, Conditions], of: _Of) -> dict[str | None, list[Run]]:
    """Returns the runs by one of their conditions (`of`), in the order of the runs.

    Runs without that condition are grouped with the others where these agree, and apart where they differ.
    """
    values = {run.id: of(conditions.get(run.id, UNKNOWN)) for run in runs}
    known = {value for value in values.values() if value is not None}
    if len(known) < 2:
        return {next(iter(known), None): list(runs)} if runs else {}
    groups: dict[str | None, list[Run]] = {}
    for run in runs:
        groups.setdefault(values[run.id], []).append(run)
    return groups


def readable(
    runs: Iterable[Run], conditions: Mapping[int, Conditions] | None = None
) -> tuple[list[Run], str]:
    """Returns the runs that can be compared, and a sentence on the others, empty where there are none.

    The description or the facts of the others cannot be read; `conditions` (`Store.conditions`) have the
    problems of facts that were not loaded.
    """
    known = conditions or {}
    every = list(runs)
    kept = [run for run in every if not (run.problem or known.get(run.id, UNKNOWN).problem)]
    others = {run.id for run in every} - {run.id for run in kept}
    if not others:
        return kept, ""
    which = which_runs(sorted(others))
    return kept, f"Left out: {which}, {UNREADABLE} or damaged; the run's page and `mrnlab show` say why."


def one_per_seed(runs: Collection[Run], conditions: Mapping[int, Conditions] | None = None) -> list[Run]:
    """Returns the runs that make a mean over seeds, in their order: a repeated seed is no further sample.

    Of each configuration (`configuration_id`) only runs count that share all `Conditions` with its newest
    successful run, and of each seed the newest successful one of them. Where none has succeeded, the newest
    counts.
    """
    known = conditions or {}
    configurations: dict[str, list[Run]] = {}
    for run in runs:
        configurations.setdefault(run.configuration_id, []).append(run)
    kept: set[int] = set()
    for same in configurations.values():
        newest = max(same, key=_rank)
        for of in (TEXT, *RESOLVED.values()):
            same = next(group for group in alike(same, known, of).values() if newest in group)
        by_seed = {run.config.seed: run.id for run in sorted(same, key=_rank)}
        kept.update(by_seed.values())
    return [run for run in runs if run.id in kept]


def _rank(run: Run) -> tuple[bool, int]:
    return run.state is RunState.SUCCEEDED, run.id


_stl_keys: dict[str, str] = {}
"""A cache by `configuration_id` of STL: with thousands of runs, computing the keys dominates."""


def by_configuration(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Returns the runs by configuration, in their order.

    STL runs of all tasks are one configuration; runs whose description cannot be read are apart.
    """
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        key = run.configuration_id
        if run.config_problem is not None:
            key = f"unreadable {key}"
        elif run.config.paradigm == "stl":
            if key not in _stl_keys:
                _stl_keys[key] = comparison_key(run.config)
            key = _stl_keys[key]
        groups[key].append(run)
    return groups


SCORE_NAMES: Mapping[str, str] = {
    "f1_conll": "F1",
    "accuracy": "accuracy",
    "seqeval_f1": "seqeval F1",
    PEARSON: "Pearson × 100",
}
_ORDER = {"stl": 0, "mtl": 1, "mrn": 2}


@dataclass(frozen=True)
class Setting:
    """The name of the data that the runs of a table share.

    `note` explains why the runs of a corpus are in several tables, or which texts are not known.
    """

    name: str
    note: str = ""


@dataclass(frozen=True)
class ResultCell:
    """One task's scores of one configuration by seed, in [0, 1], with the ids of the runs."""

    by_seed: Mapping[int, float]
    run_ids: Mapping[int, int]

    @cached_property
    def summary(self) -> MeanSD:
        """The mean and the spread of the scores."""
        return summary(self.by_seed.values())


@dataclass(frozen=True)
class ResultRow:
    """One configuration (STL: one per task, joined), with a cell for each task it was scored on.

    `label` is distinct in its block, the runs over one encoder or over encoders that read word vectors
    (`core.registry.family`); `name` is distinct in the table.
    """

    key: str
    name: str
    label: str
    block: str
    config: RunConfig
    run_ids: tuple[int, ...]
    cells: Mapping[str, ResultCell]
    conditions: Conditions
    """The known conditions of its runs, on which scores depend besides the description."""
    dev: float
    """The mean dev score over tasks and seeds, by which a configuration is picked without test scores."""
    undefined: Mapping[str, tuple[int, ...]]
    """The runs with an undefined score, by task."""
    cost: Cost | None = None
    """The cost; None where the runs were loaded without facts, or did not record it."""

    @property
    def seeds(self) -> int:
        """The least number of seeds of a task."""
        return min((cell.summary.n for cell in self.cells.values()), default=0)


@dataclass(frozen=True)
class ResultTable:
    """Rows in the order of the papers: family by family, in each STL, MTL, MRN; columns are tasks.

    `scored_by` has the name of each task's score in the store. A row has no cell for a task where all its
    scores are undefined.
    """

    split: str
    tasks: tuple[str, ...]
    scored_by: Mapping[str, str]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()
    """Notes on runs of one description in several rows, and on undefined scores."""

    @cached_property
    def comparisons(self) -> Mapping[str, Mapping[tuple[str, str], Comparison]]:
        """The difference of each row from each other row, by task and keys; a task is a family of tests."""
        return {
            task: compare_rows({row.key: row.cells[task].by_seed for row in self.rows if task in row.cells})
            for task in self.tasks
        }

    @cached_property
    def bold(self) -> frozenset[tuple[str, str]]:
        """The cells in bold, by row and task: the cells of rows that are higher than each other row."""
        highest = {task: highest_row(compared) for task, compared in self.comparisons.items()}
        return frozenset((key, task) for task, key in highest.items() if key is not None)

    @property
    def score_names(self) -> dict[str, str]:
        """The title of each task's score."""
        return {task: SCORE_NAMES.get(name, name) for task, name in self.scored_by.items()}

    @property
    def scored_tasks(self) -> list[str]:
        """The tasks with a defined score in at least one row."""
        return [task for task in self.tasks if any(task in row.cells for row in self.rows)]

    def row(self, key: str) -> ResultRow:
        """Returns the row of that key. Raises KeyError."""
        return {row.key: row for row in self.rows}[key]

    @property
    def blocks(self) -> dict[str, list[ResultRow]]:
        """The rows by family of encoders, in order."""
        by_block: dict[str, list[ResultRow]] = {}
        for row in self.rows:
            by_block.setdefault(row.block, []).append(row)
        return by_block


def settings(
    runs: Iterable[Run], conditions: Mapping[int, Conditions] | None = None
) -> dict[Setting, list[Run]]:
    """Returns the runs by the data that must not be mixed in one table, in the order of the runs.

    `conditions` (`Store.conditions`) have the text of each run. Runs with an unknown text are grouped with
    the others where these agree.
    """
    known = conditions or {}
    groups: dict[tuple[str, float, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[_data_key(run)].append(run)
    shares = Counter(corpus for corpus, _ in {key[:2] for key in groups})
    ways = Counter(key[:2] for key in groups)
    named: list[tuple[Setting, str, list[Run]]] = []
    for (corpus, fraction, pos_score), same in groups.items():
        parts = [corpus_name(same[0].config)]
        if fraction < 1 or shares[corpus] > 1:
            parts.append(field_text("fraction", fraction))
        if ways[corpus, fraction] > 1:
            parts.append(f"POS by {SCORE_NAMES.get(pos_score, pos_score)}")
        texts = alike(same, known, TEXT)
        note = _text_note(texts, known)
        for text, text_runs in texts.items():
            name = ", ".join([*parts, *([_text_name(text)] if len(texts) > 1 else [])])
            named.append((Setting(name, note), corpus, text_runs))
    names = Counter(setting.name for setting, _, _ in named)
    by_setting: dict[Setting, list[Run]] = defaultdict(list)
    for setting, corpus, setting_runs in named:
        # Two folders of one name are distinguished by their whole paths.
        is_unique = names[setting.name] == 1
        name = setting.name if is_unique else f"{setting.name} ({corpus})"
        by_setting[Setting(name, setting.note)] += setting_runs
    return dict(by_setting)


def _data_key(run: Run) -> tuple[str, float, str]:
    # Before shares in percent were read exactly, 1.1% was stored as the float next to 0.011.
    return run.config.corpus, round(run.config.fraction, 12), run.config.pos_score


def _text_name(text: str | None) -> str:
    return "text not recorded" if text is None else f"text {text[:6]}"


def _text_note(texts: Mapping[str | None, Sequence[Run]], conditions: Mapping[int, Conditions]) -> str:
    """Explains why runs of one corpus are in several tables, or which of them are assumed to share a text."""
    if len(texts) > 1:
        ids = {text: sorted(run.id for run in runs) for text, runs in texts.items()}
        parts = [f"{_text_name(text)} in {which_runs(run_ids)}" for text, run_ids in ids.items()]
        return f"The corpus changed between runs, so there is a table for each text: {'; '.join(parts)}."
    ((text, runs),) = texts.items()
    unknown = sorted(run.id for run in runs if conditions.get(run.id, UNKNOWN).text is None)
    if text is None or not unknown:
        return ""
    return f"We assume that {which_runs(unknown)} used the same text as the others: it was not recorded."


def tabulate(
    runs: Sequence[Run],
    scores: Iterable[StoredScore],
    split: str,
    tasks: Sequence[str] | None = None,
    conditions: Mapping[int, Conditions] | None = None,
) -> ResultTable:
    """Returns the table of these runs' scores on that split; dev scores decide which rows may be picked.

    STL's single-task runs of otherwise equal configurations make one row. Where a configuration was trained
    more than once with a seed, the latest counts: a repeated seed is no further sample. An undefined score
    counts in no cell, and has a note. `tasks` is the order of the columns, by default that of the runs. Runs
    of one description with different choices for `auto` (by `conditions`) make a row each, with a note.
    """
    by_run: dict[int, dict[str, StoredScore]] = defaultdict(dict)
    dev: dict[int, list[float]] = defaultdict(list)
    for score in scores:
        if score.split == split:
            by_run[score.run_id][score.task] = score
        if score.split == "dev" and score.is_defined:
            dev[score.run_id].append(score.score)
    parts: dict[str, list[Run]] = defaultdict(list)
    resolved: dict[str, str] = {}
    ordered = sorted((run for run in runs if run.id in by_run), key=lambda run: run.id)
    for key, same in by_configuration(ordered).items():
        texts = condition_texts(same, conditions or {})
        for run in same:
            part = f"{key} {texts[run.id]}"
            parts[part].append(run)
            if texts[run.id]:
                resolved[part] = texts[run.id]
    rows = _named([_row(part, of, by_run, dev, conditions or {}) for part, of in parts.items()], resolved)
    order = _task_order(runs) if tasks is None else tasks
    scored_by = {score.task: score.score_name for by_task in by_run.values() for score in by_task.values()}
    shown = tuple(task for task in order if task in scored_by)
    undefined = undefined_notes(score for run in ordered for score in by_run[run.id].values())
    return ResultTable(split, shown, scored_by, tuple(rows), (*_notes(rows, resolved), *undefined))


def condition_texts(
    runs: Sequence[Run], conditions: Mapping[int, Conditions], of: Mapping[str, _Of] = RESOLVED
) -> dict[int, str]:
    """Returns by run the conditions in which runs of one description differ; empty without a difference.

    The conditions are by default the choices for `auto`.
    """
    texts: dict[int, list[str]] = {run.id: [] for run in runs}
    for name, condition in of.items():
        groups = alike(runs, conditions, condition)
        for value, group in groups.items() if len(groups) > 1 else ():
            text = _text_name(value) if condition is TEXT else value or f"{name} not recorded"
            for run in group:
                texts[run.id].append(text)
    return {run_id: ", ".join(parts) for run_id, parts in texts.items()}


def text_names(runs: Iterable[Run], conditions: Mapping[int, Conditions]) -> dict[int, str]:
    """Returns the text of each run for which a text is decided; empty where its data has one (`settings`).

    A run that has not succeeded, of which nothing is recorded yet, has none.
    """
    groups: dict[tuple[str, float, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.state is RunState.SUCCEEDED or run.id in conditions:
            groups[_data_key(run)].append(run)
    of = {"text": TEXT}
    return {
        run_id: text
        for same in groups.values()
        for run_id, text in condition_texts(same, conditions, of).items()
    }


def by_conditions(
    runs: Sequence[Run], conditions: Mapping[int, Conditions], texts: Mapping[int, str]
) -> dict[str, list[Run]]:
    """Returns the runs of one configuration, grouped by their text (`text_names`) and the choices for `auto`.

    The keys name the text, and the choices that differ. A run without a text belongs to the newest that has
    succeeded.
    """
    if len(runs) == 1:
        return {texts.get(runs[0].id, ""): list(runs)}
    decided = [run for run in runs if run.id in texts]
    resolved = condition_texts(decided, conditions)
    names = {run.id: ", ".join(filter(None, (texts[run.id], resolved[run.id]))) for run in decided}
    newest = names[max(decided, key=_rank).id] if decided else ""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(names.get(run.id, newest), []).append(run)
    return groups


def means_by_run(
    runs: Iterable[Run], conditions: Mapping[int, Conditions], scores: Mapping[int, float]
) -> dict[int, float]:
    """Returns for each run the mean score of its row in the table of runs, where it has one."""
    known, _ = readable(runs, conditions)
    texts = text_names(known, conditions)
    means: dict[int, float] = {}
    for same in by_configuration(known).values():
        for row in by_conditions(same, conditions, texts).values():
            # STL's tasks share a row, but only one of them has the score.
            if of := [scores[run.id] for run in sampled(row, conditions) if run.id in scores]:
                means |= dict.fromkeys((run.id for run in row), fmean(of))
    return means


def sampled(runs: Collection[Run], conditions: Mapping[int, Conditions]) -> list[Run]:
    """Returns the successful ones of the runs that make a mean (`one_per_seed`): their scores count."""
    return [run for run in one_per_seed(runs, conditions) if run.state is RunState.SUCCEEDED]


def _row(
    key: str,
    runs: Sequence[Run],
    by_run: Mapping[int, Mapping[str, StoredScore]],
    dev: Mapping[int, Sequence[float]],
    conditions: Mapping[int, Conditions],
) -> ResultRow:
    """Returns the row of these runs, which are in order: of a seed the latest counts."""
    latest: dict[str, dict[int, int]] = defaultdict(dict)
    for run in runs:
        for task in by_run[run.id]:
            latest[task][run.config.seed] = run.id
    by_id = {run.id: run for run in runs}
    counted = {(by_id[run_id].config.seed, run_id) for of in latest.values() for run_id in of.values()}
    costs: dict[int, list[Cost | None]] = defaultdict(list)
    for seed, run_id in sorted(counted):
        costs[seed].append(run_cost(by_id[run_id].facts))
    defined = {
        task: {seed: run_id for seed, run_id in sorted(of.items()) if by_run[run_id][task].is_defined}
        for task, of in latest.items()
    }
    on_dev = [score for _, run_id in counted for score in dev.get(run_id, ())]
    known = [conditions[run_id] for _, run_id in counted if run_id in conditions]
    shared = (next(filter(None, map(of, known)), None) for of in (TEXT, *RESOLVED.values()))
    return ResultRow(
        key,
        name="",
        label="",
        block="",
        config=runs[0].config,
        run_ids=tuple(by_id),
        cells={
            task: ResultCell({seed: by_run[run_id][task].score for seed, run_id in of.items()}, of)
            for task, of in defined.items()
            if of
        },
        conditions=Conditions(*shared),
        dev=sum(on_dev) / len(on_dev) if on_dev else float("-inf"),
        undefined={
            task: tuple(run_id for run_id in of.values() if not by_run[run_id][task].is_defined)
            for task, of in latest.items()
            if len(of) > len(defined[task])
        },
        cost=cost_of(costs.values()),
    )


def undefined_notes(scores: Iterable[StoredScore]) -> tuple[str, ...]:
    """Returns a sentence for each task and reason with undefined scores."""
    runs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for score in scores:
        if not score.is_defined:
            runs[score.task, score.reason].add(score.run_id)
    return tuple(
        f"The score of {task} is undefined in {which_runs(sorted(of))}, and counts in no mean: {reason}."
        for (task, reason), of in runs.items()
    )


def _notes(rows: Iterable[ResultRow], resolved: Mapping[str, str]) -> tuple[str, ...]:
    parts = [
        f"{resolved[row.key]} in {which_runs(sorted(row.run_ids))}" for row in rows if row.key in resolved
    ]
    first = "Runs of one description have a row for each choice of auto"
    return (f"{first}: {'; '.join(parts)}.",) if parts else ()


def _named(rows: Sequence[ResultRow], resolved: Mapping[str, str]) -> list[ResultRow]:
    """Returns the rows in order, with their names; `resolved` has the choices for `auto` that differ."""
    blocks: dict[tuple[str, str], list[ResultRow]] = {}
    for row in rows:
        blocks.setdefault((family(row.config.encoder), row.config.encoder_training), []).append(row)
    bases = list(dict.fromkeys(_base(encoder) for encoder, _ in blocks))
    order = sorted(blocks, key=lambda block: (bases.index(_base(block[0])), block[0] != _base(block[0])))
    encoders = [{row.config.encoder for row in blocks[block]} for block in order]
    names = [block[0] if len(of) > 1 else min(of) for block, of in zip(order, encoders, strict=True)]
    named = []
    for block, of, text in zip(order, encoders, field_texts("encoder", names), strict=True):
        title = text if len(of) > 1 else encoder_title(text, block[1])
        block_rows = sorted(blocks[block], key=_sort_key)
        labels = shortest_names([row.config for row in block_rows])
        for index, row in enumerate(block_rows):
            encoder = field_text("encoder", row.config.encoder)
            more = [encoder] if len(of) > 1 and encoder not in labels[index].split(" · ") else []
            labels[index] = " · ".join([labels[index], *more, *filter(None, [resolved.get(row.key)])])
        taken = Counter(labels)
        for row, label in zip(block_rows, labels, strict=True):
            own_label = label if taken[label] == 1 else f"{label} (run {row.run_ids[0]})"
            # Where a block has several encoders its labels name them.
            name = own_label if len(order) == 1 or len(of) > 1 else f"{own_label} · {title}"
            named.append(replace(row, name=name, label=own_label, block=title))
    return named


def _sort_key(row: ResultRow) -> tuple[int, int, int]:
    """Returns the order of the papers: by paradigm, then by encoder in the order of the registry."""
    known = list(WORD_ENCODERS)
    encoder = row.config.encoder
    return _ORDER[row.config.paradigm], known.index(encoder) if encoder in known else 0, row.run_ids[0]


def _base(encoder: str) -> str:
    return encoder.partition("+")[0]


def _task_order(runs: Iterable[Run]) -> list[str]:
    """Returns the tasks in the order of the run with most tasks, the others after them."""
    named = sorted((run.config.tasks for run in runs), key=len, reverse=True)
    return list(dict.fromkeys(task for tasks in named for task in tasks))
