"""Folders that are whole or not there: written beside, listed with sizes and hashes, then renamed.

The list is `manifest.json`: `files` has size and SHA-256 of every other file, `about` what the writer says of
the folder, and `sha256` is the hash of these two.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.paths import ensure_disk_space

MANIFEST = "manifest.json"
UNFINISHED = ".new-"
"""The suffix of the temporary folder in which a folder is written."""
_FORMAT = 1


class Damaged(Exception):
    """A folder differs from its seal; the message names the file, as the end of a sentence."""


@dataclass(frozen=True)
class Sealed:
    """The content of a sealed folder: the writer's facts, size and hash of each file, the hash of all."""

    folder: Path
    about: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]
    digest: str

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def seal(folder: Path, about: Mapping[str, Any], needs: int, write: Callable[[Path], object]) -> Sealed:
    """Fill a new folder with `write`, then move it to `folder` once it is wholly on the disk.

    `needs`: about how many bytes. Raises NoRoom where the disk has fewer; nothing is left then.
    """
    with ensure_disk_space(folder.parent, needs), beside(folder) as new:
        write(new)
        files = {
            path.relative_to(new).as_posix(): {"size": path.stat().st_size, "sha256": _sha256(path)}
            for path in sorted(new.rglob("*"))
            if path.is_file()
        }
        manifest = {"format": _FORMAT, "about": dict(about), "files": files}
        text = json.dumps(manifest | {"sha256": digest_of(manifest)}, ensure_ascii=False, indent=1)
        (new / MANIFEST).write_text(text, encoding="utf-8")
        for path in (*new.rglob("*"), new):
            _to_disk(path)
        put_in_place(new, folder, new.parent)
    return opened(folder)


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A new folder on the same disk, to be filled and then renamed to `folder`.

    It is removed at the end of the block if it still exists; a process that is killed leaves a folder
    `NAME.new-…` behind.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=folder.name + UNFINISHED, dir=folder.parent, ignore_cleanup_errors=True
    ) as aside:
        new = Path(aside, "new")
        new.mkdir()
        yield new


def put_in_place(new: Path, folder: Path, aside: Path) -> None:
    """Rename `new` to `folder`; the folder that it replaces is moved into `aside`."""
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside / "replaced")
    new.rename(folder)
    _to_disk(folder.parent)


def opened(folder: Path) -> Sealed:
    """The sealed folder as its list describes it. Raises Damaged where the list cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        digest = manifest.pop("sha256")
        files = {name: (file["size"], file["sha256"]) for name, file in manifest["files"].items()}
        about = dict(manifest["about"])
    except OSError as error:
        raise Damaged(f"{MANIFEST} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{MANIFEST} is not as it was written") from error
    sizes_are_counts = all(type(size) is int and size >= 0 for size, _ in files.values())
    if digest != digest_of(manifest) or not sizes_are_counts:
        raise Damaged(f"{MANIFEST} is not as it was written")
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


def digest_of(manifest: Mapping[str, Any]) -> str:
    """The hash of a list of files, however its JSON is written."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _to_disk(path: Path) -> None:
    """Return once the file, or the names in the folder, would outlast a loss of power."""
    if path.is_dir() and os.name != "posix":
        return  # other systems open no folders
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
