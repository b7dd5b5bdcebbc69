"""The strict reader of texts and pairs of texts: TSV, CSV and JSONL files with named columns.

`text` is a text; `text1` and `text2` are those of a pair. Every other column is a task, but for those left
out: `id`, `idx`, a name that begins with `_`, a column without a name, one of several whose values hardly
repeat. `score`, or a name that ends with `_score`, is a column of numbers; all others hold labels. A task of
the column `label` or `score` is named as the corpus.

The first line of TSV and CSV names the columns; each line of JSONL is an object with the same keys. TSV knows
no quotes; in CSV a quoted field may hold line ends. Errors name the line, of a CSV row the one it begins on.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

from core.config.typed import real_number
from core.corpora.layout import cells
from core.corpora.layout.cells import structured
from core.corpora.layout.codes import ONE_LABEL
from core.corpora.layout.gold import without_codes
from core.corpora.layout.no_label import is_blank
from core.corpora.layout.word_rows import WORD_NAMES, word_rows
from core.corpora.readers.lines import IGNORED, MOST_CHARACTERS, GivenFile, Source, read_lines
from core.corpora.reading import MANY
from core.corpora.types import Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.paths import opened
from core.plain_text import shortened
from core.tasks import KINDS
from core.wording import all_of, plural

_TEXTS = ("text", "sentence", "utterance", "tweet", "review", "content")
_PAIRS = (
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
)
"""The names of the column of a text, and of the two columns of a pair, in lower case."""
_ALL_TEXTS = frozenset([*_TEXTS, *chain.from_iterable(_PAIRS)])

CSV, TSV = ".csv", ".tsv"
"""The endings of text files; a TSV file's first line decides between texts and CoNLL columns."""

_LEFT_OUT = re.compile(
    r"|(.*[\W_])?(id|idx|index)|(q|pair|prompt|gu|u)id\d?|(?-i:.*[a-z]I[Dd])|.*_parse|filename"
    r"|unnamed: [\d.]+",
    re.IGNORECASE,
)
LABEL_NAMES = frozenset(
    [
        "intent", "label", "labels", "target", "class", "category", "domain", "topic", "sentiment", "emotion",
        "act", "dialog_act",
    ]
)  # fmt: skip
"""The names of columns that surely hold labels."""
_OF_ANNOTATORS = re.compile(r"label\d+|annotator_labels")
"""The names of the columns of single annotators, beside `gold_label`."""
_MOST_SEEN = 65_536
_ROWS_SEEN = 1000
_LABEL, _SCORE, _ANSWER = "label", "score", "answer"
_ANSWERS = ("accept", "reject", "ignore")
"""What annotators answer to the labels that Prodigy shows them."""
# What separates names on the command line and in the form, and control characters.
_NOT_IN_NAMES = re.compile("[,;\x00-\x1f]")
_LONGEST_SHOWN = 80
# A name of a column has fewer spaces.
_WORDS_OF_A_TEXT = 3

MOST_SCORE = 1e6
"""The largest score, either side of 0. The squares of its gradients, which optimisers keep, fit float32."""

Row = tuple[int, Sequence[Any]]
"""A row's line and its values."""


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a file.

    names     all, from left to right
    texts     the column of a text, or the two of a pair
    schemes   the kind of task that each column of labels or numbers is
    reasons   by column that is no task for what it or another one holds, why; may be empty
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    schemes: Mapping[str, Scheme]
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def left_out(self) -> list[str]:
        """The columns that are neither texts nor tasks, each with the reason where there is one."""
        names = [name for name in self.names if name not in (*self.texts, *self.schemes)]
        return [f"{name} ({reason})" if (reason := self.reasons.get(name)) else name for name in names]

    def tasks(self, corpus: str) -> dict[str, str]:
        """The task of each column, in a corpus of that name."""
        plain = [column for column in self.schemes if column in (_LABEL, _SCORE)]
        corpus_task = _NOT_IN_NAMES.sub("-", corpus)
        if len(plain) != 1 or not corpus_task or corpus_task in self.schemes:
            return {column: column for column in self.schemes}
        return {column: corpus_task if column in plain else column for column in self.schemes}


def holds_texts(source: Source) -> bool:
    """Whether a file is one of texts: by its ending, or of TSV by its beginning."""
    ending = Path(source.name).suffix.lower()
    if ending != TSV:
        return ending in _ROWS
    lines = re.split("\r\n|\n|\r", beginning(source))
    return _are_texts([line.split("\t") for line in lines])


