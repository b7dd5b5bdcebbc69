"""Reads the values of options. Each function raises ValueError with what is expected instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from core.corpora.derived.kind import Option
from core.lists import real_number

__all__ = ["SAMPLES", "choice", "count", "counts", "share_list", "text"]

_MOST = 1_000_000_000


def count(most: int = _MOST) -> Callable[[str], int]:
    """A reader of whole numbers from 1 to `most`."""

    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", value) or not 1 <= int(value) <= most:
            raise ValueError(f"a whole number from 1 to {most:,}")
        return int(value)

    return read


def counts(value: str) -> tuple[int, ...]:
    """Whole numbers from 1, set apart by commas."""
    try:
        return tuple(map(count(), value.split(",")))
    except ValueError:
        raise ValueError(f"whole numbers from 1 to {_MOST:,}, set apart by commas") from None


def share_list(value: str) -> tuple[float, ...]:
    """Numbers from 0 to 1, set apart by commas."""
    shares = [real_number(part) for part in value.split(",")]
    known = tuple(share for share in shares if share is not None and 0 <= share <= 1)
    if len(known) < len(shares):
        raise ValueError("numbers from 0 to 1, set apart by commas")
    return known


def choice(*names: str) -> Callable[[str], str]:
    """A reader of one of these names."""

    def read(value: str) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return value

    return read


def text(value: str) -> str:
    """Any text but an empty one."""
    if not value:
        raise ValueError("a name")
    return value


SAMPLES: dict[str, Option] = {
    split: Option(f"at most so many {what} sentences", count())
    for split, what in (("train", "training"), ("dev", "development"), ("test", "test"))
}
"""The options that sample a split. They draw of each part of a joined base apart."""
