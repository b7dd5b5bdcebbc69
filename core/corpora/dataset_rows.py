"""From the tables of `datasets` to a Corpus: its columns are found by their features, its rows are sentences.

A list of strings with lists of labels beside it is a word task for each; a text, or two, with labels or
numbers is a text task for each. What was found stands in the reading.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from sys import intern
from typing import TYPE_CHECKING, Any, Literal

from core.corpora.assembly import SPLITS, assemble
from core.corpora.columns import cleaned, is_skipped
from core.corpora.readers import IGNORED, OTHER_COLUMNS
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.text_files import (
    Columns,
    check_characters,
    is_left_out,
    is_score,
    text_columns,
    text_sentence,
)
from core.corpora.types import Corpus, Scheme, Sentence, Split
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.schemes import NOT_ANNOTATED, notation
from core.wording import all_of, plural

if TYPE_CHECKING:
    from datasets import Dataset

_SEEN = 2_000
"""The first rows of the training split, by which columns are told."""
_BATCH = 1_000
_WORDS = ("tokens", "words", "token", "word", "forms", "form")
_LABELS = frozenset(
    ["label", "labels", "class", "category", "intent", "sentiment", "target", "topic", "emotion"]
)
"""The names that tell a column of labels, however many different ones it has."""
_MOST_LABELS = 200
"""The most different values of a column of texts, or of numbers, that are taken for labels."""
_TASK_SUFFIX = "_tags"
_NO_GOLD = (None, -1)
"""What stands for a label that the owners of a dataset keep to themselves."""

Content = Literal["names", "text", "whole", "real", "bool", "other"]


@dataclass(frozen=True)
class _Feature:
    """What a column holds by its feature: lists or single values of a kind; `names` are those of ClassLabels.

    is_single    whether real numbers have single precision, whose first six digits mean something
    """

    is_list: bool
    content: Content
    names: tuple[str, ...] = ()
    is_single: bool = False


@dataclass(frozen=True)
class _Layout:
    """What the columns of a dataset were taken for.

    words      the column of words, or None
    texts      the column of a text, or the two of a pair, where there is none of words
    schemes    by column of labels or numbers, the kind of task that is known by its feature; None where the
               labels tell it
    tasks      by the same columns, the name of the task
    features   of all columns
    named_by   by column of numbers, the names that another column has for them
    left_out   by column, why
    guessed    the columns that were taken for something by their content
    """

    words: str | None
    texts: tuple[str, ...]
    schemes: Mapping[str, Scheme | None]
    tasks: Mapping[str, str]
    features: Mapping[str, _Feature]
    named_by: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    guessed: frozenset[str] = frozenset()

    def label(self, column: str, value: Any) -> Any:
        """A value as a label: the name of a number where it has one. None where it is no label."""
        if value in _NO_GOLD:
            return None
        feature = self.features[column]
        if column in self.named_by:
            return self.named_by[column].get(value)
        if feature.content == "names" and type(value) is int:
            return feature.names[value]
        return f"{value:.6g}" if feature.is_single else value


def corpus_of(
    name: str,
    splits: Mapping[Split, tuple[str, Dataset]],
    columns: Sequence[str] = (),
    layout: str = "",
    revision: str = "",
) -> Corpus:
    """The corpus of the tables of a dataset, each with its name there.

    `columns` are those to read, all where empty; `COLUMN:NAME` gives a column the name by which files have
    it: `tokens`, `text`, `text1`, `score`, or that of a task. `layout` and `revision` say in the reading
    what was read. Rows without words, and those without any label, are left out and counted. Where no row of
    the test split has a label, dev is the test split.

    Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    tables = {split: (title, _chosen(name, table, columns)) for split, (title, table) in splits.items()}
    found = _layout(name, tables["train"][1], is_chosen=bool(columns))
    notes = []
    for split, (title, table) in list(tables.items()):
        if missing := [column for column in found.tasks if column not in table.column_names]:
            raise CorpusError(
                f"{name}: the split {title} has no column {missing[0]}, which that of training has."
            )
        if not any(_labels(found, row) for row in _rows(found, table)):
            notes.append(f"{title}: none of {plural(len(table), 'row')} has a label; the split was left out.")
            del tables[split]
    if "test" not in tables and "dev" in tables:
        tables["test"] = tables.pop("dev")
        notes.append(f"There is no test split with labels: {tables['test'][0]} is the test split.")
    for needed in ("train", "test"):
        if needed not in tables:
            raise CorpusError(f"{name}: no row of its {needed} split has a label; choose other splits.")
    tables = {split: tables[split] for split in SPLITS if split in tables}
    sentences = {split: _sentences(name, found, *table, notes) for split, table in tables.items()}
    schemes = {found.tasks[column]: scheme for column, scheme in found.schemes.items() if scheme is not None}
    corpus = assemble(name, sentences, notes, _tag_lists(found), schemes)
    (reading,) = corpus.readings
    reading = replace(
        reading,
        columns=tuple(_column_readings(found, corpus, tables["train"][1])),
        files={split: title for split, (title, _) in tables.items()},
        layout=layout,
        revision=revision,
    )
    return replace(corpus, readings=(reading,), notes=reading.all_notes)


