"""A folder of split files as a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from core.corpora.assembly import SPLITS, assemble
from core.corpora.columns import TOKENS, named, read_table
from core.corpora.conllu import ONLY_TASKS, read_conllu
from core.corpora.detection import name_several
from core.corpora.files import CONLLU, find_splits
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError

__all__ = ["read_folder"]


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
            splits[split], said = read_conllu(files[split])
            notes += said
        notes.append(ONLY_TASKS)
    else:
        if columns is not None:
            _check_names(columns)
        training = read_table(files["train"], columns)
        if columns is None:
            columns = name_several(training, files["train"])
            notes.append(f"Columns were named by what is in them: {', '.join(columns)}.")
        for split in order:
            table = training if split == "train" else read_table(files[split], columns)
            splits[split], said = named(table, columns, files[split].name)
            notes += said
    return assemble(name or folder.name, splits, notes, tag_lists)


def _check_names(columns: Sequence[str]) -> None:
    if TOKENS not in columns:
        raise CorpusError(f"One of the columns must be named '{TOKENS}'; they are {', '.join(columns)}.")
    for name in columns:
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")
