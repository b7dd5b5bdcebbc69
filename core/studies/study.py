"""What a study is: settings, the families of methods compared in them, and the one they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.config import RunConfig
from core.config.sweep import expand, with_seeds
from core.registry import BY_CONFIGURATION, PREDICTED
from core.studies.published import Reported

Arms = tuple[Mapping[str, Any], ...]
"""Candidates: each maps fields of a run to values."""


def mrn_arms(lambdas: Iterable[float], prior: str, **fields: Any) -> Arms:
    """An arm of MRN with that prior for each λ."""
    return tuple({"paradigm": "mrn", "prior": prior} | fields | {"lambda": value} for value in lambdas)


def one_rate(lr: float) -> dict[str, float]:
    """One learning rate for all parts of the model."""
    return dict.fromkeys(("lr_encoder", "lr_bilstm", "lr_heads"), lr)


@dataclass(frozen=True)
class Family:
    """One method with its candidates; dev chooses among the arms.

    `arms_of` gives the arms for the fields of a setting, where they depend on them. `base` names the family
    that this one changes in one thing: differences from it are reported beside those from the study's
    reference.
    """

    name: str
    title: str
    arms: Arms = ()
    base: str = ""
    arms_of: Callable[[Mapping[str, Any]], Arms] | None = field(default=None, compare=False)

    def among(self, base: Mapping[str, Any]) -> Family:
        """This family with the arms that it has in a setting of these fields."""
        return self if self.arms_of is None else replace(self, arms=self.arms_of(base), arms_of=None)

    def describe(self, arm: Mapping[str, Any]) -> str:
        """The fields in which this arm differs from the others, such as `λ=0.01`; empty for a single arm."""
        return ", ".join(
            f"{'λ' if name == 'lambda' else name}={_plain(arm.get(name))}" for name in self.searched
        )

    @property
    def searched(self) -> tuple[str, ...]:
        """The fields in which the arms differ: those that dev chooses."""
        names = dict.fromkeys(name for arm in self.arms for name in arm)
        first = self.arms[0]
        return tuple(name for name in names if any(arm.get(name) != first.get(name) for arm in self.arms))


@dataclass(frozen=True)
class Setting:
    """One comparison: the fields common to all of its runs, the tasks whose scores count, the families.

    A field in `base` that only some runs have (the alignment, λ) is dropped for the others. `part` groups
    settings. `search` are the fields in which the runs that choose an arm differ from those whose scores
    count: a dev split, where the latter have none. `model` is the encoder's name in a published table.
    `added_to` are the fields in which the base run differs, which learns the tasks that are no targets: arms
    with the prior `predicted` add the target to it, seed by seed.
    """

    name: str
    title: str
    part: str
    base: Mapping[str, Any]
    targets: tuple[str, ...]
    families: tuple[str, ...]
    search: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    seeds: tuple[int, ...] = ()
    added_to: Mapping[str, Any] = field(default_factory=dict)


def frozen_setting(
    name: str,
    title: str,
    corpus: str,
    tasks: str,
    epochs: int,
    families: Iterable[str],
    targets: str = "",
    **fields: Any,
) -> Setting:
    """A setting over a frozen encoder, whose heads learn fast. Tasks and targets are separated by spaces."""
    base = {
        "corpus": corpus,
        "tasks": tuple(tasks.split()),
        "encoder_training": "frozen",
        "label_inventory": "train",  # as measured for the studies' pages
        "epochs": epochs,
        "lr_heads": 0.03,
    }
    return Setting(name, title, "frozen", base | fields, tuple((targets or tasks).split()), tuple(families))


def beside_simulated(task: str, number: int) -> str:
    """The names of a task and of so many simulated ones, with spaces."""
    return " ".join([task, *(f"sim-{place}" for place in range(1, number + 1))])


@dataclass(frozen=True)
class Paper:
    """A published table that a part of a study repeats, and rows from the literature that stand in it.

    `note` says what a reader must know to read our figures beside them. `is_compared` says whether published
    figures have a spread, by which ours are told to lie within, above or below.
    """

    title: str
    citation: str
    note: str
    reported: tuple[Reported, ...] = ()
    is_compared: bool = True


@dataclass(frozen=True)
class Sample:
    """What a study may find, before it is run here: differences in points from `reference`, by row and task,
    each with the ends of its 95% interval and its verdict, where they are known.
    """

    words: str
    reference: str
    rows: Mapping[str, Mapping[str, tuple[float, float | None, float | None, str]]]


@dataclass(frozen=True)
class Study:
    """A sweep plus its analysis. Arms are chosen with `search_seeds`; results rest on all `seeds`.

    `small` names a version of a few minutes: one of the settings, and over which encoder. `papers` are the
    published tables, by part. `protocol` says in plain text what a reader of the report must know of how the
    runs were made. `over` makes the same study over another encoder, given its name and how it is trained;
    None where the study names its encoders. `by_task`: its report has a table per task, for settings with
    different tasks. `by_epoch`: it has dev scores by epoch. `pairs`: its settings are pairs of tasks, whose
    titles these are, and its report is the matrix of gains. `by_relatedness`: its corpora are simulated, and
    its report tells how scores depend on the relatedness planted there. Raises ValueError where it
    contradicts itself.
    """

    name: str
    title: str
    question: str
    settings: tuple[Setting, ...]
    families: tuple[Family, ...]
    reference: str
    search_seeds: tuple[int, ...] = (1, 2)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    papers: Mapping[str, Paper] = field(default_factory=dict)
    protocol: str = ""
    over: Callable[[str | None, str], Study] | None = field(default=None, compare=False)
    sample: Sample | None = None
    by_task: bool = False
    by_epoch: bool = False
    pairs: Mapping[str, str] = field(default_factory=dict)
    by_relatedness: bool = False
    small: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [family.name for family in self.families]
        for names in (known, [setting.name for setting in self.settings]):
            if len(set(names)) < len(names):
                raise ValueError(f"{self.name}: a name is given twice among {', '.join(names)}")
        for setting in self.settings:
            if unknown := set(setting.families) - set(known):
                raise ValueError(f"{self.name}/{setting.name}: no family is called {', '.join(unknown)}")
            families = self.families_in(setting)
            if empty := [family.name for family in families.values() if not family.arms]:
                raise ValueError(f"{self.name}/{setting.name}: the family {empty[0]} has no arm")
            needed = [self.reference, *(family.base for family in families.values() if family.base)]
            if missing := [name for name in needed if name not in families]:
                raise ValueError(f"{self.name}/{setting.name}: the reference {missing[0]} is missing")
        if not self.search_seeds or not set(self.search_seeds) <= set(self.seeds):
            raise ValueError(f"{self.name}: the seeds of the search must be some of all seeds")

    def family(self, name: str) -> Family:
        """The family of that name. Raises KeyError."""
        return {family.name: family for family in self.families}[name]

    def families_in(self, setting: Setting) -> dict[str, Family]:
        """The setting's families by name, in its order, with the arms that they have for its tasks."""
        families = {family.name: family for family in self.families}
        return {name: families[name].among(setting.base) for name in setting.families}

    def parts(self) -> tuple[str, ...]:
        """The parts in the order of the settings."""
        return tuple(dict.fromkeys(setting.part for setting in self.settings))

    def with_seeds(self, count: int) -> Study:
        """The same study with its first `count` seeds; beyond its own, seeds go on counting."""

        def first(seeds: tuple[int, ...]) -> tuple[int, ...]:
            return (*seeds, *range(max(seeds) + 1, max(seeds) + 1 + count))[:count]

        seeds = first(self.seeds)
        search = tuple(seed for seed in self.search_seeds if seed in seeds) or seeds[:1]
        settings = tuple(
            replace(setting, seeds=first(setting.seeds)) if setting.seeds else setting
            for setting in self.settings
        )
        return replace(self, seeds=seeds, search_seeds=search, settings=settings)

    def seeds_of(self, setting: Setting) -> tuple[int, ...]:
        """The seeds of a setting's runs."""
        return setting.seeds or self.seeds

    def search_seeds_of(self, setting: Setting) -> tuple[int, ...]:
        """The seeds that choose among arms in a setting: as many of its own, where it has such."""
        return setting.seeds[: len(self.search_seeds)] or self.search_seeds


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@dataclass(frozen=True)
class DevScores:
    """Scores on the development sentences, by run and task, in [0, 1]: all that may choose an arm, so that
    results on the test sentences were not chosen by them.
    """

    by_run: Mapping[RunConfig, Mapping[str, float]]


