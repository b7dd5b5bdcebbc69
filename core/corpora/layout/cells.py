"""Structured text in a cell: lists and objects of JSON or Python, lists of numpy, a label for each word.

A row of texts with such cells is a sentence where they are words and labels of words, or spans of characters:
`Cells` makes rows like those of `core.corpora.readers.lists` of it. Other lists and objects are no labels.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import Any, TypeGuard

from core.corpora.layout.column_names import IGNORED, TOKENS
from core.corpora.layout.no_label import is_blank
from core.plain_text import shortened
from core.tasks.schemes import notation

Record = Mapping[str, Any]

_WORDS = ("tokens", "words", "token", "word", "forms", "form")
"""The names of a column of lists of words, in lower case."""
_LONGEST = 1_000_000
"""Characters of a cell that is taken apart."""
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,'"()\[\]{}:]+"""
_FLAT = re.compile(rf"\[\s*(?:(?:{_ITEM})[\s,]+)*(?:{_ITEM})?\s*\]", re.DOTALL)
_PYTHON = re.compile(r"[\[{(]")
_START, _END = ("start", "start_offset"), ("end", "end_offset")
# So many rows of more than one word, not of one length, tell that labels without B- and I- are of words.
_ROWS_OF_WORDS = 3
_WORDS_PER_LABEL = 2


def cell_value(value: Any) -> list[Any] | dict[Any, Any] | None:
    """The list or object that a cell holds, written as JSON, Python or numpy writes it; else None."""
    if isinstance(value, (list, dict)):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > 1 and text[0] == text[-1] == '"':  # of TSV that pandas wrote
        text = text[1:-1].replace('""', '"').strip()
    if not _PYTHON.match(text) or len(text) > _LONGEST:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = _python_value(text)
    return list(parsed) if isinstance(parsed, tuple) else parsed if isinstance(parsed, (list, dict)) else None


def _python_value(text: str) -> Any:
    """The value of a literal of Python, or of a list whose items stand apart by blanks, as numpy has it."""
    try:
        if _FLAT.fullmatch(text):
            return [_item(item) for item in re.findall(_ITEM, text[1:-1], re.DOTALL)]
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _item(text: str) -> Any:
    """An item of a flat list. Raises ValueError or SyntaxError for a name: `[so it goes]` is a text."""
    return None if text in ("nan", "null", "None") else ast.literal_eval(text)


@dataclass(frozen=True)
class Cells:
    """What the cells of rows hold.

    text    the column of the words of a sentence, a list or a text between whose words are blanks
    lists   the columns of lists
    joined  the columns with a label for each word, apart by blanks
    spans   the column of spans of the text's characters; empty where there is none
    """

    text: str
    lists: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    spans: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys(filter(None, (self.text, *self.lists, *self.joined, self.spans))))

    def record(self, row: Record) -> dict[str, Any]:
        """The row with its lists. Raises ValueError where a cell holds none."""
        if missing := [name for name in self.columns if name not in row]:
            raise ValueError(f"has no {missing[0]}, which the first rows of training have.")
        if self.spans:
            beside = {name: value for name, value in row.items() if name not in (self.text, self.spans)}
            items = None if is_blank(row[self.spans]) else self._list(self.spans, row[self.spans])
            spans = items and [list(item) if isinstance(item, tuple) else item for item in items]
            return {**beside, "text": row[self.text] or "", "label": spans}
        changed = {}
        for name in self.lists:
            changed[name] = None if is_blank(row[name]) else self._list(name, row[name])
        for name in self.joined:
            changed[name] = None if is_blank(row[name]) else str(row[name]).split()
        words = changed.get(self.text, row[self.text])
        changed[self.text] = (words or "").split() if isinstance(words, (str, NoneType)) else words
        record = {**row, **changed}
        return {TOKENS: record.pop(self.text), **record}

    @staticmethod
    def _list(name: str, value: Any) -> list[Any] | dict[Any, Any]:
        if (parsed := cell_value(value)) is None:
            raise ValueError(
                f"{name} holds lists in other rows, and '{shortened(str(value), 40)}' is none; write JSON."
            )
        return parsed


def structured(rows: Sequence[Record]) -> dict[str, list[list[Any] | dict[Any, Any] | None]]:
    """The columns most of whose cells hold lists or objects, with the value of each row's cell."""
    columns = {}
    for name in [name for name in (rows[0] if rows else ()) if not name.startswith(IGNORED)]:
        cells = [row.get(name) for row in rows]
        given = sum(not is_blank(cell) for cell in cells)
        first = next((cell for cell in cells if not is_blank(cell)), None)
        if cell_value(first) is None and not any(str(cell)[:1] in '[{"' for cell in cells):
            continue
        values = [cell_value(cell) for cell in cells]
        if 2 * sum(value is not None for value in values) > given:
            columns[name] = values
    return columns


