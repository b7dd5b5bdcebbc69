"""Differences to a reference with their intervals, row by row: what a forest plot shows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Forest", "Mark"]


@dataclass(frozen=True)
class Mark:
    """One difference in the forest: the row of its family, its target, points with their interval, the text
    under the pointer, and whether the corrected verdict is that there is one.
    """

    row: int
    target: str
    points: float
    low: float | None
    high: float | None
    told: str
    shown: bool


@dataclass(frozen=True)
class Forest:
    """Differences to one reference. `families` are the rows' titles, top first; `targets` are tasks and
    what else is compared.
    """

    families: tuple[str, ...]
    targets: tuple[str, ...]
    reference: str
    marks: tuple[Mark, ...]
