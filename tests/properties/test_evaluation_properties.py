"""Spans, scores and mistakes, held to seqeval, scikit-learn and each other; schemes there and back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events import TaskScore
from core.tasks import score_task
from core.tasks.confusion import (
    BOUNDARY,
    BOUNDARY_AND_LABEL,
    INVENTED,
    LABEL,
    MISSED,
    NOTHING,
    OTHER_WORDS,
    Confusion,
    Mistake,
    label_confusion,
    label_mistakes,
    span_confusion,
    span_mistakes,
    summed,
)
from core.tasks.schemes import read_column, violations
from core.tasks.scores import averages, counted_report
from core.tasks.spans import Span, numbered, span_counts, span_pair, spans

pytest.importorskip("seqeval.metrics", reason="the package seqeval is not installed here")

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-A-B", "I-A-B"]
label_rows = st.lists(st.sampled_from(LABELS), max_size=12)


@given(label_rows)
def test_spans_are_those_of_seqeval(labels: list[str]) -> None:
    from seqeval.metrics.sequence_labeling import get_entities

    expected = [Span(start, end + 1, type_) for type_, start, end in get_entities(labels)]
    assert spans(labels) == expected


@given(st.lists(label_rows, max_size=6), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_scores_are_those_of_seqeval_in_both_modes(gold: list[list[str]], chance: Random) -> None:
    from seqeval.metrics import classification_report, f1_score
    from seqeval.scheme import IOB2

    predicted = [[chance.choice(LABELS) for _ in labels] for labels in gold]
    score = score_task("ner", "iob2", gold, predicted)
    annotated = any(map(spans, gold))
    assert score.is_defined is annotated
    if not any(gold):
        return
    strict = f1_score(gold, predicted, mode="strict", scheme=IOB2, zero_division=0)
    has_strict = any(label.startswith("B-") for labels in gold for label in labels)
    assert score.secondary("f1_strict") == pytest.approx(strict if has_strict else math.nan, nan_ok=True)
    if not score.report:
        assert averages(score) == {}
        return
    true, guess = numbered(gold, predicted)
    types, *spans_of_both = span_pair(true, guess)
    assert counted_report(types, span_counts(types, *spans_of_both)) == score.report
    report = reported(score)
    compare(report, classification_report(gold, predicted, output_dict=True), score)
    if annotated:
        micro = report["micro avg"]
        assert (score.secondary("precision"), score.secondary("recall"), score.secondary("f1_conll")) == (
            micro["precision"], micro["recall"], micro["f1"],
        )  # fmt: skip


def reported(score: TaskScore) -> dict[str, Mapping[str, float]]:
    return dict(score.report) | {f"{name} avg": row for name, row in averages(score).items()}


def compare(report: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Any], score: TaskScore) -> None:
    """All rows are theirs, but means where something is not annotated, which they count as 0."""
    assert set(report) == set(theirs)
    supports = [row["support"] for row in score.report.values()]
    for name, row in report.items():
        if (name == "macro avg" and not all(supports)) or (name.endswith(" avg") and not any(supports)):
            continue
        expected = {number.replace("-score", ""): value for number, value in theirs[name].items()}
        assert row == pytest.approx(expected, abs=1e-12), name


@settings(max_examples=40)
@given(label_rows.filter(bool), st.randoms(use_true_random=False))
def test_plain_labels_are_reported_as_by_scikit_learn(gold: list[str], chance: Random) -> None:
    from sklearn.metrics import classification_report

    predicted = [chance.choice(LABELS) for _ in gold]
    score = score_task("pos", "plain", [gold], [predicted], plain_score="seqeval_f1")
    expected = classification_report(gold, predicted, output_dict=True, zero_division=0)
    report = reported(score)
    micro, accuracy = report.pop("micro avg"), expected.pop("accuracy")
    compare(report, expected, score)
    assert micro["precision"] == micro["recall"] == micro["f1"] == pytest.approx(accuracy)


ODD = [
    "NN", "NNP", "N", ".", ",", "-LRB-", "PRP$", "O", "B", "I", "B-X", "I-X", "E-X", "S-X", "E", "S", "A-",
    "B-X-Y",
]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(ODD), max_size=8), max_size=6), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag:UserWarning")
def test_the_seqeval_f1_of_plain_labels_is_that_of_seqeval(gold: list[list[str]], chance: Random) -> None:
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    predicted = [[chance.choice(ODD) for _ in labels] for labels in gold]
    score = score_task("pos", "plain", gold, predicted, plain_score="seqeval_f1")
    expected = [math.nan] * 3
    if any(gold):
        *of_spans, support = precision_recall_fscore_support(
            gold, predicted, average="micro", zero_division=0
        )
        expected = of_spans if support else expected
    assert [
        score.secondary("precision"),
        score.secondary("recall"),
        score.secondary("seqeval_f1"),
    ] == pytest.approx(expected, rel=0, nan_ok=True)


@st.composite
def span_rows(draw: st.DrawFn) -> list[Span]:
    """Spans of a sentence, some of them adjacent."""
    made, place = [], 0
    for _ in range(draw(st.integers(0, 5))):
        place += draw(st.integers(0, 2))
        end = place + draw(st.integers(1, 3))
        made.append(Span(place, end, draw(st.sampled_from(["PER", "LOC"]))))
        place = end
    return made


_SPELLINGS = ["B-X", "B_X", "B:X", "X-B", "X|B", "b-X"]


def written(row: list[Span], scheme: str, spelling: str = "B-X") -> tuple[str, ...]:
    """A sentence with these spans, in that scheme; `spelling` shows how B- and the type X stand together."""
    labels = ["O"] * (row[-1].end + 1 if row else 1)
    neighbours = [(span.start, span.type) for span in row]
    for number, span in enumerate(row):
        size = span.end - span.start
        follows = number > 0 and (row[number - 1].end, row[number - 1].type) == (span.start, span.type)
        precedes = (span.end, span.type) in neighbours
        for step in range(size):
            first, last = step == 0, step == size - 1
            prefix = {
                "IOB2": "B" if first else "I",
                "IOB1": "B" if first and follows else "I",
                "IOE1": "E" if last and precedes else "I",
                "IOE2": "E" if last else "I",
                "IOBES": ("S" if last else "B") if first else ("E" if last else "I"),
                "BMES": ("S" if last else "B") if first else ("E" if last else "M"),
                "BILOU": ("U" if last else "B") if first else ("L" if last else "I"),
            }[scheme]
            letter = {ord("B"): prefix, ord("b"): prefix.lower(), ord("X"): span.type}
            labels[span.start + step] = spelling.translate(letter)
    return tuple(labels)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BMES", "BILOU"])
@given(rows=st.lists(span_rows(), min_size=1, max_size=4).filter(any), spelling=st.sampled_from(_SPELLINGS))
def test_every_scheme_in_every_spelling_becomes_the_same_iob2(
    scheme: str, spelling: str, rows: list[list[Span]]
) -> None:
    column = read_column({"train": [written(row, scheme, spelling) for row in rows]})
    expected = [written(row, "IOB2") for row in rows]
    assert column is not None
    assert column.labels == {"train": expected}
    assert not any(column.irregular.values())
    assert violations(expected) == 0
    assert [spans(labels) for labels in expected] == rows


@given(st.lists(label_rows, min_size=1, max_size=4))
def test_irregular_labels_are_read_as_seqeval_reads_them(rows: list[list[str]]) -> None:
    from seqeval.metrics.sequence_labeling import get_entities

    ends = {"B-PER": "S-PER", "I-LOC": "E-LOC"}
    # A regular span in front says what the scheme is.
    column = [("B-PER", "E-PER", "O"), *(tuple(ends.get(label, label) for label in row) for row in rows)]
    read = read_column({"train": column})
    assert read is not None
    for row, labels in zip(column, read.labels["train"], strict=True):
        assert [(span.type, span.start, span.end - 1) for span in spans(labels)] == get_entities(list(row))


label_pairs = st.lists(
    st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=9), max_size=5
)


def columns(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[gold for gold, _ in row] for row in pairs], [[guess for _, guess in row] for row in pairs]


def cells(matrix: Confusion) -> dict[tuple[str, str], int]:
    return {
        (true, guess): int(matrix.counts[row, column])
        for row, true in enumerate(matrix.gold)
        for column, guess in enumerate(matrix.predicted)
    }


@settings(max_examples=60)
@given(label_pairs, label_pairs)
def test_counts_are_those_of_words_and_of_the_scorer_s_spans(
    pairs: list[list[tuple[str, str]]], more: list[list[tuple[str, str]]]
) -> None:
    gold, predicted = columns(pairs)
    words = label_confusion(gold, predicted)
    flat = [pair for row in pairs for pair in row]
    for row, true in enumerate(words.gold):
        for column, guess in enumerate(words.predicted):
            assert words.counts[row, column] == flat.count((true, guess))
    assert words.counts.sum() == len(flat)

    by_span = span_confusion(gold, predicted)
    assert (by_span.gold[-1], by_span.predicted[-2:]) == (NOTHING, (OTHER_WORDS, NOTHING))
    types, *spans = span_pair(*numbered(gold, predicted))
    assert by_span.gold[:-1] == types
    counts = span_counts(types, *spans)
    for row, (annotated, guessed, both) in enumerate(counts):
        assert by_span.counts[row].sum() == annotated
        assert by_span.counts[row, row] == both
        assert by_span.counts[:, row].sum() <= guessed
    assert by_span.counts[-1, -2:].sum() == 0

    # Every predicted span that the F1 counts as wrong is told exactly once; missed ones are untouched.
    wrong = 0
    for true_labels, guesses in zip(gold, predicted, strict=True):
        for mistake in span_mistakes(true_labels, guesses):
            wrong += mistake.kind != MISSED
            if mistake.kind == MISSED:
                assert set(guesses[mistake.start : mistake.end]) == {"O"}
            assert bool(mistake.gold) == (mistake.kind != INVENTED)
    assert wrong == (counts[:, 1] - counts[:, 2]).sum()

    for part in (words, by_span):
        other = (label_confusion if part is words else span_confusion)(*columns(more))
        whole = summed([part, other])
        expected = Counter(cells(part)) + Counter(cells(other))
        assert Counter(cells(whole)) == expected
        annotated_words = whole.counts.sum(axis=1)[: len(whole.gold) - (part is by_span)]
        assert np.all(np.diff(annotated_words) <= 0)


def test_each_way_to_be_wrong_has_its_place() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O", "B-PER"]]
    guess = [["B-PER", "O", "O", "B-PER", "O", "O", "B-LOC", "B-PER"]]
    matrix = span_confusion(gold, guess)
    assert matrix.gold == ("LOC", "PER", NOTHING)
    assert matrix.predicted == ("LOC", "PER", OTHER_WORDS, NOTHING)
    assert matrix.counts.tolist() == [[0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]


def as_tuple(mistake: Mistake) -> tuple[str, int, int, str, str]:
    return mistake.kind, mistake.start, mistake.end, mistake.predicted, mistake.gold


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ("B-A I-A O", "B-A I-A O", []),
        ("B-A I-A O", "B-B I-B O", [(LABEL, 0, 2, "B", "A")]),
        ("B-A I-A O", "B-A O O", [(BOUNDARY, 0, 1, "A", "A")]),
        ("B-A I-A O", "O B-B O", [(BOUNDARY_AND_LABEL, 1, 2, "B", "A")]),
        ("B-A I-A O", "O O O", [(MISSED, 0, 2, "", "A")]),
        ("O O O", "O O B-A", [(INVENTED, 2, 3, "A", "")]),
        # One long span over two: it is told once, and no gold span besides.
        ("B-A B-B O", "B-A I-A O", [(BOUNDARY, 0, 2, "A", "A")]),
        ("B-A O B-B", "O B-A B-B", [(MISSED, 0, 1, "", "A"), (INVENTED, 1, 2, "A", "")]),
    ],
)
def test_wrong_spans(gold: str, predicted: str, expected: list[tuple[str, int, int, str, str]]) -> None:
    assert [as_tuple(span) for span in span_mistakes(gold.split(), predicted.split())] == expected


def test_plain_labels_are_wrong_word_by_word() -> None:
    (mistake,) = label_mistakes(["NN", "VB"], ["NN", "NN"])
    assert as_tuple(mistake) == (LABEL, 1, 2, "NN", "VB")
    with pytest.raises(ValueError, match="2 gold labels and 1"):
        label_mistakes(["NN", "VB"], ["NN"])