def cells_of(rows: Sequence[Record], texts: Sequence[str]) -> Cells | None:
    """What the cells of these rows hold; None where they are single texts, labels and numbers.

    `texts` has the names of the columns of texts. Rows that have words in lists already are None too.
    """
    if not rows:
        return None
    lists = structured(rows)
    words = next((name for at in _WORDS for name in rows[0] if name.lower() == at and name in lists), None)
    if words is not None and _are_texts(chain.from_iterable(filter(None, lists[words]))):
        if any(isinstance(row.get(words), list) for row in rows):
            return None  # no cells, but lists
        others = [name for name in lists if name != words and not _holds_objects(lists[name])]
        return Cells(words, (words, *others), _joined(rows, lists[words], {*texts, *lists}))
    if len(texts) != 1 or not _are_texts(row.get(texts[0]) or "" for row in rows):
        return None
    (text,) = texts
    for name, values in lists.items():
        items = list(chain.from_iterable(value or () for value in values))
        if items and all(map(_is_span, items)):
            return Cells(text, spans=name)
    split = [(row.get(text) or "").split() for row in rows]
    per_word = [name for name, values in lists.items() if _are_labels(values, list(map(len, split)))]
    joined = _joined(rows, split, {text, *lists})
    return Cells(text, tuple(per_word), joined) if per_word or joined else None


def _are_texts(items: Iterable[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _holds_objects(values: Sequence[Any]) -> bool:
    items = chain.from_iterable(value for value in values if isinstance(value, list))
    return any(isinstance(value, dict) for value in values) or any(
        isinstance(item, (list, dict)) for item in items
    )


def _is_span(item: Any) -> TypeGuard[list[Any] | dict[str, Any]]:
    """Whether an item of a list is a span with start, end and a label or labels."""
    if isinstance(item, dict):
        has_places = all(any(type(item.get(name)) is int for name in names) for names in (_START, _END))
        return has_places and ("label" in item or "labels" in item)
    if not isinstance(item, (list, tuple)) or len(item) != 3:
        return False
    return type(item[0]) is type(item[1]) is int and isinstance(item[2], str)


def _are_labels(values: Sequence[Any], lengths: Sequence[int]) -> bool:
    """Whether lists are as long as the texts have words, in most rows and in one of some words."""
    pairs = [
        (value, length) for value, length in zip(values, lengths, strict=True) if isinstance(value, list)
    ]
    fits = [length for value, length in pairs if len(value) == length]
    return any(length > 1 for length in fits) and 2 * len(fits) > len(pairs)


def _joined(rows: Sequence[Record], words: Sequence[Any], others: set[str]) -> tuple[str, ...]:
    """The columns that have in each row as many labels, apart by blanks, as the text has `words`."""
    columns = []
    for name in rows[0]:
        cells = [
            (str(row[name]).split(), each or ())
            for row, each in zip(rows, words, strict=True)
            if not is_blank(row.get(name))
        ]
        if name in others or name.startswith(IGNORED) or not cells:
            continue
        if any(len(labels) != len(each) for labels, each in cells):
            continue
        several = [len(labels) for labels, _ in cells if len(labels) > 1]
        pairs = [pair for labels, each in cells for pair in zip(labels, each, strict=True)]
        counts = Counter(label for label, _ in pairs)
        spans = notation(counts)
        is_repeated = len(several) >= _ROWS_OF_WORDS and len(set(several)) > 1
        is_repeated &= len(counts) * _WORDS_PER_LABEL <= len(pairs)
        # A text that was changed, as to lower case, has as many words too.
        is_repeated &= 2 * sum(label.casefold() == word.casefold() for label, word in pairs) < len(pairs)
        if several and (is_repeated or (spans is not None and not spans.is_bare)):
            columns.append(name)
    return tuple(columns)


def reason(values: Sequence[Any]) -> str:
    """Why a column of lists or objects is no task, to follow its name."""
    has_objects = any(isinstance(value, dict) for value in values)
    return f"its cells hold {'objects' if has_objects else 'lists'}"


def refusal(name: str, values: Sequence[Any]) -> str:
    """A sentence that refuses lists or objects as the only labels of texts."""
    example: Any = next((value for value in values if value), [])
    kind = "objects" if isinstance(example, dict) else "lists"
    shown = shortened(json.dumps(example, ensure_ascii=False, default=str), 60)
    return (
        f"{name} holds {kind} ({shown}), and no label of a text: one label a text is learned. Of words, a "
        "list needs a label for each one between blanks; of spans, each needs start, end and label."
    )
