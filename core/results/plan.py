"""Seeds until decided: a plan of two configurations, declared before its first look, and its state.

A plan names seeds in an order, and looks, numbers of them. At a look the differences over exactly its first
seeds are tested at the level of that look; other seeds, though finished, count at later looks. All state is
a function of the plan and the scores of the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from core.config import RunConfig
from core.errors import ConfigError, MRNLabError
from core.evaluation.comparison import UNDECIDED, check_matters
from core.evaluation.looks import OBRIEN_FLEMING, SHAPES, LooksError, check_looks, look_levels
from core.evaluation.repeated import Looked, looked
from core.evaluation.statistics import MATTERS
from core.results.table import MEAN_OF_TASKS
from core.wording import all_of, plural

LOOKS = (5, 8, 12, 20)
ALPHA = 0.05
"""The probability with which a plan errs in any of its differences."""
LEAST_FOR_ANY_SHAPE = 8
"""A look at fewer seeds needs the shape of O'Brien and Fleming: so few do not show that they are skewed."""

SKEWED_NOTE = "Where differences are skewed, the levels are not kept: two to three times as many errors."

SideScores = Mapping[str, Mapping[int, float | None]]
"""The test scores of a configuration by task and seed, in [0, 1]; None where that of a finished run is
undefined."""

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = (
    *("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
)


class PlanUnreadable(MRNLabError):
    """A stored plan that this version cannot read; `problem` says why."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"A stored plan cannot be read; another version made it ({problem}).")
        self.problem = problem


class PlanDeclared(MRNLabError):
    """Another plan for the same difference is declared already: `plan`."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"A plan for {plan.title} was declared before: {plan.design}. It goes on as it was declared; "
            "leave out --looks, --most-seeds, --matters, --alpha, --shape, --task and --mean. Another plan "
            "would test the same runs once more, and err more often than it says."
        )
        self.plan = plan


