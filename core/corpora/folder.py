"""A folder as a corpus: which of its files are its splits, and what their columns hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from core.corpora.assembly import SPLITS, assemble
from core.corpora.readers import FEATURE, IGNORED, TOKENS, Source, Table, named, read_conllu, read_table
from core.corpora.schemes import notation
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError
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
    """The files of the splits. Raises CorpusError as `splits_of`, and where there is no such folder."""
    if not folder.exists():
        raise CorpusError(f"There is no folder {folder}; check the name.")
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file; name the folder that holds the train and test files.")
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    return {split: folder / name for split, name in splits_of(names, str(folder)).items()}


def splits_of(names: Iterable[str], place: str) -> dict[Split, str]:
    """The split files among files of these names; `place` is what an error calls their folder.

    Raises CorpusError where train or test is missing, two files claim one split, or formats are mixed.
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
    for needed in ("train", "test"):
        if needed not in files:
            raise CorpusError(
                f"{place} has no {needed} file; expected {needed}.conll, {needed}.conllu or a like name."
            )
    if len({is_conllu(name) for name in files.values()}) > 1:
        raise CorpusError(
            f"{place} mixes CoNLL-U files with others; all of its splits must be of one format."
        )
    return {split: files[split] for split in SPLITS if split in files}


def is_conllu(file_name: str) -> bool:
    """Whether a file of that name is CoNLL-U."""
    return file_name.lower().endswith(CONLLU)


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
    """Proposed names for the columns of a CoNLL file, or of the train file of a folder; None for CoNLL-U.

    Raises CorpusError where the file cannot be read or has only one column.
    """
    # Of os.path, whose functions raise nothing, whatever a name holds.
    if not os.path.exists(path):
        raise CorpusError(f"There is no folder '{shortened(str(path), 300)}'; check the name.")
    path = Path(path)
    if path.is_dir():
        path = find_splits(path)["train"]
    if is_conllu(path.name):
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
    """The corpus in that folder. Without `columns`, CoNLL columns are named by what is in them.

    `tag_lists` has the labels that the corpus is known to have, by task.

    Raises CorpusError naming the file, the line and what was expected.
    """
    files = find_splits(folder)
    notes: list[str] = []
    splits: dict[Split, Sequence[Sentence]] = {}
    if is_conllu(files["train"].name):
        if columns is not None:
            raise CorpusError(
                f"{folder} holds CoNLL-U files, whose columns are fixed; leave out the column names."
            )
        features: list[str] | None = None
        for split, file in files.items():
            splits[split], left_out = read_conllu(file, features)
            notes += left_out
            if features is None:  # of training, which comes first
                tasks = dict.fromkeys(task for sentence in splits[split] for task in sentence.labels)
                features = [task for task in tasks if task.startswith(FEATURE)]
    else:
        if columns is not None:
            check_names(columns)
        training = read_table(files["train"], columns)
        if columns is None:
            columns = name_columns(training, files["train"])
            notes.append(f"Columns were named by what is in them: {', '.join(columns)}.")
        for split, file in files.items():
            table = training if split == "train" else read_table(file, columns)
            splits[split], left_out = named(table, columns, file.name)
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
                f"name with '{IGNORED}' to skip it."
            )
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")