def beginning(source: Source, most: int = _MOST_SEEN) -> str:
    """The text of the first bytes of a file; empty where it cannot be read, of which its reader says why."""
    if isinstance(source, GivenFile):
        seen = source.content[:most]
    else:
        try:
            with opened(source) as file:
                seen = file.read(most)
        except OSError:
            return ""
    return seen.decode("utf-8-sig", errors="replace")


def is_left_out(name: str) -> bool:
    """Whether a column of that name holds numbers of rows or the like."""
    return _LEFT_OUT.fullmatch(name) is not None


def is_text_column(name: str) -> bool:
    """Whether a column of that name may hold texts."""
    return name.lower() in _ALL_TEXTS


def is_score(name: str, *, of_pairs: bool = False) -> bool:
    """Whether a column of that name holds numbers of pairs, in any case where there are pairs."""
    name = name.lower() if of_pairs else name  # `Score` of one text is stars, as a rule
    return name == _SCORE or name.endswith(f"_{_SCORE}")


def _are_texts(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a TSV file names columns of texts.

    A file of words may begin with the word `text`: it has blank lines, or its other columns repeat the label
    of that word, and no word has a space inside.
    """
    names = [name.strip().lower() for name in rows[0]]
    first = next((index for index, name in enumerate(names) if is_text_column(name)), None)
    if len(names) < 2 or first is None or not WORD_NAMES.isdisjoint(names):
        return False
    others = [row for row in rows[1:] if len(row) == len(names)]
    if any(" " in row[first].strip() for row in others):
        return True
    ends = [not any(map(str.strip, row)) for row in rows]
    has_blank_line = any(blank and not all(ends[index:]) for index, blank in enumerate(ends))
    repeats = any(
        row[index] == name for row in others for index, name in enumerate(rows[0]) if index != first
    )
    return not (has_blank_line or repeats)


def read_texts(source: Source, corpus: str, training: Columns | None = None) -> tuple[Sentences, Columns]:
    """The texts of a file and its columns, which must include the columns of `training`, where given.

    `corpus` is what the task of a column `label` or `score` is called. Raises CorpusError with file, line and
    what was expected.
    """
    names, rows = read_rows(source)
    has_answers, rows = _has_answers(names, rows)
    first = list(islice(rows, _ROWS_SEEN))
    rows = chain(first, rows)
    lists = structured([dict(zip(names, values, strict=True)) for _, values in first])
    with errors_located(source, 1):
        columns = _columns(tuple(names), training, lists, has_answers=has_answers)
    tasks = columns.tasks(corpus)
    sentences, unaccepted = _sentences(source, rows, columns, tasks)
    reasons = dict(columns.reasons)
    if _ANSWER in reasons:
        reasons[_ANSWER] = f"with {plural(unaccepted, 'row')} of {source.name} that are not accepted"
    rare = _rare(sentences, columns, corpus) if training is None else []
    reasons |= dict.fromkeys(rare, "its values hardly repeat")
    schemes = {column: scheme for column, scheme in columns.schemes.items() if column not in rare}
    kept = sentences.without([tasks[column] for column in rare])
    return kept, replace(columns, schemes=schemes, reasons=reasons)


def _has_answers(names: Sequence[str], rows: Iterator[Row]) -> tuple[bool, Iterator[Row]]:
    """Whether the first row says if an annotator accepts its label, as Prodigy writes it; and all rows."""
    if _ANSWER not in names or _LABEL not in names or (first := next(rows, None)) is None:
        return False, rows
    return first[1][names.index(_ANSWER)] in _ANSWERS, chain([first], rows)


def _rare(sentences: Sentences, columns: Columns, corpus: str) -> list[str]:
    """The columns of labels whose values hardly repeat, as titles do; none where all are like that."""
    rare = []
    tasks = columns.tasks(corpus)
    for column, task in tasks.items():
        is_named = "label" in column.lower() or column.lower() in LABEL_NAMES
        is_named |= column == _NOT_IN_NAMES.sub("-", corpus)
        kinds = len(sentences.column(task).rows.counts())
        if kinds > max(MANY, len(sentences) / 2) and not (is_named or columns.schemes[column] == "score"):
            rare.append(column)
    return rare if len(rare) < len(tasks) else []


@dataclass(frozen=True)
class AskedTexts:
    """Texts to be answered, with gold labels of some tasks where the file has any.

    It also has the names of the columns left out.
    """

    texts: Sequence[Sentence]
    left_out: tuple[str, ...]

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some text has a gold label of."""
        return tuple(Sentences.of(self.texts).labels)


def read_asked(source: Source, schemes: Mapping[str, str]) -> AskedTexts:
    """The texts of a file that a run is asked about; `schemes` has its tasks, each with its stored kind.

    A column named as a task of the run holds gold labels of it, empty where a row has none. So does `label`
    or `score`, where the run has one such task. Raises CorpusError as `read_texts`.
    """
    names, rows = read_rows(source)
    with errors_located(source, 1):
        texts = text_columns(names)
    reads = ("text", "sentence") if len(texts) == 1 else ("pair",)
    known = {task: KINDS[scheme] for task, scheme in schemes.items() if KINDS[scheme].reads in reads}
    has_answers, rows = _has_answers(names, rows)
    tasks = {name: name for name in names if name in known}
    for name in (_LABEL, _SCORE):
        fitting = [task for task, kind in known.items() if kind.is_number == (name == _SCORE)]
        if name in names and name not in tasks and len(fitting) == 1 and fitting[0] not in tasks:
            tasks[name] = fitting[0]
    given: dict[str, Scheme] = {name: known[task].scheme for name, task in tasks.items()}
    is_answer = has_answers and _ANSWER not in given
    columns = Columns(tuple(names), texts, given, {_ANSWER: ""} if is_answer else {})
    with errors_located(source, 1):
        check_names(names, (*texts, *given))
    sentences, _ = _sentences(source, rows, columns, tasks, unlabelled=True)
    asked: dict[Split, Sentences] = {"train": sentences}
    for task in tasks.values():
        without_codes(asked, task)
    return AskedTexts(asked["train"], tuple(filter(None, columns.left_out)))


def read_rows(source: Source) -> tuple[Sequence[str], Iterator[Row]]:
    """The names of the columns, and the rows. Raises CorpusError with file, line and the expected content."""
    ending = Path(source.name).suffix.lower()
    lines = read_lines(source, carriage_returns=ending == CSV)
    while lines and not lines[-1]:
        lines.pop()
    rows = _ROWS[ending](source, lines)
    return [name.strip() for name in next(rows)[1]], rows


def _sentences(
    source: Source,
    rows: Iterator[Row],
    columns: Columns,
    tasks: Mapping[str, str],
    *,
    unlabelled: bool = False,
) -> tuple[Sentences, int]:
    """The rows as texts, and how many have a label that is not accepted; they are left out.

    With `unlabelled` they are kept, without a label.
    """
    answer = columns.names.index(_ANSWER) if _ANSWER in columns.reasons else None
    unaccepted = 0

    def sentences() -> Iterator[Sentence]:
        nonlocal unaccepted
        for number, values in rows:
            with errors_located(source, number):
                accepted = answer is None or _is_accepted(values[answer])
                sentence = text_sentence(values, columns, tasks)
            unaccepted += not accepted
            if accepted or unlabelled:
                yield sentence if accepted else replace(sentence, labels={})

    read = Sentences.of(sentences())
    if not read and unaccepted:
        raise CorpusError(
            f"{source}: none of {plural(unaccepted, 'row')} has the {_ANSWER} {_ANSWERS[0]}; accept some."
        )
    if not read:
        _refuse(source, 1, "names the columns, and no text follows; expected a text on each further line.")
    return read, unaccepted


def _refuse(source: Source, line: int, problem: str) -> NoReturn:
    raise CorpusError(f"{source}, line {line}: {problem}")


class _Located:
    """The context that `at` returns. A class, since a row enters it and generators are slow."""

    __slots__ = ("_location", "_source")

    def __init__(self, source: Source, location: str | int) -> None:
        self._source, self._location = source, location

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ValueError):
            line = "line " * isinstance(self._location, int)
            raise CorpusError(f"{self._source}, {line}{self._location}: {error}") from None


