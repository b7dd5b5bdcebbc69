"""Scores against ten hand-tagged sentences and at the edges; statistics over seeds against scipy.stats."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary
from core.tasks import score_task
from core.tasks.scores import TaskScore, averages, report_rows, score_of_counts, score_text, sentence_counts
from core.tasks.spans import Span, spans

# Gold and predicted labels of a sentence. Property tests hold every score to seqeval's.
PAIRS = [
    ("B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC"),
    ("O B-PER I-PER", "O B-PER O"),  # a wrong boundary at the sentence end
    ("O B-PER I-PER", "O B-PER I-PER"),
    ("B-PER I-PER O", "B-PER I-LOC O"),  # conlleval reads two spans, PER 0 and LOC 1; strictly PER 0 alone
    ("B-PER B-LOC O", "B-PER I-LOC O"),  # here LOC 1 is right by conlleval, and no span of strict IOB2
    ("B-ORG I-ORG O B-MISC", "I-ORG I-ORG O B-MISC"),  # an I- that opens a span, as in IOB1
    ("B-LOC B-LOC I-LOC", "B-LOC I-LOC I-LOC"),
    ("O B-MISC O", "O O O"),
    ("O O", "B-PER O"),
    ("B-PER I-PER", "B-ORG I-ORG"),
]


def test_ten_sentences_by_hand() -> None:
    gold, predicted = ([labels.split() for labels in side] for side in zip(*PAIRS, strict=True))
    score = score_task("ner", "iob2", gold, predicted)
    # 13 gold spans, 13 predicted, 7 right; strictly 10 predicted, 5 right. 21 of 30 labels right.
    assert (score.tokens, score.secondary("accuracy")) == pytest.approx((30, 21 / 30))
    assert (
        score.secondary("precision"),
        score.secondary("recall"),
        score.secondary("f1_conll"),
    ) == pytest.approx((7 / 13,) * 3)
    assert score.secondary("f1_strict") == pytest.approx(10 / 23)
    assert (score.score_name, score.score, score.secondary("seqeval_f1")) == (
        "f1_conll",
        score.secondary("f1_conll"),
        None,
    )
    # PER: gold 6 (sentences 1 to 5 and 10), predicted 6 (1 to 5 and 9), right 3 (1, 3 and 5).
    per, misc = score.report["PER"], score.report["MISC"]
    assert per == pytest.approx({"precision": 1 / 2, "recall": 1 / 2, "f1": 1 / 2, "support": 6})
    assert misc == pytest.approx({"precision": 1, "recall": 1 / 2, "f1": 2 / 3, "support": 2})
    assert list(score.report) == ["LOC", "MISC", "ORG", "PER"]


class TestPlain:
    GOLD = (("NN", "VB", "NN"), ("DT", "NN"))
    PREDICTED = (("NN", "NN", "NN"), ("DT", "VB"))

    def test_accuracy_is_the_headline(self) -> None:
        score = score_task("pos", "plain", self.GOLD, self.PREDICTED)
        assert (score.score_name, score.score, score.secondary("accuracy"), score.tokens) == (
            "accuracy",
            0.6,
            0.6,
            5,
        )
        assert (
            score.secondary("precision"),
            score.secondary("recall"),
            score.secondary("f1_conll"),
            score.secondary("f1_strict"),
        ) == (None, None, None, None)

    def test_seqeval_f1_is_the_headline_where_asked_for(self) -> None:
        score = score_task("pos", "plain", self.GOLD, self.PREDICTED, plain_score="seqeval_f1")
        # seqeval reads NN as prefix N, type N, and joins words of one type: gold N 0, B 1, N 2 | T 0, N 1,
        # predicted N 0-2 | T 0, B 1. Only T is right: 1 of 3 predicted, 1 of 5 in gold.
        assert score.secondary("seqeval_f1") == pytest.approx(2 / 8)
        assert (score.score_name, score.score) == ("seqeval_f1", score.secondary("seqeval_f1"))
        assert (score.secondary("precision"), score.secondary("recall")) == pytest.approx((1 / 3, 1 / 5))


@pytest.mark.parametrize("sentences", [[], [[]]])
@pytest.mark.parametrize("scheme", ["iob2", "plain"])
def test_nothing_scores_nothing(scheme: str, sentences: list[list[str]]) -> None:
    score = score_task("t", scheme, sentences, sentences)
    assert [score.score, score.secondary("accuracy")] == pytest.approx([math.nan] * 2, nan_ok=True)
    assert (score.tokens, score.report, score.is_defined) == (0, {}, False)
    assert score.undefined_because("the file") == "the file has no label of this task"


SPANS, NUMBERS = "has no span of this task", "are all the same"


@pytest.mark.parametrize(
    ("scheme", "gold", "predicted", "why"),
    [
        ("iob2", [["O", "O"]], [["O", "O"]], SPANS),
        ("iob2", [["O", "O"]], [["B-A", "O"]], SPANS),  # what is predicted says nothing of recall
        ("iob2", [["B-A", "O"]], [["O", "O"]], None),  # none is found: 0, as seqeval has it
        ("iob2", [["B-A", "O"]], [["O", "B-A"]], None),
        ("score", [["1"], ["1"]], [["1"], ["2"]], NUMBERS),
        ("score", [["1"], ["2"]], [["1.5"], ["1.5"]], NUMBERS),
        ("score", [["1"]], [["1"]], NUMBERS),
        ("text", [["a"], ["b"]], [["b"], ["a"]], None),
    ],
)
def test_a_score_that_is_0_of_0_is_undefined(
    scheme: str, gold: list[list[str]], predicted: list[list[str]], why: str | None
) -> None:
    score = score_task("t", scheme, gold, predicted)
    assert score.is_defined is (why is None)
    of_counts = score_of_counts(sentence_counts(score.score_name, gold, predicted).sum(axis=0))
    assert of_counts == pytest.approx(score.score, nan_ok=True)
    if why is None:
        assert score.score == 0
    else:
        assert why in score.undefined_because("the dev split")
        beside = [value for name, value in score.figures.items() if name not in ("accuracy", "seqeval_f1")]
        assert np.isnan(beside).all()


def test_what_is_not_annotated_has_no_figure_and_counts_in_no_mean() -> None:
    gold, predicted = [["a", "a", "b", "b"]], [["a", "c", "b", "a"]]
    score = score_task("t", "plain", gold, predicted)
    rows = report_rows(score.report)
    assert [np.isnan([row["precision"], row["recall"], row["f1"]]).sum() for row in rows.values()] == [
        0,
        0,
        3,
    ]
    macro = averages(score)["macro"]
    assert macro["f1"] == pytest.approx((score.report["a"]["f1"] + score.report["b"]["f1"]) / 2)
    assert macro["recall"] == pytest.approx(0.5)
    of_spans = score_task("t", "iob2", [["O"]], [["B-A"]])
    assert np.isnan(averages(of_spans)["macro"]["f1"])


@pytest.mark.parametrize(
    ("score", "names", "text"),
    [
        (0.8979, ["f1_conll"], "89.79%"),
        (0.8979, ["pearson"], "89.79"),
        (0.5, ["accuracy", "pearson"], "50.00"),
        (0.8979, [], "89.79"),  # nobody knows of what
        (float("nan"), ["f1_conll"], "–"),
        (None, ["pearson"], "–"),
    ],
)
def test_a_score_in_words(score: float | None, names: list[str], text: str) -> None:
    assert score_text(score, *names) == text


def test_labels_that_are_numbers_are_in_their_order() -> None:
    line = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    for labels, in_order in (("1 10 2 -1", "-1 1 2 10"), ("1 10 2 x", "1 10 2 x")):
        assert list(report_rows(dict.fromkeys(labels.split(), line))) == in_order.split()


def test_numbers_are_plain_python_numbers() -> None:
    for scheme in ("iob2", "plain"):
        score = score_task("t", scheme, [["B-X", "O"]], [["B-X", "B-X"]])
        values = {name: getattr(score, name) for name in score.__dataclass_fields__}
        assert json.loads(json.dumps(values)) == values
        assert all(type(row["support"]) is int for row in score.report.values())


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="1 sentences of gold labels, 2 of predicted"):
        score_task("ner", "iob2", [["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sentence 2: 1 gold labels and 2 predicted"):
        score_task("ner", "iob2", [["O"], ["O"]], [["O"], ["O", "O"]])


def test_spans_refuse_labels_of_another_scheme() -> None:
    with pytest.raises(ValueError, match=r"'NN' \(word 2\)"):
        spans(["O", "NN"])
    assert spans(["B-A-B", "I-A-B"]) == [Span(0, 2, "A-B")]
    assert spans([]) == []


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
    figures = {"accuracy": 0.98, "precision": 0.9675, "recall": 0.9689, "f1_conll": 0.9682}
    score = TaskScore("chunk", "f1_conll", 0.9682, 1, figures, report)
    for name, row in averages(score).items():
        assert list(row.values()) == pytest.approx([*published[name], 23852], abs=6e-5)


class TestSummary:
    def test_the_interval_is_that_of_scipy(self) -> None:
        values = [0.812, 0.834, 0.799, 0.821, 0.818]
        scores = summary(values)
        low, high = stats.t.interval(0.95, 4, loc=scores.mean, scale=stats.sem(values))
        assert (scores.low, scores.high) == pytest.approx((low, high))

    def test_one_value_and_equal_values_have_no_spread(self) -> None:
        assert summary([0.5]) == MeanSD(0.5, None, 1, None, None)
        equal = summary([0.1, 0.1, 0.1])
        assert (equal.sd, equal.n) == (0.0, 3)
        assert (equal.mean, equal.low, equal.high) == pytest.approx((0.1, 0.1, 0.1))

    @pytest.mark.parametrize("values", [[], [0.5, float("nan")], [float("inf")]])
    def test_refuses_what_has_no_mean(self, values: list[float]) -> None:
        with pytest.raises(ValueError, match=r"mean of no values|not a finite score"):
            summary(values)


class TestPairedDifference:
    def test_as_scipy(self) -> None:
        a, b = [0.81, 0.84, 0.79, 0.82, 0.85], [0.80, 0.82, 0.80, 0.79, 0.83]
        difference = paired_difference(dict(enumerate(a)), dict(enumerate(b)))
        expected = stats.ttest_rel(a, b)
        interval = expected.confidence_interval(0.95)
        assert difference is not None
        assert difference.p == pytest.approx(expected.pvalue)
        assert (difference.low, difference.high) == pytest.approx((interval.low, interval.high))

    def test_only_common_seeds_count(self) -> None:
        both = paired_difference({1: 0.5, 2: 0.7}, {1: 0.4, 2: 0.5})
        more = paired_difference({1: 0.5, 2: 0.7, 3: 0.9}, {1: 0.4, 2: 0.5, 4: 0.0})
        assert both == more
        assert both is not None
        assert both.n == 2
        assert paired_difference({1: 0.5}, {2: 0.5}) is None
        single = PairedDifference(0.25, None, 1, None, None, None)
        assert paired_difference({1: 0.75}, {1: 0.5}) == single

    @pytest.mark.parametrize("offset", [0.0, 0.1])
    def test_equal_differences_have_no_p(self, offset: float) -> None:
        b = {1: 0.4, 2: 0.5, 3: 0.7}
        difference = paired_difference({seed: value + offset for seed, value in b.items()}, b)
        assert difference is not None
        assert (difference.sd, difference.p) == (0.0, None)
        assert difference.mean == pytest.approx(offset)
