"""What a worker does without a run: how long it waits for one, and what it does meanwhile.

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


def linger_seconds() -> float:
    """`MRNLAB_LINGER_S`: how long a worker waits for another run before it ends; 300 s.

    Raises MRNLabError where the setting is no such number.
    """
    return seconds("MRNLAB_LINGER_S")


def starts_ahead() -> bool:
    """Whether a worker is worth starting before there is a run. Raises MRNLabError as `linger_seconds`."""
    return linger_seconds() >= _LEAST_AHEAD_S


def preload(is_needed: Callable[[], bool] = lambda: False) -> None:
    """Import and read what a first run would: torch, the trainer, an encoder, the report at its end. It ends
    early where the worker `is_needed`.
    """

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
    """Once: `gc.get_freeze_count()` would look through all of them again, which takes 0.1 s."""
    gc.freeze()


def release_memory() -> None:
    """Free what a run left behind, of this machine and of its GPU: others may need it.

    A full collection finds models in reference cycles. It takes 0.3 to 0.7 s as long as it looks through all
    modules; frozen once, they are left out.
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
