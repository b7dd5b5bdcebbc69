"""What the systems say: the sentences with their lanes, in numbers, and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.corpora.types import Sentence
from core.evaluation.confusion import BOUNDARY, BOUNDARY_AND_LABEL, LABEL, MISSED, Mistake, mistakes
from core.tagging import WordTag
from core.wording import all_of, percent, plural
from dashboard.components.sentence import Lane, Mark, SentenceBlock, marks, sentence
from dashboard.shared import resources
from dashboard.tag.views import Answer, Marked, System, differing_words, kinds_in_words, marked, votes
from dashboard.theme import TASK_COLOURS, colours
from jobs.results import SCORE_NAMES

# From what systems say of sentences to the lanes that are drawn.


# Beside a span's label, where every letter widens the words above.
_SHORT = {LABEL: "label", BOUNDARY: "boundary", BOUNDARY_AND_LABEL: "boundary, label"}


def blocks(
    sentences: Sequence[Sentence], answers: Sequence[Answer], polls: Sequence[Answer], order: Sequence[str]
) -> list[SentenceBlock]:
    """A block per sentence: of each task the gold labels, a lane per system, and the votes.

    Against gold labels mistakes are marked by kind; without them, whatever differs from the first lane.
    """
    schemes = {task: scheme for answer in answers for task, scheme in answer.schemes.items()}
    rank = {task: place for place, task in enumerate(order)}
    tasks = sorted(schemes, key=lambda task: rank.get(task, len(rank)))
    colour = colours([*order, *(task for task in tasks if task not in rank)])
    return [
        SentenceBlock(
            sentence.tokens,
            tuple(
                lane
                for task in tasks
                for lane in _group(
                    number, sentence, task, schemes[task], answers, polls, colour.get(task, TASK_COLOURS[-1])
                )
            ),
        )
        for number, sentence in enumerate(sentences)
    ]


def _group(
    number: int,
    sentence: Sentence,
    task: str,
    scheme: str,
    answers: Sequence[Answer],
    polls: Sequence[Answer],
    colour: str,
) -> list[Lane]:
    """The lanes of one task."""
    kind = "spans" if scheme == "iob2" else "plain"
    # The majority of all is what each is held against; that of some stands behind the runs themselves.
    of_all = any(poll.voters == len(answers) for poll in polls)
    ordered = (*polls, *answers) if of_all else (*answers, *polls)
    asked = [answer for answer in ordered if task in answer.schemes]
    tags = [answer.sentences[number].tags[task] for answer in asked]
    gold = sentence.labels.get(task)
    lanes = []
    if gold is not None:
        lanes.append(Lane(task, colour, kind, marks(gold, scheme), who="gold"))
    for answer, column in zip(asked, tags, strict=True):
        drawn = _drawn(column, scheme)
        if gold is not None:
            drawn = _judged(drawn, gold, column, scheme)
        elif column is not tags[0]:
            drawn = _compared(drawn, tags[0], column, scheme, asked[0].who)
        who = answer.who if len(asked) > 1 or gold is not None else ""
        lanes.append(Lane(task, colour, kind, drawn, who=who))
    return [replace(lanes[0], about=_about(number, sentence, task, answers)), *lanes[1:]]


def _about(number: int, sentence: Sentence, task: str, answers: Sequence[Answer]) -> str:
    differing = differing_words(answers, task, number)
    return f"{differing} of {len(sentence.tokens)} differ" if differing else ""


def _labels(column: Sequence[WordTag]) -> tuple[str, ...]:
    return tuple(tag.label for tag in column)


def _drawn(column: Sequence[WordTag], scheme: str) -> tuple[Mark, ...]:
    return tuple(
        replace(cell, shares=tag.alternatives)
        for cell, tag in zip(marks(_labels(column), scheme), column, strict=True)
    )


def _judged(
    drawn: Sequence[Mark], gold: Sequence[str], column: Sequence[WordTag], scheme: str
) -> tuple[Mark, ...]:
    """Mistakes outlined; of spans with the kind written beside the label."""
    found = mistakes(gold, _labels(column), scheme)
    cells = list(drawn)
    for one in found:
        told = {place: f"{one.kind.capitalize()}; gold: {gold[place]}" for place in range(one.start, one.end)}
        _outline(cells, one, told, note=_SHORT.get(one.kind, one.kind) if scheme == "iob2" else "")
    return tuple(cells)


def _compared(
    drawn: Sequence[Mark], first: Sequence[WordTag], column: Sequence[WordTag], scheme: str, who: str
) -> tuple[Mark, ...]:
    """Outlined where these labels are not those of the first lane."""
    cells = list(drawn)
    for one in mistakes(_labels(first), _labels(column), scheme):
        told = {place: f"{who}: {first[place].label}" for place in range(one.start, one.end)}
        _outline(cells, one, told)
    return tuple(cells)


def _outline(cells: list[Mark], one: Mistake, told: Mapping[int, str], note: str = "") -> None:
    for place in range(one.start, one.end):
        cell = replace(cells[place], differs=True, why=told[place], note=note)
        if one.kind == MISSED:
            ends = {"start": place == one.start, "end": place == one.end - 1}
            cell = replace(cell, text=one.gold, inside=True, ghost=True, **ends)
        cells[place] = cell


def show_answers(
    asked: Sequence[System], sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float
) -> None:
    """The sentences with a lane per task and system, mistakes or differences in words, the table below."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(_told(sentences, answers, seconds))
        fade = st.toggle(
            "Show what is unsure",
            value=True,
            key="unsure",
            bind="query-params",
            help="The less sure a run is of a span, the fainter is its bar. Below 80% the probability stands "
            "beside the label, and a label without a bar has a dotted line.",
        )
    polls = votes(asked, answers)
    sentence(blocks(sentences, answers, polls, resources.task_order()), key="tagged", fade=fade)
    has_gold = any(one.labels for one in sentences)
    _legend(has_gold, len(answers) > 1, bool(polls))
    if has_gold:
        _scores(marked(answers, sentences, asked[0].runs[0].config.pos_score))
    table = st.expander("Every word in a table", icon=":material/table_rows:", key="words", on_change="rerun")
    if table.open:  # drawn on demand: it is longer to draw than all the rest
        with table:
            _table(sentences, answers)


