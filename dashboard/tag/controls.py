"""The input of Tag: a text or a pair, test sentences of the corpus, or a file."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from urllib.parse import quote

import streamlit as st

from core.config.fields import comma_list
from core.corpora.layout.column_names import TOKENS
from core.corpora.readers.given import LAYOUTS, GivenText, Layout, read_given
from core.corpora.readers.splitting import (
    given_sentences,
    has_unspaced_script,
    place_words,
    split_sentences,
)
from core.corpora.types import Sentence, whole_text
from core.errors import CorpusError, MRNLabError
from core.plain_text import shortened
from core.results.naming import corpus_name
from core.store.types import Run
from core.tagging import text_of
from core.tasks.kinds import Reads
from core.wording import plural
from dashboard.shared.selection import choice, segments, set_parameter
from dashboard.shared.states import problem, show_note
from dashboard.tag.models import is_here, test_split
from dashboard.tag.seeds import System
from dashboard.tag.views import ALL_SENTENCES, ANY_TASK, NO_TASK, Placed, matching
from dashboard.text import escape

TEXT, TEST, FILE = "Text", "Test sentences", "File"

MOST_WORDS = 600
"""Words drawn at once; longer texts are for files."""

_LONGEST_IN_LINK = 6000
_PLACEHOLDERS: dict[Reads, str] = {
    "words": "Type or paste, then Ctrl+Enter: John Smith of the World Bank flew to Paris on Monday.",
    "sentence": "Type or paste a sentence, then Ctrl+Enter: Book a table for two on Monday.",
    "text": "Type or paste a text, then Ctrl+Enter: A warm, funny film.",
    "pair": "The first text: A dog runs on the grass.",
}


def input_kind() -> str:
    """The kind of input that is chosen."""
    _from_link("tag_text", "text")
    _from_link("tag_second", "second")
    kind = segments("What to tag", {kind: kind for kind in (TEXT, TEST, FILE)}, key="input")
    for parameter in ("text", "second", "split") if kind != TEXT else ():
        _to_link(parameter, "")
    return kind


def text(reads: Collection[Reads]) -> list[Sentence]:
    """The typed text as sentences of words, and as a whole, alone or with a second text.
    The form follows from the input of the runs' tasks.
    """
    is_split = not set(_SPOKEN).isdisjoint(reads)
    st.session_state.setdefault("tag_split", st.query_params.get("split") == "yes")

    def area(label: str, key: str, placeholder: str) -> str:
        return st.text_area(
            label,
            key=key,
            height="content",
            persist_state="session",
            placeholder=placeholder,
            label_visibility="collapsed",
        )

    placeholder = next((words for of, words in _PLACEHOLDERS.items() if of in reads), _PLACEHOLDERS["words"])
    written = area("Text", "tag_text", placeholder)
    second = ""
    if "pair" in reads:
        second = area("Second text", "tag_second", "A second text, for the tasks on pairs.")
    split = False
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Tag this text", type="primary")
        if is_split:
            split = st.toggle(
                "Already split into words",
                key="tag_split",
                persist_state="session",
                help="On: spaces separate words, one sentence a line (or one word a line, with empty lines "
                "between sentences). Off: sentences and words are split automatically.",
            )
    _to_link("text", written)
    _to_link("second", second)
    _to_link("split", "yes" if split and written else "")
    sentences: list[Sentence] = []
    if is_split:
        words = given_sentences(written) if split else split_sentences(written)
        sentences += [Sentence(tuple(tokens), {}) for tokens in words]
        if not split and has_unspaced_script(written):
            show_note(
                "Part of this text is in a script without spaces, which is not split into "
                "words here. Put spaces between its words and switch *Already split into words* on."
            )
    if written.split() and ("text" in reads or second.split()):
        sentences.append(whole_text(written, second if second.split() else None))
    return sentences


def placed_words(kind: str, sentences: Sequence[Sequence[str]]) -> list[Placed] | None:
    """The typed text with the places of these sentences' words in it; None where no text was typed."""
    if kind != TEXT:
        return None
    written, is_split = st.session_state["tag_text"], st.session_state.get("tag_split", False)
    return [(written, words) for words in place_words(written, sentences, has_invisible=is_split)]