def errors_located(source: Source, location: str | int) -> _Located:
    """A context in which a ValueError becomes a CorpusError that names this line, by its number, or row."""
    return _Located(source, location)


def _tsv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    return _with_equal_width(source, enumerate((line.split("\t") for line in lines), start=1), "tabs")


def _csv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    def rows() -> Iterator[Row]:
        reader = csv.reader((f"{line}\n" for line in lines), strict=True)
        while True:
            number = reader.line_num + 1
            try:
                yield number, next(reader)
            except StopIteration:
                return
            except csv.Error:
                problem = (
                    "a quoted field is not closed, or goes on behind its closing quote; write a quote inside "
                    "a field twice."
                )
                if "\r" in lines[number - 1]:
                    problem = "has a carriage return inside; end lines with a line feed."
                _refuse(source, number, problem)

    return _with_equal_width(source, rows(), "commas")


def _with_equal_width(source: Source, rows: Iterator[Row], separators: str) -> Iterator[Row]:
    names: Sequence[str] = ()
    first: Sequence[str] = ()
    for number, values in rows:
        first = first or values
        names = names or [name.strip() for name in values]
        if not any(values):
            _refuse(source, number, "is empty; delete it, or write a row there.")
        if number > 1 and values == first:
            _refuse(source, number, "names the columns again; delete it.")
        if len(values) != len(names):
            expected = (
                f"{plural(len(names), 'column')} ({_short(', '.join(names))}) separated by {separators}"
            )
            _refuse(source, number, f"expected {expected}, but found {len(values):,}.")
        yield number, values


