"""What looks wrong in the labels of a column: codes of annotation tools and of other layouts.

One rule for every format: the readers of all of them ask here, by what the column was taken for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from core.wording import first_of, plural

ONE_LABEL = "one label a text is learned"
"""The rule for texts, in the sentences on several labels."""
LAYERS = "joins labels of several layers; write a column for each layer"
"""The cause and the remedy for `B-DNA|B-protein`, in the sentence of an error."""

_LAYERS = re.compile(r"\s*[|,;#/+&]\s*")
_OF_A_LAYER = re.compile(r"O|[BIESLUMW][-_].+|.+[-_][BIESLUMW]")
_JOINERS = re.compile(r"\s*[;|,#+]\s*")
_LANGUAGE = re.compile(r"[a-z][a-z-]+:")
_WORDS_SEEN = 200
_OUTSIDE_AS_A_TYPE = frozenset(["O", "o", "0"])


def word_doubts(counts: Counter[str]) -> Iterator[str]:
    """Sentences on the labels of words, with their counts, that may be codes for something else."""
    if layered := [label for label in counts if has_layers(label)]:
        joins = "joins" if len(layered) == 1 else "join"
        yield (
            f"{plural(len(layered), 'label')} {joins} those of several layers ({first_of(layered)}), and "
            "each is learned as one label; write a column for each layer."
        )
    else:
        yield from _doubts_on_sign(counts)


def prefix_doubts(words: Iterable[str]) -> Iterator[str]:
    """A sentence on a prefix that all words have, as WikiAnn writes `en:` before each."""
    first = list(islice(words, _WORDS_SEEN))
    prefixes = {match[0] if (match := _LANGUAGE.match(word)) else "" for word in first}
    if len(first) > 1 and len(prefixes) == 1 and "" not in prefixes:
        yield f"each word begins with {prefixes.pop()}, as in WikiAnn's files; take it away."


def type_doubts(types: Collection[str]) -> Iterator[str]:
    """Sentences on types of spans that stand for no span."""
    for type_ in types:
        if type_ in _OUTSIDE_AS_A_TYPE:
            yield f"spans have a type called {type_}; where no span is meant, write O alone."


def text_doubts(counts: Counter[str]) -> Iterator[str]:
    """Sentences on labels of sentences, texts or pairs that seem to be several in one."""
    parts = {label: found for label in counts if len(found := _JOINERS.split(label)) > 1 and all(found)}
    uses = Counter(part for found in parts.values() for part in set(found))
    joined = [
        label
        for label, found in parts.items()
        if any(part in counts for part in found) or all(uses[part] > 1 for part in found)
    ]
    if joined:
        yield (
            f"{plural(len(joined), 'label')} seem{'s' * (len(joined) == 1)} to join several "
            f"({first_of(joined)}), and {ONE_LABEL}: each is a class of its own. Keep one label in each row, "
            "or write a column of 0 and 1 for each label."
        )


def has_layers(label: str) -> bool:
    """Whether a label is made of labels of spans: `B-DNA|B-protein`, `O|B-PER`."""
    parts = _LAYERS.split(label)
    return len(parts) > 1 and all(map(_OF_A_LAYER.fullmatch, parts))


def _doubts_on_sign(counts: Counter[str]) -> Iterator[str]:
    """A sentence on a sign, such as `_`, that stands at most words beside names."""
    ((label, count),) = counts.most_common(1) or [("", 0)]
    has_names = any(any(map(str.isalnum, other)) for other in counts)
    if has_names and label and count * 2 > counts.total() and not any(map(str.isalnum, label)):
        yield (
            f"more than half of its labels are {label}, which is learned as a label; where it says that a "
            "word has none, write O, and B- or I- before the names of spans."
        )
