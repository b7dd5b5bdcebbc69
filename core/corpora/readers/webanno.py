"""The reader of WebAnno TSV 3, which INCEpTION writes too: words, and a column for each feature of a layer.

Its first lines name the layers. `PER[3]` is the value of annotation 3, at each of its words; `|` separates
annotations of one word, `_` is none, and `*` one without a value. A feature that nearly all words have, each
for itself, is a column of labels; all others become spans in IOB2. Of spans that overlap, the longest is
kept. Relations and chains are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.corpora.layout.column_names import IGNORED, TOKENS
from core.corpora.readers.char_spans import Counted
from core.corpora.readers.lines import Lines, Source
from core.corpora.readers.text_rows import beginning, errors_located
from core.errors import CorpusError
from core.wording import plural

FORMAT = "#FORMAT=WebAnno TSV 3"
_LAYER = re.compile(r"#T_(SP|CH|RL)=(.+)")
_PLACE = re.compile(r"(\d+)-(\d+)(\.\d+)?")
_BETWEEN = re.compile(r"(?<!\\)\|")
_VALUE = re.compile(r"(.*?)(?:\[(\d+)\])?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")
_NONE, _NO_VALUE = "_", "*"
_FIXED = 3
"""The columns before those of the layers: the numbers of sentence and word, the characters, the word."""
_NEARLY_ALL = 0.9


@dataclass
class _Sentence:
    """The words of a sentence, the line of the first, and by column the cell of each word."""

    line: int
    words: list[str] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)


def is_webanno(source: Source) -> bool:
    """Whether a file is WebAnno TSV 3, by its first line."""
    return beginning(source, len(FORMAT) + 8).startswith(FORMAT)


def webanno_rows(source: Source, counts: Counter[Counted]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sentences of a file, each with its line and a list of labels for each feature.

    `counts` gets the number of spans that were left out or widened. Raises CorpusError.
    """
    names, kinds = _columns(source)
    sentences = list(_sentences(source, len(names), counts))
    if not sentences:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    whole = [kind == "SP" and _labels_words(sentences, index) for index, kind in enumerate(kinds)]
    for sentence in sentences:
        row: dict[str, Any] = {TOKENS: sentence.words}
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            cells = [cells[index] for cells in sentence.cells]
            if kind != "SP":
                row[f"{IGNORED}{name}"] = next((cell for cell in cells if cell != _NONE), "")
            elif whole[index]:
                row[name] = [_values(cell, name)[0][0] if cell != _NONE else _NONE for cell in cells]
            else:
                row[name] = _spans(cells, name, counts)
        yield f"line {sentence.line}", row


def _columns(source: Source) -> tuple[list[str], list[str]]:
    """The name of each column behind the words, and its kind: of spans (SP), chains or relations."""
    names, kinds = [], []
    for line in Lines(source):
        if line and not line.startswith("#"):
            break
        if (layer := _LAYER.fullmatch(line.strip())) is None:
            continue
        title, *features = layer[2].split("|")
        title = title.rpartition(".")[2]
        for feature in features or [""]:
            names.append(title if len(features) < 2 else f"{title}.{feature.rpartition('.')[2]}")
            kinds.append(layer[1])
    names = [
        f"{name}{names[:index].count(name) + 1}" * (name in names[:index]) or name
        for index, name in enumerate(names)
    ]
    return names, kinds


def _sentences(source: Source, width: int, counts: Counter[Counted]) -> Iterator[_Sentence]:
    sentence, number = _Sentence(0), ""
    for line_number, line in enumerate(Lines(source), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        with errors_located(source, f"line {line_number}"):
            fields = line.removesuffix("\t").split("\t")
            parts = _PLACE.fullmatch(fields[0])
            if parts is None or len(fields) != _FIXED + width or not fields[2].strip():
                raise ValueError(
                    f"expected the place of a word, as in 1-1, its characters, the word and "
                    f"{plural(width, 'column')} of layers, separated by tabs, but found "
                    f"{plural(len(fields), 'column')}."
                )
            word, cells = fields[2], fields[_FIXED:]
        if parts[3]:  # a part of the word above
            values = [cell != _NONE and cell != "" for cell in cells]
            counts["widened"] += any(values)
            above = sentence.cells[-1]
            sentence.cells[-1] = [
                b if a == _NONE and has else a for a, b, has in zip(above, cells, values, strict=True)
            ]
            continue
        if parts[1] != number:
            if sentence.words:
                yield sentence
            sentence, number = _Sentence(line_number), parts[1]
        sentence.words.append(word)
        sentence.cells.append([cell or _NONE for cell in cells])
    if sentence.words:
        yield sentence


def _labels_words(sentences: Sequence[_Sentence], index: int) -> bool:
    """Whether nearly all words have a value of a column, each for itself, or none has one."""
    cells = [cells[index] for sentence in sentences for cells in sentence.cells]
    given = [cell for cell in cells if cell != _NONE]
    is_single = not any(id_ for cell in given for _, id_ in _values(cell, ""))
    return not given or (is_single and len(given) >= _NEARLY_ALL * len(cells))


def _values(cell: str, name: str) -> list[tuple[str, str]]:
    """The values of a cell, each with the number of its annotation; empty where it has one word."""
    values = []
    for part in _BETWEEN.split(cell):
        match = _VALUE.fullmatch(part)
        assert match is not None
        value = name if match[1] == _NO_VALUE else _ESCAPED.sub(r"\1", match[1])
        if match[1] != _NONE:
            values.append((value, match[2] or ""))
    return values or [(name, "")]


def _spans(cells: Sequence[str], name: str, counts: Counter[Counted]) -> list[str]:
    """The labels of words in IOB2, with the longest of spans that overlap."""
    spans: dict[tuple[str, str], list[int]] = {}
    for word, cell in enumerate(cells):
        for value, id_ in _values(cell, name) if cell != _NONE else ():
            spans.setdefault((value, id_ or f"word {word}"), []).append(word)
    labels = ["O"] * len(cells)
    for (value, _), words in sorted(spans.items(), key=lambda span: -len(span[1])):
        if any(labels[word] != "O" for word in words):
            counts["overlapping"] += 1
            continue
        for word in words:
            labels[word] = f"I-{value}"
        labels[words[0]] = f"B-{value}"
    return labels
