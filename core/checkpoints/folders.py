"""The folders of one run: its model, and while it trains its best model so far and its last training states.

    checkpoints/7/                     the model, once the run has ended well
    checkpoints/7.states/
        best-00000100/                 the best model so far, of the epoch that ended at step 100
        step-00000120/                 a training state; its list names the best model that belongs to it

Each is sealed (`core.checkpoints.sealed`), and a folder goes only once no state names it. So wherever a
process is killed, a state that is found whole has its best model beside it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from core.checkpoints.sealed import Damaged, Sealed, moved, opened, seal, verified
from core.checkpoints.shared_storage import Artefacts, SharedFolders
from core.errors import ArtefactError, DataChanged
from core.settings import seconds

_DEFAULT_S = 60.0
_KEPT = 2
_SHARE = 0.05
"""At most this share of the time goes into saving states."""

_STATE, _BEST = re.compile(r"step-\d{8,}"), re.compile(r"best-\d{8,}")

_log = logging.getLogger(__name__)


def checkpoint_seconds() -> float:
    """`MRNLAB_CHECKPOINT_S`, else 60. Raises MRNLabError where the setting is no such number."""
    return seconds("MRNLAB_CHECKPOINT_S")


class Checkpoint:
    """What one run keeps on disk.

    `recorded` is the last step whose metrics are on record; states beyond it would leave a gap and are not
    taken up (0: the run begins anew). `settle` returns once all that was told so far is on record, and is
    called before a state is written. `every_s` seconds at least lie between two states, and more where saving
    would else take more than a twentieth of the time. What is saved is also kept in the `shared` place.
    """

    def __init__(
        self,
        folder: Path,
        *,
        recorded: int = 0,
        every_s: float = _DEFAULT_S,
        settle: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        shared: Artefacts | None = None,
    ) -> None:
        self.folder = folder
        self._states = folder.with_name(folder.name + ".states")
        self._recorded, self._every_s, self._settle, self._clock = recorded, every_s, settle, clock
        self._due_at = clock() + every_s
        self._shared = None if shared is None else SharedFolders(shared, folder.name)
        self._share_failed = False
        self._of = ""
        self._tell: Callable[[str], None] = _log.warning
        self._best: Sealed | None = None

    @property
    def resumes(self) -> bool:
        """Whether a former attempt has left something on record."""
        return self._recorded > 0

    def resume(self, of: str, tell: Callable[[str], None]) -> Path | None:
        """The folder of the newest training state of the run `of` that is whole; None where there is none.

        Newer ones go. `tell` is told of states that are passed over, and later of what cannot be shared.
        Raises DataChanged where the newest is of another run, ArtefactError where the shared place fails.
        """
        self._of, self._tell = of, tell
        found = self._newest_first()
        if self._shared is not None and self.resumes:
            here = {path.name for path in found}
            there = [name for name in self._shared.names() if _STATE.fullmatch(name) and name not in here]
            found = sorted([*found, *(self._states / name for name in there)], reverse=True)
        while found and not self._usable(found[0]):
            found.pop(0)
        self._keep_shared(self._keep(found))
        self._due_at = self._clock() + self._every_s
        return found[0] if found else None

    def _usable(self, folder: Path) -> bool:
        """Whether training can go on from that state; its best model is the best so far then."""
        step = int(folder.name.rpartition("-")[2])
        if step > self._recorded:
            return False
        try:
            self._fetch(folder.name)
            about = verified(folder).about
            if about["of"] != self._of:
                raise DataChanged(
                    "The data or the description of this run is not what it was when it was begun. Retry it, "
                    "to train it from its beginning."
                )
            self._best = None if about["best"] is None else self._named_best(**about["best"])
        except (Damaged, KeyError, TypeError) as error:
            self._tell(f"The training state of step {step:,} is passed over: {error}.")
            return False
        return True

    def _named_best(self, folder: str, digest: str) -> Sealed:
        """The best model that a state names; it has its place already where a worker died just after that."""
        if _BEST.fullmatch(folder):
            self._fetch(folder)
        for place in (self._states / folder, self.folder):
            try:
                sealed = verified(place)
            except Damaged:
                continue
            if sealed.digest == digest:
                return sealed
        raise Damaged("its best model is not whole")

    @property
    def due(self) -> bool:
        """Whether it is time for a training state."""
        return self._clock() >= self._due_at

    def save_state(self, step: int, needs: int, write: Callable[[Path], None]) -> int:
        """Seals the training state of that step, of about `needs` bytes; how many they were.

        Raises NoRoom, and tries again no sooner than the next is due; what `settle` raises.
        """
        began = self._clock()
        self._due_at = math.inf
        try:
            self._settle()
            best = self._best and {"folder": self._best.folder.name, "digest": self._best.digest}
            about = {"of": self._of, "step": step, "best": best}
            state = seal(self._states / f"step-{step:08d}", about, needs, write)
            self._share(state.folder)
            self._keep_shared(self._keep(self._newest_first()))
        finally:
            now = self._clock()
            self._due_at = now + max(self._every_s, (now - began) * (1 - _SHARE) / _SHARE)
        return state.size

    def save_best(self, step: int, needs: int, write: Callable[[Path], None]) -> None:
        """Seals the best model so far. Raises NoRoom."""
        self._best = seal(self._states / f"best-{step:08d}", {"of": self._of, "step": step}, needs, write)
        self._keep(self._newest_first())

    @property
    def best(self) -> Path:
        """The folder of the best model so far. Raises ValueError where none was saved."""
        if self._best is None:
            raise ValueError("no best model was saved")
        return self._best.folder

    def publish(self) -> None:
        """Puts the best model in the run's folder. All that was told is on record then."""
        self._settle()
        if self._best is not None and self.best != self.folder:
            self._best = moved(self._best, self.folder)
        self._share(self.best)

    def forget_states(self) -> None:
        """Removes the training states: the run has ended well."""
        shutil.rmtree(self._states, ignore_errors=True)
        self._keep_shared(())

    def _fetch(self, name: str) -> None:
        if self._shared is not None:
            self._shared.pull(self._states / name)

    def _share(self, folder: Path) -> None:
        """Sends a state, its best model before it, or the run's model. That it failed is told once."""
        if self._shared is None:
            return
        try:
            if folder == self.folder:
                self._shared.publish(folder)
                return
            if self._best is not None and self._best.folder != self.folder:
                self._shared.push(self._best.folder)
            self._shared.push(folder)
            self._share_failed = False
        except ArtefactError as error:
            if not self._share_failed:
                self._tell(f"{error} Until that is mended no other machine can go on with this run.")
            self._share_failed = True

    def _keep_shared(self, names: Collection[str]) -> None:
        if self._shared is None:
            return
        try:
            self._shared.keep(names)
        except ArtefactError as error:
            _log.warning("%s What is not needed any more stays there.", error)

    def _newest_first(self) -> list[Path]:
        """The folders of training states."""
        found = self._states.iterdir() if self._states.is_dir() else ()
        return sorted((path for path in found if _STATE.fullmatch(path.name)), reverse=True)

    def _keep(self, states: Sequence[Path]) -> set[str]:
        """Removes all but the first of these states, the best models that they name, and the best so far; the
        names of those.
        """
        kept = {state.name for state in states[:_KEPT]}
        for state in states[:_KEPT]:
            with contextlib.suppress(Damaged, KeyError, TypeError):  # no best yet, or one that cannot be read
                kept.add(opened(state).about["best"]["folder"])
        if self._best is not None:
            kept.add(self._best.folder.name)
        for path in self._states.iterdir() if self._states.is_dir() else ():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        return kept
