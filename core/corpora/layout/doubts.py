"""What looks wrong in the columns of a corpus, a sentence for each doubt: the same for all formats.

A doubt on labels is a row of LABEL_DOUBTS, one on words or texts a row of WORD_DOUBTS. The reading report and
the notes of a run show them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np

from core.config.typed import real_number
from core.corpora.layout.no_label import CODES, is_common
from core.corpora.reading import FEATURE, MANY, Reading, values_shown
from core.corpora.types import SPLITS, Corpus, Sentences, Split
from core.wording import all_of, first_of, plural

ONE_LABEL = "one label a text is learned"
"""The rule for texts, in the sentences on several labels."""
LAYERS = "joins labels of several layers; write a column for each layer"
"""The cause and the remedy for `B-DNA|B-protein`, in the sentence of an error."""

_LAYERS = re.compile(r"\s*[|,;#/+&]\s*")
_OF_A_LAYER = re.compile(r"O|[BIESLUMW][-_].+|.+[-_][BIESLUMW]")
_JOINERS = re.compile(r"\s*[;|,#+]\s*")
_LANGUAGE = re.compile(r"[a-z][a-z-]+:")
_WORDS_SEEN = 200
_OUTSIDE_AS_A_TYPE = frozenset(["O", "o", "0"])
_NO_LABEL = frozenset(["-", "_", "?", "n/a", "nan", "null"])
"""What stands in the place of a label that nobody gave, in lower case."""
_FEW = 5
"""Fewer texts than this for each of many labels are too few."""
_ALIKE_SHOWN = 3
_LONG_SENTENCE = 200
# A field as pandas quotes it where it holds a quotation mark, which is doubled inside: `""""` is one alone.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


@dataclass(frozen=True)
class Labels:
    """The labels of a column in all splits.

    role      what they are: spans, or labels of words, a sentence, a text or a pair, or a number
    counts    how often each occurs
    name      of the task
    types     of spans, their types; of others, the labels
    written   of spans, all labels as they are written, and `spelling`, how
    training  how often each occurs in training, with those that were read as no label (`codes`)
    """

    role: str
    counts: Counter[str]
    name: str
    types: Collection[str]
    written: Collection[str] = ()
    spelling: str = ""
    training: Mapping[str, int] = field(default_factory=dict)
    codes: Collection[str] = ()


def _alike(labels: Labels) -> Iterator[str]:
    """On labels that differ by nothing but upper and lower case."""
    written: dict[str, list[str]] = {}
    for label in labels.types:
        written.setdefault(label.casefold(), []).append(label)
    alike = [sorted(names) for names in written.values() if len(names) > 1]
    for names in alike[:_ALIKE_SHOWN]:
        yield f"labels differ only in case: {all_of(names)}."


def _mostly_outside(labels: Labels) -> Iterator[str]:
    """On words of which most are O."""
    if len(labels.counts) > 1 and labels.counts["O"] * 2 > labels.counts.total():
        yield (
            "more than half of its labels are O, and the others are not read as spans: it is scored by "
            "accuracy. Write B- or I- and a type where spans are meant."
        )


def _layered(labels: Labels) -> Iterator[str]:
    """On labels made of several, and on a sign, such as `_`, that stands at most words beside names."""
    if labels.name.startswith(FEATURE):
        return  # there `_` is a label by intention: the word has not the feature
    if layered := [label for label in labels.counts if has_layers(label)]:
        joins = "joins" if len(layered) == 1 else "join"
        yield (
            f"{plural(len(layered), 'label')} {joins} those of several layers ({first_of(layered)}), and "
            "each is learned as one label; write a column for each layer."
        )
        return
    ((label, count),) = labels.counts.most_common(1) or [("", 0)]
    has_names = any(any(map(str.isalnum, other)) for other in labels.counts)
    if has_names and label and count * 2 > labels.counts.total() and not any(map(str.isalnum, label)):
        yield (
            f"more than half of its labels are {label}, which is learned as a label; where it says that a "
            "word has none, write O, and B- or I- before the names of spans."
        )


