"""The chosen configurations, their seeds, and the answer of most seeds.

A system is a run, or the STL runs of one seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean
from typing import Any, TypeVar

from core.config import RunConfig
from core.results.naming import shortest_names
from core.results.samples import by_configuration, one_per_seed
from core.store.types import Conditions, Run
from core.tagging import Answered, TaggedSentence, WordTag, joined, labels_of
from core.tasks import KINDS, tasks_reading
from core.tasks.answers import TextAnswer
from core.tasks.spans import Span, spans
from core.wording import which_runs
from dashboard.theme import PARADIGM_NAMES

Value = TypeVar("Value")

MOST_CONFIGURATIONS = 8
"""Lanes of a task that one can still compare."""
SPLIT = "split"
"""What a configuration answers on a word for which no label leads."""
MOST_SEEDS = 10
"""Seeds of a configuration that are asked: each is a model to load."""


@dataclass(frozen=True)
class System:
    """A run, or the STL runs of one configuration and seed, which have a task each."""

    runs: tuple[Run, ...]
    who: str

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Their checkpoint folders."""
        return tuple(run.checkpoint or "" for run in self.runs)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of its runs."""
        return tuple(task for run in self.runs for task in run.config.tasks)


@dataclass(frozen=True)
class Configuration:
    """A configuration with the systems of its chosen seeds, of which at most MOST_SEEDS are asked."""

    who: str
    seeds: tuple[System, ...]

    @property
    def config(self) -> RunConfig:
        """The description of its first run."""
        return self.seeds[0].runs[0].config

    @property
    def asked(self) -> tuple[System, ...]:
        """The systems that are asked."""
        return self.seeds[:MOST_SEEDS]


@dataclass(frozen=True)
class Answer:
    """The answers of a run, a system or a configuration on sentences and whole texts.

    Those of a configuration with several `seeds` are what most of them answer.
    """

    who: str
    schemes: Mapping[str, str]
    sentences: tuple[TaggedSentence, ...]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    texts: tuple[Answered, ...] = ()
    seeds: tuple[Answer, ...] = ()

    def with_task(self, task: str) -> list[Answer]:
        """Returns the seeds that have the task."""
        return [seed for seed in self.seeds if task in seed.schemes]


def configurations(
    runs: Sequence[Run], conditions: Mapping[int, Conditions] | None = None
) -> list[Configuration]:
    """The configurations of these runs: STL, MTL, MRN, of each the earlier one first.

    A repeated seed has one vote: of each configuration the runs answer that make its mean (`one_per_seed`).
    """
    groups = [
        sorted(one_per_seed(group, conditions), key=lambda run: run.id)
        for group in by_configuration(runs).values()
    ]
    groups.sort(key=lambda group: (tuple(PARADIGM_NAMES).index(group[0].config.paradigm), group[0].id))
    names = shortest_names([group[0].config for group in groups])
    taken = Counter(names)
    return [
        Configuration(name if taken[name] == 1 else f"{name} · run {group[0].id}", tuple(_systems(group)))
        for group, name in zip(groups, names, strict=True)
    ]


def _systems(runs: Sequence[Run]) -> list[System]:
    """The systems of one configuration, by seed."""
    by_seed: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.config.seed, run.id)):
        by_seed.setdefault(run.config.seed, []).append(run)
    return [System(tuple(of_seed), f"seed {seed}") for seed, of_seed in by_seed.items()]


def repeats_sentence(picked: Sequence[Run], shown: Sequence[Configuration]) -> str:
    """Which of the runs are no vote in these configurations, and why; empty where all are."""
    voting = {run.id for of in shown for system in of.seeds for run in system.runs}
    if not (others := sorted(run.id for run in picked if run.id not in voting)):
        return ""
    return (
        f"Left out: {which_runs(others)}. Of each seed the newest run answers, and all have the text, "
        "precision and alignment of their configuration's newest. Choose an older run alone to ask it."
    )


def asked_systems(chosen: Sequence[Configuration]) -> dict[str, System]:
    """The systems that are asked, by name: of a configuration of one seed its own name."""
    return {
        f"{of.who} · {system.who}" if len(of.seeds) > 1 else of.who: system
        for of in chosen
        for system in of.asked
    }


# What the seeds of a configuration answer


def merged(who: str, answers: Sequence[Answer]) -> Answer:
    """Returns the answers of a system, made from the answers of its runs."""
    return Answer(
        who,
        sentences=tuple(joined(parts) for parts in zip(*(of.sentences for of in answers), strict=True)),
        texts=tuple(_united(parts) for parts in zip(*(of.texts for of in answers), strict=True)),
        **_about(answers),
    )


def voted(who: str, answers: Sequence[Answer]) -> Answer:
    """Returns the answers of a configuration: the votes of its seeds, or its only seed's answers."""
    if len(answers) == 1:
        return replace(answers[0], who=who)
    about = _about(answers)
    sentences = tuple(
        TaggedSentence(
            of_seeds[0].tokens,
            {
                task: _voted_tags([labels_of(of, task) for of in of_seeds if task in of.tags], scheme)
                for task, scheme in tasks_reading(about["schemes"], "words").items()
            },
            _voted_answers([of.answers for of in of_seeds]),
        )
        for of_seeds in zip(*(of.sentences for of in answers), strict=True)
    )
    texts = tuple(_voted_answers(of_seeds) for of_seeds in zip(*(of.texts for of in answers), strict=True))
    return Answer(who, sentences=sentences, texts=texts, seeds=tuple(answers), **about)


