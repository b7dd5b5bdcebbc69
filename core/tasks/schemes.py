"""Tag schemes: how the labels of a column are written, and the one conversion to IOB2 at load.

| scheme | a span of two words, one of one | adjacent spans of one type |
|--------|---------------------------------|----------------------------|
| IOB2   | B-X I-X, B-X                    | B-X B-X                    |
| IOB1   | I-X I-X, I-X                    | I-X B-X                    |
| IOBES  | B-X E-X, S-X                    | S-X S-X                    |
| BILOU  | B-X L-X, U-X                    | U-X U-X                    |
| BMES   | B-X E-X, S-X (M-X inside)       | S-X S-X                    |
| IOE    | I-X E-X or I-X I-X, E-X or I-X  | E-X I-X                    |
| IO     | X X, X                          | cannot be written          |

Every scheme may be spelled in several ways: `B-PER`, `B_PER`, `PER-B`, `b-per`, `B` without a type, and
`(PER* *)` as CoNLL-2012 has it. All are read by the rules of conlleval and seqeval's default mode: a span
begins at B, S or U, after O, E, L, S or U, and where the type changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.tasks.packed import Numbering, Packed, all_counts, packed, shortest
from core.wording import any_of

Scheme = Literal["iob2", "plain", "sentence", "text", "pair", "score"]
"""The stored name of a kind of task."""

Column = Sequence[Sequence[str]]
"""The labels of one task: a sequence per sentence."""

Split = TypeVar("Split", bound=str)
"""The name of a split."""
Part = tuple[str, str]
"""A label as its prefix, an upper-case letter, and its type; `("O", "")` outside spans."""

NOT_ANNOTATED = ("_", "")
"""The label of a word that nobody annotated."""
NO_SPAN = (*NOT_ANNOTATED, "-")
"""The same beside labels with a prefix and a type: there, `-` is no tag of a dash (spaCy writes it)."""

TYPELESS = "_"
"""The type of spans that are written without one, as seqeval calls it."""

_OUTSIDE: Part = ("O", "")
_SCHEMES = {
    "IOB": frozenset("BI"),
    "IOE": frozenset("IE"),
    "IOBES": frozenset("BIES"),
    "BILOU": frozenset("BILU"),
    "BMES": frozenset("BMES"),
    "BMEW": frozenset("BMEW"),
}
_OPENS, _CLOSES, _INSIDE = frozenset("BSUW"), frozenset("OESLUW"), frozenset("IMEL")
_LETTERS = "BIESLUMW"
_JOINERS = "-_:/.|–—"
_BRACKETS = "(X*)"
_BRACKETED = re.compile(r"\((?P<type>[^()*]+)\*\)?|\*\)?")
_NAME_OF_TYPE = re.compile(r"[^\W\d_][\w/&+.-]*\w")
# Tags of words, by which a column of bare names that also has `O` is known to hold no spans.
_WORD_TAGS = frozenset(["NN", "NNP", "VB", "DT", "IN", "JJ", "NOUN", "VERB", "ADJ", "ADV", "ADP", "DET"])
_ZEROS = frozenset(["0", "o"])
_TYPE_LIKE_PREFIX = re.compile(r"[A-Z]-[^\W\d_A-Z]+")

# In IOB1 a B- that follows no span of its type is a mistake. One in a hundred openings is forgiven, since
# reading it as IOB1 changes nothing for that label.
_FORGIVEN = 100
# A column is nearly spans where its other labels are at most half as many as those of spans (as many, where
# both O and B- occur), or stand at one word in twenty at most; of labels without a type, at one in a hundred.
_ODD_KINDS, _ODD_WORDS, _ODD_WORDS_WITHOUT_TYPE = 2, 20, 100


@dataclass(frozen=True)
class Spelling:
    """How one label is written: `form` shows it for the prefix B and the type X; `pattern` takes it apart."""

    form: str
    pattern: re.Pattern[str]

    @property
    def has_types(self) -> bool:
        """Whether a label has both a prefix and a type."""
        return "B" in self.form and "X" in self.form

    @property
    def lacking(self) -> tuple[str, ...]:
        """The labels of words that nobody annotated."""
        return NO_SPAN if self.has_types else NOT_ANNOTATED

    def part(self, label: str) -> Part | None:
        """The prefix and type of a label; None where it is not written so."""
        if label == "O" or (label == "o" and self.form != "X"):
            return _OUTSIDE
        match = self.pattern.fullmatch(label)
        if match is None:
            return None
        named = match.groupdict()
        return named.get("prefix", "I").upper(), named.get("type", TYPELESS)

    def write(self, prefix: str, type_: str) -> str:
        """The label of this prefix and type."""
        return self.form.translate({ord("B"): prefix, ord("X"): type_})


def _spelling(form: str) -> Spelling:
    prefix, type_ = f"(?P<prefix>[{_LETTERS}{_LETTERS.lower()}])", "(?P<type>.+)"
    return Spelling(form, re.compile(re.escape(form).replace("B", prefix).replace("X", type_)))


_CANONICAL = _spelling("B-X")
_TYPED = (
    _CANONICAL,
    *(_spelling(f"B{joiner}X") for joiner in _JOINERS[1:]),
    *(_spelling(f"X{joiner}B") for joiner in _JOINERS),
)
_WITHOUT_TYPE = _spelling("B")
_BARE = Spelling("X", re.compile(f"(?P<type>{_NAME_OF_TYPE.pattern})"))
_IN_BRACKETS = Spelling(_BRACKETS, _BRACKETED)


@dataclass(frozen=True)
class Notation:
    """How spans are written in a column: the spelling of its labels, and their prefixes."""

    spelling: Spelling
    prefixes: frozenset[str]

    @property
    def is_bare(self) -> bool:
        """Whether labels are types alone, without prefixes."""
        return self.spelling is _BARE

    @cached_property
    def scheme(self) -> str:
        """`IOB`, `IOBES`, `BILOU`, `BMES`, `BMEW`, `IOE` or `IO`."""
        if self.is_bare:
            return "IO"
        return next((name for name, letters in _SCHEMES.items() if self.prefixes <= letters), "IOB")

    def canonical(self, labels: Packed) -> Packed:
        """The labels, each as `O` or as its prefix, a hyphen and its type."""
        if self.spelling is _IN_BRACKETS:
            return packed(map(_in_brackets, labels))
        return labels.mapped(self._canonical)

    def _canonical(self, label: str) -> str:
        part = self.spelling.part(label)
        return "O" if part is None or part == _OUTSIDE else f"{part[0]}-{part[1]}"


@dataclass(frozen=True)
class SpanColumn(Generic[Split]):
    """A column of spans as it was read, by split.

    labels       in IOB2, a row for each sentence that is annotated
    lacking      (s,) which sentences have a word that nobody annotated
    schemes      how spans were written: `IOB1`, `IOB2`, `IOBES`, …
    spelling     how a label was written, as `B_X`; `B-X` is that of IOB2
    irregular    how many labels the scheme forbids where they stand, of schemes that mark ends
    unannotated  how many words have no label
    """

    labels: Mapping[Split, Packed]
    lacking: Mapping[Split, NDArray[np.bool_]]
    schemes: Mapping[Split, str]
    spelling: str
    irregular: Mapping[Split, int]
    unannotated: Mapping[Split, int]


class OddLabel(ValueError):
    """A label of no span in a column of spans.

    split, sentence, word   where it stands, counted from 0
    label                   as it is written
    span_labels             how many words of the column have a label of a span
    meaning                 the labels that it may stand for
    """

    def __init__(
        self, split: str, sentence: int, word: int, label: str, span_labels: int, meaning: Sequence[str]
    ) -> None:
        super().__init__(label)
        self.split, self.sentence, self.word, self.label = split, sentence, word, label
        self.span_labels, self.meaning = span_labels, tuple(meaning)

    @property
    def advice(self) -> str:
        """The remedy, as the end of a sentence."""
        return f"write {any_of(self.meaning)}" if self.meaning else "write O, or B- or I- and a type"

    def __str__(self) -> str:
        return f"'{self.label}' among {self.span_labels:,} span labels; {self.advice}."


def notation(words: Counter[str]) -> Notation | None:
    """How spans are written in a column, by nearly all of its labels; None where it has labels of words."""
    return _notation(words) or _nearly(words) or _bare(words)


def _kinds(words: Counter[str]) -> set[str]:
    return set(words).difference(NOT_ANNOTATED)


def _notation(words: Counter[str]) -> Notation | None:
    """How spans are written where every label has a prefix or brackets."""
    kinds = _kinds(words)
    has_outside = not kinds.isdisjoint(("O", "o"))
    if not kinds - {"O", "o"}:
        return None
    for spelling in (*_TYPED, _WITHOUT_TYPE):
        spans = kinds - {"O", "o", *spelling.lacking}
        parts = [spelling.part(kind) for kind in spans]
        read_as = Notation(spelling, frozenset(part[0] for part in parts if part))
        if (
            parts
            and all(parts)
            and _is_plausible(read_as, kinds.difference(NO_SPAN), has_outside=has_outside)
        ):
            return read_as
    if all(map(_BRACKETED.fullmatch, kinds)) and any(kind.startswith("(") for kind in kinds):
        return Notation(_IN_BRACKETS, frozenset("BI"))
    return None


def _bare(words: Counter[str]) -> Notation | None:
    """The notation of bare types beside `O`: every word of a span has its type alone."""
    types = _kinds(words) - {"O"}
    has_names = bool(types) and all(map(_BARE.part, types))
    return Notation(_BARE, frozenset("I")) if "O" in words and has_names and not types & _WORD_TAGS else None


def _is_plausible(read_as: Notation, kinds: set[str], *, has_outside: bool) -> bool:
    """Whether labels that can be read as spans are indeed labels of spans."""
    letters = read_as.prefixes
    if not any(letters <= letters_of_spelling for letters_of_spelling in _SCHEMES.values()):
        return False
    if read_as.spelling is _CANONICAL and all(kind[0].isupper() for kind in kinds):
        return True
    if read_as.spelling is _WITHOUT_TYPE:
        return len(kinds) > 1 and ("B" in letters or ("I" in letters and has_outside))
    return "B" in letters or has_outside


def read_column(splits: Mapping[Split, Column], *, needs_spans: bool = False) -> SpanColumn[Split] | None:
    """The column's spans in IOB2; None where its labels are labels of words.

    The majority of labels over all splits decides. With `needs_spans` the column is known to hold spans.
    Raises OddLabel for a label that is none of a span in a column that is nearly, or known to be, spans.
    """
    columns = {split: packed(column) for split, column in splits.items()}
    words = all_counts(columns.values())
    read_as = _notation(words)
    if read_as is None:
        # What the training labels are, the labels of every other split must be.
        trained = _notation(next((column.counts() for column in columns.values()), Counter()))
        near = _nearly(words) or trained
        if near is None and (read_as := _bare(words)) is None and needs_spans and _kinds(words) - {"O"}:
            near = Notation(_CANONICAL, frozenset("BI"))
        if near is not None:
            raise _odd_label(columns, words, near)
    elif read_as.spelling.has_types and words.keys() & {"_", "-"} and words.keys().isdisjoint(("O", "o")):
        raise _odd_label(columns, words, read_as)
    return None if read_as is None else _converted(columns, read_as)


def _converted(columns: Mapping[Split, Packed], read_as: Notation) -> SpanColumn[Split]:
    lacking, unannotated = {}, {}
    labels: dict[Split, Packed] = {}
    schemes: dict[Split, str] = {}
    irregular: dict[Split, int] = {}
    has_ends = not _SCHEMES["IOB"] >= read_as.prefixes and read_as.scheme != "IOE"
    for split, column in columns.items():
        lacks = column.flags(read_as.spelling.lacking.__contains__)
        lacking[split], unannotated[split] = column.has(lacks), int(lacks.sum())
        spelled = read_as.canonical(column.take(np.flatnonzero(~lacking[split])) if lacks.any() else column)
        parts = _Parts(spelled)
        schemes[split] = read_as.scheme
        if read_as.scheme == "IOB":
            is_iob1 = read_as.spelling is not _IN_BRACKETS and parts.are_iob1()
            schemes[split] = "IOB1" if is_iob1 else "IOB2"
        irregular[split] = parts.irregular() if has_ends else 0
        labels[split] = spelled if schemes[split] == "IOB2" else parts.in_iob2()
    return SpanColumn(labels, lacking, schemes, read_as.spelling.form, irregular, unannotated)


class _Parts:
    """The prefixes and types (N,) of labels `P-TYPE` or `O`, and of the words before them.

    Outside a sentence is an `O`, whose type is empty.
    """

    def __init__(self, labels: Packed) -> None:
        self._labels = labels
        self._types = Numbering({"": 0})
        types = np.array([self._types[name[2:]] for name in labels.names], dtype=np.int32)
        self._type = types[labels.numbers]
        self._is_span = labels.flags(lambda label: label != "O")
        self._closes = labels.flags(lambda label: label[0] in _CLOSES)
        self._changes = labels.before(self._type, 0) != self._type
        opens = labels.flags(lambda label: label[0] in _OPENS)
        self._begins = opens | labels.before(self._closes, True) | self._changes

    def are_iob1(self) -> bool:
        """Whether spans begin with I-, and with B- nearly nowhere but behind another of their type."""
        names, opened = self._labels.names, self._labels.numbers[self._is_span & self._changes]
        times = Counter[str]()
        for name, count in zip(names, np.bincount(opened, minlength=len(names)).tolist(), strict=True):
            times[name[0]] += count
        return times["I"] > 0 and times["B"] * _FORGIVEN <= times["I"]

    def irregular(self) -> int:
        """How many labels break a scheme with ends: they continue no span, or leave one open."""
        is_inside = self._labels.flags(lambda label: label[0] in _INSIDE)
        after = np.zeros(len(is_inside), dtype=bool)  # goes the next word's label on with this type?
        after[:-1] = (is_inside & ~self._changes & (self._labels.before(np.ones(len(after), bool), False)))[
            1:
        ]
        is_open = ~self._closes & ~after
        return int((self._is_span & (is_open | (is_inside & self._begins))).sum())

    def in_iob2(self) -> Packed:
        """The labels in IOB2. A span begins where seqeval's default mode has it begin."""
        names = ["O", *(f"{prefix}-{type_}" for type_ in self._types if type_ for prefix in "BI")]
        numbers = np.where(self._is_span, 2 * self._type - self._begins, 0)
        return Packed(names, shortest(numbers, len(names)), self._labels.offsets)


