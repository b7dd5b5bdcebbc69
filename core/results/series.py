"""Scores against the one number in which configurations differ: λ, the share of sentences, a rate, α."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

from core.config import FIELD_HELP, RunConfig, comparison_values, default_value, field_label
from core.config.fields import attribute_name
from core.evaluation.statistics import MeanSD, summary
from core.results.choice import chosen_on_dev
from core.results.samples import older_texts, sampled
from core.store.records import Conditions, Run, RunState, StoredScore
from core.wording import number

SPLITS = ("test", "dev")
_OPTION = re.compile(r"(?<=[?&])(\w+)=([^&]+)(?=&|$)")
_SYMBOLS = {"alpha": "α", **{name: known.symbol for name, known in FIELD_HELP.items() if known.symbol}}
# Scores on other text do not make one line.
_SCORED_ON = ("dev", "test", "dev_sentences")


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
        return f"{100 * value:g}%" if self.setting == "fraction" else number(value)


@dataclass(frozen=True)
class ScoreLine:
    """The scores of a task on a split, in [0, 1], by value of the setting; the task "" is the mean of all."""

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
    """The scores of a series: a line for each task and for their mean, on each split that has scores."""

    series: Series
    tasks: tuple[str, ...]
    lines: tuple[ScoreLine, ...]

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

    Successful runs count, one a seed (`sampled`). A field at its default does not count as different: the
    heads' learning rate follows the encoder's. Runs on older text of a corpus (`conditions`,
    `Store.conditions`) are in no series with those on its newest.
    """
    runs = [run for run in runs if run.state is RunState.SUCCEEDED]
    known = conditions or {}
    texts = older_texts(runs, known)
    on_text: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        on_text[texts.get(run.id, "")].append(run)
    by_id: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for text, same in on_text.items():
        for run in sampled(same, known):
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


def scores_against(series: Series, scores: Iterable[StoredScore]) -> ScoresAgainst:
    """These scores by value of the setting and seed."""
    known = {(score.run_id, score.split, score.task): score.score for score in scores if score.is_defined}
    by_value = {value: sorted(runs, key=lambda run: run.id) for value, runs in series.runs.items()}
    runs = sorted(chain.from_iterable(by_value.values()), key=lambda run: run.id)
    scored = {task for _, _, task in known}
    named = dict.fromkeys(task for run in runs for task in run.config.tasks)
    tasks = tuple(task for task in named if task in scored)
    means = [(task, (task,)) for task in tasks] + [("", tasks)] * (len(tasks) > 1)
    lines = []
    for split, (name, of_mean) in product(SPLITS, means):
        values: dict[float, dict[int, float]] = {}
        for value, of_value in by_value.items():
            by_task = [
                {
                    run.config.seed: known[run.id, split, task]
                    for run in of_value
                    if (run.id, split, task) in known
                }
                for task in of_mean
            ]
            if seeds := sorted(set.intersection(*map(set, by_task))):
                values[value] = {
                    seed: math.fsum(by_seed[seed] for by_seed in by_task) / len(by_task) for seed in seeds
                }
        if values:
            lines.append(ScoreLine(name, split, values))
    return ScoresAgainst(series, tasks, tuple(lines))


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
    is_default = name in FIELD_HELP and value == default_value(config, attribute_name(name))
    return "default" if value is not None and is_default else repr(value)
