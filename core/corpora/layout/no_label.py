"""The values in a column of labels that stand for no label: one table for all formats.

| value | stands for no label | unless |
|---|---|---|
| nothing, null, NaN | everywhere | |
| -1, -100 | where each number names a label | |
| -1, -100 | among labels and numbers of texts and sentences | other labels are negative numbers too, or fewer than two others remain, or -1 is common beside 0 and 1 |
| - | among labels of texts and sentences | + is a label, or fewer than two others remain |
| _, - | among labels of spans | nobody wrote O (`core.tasks.schemes`) |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from core.config.typed import real_number

CODES = (-1, -100)
"""The numbers for no label: of `datasets`, and of `transformers` for words that the loss leaves out."""
_DASH = "-"
_POLARITY = frozenset([0.0, 1.0])
# -1 beside 0 and 1, on one row in twenty of so many, is a class: negative, neutral and positive.
_POLARITY_ROWS, _RARE = 100, 20


def is_blank(value: Any) -> bool:
    """Whether a value is nothing: null, NaN, or a text of spaces."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or value != value


def is_code(value: Any) -> bool:
    """Whether a value is a number for no label, where the numbers of labels count from 0."""
    return type(value) in (int, float) and value in CODES


def no_label(training: Mapping[str, int], others: Collection[str] = ()) -> frozenset[str]:
    """The labels of texts or sentences that stand for no label.

    `training` has how often each label occurs there, `others` has the labels of other splits.
    """
    labels = {*training, *others}
    numbers = {label: real_number(label) for label in labels}
    codes = {label for label, number in numbers.items() if number in CODES}
    rest = {numbers[label] if numbers[label] is not None else label for label in labels - codes}
    dashes = labels & {_DASH}
    if not rest - dashes:
        return frozenset(codes | dashes)
    if (
        any(isinstance(label, float) and label < 0 for label in rest)
        or len(rest) < 2
        or (rest == _POLARITY and is_common(training, codes))
    ):
        codes = set()
    if "+" in labels or len(rest - dashes) < 2:
        dashes = set()
    return frozenset(codes | dashes)


def is_common(training: Mapping[str, int], codes: Collection[str]) -> bool:
    """Whether labels that may stand for no label are too common in training to do so without a doubt."""
    rows = sum(training.values())
    return rows >= _POLARITY_ROWS and sum(training.get(code, 0) for code in codes) * _RARE >= rows
