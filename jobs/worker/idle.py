"""What a worker does without a run: how long it waits for one, and what it does meanwhile.

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
from pathlib import Path

import core
import jobs
from core.settings import seconds
from core.store import Store

_SOURCES = (Path(core.__file__).parent, Path(jobs.__file__).parent)
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


class IdlePolicy:
    """Called repeatedly while no run waits; False where the worker should wait no longer.

    It ends where the store's file was deleted, and where a source file changed, since it would train with
    the code it has loaded. With `preload` it first imports what a run needs.
    """

    def __init__(self, store: Store, *, preload: bool, sources: tuple[Path, ...] = _SOURCES) -> None:
        self._store, self._preload, self._sources = store, preload, sources
        self._loaded = self._source_times()
        self._looked_at = -math.inf

    def __call__(self) -> bool:
        if self._preload:
            self._preload = False
            _preload()
        if time.monotonic() - self._looked_at < _LOOK_S:
            return True
        self._looked_at = time.monotonic()
        if self._store.is_deleted:
            _log.info("The store is gone; this worker ends.")
            return False
        if self._source_times() != self._loaded:
            _log.info("The program has changed since this worker began; it ends, and a new one is started.")
            return False
        return True

    def _source_times(self) -> dict[Path, int]:
        files = (path for folder in self._sources for path in folder.rglob("*.py"))
        return {path: path.stat().st_mtime_ns for path in files}


def release_memory() -> None:
    """Free what a run left behind, of this machine and of its GPU: others may need it.

    Models in reference cycles are found by a full collection, which takes 0.3 s as it looks through all
    modules; frozen once, they are left out.
    """
    gc.collect()
    if not gc.get_freeze_count():
        gc.freeze()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        # glibc keeps freed memory, a few hundred MB after a run. Other C libraries have no such function.
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)


def _preload() -> None:
    """Import and read what a first run would: torch, the trainer, an encoder."""
    from core.encoding.tokenizer import load_tokenizer
    from core.models.encoders import load_transformer
    from core.models.sources import locate

    importlib.import_module("core.training.trainer")
    load_tokenizer(locate("minilm"))
    load_transformer("minilm", half=False)
    _log.info("Ready for a run.")
