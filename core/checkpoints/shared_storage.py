"""Folders that other machines need (training states, models), kept by name in one shared place.

`MRNLAB_ARTEFACTS` names the place: a folder, or any URL that fsspec knows (`s3://bucket/lab`, with its plugin
installed). Beside the files of a folder lies its list, `NAME.files.json`, with the size and SHA-256 of each.
It is removed first and written last, so that half a folder is never taken for a whole one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from core.checkpoints.sealed import Damaged, check_files, listed, sizes_and_hashes
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
    """Folders by name (`states/12/600`). Every method raises ArtefactError where the place fails.

    `url` is the place as it was given, credentials included; `place` is what messages show of it.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url if "://" in url else str(given_path(url).resolve())
        self.place = re.sub(r"//[^/@]*@", "//", self.url)
        try:
            self._files, root = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ArtefactError(
                f"MRNLAB_ARTEFACTS is {self.place}, which cannot be used here: {error}. Name a folder or an "
                "fsspec URL, and install the plugin of its kind (`pip install 'mrnlab[s3]'` for s3://)."
            ) from error
        self._root = root.rstrip("/")

    def push(self, folder: Path, name: str) -> None:
        """Upload all files of a folder under that name, in place of what was there."""
        target = self._path(name)
        files = listed(folder)
        if not files:
            raise ArtefactError(f"There is no file in {folder} to keep.")
        with self._errors(f"{name} cannot be written"):
            self._remove(target)
            for parent in {f"{target}/{path}".rpartition("/")[0] for path in files}:
                self._files.makedirs(parent, exist_ok=True)
            for path in files:
                self._files.put_file(str(folder / path), f"{target}/{path}")
            self._files.pipe_file(target + _LIST, json.dumps({"files": files}, indent=1).encode())

    def pull(self, name: str, folder: Path) -> bool:
        """Download what was pushed under that name, beside `folder` first, then in its place.

        False, and nothing changed, where there is none, or where it is not whole.
        """
        source = self._path(name)
        with self._errors(f"{name} cannot be read"):
            try:
                files = sizes_and_hashes(json.loads(self._files.cat_file(source + _LIST)))
            except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
                return False
            for path in files:
                _check(path)
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as beside:
                new = Path(beside, "new")
                try:
                    for path in files:
                        (new / path).parent.mkdir(parents=True, exist_ok=True)
                        self._files.get_file(f"{source}/{path}", str(new / path))
                    check_files(new, files)
                except (FileNotFoundError, Damaged):
                    return False
                _put_in_place(Path(beside), folder)
        return True

    def remove(self, name: str) -> None:
        """Remove what was pushed under that name, if anything was."""
        target = self._path(name)
        with self._errors(f"{name} cannot be removed"):
            self._remove(target)

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin so and are whole, sorted."""
        folder = prefix.rpartition("/")[0]
        with self._errors("its names cannot be listed"):
            self._files.invalidate_cache()  # another machine may have written since
            paths = self._files.find(self._path(folder) if folder else self._root)
        names = (path[len(self._root) + 1 : -len(_LIST)] for path in paths if path.endswith(_LIST))
        return sorted(name for name in names if name.startswith(prefix))

    def _remove(self, target: str) -> None:
        for path in (target + _LIST, target):
            with contextlib.suppress(FileNotFoundError):  # another machine may remove it meanwhile
                self._files.rm(path, recursive=True)

    def _path(self, name: str) -> str:
        _check(name)
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _errors(self, failure: str) -> Iterator[None]:
        try:
            yield
        except ArtefactError:
            raise
        except Exception as error:  # each plugin of fsspec raises kinds of its own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ArtefactError(
                f"The shared artefacts {self.place}: {failure} ({type(error).__name__}: {reason})."
            ) from error


def _put_in_place(beside: Path, folder: Path) -> None:
    """Rename `beside/new` to `folder`; what was there goes to `beside`. Others may do the same at once."""
    for attempt in range(100):
        with contextlib.suppress(FileNotFoundError):
            folder.rename(beside / f"old-{attempt}")
        try:
            (beside / "new").rename(folder)
        except OSError:
            if not folder.exists():
                raise
        else:
            return


def _check(name: str) -> None:
    """Raise ArtefactError where a name leads out of the place: names come from other machines too."""
    parts = name.split("/")
    if not name or name.startswith("/") or "\\" in name or ":" in name or {"..", "."} & set(parts):
        raise ArtefactError(f"'{name}' cannot name an artefact: it would lie outside of the shared place.")


class SharedFolders:
    """A run's states and its model in the shared place, for a machine that goes on with the run or shows it.

    Every method raises ArtefactError.
    """

    def __init__(self, place: Artefacts, run: str) -> None:
        self._place = place
        self._states, self._model = f"states/{run}/", f"models/{run}"

    def names(self) -> list[str]:
        """The states and best models that are whole in the place."""
        return [name.removeprefix(self._states) for name in self._place.names(self._states)]

    def push(self, folder: Path) -> None:
        """Upload a state or a best model, unless the place has it."""
        if folder.name not in self.names():
            self._place.push(folder, self._states + folder.name)

    def pull(self, folder: Path) -> None:
        """Download the state or best model of that name, where it is not here."""
        if not folder.exists():
            self._place.pull(self._states + folder.name, folder)

    def keep(self, names: Collection[str]) -> None:
        """Remove all states and best models but these."""
        for name in self.names():
            if name not in names:
                self._place.remove(self._states + name)

    def publish(self, folder: Path) -> None:
        """Upload the run's model, now that it has ended."""
        self._place.push(folder, self._model)

    def remove(self) -> None:
        """Remove everything of the run."""
        self.keep(())
        self._place.remove(self._model)


def model_folder(folder: Path) -> Path:
    """Where on this machine the model is that a run trained into `folder`, fetched from the shared place if
    another machine trained it; `folder` itself where there is none. Raises ArtefactError.
    """
    if folder.exists() or not folder.name.isdecimal():
        return folder
    here = checkpoint_dir(int(folder.name))
    if not here.exists() and (place := shared_artefacts()) is not None:
        place.pull(f"models/{folder.name}", here)
    return here if here.exists() else folder
