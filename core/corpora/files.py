"""Which files of a folder are its train, dev and test splits."""

from __future__ import annotations

import re
from pathlib import Path

from core.corpora.types import Split
from core.errors import CorpusError

__all__ = ["CONLLU", "EXTENSIONS", "find_splits", "split_of"]

CONLLU = ".conllu"
EXTENSIONS = (".conll", ".txt", ".tsv", ".iob", ".iob1", ".iob2", ".bio", ".col", CONLLU)
"""The endings by which a file is taken for annotated text."""

_SPLIT_WORDS: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "devel": "dev",
    "development": "dev",
    "valid": "dev",
    "val": "dev",
    "validation": "dev",
    "testa": "dev",
    "test": "test",
    "testb": "test",
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
