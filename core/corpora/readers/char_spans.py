"""Spans of characters, as annotation tools export them, to labels of words.

doccano writes `text` and `label: [[start, end, type]]`, Prodigy `text` and `spans: [{start, end, label}]`,
Label Studio `data.text` and `annotations[0].result[*].value`, in JSON-MIN `text` and
`label: [{start, end, labels}]`. The text is split into words. A span that begins or ends inside a word is
widened to it. Of spans that overlap or lie in each other the longest is kept. Fields beside the spans are
not read. A span inside a word of a script without spaces (Chinese, Japanese, Thai) is an error: there, a word
is a clause.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, Literal, NamedTuple, TypeVar

from core.corpora.layout.column_names import TOKENS, is_named_other
from core.corpora.readers.splitting import PlacedWord, has_unspaced_script, placed_sentences
from core.plain_text import shortened
from core.wording import plural

TASK = "ner"
"""The name of the task: a guess."""

_Name = TypeVar("_Name", bound=str)

_KEYS = ("label", "labels", "entities")
_is_named_other = lru_cache(is_named_other)  # of each row
_NOTHING: tuple[Any, ...] = (None, "", [], {})
Counted = Literal[
    "widened", "overlapping", "without words", "in UTF-16", "further annotations", "no spans", "not annotated"
]
_NOTES: dict[Counted, str] = {
    "widened": "spans that begin or end inside a word: {}; widened to whole words.",
    "overlapping": "spans that overlap a longer one or lie in it: {}; left out.",
    "without words": "spans that hold no word: {}; left out.",
    "in UTF-16": "spans whose places count UTF-16 units: {}; converted to characters.",
    "further annotations": "further annotations: {}; the first of each text is read.",
    "no spans": "results of annotations that are no spans, such as choices: {}; left out.",
}


class _Span(NamedTuple):
    """The characters from `start` up to, not including, `end`, and the type."""

    start: int
    end: int
    type: str


def tool_of(record: Mapping[str, Any]) -> str | None:
    """The tool that writes rows like this one; None where it holds no spans of characters."""
    if isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list):
        return "Label Studio"
    if not isinstance(record.get("text"), str):
        return None
    if _are_spans(record.get("spans")) and not isinstance(record.get("label"), str):
        return "Prodigy"
    key = next((key for key in _KEYS if key in record), "")
    if not _are_spans(record.get(key)):
        return None
    is_of_label_studio = any(isinstance(item, dict) and "labels" in item for item in record[key])
    return "Label Studio JSON-MIN" if is_of_label_studio else "doccano"


def tool_of_rows(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The tool that writes rows like these: the first row that holds spans tells.

    None where no row holds spans, or an earlier row may be a text with its label.
    """
    for row in rows:
        if (tool := tool_of(row)) is not None:
            return tool
        label = row.get("label")
        if isinstance(label, str) or (isinstance(label, list) and label):
            return None
    return None


def _are_spans(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, (list, dict)) for item in value)


def sentences_of(record: Mapping[str, Any], counts: Counter[Counted]) -> Iterator[dict[str, list[str]]]:
    """The sentences of a row: words and, as `ner`, their labels.

    `counts` gets the number of conversions and omissions. A sentence does not end inside a span. Raises
    ValueError for a row that cannot be read.
    """
    data = record["data"] if isinstance(record.get("data"), dict) else record
    items = _items(record, counts)
    if items is None:
        counts["not annotated"] += 1
        return
    text = data.get("text")
    if not isinstance(text, str):
        raise ValueError("expected the text in text, and there is none.")
    places = _in_characters(items, text, record.get("id"), counts)
    spans = dict.fromkeys(span for item in places for span in _spans(item, text))
    given = record.get(TOKENS)
    sentences = placed_sentences(text) if given is None else [_given_words(given)]
    words = list(chain.from_iterable(sentences))
    ranges = _ranges(words, spans, counts, is_split=given is None)
    labels = ["O"] * len(words)
    inside = set()
    for first, end, type_ in ranges:
        labels[first:end] = [f"B-{type_}"] + [f"I-{type_}"] * (end - first - 1)
        inside |= set(range(first + 1, end))
    ends = [0]
    for sentence in sentences:
        ends.append(ends[-1] + len(sentence))
    borders = [0, *(end for end in ends[1:-1] if end not in inside), len(words)]
    for first, end in pairwise(borders):
        yield {TOKENS: [word.word for word in words[first:end]], TASK: labels[first:end]}


