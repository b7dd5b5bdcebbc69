"""Spans as seqeval finds them, scores that cannot be otherwise, schemes that convert there and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.records import TaskScore
from core.tasks import score_task
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
    assert score.figure("f1_strict") == pytest.approx(strict if has_strict else math.nan, nan_ok=True)
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
        assert (score.figure("precision"), score.figure("recall"), score.figure("f1_conll")) == (
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
    assert [score.figure("precision"), score.figure("recall"), score.figure("seqeval_f1")] == pytest.approx(
        expected, rel=0, nan_ok=True
    )


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
