"""Folders that are whole or not there: written beside, listed with sizes and hashes, then renamed.

The list is `manifest.json`: `files` has size and SHA-256 of every other file, `about` what the writer says of
the folder, and `sha256` is the hash of these two.
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
_FULL = (errno.ENOSPC, errno.EDQUOT)


class NoRoom(MRNLabError):
    """A folder does not fit on its disk: `needs` bytes in `folder`, where `free` bytes are free.

    `epoch` is that of the best model, where it is the best model that could not be saved.
    """

    def __init__(self, folder: Path, needs: int, free: int, epoch: int | None = None) -> None:
        message = (
            f"There is no space left for it: it needs {needs / 1e6:,.1f} MB in {folder}, where "
            f"{free / 1e6:,.1f} MB are free."
        )
        if epoch is not None:
            message = (
                f"The model of epoch {epoch}, the best so far, could not be saved. {message} Make room "
                "there, then resume the run."
            )
        super().__init__(message)
        self.folder, self.needs, self.free, self.epoch = folder, needs, free, epoch


class Damaged(Exception):
    """A folder is not as it was sealed; the message says in what, as the end of a sentence."""


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


def seal(folder: Path, about: Mapping[str, Any], needs: int, write: Callable[[Path], object]) -> Sealed:
    """Let `write` fill a new folder, and put it in place once all of it is on the disk.

    `needs`: about how many bytes. Raises NoRoom where the disk has fewer; nothing is left then.
    """
    # Checked before: a disk filled to its last byte would keep the store from writing too.
    if (free := _free(folder.parent)) < needs + _SPARE:
        raise NoRoom(folder.parent, needs, free)
    beside = folder.with_name(f"{folder.name}.new-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        write(beside)
        manifest = {"format": _FORMAT, "about": dict(about), "files": listed(beside)}
        text = json.dumps(manifest | {"sha256": _digest(manifest)}, ensure_ascii=False, indent=1)
        (beside / _MANIFEST).write_text(text, encoding="utf-8")
        for path in (*beside.rglob("*"), beside):
            _to_disk(path)
        shutil.rmtree(folder, ignore_errors=True)  # a damaged one of that name
        beside.rename(folder)
        _to_disk(folder.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        # safetensors hands the system's error number on in words.
        number = re.search(r"\(os error (\d+)\)", str(error))
        if (error.errno if isinstance(error, OSError) else number and int(number[1])) in _FULL:
            raise NoRoom(folder.parent, needs, _free(folder.parent)) from error
        raise
    return opened(folder)


def opened(folder: Path) -> Sealed:
    """The sealed folder as its list describes it. Raises Damaged where the list cannot be read."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
        digest = manifest.pop("sha256")
        files = sizes_and_hashes(manifest)
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
    check_files(folder, sealed.files)
    return sealed


def sizes_and_hashes(manifest: Any) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of each file in a parsed list. Raises KeyError, TypeError or AttributeError."""
    return {name: (file["size"], file["sha256"]) for name, file in manifest["files"].items()}


def check_files(folder: Path, files: Mapping[str, tuple[int, str]]) -> None:
    """Read every byte of these files. Raises Damaged where one is not of that size and hash."""
    for name, (size, digest) in files.items():
        path = folder / name
        try:
            same = path.stat().st_size == size and sha256(path) == digest
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}") from error
        if not same:
            raise Damaged(f"{name} is not as it was written")


def moved(sealed: Sealed, folder: Path) -> Sealed:
    """Rename a sealed folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    sealed.folder.rename(folder)
    _to_disk(folder.parent)
    return replace(sealed, folder=folder)


def listed(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of every file in the folder, by path within it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": sha256(path)}
        for path in paths
    }


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(manifest: Mapping[str, Any]) -> str:
    """The hash of a list of files, however its JSON is written."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _to_disk(path: Path) -> None:
    """Return once the file, or the names in the folder, would outlast a loss of power."""
    if path.is_dir() and os.name != "posix":
        return  # other systems open no folders
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _free(folder: Path) -> int:
    """Bytes free where that folder is, or will be made."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
