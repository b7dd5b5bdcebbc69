"""From the tables of `datasets` to a Corpus: its columns are found by their features, its rows are sentences.

A list of strings with lists of labels beside it is a word task for each, and labels of the whole sentence
may stand beside them; a text, or two, with labels or numbers is a text task for each. What was found stands
in the reading.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from core.corpora.assembly import assemble
from core.corpora.layout.cells import reason as reason_of_lists
from core.corpora.layout.cells import refusal, structured
from core.corpora.layout.codes import ONE_LABEL
from core.corpora.layout.doubts import with_doubts_on_words
from core.corpora.layout.gold import untrained_doubt
from core.corpora.layout.names import names_of
from core.corpora.layout.no_label import is_blank, is_code, no_label
from core.corpora.layout.sentence_labels import are_labels
from core.corpora.layout.word_columns import are_flags_or_blank, is_named_other, is_skipped, tasks_of
from core.corpora.layout.word_rows import word_rows
from core.corpora.readers.dataset_cells import unpacked
from core.corpora.readers.text_files import (
    Columns,
    check_characters,
    is_score,
    is_text_column,
    text_columns,
    text_sentence,
)
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.packed import packed
from core.tasks.schemes import NOT_ANNOTATED, notation
from core.wording import all_of, plural

if TYPE_CHECKING:
    from datasets import Dataset

_SEEN = 2_000
"""The first rows of the training split, by which columns are told."""
_BATCH = 1_000
_WORDS = ("tokens", "words", "token", "word", "forms", "form")
_NO_ROW = "no row has a label of it"
_UNLABELLED = "with a word without a label left out"

Content = Literal["names", "text", "whole", "real", "bool", "other"]


@dataclass(frozen=True)
class _Feature:
    """The type of a column by its feature: lists or single values; `names` are the names of ClassLabels.

    is_single    whether real numbers have single precision, whose first six digits mean something
    """

    is_list: bool
    content: Content
    names: tuple[str, ...] = ()
    is_single: bool = False


@dataclass(frozen=True)
class _Layout:
    """The roles of the columns of a dataset.

    words      the column of words, or None
    texts      the column of a text, or the two of a pair, where there is none of words
    schemes    by column of labels or numbers, the kind of task that is known by its feature; None where the
               labels tell it
    tasks      by the same columns, the name of the task
    features   of all columns
    named_by   by column of numbers, the names that another column has for them
    left_out   by column, why
    guessed    the columns that were taken for something by their content
    no_label   by column, the values that stand for no label, as texts
    """

    words: str | None
    texts: tuple[str, ...]
    schemes: Mapping[str, Scheme | None]
    tasks: Mapping[str, str]
    features: Mapping[str, _Feature]
    named_by: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    guessed: frozenset[str] = frozenset()
    no_label: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def labels(self) -> Mapping[str, Mapping[Any, str | None]]:
        """The label of each value, by column: the name of a number where it has one.

        None where the value is no label. ValueError where no tokenizer takes it.
        """
        return {column: _Known(partial(self._label, column)) for column in self.tasks}

    def _label(self, column: str, value: Any) -> str | None:
        feature = self.features[column]
        if is_blank(value) or (feature.content == "names" and is_code(value)):
            return None
        if _written(feature, value) in self.no_label.get(column, ()):
            return None
        if column in self.named_by:
            value = self.named_by[column].get(value, value)
        elif feature.content == "names" and type(value) is int:
            if not 0 <= value < len(feature.names):
                raise ValueError(
                    f"{column} has the number {value}, and {plural(len(feature.names), 'name')}."
                )
            value = feature.names[value]
        label = _written(feature, value)
        check_characters(column, label)
        return label or None

    @cached_property
    def known_words(self) -> Mapping[str | None, str]:
        """Each word as it is. ValueError where it is empty or no tokenizer takes it."""
        return _Known(self._word)

    def _word(self, word: str | None) -> str:
        if word is None or not word.strip():
            raise ValueError(f"a word of {self.words} is empty.")
        check_characters(self.words or "", word)
        return word


def _written(feature: _Feature, value: Any) -> str:
    """The text of a label."""
    if isinstance(value, str):
        return value.strip()
    if feature.content == "whole":
        return str(int(value))
    return f"{value:.6g}" if feature.is_single else json.dumps(value)


class _Known(dict[Any, Any]):
    """A cache of the labels made from values, so that each value is converted once."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: Any) -> Any:
        made = self[value] = self._make(value)
        return made


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
    what was read. Rows without words, and those without any label, are left out and counted. A row with a
    word without a label is not annotated for that task, and counted too. Where there is
    no test split, or none of its rows has a label, dev is the test split.

    Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    tables = {split: (title, _chosen(name, table, columns)) for split, (title, table) in splits.items()}
    tables, cell_notes = unpacked(name, tables, _SEEN)
    found = _layout(name, tables["train"][1], is_chosen=bool(columns))
    found = replace(found, no_label=_no_labels(found, [table for _, table in tables.values()]))
    notes = cell_notes
    sentences: dict[Split, Sentences] = {}
    lacking: dict[Split, str] = {}
    for split, (title, table) in tables.items():
        missing = [column for column in found.tasks if column not in table.column_names]
        if split != "train" and len(missing) == len(found.tasks):
            lacking[split] = "a label"
            rows = plural(len(table), "row")
            notes.append(f"{title}: none of {rows} has a label; the split was left out.")
            continue
        if missing:
            raise CorpusError(
                f"{name}: the split {title} has no column {missing[0]}, which that of training has."
            )
        kept, counts = _sentences(name, found, title, table)
        if kept:
            sentences[split] = kept
            notes += [f"{title}: {plural(count, 'row')} {what}." for what, count in counts.items()]
        else:
            lacking[split] = "a label of each word" if _UNLABELLED in counts else "a label"
            count = plural(len(table), "row")
            notes.append(f"{title}: none of {count} has {lacking[split]}; the split was left out.")
    chosen: tuple[tuple[Split, tuple[Split, ...]], ...] = (("train", ("train",)), ("test", ("test", "dev")))
    for needed, may_be in chosen:
        if sentences.keys().isdisjoint(may_be):
            what = lacking.get(needed, "a label")
            raise CorpusError(f"{name}: no row of its {needed} split has {what}; choose other splits.")
    schemes = {found.tasks[column]: scheme for column, scheme in found.schemes.items() if scheme is not None}
    files = {split: tables[split][0] for split in sentences}
    corpus = assemble(name, sentences, notes, _tag_lists(found), schemes, files=files)
    (reading,) = corpus.readings
    reading = replace(
        reading,
        columns=tuple(
            _column_readings(found, corpus, {split: table for split, (_, table) in tables.items()})
        ),
        layout=layout,
        revision=revision,
    )
    reading = with_doubts_on_words(reading, corpus)
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
        item_feature = _feature(item)
        return replace(
            item_feature, is_list=True, content="other" if item_feature.is_list else item_feature.content
        )
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
    """The roles of the columns, by their features, their names and the first rows."""
    features = {column: _feature(table.features[column]) for column in table.column_names}
    seen: dict[str, list[Any]] = table[:_SEEN]
    word_layout = _word_layout(features, seen, is_chosen=is_chosen)
    if word_layout is not None and word_layout.tasks:
        return word_layout
    try:
        found = _text_layout(name, features, seen, table, is_chosen=is_chosen)
    except CorpusError:
        if word_layout is None:
            raise
        found = word_layout  # whose lists of labels were left out, as is said here
    if not found.tasks:
        reasons = "; ".join(f"{column}: {reason}" for column, reason in found.left_out.items() if reason)
        raise CorpusError(
            f"{name}: no column holds labels. Its columns are {', '.join(features)}"
            f"{f' ({reasons})' if reasons else ''}. Name those to read as columns=COLUMN,COLUMN."
        )
    return found


