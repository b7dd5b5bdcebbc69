"""The folders of one run: its model, and while it trains its best model so far and its last training states.

    checkpoints/7/                     the model, once the run has ended well
    checkpoints/7.states/
        best-00000100/                 the best model so far, of the epoch that ended at step 100
        step-00000120/                 a training state; its list names the best model that belongs to it

Each is sealed (`core.checkpoints.sealed`), and a folder goes only once no state names it. So wherever a
process is killed, a state that is found whole has its best model beside it. Half-written folders that it
leaves are removed when the run is claimed again, those of states also with the next state.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from core.checkpoints.sealed import UNFINISHED, Damaged, Sealed, opened, put_in_place, seal, verified
from core.checkpoints.shared_storage import Artefacts, model_of, states_of
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

    `recorded` is the last step whose metrics are on record; later states would leave a gap and are not taken
    up (0: the run begins anew). `settle`, called before a state is written, returns once all events so far
    are on record. At least `every_s` seconds lie between two states, more where saving would otherwise take
    more than a twentieth of the time. What is saved is also kept in the `shared` place.
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
        self._shared, self._shared_states = shared, states_of(folder.name)
        self._share_failed = False
        self._identity = ""
        self._note: Callable[[str], None] = _log.warning
        self._best: Sealed | None = None

    @property
    def resumes(self) -> bool:
        """Whether a former attempt has left something on record."""
        return self._recorded > 0

    def resume(self, identity: str, note: Callable[[str], None]) -> Path | None:
        """The folder of the newest whole training state; None where there is none. Newer states go.

        `identity` is the hash of the run's description and data. `note` receives sentences on states that are
        passed over, and later on what cannot be shared.
        Raises DataChanged where the newest is of another identity, ArtefactError where the place fails.
        """
        self._identity, self._note = identity, note
        for unfinished in self.folder.parent.glob(f"{self.folder.name}{UNFINISHED}*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        names = {path.name for path in self._newest_first()}
        if self._shared is not None and self.resumes:
            shared = self._shared.names(self._shared_states)
            names |= {name.removeprefix(self._shared_states) for name in shared}
        states = [self._states / name for name in sorted(names, reverse=True) if _STATE.fullmatch(name)]
        while states and not self._usable(states[0]):
            states.pop(0)
        self._keep_shared(self._keep(states))
        self._due_at = self._clock() + self._every_s
        return states[0] if states else None

    def _usable(self, folder: Path) -> bool:
        """Whether training can resume from that state; its best model is the best so far then."""
        step = int(folder.name.rpartition("-")[2])
        if step > self._recorded:
            return False
        try:
            self._fetch(folder.name)
            about = verified(folder).about
            if about["of"] != self._identity:
                raise DataChanged(
                    "The data or the description of this run is not what it was when it was begun. Retry it, "
                    "to train it from its beginning."
                )
            self._best = None if about["best"] is None else self._named_best(**about["best"])
        except (Damaged, KeyError, TypeError) as error:
            self._note(f"The training state of step {step:,} is skipped: {error}.")
            return False
        return True

    def _named_best(self, folder: str, digest: str) -> Sealed:
        """The best model that a state names; published already where a worker died just after that."""
        if _BEST.fullmatch(folder):
            self._fetch(folder)
        for place in (self._states / folder, self.folder):
            with contextlib.suppress(Damaged):
                if (sealed := verified(place)).digest == digest:
                    return sealed
        raise Damaged("its best model is not whole")

    @property
    def due(self) -> bool:
        """Whether it is time for a training state."""
        return self._clock() >= self._due_at

    def save_state(self, step: int, needs: int, write: Callable[[Path], object]) -> int:
        """Seal the training state of that step, of about `needs` bytes; return its bytes. Raises NoRoom."""
        began = self._clock()
        self._due_at = math.inf
        try:
            self._settle()
            best = self._best and {"folder": self._best.folder.name, "digest": self._best.digest}
            about = {"of": self._identity, "step": step, "best": best}
            state = seal(self._states / f"step-{step:08d}", about, needs, write)
            self._share(state.folder)
            self._keep_shared(self._keep(self._newest_first()))
        finally:
            now = self._clock()
            self._due_at = now + max(self._every_s, (now - began) * (1 - _SHARE) / _SHARE)
        return state.size

    def save_best(self, step: int, needs: int, write: Callable[[Path], None]) -> None:
        """Seal the best model so far. Raises NoRoom."""
        self._best = seal(
            self._states / f"best-{step:08d}", {"of": self._identity, "step": step}, needs, write
        )
        self._keep(self._newest_first())

    @property
    def best(self) -> Path:
        """The folder of the best model so far. Raises ValueError where none was saved."""
        if self._best is None:
            raise ValueError("no best model was saved")
        return self._best.folder

    def publish(self) -> None:
        """Put the best model in the run's folder, once all events are on record."""
        self._settle()
        if self._best is not None and self.best != self.folder:
            put_in_place(self.best, self.folder)
            self._best = replace(self._best, folder=self.folder)
        self._share(self.best)

    def forget_states(self) -> None:
        """Remove the training states: the run has ended well."""
        shutil.rmtree(self._states, ignore_errors=True)
        self._keep_shared(())

    def _fetch(self, name: str) -> None:
        if self._shared is not None:
            self._shared.pull(self._shared_states + name, self._states / name)

    def _share(self, folder: Path) -> None:
        """Upload a state after its best model, or the run's model. A failure is noted once."""
        if self._shared is None:
            return
        try:
            if folder == self.folder:
                self._shared.push(folder, model_of(folder.name))
                return
            best = () if self._best is None or self.best == self.folder else (self.best,)
            shared = self._shared.names(self._shared_states)
            for new in (*best, folder):
                if (name := self._shared_states + new.name) not in shared:
                    self._shared.push(new, name)
            self._share_failed = False
        except ArtefactError as error:
            if not self._share_failed:
                self._note(f"{error} Until this is fixed no other machine can resume this run.")
            self._share_failed = True

    def _keep_shared(self, names: Collection[str]) -> None:
        if self._shared is None:
            return
        try:
            self._shared.keep(self._shared_states, names)
        except ArtefactError as error:
            _log.warning("%s What is not needed any more stays there.", error)

    def _newest_first(self) -> list[Path]:
        """The folders of training states."""
        return sorted((path for path in self._states.glob("*") if _STATE.fullmatch(path.name)), reverse=True)

    def _keep(self, states: Sequence[Path]) -> set[str]:
        """Remove all but the newest states, their best models and the best so far; the names of those."""
        kept = {state.name for state in states[:_KEPT]}
        for state in states[:_KEPT]:
            with contextlib.suppress(Damaged, KeyError, TypeError):  # no best yet, or one that cannot be read
                kept.add(opened(state).about["best"]["folder"])
        if self._best is not None:
            kept.add(self._best.folder.name)
        for path in self._states.glob("*"):
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        return kept
