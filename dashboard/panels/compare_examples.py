"""Sentences in which a mistake is made: the gold labels, and what both configurations predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import streamlit as st

from core.errors import MRNLabError
from core.evaluation.confusion import NOTHING, OTHER_WORDS
from core.store.records import Run
from dashboard import resources
from dashboard.caches.compare import labels, words
from dashboard.components import Lane, Mark, SentenceBlock, sentence
from dashboard.launch.data import marks
from dashboard.queries.compare_errors import places
from dashboard.text import escape, plural
from dashboard.theme import TASK_COLOURS, colours
from jobs.results import ResultRow, ResultTable

__all__ = ["examples", "written"]

_MOST = 5
Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class _Side:
    """One configuration's run of the seed shown: `A` or `B`, and its labels."""

    letter: str
    name: str
    run: Run
    gold: Labels
    predicted: Labels


def written(label: str, nothing: str) -> str:
    """A label of a confusion matrix in words."""
    return {NOTHING: nothing, OTHER_WORDS: "other words"}.get(label, label)


def examples(
    table: ResultTable,
    runs: Mapping[int, Run],
    task: str,
    scheme: str,
    rows: tuple[ResultRow, ResultRow],
    mistake: tuple[str, str],
) -> None:
    """The first few sentences in which A makes the mistake, or where it never does, B; of one seed."""
    sides = _sides(table, runs, task, rows)
    where: list[int] = []
    for side in sides:
        where = list(islice(places(scheme, side.gold, side.predicted, mistake), _MOST))
        if where:
            break
    told = f"{written(mistake[0], 'nothing there')} → {written(mistake[1], 'missed')}"
    st.markdown(f"**{escape(told)}**")
    if not where:
        st.caption("Not made with the first seed that both have.")
        return
    try:
        text = words(side.run.config, table.split, task, side.gold)
    except MRNLabError as error:
        st.caption(escape(f"The sentences cannot be shown. {error}"))
        return
    if text is None:
        st.caption("The corpus is no longer what these runs were scored on: its words cannot be shown.")
        return
    colour = colours(resources.task_order()).get(task, TASK_COLOURS[-1])
    kind = "spans" if scheme == "iob2" else "plain"
    lanes = [("gold", side.gold), *((one.letter, one.predicted) for one in sides)]
    sentence(
        [
            SentenceBlock(
                text[place],
                tuple(
                    Lane(task, colour, kind, _marks(found[place], side.gold[place], scheme), who=name)
                    for name, found in lanes
                ),
            )
            for place in where
        ],
        key="mistake_sentences",
        small=True,
    )
    st.caption(
        f"The first {plural(len(where), 'sentence')} in which {escape(side.name)} makes this mistake "
        f"(seed {side.run.config.seed}). Outlined: not as annotated."
    )


def _sides(
    table: ResultTable, runs: Mapping[int, Run], task: str, rows: tuple[ResultRow, ResultRow]
) -> list[_Side]:
    """Those of the two whose predictions are stored, of the first seed that both have."""
    cells = [row.cells[task] for row in rows if task in row.cells]
    seeds = set.intersection(*(set(cell.run_ids) for cell in cells)) or set(cells[0].run_ids)
    found = []
    for letter, row in zip("AB", rows, strict=True):
        run_id = row.cells[task].run_ids.get(min(seeds)) if task in row.cells else None
        known = None if run_id is None else labels(runs[run_id], table.split, task)
        if run_id is not None and known is not None:
            found.append(_Side(letter, row.name, runs[run_id], *known))
    return found


def _marks(own: Sequence[str], gold: Sequence[str], scheme: str) -> tuple[Mark, ...]:
    return tuple(
        mark if label == true else replace(mark, differs=True, why=f"annotated: {true}")
        for mark, label, true in zip(marks(tuple(own), scheme), own, gold, strict=True)
    )