def _word_layout(
    features: Mapping[str, _Feature], seen: Mapping[str, Sequence[Any]], *, is_chosen: bool
) -> _Layout | None:
    """The layout of sentences of words; None where no column is a list of words.

    It has no tasks where no list beside the words holds labels.
    """
    lists = [column for column, feature in features.items() if feature.is_list]
    word_columns = [column for column in lists if features[column].content == "text"]
    named = [column for name in _WORDS for column in word_columns if column.lower() == name]
    by_values = sorted(
        word_columns, key=lambda column: -len(set(chain.from_iterable(filter(None, seen[column]))))
    )
    if not word_columns or (len(lists) < 2 and not named):
        return None
    words = (named or by_values)[0]
    left_out = {column: "" for column in features if column != words}
    labels = []
    for column in lists:
        if column == words or (is_named_other(column) and not is_chosen):
            continue
        rows = [(each, row) for each, row in zip(seen[words], seen[column], strict=True) if each and row]
        written = [tuple(map(str, row)) for _, row in rows]
        if features[column].content == "other" or not rows:
            continue
        # Of a column of labels a row of another length is an error, and most rows of one of something else.
        if not is_chosen and 2 * sum(len(each) != len(row) for each, row in rows) > len(rows):
            left_out[column] = "its lists are not as long as those of the words"
        elif not is_chosen and are_flags_or_blank(chain.from_iterable(row for _, row in rows)):
            left_out[column] = "it holds nothing but booleans or blanks"
        elif features[column].content in ("whole", "real", "bool") and not is_chosen:
            left_out[column] = "it holds numbers without names"
        elif not is_chosen and features[column].content == "text" and is_skipped(packed(written)):
            left_out[column] = "it holds numbers, lemmas or the like"
        elif not is_chosen and len(set(chain.from_iterable(written))) == 1 < len(written):
            left_out[column] = "all its values are the same"
        else:
            labels.append(column)
            del left_out[column]
    if not labels and not named:
        return None
    single = [column for column, feature in features.items() if not feature.is_list]
    has_texts = any(features[column].content == "text" and is_text_column(column) for column in single)
    sentence_columns = [
        column
        for column in single
        if labels or not has_texts
        if is_chosen or not (is_named_other(column) or is_text_column(column))
        if features[column].content in ("names", "bool")
        or (features[column].content in ("text", "whole") and (is_chosen or _has_labels(column, seen)))
    ]
    left_out = {column: reason for column, reason in left_out.items() if column not in sentence_columns}
    schemes: dict[str, Scheme | None] = dict.fromkeys(labels) | dict.fromkeys(sentence_columns, "sentence")
    guessed = frozenset() if named else frozenset([words])
    return _Layout(words, (), schemes, tasks_of(list(schemes)), features, left_out=left_out, guessed=guessed)


