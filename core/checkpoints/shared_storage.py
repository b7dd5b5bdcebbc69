"""Sealed folders that other machines need (training states, models), kept by name in one shared place.

`MRNLAB_ARTEFACTS` names the place: a folder, or any URL that fsspec knows (`s3://bucket/lab`, with its plugin
installed). Beside a folder lies a copy of its list, `NAME.files.json`. It is removed first and written last,
so that half a folder is never taken for a whole one.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from core.checkpoints.sealed import MANIFEST, Damaged, beside, opened, verified
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
    """Sealed folders by name: `states/12/attempt-00001/step-00000600`, `models/12/attempt-00001`.

    Every method raises ArtefactError where the place fails. `url` is the place as it was given, credentials
    included; `shown_url` is the form in messages.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url if "://" in url else str(given_path(url).resolve())
        self.shown_url = re.sub(r"//[^/@]*@", "//", self.url)
        try:
            self._files, root = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ArtefactError(
                f"MRNLAB_ARTEFACTS is {self.shown_url}, which cannot be used here: {error}. Name a folder or "
                "an fsspec URL, and install the plugin of its kind (`pip install 'mrnlab[s3]'` for s3://)."
            ) from error
        self._root = root.rstrip("/")

    def push(self, folder: Path, name: str) -> None:
        """Upload a sealed folder under this name, in place of an earlier one."""
        target = self._path(name)
        with self._errors(f"{name} cannot be written"):
            self._remove(target)
            for path in (*opened(folder).files, MANIFEST):
                self._files.makedirs(f"{target}/{path}".rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(folder / path), f"{target}/{path}")
            self._files.put_file(str(folder / MANIFEST), target + _LIST)

    def pull(self, name: str, folder: Path) -> bool:
        """Download the folder of this name to `folder`, unless it is there.

        False, and nothing changed, where there is none, or where it is not whole.
        """
        source = self._path(name)
        if folder.exists():
            return True
        with self._errors(f"{name} cannot be read"), beside(folder) as new:
            if not self._files.exists(source + _LIST):
                return False
            try:
                self._files.get_file(f"{source}/{MANIFEST}", str(new / MANIFEST))
                for path in opened(new).files:
                    _check(path)
                    (new / path).parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(f"{source}/{path}", str(new / path))
                verified(new)
            except (FileNotFoundError, Damaged):
                return False
            try:
                new.rename(folder)
            except OSError:
                if not folder.exists():  # another process was faster
                    raise
        return True

    def remove(self, name: str) -> None:
        """Remove the folder of this name, if there is one."""
        target = self._path(name)
        with self._errors(f"{name} cannot be removed"):
            self._remove(target)

    def names(self, prefix: str = "") -> list[str]:
        """The names of whole folders with this prefix, sorted."""
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
                f"The shared artefacts {self.shown_url}: {failure} ({type(error).__name__}: {reason})."
            ) from error


def _check(name: str) -> None:
    """Raise ArtefactError where a name leads out of the place: names come from other machines too."""
    parts = name.split("/")
    if not name or name.startswith("/") or "\\" in name or ":" in name or {"..", "."} & set(parts):
        raise ArtefactError(f"'{name}' cannot name an artefact: it would lie outside of the shared place.")


def states_of(run: int | str) -> str:
    """The prefix of the names of a run's training states and best models."""
    return f"states/{run}/"


def model_of(run: int | str) -> str:
    """The prefix of the names of a run's models, one for each attempt that has published its own.

    Without attempts it is the name of an earlier version.
    """
    return f"models/{run}"


def forget_run(run_id: int) -> None:
    """Remove everything of a run from the shared place, if there is one. Raises ArtefactError."""
    if (shared := shared_artefacts()) is not None:
        for name in (*shared.names(states_of(run_id)), model_of(run_id)):
            shared.remove(name)


def model_folder(folder: Path) -> Path:
    """The folder on this machine of the model that a run trained into `folder`.

    It is fetched from shared storage if another machine trained it, and is `folder` itself where there is
    none. Raises ArtefactError.
    """
    if folder.exists() or not folder.name.isdecimal():
        return folder
    here = checkpoint_dir(int(folder.name))
    if not here.exists() and (shared := shared_artefacts()) is not None:
        model = model_of(folder.name)
        # The last attempt is the one that has succeeded; names of attempts are ordered as their numbers.
        for name in (*sorted(shared.names(f"{model}/"), reverse=True), model):
            if shared.pull(name, here):
                break
    return here if here.exists() else folder