def _outside_as_type(labels: Labels) -> Iterator[str]:
    """On types of spans that stand for no span."""
    for type_ in labels.types:
        if type_ in _OUTSIDE_AS_A_TYPE:
            yield f"spans have a type called {type_}; where no span is meant, write O alone."


def _joined(labels: Labels) -> Iterator[str]:
    """On labels of sentences, texts or pairs that seem to be several in one."""
    counts = labels.counts
    split = {label: _JOINERS.split(label) for label in counts}
    parts = {label: pieces for label, pieces in split.items() if len(pieces) > 1 and all(pieces)}
    uses = Counter(piece for pieces in parts.values() for piece in set(pieces))
    joined = [
        label
        for label, pieces in parts.items()
        if any(piece in counts for piece in pieces) or all(uses[piece] > 1 for piece in pieces)
    ]
    if joined:
        yield (
            f"{plural(len(joined), 'label')} seem{'s' * (len(joined) == 1)} to join several "
            f"({first_of(joined)}), and {ONE_LABEL}: each is a class of its own. Keep one label in each row, "
            "or write a column of 0 and 1 for each label."
        )


def _too_many(labels: Labels) -> Iterator[str]:
    """On labels of texts that are decimal numbers, or too many to learn."""
    numbers = [real_number(label) for label in labels.counts]
    texts = labels.counts.total()
    if None not in numbers and any(number % 1 for number in numbers if number is not None):
        remedy = (
            "to learn numbers, name the column score"
            if labels.role == "pair"
            else "numbers are learned of pairs of texts alone"
        )
        yield f"its labels are decimal numbers, each of which is learned as a class; {remedy}."
    elif len(numbers) > MANY and len(numbers) * _FEW > texts:
        count = f"{len(numbers):,} labels for {texts:,} texts"
        yield f"has {count}, too few of each to learn; leave the task out."


def _no_answer(labels: Labels) -> Iterator[str]:
    """On labels of texts that may say that nobody gave one."""
    for label, count in labels.counts.items():
        if label.lower() in _NO_LABEL and "+" not in labels.counts and len(labels.counts) > 1:
            labelled = plural(count, "text")
            yield f"{label} is the label of {labelled}; where it stands for no label, delete these rows."


def _only_prefix(labels: Labels) -> Iterator[str]:
    """On labels of spans such as `E-mail` and `B-cell`, which may be types without a prefix."""
    spans = sorted(label for label in labels.written if label[1:2] == "-")
    prefixes = {label[0] for label in spans}
    if labels.spelling != "B-X" or len(prefixes) != 1 or prefixes <= {"I"}:
        return
    # Several types in small letters are those of spans of one word each.
    if prefixes == {"B"} and (len(spans) > 1 or not spans[0][2:3].islower()):
        return
    shown = values_shown(spans)
    yield (
        f"{shown[0][0]}- is its only prefix: {all_of(shown)} may be types of their own. They are read as "
        f"spans of {all_of([label[2:] for label in shown])}; where {shown[0]} is a type, write B-{shown[0]} "
        f"and I-{shown[0]}."
    )


def _minus_one(labels: Labels) -> Iterator[str]:
    """On common labels that were read as no label, and on -1 where it was read as a class."""
    if is_common(labels.training, labels.codes):
        codes = all_of(sorted(labels.codes))
        yield f"{codes} was read as no label; where it is a class, write its name in its place."
        return
    numbers = {label: real_number(label) for label in labels.training}
    is_class = any(number in CODES and label not in labels.codes for label, number in numbers.items())
    if is_class and {number for number in numbers.values() if number is not None} == {-1, 0, 1}:
        yield "-1 was read as a class beside 0 and 1; where it stands for no label, leave the label out."


LABEL_DOUBTS: tuple[tuple[str, Callable[[Labels], Iterator[str]]], ...] = (
    ("spans words sentence text pair", _alike),
    ("words", _mostly_outside),
    ("spans words", _layered),
    ("spans", _outside_as_type),
    ("sentence text pair", _joined),
    ("text pair", _too_many),
    ("text pair", _no_answer),
    ("spans", _only_prefix),
    ("sentence text pair number", _minus_one),
)
"""The roles that labels have, and what may be wrong in them."""


