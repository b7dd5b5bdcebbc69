"""Why a column beside words or texts is no task: one table for columns of words, one for columns of rows.

The first rule that holds leaves a column out. Files and datasets differ where a file can be mended: there a
column that looks like labels and is none is an error at its line, and in a dataset it is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from core.corpora.layout.cells import structured
from core.corpora.layout.column_names import (
    IGNORED,
    TASK_SUFFIX,
    is_left_out,
    is_named_other,
    is_score,
    is_text_column,
)
from core.corpora.layout.contents import are_flags_or_blank, are_labels, is_skipped
from core.corpora.layout.doubts import ONE_LABEL
from core.corpora.layout.fields import Field
from core.corpora.layout.no_label import is_blank, no_label
from core.corpora.types import Scheme
from core.tasks.packed import packed

NO_ROW = "no row has a label of it"
SAME = "all its values are the same"


@dataclass(frozen=True)
class Candidate:
    """A column that may be a task, and what is beside it.

    words    the words of each of the rows seen
    texts    how many texts a row has: 0 where it has words
    in_file  whether it is of a file, else of a dataset
    cells    `lists` or `objects`, where most of its texts are such
    """

    field: Field
    words: Sequence[Sequence[str] | None] = ()
    texts: int = 0
    in_file: bool = False
    cells: str = ""

    @cached_property
    def rows(self) -> list[tuple[Sequence[str], Sequence[Any]]]:
        """The words and the values of each row that has both; of a file, an empty list is wrong too."""
        pairs = zip(self.words, self.field.seen, strict=True)
        return [
            (words, row)
            for words, row in pairs
            if words and isinstance(words, list) and isinstance(row, list) and (row or self.in_file)
        ]

    @cached_property
    def kinds(self) -> Counter[str]:
        """How often each label occurs in the rows seen, without what stands for no label."""
        return kinds_of(self.field.seen)

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers to learn as numbers."""
        is_score_by_name = is_score(self.field.name, of_pairs=self.texts == 2)
        if self.in_file or not self.texts:
            return is_score_by_name and self.texts > 0
        return self.field.content == "real" or (self.field.content == "whole" and is_score_by_name)

    @property
    def are_open(self) -> bool:
        """Whether its values may be labels or anything else: those of a dataset without names of numbers."""
        return not self.in_file and self.field.content in ("text", "whole") and not self.is_number

    @property
    def repeats(self) -> bool:
        """Whether its values repeat as labels do."""
        return are_labels(self.field.name, self.kinds)


def kinds_of(values: Iterable[Any]) -> Counter[str]:
    """How often each label occurs, without what stands for no label."""
    counts = Counter(str(value) for value in values if not is_blank(value))
    codes = no_label(counts)
    return Counter({label: count for label, count in counts.items() if label not in codes})


class Rule(NamedTuple):
    """Why a column is left out, and whether it is; `even_chosen`: also where the reader named the column."""

    reason: str
    holds: Callable[[Candidate], bool]
    even_chosen: bool = False


def _has_other_lengths(column: Candidate) -> bool:
    """Whether most lists are not as long as the words; in a file, also the first, and the name tells none."""
    misfits = [len(words) != len(row) for words, row in column.rows]
    is_surely = column.in_file and (column.field.name.endswith(TASK_SUFFIX) or not all(misfits[:1]))
    return not is_surely and 2 * sum(misfits) > len(misfits)


def _is_named_other(column: Candidate) -> bool:
    name = column.field.name
    return is_left_out(name) or name.startswith(IGNORED) if column.in_file else is_named_other(name)


def _values(column: Candidate) -> Iterable[Any]:
    return chain.from_iterable(row for row in column.field.seen if isinstance(row, list))


def _written(column: Candidate) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for _, row in column.rows]


OF_WORDS = (
    Rule("", lambda column: is_named_other(column.field.name)),
    Rule(
        "",
        lambda column: column.field.content == "other" or not (column.rows or column.in_file),
        even_chosen=True,
    ),
    Rule("its lists are not as long as those of the words", _has_other_lengths),
    Rule("it holds nothing but booleans or blanks", lambda column: are_flags_or_blank(_values(column))),
    Rule(
        "it holds numbers without names",
        lambda column: not column.in_file and column.field.content in ("whole", "real", "bool"),
    ),
    Rule(
        "it holds numbers, lemmas or the like",
        lambda column: (
            not column.in_file and column.field.content == "text" and is_skipped(packed(_written(column)))
        ),
    ),
    Rule(
        SAME, lambda column: not column.in_file and len(set(chain(*_written(column)))) == 1 < len(column.rows)
    ),
)
"""Of a column of lists, with a value for each word."""