def read_columns(content: bytes, name: str, schemes: Mapping[str, str]) -> GivenText | None:
    """The content of a file, read as the reader of the page asks; None where it cannot be read so."""
    key = f"tag_{hashlib.sha256(content).hexdigest()}"
    with st.container(horizontal=True, vertical_alignment="center"):
        summary = st.container(width="content")
        with st.popover("Change", icon=":material/tune:", type="tertiary"):
            layout: Layout | None = st.selectbox(
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
                help="Columns starting with \\_ are ignored.",
            )
    columns = tuple(comma_list(names))
    try:
        given = read_given(content, name, schemes, columns=columns, layout=layout)
    except CorpusError as error:
        problem(str(error))
        return None
    summary.caption(escape(f"Read as {given.read_as}."))
    for note in given.notes:
        show_note(escape(note))
    return given


def test_sentence(systems: Mapping[str, System], first: Run) -> list[Sentence]:
    """A test sentence of a system's corpus, by default one with errors of this run's system."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    who = next((name for name, system in systems.items() if first in system.runs), next(iter(systems)))
    if len(systems) > 1:
        with row:
            who = choice("Errors of", systems.keys(), key="of", default=who, width=240)
    system = systems[who]
    config = system.runs[0].config
    if not is_here(config) and not st.toggle(
        f"Read {escape(corpus_name(config.corpus))} from the Hugging Face Hub",
        help="Downloads it unless it is cached.",
    ):
        return []
    try:
        with st.spinner("Reading the test sentences"):
            tested = test_split(system)
    except MRNLabError as error:
        problem(str(error))
        return []
    tasks = list(dict.fromkeys(system.tasks))
    numbers = {task for checked in tested for task in checked.off}
    options = [*tasks, ALL_SENTENCES] if numbers >= set(tasks) else [ANY_TASK, *tasks, NO_TASK, ALL_SENTENCES]
    with row:
        which = choice("In" if len(systems) > 1 else "Errors in", options, key="wrong", width=240)
        matches = matching(tested, which)
        if not matches:
            st.caption("There is no such sentence in the test split.")
            return []
        whole = all(sentence.whole for sentence in matches)
        number = st.number_input(
            f"{'Text' if whole else 'Sentence'}, 1 to {len(matches):,}",
            min_value=1,
            max_value=len(matches),
            key="sentence",
            bind="query-params",
            width=240,
            help="The largest error comes first." if which in numbers else None,
        )
    return [matches[min(int(number), len(matches)) - 1]]


def bounded(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The first sentences with at most 600 words in all, and a line on the rest; whole texts unchanged."""
    kept: list[Sentence] = []
    room, words = MOST_WORDS, sum(len(sentence.tokens) for sentence in sentences if not sentence.whole)
    for sentence in sentences:
        if sentence.whole:
            kept.append(sentence)
        elif room > 0:
            labels = {task: labels_of_task[:room] for task, labels_of_task in sentence.labels.items()}
            kept.append(replace(sentence, tokens=sentence.tokens[:room], labels=labels))
            room -= len(sentence.tokens)
    left_out = words - MOST_WORDS
    if left_out > 0:
        show_note(
            f"The first {MOST_WORDS} words are tagged; {plural(left_out, 'more word')} "
            f"{'is' if left_out == 1 else 'are'} left out. Use *{FILE}* for long texts."
        )
    return kept