def label_doubts(labels: Labels) -> tuple[str, ...]:
    """All doubts on the labels of a column."""
    return tuple(
        chain.from_iterable(doubts(labels) for roles, doubts in LABEL_DOUBTS if labels.role in roles.split())
    )


def has_layers(label: str) -> bool:
    """Whether a label is made of labels of spans: `B-DNA|B-protein`, `O|B-PER`."""
    parts = _LAYERS.split(label)
    return len(parts) > 1 and all(map(_OF_A_LAYER.fullmatch, parts))


def untrained_doubt(splits: list[Split]) -> str:
    """A sentence on a column that has labels in these splits, and none in train."""
    return (
        f"has labels in {all_of(splits)} and none in train, so that nothing can be learned of it: it was "
        "left out."
    )


@dataclass(frozen=True)
class Words:
    """The words or texts of a column, the first ones or the second of a pair, and the files of the splits."""

    corpus: Corpus
    files: Mapping[Split, str]
    is_second: bool

    @property
    def are_texts(self) -> bool:
        """Whether they are whole texts."""
        return self.corpus.split("train")[0].whole


def _one_sentence(words: Words) -> Iterator[str]:
    """On a file that is one long sentence."""
    for split, file in words.files.items():
        sentences = words.corpus.split(split)
        lengths = sentences.tokens.lengths[:2]
        if len(sentences) == 1 and lengths[0] >= _LONG_SENTENCE and not sentences[0].whole:
            yield f"the {lengths[0]:,} words of {file} are one sentence; check where its sentences end."


def _prefixed(words: Words) -> Iterator[str]:
    """On a prefix that all words have, as WikiAnn writes `en:` before each."""
    if words.are_texts:
        return
    first = list(islice(words.corpus.split("train").tokens.names, _WORDS_SEEN))
    prefixes = {match[0] if (match := _LANGUAGE.match(word)) else "" for word in first}
    if len(first) > 1 and len(prefixes) == 1 and "" not in prefixes:
        yield f"each word begins with {prefixes.pop()}, as in WikiAnn's files; take it away."


def _in_quotes(words: Words) -> Iterator[str]:
    """On texts or words in quotation marks, as pandas writes them."""
    counts = {
        file: _quoted(words.corpus.split(split), words.is_second) for split, file in words.files.items()
    }
    if counted := ", ".join(f"{count:,} in {file}" for file, count in counts.items() if count):
        yield (
            f"in quotation marks, with those inside doubled: {counted}; as pandas writes a table with tabs. "
            "The marks are read as part of the words. Save the table as CSV, or without quotes."
        )


def _quoted(sentences: Sentences, is_second: bool) -> int:
    """How many texts, or words of sentences, are quoted as pandas does it."""
    if not len(sentences):
        return 0
    if not sentences.traits[0].whole:
        return int(sentences.tokens.flags(lambda word: _QUOTED.fullmatch(word) is not None).sum())
    texts = sentences.second.rows if is_second else sentences.tokens
    is_open = texts.flags(lambda word: word.startswith('"'))[texts.offsets[:-1]]
    is_closed = texts.flags(lambda word: word.endswith('"'))[texts.offsets[1:] - 1]
    candidates = np.flatnonzero(is_open & is_closed & texts.has(texts.flags(lambda word: '""' in word)))
    return sum(_QUOTED.fullmatch(" ".join(texts[place])) is not None for place in candidates.tolist())


WORD_DOUBTS: tuple[Callable[[Words], Iterator[str]], ...] = (_one_sentence, _prefixed, _in_quotes)
"""What may be wrong in words or texts."""


def with_doubts_on_words(reading: Reading, corpus: Corpus) -> Reading:
    """The reading report of a corpus, with the doubts on its columns of words or texts."""
    places = [place for place, column in enumerate(reading.columns) if column.taken in ("words", "text")]
    columns = list(reading.columns)
    files = {split: reading.files[split] for split in SPLITS if split in reading.files}
    for place in places:
        words = Words(corpus, files, is_second=place != places[0])
        doubts = chain.from_iterable(doubts(words) for doubts in WORD_DOUBTS)
        columns[place] = replace(columns[place], doubts=(*columns[place].doubts, *doubts))
    return replace(reading, columns=tuple(columns))
