"""What is tagged: a text, sentences with their gold labels, test sentences of the run's corpus, or a file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import streamlit as st

from core.corpora.folder import EXTENSIONS
from core.corpora.free_text import (
    LAYOUTS,
    GivenText,
    Layout,
    given_sentences,
    has_unspaced_script,
    read_given,
    split_sentences,
)
from core.corpora.readers import TOKENS
from core.corpora.types import Sentence
from core.errors import CorpusError, MRNLabError
from core.store.records import Run
from core.wording import duration, percent, plural
from dashboard.shared.states import empty, problem
from dashboard.tag.models import TaggedFile, answers, is_here, models, tagged_file, test_split
from dashboard.tag.views import CheckedSentence, System, schemes_of
from dashboard.text import escape
from jobs.naming import corpus_name
from jobs.results import SCORE_NAMES

TEXT, GOLD, TEST, FILE = "Text", "Gold labels", "Test sentences", "File"

MOST_WORDS = 600
"""Words drawn at once; longer texts are for files."""
MOST_MEGABYTES = 20
MOST_FILE_WORDS = 300_000

_LONGEST_IN_LINK = 6000
_TAGGED = "tagged_file"
_PREVIEW_LINES = 12
_GOLD_EXAMPLE = "Anna NNP B-NP B-PER\nSmith NNP I-NP I-PER\nvisited VBD B-VP O\nParis NNP B-NP B-LOC\n. . O O"


def input_kind() -> str:
    """Which of the four it is. A link with gold labels opens where they are read."""
    _from_link("tag_text", "text")
    _from_link("tag_gold", "gold")
    if "input" not in st.session_state and "gold" in st.query_params and "input" not in st.query_params:
        st.session_state["input"] = GOLD
    kind = st.segmented_control(
        "What to tag",
        [TEXT, GOLD, TEST, FILE],
        default=None if "input" in st.session_state else TEXT,
        required=True,
        key="input",
        bind="query-params",
        label_visibility="collapsed",
    )
    for parameter, owner in (("text", TEXT), ("split", TEXT), ("gold", GOLD)):
        if kind != owner:
            _to_link(parameter, "")
    return str(kind)


def text() -> list[Sentence]:
    """A free text, or one that is already split, as sentences of words."""
    st.session_state.setdefault("tag_split", st.query_params.get("split") == "yes")
    written = st.text_area(
        "Text",
        key="tag_text",
        height="content",
        persist_state="session",
        placeholder="Type or paste, then Ctrl+Enter: John Smith of the World Bank flew to Paris on Monday.",
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Tag", type="primary", icon=":material/sell:")
        split = st.toggle(
            "Already split into words",
            key="tag_split",
            persist_state="session",
            help="On: words stand between spaces, a sentence a line (or a word a line, with empty lines "
            "between sentences). Off: sentences, words and punctuation are told apart for you.",
        )
    _to_link("text", written)
    _to_link("split", "yes" if split and written else "")
    words = given_sentences(written) if split else split_sentences(written)
    if not split and has_unspaced_script(written):
        st.caption(
            ":material/info: Part of this text is in a script without spaces, which is not split into words "
            "here. Put spaces between its words and switch *Already split into words* on."
        )
    return [Sentence(tuple(tokens), {}) for tokens in words]


def gold_text(schemes: Mapping[str, str]) -> list[Sentence]:
    """Pasted CoNLL columns: words with their gold labels. `schemes`: that of each task."""
    if not schemes:
        return []
    written = st.text_area(
        "Words and gold labels in columns",
        key="tag_gold",
        height=200,
        persist_state="session",
        placeholder=_GOLD_EXAMPLE,
        help="A word a line, its labels beside it after tabs or spaces; an empty line ends a sentence.",
    )
    _to_link("gold", written)
    if not written.strip():
        return []
    given = _read(written.encode("utf-8", "replace"), "Pasted text", schemes)
    if given is not None and not given.gold:
        known = ", ".join(schemes)
        problem(f"No column is named after a task of these runs ({known}), so nothing can be compared.")
    return [] if given is None else list(given.sentences)


def _read(
    content: bytes, name: str, schemes: Mapping[str, str], *, is_file: bool = False
) -> GivenText | None:
    """The content, how it is read, and a way to read it otherwise; None where it cannot be read so."""
    key = f"tag_{hashlib.sha256(content).hexdigest() if is_file else 'gold'}"
    with st.container(horizontal=True, vertical_alignment="center"):
        said = st.container(width="content")
        with st.popover("Change", icon=":material/tune:", type="tertiary"):
            layout: Layout | None = None
            if is_file:
                layout = st.selectbox(
                    "Read as",
                    [None, *LAYOUTS],
                    format_func=lambda layout: LAYOUTS[layout].capitalize() if layout else "As detected",
                    key=f"{key}_layout",
                )
            names = st.text_input(
                "Columns, from left to right",
                placeholder=", ".join((TOKENS, *schemes)),
                key=f"{key}_columns",
                disabled=layout not in (None, "columns"),
                help="A column whose name begins with \\_ is skipped.",
            )
    columns = tuple(name.strip() for name in names.split(",") if name.strip())
    try:
        given = read_given(content, name, schemes, columns=columns, layout=layout)
    except CorpusError as error:
        problem(str(error))
        return None
    said.caption(escape(f"Read as {given.read_as}."))
    for note in given.notes:
        st.caption(f":material/info: {escape(note)}")
    return given


def test_sentence(chosen_systems: Sequence[System], first: Run) -> list[Sentence]:
    """A test sentence of a system's corpus, at first of those that the system of this run got wrong."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    names = {system.who: system for system in chosen_systems}
    who = next((name for name, system in names.items() if first in system.runs), chosen_systems[0].who)
    if len(names) > 1:
        place = list(names).index(who)
        who = row.selectbox("Model", list(names), place, key="of", bind="query-params", width=240)
    system = names[who]
    config = system.runs[0].config
    if not is_here(config) and not st.toggle(
        f"Read {escape(corpus_name(config))} from the Hugging Face Hub", help="Over the network if need be."
    ):
        return []
    try:
        with st.spinner("Reading the test sentences"):
            tested = test_split(system)
    except MRNLabError as error:
        problem(str(error))
        return []
    tasks = list(dict.fromkeys(system.tasks))
    with row:
        which = st.selectbox(
            f"Errors of {escape(system.who)} in",
            ["any task", *tasks, "no task", "all sentences"],
            key="wrong",
            bind="query-params",
            width=240,
        )
        matching = [checked.sentence for checked in tested if _matches(checked, which)]
        if not matching:
            st.caption("There is no such sentence in the test split.")
            return []
        number = st.number_input(
            f"Sentence, 1 to {len(matching):,}",
            min_value=1,
            max_value=len(matching),
            key="sentence",
            bind="query-params",
            width=170,
        )
    return [matching[min(int(number), len(matching)) - 1]]


