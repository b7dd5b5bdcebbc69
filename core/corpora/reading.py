"""The reading report: the role of each column of a corpus, and the conversions and omissions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from core.config.typed import real_number
from core.corpora.layout.codes import text_doubts, type_doubts, word_doubts
from core.plain_text import shortened
from core.tasks.kinds import KINDS, TaskKind
from core.tasks.packed import Packed, all_counts
from core.tasks.schemes import NO_SPAN, SpanColumn, Split
from core.wording import all_of, plural

ROLES: dict[str, str] = {
    "words": "words",
    "text": "text",
    **{kind.role: kind.role_title for kind in KINDS.values()},
    "skipped": "skipped",
}
"""The roles of a column as they are stored, each in the words of pages and terminal."""

FEATURE = "feats:"
"""The prefix of the names of tasks that are a feature of FEATS in CoNLL-U."""

_EXAMPLES = 3
_NO_LABEL = frozenset(["-", "_", "?", "n/a", "nan", "null"])
"""What stands in the place of a label that nobody gave, in lower case."""
MANY = 20
"""More different values than this in a column of labels may be too many: titles, dates."""
_FEW = 5
"""Fewer texts than this for each of many labels are too few."""
_LONGEST_EXAMPLE = 40


@dataclass(frozen=True)
class ColumnReading:
    """The role that a column was given.

    name      of the task, `tokens`, or of a column that is skipped
    taken     its role, one of `ROLES`
    column    what the column itself is called, where it is a task by another name
    guessed   the name is a guess by what the column holds
    labels    how many different labels it has, as they are written; None where it has none
    spans     how many spans there are in all splits; None where it holds none
    examples  at most three values
    notes     what was converted, counted or left out, a sentence each
    doubts    what looks wrong, a sentence each
    """

    name: str
    taken: str
    guessed: bool = False
    labels: int | None = None
    spans: int | None = None
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    column: str = ""

    def __post_init__(self) -> None:
        if self.taken not in ROLES:  # as facts of another version may have it
            raise ValueError(f"'{self.taken}' is no role of a column; roles are {', '.join(ROLES)}.")

    @property
    def title(self) -> str:
        """`ner (column ner_tags)`, `tag (guessed)`: the name, as pages and terminal say it."""
        more = [f"column {self.column}"] * bool(self.column) + ["guessed"] * self.guessed
        return f"{self.name} ({', '.join(more)})" if more else self.name

    @property
    def taken_for(self) -> str:
        """`spans of words: 12 of 3 labels`, as pages and terminal say it."""
        counts = [] if self.spans is None else [plural(self.spans, "span")]
        counts += [] if self.labels is None else [plural(self.labels, "label")]
        return ": ".join(filter(None, (ROLES[self.taken], ", ".join(counts))))


@dataclass(frozen=True)
class Reading:
    """The reading report of the files of one corpus.

    files    by split, the name of its file; empty where there are none, as on the Hub
    layout   how they are laid out: `CoNLL columns separated by tabs`
    columns  from left to right
    notes    what was left out of the files, a sentence each
    revision of a dataset, the commit that was read, or a hash of the files of a copy
    """

    corpus: str
    files: Mapping[str, str]
    layout: str
    columns: tuple[ColumnReading, ...]
    notes: tuple[str, ...] = ()
    revision: str = ""

    @property
    def title(self) -> str:
        """`my-corpus, CoNLL columns separated by tabs: train.conll (train), test.conll (test)`."""
        files = ", ".join(f"{file} ({split})" for split, file in self.files.items())
        return ": ".join(filter(None, (", ".join(filter(None, (self.corpus, self.layout))), files)))

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes on omissions, conversions and suspicious content, with the names of the columns."""
        return (*self.notes, *chain.from_iterable(map(column_notes, self.columns)))


def column_notes(column: ColumnReading) -> list[str]:
    """The notes and doubts on a column, each with its name."""
    return [f"{column.name}: {note}" for note in (*column.notes, *column.doubts)]


def reading_rows(reading: Reading) -> list[dict[str, str]]:
    """A row for each column, for a table: its name, its role, and examples."""
    return [
        {
            "Name": column.title,
            "Read as": column.taken_for,
            "Examples": ", ".join(column.examples),
        }
        for column in reading.columns
    ]


def values_shown(values: Iterable[str]) -> tuple[str, ...]:
    """The first three different values, shortened."""
    first = list(dict.fromkeys(value for value in values if value))[:_EXAMPLES]
    return tuple(shortened(value, _LONGEST_EXAMPLE) for value in first)


