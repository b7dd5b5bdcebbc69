"""Labels of sentences beside labels of words: comments before a sentence (`# intent: x`), named fields.

Not each comment or field is a label: numbers of sentences and texts are none, nor is what hardly ever comes
twice. What is taken for one stands in the reading of the corpus, and a run chooses its tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.corpora.readers.conll import Table
from core.corpora.readers.lines import IGNORED
from core.corpora.readers.text_files import LABEL_NAMES, is_left_out, is_text_column

_MOST_LABELS = 200
_SENTENCES_PER_LABEL = 2
_LONGEST_LABEL = 100
_NEARLY_ALL = 0.9


def are_labels(name: str, kinds: Counter[str]) -> bool:
    """Whether the values that a field of that name has on sentences, as often, are labels."""
    if is_left_out(name) or is_text_column(name) or name.startswith(IGNORED):
        return False
    if not all(kind.isprintable() and len(kind) <= _LONGEST_LABEL for kind in kinds):
        return False
    repeats = 1 < len(kinds) <= kinds.total() / _SENTENCES_PER_LABEL
    return len(kinds) <= _MOST_LABELS and (name.lower() in LABEL_NAMES or repeats)


def labels_of_comments(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the comments that label nearly all sentences of a table and are no column's name."""
    values: dict[str, list[str]] = {}
    for comment in table.comments:
        if comment.label is not None:
            name, value = comment.label
            values.setdefault(name, []).append(value)
    return tuple(
        name
        for name, labels in values.items()
        if len(labels) >= _NEARLY_ALL * len(table.starts)
        if name not in columns and are_labels(name, Counter(labels))
    )