def _in_brackets(labels: Sequence[str]) -> list[str]:
    parts: list[str] = []
    type_ = ""
    for label in labels:
        opened = _BRACKETED.fullmatch(label)
        if opened is not None and opened["type"]:
            type_ = opened["type"]
            parts.append(f"B-{type_}")
        else:
            parts.append(f"I-{type_}" if type_ else "O")
        if label.endswith(")"):
            type_ = ""
    return parts


def _nearly(words: Counter[str]) -> Notation | None:
    """The scheme of a column of spans with a few other labels; None for labels of words."""
    kinds = _kinds(words) - {"O", "o"}
    kept = sum(words.values())
    best: tuple[int, Notation] | None = None
    for spelling in (*_TYPED, _WITHOUT_TYPE):
        parts = {kind: part for kind in kinds if (part := spelling.part(kind))}
        odd = kinds - {*parts, *spelling.lacking}
        labelled = kept - sum(words[label] for label in spelling.lacking)
        odd_words = sum(words[kind] for kind in odd)
        read_as = Notation(spelling, frozenset(part[0] for part in parts.values()))
        if odd and not read_as.prefixes & {"B", "I"} and all(map(_BARE.part, odd)):
            continue  # `E-mail` and `S-bahn` beside `Person` are types
        if spelling.has_types:
            is_marked = "O" in words and "B" in read_as.prefixes
            most = len(parts) if is_marked else len(parts) // _ODD_KINDS
            is_near = len(odd) <= most or odd_words * _ODD_WORDS <= labelled
        else:
            is_near = odd <= _ZEROS or odd_words * _ODD_WORDS_WITHOUT_TYPE <= labelled
        matched = sum(words[kind] for kind in parts)
        has_outside = "O" in words or "o" in words or not odd.isdisjoint(_ZEROS)
        if odd and len(read_as.prefixes) == 1 and all(map(_TYPE_LIKE_PREFIX.fullmatch, {*odd, *parts})):
            continue  # `B-cell` and `T-cell` are types
        if is_near and parts and _is_plausible(read_as, set(parts), has_outside=has_outside):
            best = max(best or (0, read_as), (matched, read_as), key=lambda pair: pair[0])
    return None if best is None else best[1]