def read_spans(name: str, written: Mapping[Split, Packed], column: SpanColumn[Split]) -> ColumnReading:
    """The reading of a column of spans, from its labels in the files (`written`) and in IOB2."""
    counts = all_counts(written.values())
    notes = []
    by_scheme: dict[str, list[Split]] = {}
    for split, scheme in column.schemes.items():
        if set(written[split].counts()) - {"O", *NO_SPAN}:
            by_scheme.setdefault(scheme, []).append(split)
    for scheme, splits in by_scheme.items():
        as_written = "" if column.spelling in ("B-X", "X", "B") else f" as {column.spelling}"
        if scheme == "IOB2" and not as_written:
            continue
        where = f"{all_of(splits)} {'split' if len(splits) == 1 else 'splits'}"
        notes.append(f"written in {scheme}{as_written} in the {where}; converted to IOB2.")
    if column.spelling == "B-X" and any(label[0].islower() for label in counts if label):
        notes.append("prefixes in lower case were converted to upper case.")
    if column.spelling == "B":
        notes.append("spans have no type; it is shown as _.")
    if column.spelling == "X":
        notes.append("types stand alone, without B- and I-: adjacent spans of one type count as one.")
    if irregular := _by_split(column.irregular):
        notes.append(
            f"labels that continue no span or leave one open: {irregular}; read as seqeval reads them."
        )
    if unannotated := _by_split(column.unannotated):
        lacking = sum(int(lacks.sum()) for lacks in column.lacking.values())
        notes.append(
            f"words without a label: {unannotated}. {plural(lacking, 'sentence')} with such words "
            f"{'is' if lacking == 1 else 'are'} not annotated for it."
        )
    converted = all_counts(column.labels.values())
    spans = sum(count for label, count in converted.items() if label.startswith("B-"))
    types = sorted({label[2:] for label in converted if label != "O"})
    labels = Counter({label: count for label, count in counts.items() if label not in NO_SPAN})
    return ColumnReading(
        name, "spans", labels=len(labels), spans=spans, examples=_most_frequent(labels), notes=tuple(notes),
        doubts=(*_case_doubts(types), *word_doubts(labels), *type_doubts(types)),
    )  # fmt: skip


def read_labels(name: str, kind: TaskKind, written: Mapping[Split, Packed]) -> ColumnReading:
    """The reading of a column of labels or numbers of this kind. `written` has them by split."""
    counts = all_counts(written.values())
    examples = _most_frequent(counts)
    if kind.is_number:
        return ColumnReading(name, kind.role, examples=examples)
    doubts = _case_doubts(counts)
    if kind.reads == "words" and len(counts) > 1 and counts["O"] * 2 > sum(counts.values()):
        doubts.append(
            "more than half of its labels are O, and the others are not read as spans: it is scored by "
            "accuracy. Write B- or I- and a type where spans are meant."
        )
    # Of a feature `_` is a label by intention: the word has not the feature.
    if kind.reads == "words" and not name.startswith(FEATURE):
        doubts += word_doubts(counts)
    elif kind.reads != "words":
        doubts += text_doubts(counts)
    if kind.reads in ("text", "pair"):
        doubts += _text_doubts(counts, of_pairs=kind.reads == "pair")
    return ColumnReading(name, kind.role, labels=len(counts), examples=examples, doubts=tuple(doubts))


def _text_doubts(counts: Counter[str], *, of_pairs: bool) -> Iterator[str]:
    """Sentences on labels of texts that may be numbers, mean that there is no label, or are too many."""
    texts = counts.total()
    numbers = [real_number(label) for label in counts]
    if None not in numbers and any(number % 1 for number in numbers if number is not None):
        remedy = (
            "to learn numbers, name the column score"
            if of_pairs
            else "numbers are learned of pairs of texts alone"
        )
        yield f"its labels are decimal numbers, each of which is learned as a class; {remedy}."
    elif len(counts) > MANY and len(counts) * _FEW > texts:
        yield (
            f"has {len(counts):,} labels for {texts:,} texts, too few of each to learn; leave the task out."
        )
    for label in counts:
        if label.lower() in _NO_LABEL and "+" not in counts and len(counts) > 1:
            labelled = plural(counts[label], "text")
            yield f"{label} is the label of {labelled}; where it stands for no label, delete these rows."


def guessed(reading: Reading) -> Reading:
    """The same reading, where the names of columns are guesses."""
    return replace(reading, columns=tuple(replace(column, guessed=True) for column in reading.columns))


def _by_split(counts: Mapping[Split, int]) -> str:
    return ", ".join(f"{count:,} in {split}" for split, count in counts.items() if count)


def _most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    return values_shown([label for label, _ in counts.most_common(_EXAMPLES + 1) if label != "O"] or counts)


def _case_doubts(labels: Iterable[str]) -> list[str]:
    """A sentence on labels that differ by nothing but upper and lower case."""
    written: dict[str, list[str]] = {}
    for label in labels:
        written.setdefault(label.casefold(), []).append(label)
    alike = [sorted(names) for names in written.values() if len(names) > 1]
    return [f"labels differ only in case: {all_of(names)}." for names in alike[:_EXAMPLES]]
