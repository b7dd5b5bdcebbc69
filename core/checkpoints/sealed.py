"""Folders that are whole or not there: written beside, listed with sizes and hashes, then renamed.

The list is `manifest.json`: `files` has size and SHA-256 of every other file, `about` what the writer says,
`sha256` is the hash of these two.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from core.errors import MRNLabError

_MANIFEST = "manifest.json"
_FORMAT = 1
_SPARE = 1_000_000  # bytes left free: the store may lie on the same disk, and must go on writing


class NoRoom(MRNLabError):
    """A folder that does not fit on its disk. The message says how much is needed where."""


class Damaged(Exception):
    """A folder that is not as it was sealed; the message says in what, as the end of a sentence."""


@dataclass(frozen=True)
class Sealed:
    """A sealed folder: what its writer says of it, size and hash of each file, the hash of all that."""

    folder: Path
    about: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]
    digest: str

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(size for size, _ in self.files.values())


def seal(folder: Path, about: Mapping[str, Any], needs: int, write: Callable[[Path], None]) -> Sealed:
    """Has `write` fill a new folder, and puts it in place once all of it is on the disk.

    `needs`: about how many bytes. Raises NoRoom where the disk has not so many; nothing is left then.
    """
    free = _free(folder.parent)
    # Looked at before: a disk filled to its last byte would keep the store from writing too.
    if free < needs + _SPARE:
        raise _no_room(folder.parent, needs, free)
    beside = folder.with_name(f"{folder.name}.new-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        write(beside)
        _list(beside, about)
        shutil.rmtree(folder, ignore_errors=True)  # one of that name that was found damaged
        beside.rename(folder)
        _to_disk(folder.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        if _says_full(error):
            raise _no_room(folder.parent, needs, _free(folder.parent)) from error
        raise
    return opened(folder)


def opened(folder: Path) -> Sealed:
    """The sealed folder as its list tells. Raises Damaged where that cannot be read."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        digest = manifest.pop("sha256")
        files = {name: (listed["size"], listed["sha256"]) for name, listed in manifest["files"].items()}
        about = dict(manifest["about"])
    except OSError as error:
        raise Damaged(f"{_MANIFEST} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{_MANIFEST} is not as it was written") from error
    if digest != _digest(manifest):
        raise Damaged(f"{_MANIFEST} is not as it was written")
    return Sealed(folder, about, files, digest)


def verified(folder: Path) -> Sealed:
    """The sealed folder, every byte of it read. Raises Damaged where it is not as it was sealed."""
    sealed = opened(folder)
    for name, (size, digest) in sealed.files.items():
        path = folder / name
        try:
            same = path.stat().st_size == size and _sha256(path) == digest
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}") from error
        if not same:
            raise Damaged(f"{name} is not as it was written")
    return sealed


def moved(sealed: Sealed, folder: Path) -> Sealed:
    """Renames a sealed folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    sealed.folder.rename(folder)
    _to_disk(folder.parent)
    return replace(sealed, folder=folder)


def _list(folder: Path, about: Mapping[str, Any]) -> None:
    """Writes the list of a folder's files. All of them are on the disk then."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in paths
    }
    manifest = {"format": _FORMAT, "about": dict(about), "files": files}
    text = json.dumps(manifest | {"sha256": _digest(manifest)}, ensure_ascii=False, indent=1)
    (folder / _MANIFEST).write_text(text, encoding="utf-8")
    for path in (*folder.rglob("*"), folder):
        _to_disk(path)


def _digest(manifest: Mapping[str, Any]) -> str:
    """The hash of a list of files, however its JSON is written."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _to_disk(path: Path) -> None:
    """Returns once the file, or the names in the folder, would outlast a loss of power."""
    if path.is_dir() and os.name != "posix":
        return  # other systems open no folders
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _free(folder: Path) -> int:
    """Bytes free where that folder is, or will be made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free


def _says_full(error: OSError | SafetensorError) -> bool:
    """Whether the disk, or a quota, had no room; safetensors hands the system's number on in words."""
    full = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError):
        return error.errno in full
    return any(re.search(rf"\(os error {number}\)", str(error)) for number in full)


def _no_room(folder: Path, needs: int, free: int) -> NoRoom:
    return NoRoom(
        f"There is no space left for it: it needs {needs / 1e6:,.1f} MB in {folder}, where "
        f"{free / 1e6:,.1f} MB are free."
    )
