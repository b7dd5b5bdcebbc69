"""The files of a corpus's splits: their format, and the reader of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from core.corpora.assembly import assemble
from core.corpora.layout.column_names import IGNORED, TOKENS
from core.corpora.layout.contents import is_empty
from core.corpora.layout.fields import Layout
from core.corpora.layout.report import reported
from core.corpora.readers import lists, texts
from core.corpora.readers.conll import Table, left_out_notes, named, read_table
from core.corpora.readers.conll_names import (
    ColumnProposal,
    check_names,
    labels_of_comments,
    name_columns,
    propose,
)
from core.corpora.readers.conllu import CONLLU, FEATURE, is_conllu, read_conllu
from core.corpora.readers.lines import Source, marks_inside
from core.corpora.readers.lists import cells_in, holds_lists, read_lists
from core.corpora.readers.text_rows import CSV, beginning
from core.corpora.readers.texts import holds_texts, read_text_files
from core.corpora.types import Corpus, Scheme, Sentences, Split
from core.errors import CorpusError
from core.wording import all_of

EXTENSIONS = (".conll", ".txt", ".tsv", ".iob", ".iob1", ".iob2", ".bio", ".col", CONLLU)
"""The endings by which a file is taken for annotated words."""
READ_ENDINGS = (*EXTENSIONS, *texts.ENDINGS, *lists.ENDINGS)
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
    is_read = ending in READ_ENDINGS
    if file_name.startswith(".") or not (is_read or ending.lstrip(".") in ("", *_SPLIT_WORDS)):
        return None
    return split_in(path.name.lower().removesuffix(ending if is_read else ""))


def split_in(text: str) -> Split | None:
    """The split that a text has a word of; None where it has none, or words of more than one."""
    splits = {_SPLIT_WORDS[word] for word in re.split(r"[^a-z]+", text) if word in _SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None


Format = Literal["columns", "conllu", "texts", "lists"]
_FORMATS: dict[Format, str] = {
    "columns": "CoNLL columns",
    "conllu": "CoNLL-U",
    "texts": texts.TITLE,
    "lists": lists.TITLE,
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
    formats = dict.fromkeys([format_, *map(file_format, others)])
    if len(formats) > 1:
        mixed = all_of([title for each, title in _FORMATS.items() if each in formats])
        raise CorpusError(f"{location} mixes {mixed}; all of its splits must be of one format.")
    return next(iter(formats))


def file_format(file: Source) -> Format:
    """The format of one file. Raises CorpusError where a CSV file has no commas."""
    if is_conllu(file.name):
        return "conllu"
    if file.name.lower().endswith(CSV):
        _check_commas(file)
    return "lists" if holds_lists(file) else "texts" if holds_texts(file) else "columns"


def _check_commas(file: Source) -> None:
    """Raises CorpusError where semicolons or tabs separate the columns of a CSV file."""
    line = next(iter(beginning(file).splitlines()), "")
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if mark in line and "," not in line:
            raise CorpusError(f"has {name} and no comma; save the file with commas.", file, 1)


def columns_of_file(file: Source) -> ColumnProposal | None:
    """Proposed names for the columns of a CoNLL file; None for others. Raises CorpusError."""
    return propose(read_table(file), file) if file_format(file) == "columns" else None


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
        return read_text_files(files, name, text_task, notes)
    if format_ == "lists":
        return read_lists(files, name, tag_lists, notes)
    if format_ == "conllu":
        return _read_conllu(files, name, notes)
    return _read_columns(files, name, columns, tag_lists, notes)


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
    corpus = assemble(
        name, splits, notes, tag_lists, schemes, location, {split: file.name for split, file in files.items()}
    )
    for column in (columns.index(task.name) for task in corpus.tasks if task.scheme == "plain"):
        for split in splits:
            if (line := tables[split].empty.get(column)) is not None:
                raise CorpusError(f"column {column + 1} is empty.", files[split], line)
    first = tables["train"].first_sentences(50)
    examples = {name: [word for each in first for word in each[place]] for place, name in enumerate(columns)}
    layout = Layout(
        (*columns, *sentence_comments),
        words=TOKENS,
        tasks={name: name for name in splits["train"].labels},
        # Comments are found, not named: whether one labels sentences is a guess.
        guessed=frozenset([*(columns if is_guess else ()), *sentence_comments]),
    )
    separated = "tabs" if tables["train"].separator == "\t" else "spaces"
    title = f"{_FORMATS['columns']} separated by {separated}"
    return reported(corpus, layout, title, examples, _labelled(columns, tables))


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


def _labelled(columns: Sequence[str], tables: Mapping[Split, Table]) -> dict[str, list[Split]]:
    """By column that holds nothing in training, the splits where it holds something."""
    empty = [
        place
        for place, name in enumerate(columns)
        if name.startswith(IGNORED) and is_empty(tables["train"].column(place))
    ]
    return {
        columns[place]: [split for split, table in tables.items() if not is_empty(table.column(place))]
        for place in empty
    }


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
    corpus = assemble(
        name, splits, notes, schemes=schemes, files={split: file.name for split, file in files.items()}
    )
    words = [word for sentence in corpus.train[:50] for word in sentence.tokens]
    layout = Layout((TOKENS, *tasks), words=TOKENS, tasks={task: task for task in tasks})
    return reported(corpus, layout, _FORMATS["conllu"], {TOKENS: words})
