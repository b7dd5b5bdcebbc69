"""Artefacts that other machines need (training states, models): folders kept by name in one shared place.

`MRNLAB_ARTEFACTS` names the place: a folder, or any URL that fsspec knows (`s3://bucket/lab`, with its plugin
installed). Beside the files of a folder lies its list, `NAME.files.json`, with the size and SHA-256 of each.
It is removed first and written last, so that half a folder is never taken for a whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import ArtefactError
from core.paths import checkpoint_dir, given_path

_LIST = ".files.json"


def shared_artefacts() -> Artefacts | None:
    """The shared place that `MRNLAB_ARTEFACTS` names, or None where it names none.

    Raises ArtefactError where the name means nothing, or needs a plugin that is not installed.
    """
    chosen = os.environ.get("MRNLAB_ARTEFACTS")
    return Artefacts(chosen) if chosen else None


class Artefacts:
    """Folders by name (`states/12/600`). All of its methods raise ArtefactError where the place fails."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        if "://" not in url:
            url = str(given_path(url).resolve())
        # Credentials may stand in a URL; messages do without them.
        self.place = re.sub(r"//[^/@]*@", "//", url)
        self._url = url
        try:
            self._files, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ArtefactError(
                f"MRNLAB_ARTEFACTS is {self.place}, which cannot be used here: {error}. Name a folder or an "
                "fsspec URL, and install the plugin of its kind (`pip install 'mrnlab[s3]'` for s3://)."
            ) from error
        self._root = root.rstrip("/")

    @property
    def url(self) -> str:
        """The place as it was given, credentials included: what another machine is told."""
        return self._url

    def push(self, folder: Path, name: str) -> None:
        """Uploads all files of a folder under that name, in place of what was there."""
        target = self._path(name)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        if not paths:
            raise ArtefactError(f"There is no file in {folder} to keep.")
        with self._telling(f"{name} cannot be written"):
            self._remove(target)
            listed: dict[str, dict[str, Any]] = {}
            made: set[str] = set()
            for path in paths:
                inside = path.relative_to(folder).as_posix()
                remote = f"{target}/{inside}"
                parent = remote.rpartition("/")[0]
                if parent not in made:
                    self._files.makedirs(parent, exist_ok=True)
                    made.add(parent)
                listed[inside] = {"size": path.stat().st_size, "sha256": _sha256(path)}
                self._files.put_file(str(path), remote)
            self._files.pipe_file(target + _LIST, json.dumps({"files": listed}, indent=1).encode())

    def pull(self, name: str, folder: Path) -> bool:
        """Downloads what was pushed under that name, beside `folder` first, then in its place.

        False, and nothing changed, where there is none, or where it is not whole.
        """
        source = self._path(name)
        with self._telling(f"{name} cannot be read"):
            listed = self._listed(source)
            if listed is None:
                return False
            folder.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
            try:
                for inside, (size, digest) in listed.items():
                    local = beside / "new" / inside
                    local.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        self._files.get_file(f"{source}/{inside}", str(local))
                    except FileNotFoundError:
                        return False
                    if local.stat().st_size != size or _sha256(local) != digest:
                        return False
                _put_in_place(beside / "new", folder, beside)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        return True

    def remove(self, name: str) -> None:
        """Removes what was pushed under that name. None there is no error."""
        target = self._path(name)
        with self._telling(f"{name} cannot be removed"):
            self._remove(target)

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin so and are whole, sorted."""
        folder = prefix.rpartition("/")[0]
        with self._telling("its names cannot be listed"):
            # Some kinds remember listings; another machine may have written since.
            self._files.invalidate_cache()
            found = self._files.find(self._path(folder) if folder else self._root)
        names = (path[len(self._root) + 1 : -len(_LIST)] for path in found if path.endswith(_LIST))
        return sorted(name for name in names if name.startswith(prefix))

    def _remove(self, target: str) -> None:
        for path in (target + _LIST, target):
            # What another machine removes meanwhile is gone all the same.
            with contextlib.suppress(FileNotFoundError):
                self._files.rm(path, recursive=True)

    def _path(self, name: str) -> str:
        _check(name)
        return f"{self._root}/{name}"

    def _listed(self, source: str) -> dict[str, tuple[int, str]] | None:
        """Size and SHA-256 of each file of a folder; None where there is none, or its list is half."""
        try:
            told = json.loads(self._files.cat_file(source + _LIST))["files"]
            listed = {str(name): (int(one["size"]), str(one["sha256"])) for name, one in told.items()}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        for inside in listed:
            _check(inside)
        return listed

    @contextlib.contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except ArtefactError:
            raise
        except Exception as error:  # each plugin of fsspec raises kinds of its own
            told = " ".join(str(error).split()) or type(error).__name__
            raise ArtefactError(
                f"The shared artefacts {self.place}: {what} ({type(error).__name__}: {told})."
            ) from error


def _put_in_place(new: Path, folder: Path, aside: Path) -> None:
    """Renames `new` to `folder`; what was there goes aside."""
    for turn in itertools.count():
        with contextlib.suppress(FileNotFoundError):
            folder.rename(aside / f"old-{turn}")
        try:
            new.rename(folder)
        except OSError:
            if not folder.exists():
                raise
            # Another process has put the same there between the two.
        else:
            return


def _check(name: str) -> None:
    """Raises ArtefactError where a name leads out of the place: names come from other machines too."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or "\\" in name or ":" in name or {"..", "."} & set(name.split("/")):
        raise ArtefactError(f"'{name}' cannot name an artefact: it would lie outside of the shared place.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# A run's states and its model in the shared place, for a machine that goes on with the run or shows it.


class SharedFolders:
    """The folders of one run there, each under its own name. All methods raise ArtefactError."""

    def __init__(self, place: Artefacts, run: str) -> None:
        self._place = place
        self._states, self._model = f"states/{run}/", f"models/{run}"

    def names(self) -> list[str]:
        """The states and best models that are whole there."""
        return [name.removeprefix(self._states) for name in self._place.names(self._states)]

    def push(self, folder: Path) -> None:
        """A state or a best model. One of that name is not sent again."""
        if folder.name not in self.names():
            self._place.push(folder, self._states + folder.name)

    def pull(self, folder: Path) -> None:
        """The state or best model of that name, where it is there and not here."""
        if not folder.exists():
            self._place.pull(self._states + folder.name, folder)

    def keep(self, names: Collection[str]) -> None:
        """Removes all states and best models but these."""
        for name in self.names():
            if name not in names:
                self._place.remove(self._states + name)

    def publish(self, folder: Path) -> None:
        """The run's model, now that it has ended."""
        self._place.push(folder, self._model)

    def remove(self) -> None:
        """Everything of the run."""
        self.keep(())
        self._place.remove(self._model)


def model_folder(folder: Path) -> Path:
    """Where the model of a run is here that another machine may have trained into `folder`: fetched from the
    shared place if need be. `folder` itself where there is none. Raises ArtefactError.
    """
    if folder.exists() or not folder.name.isdecimal():
        return folder
    here = checkpoint_dir(int(folder.name))
    if not here.exists() and (place := shared_artefacts()) is not None:
        place.pull(f"models/{folder.name}", here)
    return here if here.exists() else folder
