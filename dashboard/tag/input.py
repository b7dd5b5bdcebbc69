"""What shall be tagged: a text, sentences with their gold labels, or test sentences of the run's corpus."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import streamlit as st

from core.corpora.free_text import (
    GivenTask,
    given_sentences,
    has_unspaced_script,
    propose_columns,
    read_given,
    split_sentences,
)
from core.corpora.types import Sentence
from core.errors import CorpusError, MRNLabError
from core.wording import plural
from dashboard.launch.presets import TRY_IT
from dashboard.shared.states import empty, problem
from dashboard.tag.cache import examples, is_here, test_split
from dashboard.tag.views import CheckedSentence, System
from dashboard.text import escape

TEXT, GOLD, TEST, FILE = "Text", "Gold labels", "Test sentences", "File"

MOST_WORDS = 600
"""So many are drawn at once; longer texts are for files."""

_LONGEST_IN_LINK = 6000
_TALL = 200
_GOLD_EXAMPLE = "Anna NNP B-NP B-PER\nSmith NNP I-NP I-PER\nvisited VBD B-VP O\nParis NNP B-NP B-LOC\n. . O O"


def input_kind() -> str:
    """Which of the four it is. A link with gold labels opens where they are read."""
    _from_link("tag_text", "text")
    _from_link("tag_gold", "gold")
    if "input" not in st.session_state and "gold" in st.query_params and "input" not in st.query_params:
        st.session_state["input"] = GOLD
    kind: str = st.segmented_control(
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
    return kind


def text(asked: Sequence[System]) -> list[Sentence]:
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
        _offer_examples(asked)
    _to_link("text", written)
    _to_link("split", "yes" if split and written else "")
    words = given_sentences(written) if split else split_sentences(written)
    if not split and has_unspaced_script(written):
        st.caption(
            ":material/info: Part of this text is in a script without spaces, which is not split into words "
            "here. Put spaces between its words and switch *Already split into words* on."
        )
    return [Sentence(tuple(one), {}) for one in words]


def _offer_examples(asked: Sequence[System]) -> None:
    """One click puts a test sentence of the first run's corpus (of the demo, where that is not here) in."""
    config = asked[0].runs[0].config
    try:
        offered = examples(config if is_here(config) else TRY_IT.configs[0])
    except CorpusError:
        # The corpus of an old run may be gone; what is wrong with it is told where it is asked for.
        offered = examples(TRY_IT.configs[0])

    def take() -> None:
        place = st.session_state["tag_example"]
        if place is not None:
            st.session_state["tag_text"] = " ".join(offered[place].tokens)
            st.session_state["tag_split"] = True
            st.session_state["tag_example"] = None

    st.pills(
        "Examples",
        range(len(offered)),
        format_func=lambda place: escape(_short(offered[place].tokens)),
        key="tag_example",
        on_change=take,
        label_visibility="collapsed",
    )


def _short(tokens: Sequence[str]) -> str:
    return " ".join(tokens[:4]) + (" …" if len(tokens) > 4 else "")


def gold_text(tasks: Sequence[GivenTask]) -> list[Sentence]:
    """Pasted CoNLL columns: words with their gold labels."""
    if not tasks:
        return []
    written = st.text_area(
        "Words and gold labels in columns",
        key="tag_gold",
        height=_TALL,
        persist_state="session",
        placeholder=_GOLD_EXAMPLE,
        help="A word a line, its labels beside it after tabs or spaces; an empty line ends a sentence.",
    )
    _to_link("gold", written)
    if not written.strip():
        return []
    content = written.encode("utf-8", "replace")
    name = "Pasted text"
    try:
        proposed = propose_columns(content, name, tasks)
        columns = _columns(proposed)
        given = read_given(content, name, tasks, columns=columns)
    except CorpusError as error:
        problem(str(error))
        return []
    if not given.gold:
        known = ", ".join(task.name for task in tasks)
        problem(f"No column is named after a task of these runs ({known}), so nothing can be compared.")
    return list(given.sentences)


def _columns(proposed: Sequence[str]) -> tuple[str, ...]:
    """The columns' names, to be corrected where what they hold did not tell."""
    named = st.text_input(
        "Columns, from left to right",
        value=", ".join(proposed),
        key=f"tag_columns_{len(proposed)}_{'.'.join(proposed)}",
        help="Proposed from the labels that the runs know. A column whose name begins with \\_ is read over.",
    )
    return tuple(name.strip() for name in named.split(",") if name.strip())


def test_sentence(system: System) -> list[Sentence]:
    """A test sentence of the first system's corpus, at first of those that it got wrong."""
    config = system.runs[0].config
    if not is_here(config) and not st.toggle(
        "Read the corpus", help="It comes from the Hugging Face Hub, over the network if need be."
    ):
        return []
    try:
        with st.spinner("Reading the test sentences"):
            tested = test_split(system)
    except MRNLabError as error:
        problem(str(error))
        return []
    return _picked(tested, system)


def _picked(tested: Sequence[CheckedSentence], system: System) -> list[Sentence]:
    tasks = list(dict.fromkeys(task for run in system.runs for task in run.config.tasks))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which = st.selectbox(
            f"Sentences that {system.who} got wrong on",
            ["any task", *tasks, "no task", "all sentences"],
            key="wrong",
            bind="query-params",
            width=240,
        )
        found = [one for one in tested if _is_one(one, which)]
        if not found:
            st.caption("There is no such sentence in the test split.")
            return []
        number = st.number_input(
            f"Sentence, of {len(found):,}",
            min_value=1,
            max_value=max(len(found), 1),
            key="sentence",
            bind="query-params",
            width=170,
        )
    chosen = found[min(int(number), len(found)) - 1]
    return [chosen.sentence]


def _is_one(one: CheckedSentence, which: str) -> bool:
    if which == "all sentences":
        return True
    if which == "no task":
        return not one.wrong
    return bool(one.wrong) if which == "any task" else which in one.wrong


def bounded(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The first sentences with no more than 600 words in all, and a line on what is left out."""
    kept: list[Sentence] = []
    room = MOST_WORDS
    for one in sentences:
        if room <= 0:
            break
        kept.append(
            one
            if len(one.tokens) <= room
            else Sentence(one.tokens[:room], {task: labels[:room] for task, labels in one.labels.items()})
        )
        room -= len(one.tokens)
    left_out = sum(len(one.tokens) for one in sentences) - sum(len(one.tokens) for one in kept)
    if left_out:
        st.caption(
            f":material/info: The first {MOST_WORDS} words are tagged; {plural(left_out, 'word')} more are "
            f"left out. *{FILE}* takes long texts."
        )
    return kept


def nothing_yet(kind: str) -> None:
    """What to do where there is nothing to tag."""
    if kind == TEXT:
        empty(
            "A sentence, please",
            "Type or paste one above and press Ctrl+Enter, or take an example. The models are being loaded "
            "meanwhile; from then on answers come at once.",
        )
    elif kind == GOLD:
        empty(
            "Gold labels, please",
            "Paste a sentence in CoNLL columns to see where the runs err: a word a line with its labels "
            "beside it.",
        )


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
