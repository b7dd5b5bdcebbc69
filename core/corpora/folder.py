"""A folder as a corpus: which of its files are its splits, and what their columns hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType

from core.corpora.assembly import SPLITS, assemble
from core.corpora.readers import IGNORED, ONLY_TASKS, TOKENS, Table, named, read_conllu, read_table
from core.corpora.schemes import notation
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError, FixedColumns
from core.plain_text import shortened

CONLLU = ".conllu"
EXTENSIONS = (".conll", ".txt", ".tsv", ".iob", ".iob1", ".iob2", ".bio", ".col", CONLLU)
"""The endings by which a file is taken for annotated text."""

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
    if file_name.startswith(".") or not (ending in EXTENSIONS or ending.lstrip(".") in ("", *_SPLIT_WORDS)):
        return None
    words = re.split(r"[^a-z]+", path.name.lower().removesuffix(ending if ending in EXTENSIONS else ""))
    splits = {_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS}
    return splits.pop() if len(splits) == 1 else None


def find_splits(folder: Path) -> dict[Split, Path]:
    """The files of the splits.

    Raises CorpusError where train or test is missing, or two files claim one split.
    """
    if not folder.exists():
        raise CorpusError(f"There is no folder {folder}; check the name.")
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file; name the folder that holds the train and test files.")
    found: dict[Split, Path] = {}
    for path in sorted(folder.iterdir()):
        split = split_of(path.name) if path.is_file() else None
        if split is None:
            continue
        if split in found:
            raise CorpusError(
                f"{folder}: both {found[split].name} and {path.name} could be the {split} split; "
                "keep one of them there."
            )
        found[split] = path
    for needed in ("train", "test"):
        if needed not in found:
            raise CorpusError(
                f"{folder} has no {needed} file; expected {needed}.conll, {needed}.conllu or a like name."
            )
    if len({path.suffix.lower() == CONLLU for path in found.values()}) > 1:
        raise CorpusError(
            f"{folder} mixes CoNLL-U files with others; all of its splits must be of one format."
        )
    return found


_CHUNK_TYPES = frozenset(["NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"])

# A column with more kinds of values than this, and one for every few words, holds lemmas or the like.
_MOST_LABELS = 200
_WORDS_PER_LABEL = 10


@dataclass(frozen=True)
class ColumnProposal:
    """A name for each column, from left to right, and the first sentence's rows to check them by.

    A name that begins with `_` is a column to read over (numbers, lemmas).
    """

    columns: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]


def detect_columns(path: str | Path) -> ColumnProposal:
    """Proposed names for the columns of a CoNLL file, or of the train file of a folder.

    Raises FixedColumns for CoNLL-U, CorpusError where the file cannot be read or has only one column.
    """
    # Of os.path, whose functions raise nothing, whatever a name holds.
    if not os.path.exists(path):
        raise CorpusError(f"There is no folder '{shortened(str(path), 300)}'; check the name.")
    path = Path(path)
    if path.is_dir():
        path = find_splits(path)["train"]
    if path.suffix.lower() == CONLLU:
        raise FixedColumns(f"{path} is CoNLL-U, whose columns are fixed; there is nothing to name.")
    table = read_table(path)
    _, end = table.bounds[:2]
    sample = zip(*(column[:end] for column in table.columns), strict=True)
    return ColumnProposal(name_several(table, path), tuple(sample))


def name_several(table: Table, path: Path) -> tuple[str, ...]:
    """As `name_columns`. Raises CorpusError where the file of that path has but one column."""
    if len(table.columns) < 2:
        raise CorpusError(
            f"{path}, line 1: has one column; expected words and at least one column of labels."
        )
    return name_columns(table)


def name_columns(table: Table) -> tuple[str, ...]:
    """A name for each of two columns or more, from left to right, by what is in them; one is `tokens`."""
    columns = [table.column(place) for place in range(len(table.columns))]
    words = _words_place(columns)
    names: list[str] = []
    for place, column in enumerate(columns):
        name = TOKENS if place == words else _name(column)
        names.append(_free(name, names))
    return tuple(names)


def _words_place(columns: Sequence[Sequence[Sequence[str]]]) -> int:
    """The column with the most kinds of values that is neither a numbering nor labels of spans."""
    kinds = [
        0 if _is_numbering(column) or notation(column) != "plain" else len(_values(column))
        for column in columns
    ]
    return max(range(len(columns)), key=lambda place: (kinds[place], -place))


def _name(column: Sequence[Sequence[str]]) -> str:
    if _is_numbering(column):
        return IGNORED + "number"
    values = _values(column)
    if notation(column) != "plain":
        types = {value.partition("-")[2] for value in values if value != "O"}
        return "chunk" if len(types & _CHUNK_TYPES) * 2 >= len(types) else "ner"
    if values == {"O"}:
        return "ner"
    size = sum(map(len, column))
    return IGNORED + "other" if len(values) > max(_MOST_LABELS, size / _WORDS_PER_LABEL) else "pos"


def _is_numbering(column: Sequence[Sequence[str]]) -> bool:
    return all(
        value == str(first + place)
        for labels in column
        for first in (0 if labels[0] == "0" else 1,)
        for place, value in enumerate(labels)
    )


def _values(column: Iterable[Sequence[str]]) -> set[str]:
    return set(chain.from_iterable(column))


def _free(name: str, taken: Sequence[str]) -> str:
    numbered = (f"{name}{number}" for number in count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def read_folder(
    folder: Path,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Corpus:
    """The corpus in that folder. Without `columns`, CoNLL columns are named by what is in them.

    `tag_lists` has the labels that the corpus is known to have, by task.

    Raises CorpusError naming the file, the line and what was expected.
    """
    files = find_splits(folder)
    order = [split for split in SPLITS if split in files]
    notes: list[str] = []
    splits: dict[Split, Sequence[Sentence]] = {}
    if files["train"].suffix.lower() == CONLLU:
        if columns is not None:
            raise CorpusError(
                f"{folder} holds CoNLL-U files, whose columns are fixed; leave the names of columns away."
            )
        for split in order:
            splits[split], left_out = read_conllu(files[split])
            notes += left_out
        notes.append(ONLY_TASKS)
    else:
        if columns is not None:
            check_names(columns)
        training = read_table(files["train"], columns)
        if columns is None:
            columns = name_several(training, files["train"])
            notes.append(f"Columns were named by what is in them: {', '.join(columns)}.")
        for split in order:
            table = training if split == "train" else read_table(files[split], columns)
            splits[split], left_out = named(table, columns, files[split].name)
            notes += left_out
    return assemble(name or folder.name, splits, notes, tag_lists)


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
                f"name with '{IGNORED}' to have it read over."
            )
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")
