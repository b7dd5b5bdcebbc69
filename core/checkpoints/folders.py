"""The folders of one run: its model, and while it trains its best model so far and its last training states.

    checkpoints/7/                     the model, once the run has ended well
    checkpoints/7.states/
        attempt-00002/                 all that the second attempt, one claim of the run, keeps
            best-00000100/             the best model so far, of the epoch that ended at step 100
            step-00000120/             a training state; its list names the best model that belongs to it

Each is sealed (`core.checkpoints.sealed`), and a folder goes only once no state names it. So wherever a
process is killed, a state that is found whole has its best model beside it. Half-written folders that it
leaves are removed when the run is claimed again, those of states also with the next state.

A worker that was given up may only have been asleep, and may wake up at any moment. So an attempt moves and
removes nothing but what lies in its own folder, and first moves there what it takes from elsewhere: the
folders of earlier attempts when it begins, a model that one of them had published. From then on a rename by
one of these finds its source or its target gone, and it fails. The model is published by a rename out of the
attempt's folder. An attempt that was itself given up may make its folder anew; so it asks the store whether
it still owns the run between that and each rename from or to a place outside.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
_ATTEMPT = re.compile(r"attempt-(\d{5,})")

_log = logging.getLogger(__name__)


def checkpoint_seconds() -> float:
    """The seconds between training states: `MRNLAB_CHECKPOINT_S`, else 60.

    Raises MRNLabError where the setting is not a number of seconds.
    """
    return seconds("MRNLAB_CHECKPOINT_S")


class Checkpoint:
    """The checkpoint folder of one run.

    `attempt` is that of the claim (`Run.attempt`). `recorded` is the last step whose metrics are on record;
    later states would leave a gap and are not taken up (0: the run begins anew). `settle` returns once all
    events so far are on record, and raises NotOwner where the run is no longer this attempt's. At least
    `every_s` seconds lie between two states, more where saving would otherwise take more than a twentieth of
    the time. What is saved is also kept in the `shared` place.
    """

    def __init__(
        self,
        folder: Path,
        *,
        attempt: int = 1,
        recorded: int = 0,
        every_s: float = _DEFAULT_S,
        settle: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        shared: Artefacts | None = None,
    ) -> None:
        self.folder = folder
        self._states = folder.with_name(folder.name + ".states")
        self._attempt = attempt
        self._own = self._states / _name(attempt)
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

    @property
    def saved_step(self) -> int | None:
        """The step of the newest training state on this disk, of any attempt, that may be resumed.

        Its bytes are not checked.
        """
        names = (path.name for path in self._states.rglob("step-*") if _STATE.fullmatch(path.name))
        steps = (int(name.rpartition("-")[2]) for name in names)
        return max((step for step in steps if step <= self._recorded), default=None)

    def resume(self, identity: str, note: Callable[[str], None]) -> Path | None:
        """The folder of the newest whole training state; None where there is none. Newer states go.

        `identity` is the hash of the run's description and data. `note` receives sentences on states that are
        passed over, and later on what cannot be shared.
        Raises DataChanged where the newest is of another identity, ArtefactError where the place fails,
        NotOwner as `settle`.
        """
        self._identity, self._note = identity, note
        self._take_over()
        saved = [*((path.name, None) for path in self._newest_first()), *self._shared_saves()]
        # Of the same step those that lie here come first.
        saved.sort(key=lambda state: (state[0], state[1] is None, state[1] or ""), reverse=True)
        while saved and not self._is_usable(*saved[0]):
            saved.pop(0)
        states = [self._own / name for name in dict.fromkeys(name for name, _ in saved)]
        self._keep_shared(self._keep(states))
        self._due_at = self._clock() + self._every_s
        return states[0] if states else None

    def _take_over(self) -> None:
        """Move the states and the published model of earlier attempts into this attempt's folder."""
        self._own.mkdir(parents=True, exist_ok=True)
        self._settle()
        for unfinished in self.folder.parent.glob(f"{self.folder.name}{UNFINISHED}*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        taken = Path(tempfile.mkdtemp(prefix="taken-", dir=self._own))
        for path in (*self._earlier(), self.folder):
            with contextlib.suppress(FileNotFoundError):
                path.rename(taken / path.name)
        # It was the best of the epoch that ended at its step. What was never sealed goes.
        with contextlib.suppress(Damaged, KeyError, ValueError):
            step = int(opened(taken / self.folder.name).about["step"])
            (taken / self.folder.name).rename(taken / f"best-{step:08d}")
        for path in sorted(taken.rglob("*-*")):
            target = self._own / path.name
            if (_STATE.fullmatch(path.name) or _BEST.fullmatch(path.name)) and not target.exists():
                path.rename(target)

    def _earlier(self) -> list[Path]:
        """The states of earlier attempts, or of a version without attempts."""
        return [path for path in self._states.glob("*") if _number(path.name) < self._attempt]

    def _shared_saves(self) -> list[tuple[str, str | None]]:
        """The states in shared storage, as pairs of a name and the prefix of its address."""
        if self._shared is None or not self.resumes:
            return []
        split = (name.rpartition("/") for name in self._shared.names(self._shared_states))
        return [(name, prefix + slash) for prefix, slash, name in split if _STATE.fullmatch(name)]

    def _is_usable(self, name: str, prefix: str | None) -> bool:
        """Whether training can resume from that state; its best model is the best so far then."""
        step = int(name.rpartition("-")[2])
        if step > self._recorded:
            return False
        try:
            self._fetch(name, prefix)
            about = verified(self._own / name).about
            if about["of"] != self._identity:
                raise DataChanged(self._own / name)
            self._best = None if about["best"] is None else self._named_best(prefix, **about["best"])
        except (Damaged, KeyError, TypeError) as error:
            self._note(f"The training state of step {step:,} is skipped: {error}.")
            return False
        return True

    def _named_best(self, prefix: str | None, folder: str, digest: str) -> Sealed:
        """The best model that a state names; its folder may have another name since."""
        best = self._best_with(digest)
        if best is None and _BEST.fullmatch(folder):
            self._fetch(folder, prefix)
            best = self._best_with(digest)
        if best is None:
            raise Damaged("its best model is not whole")
        return best

    def _best_with(self, digest: str) -> Sealed | None:
        for folder in self._own.glob("best-*"):
            with contextlib.suppress(Damaged):
                if opened(folder).digest == digest:
                    return verified(folder)
        return None

    @property
    def is_due(self) -> bool:
        """Whether it is time for a training state."""
        return self._clock() >= self._due_at

    def save_state(self, step: int, needs: int, write: Callable[[Path], object]) -> int:
        """Seal the training state of that step, of about `needs` bytes; return its bytes. Raises NoRoom."""
        began = self._clock()
        self._due_at = math.inf
        try:
            best = self._best and {"folder": self._best.folder.name, "digest": self._best.digest}
            state = self._seal(f"step-{step:08d}", {"step": step, "best": best}, needs, write)
            self._share(state.folder)
            self._keep_shared(self._keep(self._newest_first()))
        finally:
            now = self._clock()
            self._due_at = now + max(self._every_s, (now - began) * (1 - _SHARE) / _SHARE)
        return state.size

    def save_best(self, step: int, needs: int, write: Callable[[Path], object]) -> None:
        """Seal the best model so far. Raises NoRoom."""
        self._best = self._seal(f"best-{step:08d}", {"step": step}, needs, write)
        self._keep(self._newest_first())

    def _seal(
        self, name: str, about: Mapping[str, object], needs: int, write: Callable[[Path], object]
    ) -> Sealed:
        """Seal a folder of this attempt once all events so far are on record."""

        def write_settled(new: Path) -> None:
            write(new)
            self._settle()

        return seal(self._own / name, {"of": self._identity, **about}, needs, write_settled)

    @property
    def best(self) -> Path:
        """The folder of the best model so far. Raises ValueError where none was saved."""
        if self._best is None:
            raise ValueError("no best model was saved")
        return self._best.folder

    def publish(self) -> None:
        """Put the best model in the run's folder, once all events are on record."""
        self._settle()
        if self._best is not None:
            with self._aside() as aside:
                put_in_place(self.best, self.folder, aside)
            self._best = replace(self._best, folder=self.folder)
        self._share(self.best)

    def forget_states(self) -> None:
        """Remove the training states: the run has ended well."""
        shutil.rmtree(self._states, ignore_errors=True)
        self._keep_shared(())

    def _fetch(self, name: str, prefix: str | None) -> None:
        """Download the state with this prefix in place of the local one; without a prefix it is here."""
        if prefix is not None and self._shared is not None:
            self._remove([path for path in self._own.glob("*") if path.name == name])
            self._shared.pull(prefix + name, self._own / name)

    def _share(self, folder: Path) -> None:
        """Upload a state after its best model, or the run's model. A failure is noted once."""
        if self._shared is None:
            return
        try:
            if folder == self.folder:
                self._shared.push(folder, f"{model_of(folder.name)}/{self._own.name}")
                return
            best = () if self._best is None else (self.best,)
            own = f"{self._shared_states}{self._own.name}/"
            shared = self._shared.names(own)
            for new in (*best, folder):
                if (name := own + new.name) not in shared:
                    self._shared.push(new, name)
            self._share_failed = False
        except ArtefactError as error:
            if not self._share_failed:
                self._note(f"{error} Until this is fixed no other machine can resume this run.")
            self._share_failed = True

    def _keep_shared(self, names: Collection[str]) -> None:
        """Remove the shared states of this attempt and of earlier ones, except these names."""
        if self._shared is None:
            return
        try:
            for name in self._shared.names(self._shared_states):
                attempt, _, saved = name.removeprefix(self._shared_states).rpartition("/")
                if saved not in names and _number(attempt) <= self._attempt:
                    self._shared.remove(name)
        except ArtefactError as error:
            _log.warning("%s What is not needed any more stays there.", error)

    def _newest_first(self) -> list[Path]:
        """The folders of training states."""
        return sorted((path for path in self._own.glob("*") if _STATE.fullmatch(path.name)), reverse=True)

    def _keep(self, states: Sequence[Path]) -> set[str]:
        """Remove all but the newest states, their best models and the best so far; returns the names kept.

        What earlier attempts have left since this one began goes too: their workers were only asleep.
        """
        kept = {state.name for state in states[:_KEPT]}
        for state in states[:_KEPT]:
            with contextlib.suppress(Damaged, KeyError, TypeError):  # no best yet, or one that cannot be read
                kept.add(opened(state).about["best"]["folder"])
        if self._best is not None:
            kept.add(self._best.folder.name)
        self._remove([*(path for path in self._own.glob("*") if path.name not in kept), *self._earlier()])
        return kept

    def _remove(self, folders: Sequence[Path]) -> None:
        # Moved first: a later attempt that takes the own folder meanwhile does not find them by half.
        if folders:
            with self._aside() as aside:
                for number, folder in enumerate(folders):
                    folder.rename(aside / str(number))

    @contextlib.contextmanager
    def _aside(self) -> Iterator[Path]:
        """A temporary folder inside this run's, removed with its content at the end of the block.

        Raises FileNotFoundError where a later attempt has taken the run's folder.
        """
        with tempfile.TemporaryDirectory(
            prefix="removed-", dir=self._own, ignore_cleanup_errors=True
        ) as aside:
            yield Path(aside)


def _name(attempt: int) -> str:
    return f"attempt-{attempt:05d}"


def _number(folder: str) -> int:
    """The number of the attempt that a folder's name gives; 0 for another folder."""
    named = _ATTEMPT.fullmatch(folder)
    return int(named[1]) if named else 0
