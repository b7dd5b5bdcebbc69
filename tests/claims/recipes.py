"""A recipe names a figure of the records; `Figures` computes it.

alike-50-frozen/relational             the score of a method in a setting, mean over its targets
ner-mixed:ner/relational               on one target
regimes!alike-50-full/mtl              of another record
alike-50-frozen/relational - mtl       a difference; p corrected as in the study's tables
mixed-50-full/mtl - mixed-50-frozen/mtl    between two settings, by itself
table3-5/mrn - mtl within 0.5          a difference; equivalent within so many points
alike-50-top-1/relational - fixed in alike-*   p corrected over these settings
gain scarce chunk@conll2000 upos@ud-lines  of a main task beside an auxiliary one
- gain scarce ner mwe                  a loss, as a positive number
mean gain scarce * upos@ud-lines       of all main tasks beside that one
n lower alike-*/relational - fixed in alike-*  how many differences have that verdict
max mixed-*/pooled - mtl               the largest of these differences
pool balanced-n500-*/mtl               the mean over settings and seeds, with the deviation over both
avg a-*/mtl - b-*/mtl                  a difference between means over settings, paired by seed
rank planted 9                       of scores with relatedness, of means; rank-min, rank-max of seeds
min-seed table3-5/mtl                  the lowest score of a seed
fewest-at-0 table3-5:pos-2003/mtl      the labels that a seed has a test F1 of 0 on; most-at-0 of all seeds
last-look table3-5/mrn - mtl           half of the interval at the last look, with the spread of these seeds
runs                                   how many runs the record has
dev table3-5/mrn 0.05                  the dev score of the candidate with that λ, or the chosen one
dev-less-mtl alike-50-full/mrn 0.01    that, less the dev score of MTL with the same seeds
relation mean paper sim-1 10           a learned correlation over ten seeds; `control` that of its control
relation share paper controls related chance   the percentage of drawn cells with that verdict
relation rank demo                     of labels' relations with their gains; `gain` the mean gain
relation seeds                         how many seeds are recorded
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from core.evaluation.comparison import (
    EQUIVALENT,
    HIGHER,
    LOWER,
    UNDECIDED,
    Comparison,
    compare_paired,
    compare_rows,
)
from core.evaluation.looks import look_levels
from core.evaluation.relation_verdicts import relation_verdicts
from core.evaluation.statistics import MeanSD, summary
from core.studies.analysis import MEAN, Outcome, Result
from core.studies.dissertation import LOOKS
from core.studies.study import Setting, Study, with_runs
from core.transfer.gains import Gains
from core.transfer.predictors import rank_correlation
from tests.claims import relation_runs

BySeed = Mapping[int, float]


class Record(Protocol):
    """Runs of a study and their results: `core.studies.recorded.Record`, or one computed from runs."""

    @property
    def path(self) -> Path:
        """The file of the runs."""

    @property
    def definition(self) -> Study:
        """The study."""

    @property
    def runs(self) -> int:
        """The number of runs."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings with scores."""

    def result(self, setting: Setting) -> Result:
        """The result of a setting."""

    def gains(self, part: str) -> Gains:
        """The gains among pairs of tasks."""


@dataclass(frozen=True)
class Figure:
    """A number in points or a count, with the bounds and the deviation that may stand beside it."""

    mean: float
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    verdict: str = ""

    def __neg__(self) -> Figure:
        verdict = {HIGHER: LOWER, LOWER: HIGHER}.get(self.verdict, self.verdict)
        low, high = (None if bound is None else -bound for bound in (self.high, self.low))
        return Figure(-self.mean, low, high, self.sd, verdict)


def _mean(difference: Comparison) -> float:
    return difference.mean


def _score(scores: MeanSD) -> Figure:
    return Figure(100 * scores.mean, sd=None if scores.sd is None else 100 * scores.sd)


def _figure_of(difference: Comparison) -> Figure:
    low, high = difference.interval or (None, None)
    return Figure(
        100 * difference.mean,
        None if low is None else 100 * low,
        None if high is None else 100 * high,
        verdict=difference.verdict,
    )


def _has_verdict(verdict: str, difference: Comparison) -> bool:
    return difference.verdict == verdict


_CHOICES: Mapping[str, Callable[[Comparison], bool]] = {
    "all": lambda _: True,
    "decided": lambda difference: difference.is_decided,
    "positive": lambda difference: difference.mean > 0,
    "excludes-0": lambda difference: _excludes_zero(difference) != 0,
    "above-0": lambda difference: _excludes_zero(difference) > 0,
    "below-0": lambda difference: _excludes_zero(difference) < 0,
    **{word: partial(_has_verdict, word) for word in (HIGHER, LOWER, EQUIVALENT, UNDECIDED)},
}


