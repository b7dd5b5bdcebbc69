"""What looks wrong in a column, a sentence for each: the same for all formats."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from core.corpora.layout.codes import prefix_doubts
from core.corpora.reading import Reading, values_shown
from core.corpora.types import SPLITS, Corpus, Sentences, Split
from core.wording import all_of

_LONG_SENTENCE = 200
# A field as pandas quotes it where it holds a quotation mark, which is doubled inside: `""""` is one alone.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


def with_doubts_on_words(reading: Reading, corpus: Corpus) -> Reading:
    """The reading of a corpus, with the doubts on its columns of words or texts."""
    places = [place for place, column in enumerate(reading.columns) if column.taken in ("words", "text")]
    columns = list(reading.columns)
    for place in places:
        files = {split: reading.files[split] for split in SPLITS if split in reading.files}
        doubts = _of_words(corpus, files, is_second=place != places[0])
        columns[place] = replace(columns[place], doubts=(*columns[place].doubts, *doubts))
    return replace(reading, columns=tuple(columns))


def _of_words(corpus: Corpus, files: Mapping[Split, str], *, is_second: bool) -> tuple[str, ...]:
    doubts = []
    for split, file in files.items():
        sentences = corpus.split(split)
        lengths = sentences.tokens.lengths[:2]
        if len(sentences) == 1 and lengths[0] >= _LONG_SENTENCE and not sentences[0].whole:
            doubts.append(
                f"the {lengths[0]:,} words of {file} are one sentence; check where its sentences end."
            )
    if not corpus.split("train")[0].whole:
        doubts += prefix_doubts(corpus.split("train").tokens.names)
    counts = {file: _quoted(corpus.split(split), is_second) for split, file in files.items()}
    if counted := ", ".join(f"{count:,} in {file}" for file, count in counts.items() if count):
        doubts.append(
            f"in quotation marks, with those inside doubled: {counted}; as pandas writes a table with tabs. "
            "The marks are read as part of the words. Save the table as CSV, or without quotes."
        )
    return tuple(doubts)


def _quoted(sentences: Sentences, is_second: bool) -> int:
    """How many texts, or words of sentences, are quoted as pandas does it."""
    if not len(sentences):
        return 0
    if not sentences.frames[0].whole:
        return int(sentences.tokens.flags(lambda word: _QUOTED.fullmatch(word) is not None).sum())
    texts = sentences.second.rows if is_second else sentences.tokens
    is_open = texts.flags(lambda word: word.startswith('"'))[texts.offsets[:-1]]
    is_closed = texts.flags(lambda word: word.endswith('"'))[texts.offsets[1:] - 1]
    candidates = np.flatnonzero(is_open & is_closed & texts.has(texts.flags(lambda word: '""' in word)))
    return sum(_QUOTED.fullmatch(" ".join(texts[place])) is not None for place in candidates.tolist())


def of_prefixes(labels: Collection[str], spelling: str) -> tuple[str, ...]:
    """A doubt on labels of spans such as `E-mail` and `B-cell`, which may be types without a prefix."""
    spans = sorted(label for label in labels if label[1:2] == "-")
    prefixes = {label[0] for label in spans}
    if spelling != "B-X" or len(prefixes) != 1 or prefixes <= {"I"}:
        return ()
    # Several types in small letters are those of spans of one word each.
    if prefixes == {"B"} and (len(spans) > 1 or not spans[0][2:3].islower()):
        return ()
    shown = values_shown(spans)
    return (
        f"{shown[0][0]}- is its only prefix: {all_of(shown)} may be types of their own. They are read as "
        f"spans of {all_of([label[2:] for label in shown])}; where {shown[0]} is a type, write B-{shown[0]} "
        f"and I-{shown[0]}.",
    )
