"""What the name of a column tells, for all formats: words, texts, labels, numbers, or that it is none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from core.config.typed import real_number
from core.plain_text import shortened

TOKENS = "tokens"
"""The name of the column of words."""
IGNORED = "_"
"""Columns whose name begins with this are skipped."""
TASK_SUFFIX = "_tags"
"""The suffix of the names of columns of labels, as `datasets` has them."""

WORD_LISTS = ("tokens", "words", "token", "word", "forms", "form")
"""The names of a column of lists of words, in lower case; the first that is there has them."""
WORD_NAMES = frozenset(["token", "tokens", "word", "words", "form"])
"""The names that tell a column of words, whose file holds no texts."""
_OF_ONE_WORD = frozenset(["token", "word", "form"])

_TEXTS = ("text", "sentence", "utterance", "tweet", "review", "content")
_PAIRS = (
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
)
"""The names of the column of a text, and of the two columns of a pair, in lower case."""
_ALL_TEXTS = frozenset([*_TEXTS, *chain.from_iterable(_PAIRS)])

_LEFT_OUT = re.compile(
    r"|(.*[\W_])?(id|idx|index)|(q|pair|prompt|gu|u)id\d?|(?-i:.*[a-z]I[Dd])|.*_parse|filename"
    r"|unnamed: [\d.]+",
    re.IGNORECASE,
)
LABEL, SCORE = "label", "score"
"""The columns whose task has the name of the corpus."""
LABEL_NAMES = frozenset(
    [
        "intent", "label", "labels", "target", "class", "category", "domain", "topic", "sentiment", "emotion",
        "act", "dialog_act",
    ]
)  # fmt: skip
"""The names of columns that surely hold labels."""
OTHER_COLUMNS = ("lemma", "feats", "head", "deps", "misc")
"""The columns that are no tasks themselves."""

_NUMBER_NAME = r"[ _.-]?(#|id|idx|index|no|nr|num|number)"
_SENTENCE = re.compile(rf"sent(ence)?s?{_NUMBER_NAME}", re.IGNORECASE)
_DOCUMENT = re.compile(rf"(doc(ument)?|article|file)s?{_NUMBER_NAME}", re.IGNORECASE)
SEPARATORS = re.compile("[,;\x00-\x1f]")
"""What separates names on the command line and in the form, and control characters."""
_NOT_IN_NAMES = re.compile("[,;\x00-\x20]+")
# A name of a column has fewer spaces.
_WORDS_OF_A_TEXT = 3
_LONGEST_SHOWN = 80


def is_sentence_number(name: str) -> bool:
    """Whether a column of that name numbers the sentences: `sent_id`, `Sentence #`."""
    return _SENTENCE.fullmatch(name) is not None


def is_document_number(name: str) -> bool:
    """Whether a column of that name numbers the documents: `doc_id`. In each, sentences may begin anew."""
    return _DOCUMENT.fullmatch(name) is not None


def is_left_out(name: str) -> bool:
    """Whether a column of that name holds numbers of rows or the like."""
    return _LEFT_OUT.fullmatch(name) is not None


def is_text_column(name: str) -> bool:
    """Whether a column of that name may hold texts."""
    return name.lower() in _ALL_TEXTS


def is_score(name: str, *, of_pairs: bool = False) -> bool:
    """Whether a column of that name holds numbers of pairs, in any case where there are pairs."""
    name = name.lower() if of_pairs else name  # `Score` of one text is stars, as a rule
    return name == SCORE or name.endswith(f"_{SCORE}")


def cleaned(name: str) -> str:
    """A column's name without the separators of names on the command line; may be empty."""
    return _NOT_IN_NAMES.sub("-", name).strip("-")


def is_named_other(column: str) -> bool:
    """Whether the name of a column says that it holds no labels: identifiers, lemmas, `_x`."""
    is_other = column.lower() in OTHER_COLUMNS or column.lower().removesuffix("s") in OTHER_COLUMNS
    return is_other or is_left_out(column) or column.startswith(IGNORED)


def tasks_of(columns: Sequence[str]) -> dict[str, str]:
    """The task of each column of labels: `ner` of `ner_tags`, where no two would be called the same."""
    short = {column: cleaned(column.removesuffix(TASK_SUFFIX)) or column for column in columns}
    uses = Counter(short.values())
    return {column: task if uses[task] == 1 else column for column, task in short.items()}


def text_tasks(columns: Collection[str], corpus: str) -> dict[str, str]:
    """The task of each column of labels of texts: of a lone `label` or `score`, the name of the corpus."""
    plain = [column for column in columns if column in (LABEL, SCORE)]
    corpus_task = task_name(corpus)
    is_plain = len(plain) == 1 and corpus_task and corpus_task not in columns
    return {column: corpus_task if is_plain and column in plain else column for column in columns}


def task_name(corpus: str) -> str:
    """The name of a corpus as that of its one task on texts."""
    return SEPARATORS.sub("-", corpus)


def _shown(text: str) -> str:
    return shortened(text, _LONGEST_SHOWN)


def text_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The column of a text, or the two of a pair, as the file writes them."""
    lower = [name.lower() for name in names]
    single = [name for name in _TEXTS if name in lower]
    pair = next((pair for pair in _PAIRS if set(pair) <= set(lower)), ())
    texts = pair or tuple(single[:1])
    if not texts or (pair and not set(single) <= set(pair)):
        is_row = any(real_number(name) is not None or name.count(" ") >= _WORDS_OF_A_TEXT for name in names)
        hint = " This line seems to hold a text; put the names of the columns above it." * is_row
        if problem := word_rows(names):
            hint = f" The table {problem}"
        raise ValueError(
            "expected a column text or sentence, or two for pairs, such as text1 and text2, sentence1 and "
            f"sentence2 or premise and hypothesis, but the columns are {_shown(', '.join(names))}."
            f"{hint}"
        )
    return tuple(names[lower.index(name)] for name in texts)


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
