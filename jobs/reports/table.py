"""Scores of finished runs as a table: configurations × tasks over seeds, on the page and at the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from core.config import RunConfig, comparison_key
from core.evaluation.comparison import Comparison, compare_rows, highest_row
from core.evaluation.costs import Cost, cost_of, run_cost
from core.evaluation.statistics import MeanSD, summary
from core.registry import WORD_ENCODERS, family
from core.store import Conditions, Run, RunState, StoredScore
from core.tasks.scores import PEARSON
from core.wording import which_runs
from jobs.reports.naming import corpus_name, differing, encoder_title, field_text, field_texts

UNKNOWN = Conditions()
"""What is known of a run that has not begun, or was trained before conditions were stored."""

_Of = Callable[[Conditions], str | None]

_TEXT: _Of = attrgetter("text")
RESOLVED: Mapping[str, _Of] = {name: attrgetter(name) for name in ("precision", "alignment")}
"""By field, what `auto` stood for in a run."""


def alike(runs: Sequence[Run], conditions: Mapping[int, Conditions], of: _Of) -> dict[str | None, list[Run]]:
    """The runs by one of their conditions (`of`), in the order of the runs.

    Runs of which it is unknown stand with the others as long as these agree, and apart where they differ: an
    old run then may be of either kind.
    """
    values = {run.id: of(conditions.get(run.id, UNKNOWN)) for run in runs}
    known = {value for value in values.values() if value is not None}
    if len(known) < 2:
        return {next(iter(known), None): list(runs)} if runs else {}
    groups: dict[str | None, list[Run]] = {}
    for run in runs:
        groups.setdefault(values[run.id], []).append(run)
    return groups


def one_per_seed(runs: Collection[Run], conditions: Mapping[int, Conditions] | None = None) -> list[Run]:
    """The runs that make a mean over seeds, in the order given: the same seed again is no further sample.

    Of each configuration (`configuration_id`) those runs count that share all `Conditions` with its newest
    run that succeeded; of each seed the newest of them that succeeded. Where none has, the newest counts.
    """
    known = conditions or {}
    configurations: dict[str, list[Run]] = {}
    for run in runs:
        configurations.setdefault(run.configuration_id, []).append(run)
    kept: set[int] = set()
    for same in configurations.values():
        newest = max(same, key=_rank)
        for of in (_TEXT, *RESOLVED.values()):
            same = next(group for group in alike(same, known, of).values() if newest in group)
        by_seed = {run.config.seed: run.id for run in sorted(same, key=_rank)}
        kept.update(by_seed.values())
    return [run for run in runs if run.id in kept]


def _rank(run: Run) -> tuple[bool, int]:
    return run.state is RunState.SUCCEEDED, run.id


_stl_keys: dict[str, str] = {}
"""By `configuration_id` of STL: finding it anew for thousands of runs would take longer than all the rest."""


def by_configuration(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs by configuration, in their order. STL's of all tasks are one."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        key = run.configuration_id
        if run.config.paradigm == "stl" and run.config_problem is None:
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
    """The data that the runs of a table share, by name. `note` says why the runs of a corpus are in several
    tables, or what is not known of their text.
    """

    name: str
    note: str = ""


@dataclass(frozen=True)
class ResultCell:
    """One task's scores of one configuration: by seed, in [0, 1], with the runs they come from."""

    by_seed: Mapping[int, float]
    run_ids: Mapping[int, int]

    @cached_property
    def summary(self) -> MeanSD:
        """Their mean and spread."""
        return summary(self.by_seed.values())


