"""From what systems say of sentences to the lanes that are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.corpora.types import Sentence
from core.evaluation.mistakes import BOUNDARY, BOUNDARY_AND_LABEL, LABEL, MISSED, Mistake, mistakes
from core.tagging import WordTag
from dashboard.components import Lane, Mark, SentenceBlock
from dashboard.launch.data import marks
from dashboard.queries.tag_systems import Answer, differing_words
from dashboard.theme import TASK_COLOURS, colours

__all__ = ["blocks"]

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
