"""Which of a corpus's tasks are likely to help which: one joint run, and what a study has taught of such.

The run is that of the study `transfer` over a frozen encoder, on this corpus: MTL of all tasks, with the
gradients of tasks compared. What the study's pairs say of their cosines is in `core.transfer.prediction`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from core.config import RunConfig
from core.config.fields import CONTEXT_FIELDS, attribute_name
from core.corpora import prepare
from core.corpora.derived.kinds import Joined
from core.corpora.loading import bases_of, placed_name, read, recipe_of
from core.errors import ConfigError, MRNLabError
from core.recording.placed import placed
from core.store import RunState, Store
from core.studies.study import lay_out
from core.studies.transfer import STUDY
from core.tasks import KINDS
from core.transfer.gains import Gain, Pair, group_key
from core.transfer.prediction import Lessons, packaged, verdict
from core.wording import all_of
from jobs.queue.estimates import Cost, cost
from jobs.queue.submit import same_runs
from jobs.queue.sweeps import launch_options
from jobs.reports.evidence import mean_of_runs
from jobs.reports.transfer import pair_groups, run_affinities

PART = "scarce-minilm"
"""The part of the study whose runs these repeat, and whose pairs taught."""
_WORDS = 2000
_SAMPLES = "dev=100&test=500"
_SWEEP_SEEDS = 5
_MEASURED_EVERY = 25
"""Steps between two measurements of the cosines: a few tasks are trained for some hundred steps."""


@dataclass(frozen=True)
class Inquiry:
    """Which of these tasks help which: the runs that the advice rests on, and those that settle it.

    `corpus` is derived from the one asked for: every task on training sentences of its own, up to `words` of
    them. `runs` are joint MTL runs of all tasks, by seed; `pairs` MTL runs of two tasks and STL runs, with
    five seeds.
    """

    asked: str
    corpus: str
    columns: tuple[str, ...] | None
    tasks: tuple[str, ...]
    words: Mapping[str, int]
    runs: tuple[RunConfig, ...]
    pairs: tuple[RunConfig, ...]

    @property
    def ordered_pairs(self) -> list[Pair]:
        """All pairs (main, aux) of the tasks."""
        return list(permutations(self.tasks, 2))

    @property
    def short(self) -> dict[str, int]:
        """The tasks with fewer training words than the study's, and how many they have."""
        return {task: words for task, words in self.words.items() if words < _WORDS}

    @property
    def sweep(self) -> str:
        """What the runs are labelled with."""
        return f"advise {self.asked}"


def inquiry(
    corpus: str, tasks: Sequence[str], seeds: int = 1, columns: tuple[str, ...] | None = None
) -> Inquiry:
    """The runs to be made for advice on these tasks. Raises MRNLabError where the corpus lacks one."""
    tasks = tuple(dict.fromkeys(tasks))
    if len(tasks) < 2:
        raise ConfigError("tasks", "tasks: one task helps no other; name two or more.")
    if (recipe := recipe_of(corpus)) is not None and (
        recipe.options_text or not isinstance(recipe.kind, Joined)
    ):
        raise ConfigError(
            "corpus",
            f"corpus: '{corpus}' is derived already, and the study's runs draw their own sentences; name a "
            "corpus, or some joined by +.",
        )
    of_texts = [
        task.name
        for task in read(corpus, columns).tasks
        if task.name in tasks and KINDS[task.scheme].reads != "words"
    ]
    if of_texts:
        raise ConfigError(
            "tasks",
            f"tasks: advice rests on a study of tasks on words, and {all_of(of_texts)} read whole texts. "
            "Train each task alone and every pair: mrnlab launch --paradigm stl,mtl --task-groups pairs.",
        )
    base = "+".join(map(placed_name, bases_of(corpus)))
    words = _budgets(base, tasks, columns, max(seeds, _SWEEP_SEEDS))
    tokens = ",".join(map(str, words.values() if len(set(words.values())) > 1 else [min(words.values())]))
    derived = f"apart:{base}?tokens={tokens}&{_SAMPLES}&tasks={','.join(tasks)}"

    of_all = next(each for each in STUDY.settings if each.part == PART and len(each.targets) > 2)

    def runs(family: str, tasks: tuple[str, ...], count: int) -> tuple[RunConfig, ...]:
        study = STUDY.with_seeds(count)
        base = {**of_all.base, "corpus": derived, "columns": columns, "tasks": tasks}
        base["affinity_every"] = _MEASURED_EVERY if family == "joint" else None
        setting = dataclasses.replace(of_all, base=base, targets=tasks, families=("stl", "mtl", "joint"))
        (arm,) = lay_out(study, setting, placed).arms[family]
        return tuple(arm.of(study.seeds))

    of_pairs = [run for pair in combinations(tasks, 2) for run in runs("mtl", pair, _SWEEP_SEEDS)]
    return Inquiry(
        corpus,
        derived,
        columns,
        tasks,
        words,
        runs("joint", tasks, seeds),
        (*runs("stl", tasks, _SWEEP_SEEDS), *of_pairs),
    )


