"""Scores against the one number in which configurations differ: λ, the share of sentences, a rate, α."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

from core.config import FIELD_HELP, OTHER, RunConfig, comparison_values, default_value, field_label
from core.evaluation.statistics import MeanSD, summary
from core.results.choice import chosen_on_dev
from core.results.naming import confounds, fields_apart, number_texts, shortest_names
from core.results.samples import by_configuration, older_texts, succeeded_one_per_seed
from core.store.types import Conditions, Run, RunState, StoredScore
from core.wording import number

SPLITS = ("test", "dev")
_OPTION = re.compile(r"(?<=[?&])(\w+)=([^&]+)(?=&|$)")
_SYMBOLS = {"alpha": "α", **{name: help_.symbol for name, help_ in FIELD_HELP.items() if help_.symbol}}
# Scores on other text do not make one line.
_SCORED_ON = ("dev", "test", "dev_sentences")
_DATA = ("corpus", "fraction", "pos_score")
_BASES = ("mtl", "stl", "mrn", OTHER)
"""The paradigms in the order in which a baseline is looked for."""


@dataclass(frozen=True)
class Series:
    """Configurations that differ in one number alone: their runs by its value, in ascending order.

    `setting` is a field's public name, or an option of the corpus's name.
    """

    setting: str
    runs: Mapping[float, Sequence[Run]]

    @property
    def title(self) -> str:
        """The setting on a page: `λ`, `Learning rate, heads`."""
        return _SYMBOLS.get(self.setting) or field_label(self.setting)

    @property
    def config(self) -> RunConfig:
        """The description of one of the runs."""
        return next(iter(self.runs.values()))[0].config

    @property
    def run_ids(self) -> list[int]:
        return [run.id for runs in self.runs.values() for run in runs]

    def value_text(self, value: float) -> str:
        """A value of the setting: `0.01`, of a share `5%`."""
        if self.setting == "fraction":
            return f"{100 * value:g}%"
        values = list(self.runs)
        return number_texts(values)[values.index(value)] if value in values else number(value)


@dataclass(frozen=True)
class Baseline:
    """What a series is compared with: its runs by value of the series' setting.

    They are the runs with the same value, or at each value those of one configuration that does not vary.
    """

    name: str
    runs: Mapping[float, Sequence[Run]]
    is_value: bool = False
    """Whether it is one of the series' own values."""

    @property
    def run_ids(self) -> list[int]:
        return list(dict.fromkeys(run.id for runs in self.runs.values() for run in runs))


@dataclass(frozen=True)
class ScoreLine:
    """The scores of a task on a split, in [0, 1], by value of the setting; the task "" is the mean of all.

    Of differences the scores are those of the series less those of the baseline, seed by seed.
    """

    task: str
    split: str
    by_seed: Mapping[float, Mapping[int, float]]
    """The scores of each value, by seed."""

    @cached_property
    def points(self) -> dict[float, MeanSD]:
        """The mean of each value and its spread over seeds."""
        return {value: summary(scores.values()) for value, scores in self.by_seed.items()}


@dataclass(frozen=True)
class ScoresAgainst:
    """The scores of a series: a line for each task and for their mean, on each split that has scores.

    `base_lines` are those of the baseline, if there is one.
    """

    series: Series
    tasks: tuple[str, ...]
    lines: tuple[ScoreLine, ...]
    baseline: Baseline | None = None
    base_lines: tuple[ScoreLine, ...] = ()

    @property
    def differences(self) -> tuple[ScoreLine, ...]:
        """The lines less those of the baseline, paired: at each value over the seeds that both have."""
        base = {(line.task, line.split): line.by_seed for line in self.base_lines}
        lines = []
        for line in self.lines:
            of_base = base.get((line.task, line.split), {})
            paired = {
                value: {
                    seed: score - of_base[value][seed]
                    for seed, score in scores.items()
                    if seed in of_base[value]
                }
                for value, scores in line.by_seed.items()
                if value in of_base
            }
            if with_seeds := {value: by_seed for value, by_seed in paired.items() if by_seed}:
                lines.append(ScoreLine(line.task, line.split, with_seeds))
        return tuple(lines)

    @property
    def dev_choice(self) -> float | None:
        """The value with the highest mean dev score (`chosen_on_dev`); None where no means are comparable."""
        on_dev = {line.task: line.by_seed for line in self.lines if line.task and line.split == "dev"}
        return chosen_on_dev(
            {
                value: {task: by_seed[value] for task, by_seed in on_dev.items() if value in by_seed}
                for value in self.series.runs
            }
        )


def number_series(runs: Iterable[Run], conditions: Mapping[int, Conditions] | None = None) -> list[Series]:
    """The configurations of these runs that differ in one number alone, the series with most values first.

    Successful runs count, one a seed. A field at its default does not count as different: the heads' learning
    rate follows the encoder's. Runs on older text of a corpus (`conditions`, `Store.conditions`) are in no
    series with those on its newest.
    """
    runs = [run for run in runs if run.state is RunState.SUCCEEDED]
    conditions = conditions or {}
    texts = older_texts(runs, conditions)
    on_text: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        on_text[texts.get(run.id, "")].append(run)
    by_id: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for text, same in on_text.items():
        for run in succeeded_one_per_seed(same, conditions):
            by_id[run.configuration_id, text].append(run)
    settings = {key: _settings(alike[0].config) for key, alike in by_id.items()}
    names = dict.fromkeys(name for values in settings.values() for name in values)
    varying = [name for name in names if len({repr(values.get(name)) for values in settings.values()}) > 1]
    described = {
        (key, name): _text(by_id[key][0].config, name, values.get(name))
        for key, values in settings.items()
        for name in varying
    }
    series = []
    for setting in varying:
        by_others: dict[tuple[str, ...], dict[float, list[Run]]] = defaultdict(lambda: defaultdict(list))
        for key, values in settings.items():
            if _is_number(values.get(setting)) and setting not in _SCORED_ON:
                others = tuple(described[key, name] for name in varying if name != setting)
                by_others[*others, key[1]][values[setting]] += by_id[key]
        series += [
            Series(setting, dict(sorted(by_value.items())))
            for by_value in by_others.values()
            if len(by_value) > 1
        ]
    return sorted(series, key=lambda each: -len(each.runs))