@dataclass(frozen=True)
class Arm:
    """One candidate of a family: its own fields, and its runs by seed. STL has a run for each target.

    `search` are the runs that choose it among the arms. Unless the setting says otherwise they are `runs`.
    """

    values: Mapping[str, Any]
    runs: Mapping[int, tuple[RunConfig, ...]]
    search: Mapping[int, tuple[RunConfig, ...]]

    def of(self, seeds: Iterable[int]) -> list[RunConfig]:
        """The runs with these seeds."""
        return [run for seed in seeds for run in self.runs[seed]]


@dataclass(frozen=True)
class Layout:
    """A setting with its families and the runs of all their arms, by family in the setting's order.

    `bases` are by seed the runs that others add their task to.
    """

    study: Study
    setting: Setting
    families: Mapping[str, Family]
    arms: Mapping[str, tuple[Arm, ...]]
    bases: Mapping[int, RunConfig] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those of the runs that count."""
        return self.study.seeds_of(self.setting)

    def runs(self) -> list[RunConfig]:
        """Every run that any stage may ask for, each once."""
        runs = dict.fromkeys(self.bases.values())
        for family, arms in self.arms.items():
            for arm in arms:
                runs |= dict.fromkeys([*self.search_of(family, arm), *arm.of(self.seeds)])
        return list(runs)

    def base_of(self, run: RunConfig) -> RunConfig | None:
        """The run that this one adds its task to, and waits for."""
        return self.bases.get(run.seed) if run.added_to is not None else None

    def search_of(self, family: str, *arms: Arm) -> list[RunConfig]:
        """The runs that choose among the arms of this family: those of `arms`. A single arm has none."""
        seeds = self.study.search_seeds_of(self.setting) if len(self.arms[family]) > 1 else ()
        return [run for arm in arms for seed in seeds for run in arm.search[seed]]


def lay_out(
    study: Study, setting: Setting, place: Callable[[RunConfig], RunConfig] = lambda run: run
) -> Layout:
    """The setting's arms as runs. `place` is applied to each configuration, for folders by their whole path.

    Raises ConfigError where an arm does not make a run.
    """
    seeds = study.seeds_of(setting)

    def with_all_seeds(
        values: Mapping[str, Any], base: Mapping[str, Any]
    ) -> dict[int, tuple[RunConfig, ...]]:
        runs = [with_seeds(place(run), seeds) for run in expand(values, {"seed": seeds[:1]}, preset=base)]
        return dict(zip(seeds, zip(*runs, strict=True), strict=True))

    bases: dict[int, RunConfig] = {}
    if setting.added_to:
        others = tuple(task for task in setting.base["tasks"] if task not in setting.targets)
        of_seeds = with_all_seeds({**setting.added_to, "tasks": others}, setting.base)
        bases = {seed: run for seed, (run,) in of_seeds.items()}

    def runs_of(values: Mapping[str, Any], base: Mapping[str, Any]) -> dict[int, tuple[RunConfig, ...]]:
        fields = {**base, **values}
        of_targets = tuple(task for task in fields["tasks"] if task in setting.targets)
        if not of_targets:
            return dict.fromkeys(seeds, ())
        if fields.get("paradigm") == "stl":  # of another task it would count for nothing
            values = {**values, "tasks": of_targets}
        if bases and fields.get("prior") == PREDICTED:
            named = BY_CONFIGURATION + bases[seeds[0]].configuration_id
            values = {**values, "tasks": of_targets, "added_to": named}
        return with_all_seeds(values, base)

    def arm(values: Mapping[str, Any]) -> Arm:
        runs = runs_of(values, setting.base)
        return Arm(
            values, runs, runs_of(values, {**setting.base, **setting.search}) if setting.search else runs
        )

    families = study.families_in(setting)
    arms = {name: tuple(map(arm, family.arms)) for name, family in families.items()}
    return Layout(study, setting, families, arms, bases)


def dev_mean(arm: Arm, seeds: Iterable[int], targets: Collection[str], dev: DevScores) -> float | None:
    """The arm's mean dev score over seeds and targets in the search; None where one of them is missing."""
    scores = []
    for seed in seeds:
        by_task = {task: score for run in arm.search[seed] for task, score in dev.by_run.get(run, {}).items()}
        if not set(targets) <= by_task.keys():
            return None
        scores += [by_task[target] for target in targets]
    return math.fsum(scores) / len(scores)


