"""A study: settings, the methods compared in them, and the one they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from core.config import RunConfig
from core.config.sweep import expand, with_seeds
from core.registry import BY_CONFIGURATION, PREDICTED
from core.results import choice
from core.studies.published import Reported
from core.wording import uncapitalised

_KEPT = "probability that a simulated task keeps a word's real label."
ALPHA = f"α is the share of labels kept, the {_KEPT}"
TERMS: Mapping[str, str] = {
    "α": ALPHA,
    "labels kept": f"Labels kept: {_KEPT}",
    "permuted": "Names permuted: the labels of that task bear each other's names.",
    "noise": "Noise: a task whose labels are kept no more often than by chance.",
}
"""What words in the titles of settings mean."""
RELATIONAL, PUBLISHED = "MRN with the relational prior", "MRN with the published prior"
"""The names of MRN with either prior in sentences and in tables of pages, the same in all studies."""
Candidates = tuple[Mapping[str, Any], ...]
"""Each maps fields of a run to values."""


def mrn_candidates(lambdas: Iterable[float], prior: str, **fields: Any) -> Candidates:
    """A candidate of MRN with that prior for each λ."""
    return tuple({"paradigm": "mrn", "prior": prior} | fields | {"lambda": value} for value in lambdas)


def one_rate(lr: float) -> dict[str, float]:
    """One learning rate for all parts of the model."""
    return dict.fromkeys(("lr_encoder", "lr_bilstm", "lr_heads"), lr)


@dataclass(frozen=True)
class Method:
    """A method with its candidates, among which dev chooses.

    `candidates_for` gives them for the fields of a setting, where they depend on these. `base` names the
    method that this one changes in one thing: differences from it are reported beside those from the study's
    reference. `words` name it in a sentence, where its title is too short for one. `meaning` says what it is,
    where its fields do not (`core.studies.meaning`).
    """

    name: str
    title: str
    candidates: Candidates = ()
    base: str = ""
    words: str = ""
    meaning: str = ""
    candidates_for: Callable[[Mapping[str, Any]], Candidates] | None = field(default=None, compare=False)

    @property
    def in_sentence(self) -> str:
        """Its name within a sentence: `MRN with the published prior`, `one head for all tasks`, `MTL`."""
        return self.words or uncapitalised(self.title)

    def among(self, base: Mapping[str, Any]) -> Method:
        """This method with its candidates for the fields of a setting."""
        return (
            self
            if self.candidates_for is None
            else replace(self, candidates=self.candidates_for(base), candidates_for=None)
        )

    def describe(self, candidate: Mapping[str, Any]) -> str:
        """The fields in which a candidate differs from the others, as `λ=0.01`; empty for a single one."""
        return ", ".join(
            f"{'λ' if name == 'lambda' else name}={_plain(candidate.get(name))}" for name in self.searched
        )

    @property
    def searched(self) -> tuple[str, ...]:
        """The fields in which the candidates differ, and which dev chooses."""
        names = dict.fromkeys(name for candidate in self.candidates for name in candidate)
        first = self.candidates[0]
        return tuple(
            name
            for name in names
            if any(candidate.get(name) != first.get(name) for candidate in self.candidates)
        )


@dataclass(frozen=True)
class Setting:
    """One comparison of methods on target tasks.

    `base` are the fields common to all of its runs; one that only some runs have (the alignment, λ) is
    dropped for the others. `part` groups settings. The runs that choose a candidate have the fields `search`
    too: a dev split, where the others have none. `model` is the encoder's name in a published table.
    `added_to` are the fields of the base run, which learns the tasks that are no targets: candidates with the
    prior `predicted` add the target to it, seed by seed.
    """

    name: str
    title: str
    part: str
    base: Mapping[str, Any]
    targets: tuple[str, ...]
    methods: tuple[str, ...]
    search: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    seeds: tuple[int, ...] = ()
    added_to: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""

    @property
    def in_sentence(self) -> str:
        """What methods are compared on, within a sentence: `NER with 500 words`."""
        return self.words or uncapitalised(self.title)

    def is_same_data(self, other: Setting) -> bool:
        """Whether the other setting has the same runs but for its methods."""
        return replace(self, name="", title="", methods=()) == replace(other, name="", title="", methods=())


def frozen_setting(
    name: str,
    title: str,
    corpus: str,
    tasks: str,
    epochs: int,
    methods: Iterable[str],
    targets: str = "",
    **fields: Any,
) -> Setting:
    """A setting over a frozen encoder. Tasks and targets are separated by spaces."""
    base = {
        "corpus": corpus,
        "tasks": tuple(tasks.split()),
        "encoder_training": "frozen",
        "label_inventory": "train",  # as measured for the studies' pages
        "epochs": epochs,
        "lr_heads": 0.03,
    }
    return Setting(name, title, "frozen", base | fields, tuple((targets or tasks).split()), tuple(methods))


def beside_simulated(task: str, number: int) -> str:
    """The names of a task and of `number` simulated ones, separated by spaces."""
    return " ".join([task, *(f"sim-{index}" for index in range(1, number + 1))])


@dataclass(frozen=True)
class Paper:
    """A published table that a part of a study repeats, with its rows from the literature.

    `note` says what a reader must know to read our figures beside them. `is_compared` says whether published
    figures have a spread, by which ours are told to lie within, above or below.
    """

    title: str
    citation: str
    note: str
    reported: tuple[Reported, ...] = ()
    is_compared: bool = True


@dataclass(frozen=True)
class Asked:
    """What a study's answer is of: these methods over the reference, counted over settings.

    `group` gives the words that follow the number of settings of a kind: `with a frozen encoder`. `noun`
    names the methods where they are several.
    """

    methods: tuple[str, ...]
    group: Callable[[Setting], str] = lambda _: ""
    noun: str = "method"


@dataclass(frozen=True)
class Study:
    """A sweep plus its analysis. Candidates are chosen with `search_seeds`; results rest on all `seeds`.

    `small` names a version of a few minutes: one of the settings, and over which encoder. `papers` are the
    published tables, by part. `protocol` says in plain text what a reader of the report must know of how the
    runs were made. `over` makes the same study over another encoder, given its name and how it is trained;
    None where the study names its encoders. `by_task`: its report has a table per task, for settings with
    different tasks. `by_epoch`: it has dev scores by epoch. `pairs`: its settings are pairs of tasks, whose
    titles these are, and its report is the matrix of gains. `by_relatedness`: its corpora are simulated, and
    its report tells how scores depend on the relatedness planted there. `about` says of parts what sets them
    apart. `asked`: what its answer is of, where
    that is not its first setting. Raises ValueError where it contradicts itself.
    """

    name: str
    title: str
    question: str
    settings: tuple[Setting, ...]
    methods: tuple[Method, ...]
    reference: str
    search_seeds: tuple[int, ...] = (1, 2)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    papers: Mapping[str, Paper] = field(default_factory=dict)
    protocol: str = ""
    for_encoder: Callable[[str | None, str], Study] | None = field(default=None, compare=False)
    by_task: bool = False
    by_epoch: bool = False
    pairs: Mapping[str, str] = field(default_factory=dict)
    by_relatedness: bool = False
    about: Mapping[str, str] = field(default_factory=dict, compare=False)
    small: Mapping[str, Any] = field(default_factory=dict)
    asked: Asked | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        method_names = [method.name for method in self.methods]
        for names in (method_names, [setting.name for setting in self.settings]):
            if len(set(names)) < len(names):
                raise ValueError(f"{self.name}: a name is given twice among {', '.join(names)}")
        for setting in self.settings:
            if unknown := set(setting.methods) - set(method_names):
                raise ValueError(f"{self.name}/{setting.name}: no method is called {', '.join(unknown)}")
            methods = self.methods_in(setting)
            if empty := [method.name for method in methods.values() if not method.candidates]:
                raise ValueError(f"{self.name}/{setting.name}: the method {empty[0]} has no candidate")
            needed = [self.reference, *(method.base for method in methods.values() if method.base)]
            if missing := [name for name in needed if name not in methods]:
                raise ValueError(f"{self.name}/{setting.name}: the reference {missing[0]} is missing")
        if not self.search_seeds or not set(self.search_seeds) <= set(self.seeds):
            raise ValueError(f"{self.name}: the seeds of the search must be some of all seeds")

    def method(self, name: str) -> Method:
        """The method of that name. Raises KeyError."""
        return {method.name: method for method in self.methods}[name]

    def methods_in(self, setting: Setting) -> dict[str, Method]:
        """The setting's methods by name, in its order, with the candidates that they have for its tasks."""
        methods = {method.name: method for method in self.methods}
        return {name: methods[name].among(setting.base) for name in setting.methods}

    @cached_property
    def corpora(self) -> frozenset[str]:
        """The names of the corpora that its runs may read."""
        return frozenset(
            str(fields["corpus"])
            for setting in self.settings
            for fields in (
                *(setting.base, setting.search, setting.added_to),
                *(values for method in self.methods_in(setting).values() for values in method.candidates),
            )
            if "corpus" in fields
        )

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
        """The seeds that choose among candidates in a setting: the first of its own, else the study's."""
        return setting.seeds[: len(self.search_seeds)] or self.search_seeds


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@dataclass(frozen=True)
class DevByRun:
    """Scores on the development sentences, by run and task, in [0, 1].

    Only they choose a candidate, so that results on the test sentences were not chosen by them.
    """

    by_run: Mapping[RunConfig, Mapping[str, float]]


