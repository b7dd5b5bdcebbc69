"""Cuts: runs like others but for a link between two tasks or labels, and what they lose without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.corpora import prepare
from core.errors import MRNLabError
from core.evaluation.comparison import HIGHER, LOWER
from core.mrn.alignments import LabelCounts, align
from core.mrn.alignments.cut import Cut, cut_alignment, cut_of, parse_cut
from core.mrn.alignments.mapping import keep_mapping
from core.mrn.relations import related_tasks
from core.paths import upload_dir
from core.results.comparisons import Difference, answers
from core.results.samples import one_per_seed, readable
from core.results.table import ResultRow, ResultTable, tabulate
from core.store import Run, RunState, Store
from core.wording import all_of, points_text


def cut_configs(store: Store, run_id: int, text: str) -> tuple[Cut, list[RunConfig]]:
    """The cut of that link, and the descriptions of all seeds of a run's configuration with it.

    Keeps the mapping in the laboratory. Raises ConfigError where the alignment cannot be cut so, MRNLabError
    for a run without prior; CorpusError where its corpus cannot be read.
    """
    first, second = parse_cut(text)
    run = store.run(run_id)
    if run.config.paradigm != "mrn":
        raise MRNLabError(
            f"Run {run_id} is {run.config.paradigm.upper()}; only MRN runs have links between tasks."
        )
    if run.facts is None or not run.facts.alignment:
        raise MRNLabError(f"Run {run_id} has no alignment stored yet; a run must have begun.")
    names = related_tasks(run.facts)
    labels = {task.name: task.labels for task in run.facts.tasks}
    counts = _counts(run.config, names, [labels[name] for name in names])
    named = str(run.config.alignment)
    if named == "auto":
        named = run.facts.alignment
    cut = cut_alignment(align(named, counts), counts, first, second)
    kept = keep_mapping(cut.mapping)
    seeds = {run.config.seed: run.config}
    seeds |= {of.config.seed: of.config for of in store.runs_of([run.configuration_id], {RunState.SUCCEEDED})}
    configs = [config.with_(alignment=f"mapping:{kept}") for _, config in sorted(seeds.items())]
    return cut, configs


def _counts(config: RunConfig, names: Sequence[str], labels: Sequence[Sequence[str]]) -> LabelCounts:
    """How often labels of these tasks are on the same training words, as a run counts them."""
    train = prepare(config).split("train")
    number = [{label: place for place, label in enumerate(each)} for each in labels]
    columns = [train.column(name).by_sentence(len(train)) for name in names]
    blocks: list[NDArray[np.int64]] = []
    for rows in zip(*columns, strict=True):
        block = np.full((max((len(row) for row in rows if row), default=0), len(names)), -1)
        for task, row in enumerate(rows):
            if row:
                block[: len(row), task] = [number[task].get(label, -1) for label in row]
        blocks.append(block)
    return LabelCounts.from_words(names, labels, np.concatenate(blocks))


@dataclass(frozen=True)
class CutLoss:
    """A row whose runs are those of another but for a link, and its differences from it, task by task."""

    name: str
    row: ResultRow
    base: ResultRow
    differences: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """`Cutting chunk:NP–ner:PER costs ner 0.40 [0.10, 0.70]; undecided on chunk.`"""
        costs, gains, rest = [], [], dict[str, list[str]]()
        for delta in self.differences:
            if delta.verdict == LOWER:
                costs.append(f"{delta.task} {_points(delta, -1)}")
            elif delta.verdict == HIGHER:
                gains.append(f"{delta.task} {_points(delta, 1)}")
            else:
                rest.setdefault(delta.verdict, []).append(f"{delta.task} ({_points(delta, -1)})")
        parts = [f"costs {all_of(costs)}"] * bool(costs) + [f"gains {all_of(gains)}"] * bool(gains)
        parts += [f"a loss is {verdict} on {all_of(tasks)}" for verdict, tasks in rest.items()]
        return f"Cutting {self.name}{' ' if costs or gains else ': '}{'; '.join(parts)}."


def _points(delta: Difference, sign: int) -> str:
    """`0.40 [0.10, 0.70]`, in points."""
    ends = sorted(sign * end for end in delta.interval) if delta.interval else []
    interval = f" [{', '.join(map(points_text, ends))}]" if ends else ""
    return points_text(sign * delta.mean) + interval


def cut_losses(table: ResultTable) -> list[CutLoss]:
    """The cuts among the rows of a table that have the row without the cut beside them."""
    losses = []
    rows = {row.key: row for row in table.rows}
    for row in rows.values():
        name = cut_of(row.config.alignment or "")
        if name is None:
            continue
        for base in rows.values():
            if base.key == row.key or cut_of(base.config.alignment or "") is not None:
                continue
            differences = tuple(answers(table, row.key, base.key))
            if differences and _differ_in_alignment(row, base):
                losses.append(CutLoss(name, row, base, differences))
    return losses


def _differ_in_alignment(row: ResultRow, base: ResultRow) -> bool:
    seed = {"seed": base.config.seed, "alignment": base.config.alignment}
    return bool(base.config.alignment) and row.config.with_(**seed) == base.config


def cuts_of(store: Store, run: Run, split: str = "test") -> list[CutLoss]:
    """What the cuts of that run's configuration lose, by their finished runs.

    Cuts are those whose mappings the laboratory keeps: only descriptions with these are asked for.
    """
    files = sorted((upload_dir() / "mappings").glob("cut-*.csv"))
    cut = [run.config.with_(alignment=f"mapping:{file}").configuration_id for file in files]
    like = readable(store.runs_of([run.configuration_id, *cut], {RunState.SUCCEEDED}))[0]
    if all(other.configuration_id == run.configuration_id for other in like):
        return []
    runs = one_per_seed(like, store.conditions(like))
    scores = store.scores([each.id for each in runs], with_reports=False)
    table = tabulate(runs, scores, split, conditions=store.conditions(runs))
    mine = {of.id for of in runs if of.configuration_id == run.configuration_id}
    return [each for each in cut_losses(table) if mine.intersection(each.base.run_ids)]
