"""A table with a number for every ordered pair of tasks, on a diverging scale; a cell can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from core.wording import without_shared
from dashboard.components.charts import Event, component

_mount = component("pair_table")


@dataclass(frozen=True)
class PairCell:
    """The number of a pair as text, and its position on the scale, in [-1, 1].
    `grey`: the number is not decided; `nearly`: it was before correction for the others. `title` is its
    description, `note` a smaller text beside the number.
    """

    text: str
    share: float
    title: str
    grey: bool = False
    note: str = ""
    nearly: bool = False


@dataclass(frozen=True)
class PairRow:
    """A main task: its name, its colour, and a text after its name."""

    name: str
    colour: str
    score: str = ""


@dataclass(frozen=True)
class PairTable:
    """A table of pairs with the same tasks as rows and columns.
    `cells` (T, T) has None for unknown pairs. `low` and `high` name the ends of the scale, both empty without
    one; `grey` names the meaning of grey, `nearly` that of a dashed edge, empty if no cell has it.
    """

    rows: Sequence[PairRow]
    cells: Sequence[Sequence[PairCell | None]]
    low: str
    high: str
    alt: str
    corner: str = ""
    grey: str = ""
    nearly: str = ""


def pair_table(
    table: PairTable, *, chosen: tuple[int, int] | None, key: str, clicked: Callable[[int, int], None]
) -> None:
    """Draw the table; `clicked` gets row and column of a clicked cell before the page runs again."""

    def click(event: Event) -> None:
        clicked(int(event["row"]), int(event["column"]))

    short = list(without_shared([row.name for row in table.rows]).values())
    _mount(key=key, data=asdict(table) | {"chosen": chosen, "short": short}, on={"cell": click})
