"""What the labels of known tag sets mean: Penn Treebank, Universal Dependencies, chunks, entities."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

_TAG_SETS: tuple[Mapping[str, str], ...] = tuple(
    json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).values()
)
_PLACES = {"B-": "first word", "I-": "later word", "E-": "last word", "S-": "only word"}
"""What the prefixes of span labels say of a word."""


def label_meanings(labels: Collection[str]) -> dict[str, str]:
    """The meanings of a task's labels, from the tag set that has the most of them.

    Empty where no set has more than half of the labels: they may mean something else there.
    """
    types = {label: label[2:] if label[:2] in _PLACES else label for label in {*labels} - {"", "O"}}
    known = max(
        ({label: tag_set[name] for label, name in types.items() if name in tag_set} for tag_set in _TAG_SETS),
        key=len,
    )
    if 2 * len(known) <= len(types):
        return {}
    spans = {
        label: f"{meaning}, {_PLACES[label[:2]]}" for label, meaning in known.items() if label != types[label]
    }
    return known | spans | ({"O": "no span"} if spans else {})
