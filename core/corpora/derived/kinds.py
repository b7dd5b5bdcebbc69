"""What a kind of derived corpus is, how options are read, and the kinds `sampled`, `joined` and `apart`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.config.sweep import real_number
from core.corpora.assembly import SPLITS
from core.corpora.sampling import parts, shuffled, stream, until, words_of
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError

Options = Mapping[str, Any]
"""The values of the options that a name gives, read and in range."""


@dataclass(frozen=True)
class Option:
    """One option: `read` makes its value of the text, and raises ValueError with what is expected."""

    help: str
    read: Callable[[str], Any]


@dataclass(frozen=True)
class Kind:
    """One way to make a corpus of another.

    `tasks` maps each task of the made corpus to the task of the base that it comes from; it is given the
    base's tasks in order. `derive` makes the corpus with a run's seed; it draws of each part of a joined
    base apart. Its labels are counted afterwards. Both raise CorpusError.
    """

    name: str
    description: str
    options: Mapping[str, Option]
    tasks: Callable[[Sequence[str], Options], Mapping[str, str]]
    derive: Callable[[Corpus, Options, int], Corpus]


def same_tasks(base: Sequence[str], options: Options) -> dict[str, str]:
    """The `tasks` of a kind that keeps the tasks of its base."""
    del options
    return {task: task for task in base}


_MOST = 1_000_000_000


def count(most: int = _MOST) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to `most`. Readers raise ValueError with what is expected instead."""

    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", value) or not 1 <= int(value) <= most:
            raise ValueError(f"a whole number from 1 to {most:,}")
        return int(value)

    return read


def counts(value: str) -> tuple[int, ...]:
    """Whole numbers from 1, set apart by commas."""
    try:
        return tuple(map(count(), value.split(",")))
    except ValueError:
        raise ValueError(f"whole numbers from 1 to {_MOST:,}, set apart by commas") from None


def share_list(value: str) -> tuple[float, ...]:
    """Numbers from 0 to 1, set apart by commas."""
    shares = [real_number(part) for part in value.split(",")]
    known = tuple(share for share in shares if share is not None and 0 <= share <= 1)
    if len(known) < len(shares):
        raise ValueError("numbers from 0 to 1, set apart by commas")
    return known


def choice(*names: str) -> Callable[[str], str]:
    """A reader of one of these names."""

    def read(value: str) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return value

    return read


def text(value: str) -> str:
    """Any text but an empty one."""
    if not value:
        raise ValueError("a name")
    return value


SAMPLES: dict[str, Option] = {
    split: Option(f"at most so many {what} sentences", count())
    for split, what in (("train", "training"), ("dev", "development"), ("test", "test"))
}
"""The options that sample a split. They draw of each part of a joined base apart."""


def sampled(corpus: Corpus, options: Options, seed: int) -> Corpus:
    """At most as many sentences of each split as the options `train`, `dev` and `test` say, in their order.

    Drawn of each part apart, and so that a smaller sample is part of a larger one with the same seed.
    """
    kept: dict[Split, tuple[Sentence, ...]] = {}
    notes = []
    for split in SPLITS:
        whole = kept[split] = corpus.split(split)
        if len(whole) > options.get(split, len(whole)):
            sample: list[Sentence] = []
            for part, sentences in parts(whole):
                order = stream(seed, f"sample {split}", part).permutation(len(sentences))[: options[split]]
                sample += [sentences[place] for place in sorted(order)]
            kept[split] = tuple(sample)
            if len(sample) < len(whole):
                notes.append(
                    f"Uses {len(sample):,} of {len(whole):,} {split} sentences, drawn with seed {seed}."
                )
    return corpus.with_splits(kept, *notes)


SAMPLED = Kind(
    name="",
    description="The corpus as it is, or samples of its splits.",
    options=SAMPLES,
    tasks=same_tasks,
    derive=sampled,
)


# Any kind's bases are joined when they are read; this one does nothing more.
JOINED = Kind(
    name="joined",
    description="All tasks of several corpora (A+B), each on its own sentences; a task that several have is "
    "named task@corpus.",
    options=SAMPLES,
    tasks=same_tasks,
    derive=sampled,
)


def _apart(corpus: Corpus, options: Options, seed: int) -> Corpus:
    """Each training sentence dealt to one task, each task's sentences cut off where it has words enough.

    A task's sentences are dealt before any budget is looked at. So its smaller budget is a prefix of its
    larger one, and its budget changes nothing for other tasks.
    """
    names = [task.name for task in corpus.tasks]
    budgets = options.get("tokens")
    if budgets is not None and len(budgets) not in (1, len(names)):
        raise CorpusError(
            f"{corpus.name}: tokens must be one number, or one for each task ({', '.join(names)}), "
            f"not {len(budgets)}."
        )
    train: list[Sentence] = []
    sizes = []
    for place, (task, own) in enumerate(_dealt(corpus, names, seed).items()):
        if budgets is not None and own:
            budget = budgets[place % len(budgets)]
            if (words := words_of(own)) < budget:
                raise CorpusError(
                    f"{corpus.name}: {budget:,} training words were asked for {task}, and the sentences "
                    f"dealt to it have {words:,}; ask for fewer."
                )
            own = until(own, budget)
        if own:
            sizes.append(f"{task} {words_of(own):,}")
        train += own
    note = f"Each task has training sentences of its own, drawn with seed {seed}; words: {', '.join(sizes)}."
    return sampled(replace(corpus, train=tuple(train), notes=(*corpus.notes, note)), options, seed)


def _dealt(corpus: Corpus, names: Sequence[str], seed: int) -> dict[str, list[Sentence]]:
    """For each task the sentences that are its own, in random order, annotated for it alone.

    Sentences with the same tasks are dealt evenly among these; one with a single task goes to it.
    """
    dealt: dict[str, list[Sentence]] = {name: [] for name in names}
    for part, sentences in parts(corpus.train):
        turns: dict[tuple[str, ...], int] = {}
        for one in shuffled(sentences, stream(seed, "apart", part)):
            annotated = tuple(name for name in names if name in one.labels)
            turn = turns.get(annotated, 0)
            turns[annotated] = turn + 1
            task = annotated[turn % len(annotated)]
            dealt[task].append(replace(one, labels={task: one.labels[task]}))
    return dealt


APART = Kind(
    name="apart",
    description="Every task on training sentences of its own; dev and test as they are.",
    options={
        "tokens": Option(
            "training words of each task: one number, or one for each task of the base, in order", counts
        ),
        "dev": SAMPLES["dev"],
        "test": SAMPLES["test"],
    },
    tasks=same_tasks,
    derive=_apart,
)