def _matches(checked: CheckedSentence, which: str) -> bool:
    special = {"any task": bool(checked.wrong), "no task": not checked.wrong, "all sentences": True}
    return special.get(which, which in checked.wrong)


def bounded(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The first sentences with no more than 600 words in all, and a line on what is left out."""
    shortened: list[Sentence] = []
    room, words = MOST_WORDS, sum(len(sentence.tokens) for sentence in sentences)
    for sentence in sentences:
        if room > 0:
            labels = {task: labels_of_task[:room] for task, labels_of_task in sentence.labels.items()}
            shortened.append(Sentence(sentence.tokens[:room], labels))
            room -= len(sentence.tokens)
    left_out = words - MOST_WORDS
    if left_out > 0:
        st.caption(
            f":material/info: The first {MOST_WORDS} words are tagged; {plural(left_out, 'word')} more are "
            f"left out. *{FILE}* takes long texts."
        )
    return shortened


def nothing_yet(kind: str, system: System) -> None:
    """What to do where there is nothing to tag."""
    if kind == TEXT:
        with st.container(border=True):
            st.markdown("**Enter a sentence**")
            corpus, samples = _samples(system)
            st.markdown(f"Type or paste one above and press Ctrl+Enter, or take one of {corpus}:")
            with st.container(gap="small"):
                for sample in samples:
                    st.button(escape(sample), icon=":material/sell:", on_click=_take, args=(sample,))
    elif kind == GOLD:
        empty(
            "Paste words with gold labels",
            "One word a line, its labels beside it. Errors are marked by kind.",
        )


_EXAMPLES = (
    "John Smith of the World Bank flew to Paris on Monday .",
    "Boston beat Mexico City in London on Sunday .",
    "Angela Merkel visited the European Parliament , Reuters said .",
)


def _samples(system: System) -> tuple[str, list[str]]:
    """What the three samples are, as Markdown, and their texts: of the run's corpus where it is at hand."""
    config = system.runs[0].config
    try:
        tested = test_split(system) if is_here(config) else []
    except MRNLabError:  # said where the reader asks for test sentences
        tested = []
    sentences = [checked.sentence for checked in tested if 5 <= len(checked.sentence.tokens) <= 14]
    sentences = [sentence for sentence in sentences if all(map(str.isalpha, sentence.tokens[:-1]))]
    if len(sentences) < 3:
        return "these", list(_EXAMPLES)
    # Those with the most different labels show the most.
    sentences.sort(key=lambda sentence: -sum(len(set(labels)) for labels in sentence.labels.values()))
    return f"the test sentences of {escape(corpus_name(config))}", [" ".join(s.tokens) for s in sentences[:3]]


def _take(sample: str) -> None:
    st.session_state["tag_text"] = sample


def _from_link(key: str, parameter: str) -> None:
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(parameter, "")


def _to_link(parameter: str, value: str) -> None:
    """The address reproduces what is shown, but for texts longer than an address may be."""
    fits = len(quote(value)) <= _LONGEST_IN_LINK
    if value and fits:
        if st.query_params.get(parameter) != value:
            st.query_params[parameter] = value
    elif parameter in st.query_params:
        del st.query_params[parameter]
    if value and not fits:
        st.caption(":material/link_off: This text is too long for a link; the address leaves it out.")


# A file


def tag_file(chosen_systems: Sequence[System]) -> None:
    """The upload, what is in it, progress, and the result."""
    system = chosen_systems[0]
    if len(chosen_systems) > 1:
        system = st.selectbox(
            "Model", chosen_systems, format_func=lambda system: system.who, key="tag_file_system", width=460
        )
    uploaded = st.file_uploader(
        f"Text or CoNLL columns, up to {MOST_MEGABYTES} MB and {MOST_FILE_WORDS:,} words",
        type=list(EXTENSIONS),
        max_upload_size=MOST_MEGABYTES,
        key="tag_file",
    )
    if uploaded is None:
        empty(
            "Choose a file",
            "Sentences, a word a line, or columns: the page says how it reads the file, and you can change "
            "that. Every task's labels are written beside each word. Labels in the file are taken for gold.",
        )
        return
    content, schemes = uploaded.getvalue(), schemes_of(answers([system], ())[0])
    given = _read(content, uploaded.name, schemes, is_file=True)
    if given is None:
        return
    words = sum(len(sentence.tokens) for sentence in given.sentences)
    gold = f"; gold labels of {', '.join(given.gold)}" if given.gold else "; no gold labels"
    st.caption(escape(f"{plural(len(given.sentences), 'sentence')}, {plural(words, 'word')}{gold}."))
    if words > MOST_FILE_WORDS:
        problem(
            f"{uploaded.name} holds {words:,} words and the most here is {MOST_FILE_WORDS:,}; split it, or "
            f"use mrnlab tag {system.runs[0].id} --file, which has no limit."
        )
        return
    key = hashlib.sha256(content).hexdigest() + repr((given.read_as, system.checkpoints))
    tagged: tuple[str, TaggedFile] | None = st.session_state.get(_TAGGED)
    if tagged is None or tagged[0] != key:
        if not st.button("Tag the file", type="primary", icon=":material/sell:"):
            return
        st.session_state[_TAGGED] = key, _tag(given, system)
        st.rerun()
    _result(tagged[1], f"{Path(uploaded.name).stem}-run-{system.runs[0].id}")


def _tag(given: GivenText, system: System) -> TaggedFile:
    """Tags the file under a progress bar. A click on Cancel, as any other, ends this run of the page."""
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="Loading the model")
        st.button("Cancel", icon=":material/stop_circle:")
    loads = [models().load(checkpoint) for checkpoint in system.checkpoints]
    taggers = [load.result() for load in loads]
    total, began = len(given.sentences), time.monotonic()

    def progress(done: int) -> None:
        left = duration((time.monotonic() - began) / done * (total - done))
        bar.progress(done / total, text=f"{done:,} of {plural(total, 'sentence')}, about {left} left")

    return tagged_file(given, taggers, system.runs[0].config.pos_score, progress)


def _result(tagged: TaggedFile, name: str) -> None:
    if tagged.scores:
        st.dataframe(
            pd.DataFrame(
                {
                    "Task": score.task,
                    "Score": percent(score.score),
                    "Measure": SCORE_NAMES.get(score.score_name, score.score_name),
                    "Precision": percent(score.precision),
                    "Recall": percent(score.recall),
                    "Words": score.tokens,
                }
                for score in tagged.scores
            ),
            hide_index=True,
            height="content",
            alt="Scores against the gold labels of the file, a line per task",
        )
        st.caption("By the scorer of training, on the sentences that have gold labels of the task.")
    sure = st.toggle("With confidence", key="tag_file_sure", persist_state="session")
    columns, text = tagged.columns[sure], tagged.texts[sure]
    st.download_button(
        "Download CoNLL",
        text,
        file_name=f"{name}.conll",
        mime="text/plain",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
    )
    st.caption(escape(f"Columns, set apart by tabs: {', '.join(columns)}."))
    lines = text.decode().splitlines()[:_PREVIEW_LINES]
    st.code("\n".join(lines), language=None)
