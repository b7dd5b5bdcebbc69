"""Sentence, Task and Corpus: annotated text, however it was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from core.corpora.reading import Reading
from core.tasks.schemes import Scheme as Scheme

Split = Literal["train", "dev", "test"]


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

    @property
    def has_text_item(self) -> bool:
        """Whether the sentence is read as a whole, beside its words."""
        return not self.labels.keys().isdisjoint(self.text_tasks)

    @property
    def items(self) -> int:
        """How many items have labels: the words, with the sentence where it is an item; or one text."""
        return 1 if self.whole else self.has_text_item + len(self.tokens)

    def is_of_text(self, task: str) -> bool:
        """Whether that task labels all of it, and not each word."""
        return self.whole or task in self.text_tasks

    def items_of(self, task: str) -> range:
        """Which of the items that task labels."""
        return range(1) if self.is_of_text(task) else range(int(self.has_text_item), self.items)

    @property
    def words(self) -> int:
        """How many words there are to read, of both texts of a pair."""
        return len(self.tokens) + len(self.second or ())


def whole_text(text: str, second: str | None = None) -> Sentence:
    """A text or a pair of texts, without labels."""
    pair = None if second is None else tuple(second.split())
    return Sentence(tuple(text.split()), {}, whole=True, second=pair)


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


@dataclass(frozen=True, slots=True)
class Planted:
    """How related the tasks of a simulated corpus are by construction.

    `alphas` are the chances that a task keeps a word's real label, 1 for the real task itself. `ami` is the
    matrix of adjusted mutual information between the tasks' labels, from about 0 (unrelated) to 1 (the same).
    """

    tasks: tuple[str, ...]
    alphas: tuple[float, ...]
    ami: tuple[tuple[float, ...], ...]

    def of(self, tasks: Sequence[str]) -> Planted | None:
        """The planted relations among these tasks, in their order; None for fewer than two."""
        places = [self.tasks.index(task) for task in tasks if task in self.tasks]
        if len(places) < 2:
            return None
        return Planted(
            tuple(self.tasks[place] for place in places),
            tuple(self.alphas[place] for place in places),
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
    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    notes: tuple[str, ...] = ()
    dev_from_train: bool = False
    planted: Callable[[Sequence[str]], Planted | None] | None = None
    overlaps: tuple[Overlap, ...] = ()
    text_hash: str = ""
    readings: tuple[Reading, ...] = ()

    def split(self, name: Split) -> tuple[Sentence, ...]:
        """The sentences of that split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]

    def with_splits(self, splits: Mapping[Split, tuple[Sentence, ...]], *notes: str) -> Corpus:
        """A copy with these sentences and further notes."""
        return replace(
            self, train=splits["train"], dev=splits["dev"], test=splits["test"], notes=(*self.notes, *notes)
        )

    def task(self, name: str) -> Task:
        """The task of that name (KeyError where there is none)."""
        return {task.name: task for task in self.tasks}[name]
