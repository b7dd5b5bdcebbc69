"""What a worker does that has no run to train: how long it waits for one, and what it does meanwhile.

A worker that has imported torch is at a run's first step in a second or two, a new one in ten
(docs/adr/0026-workers-that-wait.md).
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import logging
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import core
import jobs
from core.settings import seconds
from core.store import Store

# When a process that imports a lot looks for garbage in cycles.
#
# Python looks through what it has again and again while more is made: a tenth of a worker's start, and a
# tenth
# of a second after every click on a page, all for modules that stay as long as the process does
# (docs/performance.md).


_MORE_OBJECTS = 100_000  # than when it was last looked; Python's own number is 700, and 2,000 from 3.13 on


def collect_seldom() -> None:
    """From now on garbage is looked for where a hundred thousand objects were added, and where one asks."""
    gc.set_threshold(_MORE_OBJECTS, 20, 50)


def keep_what_is_there() -> None:
    """Garbage is collected, and what is left is never looked through again. It is freed when nothing refers
    to it any more, but for what refers to itself: so this is for a moment when little but modules is there.
    """
    gc.collect()
    gc.freeze()


def collect_after_run() -> None:
    """What a training left behind in cycles is freed, its model perhaps; its modules are kept."""
    if gc.get_freeze_count():
        gc.collect()
    else:
        keep_what_is_there()


# A worker that would end before its imports have paid for themselves is not started ahead of a run.
_LEAST_AHEAD_S = 30.0
_LOOK_S = 1.0

_log = logging.getLogger(__name__)


def linger_seconds() -> float:
    """`MRNLAB_LINGER_S`: how long a worker waits for another run before it ends; 300 s.

    Raises MRNLabError where the setting is no such number.
    """
    return seconds("MRNLAB_LINGER_S")


def starts_ahead() -> bool:
    """Whether a worker is worth starting before there is a run. Raises MRNLabError as `linger_seconds`."""
    return linger_seconds() >= _LEAST_AHEAD_S


class Program:
    """The program's files as they were when this was made."""

    def __init__(self, folders: tuple[Path, ...] = (Path(core.__file__).parent, Path(jobs.__file__).parent)):
        self._folders = folders
        self._was = set(self._files())

    def has_changed(self) -> bool:
        """Whether any of them was edited, added or removed since."""
        return set(self._files()) != self._was

    def _files(self) -> Iterator[tuple[str, int]]:
        for folder in self._folders:
            for path in folder.rglob("*.py"):
                yield str(path), path.stat().st_mtime_ns


class Lingering:
    """Called again and again while there is no run to train; False where the worker shall not wait on.

    With `ahead` what a first run would import is imported meanwhile.
    """

    def __init__(self, store: Store, program: Program, *, ahead: bool) -> None:
        self._store, self._program, self._ahead = store, program, ahead
        self._has_trained = False
        self._looked_at = -math.inf
        self.is_outdated = False
        """Whether the program has changed, so that this process must train nothing any more."""

    def trained(self) -> None:
        """A run was trained: its garbage goes at once, what only a training needs with the next call."""
        collect_after_run()
        self._has_trained = True

    def __call__(self) -> bool:
        if self._has_trained:
            _give_back()
        elif self._ahead:
            _import_all()
        self._has_trained = self._ahead = False
        if time.monotonic() - self._looked_at < _LOOK_S:
            return True
        self._looked_at = time.monotonic()
        if self._store.is_deleted:
            _log.info("The store is gone; this worker ends.")
            return False
        self.is_outdated = self._program.has_changed()
        if self.is_outdated:
            _log.info("The program has changed since this worker began; it ends, and a new one is started.")
        return not self.is_outdated


def _give_back() -> None:
    """What only a training needs: the memory of this machine and of its GPU is others' too."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        # The C library keeps what was freed, a few hundred MB after a training. Not every one can be asked.
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)


def _import_all() -> None:
    """What a first run would import and read: torch, the training, an encoder."""
    from core.encoding.tokenizer import load_tokenizer
    from core.models.encoders import load_transformer
    from core.models.sources import locate

    importlib.import_module("core.training.trainer")
    load_tokenizer(locate("minilm"))
    load_transformer("minilm", half=False)
    keep_what_is_there()
    _log.info("Ready for a run.")
