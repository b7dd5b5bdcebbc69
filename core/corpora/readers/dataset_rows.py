"""From the tables of `datasets` to a Corpus: its columns are found by their features, its rows are sentences.

A list of strings with lists of labels beside it is a word task for each, and labels of the whole sentence
may stand beside them; a text, or two, with labels or numbers is a text task for each. What was found stands
in the reading.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from core.corpora.assembly import assemble
from core.corpora.layout.cells import refusal
from core.corpora.layout.column_names import (
    WORD_LISTS,
    is_named_other,
    tasks_of,
    text_columns,
    text_tasks,
    word_rows,
)
from core.corpora.layout.contents import are_labels
from core.corpora.layout.fields import Content, Field, Layout
from core.corpora.layout.names import names_of
from core.corpora.layout.no_label import is_blank, is_code, no_label
from core.corpora.layout.report import reported
from core.corpora.layout.rules import NO_ROW, beside_texts, beside_words, cells_of_texts, kinds_of
from core.corpora.readers.dataset_cells import Tables, unpacked
from core.corpora.readers.text_rows import check_characters
from core.corpora.readers.texts import text_sentence
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.schemes import NOT_ANNOTATED, notation
from core.wording import all_of, plural

if TYPE_CHECKING:
    from datasets import Dataset

_SEEN = 2_000
"""The first rows of the training split, by which columns are told."""
_BATCH = 1_000
_UNLABELLED = "with a word without a label left out"


@dataclass(frozen=True)
class _Table:
    """The layout of a dataset, and what its values stand for.

    columns    all, by name
    named_by   by column of numbers, the names that another column has for them
    no_label   by column, the values that stand for no label, as texts
    """

    layout: Layout
    columns: Mapping[str, Field]
    named_by: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    no_label: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def labels(self) -> Mapping[str, Mapping[Any, str | None]]:
        """The label of each value, by column: the name of a number where it has one.

        None where the value is no label. ValueError where no tokenizer takes it.
        """
        return {column: _Made(partial(self._label, column)) for column in self.layout.tasks}

    def _label(self, column: str, value: Any) -> str | None:
        of_column = self.columns[column]
        if is_blank(value) or (of_column.content == "names" and is_code(value)):
            return None
        if _written(of_column, value) in self.no_label.get(column, ()):
            return None
        if column in self.named_by:
            value = self.named_by[column].get(value, value)
        elif of_column.content == "names" and type(value) is int:
            if not 0 <= value < len(of_column.names):
                raise ValueError(
                    f"{column} has the number {value}, and {plural(len(of_column.names), 'name')}."
                )
            value = of_column.names[value]
        label = _written(of_column, value)
        check_characters(column, label)
        return label or None

    @cached_property
    def words(self) -> Mapping[str | None, str]:
        """Each word as it is. ValueError where it is empty or no tokenizer takes it."""
        return _Made(self._word)

    def _word(self, word: str | None) -> str:
        if word is None or not word.strip():
            raise ValueError(f"a word of {self.layout.words} is empty.")
        check_characters(self.layout.words, word)
        return word


def _written(column: Field, value: Any) -> str:
    """The text of a label."""
    if isinstance(value, str):
        return value.strip()
    if column.content == "whole":
        return str(int(value))
    return f"{value:.6g}" if column.is_single else json.dumps(value)


class _Made(dict[Any, Any]):
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
    described = _described(name, tables["train"][1], is_chosen=bool(columns))
    described = replace(described, no_label=_no_labels(described, [table for _, table in tables.values()]))
    sentences, row_notes = _read(name, described, tables)
    files = {split: tables[split][0] for split in sentences}
    roles, notes = described.layout, [*cell_notes, *row_notes]
    corpus = assemble(name, sentences, notes, _tag_lists(described), roles.task_schemes, files=files)
    examples = _examples(roles, tables["train"][1])
    labelled = _labelled(roles, {split: table for split, (_, table) in tables.items()})
    return reported(corpus, roles, layout, examples, labelled, revision=revision)


def _read(name: str, described: _Table, tables: Tables) -> tuple[dict[Split, Sentences], list[str]]:
    """The sentences of the splits that have labels, and notes on the rows and splits that were left out.

    Raises CorpusError where no training row, or no row to test on, has a label.
    """
    tasks = described.layout.tasks
    sentences: dict[Split, Sentences] = {}
    lacking: dict[Split, str] = {}
    notes: list[str] = []
    for split, (title, table) in tables.items():
        missing = [column for column in tasks if column not in table.column_names]
        kept, counts = None, Counter[str]()
        if split == "train" or len(missing) < len(tasks):
            if missing:
                raise CorpusError(
                    f"{name}: the split {title} has no column {missing[0]}, which that of training has."
                )
            kept, counts = _sentences(name, described, title, table)
        if kept:
            sentences[split] = kept
            notes += [f"{title}: {plural(count, 'row')} {what}." for what, count in counts.items()]
        else:
            lacking[split] = "a label of each word" if _UNLABELLED in counts else "a label"
            rows = plural(len(table), "row")
            notes.append(f"{title}: none of {rows} has {lacking[split]}; the split was left out.")
    chosen: tuple[tuple[Split, tuple[Split, ...]], ...] = (("train", ("train",)), ("test", ("test", "dev")))
    for needed, may_be in chosen:
        if sentences.keys().isdisjoint(may_be):
            what = lacking.get(needed, "a label")
            raise CorpusError(f"{name}: no row of its {needed} split has {what}; choose other splits.")
    return sentences, notes


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


def _field(name: str, feature: Any, seen: Sequence[Any]) -> Field:
    """A column by its feature and its first values."""
    item = feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)
    if item is not None:
        of_items = _field(name, item, ())
        return replace(
            of_items, is_list=True, content="other" if of_items.is_list else of_items.content, seen=seen
        )
    if (names := getattr(feature, "names", None)) is not None:
        return Field(name, False, "names", seen, tuple(names))
    dtype = str(getattr(feature, "dtype", ""))
    contents: tuple[tuple[str, Content], ...] = (
        ("string", "text"), ("large_string", "text"), ("int", "whole"), ("uint", "whole"), ("float", "real"),
        ("bool", "bool"),
    )  # fmt: skip
    content: Content = next((content for start, content in contents if dtype.startswith(start)), "other")
    return Field(name, False, content, seen, is_single=dtype in ("float32", "float16"))


def _described(name: str, table: Dataset, *, is_chosen: bool) -> _Table:
    """The roles of the columns, by their features, their names and the first rows."""
    seen: dict[str, list[Any]] = table[:_SEEN]
    columns = {column: _field(column, table.features[column], seen[column]) for column in table.column_names}
    of_words = _word_layout(list(columns.values()), is_chosen=is_chosen)
    if of_words is not None and of_words.tasks:
        return _Table(of_words, columns)
    try:
        described = _text_table(name, columns, table, is_chosen=is_chosen)
    except CorpusError:
        if of_words is None:
            raise
        described = _Table(of_words, columns)  # whose lists of labels were left out, as is said here
    if not described.layout.tasks:
        left_out = described.layout.left_out
        reasons = "; ".join(f"{column}: {reason}" for column, reason in left_out.items() if reason)
        raise CorpusError(
            f"{name}: no column holds labels. Its columns are {', '.join(columns)}"
            f"{f' ({reasons})' if reasons else ''}. Name those to read as columns=COLUMN,COLUMN."
        )
    return described


def _word_layout(columns: Sequence[Field], *, is_chosen: bool) -> Layout | None:
    """The layout of sentences of words; None where no column is a list of words.

    It has no tasks where no list beside the words holds labels.
    """
    lists = [column for column in columns if column.is_list]
    texts = [column for column in lists if column.content == "text"]
    named = [column for name in WORD_LISTS for column in texts if column.name.lower() == name]
    by_values = sorted(texts, key=lambda each: -len(set(chain.from_iterable(filter(None, each.seen)))))
    if not texts or (len(lists) < 2 and not named):
        return None
    words = (named or by_values)[0]
    labels, sentence_columns, left_out = beside_words(columns, words, is_chosen=is_chosen)
    if not labels and not named:
        return None
    schemes: dict[str, Scheme | None] = dict.fromkeys(labels) | dict.fromkeys(sentence_columns, "sentence")
    return Layout(
        tuple(column.name for column in columns),
        words=words.name,
        schemes=schemes,
        tasks=tasks_of(list(schemes)),
        left_out=left_out,
        guessed=frozenset() if named else frozenset([words.name]),
    )


def _texts(name: str, columns: Mapping[str, Field]) -> tuple[tuple[str, ...], bool]:
    """The columns of texts, and whether they are a guess. Raises CorpusError where none is one."""
    single = [column for column in columns.values() if not column.is_list]
    textual = [column for column in single if column.content == "text"]
    try:
        return text_columns([column.name for column in textual]), False
    except ValueError:
        if problem := word_rows([column.name for column in single]):
            raise CorpusError(f"{name} {problem}") from None
    texts = tuple(
        column.name
        for column in textual
        if not is_named_other(column.name) and not are_labels(column.name, kinds_of(column.seen))
    )
    if len(texts) not in (1, 2):
        which = f"{all_of(list(texts))} may be" if texts else "none is"
        raise CorpusError(
            f"{name}: expected a column of words or of texts, and {which} one. Name those to read as "
            f"columns=COLUMN:text,COLUMN; its columns are {', '.join(columns)}."
        )
    return texts, True


def _text_table(name: str, columns: Mapping[str, Field], table: Dataset, *, is_chosen: bool) -> _Table:
    """The layout of texts or pairs. Raises CorpusError where no column holds texts."""
    texts, is_guess = _texts(name, columns)
    if len(texts) == 1:
        columns = {column: _as_whole(each) for column, each in columns.items()}
    schemes, left_out = beside_texts(list(columns.values()), texts, is_chosen=is_chosen)
    cells = cells_of_texts(list(columns.values()))
    if not schemes and (unread := [column for column in cells if column not in texts]):
        raise CorpusError(f"{name}: {refusal(unread[0], cells[unread[0]])}")
    named_by: dict[str, Mapping[Any, str]] = {}
    textual = [column for column, each in columns.items() if each.content == "text" and not each.is_list]
    beside = [column for column in textual if column not in texts and not is_chosen]
    for column in [column for column in schemes if columns[column].content == "whole"]:
        for other in beside:
            if column not in named_by and (names := _names(table[column][:], table[other][:])):
                named_by[column] = names
                schemes.pop(other, None)
                left_out[other] = f"it names the numbers of {column}"
    guessed = frozenset(texts if is_guess else ())
    layout = Layout(tuple(columns), "", texts, schemes, text_tasks(schemes, name), left_out, guessed)
    return _Table(layout, columns, named_by)


def _as_whole(column: Field) -> Field:
    """The column. Whole numbers that pandas made real, for rows with none, are whole."""
    if column.is_list or column.content != "real":
        return column
    given = [value for value in column.seen if not is_blank(value)]
    is_whole = 0 < len(given) < len(column.seen) and all(float(value).is_integer() for value in given)
    return replace(column, content="whole", is_single=False) if is_whole else column


def _no_labels(described: _Table, tables: Sequence[Dataset]) -> dict[str, frozenset[str]]:
    """By column of labels of texts or sentences, the values in these tables that stand for no label."""
    codes = {}
    for column in (column for column, scheme in described.layout.schemes.items() if scheme is not None):
        written = partial(_written, described.columns[column])
        values = [
            [written(value) for value in table.unique(column) if not is_blank(value)]
            for table in tables
            if column in table.column_names
        ]
        others = set(chain.from_iterable(values))
        if described.columns[column].content in ("names", "bool") or not no_label(dict.fromkeys(others, 1)):
            continue
        training = Counter(written(value) for value in tables[0][column][:] if not is_blank(value))
        codes[column] = no_label(training, others)
    return codes


def _names(numbers: Sequence[Any], texts: Sequence[Any]) -> dict[Any, str]:
    """The name that texts have for each number; empty where it is not one for each."""
    given = kinds_of(numbers)
    return names_of(
        (number, text) for number, text in zip(numbers, texts, strict=True) if str(number) in given
    )


def _tag_lists(described: _Table) -> dict[str, tuple[str, ...]]:
    """The labels that the dataset declares, by task; none for spans that are not written in IOB2."""
    lists = {}
    for column, task in described.layout.tasks.items():
        names = tuple(name for name in described.columns[column].names if name.strip() not in NOT_ANNOTATED)
        span_notation = None if not described.layout.words else notation(Counter(names))
        if span_notation is None or all(name == "O" or name[:2] in ("B-", "I-") for name in names):
            lists[task] = names
    return lists


def _rows(layout: Layout, table: Dataset) -> Iterator[Mapping[str, Any]]:
    """The rows of a table, with the columns that are read."""
    wanted = [column for column in (layout.words, *layout.texts, *layout.tasks) if column]
    for batch in table.select_columns(wanted).iter(batch_size=_BATCH):
        columns = [batch[column] for column in wanted]
        for values in zip(*columns, strict=True):
            yield dict(zip(wanted, values, strict=True))


def _sentences(name: str, described: _Table, title: str, table: Dataset) -> tuple[Sentences, Counter[str]]:
    """The sentences of a split, and how many rows were left out, or not annotated for a task, and why."""
    counts: Counter[str] = Counter()
    layout = described.layout

    def sentences() -> Iterator[Sentence]:
        for number, row in enumerate(_rows(layout, table), start=1):
            has_words = (
                row[layout.words] if layout.words else all((row[text] or "").split() for text in layout.texts)
            )
            sentence, lacking = None, list[str]()
            try:
                if has_words:
                    sentence = (
                        _word_row(described, row, lacking) if layout.words else _text_row(described, row)
                    )
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


def _word_row(described: _Table, row: Mapping[str, Any], lacking: list[str]) -> Sentence | None:
    """The sentence of a row. `lacking` gets the tasks that some words have a label of, and some not."""
    layout = described.layout
    words = row[layout.words]
    labels: dict[str, tuple[str, ...]] = {}
    for column, task in layout.tasks.items():
        label_of, value = described.labels[column], row[column]
        if value is None:
            continue
        task_labels = [label_of[each] for each in ([value] if layout.schemes[column] else value)]
        if all(label is None or label in NOT_ANNOTATED for label in task_labels):
            continue
        if None in task_labels:
            lacking.append(task)
            continue
        if not layout.schemes[column] and len(task_labels) != len(words):
            raise ValueError(
                f"{column} has {plural(len(task_labels), 'label')}, and {layout.words} "
                f"{plural(len(words), 'word')}; both need one for each word. Name the columns to read as "
                "columns=COLUMN,COLUMN, and leave this one out."
            )
        labels[task] = tuple(filter(None, task_labels))
    whole = tuple(task for column, task in layout.tasks.items() if layout.schemes[column])
    tokens = tuple(described.words[word] for word in words)
    return Sentence(tokens, labels, text_tasks=whole) if labels else None


def _text_row(described: _Table, row: Mapping[str, Any]) -> Sentence | None:
    layout = described.layout
    labels = {column: described.labels[column][row[column]] for column in layout.tasks}
    if not any(labels.values()):
        return None
    return text_sentence({**{text: row[text] for text in layout.texts}, **labels}, layout)


def _examples(layout: Layout, table: Dataset) -> dict[str, list[str]]:
    """The first values of each column that is no task, as the report shows them."""
    examples: dict[str, list[str]] = {}
    for column, values in table[:50].items():
        if column == layout.words:
            examples[column] = list(chain.from_iterable(filter(None, values)))
        elif column in layout.texts:
            examples[column] = list(filter(None, values))
        else:
            examples[column] = [json.dumps(value, ensure_ascii=False, default=str) for value in values]
    return examples


def _labelled(layout: Layout, tables: Mapping[Split, Dataset]) -> dict[str, list[Split]]:
    """By column that no row of training has a label of, the splits that have some."""
    empty = [column for column in layout.columns if layout.left_out.get(column, NO_ROW) == NO_ROW]
    return {
        column: [
            split
            for split, table in tables.items()
            if column in table.column_names and kinds_of(table[column][:_SEEN])
        ]
        for column in empty
        if column not in (layout.words, *layout.texts)
    }