def _budgets(
    base: str, tasks: tuple[str, ...], columns: tuple[str, ...] | None, seeds: int
) -> dict[str, int]:
    """By task the training words that every seed has for it: as many as in the study, or else fewer."""
    least = dict.fromkeys(tasks, _WORDS)
    for seed in range(1, seeds + 1):
        corpus = prepare(
            RunConfig.build(
                corpus=f"apart:{base}?tasks={','.join(tasks)}",
                columns=columns,
                tasks=tasks,
                paradigm="mtl",
                seed=seed,
            )
        )
        words: Counter[str] = Counter()
        for sentence in corpus.train:
            words.update({task: len(sentence.tokens) for task in sentence.labels})
        least = {task: min(least[task], words[task]) for task in tasks}
        if min(words.values()) >= 2 * _WORDS:
            break  # seeds deal whole sentences evenly: none has half of what another has
    return least


@dataclass(frozen=True)
class PairAdvice:
    """A pair: the cosine of its tasks' gradients, the probability of a gain by it, what was measured."""

    main: str
    aux: str
    cosine: float
    probability: float
    measured: Gain | None

    @property
    def verdict(self) -> str:
        """What is expected."""
        return verdict(self.probability)

    def document(self) -> dict[str, Any]:
        """The pair as plain values, gains in points."""
        gain = self.measured
        measured = None if gain is None else {**gain.as_numbers(), "decided": gain.is_decided}
        return {**vars(self), "advice": self.verdict, "measured": measured}


@dataclass(frozen=True)
class TaskAdvice:
    """What `advise` says: of every ordered pair, by which lessons, from which runs of the store.

    `settling` is what the sweep of all pairs costs that are not in the store, `new` how many runs that is.
    """

    inquiry: Inquiry
    lessons: Lessons
    pairs: tuple[PairAdvice, ...]
    runs: tuple[int, ...]
    new: int
    settling: Cost

    @property
    def settling_command(self) -> str:
        """The command that trains every pair, and each task alone."""
        asked = self.inquiry
        seeds = sorted({run.seed for run in asked.pairs})
        return launch_command(asked.pairs[0], asked.tasks, ("stl", "mtl"), seeds, "--task-groups", "pairs")

    def document(self) -> dict[str, Any]:
        """All of it as plain values."""
        total, seconds = len(self.inquiry.pairs), self.settling.seconds
        return {
            "corpus": self.inquiry.corpus,
            "words": dict(self.inquiry.words),
            "judgement": dataclasses.asdict(self.lessons.judgement),
            "speaks": self.lessons.speaks,
            "pairs": [pair.document() for pair in self.pairs],
            "runs": self.runs,
            "sweep": {"command": self.settling_command, "runs": total, "new": self.new, "seconds": seconds},
        }


def advice(store: Store, asked: Inquiry) -> TaskAdvice:
    """The advice, once all runs of the inquiry have succeeded. Raises MRNLabError where one is missing."""
    runs = [run for run in same_runs(store, asked.runs).values() if run.state is RunState.SUCCEEDED]
    if len(runs) < len(asked.runs):
        raise MRNLabError("A run that the advice rests on has not succeeded.")
    known = packaged(PART)
    mean = mean_of_runs(runs, lambda run: run_affinities(store, run).cosine)
    cosines = {pair: mean.get(pair, math.nan) for pair in asked.ordered_pairs}
    probabilities, measured = known.probabilities(cosines), _measured(store, asked)
    there = same_runs(store, asked.pairs)
    new = [config for config in asked.pairs if config not in there]
    pairs = [PairAdvice(*pair, cosines[pair], probabilities[pair], measured.get(pair)) for pair in cosines]
    return TaskAdvice(asked, known, tuple(pairs), tuple(run.id for run in runs), len(new), cost(store, new))


def _measured(store: Store, asked: Inquiry) -> dict[Pair, Gain]:
    """Gains of these tasks in the store's runs of this corpus, those of the inquiry's own sweep first, then
    those with most seeds.
    """
    key, bases = group_key(asked.pairs[0]), bases_of(asked.corpus)
    gains = [
        (group.key == key, gain.seeds, pair, gain)
        for group in reversed(pair_groups(store, asked.tasks))
        if bases_of(group.config.corpus) == bases and group.config.columns == asked.columns
        for pair, gain in group.gains.pairs.items()
    ]
    return {pair: gain for _, _, pair, gain in sorted(gains, key=lambda each: each[:2])}  # the last counts


def launch_command(
    config: RunConfig, tasks: Sequence[str], paradigms: Sequence[str], seeds: Sequence[int], *more: str
) -> str:
    """The command that makes such runs of these tasks, or uses those that are there."""
    context = {name: getattr(config, attribute_name(name)) for name in (*CONTEXT_FIELDS, "alignment")}
    plain = RunConfig.build(**{"corpus": config.corpus, "tasks": config.tasks, **context}).values()
    fields: dict[str, Sequence[Any]] = {"corpus": [config.corpus], "tasks": tasks}
    if config.columns is not None:
        fields["columns"] = config.columns
    fields |= {"paradigm": paradigms, "seed": seeds}
    fields |= {name: [value] for name, value in context.items() if value and name != "paradigm"}
    for name, value in config.values().items():
        if name not in fields and name not in context and value != plain[name]:
            fields[name] = value if isinstance(value, list | tuple) else [value]
    words = itertools.chain.from_iterable(launch_options(fields))
    return shlex.join(["mrnlab", "launch", *more, *words, "--reuse"])
