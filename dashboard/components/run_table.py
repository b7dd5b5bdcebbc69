"""A table of runs: a line a configuration or a run, which a box chooses and whose name leads to its page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dashboard.components.charts import Event, component

_mount = component("run_table")


@dataclass(frozen=True)
class Column:
    """A column: the values that sort it, the texts that are read, and quieter notes after these.

    Of `words` and `chips` a text is a list of colours with words. Lines without a value are sorted last,
    those of `bold` stand out; `shares` in percent have a bar. `head`: by default the column's name.
    `is_usual`: whether the column is shown where the reader chose none; `is_score`: whether it is of a task.
    """

    kind: Literal["number", "text", "words", "chips"]
    values: Sequence[float | str | None]
    texts: Sequence[str | Sequence[tuple[str, str]]]
    notes: Sequence[str] = ()
    shares: Sequence[float | None] = ()
    bold: Collection[int] = ()
    head: str = ""
    help: str = ""
    is_usual: bool = False
    is_score: bool = False


@dataclass(frozen=True)
class RunLine:
    """A line: its name, the runs that a tick on it chooses, oldest first, and how many of them are chosen."""

    name: str
    runs: Sequence[int]
    chosen: int


def run_table(
    lines: Sequence[RunLine],
    columns: Mapping[str, Column],
    *,
    title: str,
    about: Sequence[tuple[str, bool]],
    when: str,
    alt: str,
    key: str,
    widest_name: int,
    most_scores: int,
    ticked: Callable[[Collection[int], Sequence[int]], None],
    opened: Callable[[Sequence[int]], None],
) -> None:
    """Draws the table under its title; the reader sorts it in the browser.

    What is said `about` it are texts, each with whether it tells the table from its neighbours; `when` is the
    age of its newest run.

    Where there is room, columns stand below each other in all tables of a page: a name has room for
    `widest_name` letters, and the scores for `most_scores` columns.

    Called before the page runs again: `ticked` with the runs of all lines without and with a tick, `opened`
    with those of the line whose name was pressed.
    """
    data: dict[str, Any] = {
        "title": title,
        "about": about,
        "when": when,
        "alt": alt,
        "widest": widest_name,
        "blanks": max(0, most_scores - sum(column.is_score for column in columns.values())),
        "lines": list(map(asdict, lines)),
        "columns": [
            asdict(column) | {"name": name, "head": column.head or name, "bold": sorted(column.bold)}
            for name, column in columns.items()
        ],
    }

    def tick(event: Event) -> None:
        ticked(set(map(int, event["off"])), list(map(int, event["on"])))

    _mount(key=key, data=data, on={"ticked": tick, "opened": lambda runs: opened(list(map(int, runs)))})
