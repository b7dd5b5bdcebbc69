"""The report of one run by label: equal to the classification reports of seqeval and scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.scores import averages, score_task

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


def test_the_published_averages() -> None:
    """Figure 15 of the dissertation: chunks of CoNLL-2000, MRN, RoBERTa."""
    rows = {
        "ADJP": (0.8399, 0.8265, 0.8331, 438), "ADVP": (0.8722, 0.8510, 0.8615, 866),
        "CONJP": (0.5000, 0.6667, 0.5714, 9), "INTJ": (0.0, 0.0, 0.0, 2), "LST": (0.0, 0.0, 0.0, 5),
        "NP": (0.9758, 0.9750, 0.9754, 12422), "PP": (0.9825, 0.9896, 0.9860, 4811),
        "PRT": (0.7869, 0.9057, 0.8421, 106), "SBAR": (0.9446, 0.9570, 0.9508, 535),
        "VP": (0.9677, 0.9712, 0.9695, 4658),
    }  # fmt: skip
    published = {"micro": (0.9675, 0.9689, 0.9682), "macro": (0.6870, 0.7143, 0.6990),
                 "weighted": (0.9673, 0.9689, 0.9681)}  # fmt: skip
    numbers = ("precision", "recall", "f1", "support")
    report = {label: dict(zip(numbers, row, strict=True)) for label, row in rows.items()}
    score = SimpleNamespace(accuracy=0.98, precision=0.9675, recall=0.9689, f1_conll=0.9682, report=report)
    for name, row in averages(score).items():
        assert list(row.values()) == pytest.approx([*published[name], 23852], abs=6e-5)
