"""Sentences, texts and pairs that runs were scored on, with the labels of gold and of several systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from core.corpora.types import Sentence
from core.errors import MRNLabError
from core.evaluation.mistakes import Labels
from core.store.types import Run
from core.tasks import TaskKind
from dashboard.compare.compared_runs import examples
from dashboard.components import sentence
from dashboard.components.sentence import Lane, Mark, Said, SentenceBlock, TextBlock
from dashboard.shared import resources
from dashboard.text import escape


def read_examples(run: Run, split: str, task: str, gold: Labels, kind: TaskKind) -> list[Sentence] | None:
    """The sentences that the run was scored on; None if they cannot be read, with a message on the page."""
    try:
        sentences = examples(run.config, split, task, gold)
    except MRNLabError as error:
        st.caption(escape(f"The {kind.examples} cannot be shown. {error}"))
        return None
    if sentences is None:
        st.caption(
            f"The corpus is no longer what these runs were scored on: its {kind.examples} cannot be shown."
        )
    return sentences


def block_of(
    words: Sentence, task: str, kind: TaskKind, lanes: Mapping[str, Sequence[str]], about: str = ""
) -> SentenceBlock | TextBlock:
    """A sentence or text with the labels of each lane, `gold` first; `about` stands below."""
    colour, gold = resources.task_colour(task), lanes["gold"]
    if kind.reads == "words":
        of_lanes = (
            Lane(task, colour, sentence.lane_kind(kind.scheme), differing_marks(labels, gold, kind), who)
            for who, labels in lanes.items()
        )
        return SentenceBlock(words.tokens, tuple(of_lanes), about)
    answers = [
        Said(who, labels[0], colour * (who == "gold"), labels != gold) for who, labels in lanes.items()
    ]
    return TextBlock(words.tokens, words.second, answers, about)


def draw_blocks(blocks: Sequence[SentenceBlock | TextBlock], *, key: str) -> None:
    """Draws the blocks of one task one under the other."""
    of_words = [block for block in blocks if isinstance(block, SentenceBlock)]
    if of_words:
        sentence.sentence(of_words, key=key, small=True)
    sentence.texts([block for block in blocks if isinstance(block, TextBlock)])


def differing_marks(predicted: Sequence[str], gold: Sequence[str], kind: TaskKind) -> tuple[Mark, ...]:
    """The marks of predicted labels, of which those that are not as annotated say so."""
    return tuple(
        mark if label == true else replace(mark, differs=True, why=f"annotated: {true}")
        for mark, label, true in zip(sentence.marks(predicted, kind.scheme), predicted, gold, strict=True)
    )


def outlined(kind: TaskKind) -> str:
    """What marks a label that is not as annotated: `Outlined`."""
    return "Outlined" if kind.reads == "words" else "On orange"