@dataclass(frozen=True)
class Candidate:
    """One candidate of a method: its own fields, and its runs by seed. STL has a run for each target.

    `search` are the runs that choose it among the others. Unless the setting says otherwise they are `runs`.
    """

    values: Mapping[str, Any]
    runs: Mapping[int, tuple[RunConfig, ...]]
    search: Mapping[int, tuple[RunConfig, ...]]

    def runs_with(self, seeds: Iterable[int]) -> list[RunConfig]:
        """The runs with these seeds."""
        return [run for seed in seeds for run in self.runs[seed]]


@dataclass(frozen=True)
class SettingRuns:
    """A setting with its methods and the runs of all their candidates, by method in the setting's order.

    `bases` are by seed the runs that others add their task to.
    """

    study: Study
    setting: Setting
    methods: Mapping[str, Method]
    candidates: Mapping[str, tuple[Candidate, ...]]
    bases: Mapping[int, RunConfig] = field(default_factory=dict)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs that count."""
        return self.study.seeds_of(self.setting)

    def runs(self) -> list[RunConfig]:
        """Every run that any stage may ask for, each once."""
        runs = dict.fromkeys(self.bases.values())
        for method, candidates in self.candidates.items():
            for candidate in candidates:
                runs |= dict.fromkeys([*self.search_of(method, candidate), *candidate.runs_with(self.seeds)])
        return list(runs)

    def base_of(self, run: RunConfig) -> RunConfig | None:
        """The run that this one adds its task to, and waits for."""
        return self.bases.get(run.seed) if run.added_to is not None else None

    def search_of(self, method: str, *candidates: Candidate) -> list[RunConfig]:
        """The runs of these candidates that choose among all of this method. A single candidate has none."""
        seeds = self.study.search_seeds_of(self.setting) if len(self.candidates[method]) > 1 else ()
        return [run for candidate in candidates for seed in seeds for run in candidate.search[seed]]


def with_runs(
    study: Study, setting: Setting, resolve: Callable[[RunConfig], RunConfig] = lambda run: run
) -> SettingRuns:
    """The setting with its candidates as runs. `resolve` is applied to each, for absolute paths.

    Raises ConfigError where a candidate does not make a run.
    """
    seeds = study.seeds_of(setting)

    def with_all_seeds(
        values: Mapping[str, Any], base: Mapping[str, Any]
    ) -> dict[int, tuple[RunConfig, ...]]:
        runs = [with_seeds(resolve(run), seeds) for run in expand(values, {"seed": seeds[:1]}, preset=base)]
        return dict(zip(seeds, zip(*runs, strict=True), strict=True))

    bases: dict[int, RunConfig] = {}
    if setting.added_to:
        others = tuple(task for task in setting.base["tasks"] if task not in setting.targets)
        by_seed = with_all_seeds({**setting.added_to, "tasks": others}, setting.base)
        bases = {seed: run for seed, (run,) in by_seed.items()}

    def runs_of(values: Mapping[str, Any], base: Mapping[str, Any]) -> dict[int, tuple[RunConfig, ...]]:
        fields = {**base, **values}
        target_tasks = tuple(task for task in fields["tasks"] if task in setting.targets)
        if not target_tasks:
            return dict.fromkeys(seeds, ())
        if fields.get("paradigm") == "stl":  # of another task it would count for nothing
            values = {**values, "tasks": target_tasks}
        if bases and fields.get("prior") == PREDICTED:
            named = BY_CONFIGURATION + bases[seeds[0]].configuration_id
            values = {**values, "tasks": target_tasks, "added_to": named}
        return with_all_seeds(values, base)

    def candidate(values: Mapping[str, Any]) -> Candidate:
        runs = runs_of(values, setting.base)
        return Candidate(
            values, runs, runs_of(values, {**setting.base, **setting.search}) if setting.search else runs
        )

    methods = study.methods_in(setting)
    candidates = {name: tuple(map(candidate, method.candidates)) for name, method in methods.items()}
    return SettingRuns(study, setting, methods, candidates, bases)


def dev_mean(
    candidate: Candidate, seeds: Iterable[int], targets: Collection[str], dev: DevByRun
) -> float | None:
    """The mean dev score over seeds and targets in the search; None where one of them is missing."""
    seeds = tuple(seeds)
    return choice.dev_mean(_on_dev(candidate, seeds, targets, dev), targets, seeds)


def _on_dev(
    candidate: Candidate, seeds: Iterable[int], targets: Collection[str], dev: DevByRun
) -> dict[str, dict[int, float]]:
    """The dev scores in the search, by target and seed."""
    scores: dict[str, dict[int, float]] = {target: {} for target in targets}
    for seed in seeds:
        for run in candidate.search[seed]:
            for task, score in dev.by_run.get(run, {}).items():
                if task in scores:
                    scores[task][seed] = score
    return scores


def chosen_candidate(
    setting_runs: SettingRuns, method: str, dev: DevByRun, failed: Collection[RunConfig]
) -> Candidate | None:
    """The candidate with the best dev mean over the search seeds, the first of equals; None while it is open.

    A candidate that failed with one of them is out. A single candidate is chosen from the start.
    """
    candidates = setting_runs.candidates[method]
    if len(candidates) == 1:
        return candidates[0]
    if _unknown(setting_runs.search_of(method, *candidates), dev, failed):
        return None
    seeds, targets = setting_runs.study.search_seeds_of(setting_runs.setting), setting_runs.setting.targets
    place = choice.chosen_on_dev(
        {
            place: _on_dev(candidate, seeds, targets, dev)
            for place, candidate in enumerate(candidates)
            if dev_mean(candidate, seeds, targets, dev) is not None
        }
    )
    return None if place is None else candidates[place]


@dataclass(frozen=True)
class StudyRun:
    """A run that a study has made or will make. `open` names the fields that dev has yet to choose for it.

    `stage` is `search`, `final`, or `search, final` where the run that helps to choose a candidate counts too
    if that one is chosen; `base` where others are added to it.
    """

    setting: str
    method: str
    stage: str
    config: RunConfig
    open: tuple[str, ...] = ()


def planned_runs(setting_runs: SettingRuns, dev: DevByRun, failed: Collection[RunConfig]) -> list[StudyRun]:
    """Every run of the setting.

    They are the base runs, then of each method the runs that choose a candidate and the runs of the chosen
    one.

    While that is open the first candidate stands for it. A method whose candidates all failed has no final
    runs. A base run is planned where it is known, or a run to come needs it.
    """
    plan: list[StudyRun] = []
    for method, candidates in setting_runs.candidates.items():
        search = dict.fromkeys(setting_runs.search_of(method, *candidates))
        counts = frozenset(run for candidate in candidates for run in candidate.runs_with(setting_runs.seeds))
        for run in search:
            stage = "search, final" if run in counts else "search"
            plan.append(StudyRun(setting_runs.setting.name, method, stage, run))
        chosen = chosen_candidate(setting_runs, method, dev, failed)
        if chosen is None and not _unknown(search, dev, failed):
            continue
        to_choose = () if chosen is not None else setting_runs.methods[method].searched
        plan += [
            StudyRun(setting_runs.setting.name, method, "final", run, to_choose)
            for run in (chosen or candidates[0]).runs_with(setting_runs.seeds)
            if run not in search
        ]
    bases: dict[RunConfig, str] = {}
    for each in plan:
        base = setting_runs.base_of(each.config)
        if base is not None and (base in dev.by_run or each.config not in dev.by_run):
            bases.setdefault(base, each.method)
    first = [StudyRun(setting_runs.setting.name, method, "base", base) for base, method in bases.items()]
    return [*first, *plan]


def next_runs(setting_runs: SettingRuns, dev: DevByRun, failed: Collection[RunConfig]) -> list[RunConfig]:
    """The runs to make now, none that is known or has failed. Empty when the setting is at its end.

    Each method goes on by itself: those that need no search, or have theirs behind them, do not wait. A run
    waits for its base.
    """
    ready = dict.fromkeys(plan.config for plan in planned_runs(setting_runs, dev, failed) if not plan.open)
    due = _unknown(ready, dev, failed)
    return [run for run in due if (base := setting_runs.base_of(run)) is None or base in dev.by_run]


def remaining(
    plan: Sequence[StudyRun], dev: DevByRun, failed: Collection[RunConfig]
) -> tuple[list[RunConfig], list[RunConfig]]:
    """The runs of a plan still to be made in the search and after it."""
    first = dict.fromkeys(each.config for each in plan if each.stage != "final")
    final = dict.fromkeys(each.config for each in plan if each.stage == "final" and each.config not in first)
    return _unknown(first, dev, failed), _unknown(final, dev, failed)


def _unknown(runs: Iterable[RunConfig], dev: DevByRun, failed: Collection[RunConfig]) -> list[RunConfig]:
    """The runs that have neither succeeded nor failed."""
    return [run for run in runs if run not in dev.by_run and run not in failed]
