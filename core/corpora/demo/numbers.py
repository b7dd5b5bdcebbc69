"""Numbers, dates and scores for the demo sentences: plausible ones, drawn anew each time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["NUMBERS", "below"]


def below(random: Random, end: int) -> int:
    """A whole number from 0 to end - 1. Only `random()` is used: its numbers are the same in every Python."""
    return int(random.random() * end)


def _whole(low: int, high: int) -> Callable[[Random], str]:
    return lambda random: f"{low + below(random, high - low + 1):,}"


def _hundreds(low: int, high: int) -> Callable[[Random], str]:
    return lambda random: f"{(low + below(random, high - low + 1)) * 100:,}"


def _decimal(low: float, high: float, digits: int) -> Callable[[Random], str]:
    return lambda random: f"{low + random.random() * (high - low):,.{digits}f}"


def _football(random: Random) -> str:
    lost = below(random, 3)
    return f"{lost + 1 + below(random, 3)}-{lost}"


def _drawn(random: Random) -> str:
    goals = below(random, 4)
    return f"{goals}-{goals}"


def _basketball(random: Random) -> str:
    lost = 78 + below(random, 30)
    return f"{lost + 1 + below(random, 22)}-{lost}"


def _tennis_set(random: Random) -> str:
    lost = below(random, 6)
    return f"7-{lost}" if lost == 5 else f"6-{lost}"


def _date(random: Random) -> str:
    return f"{2004 + below(random, 20)}-{1 + below(random, 12):02d}-{1 + below(random, 28):02d}"


def _minute(random: Random) -> str:
    number = 1 + below(random, 89)
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _tagged(draw: Callable[[Random], str]) -> Callable[[Random], tuple[str, str]]:
    return lambda random: (draw(random), "CD")


_CARDINALS: dict[str, Callable[[Random], str]] = {
    "percent": _decimal(0.2, 14.9, 1),
    "points": _decimal(3, 98, 2),
    "index": _decimal(2100, 7900, 2),
    "price": _decimal(4, 96, 2),
    "amount": _whole(2, 95),
    "billions": _decimal(1.1, 9.8, 1),
    "dozens": _whole(11, 96),
    "hundreds": _hundreds(2, 9),
    "thousands": _hundreds(12, 480),
    "age": _whole(22, 79),
    "young-age": _whole(18, 36),
    "small": _whole(2, 12),
    "degrees": _whole(9, 28),
    "rate": _decimal(0.5, 7.5, 2),
    "ounce": _decimal(412, 455, 2),
    "kilometres": _whole(20, 160),
    "magnitude": _decimal(4.1, 7.4, 1),
    "day": _whole(1, 28),
    "year": lambda random: str(1994 + below(random, 30)),
    "old-year": lambda random: str(1931 + below(random, 50)),
    "vote": _whole(52, 412),
    "football-score": _football,
    "drawn-score": _drawn,
    "basketball-score": _basketball,
    "tennis-set": _tennis_set,
    "minority": _whole(11, 49),
    "goals": _whole(0, 4),
    "seconds": _decimal(10.1, 59.8, 2),
    "date": _date,
}

NUMBERS: dict[str, Callable[[Random], tuple[str, str]]] = {
    "minute": lambda random: (_minute(random), "JJ"),
    **{name: _tagged(draw) for name, draw in _CARDINALS.items()},
}
"""By name, what the grammar's `$name` draws: a number and its tag."""