def _chosen(name: str, table: Dataset, columns: Sequence[str]) -> Dataset:
    """The table with these columns alone, by their new names."""
    if not columns:
        return table
    pairs = [column.rpartition(":")[::2] if ":" in column else (column, column) for column in columns]
    for old, new in pairs:
        if old not in table.column_names:
            raise CorpusError(
                f"{name} has no column '{shortened(old)}'; its columns are {', '.join(table.column_names)}."
            )
        if not new or [other for _, other in pairs].count(new) > 1:
            raise CorpusError(
                f"{name}: the columns need a name each, COLUMN or COLUMN:NAME, and no name twice."
            )
    return table.select_columns([old for old, _ in pairs]).rename_columns(dict(pairs))


def _feature(feature: Any) -> _Feature:
    if isinstance(feature, list):
        return replace(_feature(feature[0]), is_list=True)
    if (item := getattr(feature, "feature", None)) is not None:
        of_item = _feature(item)
        return replace(of_item, is_list=True, content="other" if of_item.is_list else of_item.content)
    if (names := getattr(feature, "names", None)) is not None:
        return _Feature(False, "names", tuple(names))
    dtype = str(getattr(feature, "dtype", ""))
    kinds: tuple[tuple[str, Content], ...] = (
        ("string", "text"), ("large_string", "text"), ("int", "whole"), ("uint", "whole"), ("float", "real"),
        ("bool", "bool"),
    )  # fmt: skip
    content: Content = next((content for start, content in kinds if dtype.startswith(start)), "other")
    return _Feature(False, content, is_single=dtype in ("float32", "float16"))


def _layout(name: str, table: Dataset, *, is_chosen: bool) -> _Layout:
    """What the columns hold, by their features, their names and the first rows."""
    features = {column: _feature(table.features[column]) for column in table.column_names}
    seen: dict[str, list[Any]] = table[:_SEEN]
    of_words = _word_layout(features, seen, is_chosen=is_chosen)
    if of_words is not None and of_words.tasks:
        return of_words
    try:
        found = _text_layout(name, features, seen, is_chosen=is_chosen)
    except CorpusError:
        if of_words is None:
            raise
        found = of_words  # whose lists of labels were left out, as is said here
    if not found.tasks:
        reasons = "; ".join(f"{column}: {reason}" for column, reason in found.left_out.items() if reason)
        raise CorpusError(
            f"{name}: no column holds labels. Its columns are {', '.join(features)}"
            f"{f' ({reasons})' if reasons else ''}. Name those to read as columns=COLUMN,COLUMN."
        )
    return found


def _is_named_other(column: str) -> bool:
    is_other = column.lower() in OTHER_COLUMNS or column.lower().removesuffix("s") in OTHER_COLUMNS
    return is_other or is_left_out(column) or column.startswith(IGNORED)


