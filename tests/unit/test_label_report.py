"""The report of one run by label: equal to the classification reports of seqeval and scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation import averages, score_task

SPANS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC", "I-MISC"]
TAGS = ["NN", "NNP", "VB", "DT", ".", "-X-"]


def both(labels: list[str]) -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    """Sentences of words with a gold and a predicted label."""
    word = st.tuples(st.sampled_from(labels), st.sampled_from(labels))
    return st.lists(st.lists(word, min_size=1, max_size=9), min_size=1, max_size=5)


def compare(own: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Any]) -> None:
    for name, row in own.items():
        expected = theirs[name]
        assert row == pytest.approx(
            {
                "precision": expected["precision"],
                "recall": expected["recall"],
                "f1": expected["f1-score"],
                "support": expected["support"],
            },
            abs=1e-12,
        ), name


@given(both(SPANS))
def test_spans_are_reported_as_by_seqeval(sentences: list[list[tuple[str, str]]]) -> None:
    from seqeval.metrics import classification_report

    gold = [[true for true, _ in words] for words in sentences]
    predicted = [[guess for _, guess in words] for words in sentences]
    score = score_task("ner", "iob2", gold, predicted)
    if not score.report:
        assert averages(score) == {}
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that are never predicted
        expected = classification_report(gold, predicted, output_dict=True)
    own = dict(score.report) | {f"{name} avg": row for name, row in averages(score).items()}
    assert set(own) == set(expected)
    compare(own, expected)


@given(both(TAGS))
def test_plain_labels_are_reported_as_by_scikit_learn(sentences: list[list[tuple[str, str]]]) -> None:
    from sklearn.metrics import classification_report

    gold = [[true for true, _ in words] for words in sentences]
    predicted = [[guess for _, guess in words] for words in sentences]
    score = score_task("pos", "plain", gold, predicted, plain_score="seqeval_f1")
    flat = [list(chain.from_iterable(side)) for side in (gold, predicted)]
    expected = classification_report(*flat, output_dict=True, zero_division=0)
    own = dict(score.report) | {f"{name} avg": row for name, row in averages(score).items()}
    micro = own.pop("micro avg")
    assert set(own) == set(expected) - {"accuracy"}
    compare(own, expected)
    assert micro["precision"] == micro["recall"] == micro["f1"] == pytest.approx(expected["accuracy"])
