"""From a run's answer to what the Tag page draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.splitting import split_words
from core.store import Store
from core.store.records import Run
from core.store.states import RunState
from core.tagging import TaggedSentence, WordTag
from dashboard.components import Lane, Mark, SentenceBlock
from dashboard.launch.data import marks
from dashboard.queries.naming import run_name
from dashboard.theme import TASK_COLOURS, colours

__all__ = ["Answer", "answers_table", "blocks", "taggable", "words_of"]

Answer = tuple[Run, Mapping[str, str], TaggedSentence]
_MOST_WORDS = 400


def taggable(store: Store) -> list[Run]:
    """Finished runs with a checkpoint, newest first, those of several tasks before those of one."""
    finished = store.runs(states={RunState.SUCCEEDED}, limit=500)
    return sorted(
        (run for run in finished if run.checkpoint), key=lambda run: (len(run.config.tasks) < 2, -run.id)
    )


def words_of(text: str, split: bool) -> list[str]:
    """The words of the text; of a very long one, the first 400."""
    return (text.split() if split else split_words(text))[:_MOST_WORDS]


def blocks(answers: Sequence[Answer], order: Sequence[str]) -> list[SentenceBlock]:
    """A block per run; where a run's label is not that of the first run, it is outlined."""
    colour = colours(order)
    first = answers[0][2]
    return [
        SentenceBlock(
            tagged.tokens,
            tuple(
                Lane(
                    task,
                    colour.get(task, TASK_COLOURS[-1]),
                    "spans" if schemes[task] == "iob2" else "plain",
                    _lane(tags, schemes[task], first.tags.get(task)),
                )
                for task, tags in _in_order(tagged, order)
            ),
            title=f"Run {run_name(run)}",
        )
        for run, schemes, tagged in answers
    ]


def _in_order(tagged: TaggedSentence, order: Sequence[str]) -> list[tuple[str, tuple[WordTag, ...]]]:
    """Tasks without spans first, right under the words, then spans; each in the order of colours."""
    rank = {task: place for place, task in enumerate(order)}
    return sorted(tagged.tags.items(), key=lambda item: rank.get(item[0], len(rank)))


def _lane(tags: Sequence[WordTag], scheme: str, first: Sequence[WordTag] | None) -> tuple[Mark, ...]:
    cells = marks(tuple(tag.label for tag in tags), scheme)
    return tuple(
        Mark(
            cell.text,
            "\n".join(f"{label}  {100 * share:.1f} %" for label, share in tag.alternatives),
            cell.inside,
            cell.start,
            cell.end,
            differs=first is not None and first[place].label != tag.label,
        )
        for place, (cell, tag) in enumerate(zip(cells, tags, strict=True))
    )


def answers_table(answers: Sequence[Answer]) -> None:
    """Every word's label, confidence and next choices, for each run and task."""
    st.dataframe(
        pd.DataFrame(
            {
                "Run": run.id,
                "Word": word,
                "Task": task,
                "Label": tag.label,
                "Confidence": 100 * tag.confidence,
                "Next choices": ", ".join(
                    f"{label} {100 * share:.1f} %" for label, share in tag.alternatives[1:]
                ),
            }
            for run, _, tagged in answers
            for task, tags in tagged.tags.items()
            for word, tag in zip(tagged.tokens, tags, strict=True)
        ),
        hide_index=True,
        height=360,
        column_config={
            "Run": st.column_config.NumberColumn(width=54),
            "Confidence": st.column_config.ProgressColumn(
                min_value=0, max_value=100, format="%.1f%%", width=130
            ),
        },
        alt="Labels with confidences and alternatives, a line per word and task",
    )
