"""A folder as a corpus: the files of its splits, their formats, and the content of their columns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from core.corpora.assembly import SPLITS
from core.corpora.readers.conll_names import ColumnProposal
from core.corpora.readers.files import columns_of_file, read_splits, split_in, split_of
from core.corpora.readers.unread import check_files, check_folders, parallel_files
from core.corpora.types import Corpus, Split
from core.errors import CorpusError
from core.paths import upload_dir
from core.plain_text import shortened

_MOST_NAMES = 10_000
_PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
"""The endings of compressed files."""
_PART = re.compile(r"-\d+-of-\d+")


def _unread(folder: Path, files: Mapping[Split, Path]) -> list[str]:
    """Notes on files named as a missing split, with an ending that is not read."""
    read = {split_of(path.name) for path in files.values()}
    unread = [
        (path, split)
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".") and split_of(path.name) is None
        if (split := split_in(path.name.lower())) is not None and split not in read
    ]
    return [
        f"{path.name} was left out: files that end in '{path.suffix}' are not read. {_advice(path, split)}, "
        f"to have it as the {split} split."
        for path, split in unread
    ]


def _advice(path: Path, split: Split) -> str:
    """What to do with a file whose ending is not read."""
    if path.suffix.lower() in _PACKED:
        return "Unpack it"
    if path.suffix.lower() == ".conllup":
        return f"Write its columns of words and labels as {split}.conll"
    return f"Rename it to {split}.conll, or the like"


def find_splits(folder: Path) -> dict[Split, Path]:
    """The files of the splits. Raises CorpusError as `splits_of`, and without the folder."""
    if not folder.exists():
        raise CorpusError(f"There is no folder {folder}; check the name.")
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file; name the folder that holds the train and test files.")
    paths = sorted(folder.iterdir())
    names = [path.name for path in paths if path.is_file()]
    check_files(names, str(folder))
    if "train" not in map(split_of, names):
        check_folders(_split_folders(paths), str(folder))
    return {split: folder / name for split, name in splits_of(names, str(folder)).items()}


def _split_folders(paths: Iterable[Path]) -> dict[str, list[str]]:
    """The folders among these paths that are named as splits, with the names in them; none without train."""
    folders = {path: split_in(path.name.lower()) for path in paths if path.is_dir() and not path.is_symlink()}
    if "train" not in folders.values():
        return {}
    return {path.name: _names_in(path) for path, split in folders.items() if split}


def _names_in(folder: Path) -> list[str]:
    """The first names in a folder; none of one that cannot be read, whose own name is enough to refuse it."""
    try:
        return sorted(each.name for each in islice(folder.iterdir(), _MOST_NAMES))
    except OSError:
        return []


def splits_of(names: Iterable[str], location: str) -> dict[Split, str]:
    """The split files among files of these names; `location` names their folder in an error.

    Where no file is the test split, that of dev is, and there is no dev split. Raises CorpusError where train
    or both of these are missing, or two files claim one split.
    """
    files: dict[Split, str] = {}
    others: list[str] = []
    for name in names:
        split = split_of(name)
        if split is None:
            others.append(name)
        if split is not None and split in files:
            if _PART.search(name) and _PART.sub("", name) == _PART.sub("", files[split]):
                raise CorpusError(
                    f"{location}: {files[split]} and {name} are parts of the {split} split; name the folder "
                    "hub:FOLDER, which reads all parts, or write them into one file."
                )
            raise CorpusError(
                f"{location}: both {files[split]} and {name} could be the {split} split; "
                f"{parallel_files([files[split], name])}."
            )
        if split is not None:
            files[split] = name
    if "test" not in files and "dev" in files:
        files["test"] = files.pop("dev")
    needed_splits: tuple[Split, ...] = ("train", "test")
    for needed in needed_splits:
        if needed not in files:
            unread = [Path(name) for name in others if split_in(name.lower()) == needed]
            packed = [path.name for path in unread if path.suffix.lower() in _PACKED]
            advice = (
                f"unpack {packed[0]}."
                if packed
                else f"expected {needed}.conll, {needed}.conllu or a like name."
            )
            if unread and not packed:
                path = unread[0]
                advice += f" {path.name} is not read for its ending '{path.suffix}'. {_advice(path, needed)}."
            raise CorpusError(f"{location} has no {needed} file; {advice}")
    return {split: files[split] for split in SPLITS if split in files}


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
    return columns_of_file(path)


def read_folder(
    folder: Path,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Corpus:
    """The corpus in that folder, as `read_splits` reads its files."""
    text_task, files = name or corpus_name(folder), find_splits(folder)
    notes = _unread(folder, files)
    return read_splits(files, str(folder), name or folder.name, text_task, columns, tag_lists, notes)


def corpus_name(folder: Path) -> str:
    """The name of the corpus in a folder: the folder's, for an upload without its hash."""
    path = folder.resolve()
    return path.name.rpartition("-")[0] if path.parent == upload_dir().resolve() else path.name