def _text_layout(
    name: str,
    features: Mapping[str, _Feature],
    seen: Mapping[str, Sequence[Any]],
    table: Dataset,
    *,
    is_chosen: bool,
) -> _Layout:
    """The layout of texts or pairs. Raises CorpusError where no column holds texts."""
    single = [column for column, feature in features.items() if not feature.is_list]
    textual = [column for column in single if features[column].content == "text"]
    guessed: frozenset[str] = frozenset()
    try:
        texts = text_columns(textual)
    except ValueError:
        if problem := word_rows(single):
            raise CorpusError(f"{name} {problem}") from None
        texts = tuple(
            column for column in textual if not is_named_other(column) and not _has_labels(column, seen)
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
    if len(texts) == 1:
        features = {column: _as_whole(feature, seen[column]) for column, feature in features.items()}
    lists = structured(
        [dict(zip(textual, row, strict=True)) for row in zip(*map(seen.get, textual), strict=True)]
    )
    for column in single:
        content = features[column].content
        if column in lists and column not in texts:
            left_out[column] = reason_of_lists(lists[column])
            continue
        if content == "other" and not _kinds(seen[column]):
            left_out[column] = _NO_ROW
        if column in texts or content == "other" or (is_named_other(column) and not is_chosen):
            continue
        is_number = content == "real" or (content == "whole" and is_score(column, of_pairs=len(texts) == 2))
        if is_number and len(texts) == 1:
            left_out[column] = "it holds numbers, which are learned of pairs of texts alone"
        elif is_number or content in ("names", "bool") or is_chosen or _has_labels(column, seen):
            schemes[column] = "score" if is_number else "text" if len(texts) == 1 else "pair"
            del left_out[column]
        else:
            left_out[column] = _reason(seen[column])
    left_out |= {
        column: f"it holds lists, and {ONE_LABEL}; write one label in each row, or a column for each label"
        for column, feature in features.items()
        if feature.is_list and not is_named_other(column)
    }
    if not schemes and (unread := [column for column in lists if column not in texts]):
        raise CorpusError(f"{name}: {refusal(unread[0], lists[unread[0]])}")
    named_by = {}
    beside = [column for column in textual if column not in texts and not is_chosen]
    for column in [column for column in schemes if features[column].content == "whole"]:
        for other in beside:
            if column not in named_by and (names := _names(table[column][:], table[other][:])):
                named_by[column] = names
                schemes.pop(other, None)
                left_out[other] = f"it names the numbers of {column}"
    tasks = Columns(tuple(features), texts, {c: s for c, s in schemes.items() if s is not None}).tasks(name)
    return _Layout(None, texts, schemes, tasks, features, named_by, left_out, guessed)


def _as_whole(feature: _Feature, values: Sequence[Any]) -> _Feature:
    """The type of a column. Whole numbers that pandas made real, for rows with none, are whole."""
    if feature.is_list or feature.content != "real":
        return feature
    given = [value for value in values if not is_blank(value)]
    is_whole = 0 < len(given) < len(values) and all(float(value).is_integer() for value in given)
    return replace(feature, content="whole", is_single=False) if is_whole else feature


def _reason(values: Sequence[Any]) -> str:
    """Why the values of a column are not taken for labels."""
    kinds = _kinds(values)
    if not kinds:
        return _NO_ROW
    return "all its values are the same" if len(kinds) == 1 else "it has too many different values for labels"


def _has_labels(column: str, seen: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a column of single values holds labels, by its name and its values."""
    return are_labels(column, _kinds(seen[column]))


def _kinds(values: Iterable[Any]) -> Counter[str]:
    """How often each label occurs, without what stands for no label."""
    counts = Counter(str(value) for value in values if not is_blank(value))
    codes = no_label(counts)
    return Counter({label: count for label, count in counts.items() if label not in codes})


def _no_labels(found: _Layout, tables: Sequence[Dataset]) -> dict[str, frozenset[str]]:
    """By column of labels of texts or sentences, the values in these tables that stand for no label."""
    codes = {}
    for column in (column for column, scheme in found.schemes.items() if scheme is not None):
        feature = found.features[column]
        values = [
            [_written(feature, value) for value in table.unique(column) if not is_blank(value)]
            for table in tables
            if column in table.column_names
        ]
        others = set(chain.from_iterable(values))
        if feature.content in ("names", "bool") or not no_label(dict.fromkeys(others, 1)):
            continue
        training = Counter(_written(feature, value) for value in tables[0][column][:] if not is_blank(value))
        codes[column] = no_label(training, others)
    return codes


def _names(numbers: Sequence[Any], texts: Sequence[Any]) -> dict[Any, str]:
    """The name that texts have for each number; empty where it is not one for each."""
    given = _kinds(numbers)
    return names_of(
        (number, text) for number, text in zip(numbers, texts, strict=True) if str(number) in given
    )


def _tag_lists(found: _Layout) -> dict[str, tuple[str, ...]]:
    """The labels that the dataset declares, by task; none for spans that are not written in IOB2."""
    lists = {}
    for column, task in found.tasks.items():
        names = tuple(name for name in found.features[column].names if name.strip() not in NOT_ANNOTATED)
        span_notation = None if found.words is None else notation(Counter(names))
        if span_notation is None or all(name == "O" or name[:2] in ("B-", "I-") for name in names):
            lists[task] = names
    return lists


def _rows(found: _Layout, table: Dataset) -> Iterator[Mapping[str, Any]]:
    """The rows of a table, with the columns that are read."""
    wanted = [column for column in (found.words, *found.texts, *found.tasks) if column is not None]
    for batch in table.select_columns(wanted).iter(batch_size=_BATCH):
        columns = [batch[column] for column in wanted]
        for values in zip(*columns, strict=True):
            yield dict(zip(wanted, values, strict=True))


def _sentences(name: str, found: _Layout, title: str, table: Dataset) -> tuple[Sentences, Counter[str]]:
    """The sentences of a split, and how many rows were left out, or not annotated for a task, and why."""
    counts: Counter[str] = Counter()

    def sentences() -> Iterator[Sentence]:
        for number, row in enumerate(_rows(found, table), start=1):
            has_words = (
                row[found.words] if found.words else all((row[text] or "").split() for text in found.texts)
            )
            sentence, lacking = None, list[str]()
            try:
                if has_words:
                    sentence = _word_row(found, row, lacking) if found.words else _text_row(found, row)
            except ValueError as error:
                raise CorpusError(f"{name}, {title}, row {number}: {error}") from None
            if sentence is not None:
                for task in lacking:
                    counts[f"with a word without a label not annotated for {task}"] += 1
                yield sentence
            elif lacking:
                counts[_UNLABELLED] += 1
            else:
                counts[f"without {'labels' if has_words else 'words'} left out"] += 1

    return Sentences.of(sentences()), counts


# What is wrong with a row is a ValueError from here on. A row without labels is None.


def _word_row(found: _Layout, row: Mapping[str, Any], lacking: list[str]) -> Sentence | None:
    """The sentence of a row. `lacking` gets the tasks that some words have a label of, and some not."""
    words = row[found.words or ""]
    labels: dict[str, tuple[str, ...]] = {}
    for column, task in found.tasks.items():
        known, value = found.labels[column], row[column]
        if value is None:
            continue
        task_labels = [known[each] for each in ([value] if found.schemes[column] else value)]
        if all(label is None or label in NOT_ANNOTATED for label in task_labels):
            continue
        if None in task_labels:
            lacking.append(task)
            continue
        if not found.schemes[column] and len(task_labels) != len(words):
            raise ValueError(
                f"{column} has {plural(len(task_labels), 'label')}, and {found.words} "
                f"{plural(len(words), 'word')}; both need one for each word. Name the columns to read as "
                "columns=COLUMN,COLUMN, and leave this one out."
            )
        labels[task] = tuple(filter(None, task_labels))
    whole = tuple(task for column, task in found.tasks.items() if found.schemes[column])
    tokens = tuple(found.known_words[word] for word in words)
    return Sentence(tokens, labels, text_tasks=whole) if labels else None


def _text_row(found: _Layout, row: Mapping[str, Any]) -> Sentence | None:
    labels = {column: label for column in found.tasks if (label := found.labels[column][row[column]])}
    if not labels:
        return None
    schemes = {column: scheme for column in labels if (scheme := found.schemes[column]) is not None}
    columns = Columns((*found.texts, *labels), found.texts, schemes)
    values = [*(row[text] for text in found.texts), *labels.values()]
    return text_sentence(values, columns, found.tasks)


def _column_readings(
    found: _Layout, corpus: Corpus, tables: Mapping[Split, Dataset]
) -> Iterator[ColumnReading]:
    """A reading of each column, in the order of the dataset."""
    table = tables["train"]
    (reading,) = corpus.readings
    by_task = {column.name: column for column in reading.columns}
    first: dict[str, list[Any]] = table[:50]
    for column in found.features:
        is_guess = column in found.guessed
        task = found.tasks.get(column)
        if task in by_task:
            yield replace(by_task[task], column=column if column != task else "")
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
            why = found.left_out.get(column, _NO_ROW)
            labelled = [
                split
                for split, each in tables.items()
                if why == _NO_ROW and column in each.column_names and _kinds(each[column][:_SEEN])
            ]
            yield ColumnReading(
                column,
                "skipped",
                examples=examples,
                notes=(f"left out: {why}.",) * bool(why),
                doubts=(untrained_doubt(labelled),) if labelled else (),
            )
