"""Sentence, Task and Corpus: annotated text, however it was stored."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from core.corpora.reading import Reading
from core.tasks.kinds import KINDS, TaskFacts
from core.tasks.packed import Numbering, Packed, Packer, joined, offsets, packed
from core.tasks.schemes import Scheme as Scheme
from core.tasks.scores import PlainScore

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence and, for each task annotated on it, one label per word or one for all of it.

    part        the corpus it came from, where several were joined; empty elsewhere
    whole       all labels are of the whole text; its words are what stands between spaces
    second      the second text of a pair
    text_tasks  of a sentence of words, the tasks that label it as a whole; some may have no label here
    """

    tokens: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    part: str = ""
    whole: bool = False
    second: tuple[str, ...] | None = None
    text_tasks: tuple[str, ...] = ()

    def is_of_text(self, task: str) -> bool:
        """Whether that task labels all of it, and not each word."""
        return self.whole or task in self.text_tasks

    @property
    def words(self) -> int:
        """How many words there are to read, of both texts of a pair."""
        return len(self.tokens) + len(self.second or ())


def whole_text(text: str, second: str | None = None) -> Sentence:
    """A text or a pair of texts, without labels."""
    pair = None if second is None else tuple(second.split())
    return Sentence(tuple(text.split()), {}, whole=True, second=pair)


@dataclass(frozen=True, eq=False)
class Column:
    """Rows of some of the sentences: `at` (k,) has their indices, ascending, `rows` a row for each."""

    at: NDArray[np.int64]
    rows: Packed

    def take(self, which: NDArray[np.int64], sentences: int) -> Column:
        """The column of the sentences `which` (n,), from that of `sentences` many."""
        row_of = np.full(sentences, -1)
        row_of[self.at] = np.arange(len(self.at))
        taken = row_of[which]
        return Column(np.flatnonzero(taken >= 0), self.rows.take(taken[taken >= 0]))

    def row(self, sentence: int) -> tuple[str, ...] | None:
        """The row of a sentence; None where it has none."""
        index = int(np.searchsorted(self.at, sentence))
        return self.rows[index] if index < len(self.at) and self.at[index] == sentence else None

    def by_sentence(self, sentences: int) -> Iterator[tuple[str, ...] | None]:
        """The row of each of so many sentences; None where it has none."""
        rows = iter(self.rows)
        if len(self.at) == sentences:
            return rows
        has_row = np.zeros(sentences, dtype=bool)
        has_row[self.at] = True
        return (next(rows) if each else None for each in has_row.tolist())


_NO_ROWS = Column(np.zeros(0, np.int64), packed([]))


