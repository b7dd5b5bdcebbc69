"""Recorded outputs. A test hands its output to `pinned`, which compares it, or writes it where it differs.

A record has numbers, ids, exit codes and shapes. Of a sentence only its numbers are left: a sentence is
tested where it is made.
"""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "recorded"
RECORDING = "RECORD_PINS"
_TOLERANCE = 1e-5
_ABSOLUTE = 1e-7
# Covariances are stored in half precision and recorded with six decimals: on another machine one may be
# rounded to the next number.
_HALF_STEP = 2**-10
_DIGITS = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")  # also 3.0, which is 3.000000000000001 elsewhere

_MASKED_KEYS = (
    "seconds|time|created_at|started_at|ended_at|at|since|host|pid|process|python|torch|transformers|mrnlab|streamlit|"
    "peak_memory|free|cores|memory|bytes|size|commit|configuration_id"
)
# What depends on the time, the machine, the versions or the paths in a description.
_MASKS = (
    (rf'("(?:{_MASKED_KEYS})": )(?!null|\{{|\[)[^,\n}}]+', r'\1"MASKED"'),
    (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?", "DATE"),
    (r"\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", "DAY"),
    (r"\b\d\d:\d\d(:\d\d)?\b", "CLOCK"),
    (r"(?<![\w.])\d+\.\d+\.\d+(\+\w+)?(?![\w.])", "VERSION"),
    (r"\b(\d+(\.\d+)?[ \u00a0](s|ms|min|h|d|seconds?|minutes?|hours?|days?)\b[ \u00a0]?)+", "DURATION "),
    (r" {2,}", "  "),  # columns are as wide as the machine's name and paths
    (r"\b(process|HOST) +\d+", r"\1 PID"),
    (r"(?<![\w.])\d[\d,]*(\.\d+)?[ \u00a0](B|[kKMGT]i?B)\b", "SIZE"),
    (r"\b[0-9a-f]{32,64}\b", "HASH"),
)

_WORD = re.compile(r"[(“*]*[^\W\d_][^\W\d_’'-]+[.,;:)”*?!]*")
_LEAST_WORDS = 4
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d+(?:[.,]\d+)*%?")
_BETWEEN_CELLS = re.compile(r"( {2,}| ?\| ?|^[a-z_]+: )")
_SENTENCE = "…"


def masked(text: str, *homes: Path) -> list[str]:
    """The lines of an output, without what differs from one recording to the next."""
    for home in homes:
        text = text.replace(str(home), "HOME")
    text = text.replace(str(Path(__file__).resolve().parents[2]), "SOURCE")
    text = re.sub(rf"\b{re.escape(platform.node())}\b", "HOST", text)
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text)
    return [line.rstrip() for line in text.splitlines()]


def without_sentences(value: Any) -> Any:
    """A document with the numbers of each sentence in the sentence's place, and of a paragraph's lines."""
    if isinstance(value, dict):
        return {key: without_sentences(item) for key, item in value.items()}
    if isinstance(value, str):
        cells = _BETWEEN_CELLS.split(value)
        return "".join(
            cell
            if sum(_WORD.fullmatch(word) is not None for word in cell.split()) < _LEAST_WORDS
            else " ".join([_SENTENCE, *_NUMBER.findall(cell)])
            for cell in cells
        )
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in map(without_sentences, value):
        is_line = isinstance(item, str) and item.startswith(_SENTENCE)
        if is_line and items and isinstance(items[-1], str) and items[-1].startswith(_SENTENCE):
            items[-1] += item.removeprefix(_SENTENCE)
        else:
            items.append(item)
    return items


def _written(document: Any) -> str:
    """JSON with what is short on one line."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return re.sub(r"[\[{][^\[\]{}]{,100}[\]}]", lambda match: re.sub(r"\n *", " ", match[0]), text) + "\n"


def pinned(name: str, present: Any) -> None:
    """Compare with `recorded/NAME.json`: numbers to a relative 1e-5 or a step of their half precision,
    everything else exactly.
    """
    path = FOLDER / f"{name}.json"
    present = without_sentences(json.loads(json.dumps(present)))
    recorded = json.loads(path.read_text("utf-8")) if path.exists() else None
    changes = list(_changes(recorded, present, name))
    if changes and os.environ.get(RECORDING):
        path.write_text(_written(present), "utf-8")
    elif changes:
        pytest.fail("\n".join(changes[:40]), pytrace=False)


def _changes(old: Any, new: Any, place: str) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _changes(old.get(key, "absent"), new.get(key, "absent"), f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new, strict=True)):
            yield from _changes(left, right, f"{place}[{index}]")
    elif isinstance(old, list) and isinstance(new, list):
        gone = [item for item in old if item not in new]
        come = [item for item in new if item not in old]
        yield f"{place}: {len(old)} items, now {len(new)}; gone {gone[:9]}, new {come[:9]}"
    elif isinstance(old, float) and isinstance(new, float):
        is_half = all(round(value, 6) == value for value in (old, new))
        step = _HALF_STEP if is_half else _TOLERANCE
        if new != pytest.approx(old, rel=step, abs=_ABSOLUTE, nan_ok=True):
            yield f"{place}: {old!r}, now {new!r}"
    elif isinstance(old, str) and isinstance(new, str) and _DIGITS.sub("", old) == _DIGITS.sub("", new):
        pairs = zip(_DIGITS.findall(old), _DIGITS.findall(new), strict=True)
        if any(float(right) != pytest.approx(float(left), rel=_TOLERANCE) for left, right in pairs):
            yield f"{place}: {old!r}, now {new!r}"
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield f"{place}: {old!r}, now {new!r}"
