"""The answers of the systems: sentences with their lanes, and scores against gold labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from core.corpora.types import Sentence
from core.records import TextAnswer
from core.tagging import written
from core.tasks import KINDS, reading
from core.wording import all_of, percent, plural
from dashboard.components.sentence import sentence
from dashboard.components.text_answers import text_answers
from dashboard.shared import resources
from dashboard.shared.downloads import data_table
from dashboard.shared.selection import switch
from dashboard.tag.texts import shown_texts, task_answers, text_disagreement
from dashboard.tag.views import (
    Answer,
    Marked,
    System,
    about_confidence,
    blocks,
    disagreement,
    kinds_in_words,
    marked,
    schemes_of,
)
from dashboard.text import escape
from jobs.reports.table import SCORE_NAMES


def show_answers(
    chosen_systems: Sequence[System], sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float
) -> None:
    """Draws the sentences with a lane per task and system, mistakes or differences, and scores.
    Answers on whole texts come below.
    """
    spoken = [given for given in sentences if not given.whole]
    if spoken and reading(schemes_of(answers), "words"):
        _lanes(chosen_systems, spoken, answers, seconds)
    if spoken and (of_sentences := reading(schemes_of(answers), "sentence")):
        _on_sentences(spoken, answers, of_sentences, chosen_systems)
    texts = [given for given in sentences if given.whole]
    for number, text in enumerate(texts):
        _on_text(text, number, answers, chosen_systems, is_shown=not spoken)


def _on_sentences(
    sentences: Sequence[Sentence],
    answers: Sequence[Answer],
    schemes: Mapping[str, str],
    chosen_systems: Sequence[System],
) -> None:
    """Draws the answers on whole sentences: one sentence as drawn, of several a row for each."""
    if len(sentences) == 1:
        _drawn(
            sentences[0], [answer.sentences[0].answers for answer in answers], answers, schemes, "sentence"
        )
    else:
        rows = [
            {"Sentence": " ".join(sentence.tokens)}
            | {f"{task}, gold": sentence.labels[task][0] for task in schemes if task in sentence.labels}
            | {
                f"{task}, {answer.who}" if len(answers) > 1 else task: written(said.value)
                for task in schemes
                for answer in answers
                if (said := answer.sentences[number].answers.get(task)) is not None
            }
            for number, sentence in enumerate(sentences)
        ]
        data_table(
            pd.DataFrame(rows),
            column_config={"Sentence": st.column_config.TextColumn(width="large")},
            alt="What the models say of each sentence",
        )
    for system, answer in zip(chosen_systems, answers, strict=True):
        _about_length(system, [said for tagged in answer.sentences for said in tagged.answers.values()])


def _on_text(
    text: Sentence,
    number: int,
    answers: Sequence[Answer],
    chosen_systems: Sequence[System],
    *,
    is_shown: bool,
) -> None:
    """Draws the answers on a whole text or a pair; `is_shown`: its text too, if no field above has it."""
    # A test pair has gold of pairs alone; what tasks on texts say of its first text would only stand around.
    pair_only = is_shown and text.second is not None
    schemes = reading(schemes_of(answers), *(("pair",) if pair_only else ("text", "pair")))
    said = [{task: of[task] for task in schemes if task in of} for of in (a.texts[number] for a in answers)]
    if not any(said):
        return
    _drawn(text, said, answers, schemes, str(number), shown_texts(text) if is_shown else [])
    missing = [] if is_shown or text.second is not None else list(reading(schemes, "pair"))
    if missing:
        reads = "reads" if len(missing) == 1 else "read"
        st.caption(f":material/info: {escape(all_of(missing))} {reads} pairs: write a second text above.")
    for system, of_system in zip(chosen_systems, said, strict=True):
        _about_length(system, of_system.values())


def _drawn(
    text: Sentence,
    said: Sequence[Mapping[str, TextAnswer]],
    answers: Sequence[Answer],
    schemes: Mapping[str, str],
    key: str,
    shown: Sequence[str] = (),
) -> None:
    """The answers of each system on a sentence, a text or a pair, below the texts that are `shown`."""
    with st.container(key=f"text_answers_{key}"):
        text_answers(
            [answer.who if len(answers) > 1 else "" for answer in answers],
            task_answers(text, said, answers, resources.task_colours()),
            shown,
            about=text_disagreement(said, schemes),
            key=f"answered_{key}",
        )


def _about_length(system: System, said: Iterable[TextAnswer]) -> None:
    """A line where a text was longer than a system reads."""
    if any(answer.shortened for answer in said):
        longest = system.runs[0].config.max_length
        text = f"Longer than {system.who} reads (max_length {longest}): its end is left out."
        st.caption(f":material/info: {escape(text)}")


def _lanes(
    chosen_systems: Sequence[System], sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(_summary(sentences, answers, seconds), width="content")
        confidence = switch("Show confidence", key="confidence")
    sentence(blocks(sentences, answers, resources.task_colours()), key="tagged", confidence=confidence)
    if note := about_confidence(chosen_systems):
        st.caption(note)
    has_gold = any(given.labels for given in sentences)
    parts = [
        "The fainter a line, the less confident the run. Point at a label, or reach it with Tab and the "
        "arrow keys, for its confidence and the next choices."
    ]
    if has_gold:
        parts.append("Outlined: wrong label or boundary, invented spans; dashed: missed spans.")
    elif len(answers) > 1:
        parts.append("Outlined: differs from the first model; dashed where a span is missing.")
    st.caption(" ".join(parts))
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        st.caption(escape(note))
    if has_gold:
        rows = marked(answers, sentences, chosen_systems[0].runs[0].config.pos_score)
        _scores(rows, schemes_of(answers))


def _summary(sentences: Sequence[Sentence], answers: Sequence[Answer], seconds: float) -> str:
    size = plural(sum(len(given.tokens) for given in sentences), "word")
    text = f"{size}, tagged in {1000 * seconds:.0f} ms."
    if len(sentences) == 1:  # what is said of a sentence stands under it
        return text
    return f"{plural(len(sentences), 'sentence')}, {text} {disagreement(answers, range(len(sentences)))}"


def _scores(rows: Sequence[Marked], schemes: Mapping[str, str]) -> None:
    """A line per task and system: the score by the scorer of training, and the mistakes by kind."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    data_table(
        pd.DataFrame(
            {
                "Task": row.task,
                "Model": row.who,
                "Score": percent(row.score),
                "Measure": SCORE_NAMES.get(row.score_name, row.score_name),
                "Over": plural(row.items, KINDS[schemes[row.task]].item),
                "Mistakes": kinds_in_words(row.kinds),
            }
            for row in sorted(rows, key=lambda row: tasks.index(row.task))
        ),
        column_config={
            "Score": st.column_config.TextColumn(width="small", alignment="right"),
            "Over": st.column_config.TextColumn(width="small"),
            "Mistakes": st.column_config.TextColumn(width="large"),
        },
        alt="Score and mistakes by kind of each run on each task",
    )
    for note in dict.fromkeys(
        f"{row.task} is undefined: {row.why_undefined}." for row in rows if row.why_undefined
    ):
        st.caption(escape(note))
