"""A folder as a corpus: which of its files are its splits, in which format, and what their columns hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from core.corpora.assembly import SPLITS, assemble
from core.corpora.readers import FEATURE, IGNORED, TOKENS, Source, Table, named, read_conllu, read_table
from core.corpora.text_files import ENDINGS, Columns, holds_texts, read_texts
from core.corpora.types import Corpus, Scheme, Sentence, Split
from core.errors import CorpusError
from core.paths import upload_dir
from core.plain_text import shortened
from core.tasks.schemes import notation
from core.wording import all_of

CONLLU = ".conllu"
EXTENSIONS = (".conll", ".txt", ".tsv", ".iob", ".iob1", ".iob2", ".bio", ".col", CONLLU)
"""The endings by which a file is taken for annotated words."""

_SPLIT_WORDS: dict[str, Split] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "valid", "val", "validation", "testa"), "dev"),
    **dict.fromkeys(("test", "testb"), "test"),
}


def split_of(file_name: str) -> Split | None:
    """The split that a file's name tells: `train.conll`, `en_lines-ud-dev.conllu`, `eng.testb`.

    None where it tells none, or more than one.
    """
    path = Path(file_name)
    ending = path.suffix.lower()
    known = ending in (*EXTENSIONS, *ENDINGS)
    if file_name.startswith(".") or not (known or ending.lstrip(".") in ("", *_SPLIT_WORDS)):
        return None
    words = re.split(r"[^a-z]+", path.name.lower().removesuffix(ending if known else ""))
    splits = {_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None


def find_splits(folder: Path) -> dict[Split, Path]:
    """The files of the splits. Raises CorpusError as `splits_of`, and where there is no such folder."""
    if not folder.exists():
        raise CorpusError(f"There is no folder {folder}; check the name.")
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file; name the folder that holds the train and test files.")
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return {split: folder / name for split, name in splits_of(names, str(folder)).items()}


def splits_of(names: Iterable[str], place: str) -> dict[Split, str]:
    """The split files among files of these names; `place` is what an error calls their folder.

    Where no file is the test split, that of dev is, and there is no dev split. Raises CorpusError where train
    or both of these are missing, or two files claim one split.
    """
    files: dict[Split, str] = {}
    for name in names:
        split = split_of(name)
        if split is not None and split in files:
            raise CorpusError(
                f"{place}: both {files[split]} and {name} could be the {split} split; keep one of them."
            )
        if split is not None:
            files[split] = name
    if "test" not in files and "dev" in files:
        files["test"] = files.pop("dev")
    for needed in ("train", "test"):
        if needed not in files:
            raise CorpusError(
                f"{place} has no {needed} file; expected {needed}.conll, {needed}.conllu or a like name."
            )
    return {split: files[split] for split in SPLITS if split in files}


def is_conllu(file_name: str) -> bool:
    """Whether a file of that name is CoNLL-U."""
    return file_name.lower().endswith(CONLLU)


Format = Literal["columns", "conllu", "texts"]
_FORMATS: dict[Format, str] = {
    "columns": "CoNLL columns",
    "conllu": "CoNLL-U",
    "texts": "texts in named columns",
}


def format_of(files: Iterable[Source], place: str) -> Format:
    """The format of all these files. Raises CorpusError where they differ; `place` is their folder."""
    found = dict.fromkeys(map(_format, files))
    if len(found) > 1:
        raise CorpusError(
            f"{place} mixes {all_of([_FORMATS[each] for each in _FORMATS if each in found])}; all of its "
            "splits must be of one format."
        )
    return next(iter(found))


def _format(file: Source) -> Format:
    return "conllu" if is_conllu(file.name) else "texts" if holds_texts(file) else "columns"


_CHUNK_TYPES = frozenset(["NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"])

# A column with more kinds of values than this, and one for every few words, holds lemmas or the like.
_MOST_LABELS = 200
_WORDS_PER_LABEL = 10


@dataclass(frozen=True)
class ColumnProposal:
    """A name for each column, from left to right, and the first sentence's rows to check them by.

    A name that begins with `_` is a column to skip (lemmas).
    """

    columns: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]


def detect_columns(path: str | Path) -> ColumnProposal | None:
    """Proposed names for the columns of a CoNLL file, or of the train file of a folder; None for others.

    Raises CorpusError where the file cannot be read or has only one column.
    """
    # Of os.path, whose functions raise nothing, whatever a name holds.
    if not os.path.exists(path):
        raise CorpusError(f"There is no folder '{shortened(str(path), 300)}'; check the name.")
    path = Path(path)
    if path.is_dir():
        path = find_splits(path)["train"]
    if _format(path) != "columns":
        return None
    table = read_table(path)
    return ColumnProposal(name_columns(table, path), tuple(zip(*table.sentences[0], strict=True)))


def name_columns(table: Table, source: Source) -> tuple[str, ...]:
    """A name for each column, from left to right, by what is in it; one is `tokens`.

    Raises CorpusError where there is but one column.
    """
    if table.width < 2:
        raise CorpusError(
            f"{source}, line 1: has one column; expected words and at least one column of labels."
        )
    columns = [table.column(place) for place in range(table.width)]
    values = [set(chain.from_iterable(column)) for column in columns]
    # Words have the most different values of all columns but those of spans.
    kinds = [len(values[place]) * (notation(column) == "plain") for place, column in enumerate(columns)]
    names = [_label_name(column, values[place]) for place, column in enumerate(columns)]
    names[kinds.index(max(kinds))] = TOKENS
    return tuple(
        name if name not in names[:place] else f"{name}{names[:place].count(name) + 1}"
        for place, name in enumerate(names)
    )


def _label_name(column: Sequence[Sequence[str]], values: Set[str]) -> str:
    if notation(column) != "plain":
        types = {value.partition("-")[2] for value in values if value != "O"}
        return "chunk" if len(types & _CHUNK_TYPES) * 2 >= len(types) else "ner"
    if values == {"O"}:
        return "ner"
    size = sum(map(len, column))
    return IGNORED + "other" if len(values) > max(_MOST_LABELS, size / _WORDS_PER_LABEL) else "pos"


def read_folder(
    folder: Path,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Corpus:
    """The corpus in that folder, as `read_splits` reads its files."""
    text_task = name or corpus_name(folder)
    return read_splits(find_splits(folder), str(folder), name or folder.name, text_task, columns, tag_lists)


def read_splits(
    files: Mapping[Split, Source],
    place: str,
    name: str,
    text_task: str,
    columns: Sequence[str] | None = None,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Corpus:
    """The corpus of these files, training first, which lie at `place`. Without `columns`, CoNLL columns are
    named by what is in them.

    `text_task` is what the one task on texts is called whose column has no name of its own; `tag_lists` has
    the labels that the corpus is known to have, by task.

    Raises CorpusError naming the file, the line and what was expected.
    """
    format_ = format_of(files.values(), place)
    if format_ != "columns" and columns is not None:
        raise CorpusError(
            f"{place} holds {_FORMATS[format_]}, whose columns have names of their own; leave out the "
            "column names."
        )
    notes: list[str] = []
    if split_of(files["test"].name) == "dev":
        notes.append(f"There is no test file: {files['test'].name} is the test split.")
    splits: dict[Split, Sequence[Sentence]] = {}
    schemes: dict[str, Scheme] = {}
    if format_ == "texts":
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
    elif format_ == "conllu":
        features: list[str] | None = None
        for split, file in files.items():
            splits[split], about = read_conllu(file, features)
            notes += about
            if features is None:
                names = dict.fromkeys(task for sentence in splits[split] for task in sentence.labels)
                features = [task for task in names if task.startswith(FEATURE)]
    else:
        if columns is not None:
            check_names(columns)
        table = read_table(files["train"], columns)
        if columns is None:
            columns = name_columns(table, files["train"])
            notes.append(f"Columns were named by what is in them: {', '.join(columns)}.")
        for split, file in files.items():
            table = table if split == "train" else read_table(file, columns)
            splits[split], about = named(table, columns, file.name)
            notes += about
    return assemble(name, splits, notes, tag_lists, schemes)


def corpus_name(folder: Path) -> str:
    """What the corpus in a folder is called: as the folder, an upload without its hash."""
    place = folder.resolve()
    return place.name.rpartition("-")[0] if place.parent == upload_dir().resolve() else place.name


def check_names(columns: Sequence[str], tasks: Sequence[str] | None = None) -> None:
    """Raises CorpusError unless one column is named `tokens` and no name stands twice; where `tasks` are
    given, each other name must be of those. Names of skipped columns are free.
    """
    if TOKENS not in columns:
        raise CorpusError(f"One of the columns must be named '{TOKENS}'; they are {', '.join(columns)}.")
    for name in columns:
        if name.startswith(IGNORED):
            continue
        if tasks is not None and name not in (TOKENS, *tasks):
            raise CorpusError(
                f"There is no task '{name}' here; name a column {', '.join((TOKENS, *tasks))}, or begin its "
                f"name with '{IGNORED}' to skip it."
            )
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")