def _word_layout(
    features: Mapping[str, _Feature], seen: Mapping[str, Sequence[Any]], *, is_chosen: bool
) -> _Layout | None:
    """The layout of sentences of words, without tasks where no list beside that of the words holds labels;
    None where nothing is like a list of words.
    """
    lists = [column for column, feature in features.items() if feature.is_list]
    of_words = [column for column in lists if features[column].content == "text"]
    named = [column for name in _WORDS for column in of_words if column.lower() == name]
    by_values = sorted(
        of_words, key=lambda column: -len(set(chain.from_iterable(filter(None, seen[column]))))
    )
    if not of_words or len(lists) < 2:
        return None
    words = (named or by_values)[0]
    left_out = {column: "" for column in features if column != words}
    labels = []
    for column in lists:
        if column == words or (_is_named_other(column) and not is_chosen):
            continue
        rows = [(each, row) for each, row in zip(seen[words], seen[column], strict=True) if each and row]
        written = [tuple(map(str, row)) for _, row in rows]
        if features[column].content == "other" or not rows:
            continue
        if not is_chosen and any(len(each) != len(row) for each, row in rows):
            left_out[column] = "its lists are not as long as those of the words"
        elif features[column].content in ("whole", "real", "bool") and not is_chosen:
            left_out[column] = "it holds numbers without names"
        elif not is_chosen and features[column].content == "text" and is_skipped(written):
            left_out[column] = "it holds numbers, lemmas or the like"
        elif not is_chosen and len(set(chain.from_iterable(written))) == 1 < len(written):
            left_out[column] = "all its values are the same"
        else:
            labels.append(column)
            del left_out[column]
    if not labels and not named:
        return None
    short = {column: cleaned(column.removesuffix(_TASK_SUFFIX)) or column for column in labels}
    uses = Counter(short.values())
    tasks = {column: task if uses[task] == 1 else column for column, task in short.items()}
    guessed = frozenset() if named else frozenset([words])
    return _Layout(words, (), dict.fromkeys(labels), tasks, features, left_out=left_out, guessed=guessed)


def _text_layout(
    name: str, features: Mapping[str, _Feature], seen: Mapping[str, Sequence[Any]], *, is_chosen: bool
) -> _Layout:
    """The layout of texts or pairs. Raises CorpusError where no column holds texts."""
    single = [column for column, feature in features.items() if not feature.is_list]
    of_text = [column for column in single if features[column].content == "text"]
    guessed: frozenset[str] = frozenset()
    try:
        texts = text_columns(of_text)
    except ValueError:
        texts = tuple(
            column for column in of_text if not _is_named_other(column) and not _has_few(column, seen)
        )
        guessed = frozenset(texts)
        if len(texts) not in (1, 2):
            found = f"{all_of(list(texts))} may be" if texts else "none is"
            raise CorpusError(
                f"{name}: expected a column of words or of texts, and {found} one. Name those to read as "
                f"columns=COLUMN:text,COLUMN; its columns are {', '.join(features)}."
            ) from None
    left_out = {column: "" for column in features if column not in texts}
    schemes: dict[str, Scheme | None] = {}
    for column in single:
        content = features[column].content
        if column in texts or content == "other" or (_is_named_other(column) and not is_chosen):
            continue
        is_number = content == "real" or (content == "whole" and is_score(column))
        if is_number and len(texts) == 1:
            left_out[column] = "it holds numbers, which are learned of pairs of texts alone"
        elif is_number or content in ("names", "bool") or is_chosen or _has_few(column, seen):
            schemes[column] = "score" if is_number else "text" if len(texts) == 1 else "pair"
            del left_out[column]
        else:
            left_out[column] = "it has too many different values for labels"
    named_by = {}
    beside = [column for column in of_text if column not in texts and not is_chosen]
    for column in [column for column in schemes if features[column].content == "whole"]:
        for other in beside:
            if column not in named_by and (names := _names(seen[column], seen[other])):
                named_by[column] = names
                schemes.pop(other, None)
                left_out[other] = f"it names the numbers of {column}"
    tasks = Columns(tuple(features), texts, {c: s for c, s in schemes.items() if s is not None}).tasks(name)
    return _Layout(None, texts, schemes, tasks, features, named_by, left_out, guessed)


