"""A corpus at a glance: its sizes, labels, samples, and what was understood of its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.corpora.assembly import SPLITS
from core.corpora.loading import Files, column_key, files_of, load
from core.corpora.reading import Reading
from core.corpora.sampling import parts
from core.corpora.types import Corpus, Sentence, Sentences, Split, Task
from core.tasks import KINDS
from core.wording import all_of

_SAMPLES = 3
_SAMPLE_WORDS = 8, 24


@dataclass(frozen=True)
class SplitSize:
    """How much text a split holds."""

    sentences: int
    tokens: int


@dataclass(frozen=True)
class CorpusSummary:
    """The summary of a corpus in the form.

    splits   sizes of train and test, and of dev where the corpus has one
    counts   by task, for each split that is annotated, how many words (or texts) have each label
    samples  three training sentences, or one of each part where there are more
    words    by task, how many words its training sentences have, of both texts of a pair
    readings what was understood of the files of each corpus that its sentences come from
    """

    splits: Mapping[Split, SplitSize]
    tasks: tuple[Task, ...]
    counts: Mapping[str, Mapping[Split, Mapping[str, int]]]
    samples: tuple[Sentence, ...]
    notes: tuple[str, ...]
    words: Mapping[str, int]
    readings: tuple[Reading, ...]

    @property
    def examples(self) -> str:
        """The kinds of its examples, in the plural: `sentences`, `texts and pairs`."""
        return all_of(list(dict.fromkeys(KINDS[task.scheme].examples for task in self.tasks)))


def summarise(name: str, columns: Sequence[str] | None = None) -> CorpusSummary:
    """The corpus at a glance. Read anew only when its files change. Raises CorpusError as `load` does."""
    return _summarised(name, column_key(columns), files_of(name))


# Small beside the corpora, and a sweep over options of a derived corpus asks for hundreds.
@lru_cache(maxsize=1024)
def _summarised(name: str, columns: tuple[str, ...] | None, files: Files) -> CorpusSummary:
    corpus = load(name, columns)
    return CorpusSummary(
        {
            split: SplitSize(len(sentences), int(sentences.words.sum()))
            for split in SPLITS
            if (sentences := corpus.split(split))
        },
        corpus.tasks,
        {task.name: _label_counts(corpus, task.name) for task in corpus.tasks},
        _samples(corpus.split("train")),
        corpus.notes,
        {
            task.name: int(corpus.split("train").words[corpus.split("train").column(task.name).at].sum())
            for task in corpus.tasks
        },
        corpus.readings,
    )


def found_columns(name: str) -> tuple[str, ...]:
    """The columns of a dataset that are read, as its name may say them. Raises CorpusError as `load`."""
    (reading,) = summarise(name).readings
    return tuple(
        f"{column.column}:{column.name}" if column.column else column.name
        for column in reading.columns
        if column.taken != "skipped"
    )


def _label_counts(corpus: Corpus, task: str) -> dict[Split, Counter[str]]:
    """How often each split that is annotated for the task has each label."""
    columns = {split: corpus.split(split).column(task).rows for split in SPLITS}
    return {split: column.counts() for split, column in columns.items() if column}


def _samples(train: Sentences) -> tuple[Sentence, ...]:
    """Training sentences of a readable length, spread over each part: three, or one of each of more parts."""
    by_part = [which for _, which in parts(train)]
    least, most = _SAMPLE_WORDS
    samples: list[Sentence] = []
    for number, which in enumerate(by_part):
        readable = which[(least <= train.words[which]) & (train.words[which] <= most)]
        readable = readable if len(readable) else which
        wanted = len(range(number, max(_SAMPLES, len(by_part)), len(by_part)))
        spread = min(wanted, len(readable))
        samples += [train[int(readable[index * len(readable) // spread])] for index in range(spread)]
    return tuple(samples)
