"""Tables with a word in each row, known by the names of their columns."""

from __future__ import annotations

from collections.abc import Collection

from core.corpora.readers.lines import is_sentence_number

WORD_NAMES = frozenset(["token", "tokens", "word", "words", "form"])
"""The names that tell a column of words, whose file holds no texts."""
_OF_ONE_WORD = frozenset(["token", "word", "form"])


def word_rows(names: Collection[str]) -> str | None:
    """What is wrong with a table of a word in each row, by the names of its columns; None for others."""
    lower = {name.strip().lower() for name in names}
    has_numbers = any(map(is_sentence_number, names))
    # `tokens` may hold a sentence, where nothing numbers sentences.
    if lower.isdisjoint(WORD_NAMES if has_numbers else _OF_ONE_WORD):
        return None
    if has_numbers:
        return (
            "has a word in each row, which is read from CSV and CoNLL columns alone; save it as .csv, or "
            "write a sentence in each row, with a list of its words in tokens and a list of their labels in "
            "ner_tags."
        )
    return (
        "has a word in each row, and no column that numbers its sentences; add one called sentence_id, or "
        "save the words as CoNLL columns with a blank line after each sentence."
    )