def _excludes_zero(difference: Comparison) -> int:
    """The side of zero on which the whole interval lies; 0 where it includes zero or there is none."""
    low, high = difference.interval or (0.0, 0.0)
    return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Cell:
    """A method in a setting on a target."""

    record: str
    setting: str
    target: str
    method: str


_CELL = re.compile(r"(?:(?P<record>[\w-]+)!)?(?:(?P<setting>[^/:]+)(?::(?P<target>[^/]+))?/)?(?P<method>.+)")


class Figures:
    """Computes recipes from the results of records. `default` is the record that recipes without one mean."""

    def __init__(self, records: Mapping[str, Record], default: str = "") -> None:
        self._records, self._default = records, default
        self._results: dict[tuple[str, str], Result] = {}
        self._declared: dict[str, set[float]] = {}

    def of(self, record: str) -> Figures:
        """The same figures with another default."""
        figures = Figures(self._records, record)
        figures._results, figures._declared = self._results, self._declared
        return figures

    def compute(self, recipe: str) -> Figure:
        """The figure that the recipe names. Raises KeyError or ValueError where there is none."""
        first, _, rest = recipe.partition(" ")
        operations: Mapping[str, Callable[[str], Figure]] = {
            "runs": lambda record: Figure(self._record(record or self._default).runs),
            "n": self._count,
            "max": lambda pairs: _figure_of(max(self.differences(pairs), key=_mean)),
            "min": lambda pairs: _figure_of(min(self.differences(pairs), key=_mean)),
            "mean": lambda pairs: _score(summary(map(_mean, self.differences(pairs)))),
            "pool": lambda cells: _score(summary(self._all_scores(cells))),
            "min-seed": lambda cells: Figure(100 * min(self._all_scores(cells))),
            "last-look": self._last_look,
            "fewest-at-0": lambda cell: Figure(min(self._labels_at_0(cell))),
            "most-at-0": lambda cell: Figure(max(self._labels_at_0(cell))),
            "avg": self._average_difference,
            "dev": self._dev,
            "dev-less-mtl": self._dev_less_mtl,
            "rank": lambda planted: Figure(self._ranks(planted)[0]),
            "rank-min": lambda planted: Figure(min(self._ranks(planted)[1:])),
            "rank-max": lambda planted: Figure(max(self._ranks(planted)[1:])),
            "relation": _relation,
            "-": lambda other: -self.compute(other),
        }
        if first in operations:
            return operations[first](rest)
        if first == "gain" or " - " in recipe:
            (difference,) = self.differences(recipe)
            return _figure_of(difference)
        return _score(summary(self._all_scores(recipe)))

    def _count(self, recipe: str) -> Figure:
        choice, _, differences = recipe.partition(" ")
        return Figure(sum(map(_CHOICES[choice], self.differences(differences))))

    def _last_look(self, recipe: str) -> Figure:
        """The half of the interval at the last look of the plan, were the spread the observed one."""
        (difference,) = self.differences(recipe)
        assert difference.paired is not None
        assert difference.paired.sd is not None
        quantile = stdtrit(LOOKS[-1] - 1, 1 - look_levels(LOOKS, 0.025)[-1] / 2)
        return Figure(100 * float(quantile) * difference.paired.sd / math.sqrt(LOOKS[-1]))

    def _labels_at_0(self, text: str) -> list[int]:
        """By seed the number of labels of the target's test sentences with an F1 of 0."""
        (cell,) = self._cells(text)
        record = self._record(cell.record)
        (setting,) = (setting for setting in record.settings if setting.name == cell.setting)
        (candidate,) = with_runs(record.definition, setting).candidates[cell.method]
        scores = scores_of(record, "test")
        return [
            sum(
                not label["f1"]
                for label in scores[run.configuration_id, run.seed][cell.target]["report"].values()
            )
            for seed in self._scores(cell)
            for run in candidate.runs[seed]
        ]

    def _all_scores(self, text: str) -> list[float]:
        return [score for cell in self._cells(text) for score in self._scores(cell).values()]

    def differences(self, recipe: str) -> list[Comparison]:
        """The differences that a recipe names. Raises ValueError where there is none."""
        if recipe.startswith("gain "):
            return self._gains(*recipe.split()[1:])
        recipe, _, within = recipe.partition(" within ")
        pair, _, family = recipe.partition(" in ")
        first, _, second = pair.partition(" - ")
        if within:
            return [self._within(*cells, float(within) / 100) for cells in self._pairs(first, second)]
        if family:
            cells = self._pairs(f"{family}/{self._parsed(first)['method']}", second)
            compared = compare_paired({(a, b): (self._scores(a), self._scores(b)) for a, b in cells})
            return [compared[pair] for pair in self._pairs(first, second)]
        return [self._difference(*pair) for pair in self._pairs(first, second)]

    def _pairs(self, first: str, second: str) -> list[tuple[Cell, Cell]]:
        cells = self._cells(first)
        if "/" in second:
            (other,) = self._cells(second)
            return [(cell, other) for cell in cells]
        return [(cell, Cell(cell.record, cell.setting, cell.target, second)) for cell in cells]

    def _difference(self, first: Cell, second: Cell) -> Comparison:
        """Corrected as in the study's tables where these have it, else by itself."""
        if (first.record, first.setting, first.target) == (second.record, second.setting, second.target):
            for a, b, sign in ((first, second, 1), (second, first, -1)):
                difference = self._tabled(a, b)
                if difference is not None:
                    return difference if sign > 0 else difference.reversed()
        return compare_paired({"": (self._scores(first), self._scores(second))})[""]

    def _within(self, first: Cell, second: Cell, matters: float) -> Comparison:
        """The difference from the reference, corrected as in the study's tables."""
        result = self.result(first)
        scores = {each.method.name: each.by_seed[first.target] for each in result.outcomes}
        return compare_rows(scores, matters, result.reference)[first.method, second.method]

    def _tabled(self, first: Cell, second: Cell) -> Comparison | None:
        result, outcome = self.result(first), self._outcome(first)
        if second.method == result.reference:
            return outcome.differences.get(first.target)
        return outcome.from_base.get(first.target) if second.method == outcome.method.base else None

    def result(self, cell: Cell) -> Result:
        """The result of the cell's setting."""
        key = (cell.record, cell.setting)
        if key not in self._results:
            record = self._record(cell.record)
            setting = next(setting for setting in record.settings if setting.name == cell.setting)
            self._results[key] = record.result(setting)
        return self._results[key]

    def cells(self, record: str) -> list[Cell]:
        """Every cell of a record with scores."""
        cells = []
        for setting in self._record(record).settings:
            result = self.result(Cell(record, setting.name, MEAN, ""))
            cells += [
                Cell(record, setting.name, target, outcome.method.name)
                for outcome in result.outcomes
                for target in outcome.by_seed
            ]
        return cells

    def _outcome(self, cell: Cell) -> Outcome:
        return self.result(cell).outcome(cell.method)

    def _has(self, cell: Cell) -> bool:
        return any(outcome.method.name == cell.method for outcome in self.result(cell).outcomes)

    def _scores(self, cell: Cell) -> BySeed:
        return self._outcome(cell).by_seed[cell.target]

    def declared(self, record: str) -> set[float]:
        """The numbers among the fields of the runs of a record's study."""
        if record in self._declared:
            return self._declared[record]
        study = self._record(record).definition
        fields: list[object] = [setting.base for setting in study.settings]
        for setting in study.settings:
            fields += [method.candidates for method in study.methods_in(setting).values()]
        numbers = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", str(fields))
        self._declared[record] = set(map(float, numbers))
        return self._declared[record]

    def _record(self, name: str) -> Record:
        return self._records[name]

    def _parsed(self, text: str) -> dict[str, str | None]:
        match = _CELL.fullmatch(text)
        if match is None:
            raise ValueError(f"{text} names no cell")
        return match.groupdict()

    def _cells(self, text: str) -> list[Cell]:
        """The cells of all settings that the pattern names."""
        parts = self._parsed(text)
        record = parts["record"] or self._default
        wanted = parts["setting"] or ""
        names = [setting.name for setting in self._record(record).settings]
        found = (
            [wanted]
            if wanted in names
            else [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted.split("|"))]
        )
        cells = [Cell(record, name, parts["target"] or MEAN, str(parts["method"])) for name in found]
        if len(cells) > 1:
            cells = [cell for cell in cells if self._has(cell)]
        if not cells:
            raise ValueError(f"{text}: no setting of {record} is called {wanted}")
        return cells

    def gains(self, part: str) -> Gains:
        """The gains of a part of the study of pairs."""
        return self._record("transfer").gains(part)

    def _gains(self, part: str, main: str = "*", aux: str = "*", family: str = "main") -> list[Comparison]:
        """Of these pairs; p corrected for the auxiliary tasks of a main task, or for `all` pairs."""
        known = self.gains(part.replace("_", " "))
        gains: Mapping[tuple[str, str], Comparison] = known.over_all if family == "all" else known.pairs
        return [
            gain for pair, gain in gains.items() if fnmatchcase(pair[0], main) and fnmatchcase(pair[1], aux)
        ]

    def _average_difference(self, recipe: str) -> Figure:
        def by_seed(text: str) -> BySeed:
            scores = [self._scores(cell) for cell in self._cells(text)]
            return {seed: summary(each[seed] for each in scores).mean for seed in scores[0]}

        first, second = recipe.split(" - ")
        return _figure_of(compare_paired({"": (by_seed(first), by_seed(second))})[""])

    def _ranks(self, recipe: str) -> list[float]:
        """Rank correlations of scores beside a task with its relatedness: of the means, then of each seed."""
        setting, _, count = recipe.partition(" ")
        numbers = range(1, int(count) + 1)
        cells = [self._cells(f"{setting}/beside-{number}")[0] for number in numbers]
        by_seed = np.array([[*self._scores(cell).values()] for cell in cells])
        columns = (by_seed.mean(axis=1), *by_seed.T)
        return [rank_correlation(np.array(numbers, float), column) for column in columns]

    def _dev(self, recipe: str) -> Figure:
        """The mean over the seeds of the runs that chose the candidate with that λ."""
        where, _, strength = recipe.partition(" ")
        (cell,) = self._cells(where)
        if strength:
            return Figure(
                100 * dev_score(self._record(cell.record), cell.setting, cell.method, float(strength))
            )
        dev = self._outcome(cell).dev
        assert dev is not None
        return _score(dev)

    def _dev_less_mtl(self, recipe: str) -> Figure:
        where, _, strength = recipe.partition(" ")
        (cell,) = self._cells(where)
        record = self._record(cell.record)
        own = dev_score(record, cell.setting, cell.method, float(strength))
        return Figure(100 * (own - dev_score(record, cell.setting, "mtl", None)))


