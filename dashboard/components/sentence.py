"""Words with one lane per task and run, whole texts, and pairs of texts with their answers.

Spans are filled, other labels underlined; details of a word come on hover, touch and focus.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.tasks import KINDS
from core.tasks.label_meanings import label_meanings
from core.tasks.spans import spans
from core.wording import plural, without_shared
from dashboard.components.charts import component
from dashboard.text import coloured, escape

MOST_WORDS = 600
"""The words of one sentence that are drawn: a browser needs seconds for thousands."""
_MOST_OF_A_TEXT = 120

_mount = component("sentence", "picture.js")


@dataclass(frozen=True)
class Mark:
    """A word in a lane: its text, and whether a span covers it, opens or closes here.

    `title` says what it is on hover. `shares` are the best labels with their probabilities; the first is the
    one chosen, and says how sure the lane is of it. `differs` outlines the mark, `why` says on hover what is
    amiss, `note` the same in a word or two beside the label. `ghost` draws what is not there and should be.
    In the lane of several seeds, `votes` counts the seeds that chose each label, most first, `agreed` those
    that chose this mark, and `few` is a span of at most half of them, which is drawn hollow. `tied`: no label
    of this word leads. `in_question` tints a word on which configurations disagree, or without a majority.
    """

    text: str
    title: str
    inside: bool = False
    start: bool = False
    end: bool = False
    differs: bool = False
    why: str = ""
    note: str = ""
    ghost: bool = False
    shares: tuple[tuple[str, float], ...] = ()
    votes: tuple[tuple[str, int], ...] = ()
    agreed: int = 0
    few: bool = False
    tied: bool = False
    in_question: bool = False


@dataclass(frozen=True)
class Lane:
    """One task as one run (or the gold labels) has it: `kind` is `spans` or `plain`, with a mark per word.

    Lanes of the same task that follow each other are one group. A lane of several `seeds` is followed by a
    lane for each of them, whose `of` names it; the reader opens these. Others are compared with the lane that
    `is_reference`.
    """

    task: str
    colour: str
    kind: str
    cells: tuple[Mark, ...]
    who: str = ""
    seeds: int = 0
    of: str = ""
    is_reference: bool = False


@dataclass(frozen=True)
class SentenceBlock:
    """A sentence with its lanes; `about` stands under it, and `spans` is the JSON of its spans to copy."""

    tokens: tuple[str, ...]
    lanes: tuple[Lane, ...]
    about: str = ""
    spans: str = ""


def sentence(
    blocks: Sequence[SentenceBlock],
    *,
    key: str,
    small: bool = False,
    confidence: bool = False,
    most_words: int = MOST_WORDS,
    marks: Sequence[tuple[str, str]] = (),
) -> None:
    """Draw the blocks one under the other. The browser builds them from text, never from HTML.

    The less sure a lane is of a label, the fainter it is drawn; `confidence` writes the number beside.
    Span tasks that no lane marks anything of are folded away. Of each sentence the first `most_words` are
    drawn; how many are left out is written under it. Sentences that are not `small` can be copied and saved.
    Below them stand samples of the `marks`, by their names in sentence.js, with their meanings.
    """
    data = sentence_data(blocks, small=small, confidence=confidence, most_words=most_words)
    _mount(key=key, data=data | {"marks": marks})


def sentence_data(
    blocks: Sequence[SentenceBlock],
    *,
    small: bool = False,
    confidence: bool = False,
    most_words: int = MOST_WORDS,
) -> dict[str, Any]:
    """What sentence.js draws the blocks from."""
    short = without_shared(list(dict.fromkeys(lane.task for block in blocks for lane in block.lanes)))
    drawn = [_block(block, short, most_words) for block in blocks]
    meanings = _meanings(lane for block in blocks for lane in block.lanes)
    return {"blocks": drawn, "small": small, "confidence": confidence, "meanings": meanings}


def _meanings(lanes: Iterable[Lane]) -> dict[str, dict[str, str]]:
    """By task the meanings of the labels in its lanes; without tasks whose labels are of no known tag set."""
    seen: dict[str, set[str]] = defaultdict(set)
    for lane in lanes:
        for mark in lane.cells:
            seen[lane.task] |= {
                "" if mark.tied else mark.title,
                *(label for label, _ in (*mark.shares, *mark.votes)),
            }
    by_task = {task: label_meanings(labels) for task, labels in seen.items()}
    return {task: meanings for task, meanings in by_task.items() if meanings}


def lane_kind(scheme: str) -> str:
    """The `kind` of a lane for labels of this scheme."""
    return "spans" if KINDS[scheme].has_spans else "plain"


def marks(labels: Sequence[str], scheme: str) -> tuple[Mark, ...]:
    """A lane's marks from its labels: spans where the scheme has them, else the labels themselves."""
    if not KINDS[scheme].has_spans:
        return tuple(Mark(label, label) for label in labels)
    cells = [Mark("", label) for label in labels]
    for span in spans(labels):
        for index in range(span.start, span.end):
            start, end = index == span.start, index == span.end - 1
            cells[index] = Mark(span.type, labels[index], inside=True, start=start, end=end)
    return tuple(cells)


def _block(block: SentenceBlock, short: Mapping[str, str], most_words: int) -> Mapping[str, Any]:
    left_out = len(block.tokens) - most_words
    return vars(block) | {
        "tokens": block.tokens[:most_words],
        "lanes": [
            vars(lane) | {"short": short[lane.task], "cells": list(map(_mark, lane.cells[:most_words]))}
            for lane in block.lanes
        ],
        "more": f"… and {left_out:,} more words, not drawn" if left_out > 0 else "",
    }


def _mark(mark: Mark) -> Mapping[str, Any]:
    """The fields of a mark that are set, to send little."""
    fields: dict[str, Any] = {name: value for name, value in vars(mark).items() if value}
    if mark.shares:
        fields["shares"] = [[label, round(share, 4)] for label, share in mark.shares]
    return fields


@dataclass(frozen=True)
class Said:
    """An answer on a text: the value, its author, the colour of its task, and whether it is wrong."""

    who: str
    value: str
    colour: str = ""
    differs: bool = False

    @property
    def markdown(self) -> str:
        who = coloured(self.who, self.colour) if self.colour else escape(self.who)
        value = f"**{escape(self.value)}**"
        return f"{who} {f':orange-badge[{value}]' if self.differs else value}"


@dataclass(frozen=True)
class TextBlock:
    """The words of a text, or of both texts of a pair, its answers, and `about`, a line below them."""

    tokens: Sequence[str]
    second: Sequence[str] | None
    said: Sequence[Said]
    about: str = ""


def texts(blocks: Sequence[TextBlock], *, most_words: int = _MOST_OF_A_TEXT) -> None:
    """Draws the blocks one under the other, the texts of a pair side by side, up to `most_words` each."""
    for block in blocks:
        with st.container(border=True, gap="xsmall"):
            if block.second is None:
                st.markdown(_written(block.tokens, most_words))
            else:
                for column, tokens in zip(st.columns(2), (block.tokens, block.second), strict=True):
                    column.markdown(_written(tokens, most_words))
            with st.container(horizontal=True, gap="medium"):
                for said in block.said:
                    st.markdown(said.markdown, width="content")
            if block.about:
                st.caption(escape(block.about))


def _written(tokens: Sequence[str], most_words: int) -> str:
    left_out = len(tokens) - most_words
    more = f" :gray[… and {plural(left_out, 'more word')}]" if left_out > 0 else ""
    return escape(" ".join(tokens[:most_words])) + more