@dataclass(frozen=True)
class Plan:
    """A declared comparison of two configurations on test sentences, with everything that decides its errors.

    row, baseline    the configurations, whose seeds count for nothing; of STL one for each task
    names            the names of both in sentences
    tasks            whose differences are tested, each alone or (`of_mean`) in the mean over them
    seeds            all seeds, in the order in which they count
    looks            after how many of them the differences are tested
    matters          the smallest difference that matters, in [0, 1]
    alpha, shape     the probability of an error in any difference, and how looks spend it
    text             the hash of the corpus's text
    seeds_before     how many of the seeds had both scores when it was declared

    Raises LooksError and ConfigError where it is no plan.
    """

    row: tuple[RunConfig, ...]
    baseline: tuple[RunConfig, ...]
    names: tuple[str, str]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    looks: tuple[int, ...] = LOOKS
    matters: float = MATTERS
    alpha: float = ALPHA
    shape: str = OBRIEN_FLEMING
    of_mean: bool = False
    text: str | None = None
    seeds_before: int = 0

    def __post_init__(self) -> None:
        check_looks(self.looks)
        check_matters(self.matters)
        if self.shape not in SHAPES:
            raise ConfigError("shape", f"shape: '{self.shape}' is not one of {', '.join(SHAPES)}.")
        if not 0 < self.alpha < 1:  # NaN too
            raise ConfigError("alpha", f"alpha: {self.alpha:g} is no probability; name one like 0.05.")
        if self.shape != OBRIEN_FLEMING and self.looks[0] < LEAST_FOR_ANY_SHAPE:
            raise LooksError(
                self.looks,
                f"with the shape {self.shape} the first look needs at least {LEAST_FOR_ANY_SHAPE} seeds: "
                "where differences are skewed, early tests err too often. Name later looks, or "
                f"{OBRIEN_FLEMING}.",
            )
        if len(self.seeds) != self.looks[-1] or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"{len(self.seeds)} seeds for {self.looks[-1]} at the last look")
        if {config.configuration_id for config in self.row} & {
            config.configuration_id for config in self.baseline
        }:
            raise MRNLabError(f"{self.names[0]} is the baseline itself; name two different configurations.")

    @cached_property
    def key(self) -> str:
        """A hash of what is compared: both configurations, the tasks, and the text."""
        sides = [sorted(config.configuration_id for config in side) for side in (self.row, self.baseline)]
        parts = [sides, sorted(self.tasks), self.of_mean, self.text]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:40]

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the differences that are tested."""
        return (MEAN_OF_TASKS,) if self.of_mean else self.tasks

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The two-sided level of each look for each difference: `alpha` is split over them (Bonferroni)."""
        return look_levels(self.looks, self.alpha / len(self.targets), self.shape)

    @property
    def title(self) -> str:
        """`MRN against MTL on pos and ner`."""
        tasks = all_of(self.tasks)
        return (
            f"{self.names[0]} against {self.names[1]} on {f'the mean of {tasks}' if self.of_mean else tasks}"
        )

    @property
    def design(self) -> str:
        """What was declared, in words."""
        return (
            f"looks at {', '.join(map(str, self.looks))} seeds, shape {self.shape}, "
            f"alpha {self.alpha:g} over {plural(len(self.targets), 'difference')}, "
            f"a difference that matters of {100 * self.matters:g}, "
            f"{plural(self.seeds_before, 'seed')} there before it"
        )

    def sides(self) -> tuple[tuple[RunConfig, ...], tuple[RunConfig, ...]]:
        """The configurations of the row and of the baseline."""
        return self.row, self.baseline

    def has_overlap(self, other: Plan) -> bool:
        """Whether both test a difference between the same configurations on the same text."""

        def pair(plan: Plan) -> set[frozenset[str]]:
            return {frozenset(config.configuration_id for config in side) for side in plan.sides()}

        same = self.text == other.text and all(
            any(mine & theirs for theirs in pair(other)) for mine in pair(self)
        )
        tested = (
            (self.tasks, other.tasks)
            if not (self.of_mean or other.of_mean)
            else (self.targets, other.targets)
        )
        return same and bool(set(tested[0]) & set(tested[1]))

    def same_design(self, other: Plan) -> bool:
        """Whether both were declared alike; names and what was there before are not of the design."""
        decided_by = ("tasks", "looks", "matters", "alpha", "shape", "of_mean", "text")
        return self.sides() == other.sides() and all(
            getattr(self, name) == getattr(other, name) for name in decided_by
        )

    def to_json(self) -> str:
        """The plan as it is stored."""
        sides = {
            name: [json.loads(config.to_json()) for config in side]
            for name, side in zip(("row", "baseline"), self.sides(), strict=True)
        }
        values = {name: value for name, value in vars(self).items() if name in Plan.__dataclass_fields__}
        return json.dumps(values | sides, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote. Raises PlanUnreadable."""
        try:
            values: dict[str, Any] = json.loads(text)
            for name in ("row", "baseline"):
                values[name] = tuple(RunConfig.from_json(json.dumps(each)) for each in values[name])
            for name in ("names", "tasks", "seeds", "looks"):
                values[name] = tuple(values[name])
            return cls(**values)
        except (ValueError, TypeError, KeyError, ConfigError) as error:
            raise PlanUnreadable(str(error)) from None


@dataclass(frozen=True)
class PlanState:
    """How far a plan is: of each difference its last look, and the number of looks that were taken.

    A difference that is decided takes part in no later look.
    """

    plan: Plan
    looks: Mapping[str, Looked]
    taken: int
    decided_at: Mapping[str, int]
    """By difference the look, from 1, that decided it."""

    @property
    def open(self) -> tuple[str, ...]:
        """The differences that are not decided."""
        return tuple(target for target in self.plan.targets if target not in self.decided_at)

    @property
    def has_ended(self) -> bool:
        """Whether all differences are decided, or all looks taken."""
        return not self.open or self.taken == len(self.plan.looks)

    @property
    def next_seeds(self) -> tuple[int, ...]:
        """The seeds of the next look; none once it has ended."""
        return () if self.has_ended else self.plan.seeds[: self.plan.looks[self.taken]]

    @property
    def open_tasks(self) -> tuple[str, ...]:
        """The tasks whose scores the next look needs."""
        return self.plan.tasks if self.plan.of_mean else self.open

    def sentence(self, target: str) -> str:
        """`third of four looks: higher, +0.86 [+0.39, +1.34] at level 0.0106`."""
        if target not in self.looks:
            return (
                f"before the first of {_number(len(self.plan.looks))}: {plural(self.plan.looks[0], 'seed')}"
            )
        at = self.looks[target]
        look = self.decided_at.get(target, self.taken)
        if self.has_ended and target not in self.decided_at:
            return f"ended undecided after {plural(at.seeds, 'seed')}{at.sentence.removeprefix(UNDECIDED)}"
        return f"{_ordinal(look)} of {_number(len(self.plan.looks))}: {at.sentence}"

    @property
    def note(self) -> str:
        """The sentence under a table with both configurations."""
        parts = "; ".join(f"{target}, {self.sentence(target)}" for target in self.plan.targets)
        return f"Seeds until decided, {self.plan.names[0]} against {self.plan.names[1]}: {parts}."


def plan_state(plan: Plan, row: SideScores, baseline: SideScores) -> PlanState:
    """The state of a plan, by the scores of both configurations.

    A look is taken once both have finished all of its seeds on the tasks of all open differences. Seeds with
    an undefined score count in no difference.
    """
    looks: dict[str, Looked] = {}
    decided_at: dict[str, int] = {}
    taken = 0
    for number, (count, level) in enumerate(zip(plan.looks, plan.levels, strict=True), 1):
        open_ = [target for target in plan.targets if target not in decided_at]
        tasks = plan.tasks if plan.of_mean else open_
        seeds = plan.seeds[:count]
        if not open_ or not all(
            side.get(task, {}).keys() >= set(seeds) for side in (row, baseline) for task in tasks
        ):
            break
        taken = number
        for target in open_:
            of = plan.tasks if plan.of_mean else (target,)
            a, b = (_means(side, of, seeds) for side in (row, baseline))
            looks[target] = at = looked(a, b, level, plan.matters)
            if at.verdict != UNDECIDED:
                decided_at[target] = number
    return PlanState(plan, looks, taken, decided_at)


def _means(side: SideScores, tasks: Sequence[str], seeds: Iterable[int]) -> dict[int, float]:
    """The mean over tasks of the scores of each of these seeds that are all defined."""
    means = {}
    for seed in seeds:
        scores = [score for task in tasks if (score := side[task][seed]) is not None]
        if len(scores) == len(tasks):
            means[seed] = fmean(scores)
    return means


def plan_seeds(row: Iterable[int], baseline: Iterable[int], count: int) -> tuple[int, ...]:
    """The seeds of a plan: those that both have, then those that one has, then the smallest others from 1.

    Each kind in ascending order, so that no score decides which seeds count.
    """
    first, second = set(row), set(baseline)
    seeds = [*sorted(first & second), *sorted(first ^ second)]
    new = (seed for seed in range(1, count + len(seeds) + 1) if seed not in first | second)
    return tuple([*seeds, *new][:count])


def looks_within(looks: Sequence[int], most: int | None) -> tuple[int, ...]:
    """The looks up to `most` seeds, the last at `most`."""
    if most is None or most >= max(looks, default=0):
        return tuple(looks)
    return (*(look for look in looks if look < most), most)


def _number(count: int) -> str:
    return f"{_NUMBERS[count] if count < len(_NUMBERS) else count} {'look' if count == 1 else 'looks'}"


def _ordinal(number: int) -> str:
    return _ORDINALS[number] if number < len(_ORDINALS) else f"look {number}"


def state_document(state: PlanState) -> dict[str, Any]:
    """The plan and its state as one JSON document; scores in [0, 1]."""
    plan = state.plan
    design = (
        "names",
        "tasks",
        "seeds",
        "looks",
        "matters",
        "alpha",
        "shape",
        "of_mean",
        "text",
        "seeds_before",
    )
    return {
        "plan": {name: getattr(plan, name) for name in design} | {"key": plan.key, "levels": plan.levels},
        "looks_taken": state.taken,
        "has_ended": state.has_ended,
        "differences": [
            {
                "target": target,
                "look": state.decided_at.get(target, state.taken) or None,
                "verdict": UNDECIDED if at is None else at.verdict,
                "seeds": 0 if at is None else at.seeds,
                "level": None if at is None else at.level,
                "difference": None if at is None or at.paired is None else asdict(at.paired)["mean"],
                "interval": None if at is None else at.interval,
                "skewed": None if at is None else at.is_skewed,
            }
            for target in plan.targets
            for at in (state.looks.get(target),)
        ],
    }
