"""The answers of the configurations: sentences with their lanes, and scores against gold labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.corpora.types import Sentence
from core.tagging import Answered, written
from core.tasks import tasks_reading
from core.tasks.answers import TextAnswer
from core.wording import all_of, plural
from dashboard.components.sentence import sentence
from dashboard.components.text_answers import Column, text_answers
from dashboard.shared import resources
from dashboard.shared.downloads import data_table
from dashboard.shared.selection import switch
from dashboard.shared.states import show_note
from dashboard.tag.seeds import Answer
from dashboard.tag.texts import shown_texts, task_answers, text_disagreement
from dashboard.tag.views import (
    Marked,
    Placed,
    about_confidence,
    blocks,
    disagreement,
    leanings,
    marked,
    mistakes_in_words,
    schemes_of,
    score_rows,
    undrawn,
)
from dashboard.text import escape, unbroken

_FIRST = "tag_first"


def show_answers(
    configs: Mapping[str, RunConfig],
    sentences: Sequence[Sentence],
    answers: Sequence[Answer],
    places: Sequence[Placed] | None = None,
) -> None:
    """Draws the sentences with a lane per task and configuration, mistakes or differences, and scores.

    Answers on whole texts come below. `places` has the text of each sentence of words.
    """
    spoken = [given for given in sentences if not given.whole]
    if spoken and tasks_reading(schemes_of(answers), "words"):
        _lanes(configs, spoken, answers, places)
    if spoken and (of_sentences := tasks_reading(schemes_of(answers), "sentence")):
        _on_sentences(spoken, answers, of_sentences, configs)
    texts = [given for given in sentences if given.whole]
    for number, text in enumerate(texts):
        _on_text(text, number, answers, configs, is_shown=not spoken)


def _on_sentences(
    sentences: Sequence[Sentence],
    answers: Sequence[Answer],
    schemes: Mapping[str, str],
    configs: Mapping[str, RunConfig],
) -> None:
    """Draws the answers on whole sentences: one sentence as drawn, of several a row for each."""
    if len(sentences) == 1:
        _drawn(sentences[0], lambda of: of.sentences[0].answers, answers, schemes, "sentence")
    else:
        rows = [
            {"Sentence": " ".join(sentence.tokens)}
            | {f"{task}, gold": sentence.labels[task][0] for task in schemes if task in sentence.labels}
            | {
                f"{task}, {answer.who}" if len(answers) > 1 else task: written(answered.value)
                for task in schemes
                for answer in answers
                if (answered := answer.sentences[number].answers.get(task)) is not None
            }
            for number, sentence in enumerate(sentences)
        ]
        data_table(
            pd.DataFrame(rows),
            column_config={"Sentence": st.column_config.TextColumn(width="large")},
            alt="What the models say of each sentence",
        )
    for answer in answers:
        every = [given for tagged in answer.sentences for given in tagged.answers.values()]
        _about_length(answer.who, configs[answer.who], every)


def _on_text(
    text: Sentence,
    number: int,
    answers: Sequence[Answer],
    configs: Mapping[str, RunConfig],
    *,
    is_shown: bool,
) -> None:
    """Draws the answers on a whole text or a pair; `is_shown`: its text too, if no field above has it."""
    # A test pair has gold of pairs alone; what tasks on texts say of its first text would only stand around.
    pair_only = is_shown and text.second is not None
    schemes = tasks_reading(schemes_of(answers), *(("pair",) if pair_only else ("text", "pair")))

    def answered(of: Answer) -> Answered:
        return {task: of.texts[number][task] for task in schemes if task in of.texts[number]}

    if not any(map(answered, answers)):
        return
    _drawn(text, answered, answers, schemes, str(number), shown_texts(text) if is_shown else [])
    missing = [] if is_shown or text.second is not None else list(tasks_reading(schemes, "pair"))
    if missing:
        needs = "needs" if len(missing) == 1 else "need"
        show_note(f"{escape(all_of(missing))} {needs} a second text.")
    for answer in answers:
        _about_length(answer.who, configs[answer.who], answered(answer).values())


def _drawn(
    text: Sentence,
    answered: Callable[[Answer], Answered],
    answers: Sequence[Answer],
    schemes: Mapping[str, str],
    key: str,
    shown: Sequence[str] = (),
) -> None:
    """Draws the answers of each configuration and seed on a sentence, text or pair, below the texts."""
    columns = [
        column
        for answer in answers
        for column in (
            (Column(answer.who if len(answers) > 1 or answer.seeds else ""), answer),
            *((Column(seed.who, answer.who), seed) for seed in answer.seeds),
        )
    ]
    who, everyone = zip(*columns, strict=True)
    with st.container(key=f"text_answers_{key}"):
        text_answers(
            who,
            task_answers(text, answered, everyone, resources.task_colours()),
            shown,
            about=text_disagreement(answered, answers, schemes),
            key=f"answered_{key}",
        )


def _about_length(who: str, config: RunConfig, answers: Iterable[TextAnswer]) -> None:
    if any(answer.shortened for answer in answers):
        text = f"{who} reads no more than max_length {config.max_length}; the end of the text is left out."
        show_note(escape(text))


def _lanes(
    configs: Mapping[str, RunConfig],
    sentences: Sequence[Sentence],
    answers: Sequence[Answer],
    places: Sequence[Placed] | None,
) -> None:
    gold = {task for given in sentences for task in given.labels}
    has_gold = bool(gold)
    drawn = blocks(sentences, answers, resources.task_colours(), places)
    of_models = [lane for block in drawn for lane in block.lanes]
    in_question = any(mark.in_question for lane in of_models for mark in lane.cells)
    differs = any(mark.differs for lane in of_models if not lane.of for mark in lane.cells)
    marks = legend(
        has_gold=has_gold,
        is_partial=not gold.issuperset(tasks_reading(schemes_of(answers), "words")),
        has_seeds=any(of.seeds for of in answers),
        first=answers[0].who if differs and len(answers) > 1 else "",
        has_reference=any(lane.is_reference for lane in of_models),
        in_question=in_question,
        has_spans="iob2" in schemes_of(answers).values(),
    )
    rows = marked(answers, sentences, next(iter(configs.values())).pos_score) if has_gold else []
    headlines = [mistakes_in_words(rows), disagreement(answers, range(len(sentences)))]
    headline = " ".join(filter(None, headlines))
    if headline:
        head = st.container(horizontal=True, horizontal_alignment="distribute")
        with head.container(key="answer_tag", width="content"):
            st.markdown(unbroken(headline))
    else:
        head = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with head:
        if len(sentences) > 1 or not headline:
            st.markdown(_size(sentences), width="content")
        keys = _KEYS + _SEEDS * any(of.seeds for of in answers)
        confidence = switch("Show confidence", key="confidence", help=keys)
    if len(sentences) == 1 and (leans := leanings(answers)):
        st.markdown(unbroken(leans))
    if len(drawn) == 1:  # its disagreement stands above
        drawn = [replace(drawn[0], about="")]
    absent = undrawn(of_models)
    shown = [(mark, meaning) for mark, meaning in marks if mark not in absent]
    sentence(drawn, key="tagged", confidence=confidence, marks=shown)
    if note := about_confidence(configs.values()):
        st.caption(note)
    # Once another sentence is tagged, this is only in the help of the switch.
    tokens = [given.tokens for given in sentences]
    if st.session_state.setdefault(_FIRST, tokens) == tokens:
        st.caption(keys)
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        st.caption(escape(note))
    show_scores(rows, schemes_of(answers), "the text")
    if rows and any(of.seeds for of in answers):
        st.caption("Of several seeds, the most frequent answer is scored. A split word counts as a mistake.")


def legend(
    *,
    has_gold: bool,
    is_partial: bool,
    has_seeds: bool,
    first: str,
    has_spans: bool,
    has_reference: bool = False,
    in_question: bool = False,
) -> list[tuple[str, str]]:
    """Returns the lanes' marks that are drawn, by their names in sentence.js, each with its meaning.

    Others differ from the lane `first`. `is_partial`: some tasks have no gold labels. `in_question`: some
    words are tinted.
    """
    compared = has_gold or bool(first)
    outlined = ["an error against the gold labels"] * has_gold
    outlined += [f"differs from {first}"] * (bool(first) and is_partial)
    parts = [
        ("thick", "all seeds agree", has_seeds),
        ("thin", "fewer seeds agree" if has_seeds else "less certain", True),
        ("few", "at most half of the seeds: the most frequent label", has_seeds),
        ("split", "no label leads", has_seeds),
        ("hollow", "a span of at most half of the seeds", has_seeds and has_spans),
        ("tint", f"configurations disagree{', or no label has a majority' * has_seeds}", in_question),
        ("reference", "others are compared with it", has_reference),
        ("outline", ", without gold ".join(outlined), compared),
        ("dashed", f"a {'missed' if has_gold else 'missing'} span", compared and has_spans),
    ]
    return [(mark, meaning) for mark, meaning, is_drawn in parts if is_drawn]


_KEYS = "Point at a label, or use Tab and the arrow keys, for its meaning and alternatives."
_SEEDS = " Click the name of a lane for its seeds."


def _size(sentences: Sequence[Sentence]) -> str:
    words = plural(sum(len(given.tokens) for given in sentences), "word")
    return f"{plural(len(sentences), 'sentence')}, {words}." if len(sentences) > 1 else f"{words}."


def show_scores(rows: Sequence[Marked], schemes: Mapping[str, str], source: str) -> None:
    """Draws a row for each task and system; `source` names the text with gold labels."""
    if not rows:
        return
    data_table(
        pd.DataFrame(score_rows(rows, schemes)),
        column_config={
            "Score": st.column_config.TextColumn(width="small", alignment="right"),
            "Over": st.column_config.TextColumn(width="small"),
            "Mistakes": st.column_config.TextColumn(width="large"),
        },
        alt="Score and mistakes by kind of each run on each task",
    )
    undefined = (row.score for row in rows if not row.score.is_defined)
    for note in dict.fromkeys(f"{of.task} is undefined: {of.undefined_because(source)}." for of in undefined):
        st.caption(escape(note))