def _relation(recipe: str) -> Figure:
    """A figure of the records of relations (`tests.claims.relation_runs`)."""
    name, *words = recipe.split()
    if name == "seeds":
        return Figure(len(relation_runs.recorded_seeds()))
    if name == "share":
        return Figure(relation_runs.share(*words))
    if name == "rank":
        rank, _ = relation_runs.gains(*words)
        return Figure(rank.mean, *(rank.interval or (None, None)))
    if name == "gain":
        gained = summary(relation_runs.gains(*words)[1])
        low, high = (None if part is None else 100 * part for part in (gained.low, gained.high))
        return Figure(100 * gained.mean, low, high)
    prior, task, seeds = words
    place = 1 + relation_runs.SIMULATED.index(task)
    permuted = relation_runs.REAL if name == "control" else ""
    matrices = relation_runs.verdict_matrices(prior, permuted)
    chosen = relation_runs.recorded_seeds()[: int(seeds)]
    values = np.stack([matrices[seed] for seed in chosen])
    every = np.ones(values.shape[1:], dtype=bool)
    cell = relation_verdicts(values, every).cell(0, place)
    low, high = cell.interval or (None, None)
    return Figure(cell.mean, low, high, float(values[:, 0, place].std(ddof=1)))


def dev_score(record: Record, setting: str, method: str, strength: float | None) -> float:
    """The mean dev score over search seeds and targets of the candidate with that λ, from its runs."""
    study = record.definition
    (found,) = (each for each in study.settings if each.name == setting)
    runs = with_runs(study, found)
    (candidate,) = (each for each in runs.candidates[method] if each.values.get("lambda") == strength)
    rows = scores_of(record, "dev")
    scores = [
        rows[run.configuration_id, run.seed][target]["score"]
        for seed in study.search_seeds_of(found)
        for run in candidate.search[seed]
        for target in found.targets
    ]
    return summary(scores).mean


_Scores = dict[tuple[str, int], dict[str, Any]]
_SCORES: dict[tuple[str, str], _Scores] = {}


def scores_of(record: Record, split: str) -> _Scores:
    """By configuration and seed the recorded scores of a run on this split, by task."""
    name = record.path.name
    if (name, split) not in _SCORES:
        columns = ["configuration", "seed", "scores"]
        rows = pd.read_csv(record.path, usecols=columns)[columns]
        _SCORES[name, split] = {
            (configuration, int(seed)): {
                score["task"]: score for score in json.loads(scores) if score["split"] == split
            }
            for configuration, seed, scores in rows.itertuples(index=False)
        }
    return _SCORES[name, split]
