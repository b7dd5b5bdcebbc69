"""Kinds of errors of spans by hand, and the F1 of four schemes against nervaluate's own."""

from __future__ import annotations

import math

import nervaluate
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tasks.span_errors import (
    BOTH_WRONG,
    EXACT,
    MISSED,
    SCHEMES,
    SPURIOUS,
    WRONG_BOUNDARY,
    WRONG_TYPE,
    SpanErrors,
    span_errors,
)
from core.tasks.spans import numbered, span_pair, spans

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
_NAMES = {"strict": "strict", "exact": "exact", "partial": "partial", "type": "ent_type"}
_COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")


def errors_of(gold: list[list[str]], predicted: list[list[str]]) -> SpanErrors:
    return span_errors(*numbered(gold, predicted))


def theirs(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, dict[str, float]]:
    """nervaluate's figures of the spans that conlleval finds; its ends are inclusive."""
    both = [
        [[{"label": s.type, "start": s.start, "end": s.end - 1} for s in spans(row)] for row in rows]
        for rows in (gold, predicted)
    ]
    overall = nervaluate.Evaluator(*both, ["PER", "LOC", "ORG"], "dict").evaluate()["overall"]
    return {name: vars(overall[_NAMES[name]]) for name in SCHEMES}


@pytest.mark.parametrize(
    ("gold", "predicted", "kind"),
    [
        ("O B-PER I-PER O", "O B-PER I-PER O", EXACT),
        ("O B-PER I-PER O", "O B-LOC I-LOC O", WRONG_TYPE),
        ("O B-PER I-PER O", "O B-PER O O", WRONG_BOUNDARY),
        ("O B-PER I-PER O", "B-LOC I-LOC I-LOC O", BOTH_WRONG),
        ("O B-PER I-PER O", "O O O O", MISSED),
        ("O O O O", "O B-PER I-PER O", SPURIOUS),
    ],
)
def test_each_kind(gold: str, predicted: str, kind: str) -> None:
    errors = errors_of([gold.split()], [predicted.split()])
    assert {name: count for name, count in errors.counts.items() if count} == {kind: 1}
    assert math.isnan(errors.f1["strict"]) == (kind == SPURIOUS)


def test_an_annotated_span_is_matched_once_and_best_with_its_type() -> None:
    errors = errors_of([["B-LOC", "B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-PER", "O"]])
    assert errors.counts == {
        EXACT: 0,
        WRONG_TYPE: 0,
        WRONG_BOUNDARY: 1,  # PER of words 1 and 2 with PER of 2 and 3
        BOTH_WRONG: 0,
        MISSED: 1,  # LOC
        SPURIOUS: 1,  # the second PER, whose span is taken
    }


rows = st.lists(st.lists(st.sampled_from(LABELS), max_size=9), min_size=1, max_size=5)


@given(rows, st.randoms(use_true_random=False))
def test_the_schemes_equal_those_of_nervaluate(gold: list[list[str]], random: object) -> None:
    predicted = [[random.choice([label, *LABELS]) for label in row] for row in gold]  # type: ignore[attr-defined]
    ours = errors_of(gold, predicted)
    for name, figures in theirs(gold, predicted).items():
        if ours.annotated:
            assert ours.f1[name] == pytest.approx(figures["f1"], abs=1e-12), name
        else:
            assert math.isnan(ours.f1[name])
    by_type = theirs(gold, predicted)["type"]
    counts = ours.counts
    assert counts[EXACT] == theirs(gold, predicted)["strict"]["correct"]
    assert counts[EXACT] + counts[WRONG_BOUNDARY] == by_type["correct"]
    assert counts[WRONG_TYPE] + counts[BOTH_WRONG] == by_type["incorrect"]
    assert (counts[MISSED], counts[SPURIOUS]) == (by_type["missed"], by_type["spurious"])


def test_the_kinds_sum_to_the_annotated_and_the_predicted_spans() -> None:
    random = np.random.default_rng(4)
    gold, predicted = ([list(random.choice(LABELS, 30)) for _ in range(200)] for _ in range(2))
    errors = errors_of(gold, predicted)
    _, true, guess = span_pair(*numbered(gold, predicted))
    assert errors.annotated == len(true.end)
    assert sum(errors.counts.values()) - errors.counts[MISSED] == len(guess.end)