class SentenceTraits(NamedTuple):
    """The fields of Sentence that many sentences share."""

    part: str = ""
    whole: bool = False
    text_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sentences(Sequence[Sentence]):
    """s sentences in flat arrays; each is made when it is asked for.

    tokens          the words of each
    labels          the labels of each task, of the sentences that have some
    second          the second texts of pairs
    traits, traits_of   what many sentences share, and which of the traits each one has (s,)
    """

    tokens: Packed
    labels: Mapping[str, Column]
    second: Column
    traits: tuple[SentenceTraits, ...]
    traits_of: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Sentences:
        """These sentences; as they are where they are packed already."""
        if isinstance(sentences, cls):
            return sentences
        traits = Numbering[SentenceTraits]()
        traits_of = array("q")
        tokens, second = Packer(), (array("q"), Packer())
        labels: dict[str, tuple[array[int], Packer]] = {}
        for index, sentence in enumerate(sentences):
            tokens.add(sentence.tokens)
            traits_of.append(traits[SentenceTraits(sentence.part, sentence.whole, sentence.text_tasks)])
            rows = [(second, sentence.second)] if sentence.second is not None else []
            rows += [
                (labels.setdefault(task, (array("q"), Packer())), row)
                for task, row in sentence.labels.items()
            ]
            for (at, packer), row in rows:
                at.append(index)
                packer.add(row)

        def column(at: array[int], packer: Packer) -> Column:
            return Column(np.array(at, dtype=np.int64), packer.packed())

        return cls(
            tokens.packed(),
            {task: column(*made) for task, made in labels.items()},
            column(*second),
            tuple(traits),
            np.array(traits_of, dtype=np.int64),
        )

    @classmethod
    def of_columns(
        cls, tokens: Packed, labels: Mapping[str, Column], text_tasks: tuple[str, ...] = ()
    ) -> Sentences:
        """Sentences of words in columns."""
        traits_of = np.zeros(len(tokens), dtype=np.int64)
        return cls(tokens, labels, _NO_ROWS, (SentenceTraits(text_tasks=text_tasks),), traits_of)

    @classmethod
    def joined(cls, parts: Sequence[Sentences]) -> Sentences:
        """The sentences of all parts, one after the other."""
        starts = offsets(np.array([len(part) for part in parts], dtype=np.int64)).tolist()

        def column(columns: Sequence[Column]) -> Column:
            at = [column.at + start for column, start in zip(columns, starts, strict=False)]
            return Column(np.concatenate(at), joined([column.rows for column in columns]))

        traits = Numbering[SentenceTraits]()
        tables = [np.array([traits[each] for each in part.traits], dtype=np.int64) for part in parts]
        return cls(
            joined([part.tokens for part in parts]),
            {
                task: column([part.column(task) for part in parts])
                for task in dict.fromkeys(chain.from_iterable(part.labels for part in parts))
            },
            column([part.second for part in parts]),
            tuple(traits),
            np.concatenate([table[part.traits_of] for table, part in zip(tables, parts, strict=True)]),
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> Sentences: ...
    def __getitem__(self, index: int | slice) -> Sentence | Sentences:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        number = range(len(self))[index]
        labels = {
            task: row for task, column in self.labels.items() if (row := column.row(number)) is not None
        }
        part, whole, text_tasks = self.traits[self.traits_of[number]]
        return Sentence(self.tokens[number], labels, part, whole, self.second.row(number), text_tasks)

    def __iter__(self) -> Iterator[Sentence]:
        columns = [column.by_sentence(len(self)) for column in (self.second, *self.labels.values())]
        traits = map(self.traits.__getitem__, self.traits_of.tolist())
        for tokens, (part, whole, text_tasks), second, *rows in zip(
            self.tokens, traits, *columns, strict=True
        ):
            labels = {task: row for task, row in zip(self.labels, rows, strict=True) if row is not None}
            yield Sentence(tokens, labels, part, whole, second, text_tasks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(here == there for here, there in zip(self, other, strict=True))

    def column(self, task: str) -> Column:
        """The labels of a task; no rows where no sentence is annotated for it."""
        return self.labels.get(task, _NO_ROWS)

    def with_column(self, task: str, column: Column) -> Sentences:
        """The sentences with these labels of a task."""
        return replace(self, labels={**self.labels, task: column})

    def take(self, which: NDArray[np.int64]) -> Sentences:
        """These sentences, by their indices, in this order."""
        return Sentences(
            self.tokens.take(which),
            {task: column.take(which, len(self)) for task, column in self.labels.items()},
            self.second.take(which, len(self)),
            self.traits,
            self.traits_of[which],
        )

    def where(self, kept: NDArray[np.bool_]) -> Sentences:
        """The sentences that have their flag (s,) set."""
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def without(self, tasks: Container[str]) -> Sentences:
        """All sentences, without the labels of these tasks."""
        return replace(
            self, labels={task: column for task, column in self.labels.items() if task not in tasks}
        )

    def only(self, tasks: Iterable[str]) -> Sentences:
        """The sentences that are annotated for these tasks, without the labels of others."""
        labels = {task: self.labels[task] for task in tasks if task in self.labels}
        return replace(self, labels=labels).where(self.annotated(labels))

    def of_words(self) -> Sentences:
        """The sentences of words alone, each with the corpus that it comes from."""
        return replace(self, traits=tuple(SentenceTraits(traits.part) for traits in self.traits))

    def of_parts(self, parts: Container[str]) -> Sentences:
        """The sentences that come from these corpora."""
        return self.where(self.by_traits(lambda traits: traits.part in parts).astype(bool))

    def as_part(self, part: str, names: Mapping[str, str]) -> Sentences:
        """The sentences as a part of a joined corpus; `names` maps each new task to its name here."""
        traits = tuple(
            traits._replace(
                part=part,
                text_tasks=tuple(new for new, task in names.items() if task in traits.text_tasks),
            )
            for traits in self.traits
        )
        kept = self.only(names.values())
        labels = {new: kept.labels[task] for new, task in names.items() if task in kept.labels}
        return replace(kept, labels=labels, traits=traits)

    def annotated(self, tasks: Iterable[str]) -> NDArray[np.bool_]:
        """(s,) whether a sentence is annotated for one of these tasks."""
        flags = np.zeros(len(self), dtype=bool)
        for task in tasks:
            flags[self.column(task).at] = True
        return flags

    def by_traits(self, value: Callable[[SentenceTraits], Any]) -> NDArray[Any]:
        """(s,) a value of each sentence's traits."""
        return np.array([value(traits) for traits in self.traits])[self.traits_of]

    def is_of_text(self, task: str) -> NDArray[np.bool_]:
        """(s,) `Sentence.is_of_text` of each sentence."""
        return self.by_traits(lambda traits: traits.whole or task in traits.text_tasks).astype(bool)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """(s,) `Sentence.words` of each sentence."""
        words = self.tokens.lengths.copy()
        words[self.second.at] += self.second.rows.lengths
        return words

    @cached_property
    def has_text_item(self) -> NDArray[np.bool_]:
        """(s,) whether a sentence of words is also read as a whole, for a task that labels it so."""
        flags = np.zeros(len(self), dtype=bool)
        for task, column in self.labels.items():
            is_text_task = np.array([task in traits.text_tasks for traits in self.traits], dtype=bool)
            flags[column.at] |= is_text_task[self.traits_of[column.at]]
        return flags

    @cached_property
    def items(self) -> NDArray[np.int64]:
        """(s,) how many items have labels: the words, with the sentence where it is an item; or one text."""
        whole = self.by_traits(lambda traits: traits.whole).astype(bool)
        return np.where(whole, 1, self.has_text_item + self.tokens.lengths)


@dataclass(frozen=True, slots=True)
class Task:
    """One column of labels.

    labels      a row each in the task's head: `O` first, then by span type and prefix. Those of the training
                sentences, until a run asks for the whole inventory
    unseen      by split, labels that training never shows
    illegal     by split, how many tags the scheme forbids (an I- that continues nothing)
    auxiliary   there for what others gain by it: only training sentences are annotated, and it has no scores
    inventory   the corpus's own tag list, or else the labels of all its sentences before any draw
    trains_io   training sentences have I-X wherever the others have B-X (which no head has, and which are
                scored as spans)
    scale       the least and the greatest training score of a task of numbers
    """

    name: str
    scheme: Scheme
    labels: tuple[str, ...]
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    illegal: Mapping[str, int] = field(default_factory=dict)
    auxiliary: bool = False
    inventory: tuple[str, ...] = ()
    trains_io: bool = False
    scale: tuple[float, float] | None = None

    def facts(self, train: Sentences, pos_score: PlainScore) -> TaskFacts:
        """What a run that learns it from these sentences keeps of it."""
        column, row_of = train.column(self.name), KINDS[self.scheme].number(self.labels)
        has_row = np.array([row_of(label) is not None for label in column.rows.names], dtype=bool)
        return TaskFacts(
            name=self.name,
            scheme=self.scheme,
            labels=self.labels,
            score_name=KINDS[self.scheme].score_name(pos_score),
            train_sentences=len(column.at),
            train_tokens=int(has_row[column.rows.numbers].sum()),
            unseen=dict(self.unseen),
            illegal=dict(self.illegal),
            auxiliary=self.auxiliary,
            scale=self.scale,
        )


@dataclass(frozen=True, slots=True)
class Planted:
    """How related the tasks of a simulated corpus are by construction.

    `alphas` are the chances that a task keeps a word's real label, 1 for the real task itself. `ami` is the
    matrix of adjusted mutual information between the tasks' labels, from about 0 (unrelated) to 1 (the same).
    """

    tasks: tuple[str, ...]
    alphas: tuple[float, ...]
    ami: tuple[tuple[float, ...], ...]

    def among(self, tasks: Sequence[str]) -> Planted | None:
        """The planted relations among these tasks, in their order; None for fewer than two."""
        places = [self.tasks.index(task) for task in tasks if task in self.tasks]
        if len(places) < 2:
            return None
        return Planted(
            tuple(self.tasks[index] for index in places),
            tuple(self.alphas[index] for index in places),
            tuple(tuple(self.ami[row][column] for column in places) for row in places),
        )


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of two tasks of a corpus, as shares in [0, 1].

    `words`: of the training words annotated for the task that has fewer, those annotated for both.
    `names`: of the labelled words of a task (those not labelled `O`), those whose label name the other task
    has too; the smaller share of the two tasks.
    """

    tasks: tuple[str, str]
    words: float
    names: float


@dataclass(frozen=True)
class Corpus:
    """Splits of sentences with tasks. `dev` may be empty; `train` and `test` are not.

    notes            sentences for the researcher: what was converted, counted or left out at load
    dev_from_train   `dev` was held out of the training sentences, for want of a split of its own
    planted          what a run of these tasks on a simulated corpus should find; measured when it is called,
                     for that takes longer than all else
    overlaps         each pair of tasks in the whole corpus, for runs whose alignment is `auto`
    text_hash        of the whole corpus as it was read, whatever share a run draws; empty if it was not read
    readings         what was understood of the files of each corpus that its sentences come from
    """

    name: str
    tasks: tuple[Task, ...]
    train: Sequence[Sentence]
    dev: Sequence[Sentence]
    test: Sequence[Sentence]
    notes: tuple[str, ...] = ()
    dev_from_train: bool = False
    planted: Callable[[Sequence[str]], Planted | None] | None = None
    overlaps: tuple[Overlap, ...] = ()
    text_hash: str = ""
    readings: tuple[Reading, ...] = ()

    def __post_init__(self) -> None:
        for split in SPLITS:
            object.__setattr__(self, split, Sentences.of(getattr(self, split)))

    def split(self, name: Split) -> Sentences:
        """The sentences of that split."""
        return Sentences.of({"train": self.train, "dev": self.dev, "test": self.test}[name])

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """The sentences and words of each split that has any."""
        splits = {name: self.split(name) for name in SPLITS}
        return {name: (len(split), int(split.words.sum())) for name, split in splits.items() if split}

    def task_facts(self, pos_score: PlainScore) -> tuple[TaskFacts, ...]:
        """The facts of each task that are known before a run of these splits trains."""
        return tuple(task.facts(self.split("train"), pos_score) for task in self.tasks)

    def with_splits(self, splits: Mapping[Split, Sequence[Sentence]], *notes: str) -> Corpus:
        """A copy with these sentences and further notes."""
        return replace(
            self, train=splits["train"], dev=splits["dev"], test=splits["test"], notes=(*self.notes, *notes)
        )

    def task(self, name: str) -> Task:
        """The task of that name (KeyError where there is none)."""
        return {task.name: task for task in self.tasks}[name]