OF_SENTENCES = (
    Rule("", lambda column: is_named_other(column.field.name) or is_text_column(column.field.name)),
    Rule("", lambda column: column.field.content in ("real", "other"), even_chosen=True),
    Rule("", lambda column: column.are_open and not column.repeats),
)
"""Of a column of single values beside words, which may label the sentence."""

OF_TEXTS = (
    Rule("", lambda column: column.field.is_list and is_named_other(column.field.name), even_chosen=True),
    Rule(
        f"it holds lists, and {ONE_LABEL}; write one label in each row, or a column for each label",
        lambda column: column.field.is_list,
        even_chosen=True,
    ),
    Rule("its cells hold objects", lambda column: column.cells == "objects", even_chosen=True),
    Rule("its cells hold lists", lambda column: column.cells == "lists", even_chosen=True),
    Rule(NO_ROW, lambda column: column.field.content == "other" and not column.kinds, even_chosen=True),
    Rule("", lambda column: column.field.content == "other", even_chosen=True),
    Rule("", _is_named_other),
    Rule(
        "it holds numbers, which are learned of pairs of texts alone",
        lambda column: not column.in_file and column.is_number and column.texts == 1,
        even_chosen=True,
    ),
    Rule(NO_ROW, lambda column: column.are_open and not column.kinds),
    Rule(SAME, lambda column: column.are_open and not column.repeats and len(column.kinds) == 1),
    Rule(
        "it has too many different values for labels", lambda column: column.are_open and not column.repeats
    ),
)
"""Of a column of single values beside texts."""


def why_left_out(candidate: Candidate, rules: Sequence[Rule], *, is_chosen: bool = False) -> str | None:
    """Why a column is no task, which may be empty; None where it is one."""
    return next(
        (rule.reason for rule in rules if (rule.even_chosen or not is_chosen) and rule.holds(candidate)), None
    )


def beside_words(
    fields: Sequence[Field], words: Field, *, in_file: bool = False, is_chosen: bool = False
) -> tuple[list[str], list[str], dict[str, str]]:
    """The columns of labels of words, those of labels of sentences, and by other column, why it is none."""
    candidates = [Candidate(each, words.seen, in_file=in_file) for each in fields if each.name != words.name]
    reasons = {
        each.field.name: why_left_out(
            each, OF_WORDS if each.field.is_list else OF_SENTENCES, is_chosen=is_chosen
        )
        for each in candidates
    }
    tasks = [each.field for each in candidates if reasons[each.field.name] is None]
    labels = [column.name for column in tasks if column.is_list]
    # Of a dataset of texts with their words, the labels are those of the texts.
    has_texts = any(
        is_text_column(each.name) and each.content == "text" and not each.is_list for each in fields
    )
    of_texts = has_texts and not in_file and not labels
    sentence_columns = [column.name for column in tasks if not (column.is_list or of_texts)]
    others = {name: why or "" for name, why in reasons.items() if name not in (*labels, *sentence_columns)}
    return labels, sentence_columns, others


def cells_of_texts(fields: Sequence[Field]) -> dict[str, list[list[Any] | dict[Any, Any] | None]]:
    """By column of texts that are mostly lists or objects, what each of the first rows has."""
    columns = [each for each in fields if each.content == "text" and not each.is_list]
    names = [each.name for each in columns]
    return structured(
        [dict(zip(names, row, strict=True)) for row in zip(*(each.seen for each in columns), strict=True)]
    )


def beside_texts(
    fields: Sequence[Field], texts: Sequence[str], *, in_file: bool = False, is_chosen: bool = False
) -> tuple[dict[str, Scheme], dict[str, str]]:
    """The kind of task of each column of labels or numbers, and by other column, why it is none."""
    schemes: dict[str, Scheme] = {}
    reasons: dict[str, str] = {}
    cells = cells_of_texts(fields)
    for column in [column for column in fields if column.name not in texts]:
        values = cells.get(column.name)
        kind = (
            "" if values is None else "objects" if any(isinstance(each, dict) for each in values) else "lists"
        )
        candidate = Candidate(column, (), len(texts), in_file, kind)
        why = why_left_out(candidate, OF_TEXTS, is_chosen=is_chosen)
        if why is None:
            schemes[column.name] = "score" if candidate.is_number else "text" if len(texts) == 1 else "pair"
        else:
            reasons[column.name] = why
    return schemes, reasons
