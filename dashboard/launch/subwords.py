"""One sentence of the corpus as the chosen encoder's tokenizer reads it: subwords, ids, mask, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from core.corpora import CorpusSummary, Sentence
from core.encoding.subwords import Subword, SubwordReader, load_subword_reader
from core.errors import EncoderError
from core.models.registry import base_name
from core.models.sources import tokenizer_file
from dashboard.components import Lane, Mark, SentenceBlock, sentence
from dashboard.text import escape, option, plural

__all__ = ["show_subwords", "subword_block"]

IGNORED_LABEL = "−100"
"""What stands where a subword has no label, as in the loss of PyTorch."""

_MOST_WORDS = 60
_GREY = "#8A939B"


def show_subwords(
    encoders: Sequence[str], summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]
) -> None:
    """A fold that reads a tokenizer only once it is opened."""
    names = list(dict.fromkeys(map(base_name, encoders)))
    if not names or not summary.samples:
        return
    with st.expander(
        "Subwords: a sentence as the encoder reads it",
        icon=":material/segment:",
        key="launch_subwords",
        on_change="rerun",
    ) as fold:
        if fold.open:
            _opened(names, summary, tasks, colour)


def _opened(
    names: Sequence[str], summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]
) -> None:
    with st.container(horizontal=True):
        name = names[0]
        if len(names) > 1:
            name = _choice("Encoder", "launch_subwords_encoder", names, name)
        try:
            file = tokenizer_file(name)
            reader = _reader(str(file), file.stat().st_mtime_ns)
        except EncoderError as error:
            st.markdown(f":orange[:material/info:] {escape(error)}")
            return
        samples = [reader.read(one.tokens[:_MOST_WORDS]) for one in summary.samples]
        numbers = [str(place + 1) for place in range(len(samples))]
        number = _choice("Sentence", "launch_subwords_sentence", numbers, numbers[_most_split(samples)])
    chosen, read = summary.samples[int(number) - 1], samples[int(number) - 1]
    sentence([subword_block(read, chosen, tasks, colour)], key="launch_subwords_drawn", small=True)
    words = min(len(chosen.tokens), _MOST_WORDS)
    told = plural(words, "word")
    if words < len(chosen.tokens):
        told = f"The first {told} of {len(chosen.tokens):,}"
    st.caption(
        f"{told}, {plural(len(read), 'subword')}. The first subword of a word carries its label. The others "
        f"have {IGNORED_LABEL}, which counts in no loss. The mask is 1 for what is read, 0 for padding."
    )


def _most_split(samples: Sequence[Sequence[Subword]]) -> int:
    """The place of the sentence with the most subwords beyond one per word: it shows what splitting does."""
    return max(range(len(samples)), key=lambda place: sum(not one.is_first for one in samples[place]))


def _choice(label: str, key: str, options: Sequence[str], default: str) -> str:
    if st.session_state.get(key) not in options:
        st.session_state[key] = default
    return str(st.segmented_control(label, options, required=True, key=key, format_func=option))


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(file: str, changed: int) -> SubwordReader:
    """The tokenizer of that file, read anew when the file changes."""
    del changed
    return load_subword_reader(Path(file))


def subword_block(
    read: Sequence[Subword], chosen: Sentence, tasks: Sequence[str], colour: Mapping[str, str]
) -> SentenceBlock:
    """Subwords with their lanes: ids, attention mask, and the labels of each task."""
    lanes = [
        Lane("id", _GREY, "plain", tuple(Mark(str(one.id), "input id", quiet=True) for one in read)),
        Lane("mask", _GREY, "plain", tuple(Mark("1", "attention mask", quiet=True) for _ in read)),
    ]
    for task in tasks:
        if task in chosen.labels:
            marks = tuple(_label(one, chosen.labels[task]) for one in read)
            lanes.append(Lane(task, colour.get(task, _GREY), "plain", marks))
    return SentenceBlock(tuple(one.text for one in read), tuple(lanes))


def _label(read: Subword, labels: Sequence[str]) -> Mark:
    if read.word is None or not read.is_first:
        return Mark(IGNORED_LABEL, "no label", quiet=True)
    return Mark(labels[read.word], labels[read.word])
