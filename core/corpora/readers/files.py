"""The files of a corpus's splits: their format, and the reader of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from core.corpora.assembly import assemble
from core.corpora.layout.doubts import with_doubts_on_words
from core.corpora.layout.gold import untrained_doubt
from core.corpora.layout.sentence_labels import labels_of_comments
from core.corpora.layout.word_columns import (
    check_names,
    is_empty,
    name_columns,
)
from core.corpora.readers import lists, text_files
from core.corpora.readers.conll import Table, left_out_notes, named, read_table
from core.corpora.readers.conllu import CONLLU, FEATURE, is_conllu, read_conllu
from core.corpora.readers.lines import TOKENS, Source, marks_inside
from core.corpora.readers.lists import cells_in, holds_lists, read_lists
from core.corpora.readers.text_files import Columns, holds_texts, read_texts
from core.corpora.reading import ColumnReading, guessed, values_shown
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.wording import all_of

EXTENSIONS = (".conll", ".txt", ".tsv", ".iob", ".iob1", ".iob2", ".bio", ".col", CONLLU)
"""The endings by which a file is taken for annotated words."""
READ_ENDINGS = (*EXTENSIONS, *text_files.ENDINGS, *lists.ENDINGS)
"""The endings of all files that are read."""

_SPLIT_WORDS: dict[str, Split] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "valid", "val", "validation", "testa"), "dev"),
    **dict.fromkeys(("test", "testb"), "test"),
}


def split_of(file_name: str) -> Split | None:
    """The split in the name of a file: `train.conll`, `en_lines-ud-dev.conllu`, `eng.testb`.

    None where it tells none, or more than one.
    """
    path = Path(file_name)
    ending = path.suffix.lower()
    known = ending in READ_ENDINGS
    if file_name.startswith(".") or not (known or ending.lstrip(".") in ("", *_SPLIT_WORDS)):
        return None
    return split_in(path.name.lower().removesuffix(ending if known else ""))


def split_in(text: str) -> Split | None:
    """The split that a text has a word of; None where it has none, or words of more than one."""
    splits = {_SPLIT_WORDS[word] for word in re.split(r"[^a-z]+", text) if word in _SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None


Format = Literal["columns", "conllu", "texts", "lists"]
_FORMATS: dict[Format, str] = {
    "columns": "CoNLL columns",
    "conllu": "CoNLL-U",
    "texts": "texts in named columns",
    "lists": "lists of words or spans",
}


def format_of(files: Iterable[Source], location: str) -> Format:
    """The format of all these files; `location` is their folder.

    Raises CorpusError where they differ, or a CSV file has no commas.
    """
    training, *others = files
    format_ = file_format(training)
    # What is in the cells of the training file is in those of all.
    if format_ == "lists" and cells_in(training) is not None:
        others = [file for file in others if Path(file.name).suffix != Path(training.name).suffix]
    found = dict.fromkeys([format_, *map(file_format, others)])
    if len(found) > 1:
        raise CorpusError(
            f"{location} mixes {all_of([_FORMATS[each] for each in _FORMATS if each in found])}; all of its "
            "splits must be of one format."
        )
    return next(iter(found))


def file_format(file: Source) -> Format:
    """The format of one file. Raises CorpusError where a CSV file has no commas."""
    if is_conllu(file.name):
        return "conllu"
    if file.name.lower().endswith(text_files.CSV):
        _check_commas(file)
    return "lists" if holds_lists(file) else "texts" if holds_texts(file) else "columns"


def _check_commas(file: Source) -> None:
    """Raises CorpusError where semicolons or tabs separate the columns of a CSV file."""
    line = next(iter(text_files.beginning(file).splitlines()), "")
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if mark in line and "," not in line:
            raise CorpusError(f"{file}, line 1: has {name} and no comma; save the file with commas.")


def read_splits(
    files: Mapping[Split, Source],
    location: str,
    name: str,
    text_task: str,
    columns: Sequence[str] | None = None,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
    notes: Sequence[str] = (),
) -> Corpus:
    """The corpus of these files, training first, in the folder that errors call `location`.

    Without `columns`, CoNLL columns are named by their content.

    `text_task` is what the one task on texts is called whose column has no name of its own; `tag_lists` has
    the labels that the corpus is known to have, by task.

    Raises CorpusError naming the file, the line and what was expected.
    """
    format_ = format_of(files.values(), location)
    if format_ != "columns" and columns is not None:
        raise CorpusError(
            f"{location} holds {_FORMATS[format_]}, whose columns have names of their own; leave out the "
            "column names."
        )
    of_lines = [file for file in files.values() if not file.name.lower().endswith(lists.ENDINGS)]
    notes = [*notes, *filter(None, map(marks_inside, of_lines))]
    if split_of(files["test"].name) == "dev":
        notes.append(f"There is no test file: {files['test'].name} is the test split.")
    if format_ == "texts":
        corpus = _read_texts(files, name, text_task, notes)
    elif format_ == "lists":
        corpus = read_lists(files, name, tag_lists, notes)
    elif format_ == "conllu":
        corpus = _read_conllu(files, name, notes)
    else:
        corpus = _read_columns(files, name, columns, tag_lists, notes)
    (reading,) = corpus.readings
    layout = reading.layout or _FORMATS[format_]
    reading = with_doubts_on_words(replace(reading, layout=layout), corpus)
    return replace(corpus, readings=(reading,), notes=reading.all_notes)


def _names(files: Mapping[Split, Source]) -> dict[Split, str]:
    """The name of each file."""
    return {split: file.name for split, file in files.items()}


def _read_columns(
    files: Mapping[Split, Source],
    name: str,
    columns: Sequence[str] | None,
    tag_lists: Mapping[str, Sequence[str]],
    notes: list[str],
) -> Corpus:
    """The corpus of files in CoNLL columns."""
    if columns is not None:
        check_names(columns)
    tables: dict[Split, Table] = {"train": read_table(files["train"], columns)}
    is_guess = columns is None and tables["train"].header is None
    if columns is None:
        columns = name_columns(tables["train"], files["train"])
        how = "by what is in them" if is_guess else f"by the header of {files['train'].name}"
        notes.append(f"Columns were named {how}: {', '.join(columns)}.")
    splits: dict[Split, Sentences] = {}
    sentence_comments = labels_of_comments(tables["train"], columns)
    for split, file in files.items():
        table = tables["train"] if split == "train" else read_table(file, columns)
        _check_header(table, tables["train"], file)
        tables[split] = table
        splits[split] = named(table, columns, file, sentence_comments)
    notes += left_out_notes({files[split].name: table for split, table in tables.items()}, sentence_comments)

    def location(split: Split, sentence: int, word: int) -> str:
        return f"{files[split]}, line {tables[split].line(sentence, word)}"

    schemes: dict[str, Scheme] = dict.fromkeys(sentence_comments, "sentence")
    corpus = assemble(name, splits, notes, tag_lists, schemes, location, _names(files))
    for column in (columns.index(task.name) for task in corpus.tasks if task.scheme == "plain"):
        for split in splits:
            if (line := tables[split].empty.get(column)) is not None:
                raise CorpusError(f"{files[split]}, line {line}: column {column + 1} is empty.")
    return _with_columns(corpus, columns, tables, is_guess=is_guess)


def _check_header(table: Table, training: Table, file: Source) -> None:
    """Raises CorpusError where the header of a file names other columns than that of the training file."""
    if table.header is None or training.header is None:
        return
    here, there = ([name.casefold() for name in header] for header in (table.header, training.header))
    if here != there:
        raise CorpusError(
            f"{file}: its header names the columns {', '.join(table.header)}, and that of the training file "
            f"{', '.join(training.header)}; both need the same columns in the same order."
        )


def _with_columns(
    corpus: Corpus, columns: Sequence[str], tables: Mapping[Split, Table], *, is_guess: bool
) -> Corpus:
    """The corpus with a reading of each column of its files, from left to right."""
    table = tables["train"]
    (reading,) = corpus.readings
    by_task = {column.name: column for column in reading.columns}
    read = []
    first = table.first_sentences(50)
    for index, name in enumerate(columns):
        examples = values_shown(word for sentence in first for word in sentence[index])
        doubts: tuple[str, ...] = ()
        if name not in by_task and is_empty(table.column(index)):
            labelled = [split for split, each in tables.items() if not is_empty(each.column(index))]
            doubts = (untrained_doubt(labelled),) if labelled else ()
        column = by_task.get(name) or ColumnReading(
            name, "words" if name == TOKENS else "skipped", examples=examples, doubts=doubts
        )
        read.append(column)
    # Comments are found, not named: whether one labels sentences is a guess.
    read += [replace(by_task[task.name], guessed=True) for task in corpus.tasks if task.scheme == "sentence"]
    separated = "tabs" if table.separator == "\t" else "spaces"
    layout = f"{_FORMATS['columns']} separated by {separated}"
    reading = replace(reading, columns=tuple(read), layout=layout)
    return replace(corpus, readings=(guessed(reading) if is_guess else reading,))


def _read_conllu(files: Mapping[Split, Source], name: str, notes: list[str]) -> Corpus:
    """The corpus of files in CoNLL-U."""
    splits: dict[Split, Sentences] = {}
    features: list[str] | None = None
    tasks: dict[str, None] = {}
    for split, file in files.items():
        splits[split], about = read_conllu(file, features)
        notes += about
        tasks |= dict.fromkeys(splits[split].labels)
        if features is None:
            features = [task for task in tasks if task.startswith(FEATURE)]
    schemes: dict[str, Scheme] = dict.fromkeys(tasks, "plain")
    corpus = assemble(name, splits, notes, schemes=schemes, files=_names(files))
    (reading,) = corpus.readings
    words = values_shown(word for sentence in corpus.train[:50] for word in sentence.tokens)
    columns = (ColumnReading(TOKENS, "words", examples=words), *reading.columns)
    return replace(corpus, readings=(replace(reading, columns=columns),))


def _read_texts(files: Mapping[Split, Source], name: str, text_task: str, notes: list[str]) -> Corpus:
    """The corpus of files of texts or pairs."""
    splits: dict[Split, Sequence[Sentence]] = {}
    training: Columns | None = None
    left_out: dict[str, None] = {}
    for split, file in files.items():
        splits[split], found = read_texts(file, text_task, training)
        training = training or found
        left_out |= dict.fromkeys(found.left_out)
    assert training is not None
    if left_out:
        shown = [column or "one without a name" for column in left_out]
        notes.append(f"Columns left out: {', '.join(shown)}.")
    tasks = training.tasks(text_task)
    schemes = {tasks[column]: scheme for column, scheme in training.schemes.items()}
    corpus = assemble(name, splits, notes, schemes=schemes, files=_names(files))
    (reading,) = corpus.readings
    by_task = {column.name: column for column in reading.columns}
    columns = []
    for title in training.names:
        if title in tasks:
            no_labels = ColumnReading(title, "skipped", notes=("no row has a label of it.",))
            columns.append(by_task.get(tasks[title], no_labels))
            continue
        is_second = title == training.texts[-1] and len(training.texts) > 1
        texts = [(s.second or ()) if is_second else s.tokens for s in corpus.train[:3]]
        is_text = title in training.texts
        examples = values_shown(map(" ".join, texts)) if is_text else ()
        columns.append(ColumnReading(title, "text" if is_text else "skipped", examples=examples))
    return replace(corpus, readings=(replace(reading, columns=tuple(columns)),))