def baselines(
    series: Series, runs: Iterable[Run], conditions: Mapping[int, Conditions] | None = None
) -> list[Baseline]:
    """The configurations of these runs from which a series may differ, the nearest to it first.

    MTL comes before STL and MRN, its own paradigm last, and among those what differs in the fewest fields. A
    configuration that varies in the setting too is compared at equal values. The last are the values of the
    series themselves. All are on the data of the series: none varies where the setting is of the data.
    """
    conditions = conditions or {}
    every = [run for run in runs if run.state is RunState.SUCCEEDED]
    texts = older_texts(every, conditions)
    text, data = texts.get(series.run_ids[0], ""), _data(series.config, series.setting)
    on_data = [
        run for run in every if texts.get(run.id, "") == text and _data(run.config, series.setting) == data
    ]
    varying = [
        other
        for other in number_series(on_data, conditions)
        if other.setting == series.setting
        and other.runs.keys() & series.runs.keys()
        and other.run_ids != series.run_ids
    ]
    taken = {*series.run_ids, *chain.from_iterable(other.run_ids for other in varying)}
    others: list[Mapping[float, Sequence[Run]]] = [other.runs for other in varying]
    own: list[Baseline] = []
    if series.setting not in _DATA and series.setting in comparison_values(series.config):
        others += [
            dict.fromkeys(series.runs, same)
            for same in by_configuration(succeeded_one_per_seed(on_data, conditions)).values()
            if taken.isdisjoint(run.id for run in same)
        ]
        own = [
            Baseline(
                f"{series.title} {series.value_text(value)}",
                dict.fromkeys(series.runs, of_value),
                is_value=True,
            )
            for value, of_value in series.runs.items()
        ]
    configs = [next(iter(by_value.values()))[0].config for by_value in others]
    named = [Baseline(name, by_value) for name, by_value in zip(_distinct(configs), others, strict=True)]

    def distance(index: int) -> tuple[bool, int, int]:
        config = configs[index]
        fields = confounds(config, series.config, ("paradigm", series.setting))
        return config.paradigm == series.config.paradigm, _BASES.index(config.paradigm), len(fields)

    return [named[index] for index in sorted(range(len(named)), key=distance)] + own


def _distinct(configs: Sequence[RunConfig]) -> list[str]:
    names = shortest_names(configs)
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def _data(config: RunConfig, setting: str) -> dict[str, Any]:
    """What says on which data a run is scored, without the setting."""
    settings, fields = _settings(config), comparison_values(config)
    return {
        name: value
        for name, value in settings.items()
        if (name in _DATA or name not in fields) and name != setting
    }


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


def scores_against(
    series: Series, scores: Iterable[StoredScore], baseline: Baseline | None = None
) -> ScoresAgainst:
    """These scores by value of the setting and seed; with those of a baseline, on the tasks of the series."""
    defined = {(score.run_id, score.split, score.task): score.score for score in scores if score.is_defined}
    scored = {task for _, _, task in defined}
    runs = sorted(chain.from_iterable(series.runs.values()), key=lambda run: run.id)
    named = dict.fromkeys(task for run in runs for task in run.config.tasks)
    tasks = tuple(task for task in named if task in scored)
    base = () if baseline is None else _lines(baseline.runs, tasks, defined)
    return ScoresAgainst(series, tasks, _lines(series.runs, tasks, defined), baseline, base)


def _lines(
    runs: Mapping[float, Sequence[Run]], tasks: Sequence[str], defined: Mapping[tuple[int, str, str], float]
) -> tuple[ScoreLine, ...]:
    """A line for each task and for the mean of all, on each split; of a repeated seed the newest counts."""
    by_value = {value: sorted(of_value, key=lambda run: run.id) for value, of_value in runs.items()}
    means = [(task, (task,)) for task in tasks] + [("", tuple(tasks))] * (len(tasks) > 1)
    lines = []
    for split, (name, of_mean) in product(SPLITS, means):
        values: dict[float, dict[int, float]] = {}
        for value, of_value in by_value.items():
            by_task = [
                {
                    run.config.seed: defined[run.id, split, task]
                    for run in of_value
                    if (run.id, split, task) in defined
                }
                for task in of_mean
            ]
            if seeds := sorted(set.intersection(*map(set, by_task))):
                values[value] = {
                    seed: math.fsum(by_seed[seed] for by_seed in by_task) / len(by_task) for seed in seeds
                }
        if values:
            lines.append(ScoreLine(name, split, values))
    return tuple(lines)


def _settings(config: RunConfig) -> dict[str, Any]:
    """The fields of a configuration, with numbers in its corpus's name as settings of their own."""
    fields = comparison_values(config)
    numbers = {}
    for option, text in _OPTION.findall(config.corpus):
        try:
            value = float(text)
        except ValueError:
            continue
        if option not in fields and math.isfinite(value):
            numbers[option] = value
    corpus = _OPTION.sub(lambda match: match[1] if match[1] in numbers else match[0], config.corpus)
    return fields | {"corpus": corpus} | numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(config: RunConfig, name: str, value: Any) -> str:
    is_default = name in FIELD_HELP and value == default_value(config, name)
    return "default" if value is not None and is_default else repr(value)
