"""Artificial tasks beside a real one, related to it as much as one likes: ground truth for learned relations.

Artificial task t labels a word whose real label is r by a draw from the row M_t[r, :]:

| symbol | meaning                                                     |
|--------|-------------------------------------------------------------|
| c      | labels of the real task                                     |
| α_t    | chance that task t keeps the real label: the diagonal of M_t |
| M_t    | (c, c), α_t on the diagonal, (1 − α_t)/(c − 1) elsewhere    |

At α = 1 the task is the real one, at α = 1/c its labels say nothing of the real ones. Artificial tasks are
annotated on training sentences only: they are auxiliary. A permuted task has its label names exchanged
afterwards, each for another: it is related as before, but equal names mean nothing. Where training labels are
in IO, artificial ones are drawn from those; dev and test sentences keep IOB2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, combinations, cycle, islice

import numpy as np
from numpy.typing import NDArray

from core.corpora.derived.recipes import CorpusRecipe, option
from core.corpora.sampling import sentences_for, stream
from core.corpora.types import Column, Corpus, Planted, Sentences, Task
from core.errors import CorpusError
from core.tasks import KINDS
from core.tasks.packed import Packed
from core.tasks.schemes import inside
from core.wording import all_of, plural

# Words looked at, 300,000 over all pairs: a pair costs 3 ms, and 1 ms more for every 1,000 words. So 5
# artificial tasks take a tenth of a second and 20 take one. Over 20,000 words for a pair change the third
# digit at most.
_ALL_WORDS = 300_000
_MOST_WORDS = 20_000
_FEWEST_WORDS = 2_000


def relatedness(labellings: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """(L, L) adjusted mutual information of L labellings (N,) of the same N words, normalised by the maximum.

    1 for labellings that differ in the names of their labels only; about 0 for unrelated ones, since the
    value expected by chance is taken off. Of the first words only, fewer where there are many labellings.
    """
    # Imported here: it takes a second, and most corpora have no use for it.
    from sklearn.metrics import adjusted_mutual_info_score

    matrix = np.eye(len(labellings))
    pairs = list(combinations(range(len(labellings)), 2))
    words = min(max(_ALL_WORDS // max(len(pairs), 1), _FEWEST_WORDS), _MOST_WORDS)
    for first, second in pairs:
        matrix[first, second] = matrix[second, first] = adjusted_mutual_info_score(
            labellings[first][:words], labellings[second][:words], average_method="max"
        )
    return matrix


def artificial_labels(
    real: NDArray[np.int64], alpha: float, labels: int, numbers: np.random.Generator
) -> NDArray[np.int64]:
    """(N,) label numbers drawn from M for the real ones (N,), of `labels` kinds.

    Two random numbers a word, whatever α is: at one seed, a task of a larger α keeps all real labels that one
    of a smaller α keeps.
    """
    chance = numbers.random((len(real), 2))
    other = (chance[:, 1] * (labels - 1)).astype(np.int64)  # which of the labels but the real one
    return np.where(chance[:, 0] < alpha, real, other + (other >= real))


def other_names(labels: int, numbers: np.random.Generator) -> NDArray[np.int64]:
    """A permutation of so many label numbers, two or more, that leaves none in its place."""
    while True:
        order = numbers.permutation(labels)
        if (order != np.arange(labels)).all():
            return order


@dataclass(frozen=True)
class Simulated(CorpusRecipe):
    """A real task beside artificial ones.

    task        the real task; the last of the base where empty
    tasks       how many artificial tasks
    alpha       the chance that an artificial task keeps a word's real label, dealt to the tasks in turn
    samples     training words of each artificial task, dealt in turn; as many as the real task's where empty
    tokens      training words of the real task; all that are left where None
    permuted    of so many artificial tasks, the last ones, the label names are permuted
    sentences   `own`: every task has sentences of its own; `same`: all are on the real task's
    scheme      of the training labels: `iob2`, or `io`, where B-X becomes I-X
    """

    name = "simulated"
    description = "A real task beside artificial ones, related to it as much as alpha says."

    task: str = option("")
    tasks: int = option(5, most=50)
    alpha: tuple[float, ...] = option((0.9,))
    samples: tuple[int, ...] = option(())
    tokens: int | None = option()
    permuted: int | None = option(most=50)
    sentences: str = option("own", choices=("own", "same"))
    scheme: str = option("iob2", choices=("iob2", "io"))

    @property
    def auxiliary(self) -> list[str]:
        return [f"sim-{number}" for number in range(1, self.tasks + 1)]

    def _real(self, corpus: str, tasks: Sequence[str]) -> str:
        if self.task and self.task not in tasks:
            raise CorpusError(f"{corpus} has no task '{self.task}'; its tasks are {', '.join(tasks)}.")
        return self.task or tasks[-1]

    def origins(self, base: Sequence[str]) -> Mapping[str, str]:
        real = self._real("The base", base)
        return dict.fromkeys((real, *self.auxiliary), real)

    def make(self, corpus: Corpus, seed: int) -> Corpus:
        corpus = super().make(corpus, seed)
        real = self._checked(corpus)
        names = self.auxiliary
        alphas = list(islice(cycle(self.alpha), len(names)))
        drawn = self._drawn(corpus.name, corpus.split("train"), real.name, seed)
        real_sentences, others = drawn
        # The sentences of each task, one after the other.
        train = corpus.split("train").take(np.concatenate([real_sentences, *others.values()]))
        words = train.column(real.name).rows
        columns = self._columns(real, words, alphas, seed)
        groups = (real_sentences, *others.values())
        ends = dict(zip((real.name, *others), accumulate(map(len, groups)), strict=True))
        labelled = {}
        for task, column in columns.items():
            end = ends.get(task, len(train))
            at = np.arange(end - len(others.get(task, real_sentences)), end)
            labelled[task] = Column(at, replace(words, names=real.labels, numbers=column).take(at))
        return replace(
            corpus,
            tasks=(
                real,
                *(Task(name, "plain", real.labels, auxiliary=True, inventory=real.labels) for name in names),
            ),
            train=replace(train, labels=labelled).of_words(),
            dev=corpus.split("dev").only([real.name]).of_words(),
            test=corpus.split("test").only([real.name]).of_words(),
            notes=(*corpus.notes, self._note(corpus, real.name, drawn, alphas, seed)),
            planted=partial(_planted, columns, (1.0, *alphas)),
        )

    @property
    def _renamed(self) -> list[str]:
        """The artificial tasks whose label names are permuted."""
        return self.auxiliary[self.tasks - (self.permuted or 0) :]

    def _checked(self, corpus: Corpus) -> Task:
        """The real task of a corpus, in the scheme asked for. Raises CorpusError where it is unfit."""
        real = corpus.task(self._real(corpus.name, [task.name for task in corpus.tasks]))
        if KINDS[real.scheme].reads != "words":
            raise CorpusError(
                f"{corpus.name}: {real.name} labels whole texts, and artificial labels are drawn for words; "
                "name a task that labels words."
            )
        if self.scheme == "io":
            if real.scheme != "iob2":
                raise CorpusError(f"{corpus.name}: {real.name} has no spans; leave out scheme=io.")
            labels, inventory = (
                tuple(dict.fromkeys(map(inside, names))) for names in (real.labels, real.inventory)
            )
            real = replace(real, labels=labels, inventory=inventory, trains_io=True)
        if len(real.labels) < 2:
            raise CorpusError(
                f"{corpus.name}: {real.name} has {plural(len(real.labels), 'label')}, and artificial labels "
                "can be drawn from two or more."
            )
        if self.permuted is not None and self.permuted > self.tasks:
            raise CorpusError(
                f"{corpus.name}: the label names of {self.permuted} tasks cannot be permuted, for there are "
                f"{self.tasks} artificial ones; ask for fewer."
            )
        return real

    def _columns(
        self, real: Task, words: Packed, alphas: Sequence[float], seed: int
    ) -> dict[str, NDArray[np.int64]]:
        """The number of each word's label, by task: that of the real task first."""
        read: Callable[[str], str] = inside if self.scheme == "io" else str
        number = {label: index for index, label in enumerate(real.labels)}
        truth = np.array([number.get(read(name), -1) for name in words.names], dtype=np.int64)[words.numbers]
        columns = {real.name: truth}
        for name, alpha in zip(self.auxiliary, alphas, strict=True):
            columns[name] = artificial_labels(truth, alpha, len(real.labels), stream(seed, "labels", name))
        for name in self._renamed:
            columns[name] = other_names(len(real.labels), stream(seed, "names", name))[columns[name]]
        return columns

    def _note(
        self,
        corpus: Corpus,
        real: str,
        drawn: tuple[NDArray[np.int64], Mapping[str, NDArray[np.int64]]],
        alphas: Sequence[float],
        seed: int,
    ) -> str:
        """What was drawn."""
        words = corpus.split("train").words
        sizes = [int(words[which].sum()) for which in drawn[1].values()]
        shown = ", ".join(f"{alpha:g}" for alpha in dict.fromkeys(alphas))
        note = (
            f"{real} has {int(words[drawn[0]].sum()):,} training words; "
            f"{plural(self.tasks, 'artificial task')} on {_extent(sizes)}, "
            f"their labels drawn with seed {seed} at α = {shown}."
        )
        if self._renamed:
            note += f" The label names of {all_of(self._renamed)} are permuted."
        return note

    def _drawn(
        self, corpus: str, train: Sentences, real: str, seed: int
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
        """The training sentences of the real task, and of each artificial task (none where all are shared).

        Of one random order the real task takes from the front and the artificial ones, one after another,
        from the back: none of them gets others because there are more tasks, or more words for another.
        """
        annotated = np.flatnonzero(train.annotated([real]))
        words, names = int(train.words[annotated].sum()), self.auxiliary
        budgets: dict[str, int] = {}
        if self.sentences == "own":
            default = self.tokens or max(1, words // (len(names) + 1))
            budgets = dict(zip(names, cycle(self.samples or (default,)), strict=False))
        elif self.samples:
            raise CorpusError(
                f"{corpus}: with sentences=same artificial tasks are on the real task's words; leave "
                "out samples."
            )
        order = annotated[stream(seed, "simulated", "").permutation(len(annotated))]
        others = {}
        for name, budget in budgets.items():
            taken = sentences_for(train.words[order[::-1]], budget)
            others[name] = order[::-1][:taken]
            order = order[: len(order) - taken]
        real_sentences = (
            order if self.tokens is None else order[: sentences_for(train.words[order], self.tokens)]
        )
        if train.words[real_sentences].sum() < (self.tokens or 1) or any(
            train.words[others[name]].sum() < budgets[name] for name in others
        ):
            wanted = [f"{self.tokens:,} for {real}"] if self.tokens else []
            if budgets:
                wanted += [f"{sum(budgets.values()):,} for {plural(len(names), 'artificial task')}"]
            raise CorpusError(
                f"{corpus}: {words:,} training words are annotated for {real}, and more were asked for "
                f"in whole sentences ({' and '.join(wanted)}); ask for fewer."
            )
        return real_sentences, others


def _planted(
    columns: Mapping[str, NDArray[np.int64]], alphas: tuple[float, ...], tasks: Sequence[str]
) -> Planted | None:
    """The planted relations of these tasks, by their label numbers; None for fewer than two."""
    if sum(task in columns for task in tasks) < 2:
        return None
    related = np.round(relatedness(list(columns.values())), 4)
    return Planted(tuple(columns), alphas, tuple(map(tuple, related.tolist()))).among(tasks)


def _extent(sizes: Sequence[int]) -> str:
    """How many words artificial tasks of these sizes have."""
    if not sizes:
        return "the same words"
    each = f" to {max(sizes):,} words each" if min(sizes) < max(sizes) else " words"
    return f"{min(sizes):,}{each}"
