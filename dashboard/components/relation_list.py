"""A list of pairs of rows with their numbers; a press on a line chooses its pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from dashboard.components.charts import component

_mount = component("relation_list")

Pair = tuple[str, str]


@dataclass(frozen=True)
class PairColumn:
    """A column: its name, its meaning under the pointer, and how it stands."""

    name: str
    help: str = ""
    kind: Literal["number", "number quiet", "text"] = "number"


@dataclass(frozen=True)
class PairLine:
    """A pair by its names, their short forms and their meanings (empty where they are not known), a text for
    each column, and the colour of its line.

    `quiet`: written in grey. `parted`: with a rule above it.
    """

    pair: Pair
    short: Pair
    meanings: Pair
    cells: Sequence[str]
    chosen: bool
    colour: str = ""
    quiet: bool = False
    parted: bool = False


def relation_list(
    lines: Sequence[PairLine],
    columns: Sequence[PairColumn],
    *,
    alt: str,
    key: str,
    choose: Callable[[Pair], None],
) -> None:
    """Draws the list; `choose` gets the pair of a pressed line before the page runs again."""
    data = {"alt": alt, "columns": list(map(asdict, columns)), "lines": list(map(asdict, lines))}
    _mount(key=key, data=data, on={"chosen": lambda pair: choose((str(pair[0]), str(pair[1])))})
