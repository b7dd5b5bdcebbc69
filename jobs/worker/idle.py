"""Workers without a run: how long they wait, the modules that they load ahead, and freeing memory.

A worker that has imported torch is at a run's first step in a second or two, a new one in ten
(docs/adr/0026-workers-that-wait.md).
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import logging
import sys
from collections.abc import Callable

from core.settings import seconds

# A worker that would end before its imports have paid for themselves is not started ahead of a run.
_LEAST_AHEAD_S = 30.0

_log = logging.getLogger(__name__)


def starts_ahead() -> bool:
    """Whether a worker is worth starting before there is a run. Raises SettingError."""
    return seconds("MRNLAB_LINGER_S") >= _LEAST_AHEAD_S


def preload(is_needed: Callable[[], bool] = lambda: False) -> None:
    """Loads torch, the trainer, an encoder and the report ahead of a first run, until `is_needed`."""

    def read_encoder() -> None:
        from core.encoding.tokenizer import load_tokenizer
        from core.models.encoders.transformer import load_transformer
        from core.models.sources import locate

        load_tokenizer(locate("minilm"))
        load_transformer("minilm", half=False)

    for load in (
        lambda: importlib.import_module("core.training.trainer"),
        read_encoder,
        lambda: importlib.import_module("seqeval.metrics"),
    ):
        if is_needed():
            return
        load()
    _log.info("Ready for a run.")


@functools.cache
def _freeze_modules() -> None:
    """Freezes the loaded modules once: `gc.get_freeze_count()` would take 0.1 s each time."""
    gc.freeze()


def release_memory() -> None:
    """Frees the memory that a run left behind on this machine and its GPU, for other programs.

    A full collection finds models in reference cycles. It takes 0.3 to 0.7 s while it looks through all
    modules; once frozen, they are left out.
    """
    gc.collect()
    _freeze_modules()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        # glibc keeps freed memory, a few hundred MB after a run. Other C libraries have no such function.
        if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)