def _odd_label(splits: Mapping[Split, Packed], words: Counter[str], read_as: Notation) -> OddLabel:
    """The first label that is not one of spans in this spelling, and its possible meaning."""
    lacking = read_as.spelling.lacking
    labels_of_spans = {kind for kind in words if kind not in lacking and read_as.spelling.part(kind)}
    if read_as.spelling is _IN_BRACKETS:
        labels_of_spans -= {"O", "o"}
    is_missing_outside = words.keys().isdisjoint(("O", "o"))
    for split, column in splits.items():
        for number, row in enumerate(column):
            for index, label in enumerate(row):
                is_lacking = label in lacking and not (label and is_missing_outside)
                if label in labels_of_spans or is_lacking:
                    continue
                total = sum(words[kind] for kind in labels_of_spans - {"O", "o"})
                return OddLabel(
                    split, number, index, label, total, _meaning(label, read_as, labels_of_spans, words)
                )
    raise AssertionError("no label is odd")


def _meaning(label: str, read_as: Notation, labels_of_spans: set[str], words: Counter[str]) -> list[str]:
    spelling = read_as.spelling
    if spelling is _IN_BRACKETS:
        return ["*"]
    types = {part[1] for kind in labels_of_spans if (part := spelling.part(kind)) and part != _OUTSIDE}
    if label in types:
        return [spelling.write("B", label), spelling.write("I", label)]
    for other in _TYPED:
        if (part := other.part(label)) and part != _OUTSIDE and (part[1] in types or other.form[0] == "B"):
            return [spelling.write(*part)]
    # Where nobody wrote O, the one label that is none of spans stands for it.
    stands_for_o = "O" not in words and bool(types) and len(_kinds(words) - labels_of_spans) <= 1
    return ["O"] if label in _ZEROS or label in NO_SPAN or stands_for_o else []


def violations(column: Column) -> int:
    """How many I- continue nothing: IOB2 allows I-X only after B-X or I-X."""
    labels = packed(column)
    types = Numbering({"": 0})
    table = [types[name[2:] if name[:2] in ("B-", "I-") else ""] for name in labels.names]
    type_ = np.array(table, dtype=np.int32)[labels.numbers]
    is_inside = labels.flags(lambda label: label.startswith("I-"))
    return int((is_inside & (labels.before(type_, 0) != type_)).sum())


def span_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each label once: `O` first, then by span type and prefix."""
    return tuple(sorted(set(labels), key=lambda label: (label != "O", label[2:], label[:2])))


def inside(label: str) -> str:
    """The label in the IO scheme, which has no beginnings: I-X for B-X."""
    return "I-" + label[2:] if label.startswith("B-") else label
