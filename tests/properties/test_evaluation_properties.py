"""Spans as seqeval finds them, scores that cannot be otherwise, schemes that convert there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.schemes import convert, notation, violations
from core.evaluation import Span, score_task, spans, summary
from core.evaluation.scores import score_numbers
from core.evaluation.spans import Gold

pytest.importorskip("seqeval.metrics", reason="the package seqeval is not installed here")

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-A-B", "I-A-B"]
label_rows = st.lists(st.sampled_from(LABELS), max_size=12)


@given(label_rows)
def test_spans_are_those_of_seqeval(labels: list[str]) -> None:
    from seqeval.metrics.sequence_labeling import get_entities

    expected = [Span(start, end + 1, type_) for type_, start, end in get_entities(labels)]
    assert spans(labels) == expected


@given(label_rows)
def test_spans_cover_exactly_the_labelled_words(labels: list[str]) -> None:
    covered = [place for span in spans(labels) for place in range(span.start, span.end)]
    assert covered == [place for place, label in enumerate(labels) if label != "O"]


@given(st.lists(st.tuples(label_rows, st.randoms(use_true_random=False)), max_size=5))
def test_scores_are_shares_and_perfect_only_when_right(pairs: list[tuple[list[str], object]]) -> None:
    gold = [labels for labels, _ in pairs]
    predicted = [[chance.choice(LABELS) for _ in labels] for labels, chance in pairs]  # type: ignore[attr-defined]  # a Random
    score = score_task("ner", "iob2", gold, predicted)
    for value in (score.accuracy, score.precision, score.recall, score.f1_conll, score.f1_strict):
        assert value is not None
        assert 0 <= value <= 1
    right = score_task("ner", "iob2", gold, gold)
    assert right.f1_conll == (1.0 if any(label != "O" for labels in gold for label in labels) else 0.0)
    gold_spans = {(n, span) for n, labels in enumerate(gold) for span in spans(labels)}
    found = {(n, span) for n, labels in enumerate(predicted) for span in spans(labels)}
    both = len(gold_spans & found)
    assert score.f1_conll == pytest.approx(
        2 * both / (len(gold_spans) + len(found)) if gold_spans or found else 0
    )


@given(st.lists(label_rows, max_size=6), st.randoms(use_true_random=False))
def test_scores_are_those_of_seqeval_in_both_modes(gold: list[list[str]], chance: object) -> None:
    from seqeval.metrics import f1_score
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
    from seqeval.scheme import IOB2

    predicted = [[chance.choice(LABELS) for _ in labels] for labels in gold]  # type: ignore[attr-defined]  # a Random
    score = score_task("ner", "iob2", gold, predicted)
    if not any(gold):
        assert score.f1_conll == score.f1_strict == 0
        return
    expected = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    assert (score.precision, score.recall, score.f1_conll) == pytest.approx(expected[:3])
    strict = f1_score(gold, predicted, mode="strict", scheme=IOB2, zero_division=0)
    assert score.f1_strict == pytest.approx(strict)
    if score.report:
        columns = precision_recall_fscore_support(gold, predicted, average=None, zero_division=0)
        for row, (p, r, f1, n) in zip(score.report.values(), zip(*columns, strict=True), strict=True):
            assert list(row.values()) == pytest.approx([p, r, f1, n])


@given(st.permutations(LABELS), st.lists(st.integers(0, 6), max_size=6), st.data())
def test_numbers_score_as_the_labels_that_they_stand_for(
    names: list[str], lengths: list[int], data: st.DataObject
) -> None:
    """Whatever the order of the head's labels, and where it knows some that no word has."""
    row = st.lists(st.integers(0, len(names) - 1), min_size=sum(lengths), max_size=sum(lengths))
    numbers = [np.array(data.draw(row), dtype=np.int64) for _ in range(2)]
    known = Gold(tuple(names), numbers[0], np.array(lengths, dtype=np.int64))
    ends = np.cumsum(lengths)[:-1]
    gold, predicted = (
        [[names[number] for number in one.tolist()] for one in np.split(flat, ends)] if lengths else []
        for flat in numbers
    )
    for scheme in ("iob2", "plain"):
        for details in (True, False):
            told = score_numbers("task", scheme, known, numbers[1], details=details)
            assert told == score_task("task", scheme, gold, predicted, details=details)


ODD = [
    "NN",
    "NNP",
    "N",
    ".",
    ",",
    "-LRB-",
    "PRP$",
    "O",
    "B",
    "I",
    "B-X",
    "I-X",
    "E-X",
    "S-X",
    "E",
    "S",
    "A-",
    "B-X-Y",
]


@given(st.lists(st.lists(st.sampled_from(ODD), max_size=8), max_size=6), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag:UserWarning")
def test_the_seqeval_f1_of_plain_labels_is_that_of_seqeval(gold: list[list[str]], chance: object) -> None:
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    predicted = [[chance.choice(ODD) for _ in labels] for labels in gold]  # type: ignore[attr-defined]  # a Random
    score = score_task("pos", "plain", gold, predicted, plain_score="seqeval_f1")
    expected = (0, 0, 0)
    if any(gold):
        expected = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)[:3]
    assert (score.precision, score.recall, score.seqeval_f1) == expected


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


def written(row: list[Span], scheme: str) -> tuple[str, ...]:
    """A sentence with these spans, in that scheme."""
    labels = ["O"] * (row[-1].end + 1 if row else 1)
    for number, span in enumerate(row):
        size = span.end - span.start
        adjacent = number > 0 and (row[number - 1].end, row[number - 1].type) == (span.start, span.type)
        for step in range(size):
            first, last = step == 0, step == size - 1
            prefix = {
                "IOB2": "B" if first else "I",
                "IOB1": "B" if first and adjacent else "I",
                "IOBES": ("S" if last else "B") if first else ("E" if last else "I"),
                "BILOU": ("U" if last else "B") if first else ("L" if last else "I"),
            }[scheme]
            labels[span.start + step] = f"{prefix}-{span.type}"
    return tuple(labels)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES", "BILOU"])
@given(rows=st.lists(span_rows(), min_size=1, max_size=4))
def test_every_scheme_is_recognised_and_becomes_the_same_iob2(scheme: str, rows: list[list[Span]]) -> None:
    column = [written(row, scheme) for row in rows]
    expected = [written(row, "IOB2") for row in rows]
    if any(rows):
        assert notation(column) == scheme
        assert convert(column, notation(column)) == expected
    assert convert(column, scheme) == expected
    assert violations(expected) == 0
    assert [spans(labels) for labels in expected] == rows


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_the_interval_holds_the_mean_and_moves_with_the_values(values: list[float]) -> None:
    found = summary(values)
    moved = summary([value + 5 for value in values])
    assert found.sd is not None
    assert found.low is not None
    assert found.high is not None
    assert moved.sd is not None
    assert found.low <= found.mean <= found.high
    assert moved.mean == pytest.approx(found.mean + 5, abs=1e-9)
    assert moved.sd == pytest.approx(found.sd, abs=1e-9)
