"""Where the files of a corpus are, and whether they are still the same."""

from __future__ import annotations

import os
from pathlib import Path

from core.corpora.catalogue import CATALOGUE
from core.corpora.files import find_splits
from core.errors import CorpusError
from core.paths import data_dir, may_read

__all__ = ["find_folder", "fingerprint", "is_local", "local_folders", "locate"]


def locate(name: str) -> Path:
    """The folder of that name: as it stands, else under MRNLAB_DATA.

    Raises CorpusError where there is none.
    """
    folder = find_folder(name)
    if folder is None and not may_read(name):
        raise CorpusError(
            f"'{name}' lies outside of the folders that this laboratory reads; MRNLAB_DATA_ROOTS names them."
        )
    if folder is None:
        raise CorpusError(
            f"There is no corpus '{name}': it is neither a folder here nor one of {', '.join(CATALOGUE)}."
        )
    return folder


def find_folder(name: str) -> Path | None:
    """As `locate`, but None where there is no such folder."""
    # Of os.path, whose functions raise nothing, whatever a name holds.
    places = [os.path.expanduser(name)]
    if (data := data_dir()) is not None:
        places.append(os.path.join(data, name))
    return next((Path(place) for place in places if may_read(place) and os.path.exists(place)), None)


def local_folders(name: str) -> list[Path]:
    """The folders under MRNLAB_DATA that a corpus of the catalogue is read from, those that are there."""
    data = data_dir()
    if data is None:
        return []
    return [data / part for part in CATALOGUE[name].hub_folders if (data / part).is_dir()]


def is_local(name: str) -> bool:
    """Whether a corpus of the catalogue, or a folder, can be read without the network."""
    return name not in CATALOGUE or len(local_folders(name)) == len(CATALOGUE[name].hub_folders)


def fingerprint(name: str) -> tuple[str, ...]:
    """Names, sizes and times of the files that a corpus of the catalogue or a folder is read from.

    None of them for one that is made here or comes from the Hub. Raises CorpusError as `locate` does.
    """
    folders = local_folders(name) if name in CATALOGUE else [locate(name)]
    found = []
    for folder in folders:
        for path in find_splits(folder).values():
            stat = path.stat()
            found.append(f"{path}:{stat.st_size}:{stat.st_mtime_ns}")
    return tuple(found)
