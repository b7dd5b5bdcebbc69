"""A file of words or whole texts: its content, its answers, their scores, the download."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.corpora.layout.column_names import is_text_column
from core.corpora.readers.files import EXTENSIONS
from core.corpora.readers.lines import GivenFile
from core.corpora.readers.texts import ENDINGS, holds_texts, read_asked
from core.corpora.types import Sentence
from core.events import TaskScore
from core.tagging import (
    Tagger,
    answer_in_parts,
    check_texts,
    column_names,
    conll_text,
    given_scores,
    tab_separated,
    tag_in_parts,
    text_table,
)
from core.tasks import tasks_reading
from core.tasks.scores import PlainScore
from core.wording import duration, first_of, plural
from dashboard.shared.downloads import data_table
from dashboard.shared.states import problem
from dashboard.tag.answers import show_scores
from dashboard.tag.controls import read_columns
from dashboard.tag.models import models
from dashboard.tag.seeds import System
from dashboard.tag.views import Marked
from dashboard.text import escape

MOST_MEGABYTES = 20
MOST_WORDS = 300_000
_MOST_ROWS = 1000
_ANSWERS = "file_answers"

_OF_WORDS = (
    "One sentence a line, one word a line, or columns. The format is detected, and you can change it. "
    "The download has each task's labels beside every word. Labels in the file count as gold."
)
_OF_TEXTS = (
    "A .tsv, .csv or .jsonl file with a column text, or text1 and text2, is answered row by row. A column "
    "named like a task holds its gold labels."
)


@dataclass(frozen=True)
class ReadFile:
    """The content of a file: sentences or whole texts, tasks with gold labels, columns left out, format."""

    name: str
    sentences: Sequence[Sentence]
    gold: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    read_as: str = ""

    @property
    def whole(self) -> bool:
        """Whether it holds whole texts or pairs, a row each."""
        return self.sentences[0].whole


@dataclass(frozen=True)
class FileAnswers:
    """The names of the columns and the text of the download, `written` without and with probabilities."""

    written: tuple[tuple[Sequence[str], str], ...]
    scores: Sequence[TaskScore]


def tag_file(systems: Mapping[str, System]) -> None:
    """Draws the upload, the content of the file, progress, and the result."""
    who = next(iter(systems))
    if len(systems) > 1:
        who = st.selectbox("Model", systems, key="tag_file_system", width=460)
    system = systems[who]
    with st.spinner("Loading the model", show_time=True):
        taggers = [models().load(checkpoint).result() for checkpoint in system.checkpoints]
    schemes = {task: scheme for tagger in taggers for task, scheme in tagger.schemes.items()}
    has_words = tasks_reading(schemes, "words", "sentence")
    has_texts = tasks_reading(schemes, "sentence", "text", "pair")
    uploaded = st.file_uploader(
        f"A file, up to {MOST_MEGABYTES} MB and {MOST_WORDS:,} words",
        type=[*dict.fromkeys([*(EXTENSIONS if has_words else ()), *(ENDINGS if has_texts else ())])],
        max_upload_size=MOST_MEGABYTES,
        key="tag_file",
    )
    if uploaded is None:
        st.caption(" ".join([_OF_WORDS] * bool(has_words) + [_OF_TEXTS] * bool(has_texts)))
        return
    upload = GivenFile(uploaded.name, uploaded.getvalue())
    file: ReadFile | None
    if has_texts and holds_texts(upload):
        asked = read_asked(upload, schemes)
        check_texts(who, schemes, asked.texts, second_by="in a column text2 beside text1")
        file = ReadFile(upload.name, asked.texts, asked.gold, asked.left_out)
    elif given := read_columns(upload.content, upload.name, has_words):
        file = ReadFile(upload.name, given.sentences, given.gold, read_as=given.read_as)
    else:
        return
    words = sum(sentence.words for sentence in file.sentences)
    size = f"{plural(len(file.sentences), 'row' if file.whole else 'sentence')}, {plural(words, 'word')}"
    gold = f"gold labels of {', '.join(file.gold)}" if file.gold else "no gold labels"
    left_out = f"; left out: {first_of(file.left_out)}" if file.left_out else ""
    st.caption(escape(f"{size}; {gold}{left_out}."))
    if words > MOST_WORDS:
        problem(
            f"{file.name} has {words:,} words; the most here is {MOST_WORDS:,}. Split the file, or use "
            f"mrnlab tag {system.runs[0].id} --file, which has no limit."
        )
        return
    key = hashlib.sha256(upload.content).hexdigest() + repr((file.read_as, system.checkpoints))
    known: tuple[str, FileAnswers] | None = st.session_state.get(_ANSWERS)
    if known is None or known[0] != key:
        label = "Answer the file" if file.whole else "Tag the file"
        if not st.button(label, type="primary", icon=":material/sell:"):
            return
        answered = answer_file(file, taggers, system.runs[0].config.pos_score, _progress(file))
        st.session_state[_ANSWERS] = key, answered
        st.rerun()
    _show(known[1], file, system.runs[0].id, schemes)


def _progress(file: ReadFile) -> Callable[[int], None]:
    """Draws a bar; returns a callback for the number of sentences or texts done.
    A click on Cancel, as any other, ends this run of the page.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0)
        st.button("Cancel", icon=":material/stop_circle:")
    began, total = time.monotonic(), len(file.sentences)

    def progress(done: int) -> None:
        left = duration((time.monotonic() - began) / done * (total - done))
        items = plural(total, "row" if file.whole else "sentence")
        bar.progress(done / total, text=f"{done:,} of {items}, about {left} left")

    return progress


