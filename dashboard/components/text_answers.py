"""Answers on a whole text or a pair: a group of rows for each task, a column for each configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from core.wording import without_shared
from dashboard.components.charts import component

_mount = component("text_answers")


@dataclass(frozen=True)
class Column:
    """A configuration, or one of its seeds, which follow it: `of` names it, and the reader opens them."""

    who: str
    of: str = ""


@dataclass(frozen=True)
class Said:
    """A column's answer as text: a label with all probabilities, or a number with its place on the scale.

    The place is in [0, 1]. `differs` outlines the answer, `why` is what is amiss with it, `seeds` how many
    seeds gave it.
    """

    text: str
    shares: Mapping[str, float]
    place: float | None = None
    differs: bool = False
    why: str = ""
    seeds: str = ""


@dataclass(frozen=True)
class TaskAnswers:
    """A task with the answer of each column, None where there is none; `of` names its input.

    `labels` are those drawn, `more` how many are not. `ends` are those of a number's scale, else empty.
    `gold` is what is right, as text, and of a number its place on the scale.
    """

    task: str
    colour: str
    of: str
    said: Sequence[Said | None]
    labels: Sequence[str] = ()
    more: int = 0
    ends: Sequence[str] = ()
    gold: str = ""
    gold_place: float | None = None


def text_answers(
    columns: Sequence[Column], tasks: Sequence[TaskAnswers], texts: Sequence[str], *, about: str, key: str
) -> None:
    """Draw the answers of these columns under the `texts`, of which there may be none; `about` is said below.

    The browser builds all from text, never from HTML.
    """
    short = without_shared([task.task for task in tasks])
    data = {
        "columns": list(map(asdict, columns)),
        "tasks": [asdict(task) | {"short": short[task.task]} for task in tasks],
        "texts": texts,
        "about": about,
    }
    _mount(key=key, data=data)