def _has_few(column: str, seen: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a column has few different values, as labels do."""
    values = [value for value in seen[column] if value not in _NO_GOLD]
    number = len(set(values))
    return column.lower() in _LABELS or (number <= _MOST_LABELS and 2 * number <= len(values))


def _names(numbers: Sequence[Any], texts: Sequence[Any]) -> dict[Any, str]:
    """The name that texts have for each number; empty where it is not one for each."""
    pairs = {(number, text) for number, text in zip(numbers, texts, strict=True) if number not in _NO_GOLD}
    names: dict[Any, str] = dict(pairs)
    is_one_to_one = len(pairs) == len(names) == len({text for _, text in pairs})
    return names if is_one_to_one and all(names.values()) else {}


def _tag_lists(found: _Layout) -> dict[str, tuple[str, ...]]:
    """The labels that the dataset declares, by task; none for spans that are not written in IOB2."""
    lists = {}
    for column, task in found.tasks.items():
        names = tuple(name for name in found.features[column].names if name.strip() not in NOT_ANNOTATED)
        of_spans = None if found.words is None else notation([names])
        if of_spans is None or all(name == "O" or name[:2] in ("B-", "I-") for name in names):
            lists[task] = names
    return lists


def _rows(found: _Layout, table: Dataset) -> Iterator[Mapping[str, Any]]:
    """The rows of a table, with the columns that are read."""
    wanted = [column for column in (found.words, *found.texts, *found.tasks) if column is not None]
    for batch in table.select_columns(wanted).iter(batch_size=_BATCH):
        columns = [batch[column] for column in wanted]
        for values in zip(*columns, strict=True):
            yield dict(zip(wanted, values, strict=True))


def _labels(found: _Layout, row: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of a row by column: a list for words, one for a text. Those without are left out."""
    labels = {}
    for column in found.tasks:
        if found.words is None:
            if (label := found.label(column, row[column])) is not None and label != "":
                labels[column] = label
        elif row[column] is not None:
            of_words = [found.label(column, value) for value in row[column]]
            if None not in of_words and any(label not in NOT_ANNOTATED for label in of_words):
                labels[column] = of_words
    return labels


def _sentences(
    name: str, found: _Layout, title: str, table: Dataset, notes: list[str]
) -> tuple[Sentence, ...]:
    """The sentences of a split. What is left out is added to the notes."""
    sentences = []
    left_out: Counter[str] = Counter()
    make = _of_text if found.words is None else _of_words
    for number, row in enumerate(_rows(found, table), start=1):
        labels = _labels(found, row)
        has_words = (
            row[found.words] if found.words else all((row[text] or "").split() for text in found.texts)
        )
        if not has_words or not labels:
            left_out["without words" if not has_words else "without labels"] += 1
            continue
        try:
            sentences.append(make(found, row, labels))
        except ValueError as error:
            raise CorpusError(f"{name}, {title}, row {number}: {error}") from None
    notes += [f"{title}: {plural(count, 'row')} {what} left out." for what, count in left_out.items()]
    if not sentences:
        raise CorpusError(f"{name}: the split {title} holds no sentence with words and labels.")
    return tuple(sentences)


# What is wrong with a row is a ValueError from here on.


def _of_words(found: _Layout, row: Mapping[str, Any], labels: Mapping[str, Sequence[Any]]) -> Sentence:
    words = row[found.words or ""]
    for number, word in enumerate(words, start=1):
        if word is None or not word.strip():
            raise ValueError(f"word {number} of {found.words} is empty.")
        check_characters(found.words or "", word)
    for column, values in labels.items():
        if len(values) != len(words):
            raise ValueError(
                f"{column} has {plural(len(values), 'label')}, and {found.words} "
                f"{plural(len(words), 'word')}; both need one for each word. Name the columns to read as "
                "columns=COLUMN,COLUMN, and leave this one out."
            )
    named = {
        found.tasks[column]: tuple(intern(_text(value)) for value in values)
        for column, values in labels.items()
    }
    return Sentence(tuple(map(intern, words)), named)


def _text(label: Any) -> str:
    return label.strip() if isinstance(label, str) else json.dumps(label)


def _of_text(found: _Layout, row: Mapping[str, Any], labels: Mapping[str, Any]) -> Sentence:
    schemes = {column: scheme for column in labels if (scheme := found.schemes[column]) is not None}
    columns = Columns((*found.texts, *labels), found.texts, schemes)
    values = [*(row[text] for text in found.texts), *labels.values()]
    return text_sentence(values, columns, found.tasks)


def _column_readings(found: _Layout, corpus: Corpus, table: Dataset) -> Iterator[ColumnReading]:
    """A reading of each column, in the order of the dataset."""
    (reading,) = corpus.readings
    of_tasks = {column.name: column for column in reading.columns}
    first: dict[str, list[Any]] = table[:50]
    for column in found.features:
        is_guess = column in found.guessed
        if column in found.tasks:
            task = found.tasks[column]
            yield replace(of_tasks[task], column=column if column != task else "")
        elif column == found.words:
            examples = values_shown(chain.from_iterable(filter(None, first[column])))
            yield ColumnReading(column, "words", guessed=is_guess, examples=examples)
        elif column in found.texts:
            yield ColumnReading(
                column, "text", guessed=is_guess, examples=values_shown(filter(None, first[column]))
            )
        else:
            examples = values_shown(
                json.dumps(value, ensure_ascii=False, default=str) for value in first[column]
            )
            reason = found.left_out[column]
            yield ColumnReading(
                column, "skipped", examples=examples, notes=(f"left out: {reason}.",) * bool(reason)
            )