def fields_beside(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that are not read: neither text nor spans. Numbers of rows are not among them."""
    fields = record["data"] if isinstance(record.get("data"), dict) else record
    read = ("text", TOKENS, "answer", _key(record))
    return {
        name: value
        for name, value in fields.items()
        if name not in read and value not in _NOTHING and not _is_named_other(name)
    }


def span_notes(counts: Mapping[_Name, Counter[Counted]]) -> list[str]:
    """A sentence for each thing that was done to spans. `counts` has it by split or file."""
    by_kind = {
        kind: ", ".join(f"{count[kind]:,} in {split}" for split, count in counts.items() if count[kind])
        for kind in _NOTES
    }
    return [note.format(by_kind[kind]) for kind, note in _NOTES.items() if by_kind[kind]]


def _items(record: Mapping[str, Any], counts: Counter[Counted]) -> Sequence[Any] | None:
    """The spans of a row as they are written; None where the row is not annotated, or not accepted."""
    if "annotations" in record:
        finished = [each for each in _dicts(record["annotations"]) if not each.get("was_cancelled")]
        if not finished:
            return None
        counts["further annotations"] += len(finished) - 1
        values = [result.get("value") for result in _dicts(finished[0].get("result"))]
        spans = [value for value in values if isinstance(value, dict) and "labels" in value]
        counts["no spans"] += len(values) - len(spans)
        return spans
    if record.get("answer", "accept") != "accept":
        return None
    if not (key := _key(record)):
        return None if any(key in record for key in ("spans", *_KEYS)) else []
    items = record[key]
    if not _are_spans(items):
        raise ValueError(f"{key} must be a list of spans.")
    assert isinstance(items, list)
    return items


def _key(record: Mapping[str, Any]) -> str:
    """The field of a row that holds its spans; empty where there is none, or null in its place."""
    return next((key for key in ("spans", *_KEYS) if record.get(key) is not None), "")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _spans(item: Any, text: str) -> Iterator[_Span]:
    """The spans of an item, one for each of its labels."""
    if isinstance(item, dict):
        start, end = item.get("start", item.get("start_offset")), item.get("end", item.get("end_offset"))
        types = item.get("labels", [item.get("label")])
    else:
        start, end, *types = item if len(item) == 3 else (None, None)
    if type(start) is not int or type(end) is not int or not isinstance(types, list):
        raise ValueError(
            "expected a span with start, end and a label, where start and end are whole numbers."
        )
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"a span is from {start} to {end}, and text has {plural(len(text), 'character')}.")
    for type_ in types:
        if not isinstance(type_, str) or not type_.strip():
            raise ValueError(f"the span from {start} to {end} has no label.")
        yield _Span(start, end, type_.strip())


def _in_characters(items: Sequence[Any], text: str, task: Any, counts: Counter[Counted]) -> Iterator[Any]:
    """The spans as they are written, with places in characters where their quotes show that they are not.

    JavaScript counts UTF-16 units. Where all quotes of a text fit these and one fits nothing else, all its
    spans count them; else each as its own quote has it. `task` is the number of the row, if it has one.
    Raises ValueError for a span whose quote fits neither.
    """
    quoting = list(filter(_is_quoting, items))
    if all(_is_quote(item["text"], text, item.get("start"), item.get("end")) for item in quoting):
        yield from items
        return
    lengths = (1 + (character > "\uffff") for character in text)
    # None begins within a pair of surrogates.
    by_unit = {unit: place for place, unit in enumerate(accumulate(lengths, initial=0))}

    def converted(item: Any) -> dict[str, Any]:
        return {**item, "start": by_unit.get(item.get("start")), "end": by_unit.get(item.get("end"))}

    def fits(item: dict[str, Any]) -> bool:
        return _is_quote(item["text"], text, item.get("start"), item.get("end"))

    are_units = all(fits(converted(item)) for item in quoting)
    for item in items:
        if not _is_quoting(item) or (fits(item) and not are_units):
            yield item
        elif fits(converted(item)):
            counts["in UTF-16"] += converted(item) != item
            yield converted(item)
        else:
            raise ValueError(_contradiction(item, text, task))


def _is_quoting(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text"), str)


def _is_quote(quoted: str, text: str, start: Any, end: Any) -> bool:
    """Whether the text has these words there, apart from white space.

    Label Studio writes the end of a line as a backslash and n, or leaves it out.
    """
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text):
        return False
    there = text[start:end]
    return there == quoted or "".join(there.split()) == "".join(quoted.replace("\\n", " ").split())


def _contradiction(item: Mapping[str, Any], text: str, task: Any) -> str:
    start, end = item.get("start"), item.get("end")
    is_place = type(start) is int and type(end) is int and 0 <= start <= end
    there = f"'{shortened(text[start:end], 40)}'" if is_place else "no such place"
    return (
        ("" if task is None else f"task {shortened(str(task))}: ")
        + f"the span from {start} to {end} quotes '{shortened(item['text'], 40)}', and the text has {there} "
        "there; counted in UTF-16 units it is not there either. Export it anew, or correct start and end."
    )


def _given_words(tokens: Any) -> list[PlacedWord]:
    """The words that the tool split the text into."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise ValueError(f"{TOKENS} must be a list of objects with text, start and end.")
    words = [PlacedWord(token.get("text"), token.get("start"), token.get("end")) for token in tokens]
    if not all(isinstance(w.word, str) and type(w.start) is type(w.end) is int for w in words):
        raise ValueError(f"{TOKENS} must be a list of objects with text, start and end.")
    return [word for word in words if word.word.strip()]


def _ranges(
    words: Sequence[PlacedWord], spans: Iterable[_Span], counts: Counter[Counted], *, is_split: bool
) -> list[tuple[int, int, str]]:
    """The words of each span that is kept, from the first up to, not including, the last, and its type.

    Raises ValueError where a span is cut by words that are none: those that a script without spaces was split
    into here (`is_split`).
    """
    starts, ends = [word.start for word in words], [word.end for word in words]
    lengths: dict[tuple[int, int, str], int] = {}
    for span in spans:
        first, last = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first >= last:
            counts["without words"] += 1
            continue
        if starts[first] < span.start or ends[last - 1] > span.end:
            counts["widened"] += 1
            clauses = [each.word for each in words[first:last] if is_split and has_unspaced_script(each.word)]
            if clauses:
                raise ValueError(
                    f"the span from {span.start} to {span.end} is inside '{shortened(clauses[0], 40)}', "
                    f"whose script sets no spaces between words. Give the words in {TOKENS}, each with text, "
                    "start and end as Prodigy writes them, or write lists of words with their labels."
                )
        key = (first, last, span.type)
        counts["overlapping"] += key in lengths
        lengths[key] = max(span.end - span.start, lengths.get(key, 0))
    taken = bytearray(len(words))
    kept = []
    for first, last, type_ in sorted(lengths, key=lambda each: (each[0] - each[1], -lengths[each], each)):
        if any(taken[first:last]):
            counts["overlapping"] += 1
            continue
        taken[first:last] = b"\1" * (last - first)
        kept.append((first, last, type_))
    return kept
