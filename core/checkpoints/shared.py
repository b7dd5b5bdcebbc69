"""A run's states and its model in the shared place, for a machine that goes on with the run or shows it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from core.artefacts import Artefacts, shared_artefacts
from core.paths import checkpoint_dir

__all__ = ["SharedFolders", "model_folder"]


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
