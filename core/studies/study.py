"""What a study is: settings, the families of methods compared in them, and the one they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.studies.published import Reported

__all__ = ["Family", "Paper", "Setting", "Study"]


@dataclass(frozen=True)
class Family:
    """One method with its candidates. An arm maps fields of a run to values; dev chooses among the arms."""

    name: str
    title: str
    arms: tuple[Mapping[str, Any], ...]

    def told(self, arm: Mapping[str, Any]) -> str:
        """What sets this arm apart from the others, such as `λ=0.01`; empty for a single arm."""
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
    """One comparison: the fields common to all of its runs, the tasks whose scores count, who takes part.

    A field in `base` that only some runs have (the alignment, λ) is dropped for the others. `part` groups
    settings; what is learned in one part may not hold in another.
    `search` are the fields in which the runs that choose an arm differ from those whose scores count: a dev
    split, where the latter have none.
    """

    name: str
    title: str
    part: str
    base: Mapping[str, Any]
    targets: tuple[str, ...]
    families: tuple[str, ...]
    search: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Paper:
    """A published table that a part of a study repeats: its title, the model of each setting by the
    setting's name, and the rows that the paper quotes from the literature.
    """

    title: str
    models: Mapping[str, str]
    reported: tuple[Reported, ...] = ()


@dataclass(frozen=True)
class Study:
    """A sweep plus its analysis. The arms are chosen with `search_seeds`, what is told rests on all `seeds`.

    `papers` are the published tables, by part. `protocol` says in plain text what a reader of the report must
    know of how the runs were made. Raises ValueError where it contradicts itself.
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

    def __post_init__(self) -> None:
        known = [family.name for family in self.families]
        for names in (known, [setting.name for setting in self.settings]):
            if len(set(names)) < len(names):
                raise ValueError(f"{self.name}: a name is given twice among {', '.join(names)}")
        for family in self.families:
            if not family.arms:
                raise ValueError(f"{self.name}: the family {family.name} has no arm")
        for setting in self.settings:
            if unknown := set(setting.families) - set(known):
                raise ValueError(f"{self.name}/{setting.name}: no family is called {', '.join(unknown)}")
            if self.reference not in setting.families:
                raise ValueError(f"{self.name}/{setting.name}: the reference {self.reference} is missing")
            if not setting.targets:
                raise ValueError(f"{self.name}/{setting.name}: no target is named")
        if not self.search_seeds or not set(self.search_seeds) <= set(self.seeds):
            raise ValueError(f"{self.name}: the seeds of the search must be some of all seeds")

    def family(self, name: str) -> Family:
        """The family of that name. Raises KeyError."""
        return {family.name: family for family in self.families}[name]

    def parts(self) -> tuple[str, ...]:
        """The parts in the order of the settings."""
        return tuple(dict.fromkeys(setting.part for setting in self.settings))

    def with_seeds(self, count: int) -> Study:
        """The same study with its first `count` seeds; beyond its own, seeds go on counting."""
        further = range(max(self.seeds) + 1, max(self.seeds) + 1 + count)
        seeds = (*self.seeds, *further)[:count]
        search = tuple(seed for seed in self.search_seeds if seed in seeds) or seeds[:1]
        return replace(self, seeds=seeds, search_seeds=search)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