def nothing_yet(kind: str, system: System, reads: Collection[Reads]) -> None:
    """Draws the next step if there is nothing to tag."""
    if kind == TEXT:
        corpus, samples = _samples(system, reads)
        what = "Enter two texts" if {"pair"} == set(reads) else "Enter a sentence"
        with st.container(gap="xsmall"):
            st.markdown(f"**{what}** above, or take one of {corpus}:")
            for place, (sample, second) in enumerate(samples):
                shown = escape(shortened(sample, _LONGEST_SAMPLE))
                shown += f" / {escape(shortened(second, _LONGEST_SAMPLE))}" if second else ""
                st.button(
                    shown,
                    icon=":material/sell:",
                    on_click=_take,
                    args=(sample, second),
                    key=f"sample_{place}",
                )


_SPOKEN = ("words", "sentence")
_EXAMPLES: dict[Reads, list[tuple[str, str]]] = {
    "words": [
        ("John Smith of the World Bank flew to Paris on Monday .", ""),
        ("Boston beat Mexico City in London on Sunday .", ""),
        ("Angela Merkel visited the European Parliament , Reuters said .", ""),
    ],
    "sentence": [
        ("Book a table for two on Monday .", ""),
        ("What is the weather like in Rome ?", ""),
        ("Cancel my flight to Paris .", ""),
    ],
    "text": [
        ("A warm , funny film .", ""),
        ("It is slow , and it is far too long .", ""),
        ("The actors do what they can .", ""),
    ],
    "pair": [
        ("A dog runs on the grass .", "A dog is running on grass ."),
        ("A man plays the guitar .", "A woman cuts an onion ."),
        ("How do I learn to swim ?", "What is the best way to learn swimming ?"),
    ],
}
_SAMPLES = 3
_LONGEST_SAMPLE = 90


def _samples(system: System, reads: Collection[Reads]) -> tuple[str, list[tuple[str, str]]]:
    """A description of the three samples as Markdown, and their texts, for every kind of input.
    They are of the run's corpus if it can be read here.
    """
    config = system.runs[0].config
    try:
        tested = test_split(system) if is_here(config) else []
    except MRNLabError:  # shown where the reader asks for test sentences
        tested = []
    by_kind: list[list[tuple[str, str]]] = []
    kinds = [kind for kind in reads if kind != "sentence" or "words" not in reads]
    for kind in kinds:
        fitting = [checked.sentence for checked in tested if _is_sample(checked.sentence, kind)]
        # Those with the most different labels show the most.
        fitting.sort(key=lambda sentence: -sum(len(set(labels)) for labels in sentence.labels.values()))
        first = {next(iter(sentence.labels.values())): sentence for sentence in reversed(fitting)}
        chosen = fitting if kind in _SPOKEN else list(first.values())
        by_kind.append([(text, second or "") for text, second in map(text_of, chosen)])
    mixed = [sample for column in zip_longest(*by_kind) for sample in column if sample is not None]
    if len(mixed) < _SAMPLES:
        columns = zip(*(_EXAMPLES[kind] for kind in kinds), strict=True)
        examples = [sample for column in columns for sample in column]
        return "these", examples[:_SAMPLES]
    return f"the test sentences of {escape(corpus_name(config.corpus).partition(' (')[0])}", mixed[:_SAMPLES]


def _is_sample(sentence: Sentence, kind: Reads) -> bool:
    if kind in _SPOKEN:
        return (
            not sentence.whole
            and 5 <= len(sentence.tokens) <= 14
            and all(map(str.isalpha, sentence.tokens[:-1]))
        )
    return sentence.whole and (sentence.second is not None) == (kind == "pair") and sentence.words <= 40


def _take(sample: str, second: str) -> None:
    st.session_state["tag_text"] = sample
    if second:
        st.session_state["tag_second"] = second


def _from_link(key: str, parameter: str) -> None:
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(parameter, "")


def _to_link(parameter: str, value: str) -> None:
    """Writes the input into the address, unless it is longer than an address may be."""
    fits = len(quote(value)) <= _LONGEST_IN_LINK
    if st.query_params.get(parameter, "") != value:
        set_parameter(parameter, value if fits else "")
    if value and not fits:
        st.caption(":material/link_off: This text is too long for a link; the address leaves it out.")