def chosen_arm(layout: Layout, family: str, dev: DevScores, failed: Collection[RunConfig]) -> Arm | None:
    """The arm with the best dev mean over the search seeds, the first of equals; None while that is open.

    An arm that failed with one of them is out. A single arm is chosen from the start.
    """
    arms = layout.arms[family]
    if len(arms) == 1:
        return arms[0]
    if _unknown(layout.search_of(family, *arms), dev, failed):
        return None
    seeds, targets = layout.study.search_seeds_of(layout.setting), layout.setting.targets
    scored = [(mean, arm) for arm in arms if (mean := dev_mean(arm, seeds, targets, dev)) is not None]
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


@dataclass(frozen=True)
class Planned:
    """A run that a study has made or will make. `open` names the fields that dev has yet to choose for it.

    `stage` is `search`, `final`, or `search, final` where the run that helps to choose an arm also counts if
    that arm is chosen; `base` where others are added to it.
    """

    setting: str
    family: str
    stage: str
    run: RunConfig
    open: tuple[str, ...] = ()


def planned(layout: Layout, dev: DevScores, failed: Collection[RunConfig]) -> list[Planned]:
    """Every run of the setting: the base runs, then of each family those that choose an arm and those of the
    chosen arm.

    While that is open the first arm stands for it. A family whose arms all failed has no final runs. A base
    run is planned where it is known, or a run to come needs it.
    """
    plan: list[Planned] = []
    for family, arms in layout.arms.items():
        search = dict.fromkeys(layout.search_of(family, *arms))
        counts = frozenset(run for arm in arms for run in arm.of(layout.seeds))
        for run in search:
            stage = "search, final" if run in counts else "search"
            plan.append(Planned(layout.setting.name, family, stage, run))
        chosen = chosen_arm(layout, family, dev, failed)
        if chosen is None and not _unknown(search, dev, failed):
            continue
        to_choose = () if chosen is not None else layout.families[family].searched
        plan += [
            Planned(layout.setting.name, family, "final", run, to_choose)
            for run in (chosen or arms[0]).of(layout.seeds)
            if run not in search
        ]
    bases: dict[RunConfig, str] = {}
    for each in plan:
        base = layout.base_of(each.run)
        if base is not None and (base in dev.by_run or each.run not in dev.by_run):
            bases.setdefault(base, each.family)
    first = [Planned(layout.setting.name, family, "base", base) for base, family in bases.items()]
    return [*first, *plan]


def next_runs(layout: Layout, dev: DevScores, failed: Collection[RunConfig]) -> list[RunConfig]:
    """The runs to make now, none that is known or has failed. Empty when the setting is at its end.

    Each family goes on by itself: those that need no search, or have theirs behind them, do not wait. A run
    waits for its base.
    """
    ready = dict.fromkeys(plan.run for plan in planned(layout, dev, failed) if not plan.open)
    due = _unknown(ready, dev, failed)
    return [run for run in due if (base := layout.base_of(run)) is None or base in dev.by_run]


def remaining(
    plan: Sequence[Planned], dev: DevScores, failed: Collection[RunConfig]
) -> tuple[list[RunConfig], list[RunConfig]]:
    """The runs of a plan still to be made in the search and after it."""
    search = _unknown(dict.fromkeys(each.run for each in plan if each.stage != "final"), dev, failed)
    final = _unknown(dict.fromkeys(each.run for each in plan if each.stage == "final"), dev, failed)
    return search, [run for run in final if run not in search]


def _unknown(runs: Iterable[RunConfig], dev: DevScores, failed: Collection[RunConfig]) -> list[RunConfig]:
    """Those that have neither succeeded nor failed."""
    return [run for run in runs if run not in dev.by_run and run not in failed]
