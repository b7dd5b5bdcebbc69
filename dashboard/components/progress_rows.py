"""What is in progress, a row each: its name, a bar, how far it is, and for a run *Stop*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from dashboard.components.charts import component

_mount = component("progress_rows")


@dataclass(frozen=True)
class ProgressRow:
    """A row: `share` in [0, 1] is done, `text` says how far that is.

    `run` is the run to whose page the name leads, and which *Stop* stops if `stops`; None for a sweep.
    """

    name: str
    text: str
    share: float
    run: int | None = None
    stops: bool = False


def progress_rows(
    rows: Sequence[ProgressRow], *, key: str, opened: Callable[[int], None], stopped: Callable[[int], None]
) -> None:
    """Draws the rows; `opened` and `stopped` get a run before the page runs again."""
    on = {"opened": lambda run: opened(int(run)), "stopped": lambda run: stopped(int(run))}
    _mount(key=key, data={"bars": list(map(asdict, rows))}, on=on)
