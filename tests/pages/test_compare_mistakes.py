"""Two configurations label by label and mistake by mistake. No page is opened."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation import mistakes
from core.evaluation.statistics import paired_difference
from core.tasks import KINDS
from core.tasks.confusion import NOTHING
from dashboard.compare import mistake_views
from dashboard.compare.charts import confusion_chart
from tests.pages.compared import config, score, tabled

Labels = list[list[str]]
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
columns = st.lists(
    st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)


class TestClasses:
    def report(self, **f1: float) -> dict[str, dict[str, float]]:
        return {
            label: {"precision": value, "recall": value, "f1": value, "support": 10 if label == "PER" else 3}
            for label, value in f1.items()
        }

    def test_labels_over_seeds(self) -> None:
        a = {1: self.report(PER=0.8, LOC=0.5), 2: self.report(PER=0.9), 3: self.report(PER=0.85, LOC=0.7)}
        b = {1: self.report(PER=0.7), 2: self.report(PER=0.8), 3: self.report(PER=0.76)}
        table = mistake_views.classes(a, b)
        assert table[["Label", "Annotated"]].to_numpy().tolist() == [["PER", 10], ["LOC", 3]]
        per, loc = table.to_dict("records")
        assert per["F1 A"] == pytest.approx(85)
        paired = paired_difference({1: 0.8, 2: 0.9, 3: 0.85}, {1: 0.7, 2: 0.8, 3: 0.76})
        assert paired is not None
        assert paired.low is not None
        assert per["Difference"] == pytest.approx(100 * paired.mean)
        assert paired.high is not None
        assert (per["Low"], per["High"]) == pytest.approx((100 * paired.low, 100 * paired.high))
        assert per["p"] == paired.p
        assert loc["F1 A"] == pytest.approx(60)
        assert all(math.isnan(loc[name]) for name in ("P B", "F1 B", "± B", "Difference", "Low", "High", "p"))

    def test_reports_are_those_of_the_row(self) -> None:
        runs, table = tabled({config("mtl", 1): 0.5, config("mtl", 2): 0.6})
        scores = [score(run.id, "ner", 0.5, report=self.report(PER=0.1 * run.config.seed)) for run in runs]
        scores.append(score(runs[0].id, "pos", 0.5, report=self.report(NN=0.9)))
        by_seed = mistake_views.reports(table.rows[0].cells["ner"], "ner", scores)
        assert {seed: report["PER"]["f1"] for seed, report in by_seed.items()} == {1: 0.1, 2: 0.2}


def errors_of(scheme: str, gold: Labels, *predicted: Labels) -> mistakes.Errors:
    """The mistakes of one configuration, whose seeds predicted these."""
    tables = [KINDS[scheme].confusion(gold, labels) for labels in predicted]
    counted = mistakes.errors([table for table in tables if table is not None])
    assert counted is not None
    return counted


class TestMistakes:
    def test_shares_are_of_what_is_annotated(self) -> None:
        gold = [["NN"] * 8 + ["VB"] * 2]
        view = mistake_views.matrix(errors_of("plain", gold, [["NN"] * 6 + ["VB"] * 4], gold))
        assert (view.gold, view.right) == (("NN", "VB"), (87.5, 100.0))
        assert view.shares[0, 1] == pytest.approx(12.5)
        assert np.isnan(view.shares[0, 0])
        assert "NN → VB: 1.0 per seed, 12.50% of the annotated NN" in view.words[0][1]

    def test_two_configurations_side_by_side(self) -> None:
        gold = [["NN"] * 4 + ["VB"] * 4]
        a = errors_of("plain", gold, [["NN"] * 4 + ["NN", "VB", "VB", "VB"]])
        b = errors_of("plain", gold, [["VB", "VB", "NN", "NN"] + ["VB"] * 4])
        assert mistakes.mistakes(a, b).to_numpy().tolist() == [
            ["NN", "VB", 0.0, 2.0],
            ["VB", "NN", 1.0, 0.0],
        ]
        heat = confusion_chart(mistake_views.matrix(a)).data[1]
        assert (heat["zmin"], heat["zmax"]) == (0, 25)

    @settings(max_examples=25)
    @given(columns)
    def test_every_mistake_has_its_sentences(self, made: list[list[tuple[str, str]]]) -> None:
        gold = [[true for true, _ in row] for row in made]
        predicted = [[guess for _, guess in row] for row in made]
        for scheme in ("plain", "iob2"):
            whole = errors_of(scheme, gold, predicted)
            for true, guess, count, _ in mistakes.mistakes(whole, None).itertuples(index=False):
                where = list(mistakes.sentences_with(KINDS[scheme], gold, predicted, (true, guess)))
                assert where
                # Sentence by sentence the same mistakes are counted as in the whole.
                alone = [errors_of(scheme, [gold[at]], [predicted[at]]) for at in where]
                assert sum(sentence.count(true, guess) for sentence in alone) == count

    def test_what_was_invented_is_measured_against_its_type(self) -> None:
        gold, predicted = [["B-PER", "O", "O", "B-PER"]], [["B-PER", "O", "B-PER", "B-PER"]]
        view = mistake_views.matrix(errors_of("iob2", gold, predicted))
        assert view.gold[-1] == NOTHING
        assert view.words[-1][0].endswith("50.00% of the annotated PER")
        assert view.shares[view.gold.index(NOTHING), view.predicted.index("PER")] == pytest.approx(50)
        assert math.isnan(view.right[-1])