@dataclass(frozen=True)
class ResultRow:
    """One configuration (STL: one per task, joined), with a cell for each task it was scored on.

    `label` tells it from the others of its block, the runs over one encoder, or over any that reads word
    vectors (`core.registry.family`); `name` from all.
    """

    key: str
    name: str
    label: str
    block: str
    config: RunConfig
    run_ids: tuple[int, ...]
    cells: Mapping[str, ResultCell]
    conditions: Conditions
    """What the scores of its runs depend on beside the description, as far as that is known."""
    dev: float
    """Mean dev score over tasks and seeds: what a configuration may be picked by without looking at test."""
    undefined: Mapping[str, tuple[int, ...]]
    """By task the runs whose score on it is undefined."""
    cost: Cost | None = None
    """Known where the runs came with their facts, and told their usage."""

    @property
    def seeds(self) -> int:
        """How many seeds every task has at least."""
        return min((cell.summary.n for cell in self.cells.values()), default=0)


@dataclass(frozen=True)
class ResultTable:
    """Rows in the order of the papers: family by family, in each STL, MTL, MRN. Columns are tasks;
    `scored_by` tells by what each is scored, as the store has it. A row has no cell of a task of which all
    its scores are undefined.
    """

    split: str
    tasks: tuple[str, ...]
    scored_by: Mapping[str, str]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()
    """Why runs of one description are in several rows, and which scores are undefined."""

    @cached_property
    def comparisons(self) -> Mapping[str, Mapping[tuple[str, str], Comparison]]:
        """By task, of each row less each other one, by their keys: a family for each task."""
        return {
            task: compare_rows({row.key: row.cells[task].by_seed for row in self.rows if task in row.cells})
            for task in self.tasks
        }

    @cached_property
    def bold(self) -> frozenset[tuple[str, str]]:
        """The cells in bold, by row and task: those of rows that are higher than each other row."""
        highest = {task: highest_row(of_task) for task, of_task in self.comparisons.items()}
        return frozenset((key, task) for task, key in highest.items() if key is not None)

    @property
    def score_names(self) -> dict[str, str]:
        """By what each task is scored, in words."""
        return {task: SCORE_NAMES.get(name, name) for task, name in self.scored_by.items()}

    @property
    def scored_tasks(self) -> list[str]:
        """The tasks with a defined score in some row."""
        return [task for task in self.tasks if any(task in row.cells for row in self.rows)]

    def row(self, key: str) -> ResultRow:
        """The row of that key (KeyError where there is none)."""
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
    """The runs by what must not be mixed in one table, in the order of the runs.

    `conditions` (`Store.conditions`) tell which runs of a corpus saw the same text. Runs of which that is not
    known stand with the others as long as these agree.
    """
    known = conditions or {}
    groups: dict[tuple[str, float, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.config.corpus, run.config.fraction, run.config.pos_score].append(run)
    shares = Counter(corpus for corpus, _ in {key[:2] for key in groups})
    ways = Counter(key[:2] for key in groups)
    named: list[tuple[Setting, str, list[Run]]] = []
    for (corpus, fraction, pos_score), same in groups.items():
        parts = [corpus_name(same[0].config)]
        if fraction < 1 or shares[corpus] > 1:
            parts.append(field_text("fraction", fraction))
        if ways[corpus, fraction] > 1:
            parts.append(f"POS by {SCORE_NAMES.get(pos_score, pos_score)}")
        texts = alike(same, known, _TEXT)
        note = _text_note(texts, known)
        for text, runs_of_text in texts.items():
            name = ", ".join([*parts, *([_text_name(text)] if len(texts) > 1 else [])])
            named.append((Setting(name, note), corpus, runs_of_text))
    names = Counter(setting.name for setting, _, _ in named)
    # Two folders of one name: then the whole path tells them apart.
    return {
        setting
        if names[setting.name] == 1
        else Setting(f"{setting.name} ({corpus})", setting.note): of_setting
        for setting, corpus, of_setting in named
    }


def _text_name(text: str | None) -> str:
    return "text not recorded" if text is None else f"text {text[:6]}"


def _text_note(texts: Mapping[str | None, Sequence[Run]], conditions: Mapping[int, Conditions]) -> str:
    """Why these runs of one corpus are in several tables, or which of them are taken to be of its text."""
    if len(texts) > 1:
        ids = {text: sorted(run.id for run in runs) for text, runs in texts.items()}
        parts = [f"{_text_name(text)} in {which_runs(of_text)}" for text, of_text in ids.items()]
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
    """The table of these runs' scores on that split; scores of dev tell what may be picked.

    STL's single-task runs of otherwise equal configurations make one row. Where a configuration was trained
    more than once with a seed, the latest counts: the same seed again is no further sample. A score that is
    undefined counts in no cell, and a note says so. `tasks` gives the order of the columns; without it, that
    of the runs. Runs of one description for which `auto` stood for several things (by `conditions`) make a
    row for each, and a note says so.
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
        texts = _resolved_texts(same, conditions or {})
        for run in same:
            part = f"{key} {texts[run.id]}"
            parts[part].append(run)
            if texts[run.id]:
                resolved[part] = texts[run.id]
    rows = _named([_row(part, of, by_run, dev, conditions or {}) for part, of in parts.items()], resolved)
    order = _task_order(runs) if tasks is None else tasks
    scored = {task for of_run in by_run.values() for task in of_run}
    shown = tuple(task for task in order if task in scored)
    undefined = undefined_notes(score for run in ordered for score in by_run[run.id].values())
    scored_by = {score.task: score.score_name for of_run in by_run.values() for score in of_run.values()}
    return ResultTable(split, shown, scored_by, tuple(rows), (*_notes(rows, resolved), *undefined))


def _resolved_texts(runs: Sequence[Run], conditions: Mapping[int, Conditions]) -> dict[int, str]:
    """By run of one description what `auto` stood for in it, where that is not the same in all."""
    texts: dict[int, list[str]] = {run.id: [] for run in runs}
    for name, of in RESOLVED.items():
        groups = alike(runs, conditions, of)
        for value, of_value in groups.items() if len(groups) > 1 else ():
            for run in of_value:
                texts[run.id].append(value or f"{name} not recorded")
    return {run_id: ", ".join(parts) for run_id, parts in texts.items()}


def _row(
    key: str,
    runs: Sequence[Run],
    by_run: Mapping[int, Mapping[str, StoredScore]],
    dev: Mapping[int, Sequence[float]],
    conditions: Mapping[int, Conditions],
) -> ResultRow:
    """The row of these runs, which come in their order: of a seed the latest counts."""
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
    shared = (next(filter(None, map(of, known)), None) for of in (_TEXT, *RESOLVED.values()))
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
    """A sentence for each task and reason for which scores of runs are undefined."""
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
    first = "Runs of one description for which auto stood for several things have a row for each"
    return (f"{first}: {'; '.join(parts)}.",) if parts else ()


def _named(rows: Sequence[ResultRow], resolved: Mapping[str, str]) -> list[ResultRow]:
    """The rows in order, with their names; `resolved` by key where what `auto` stood for tells rows apart."""
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
        of_block = sorted(blocks[block], key=_place)
        labels = [
            f"{label} · {resolved[row.key]}" if row.key in resolved else label
            for label, row in zip(differing([row.config for row in of_block]), of_block, strict=True)
        ]
        taken = Counter(labels)
        for row, label in zip(of_block, labels, strict=True):
            own_label = label if taken[label] == 1 else f"{label} (run {row.run_ids[0]})"
            # Where a block has several encoders its labels name them.
            name = own_label if len(order) == 1 or len(of) > 1 else f"{own_label} · {title}"
            named.append(replace(row, name=name, label=own_label, block=title))
    return named


def _place(row: ResultRow) -> tuple[int, int, int]:
    """As the papers have it: paradigm by paradigm, in each the encoders in the order of the registry."""
    known = list(WORD_ENCODERS)
    encoder = row.config.encoder
    return _ORDER[row.config.paradigm], known.index(encoder) if encoder in known else 0, row.run_ids[0]


def _base(encoder: str) -> str:
    return encoder.partition("+")[0]


def _task_order(runs: Iterable[Run]) -> list[str]:
    """Tasks in the order of the run that names most of them, the others after them."""
    named = sorted((run.config.tasks for run in runs), key=len, reverse=True)
    return list(dict.fromkeys(task for tasks in named for task in tasks))