def _told(sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float) -> str:
    words = plural(sum(len(one.tokens) for one in sentences), "word")
    told = f"{words}, {plural(len(sentences), 'sentence')}" if len(sentences) > 1 else words
    told += f", tagged in {1000 * seconds:.0f} ms."
    tasks = dict.fromkeys(task for answer in answers for task in answer.schemes)
    shared = {
        task: sum(differing_words(answers, task, place) for place in range(len(sentences)))
        for task in tasks
        if sum(task in answer.schemes for answer in answers) > 1
    }
    if not shared:
        return told
    differing = [f"{number} in {task}" for task, number in shared.items() if number]
    if not differing:
        return f"{told} All agree on every word."
    return f"{told} They differ on words: {all_of(differing)}."


def _legend(has_gold: bool, several: bool, voted: bool) -> None:
    parts = ["Point at a label, or reach it with Tab and the arrow keys, for the next choices."]
    if has_gold:
        parts.append("Outlined: mistakes in label or boundary, spans invented; dashed: spans missed.")
    elif several:
        parts.append("Outlined: what differs from the first lane of the task, dashed where a span is absent.")
    if voted:
        parts.append("The majority is taken word by word; its shares are shares of seeds.")
    st.caption(" ".join(parts))


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


def _table(sentences: Sequence[Sentence], answers: Sequence[Answer]) -> None:
    rows = [
        {
            "Sentence": number + 1,
            "Word": word,
            "Task": task,
            "Run": answer.who,
            "Label": tags[place].label,
            "Gold": one.labels[task][place] if task in one.labels else None,
            "Probability": 100 * tags[place].confidence,
            "Next choices": ", ".join(
                f"{label} {100 * share:.1f}%" for label, share in tags[place].alternatives[1:]
            ),
        }
        for number, one in enumerate(sentences)
        for place, word in enumerate(one.tokens)
        for answer in answers
        for task, tags in answer.sentences[number].tags.items()
    ]
    table = pd.DataFrame(rows)
    st.dataframe(
        table if table["Gold"].notna().any() else table.drop(columns="Gold"),
        hide_index=True,
        height=360,
        column_config={
            "Sentence": st.column_config.NumberColumn(width=80),
            "Probability": st.column_config.ProgressColumn(
                min_value=0, max_value=100, format="%.1f%%", width=140
            ),
        },
        alt="Labels with probabilities and alternatives, a line per word, task and run",
    )
