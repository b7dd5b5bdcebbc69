"""A folder that says it is an export, by whomever: nothing of it is believed before it was looked at.

Only files that its list names are read, and of these no more than it says; their bytes are hashed while they
are read, so that what was checked is what is used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import MRNLabError
from jobs.transfer.tables import MOST_BYTES

__all__ = ["GivenExport"]

_MANIFEST = "manifest.json"
_PIECE = 1024**2
_MOST_FILES = 10_000
# By ending, how long a file may be; any other ending is refused. Weights are bounded by the disk.
_MOST = {
    **dict.fromkeys([".json", ".txt", ".md", ".jinja"], 256 * 1024**2),
    # Vocabularies of SentencePiece, and merges: data, not code.
    **dict.fromkeys([".model", ".spm", ".vocab"], 256 * 1024**2),
    ".parquet": MOST_BYTES,
    ".safetensors": 1024**4,
}
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".npz", ".joblib", ".msgpack", ".h5")


class _Listed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class _About(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    export: int


class _Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int
    about: _About
    files: dict[str, _Listed] = Field(max_length=_MOST_FILES)


class GivenExport:
    """Such a folder, its list read and checked. All of its methods raise MRNLabError, in one sentence."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise MRNLabError(f"There is no folder {folder} to import.")
        try:
            text = self._read(_MANIFEST, _MOST[".json"])
            self._files = _Manifest.model_validate_json(text).files
        except FileNotFoundError:
            raise MRNLabError(
                f"{folder} is not an export of MRN Lab: it has no {_MANIFEST}. `mrnlab export RUN DIR` "
                "makes one."
            ) from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "its JSON"
            raise self.refused(f"{_MANIFEST} is not one of an export ({where}: {first['msg']})") from error
        for name, listed in self._files.items():
            self._look_at(name, listed)
        self._look_for_pickles()
        total = sum(listed.size for listed in self._files.values())
        self.size = total

    def refused(self, why: str) -> MRNLabError:
        """Why nothing of the folder is taken in."""
        return MRNLabError(f"{self.folder} is not imported: {why}. Nothing was changed.")

    def names(self, folder: str = "") -> list[str]:
        """The files that the list names, of that folder or of all."""
        return sorted(name for name in self._files if name.startswith(folder))

    def read(self, name: str) -> bytes:
        """The bytes of a file, checked against the list."""
        if name not in self._files:
            raise self.refused(f"it has no {name}")
        content = self._read(name, self._files[name].size)
        self._check(name, hashlib.sha256(content).hexdigest(), len(content))
        return content

    def copy(self, name: str, target: Path) -> None:
        """Copies a file, and checks what was copied."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            self._check(name, *self._through(name, file.write))

    def verify(self, name: str) -> None:
        """Reads a file through and checks it."""
        self._check(name, *self._through(name, len))

    def check_room(self, place: Path) -> None:
        """Raises MRNLabError where the disk of that folder has no room for all of it."""
        free = shutil.disk_usage(place).free
        if self.size > 0.9 * free:
            raise self.refused(f"it takes {self.size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free")

    def _look_at(self, name: str, listed: _Listed) -> None:
        """Whether a listed file lies inside, is a plain file of the size it should have, and no code."""
        path = PurePosixPath(name)
        odd = {"..", ".", ""} & set(name.split("/")) or "\\" in name or ":" in name or "\0" in name
        if path.is_absolute() or odd or len(name) > 500:
            raise self.refused(f"its list names '{name[:80]}', which leads out of the folder")
        if path.suffix.lower() in _PICKLES:
            raise self.refused(f"{name} may be a pickle, which can run code when it is read")
        if path.suffix.lower() not in _MOST:
            raise self.refused(f"{name} is a kind of file that no export holds")
        for part in (path, *path.parents[:-1]):
            try:
                mode = (self.folder / part).lstat().st_mode
            except OSError:
                raise self.refused(f"{name} is missing") from None
            if stat.S_ISLNK(mode):
                raise self.refused(f"{part} is a link, which may lead anywhere")
            if not (stat.S_ISREG(mode) if part == path else stat.S_ISDIR(mode)):
                raise self.refused(f"{part} is no plain file")
        size = (self.folder / path).lstat().st_size
        if size != listed.size:
            raise self.refused(f"{name} has {size:,} bytes, not the {listed.size:,} of the list")
        if size > _MOST[path.suffix.lower()]:
            raise self.refused(f"{name} has {size / 1e6:,.0f} MB, more than such a file of an export has")

    def _look_for_pickles(self) -> None:
        """Those that the list does not name would never be read; whoever put them there meant no good."""
        for _, _, names in os.walk(self.folder):
            for name in names:
                if name.lower().endswith((".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt")):
                    raise self.refused(f"it holds {name}, which may be a pickle, and no export does")

    def _read(self, name: str, most: int) -> bytes:
        pieces: list[bytes] = []
        self._through(name, pieces.append, most)
        return b"".join(pieces)

    def _through(
        self, name: str, take: Callable[[bytes], object], most: int | None = None
    ) -> tuple[str, int]:
        """Gives a file to `take` piece by piece; its hash and size. No link is followed at its end."""
        most = self._files[name].size if most is None else most
        digest, size = hashlib.sha256(), 0
        # Without waiting: a pipe in place of the file would be waited for until somebody writes into it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self.folder / name, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self.refused(f"{name} cannot be read ({error.strerror})") from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self.refused(f"{name} is no plain file")
            while piece := file.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise self.refused(f"{name} has more than {most:,} bytes")
                digest.update(piece)
                take(piece)
        return digest.hexdigest(), size

    def _check(self, name: str, digest: str, size: int) -> None:
        listed = self._files[name]
        if (digest, size) != (listed.sha256, listed.size):
            raise self.refused(f"{name} is not as it was exported (its SHA-256 differs)")
