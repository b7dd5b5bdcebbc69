"""When a process that imports a lot looks for garbage in cycles.

Python looks through what it has again and again while more is made: a tenth of a worker's start, and a tenth
of a second after every click on a page, all for modules that stay as long as the process does
(docs/performance.md).
"""

from __future__ import annotations

import gc

__all__ = ["collect_after_run", "collect_seldom", "keep_what_is_there"]

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
