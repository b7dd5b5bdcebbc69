"""What the systems say: the sentences with their lanes, and scores against gold labels."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.corpora.types import Sentence
from core.wording import all_of, percent, plural
from dashboard.components.sentence import sentence
from dashboard.shared import resources
from dashboard.tag.views import (
    Answer,
    Marked,
    System,
    blocks,
    differing_words,
    kinds_in_words,
    marked,
)
from jobs.results import SCORE_NAMES


def show_answers(
    chosen_systems: Sequence[System], sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float
) -> None:
    """The sentences with a lane per task and system, mistakes or differences in words, scores below."""
    st.caption(_summary(sentences, answers, seconds))
    sentence(blocks(sentences, answers, resources.task_order()), key="tagged")
    has_gold = any(given.labels for given in sentences)
    parts = [
        "The fainter a bar, the less sure is the run; below 80% the probability stands beside the label. "
        "Point at a label, or reach it with Tab and the arrow keys, for the next choices."
    ]
    if has_gold:
        parts.append("Outlined: mistakes in label or boundary, spans invented; dashed: spans missed.")
    elif len(answers) > 1:
        parts.append("Outlined: what differs from the first lane of the task, dashed where a span is absent.")
    st.caption(" ".join(parts))
    if has_gold:
        _scores(marked(answers, sentences, chosen_systems[0].runs[0].config.pos_score))


def _summary(sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float) -> str:
    size = plural(sum(len(given.tokens) for given in sentences), "word")
    if len(sentences) > 1:
        size += f", {plural(len(sentences), 'sentence')}"
    text = f"{size}, tagged in {1000 * seconds:.0f} ms."
    tasks = dict.fromkeys(task for answer in answers for task in answer.schemes)
    shared = [task for task in tasks if sum(task in answer.schemes for answer in answers) > 1]
    counts = [sum(differing_words(answers, task, i) for i in range(len(sentences))) for task in shared]
    if not shared:
        return text
    parts = [f"{count} in {task}" for task, count in zip(shared, counts, strict=True) if count]
    return f"{text} They differ on words: {all_of(parts)}." if parts else f"{text} All agree on every word."


def _scores(rows: Sequence[Marked]) -> None:
    """A line per task and system: the score by the scorer of training, and the mistakes by kind."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    st.dataframe(
        pd.DataFrame(
            {
                "Task": row.task,
                "Run": row.who,
                "Score": percent(row.score),
                "of": SCORE_NAMES.get(row.score_name, row.score_name),
                "Words": row.words,
                "Mistakes": kinds_in_words(row.kinds),
            }
            for row in sorted(rows, key=lambda row: tasks.index(row.task))
        ),
        hide_index=True,
        height="content",
        column_config={
            "Score": st.column_config.TextColumn(width="small", alignment="right"),
            "Words": st.column_config.NumberColumn(width="small"),
            "Mistakes": st.column_config.TextColumn(width="large"),
        },
        alt="Score and mistakes by kind of each run on each task",
    )