def answer_file(
    file: ReadFile, taggers: Sequence[Tagger], plain_score: PlainScore, progress: Callable[[int], None]
) -> FileAnswers:
    """The answers of all models on the whole file, part by part.
    `progress` gets the number of sentences or texts done after each part.
    """

    def collected(parts: Iterator[list[Any]]) -> list[Any]:
        collected_answers: list[Any] = []
        for part in parts:
            collected_answers += part
            progress(len(collected_answers))
        return collected_answers

    schemes = {task: scheme for tagger in taggers for task, scheme in tagger.schemes.items()}
    if file.whole:
        answered = collected(answer_in_parts(taggers, file.sentences))
        tables = [text_table(file.sentences, answered, confidence=flag) for flag in (False, True)]
        of_texts = {task: schemes[task] for task in answered[0]}
        scores = given_scores(file.sentences, answered, of_texts)
        return FileAnswers(tuple((table[0], tab_separated(table)) for table in tables), scores)
    tagged = collected(tag_in_parts(taggers, [sentence.tokens for sentence in file.sentences]))
    of_words, tasks = tasks_reading(schemes, "words"), tasks_reading(schemes, "words", "sentence")
    written = tuple(
        (
            column_names(list(of_words), file.gold, confidence=flag),
            conll_text(file.sentences, tagged, confidence=flag),
        )
        for flag in (False, True)
    )
    return FileAnswers(written, given_scores(file.sentences, tagged, tasks, plain_score))


def _show(result: FileAnswers, file: ReadFile, run_id: int, schemes: Mapping[str, str]) -> None:
    show_scores(list(map(Marked, result.scores)), schemes, "the file")
    if result.scores:
        st.caption("Scored as in training, where there are gold labels of the task.")
    sure = st.toggle("With confidence", key="tag_file_sure", persist_state="session")
    columns, text = result.written[sure]
    st.download_button(
        f"Download {'TSV' if file.whole else 'CoNLL'}",
        text,
        file_name=f"{Path(file.name).stem}-run-{run_id}.{'tsv' if file.whole else 'conll'}",
        mime="text/tab-separated-values",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
    )
    lines = text.split("\n")[file.whole :]
    cells = [line.split("\t") for line in islice(filter(None, lines), _MOST_ROWS)]
    rows = [[*row, *[""] * (len(columns) - len(row))] for row in cells]  # a comment is a row of one cell
    # Columns with a task's name may have any; those of texts get the room.
    wide = {name: st.column_config.TextColumn(width="large") for name in columns if is_text_column(name)}
    frame = pd.DataFrame(rows, columns=list(columns))
    data_table(frame, height="auto", column_config=wide, alt="The answers, a row each")
    if (total := sum(map(bool, lines))) > _MOST_ROWS:
        st.caption(f"The first {_MOST_ROWS:,} of {total:,} rows; the download has all.")