def _jsonl(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        with errors_located(source, number):
            values = json_object(line)
            names = names or list(values)
            for has, lacks, what in ((names, values, "has no"), (values, names, "has also")):
                for name in has:
                    if name not in lacks:
                        problem = f"{what} '{_short(name)}'; every line needs the same keys as line 1."
                        raise ValueError(problem)
        if number == 1:
            yield number, names
        yield number, [values[name] for name in names]


def json_object(line: str, example: str = '{"text": "…", "label": "…"}') -> dict[str, Any]:
    """The object that a line of JSONL holds. Raises ValueError where it holds none."""
    try:
        values = json_value(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"is no JSON ({reason}); expected an object such as {example}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"is no JSON object; expected one such as {example}.")
    return values


def json_value(text: str) -> Any:
    """The value of a JSON text.

    Raises ValueError where it is not JSON or has a key twice, RecursionError where it is nested too deep.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError("a key stands twice")
        return values

    def as_written(text: str) -> float | str:
        """The number; the text where no float holds it."""
        return float(text) if math.isfinite(float(text)) else text

    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no JSON")

    return json.loads(text, object_pairs_hook=unique, parse_constant=no_number, parse_float=as_written)


_ROWS = {TSV: _tsv, CSV: _csv, ".jsonl": _jsonl}

ENDINGS = tuple(_ROWS)
"""The endings of files of texts."""


# What is wrong with a line is a ValueError from here on: `at` adds the file and the line.


def _is_accepted(answer: Any) -> bool:
    if answer not in _ANSWERS:
        raise ValueError(
            f"{_ANSWER} is '{_short(str(answer))}'; expected accept, reject or ignore, as in the first row."
        )
    return bool(answer == _ANSWERS[0])


def _columns(
    names: tuple[str, ...],
    training: Columns | None,
    lists: Mapping[str, Sequence[Any]],
    *,
    has_answers: bool,
) -> Columns:
    """The roles of the columns, which the training file tells. `lists` has those of lists and objects."""
    texts = text_columns(names)
    reasons = {_ANSWER: ""} if has_answers else {}
    if "gold_label" in names:
        reasons |= dict.fromkeys(filter(_OF_ANNOTATORS.fullmatch, names), "")
    reasons |= {name: cells.reason(values) for name, values in lists.items() if name not in texts}
    if training is not None:
        reasons = {name: reason for name, reason in training.reasons.items() if name in names}
    tasks = [
        name
        for name in names
        if not (name in texts or name in reasons or is_left_out(name) or name.startswith(IGNORED))
    ]
    check_names(names, (*texts, *tasks))
    if unfit := [name for name in tasks if _NOT_IN_NAMES.search(name)]:
        raise ValueError(f"the name '{_short(unfit[0])}' of a column has a comma or the like; change it.")
    if (unread := [name for name in lists if name in reasons and not is_left_out(name)]) and not tasks:
        raise ValueError(cells.refusal(unread[0], lists[unread[0]]))
    if not tasks and training is not None and training.texts == texts:
        return Columns(names, texts, {}, reasons)  # of hidden gold
    if not tasks:
        raise ValueError(f"expected a column of labels beside {all_of(texts)}, such as label; found none.")
    numbers = [name for name in tasks if is_score(name, of_pairs=len(texts) > 1)]
    if numbers and len(texts) == 1:
        raise ValueError(
            f"the column {numbers[0]} would hold numbers of pairs, and there is one text; expected text1 and "
            "text2, or a name that does not end with score."
        )
    labels: Scheme = "text" if len(texts) == 1 else "pair"
    schemes: dict[str, Scheme] = {name: "score" if name in numbers else labels for name in tasks}
    columns = Columns(names, texts, schemes, reasons)
    if training is not None:
        _check_like(columns, training)
    return columns


def text_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The column of a text, or the two of a pair, as the file writes them."""
    lower = [name.lower() for name in names]
    single = [name for name in _TEXTS if name in lower]
    pair = next((pair for pair in _PAIRS if set(pair) <= set(lower)), ())
    texts = pair or tuple(single[:1])
    if not texts or (pair and not set(single) <= set(pair)):
        is_row = any(real_number(name) is not None or name.count(" ") >= _WORDS_OF_A_TEXT for name in names)
        hint = " This line seems to hold a text; put the names of the columns above it." * is_row
        if problem := word_rows(names):
            hint = f" The table {problem}"
        raise ValueError(
            "expected a column text or sentence, or two for pairs, such as text1 and text2, sentence1 and "
            f"sentence2 or premise and hypothesis, but the columns are {_short(', '.join(names))}."
            f"{hint}"
        )
    return tuple(names[lower.index(name)] for name in texts)


def check_names(names: Sequence[str], read: Sequence[str]) -> None:
    """Refuses two columns of one name that are read."""
    if twice := [name for name in read if names.count(name) > 1]:
        raise ValueError(f"two columns are named '{_short(twice[0])}'; give each a name of its own.")


def _check_like(columns: Columns, training: Columns) -> None:
    """Refuses columns that have not the same texts and tasks as training."""
    here, there = (dict.fromkeys((*found.texts, *found.schemes)) for found in (columns, training))
    if missing := [name for name in there if name not in here]:
        raise ValueError(f"has no column {_short(missing[0])}, which the training file has.")
    if more := [name for name in here if name not in there]:
        raise ValueError(
            f"has a column {_short(more[0])}, which the training file has not; begin its name with {IGNORED} "
            "to skip it."
        )


def text_sentence(values: Sequence[Any], columns: Columns, tasks: Mapping[str, str]) -> Sentence:
    """The text or pair of a row, with the labels that it has.

    Raises ValueError where a value is none of its column.
    """
    row = dict(zip(columns.names, values, strict=True))
    first, *second = [_words(name, row[name]) for name in columns.texts]
    labels = {}
    for name, scheme in columns.schemes.items():
        if (label := _label(name, row[name], scheme)) is not None:
            labels[tasks[name]] = (label,)
    return Sentence(first, labels, whole=True, second=second[0] if second else None)


def _words(name: str, value: Any) -> tuple[str, ...]:
    """The words of a text, separated by spaces."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text.")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"{name} has {len(value):,} characters and the most is {MOST_CHARACTERS:,}.")
    check_characters(name, value)
    words = tuple(value.split())
    if not words:
        raise ValueError(f"{name} is empty; write a text, or delete the row.")
    return words


def _label(name: str, value: Any, scheme: Scheme) -> str | None:
    """A label, or a number, as it is written; None where there is none."""
    if isinstance(value, str):
        return _checked_label(name, value, scheme)
    if is_blank(value):
        return None
    if isinstance(value, (bool, int, float)):
        return _checked_label(name, json.dumps(value), scheme)
    if isinstance(value, list):
        raise ValueError(
            f"{name} holds a list, and {ONE_LABEL}; write one label in each row, or a column of 0 and 1 for "
            "each label."
        )
    raise ValueError(f"{name} must be a text or a number.")


@lru_cache  # of each row, and there are few labels
def _checked_label(name: str, value: str, scheme: Scheme) -> str | None:
    label = value.strip()
    if not label:
        return None
    check_characters(name, label)
    if any(character < " " for character in label):
        raise ValueError(f"{name} holds a line end or another control character.")
    if KINDS[scheme].is_number:
        if (score := real_number(label)) is None:
            raise ValueError(f"{name} must be a number, not '{_short(label)}'.")
        if abs(score) > MOST_SCORE:
            limits = f"{-MOST_SCORE:,.0f} and {MOST_SCORE:,.0f}"
            raise ValueError(f"{name} must lie between {limits}, not '{_short(label)}'; rescale it.")
    return label


def check_characters(name: str, text: str) -> None:
    """Raises ValueError for characters that no tokenizer takes."""
    if "\0" in text:
        raise ValueError(f"{name} holds a zero byte; save the file as UTF-8 text.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} holds half a surrogate pair; write the whole character.")


def _short(text: str) -> str:
    return shortened(text, _LONGEST_SHOWN)