def _about(answers: Sequence[Answer]) -> dict[str, Any]:
    """Returns the facts on the tasks of these answers."""
    return {
        "schemes": _united(of.schemes for of in answers),
        "labels": _united(of.labels for of in answers),
        "scales": _united(of.scales for of in answers),
        "notes": tuple(dict.fromkeys(note for of in answers for note in of.notes)),
    }


def _united(parts: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    return {name: value for part in parts for name, value in part.items()}


def majority(columns: Sequence[Sequence[str]]) -> tuple[dict[Span, int], dict[Span, int]]:
    """The spans that more than half of these rows of labels have, and the others, with how many have each.
    Of the others none overlaps with a span before it.
    """
    counts = Counter(span for labels in columns for span in spans(labels))
    most = {span: count for span, count in counts.items() if 2 * count > len(columns)}
    others: dict[Span, int] = {}
    for span, count in counts.most_common():
        if not any(span.start < other.end and other.start < span.end for other in (*most, *others)):
            others[span] = count
    return most, others


def _voted_tags(columns: Sequence[Sequence[str]], scheme: str) -> tuple[WordTag, ...]:
    """Returns each word's most frequent label with its share, SPLIT where none leads.

    Of spans those that the `majority` has.
    """
    counts = [Counter(labels) for labels in zip(*columns, strict=True)]
    if KINDS[scheme].has_spans:
        labels = ["O"] * len(counts)
        for span in majority(columns)[0]:
            labels[span.start : span.end] = [
                f"{'I' if n else 'B'}-{span.type}" for n in range(span.end - span.start)
            ]
        shares = [of_word[label] for label, of_word in zip(labels, counts, strict=True)]
    else:
        labels = [leading(of_word) for of_word in counts]
        shares = [max(of_word.values()) for of_word in counts]
    return tuple(
        WordTag(label, share / len(columns), ()) for label, share in zip(labels, shares, strict=True)
    )


def leading(votes: Counter[str]) -> str:
    """The label with most votes; SPLIT where another has as many."""
    (label, most), *others = votes.most_common(2)
    return SPLIT if any(count == most for _, count in others) else label


def _voted_answers(of_seeds: Sequence[Answered]) -> dict[str, TextAnswer]:
    tasks = dict.fromkeys(chain.from_iterable(of_seeds))
    return {task: _voted_answer([of[task] for of in of_seeds if task in of]) for task in tasks}


def _voted_answer(answers: Sequence[TextAnswer]) -> TextAnswer:
    """The label that most seeds choose, with the mean probabilities, or the mean of the numbers."""
    values = [answer.value for answer in answers]
    shares = [dict(answer.probabilities) for answer in answers]
    known = [label for label in shares[0] if all(label in of_seed for of_seed in shares)]
    means = {label: fmean(of_seed[label] for of_seed in shares) for label in known}
    numbers = [value for value in values if not isinstance(value, str)]
    return TextAnswer(
        fmean(numbers) if numbers else Counter(values).most_common(1)[0][0],
        tuple(sorted(means.items(), key=lambda item: -item[1])),
        shortened=any(answer.shortened for answer in answers),
    )
