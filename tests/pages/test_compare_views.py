"""What Compare says: the table, answers, differences, sharing, labels and mistakes. No page is opened."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.evaluation import mistakes
from core.evaluation.statistics import Randomised, holm, paired_difference
from core.results.comparisons import Difference, answers, differences, headline, run_pairs, with_sentences
from core.results.figures import forest
from core.results.naming import confounds
from core.results.pairs import default_pair, missing_seeds
from core.results.records import difference_records, score_records
from core.results.samples import group_by_data
from core.results.signature import signature
from core.results.table import MEAN_OF_TASKS, ResultTable, tabulate
from core.store import Conditions
from core.tasks import KINDS
from core.tasks.confusion import NOTHING
from dashboard.compare import mistake_views, views
from dashboard.compare.charts import confusion_chart, seeds_chart
from dashboard.compare.mistake_views import counted
from dashboard.compare.mistake_views import tested as over_sentences
from jobs.reports.render import BEST, difference_sheet, latex, markdown, score_sheet
from tests.pages.compared import TASKS, config, score, tabled

STL, MTL, MRN = [0.78, 0.80, 0.79], [0.80, 0.81, 0.82], [0.83, 0.84, 0.86]


def of(**values: list[float]) -> ResultTable:
    """A table of NER scores, by paradigm and seed."""
    return tabled(
        {
            config(paradigm, seed, **({"tasks": ("ner",)} if paradigm == "stl" else {})): value
            for paradigm, numbers in values.items()
            for seed, value in enumerate(numbers, 1)
        }
    )[1]


def answer(table: ResultTable) -> Difference:
    """The second row less the first on NER."""
    first, second = table.rows
    (difference,) = answers(table, second.key, first.key)
    return difference


class TestTable:
    def test_scores_that_do_not_count(self) -> None:
        """A score that is not a number, and a seed that was trained again."""
        (first, second), _ = tabled({config("mtl"): 0.5, config("mtl", seed=2): 0.5})
        scores = [score(first.id, "ner", math.nan), score(first.id, "pos", 0.9)]
        table = tabulate([first], scores, "test", TASKS)
        (row,) = table.rows
        assert (table.tasks, table.scored_tasks, row.undefined) == (TASKS, ["pos"], {"ner": (first.id,)})
        assert table.notes == (
            f"The score of ner is undefined in run {first.id}, and counts in no mean: the test split has "
            "no span of this task.",
        )
        assert markdown(score_sheet(table, "toy")).splitlines()[2].endswith("| 90.00 | – |")
        assert [record["mean"] for record in score_records(table)] == [0.9, None]
        again = replace(second, config=first.config)
        table = tabulate([first, again], [score(first.id, "ner", 0.5), score(again.id, "ner", 0.7)], "test")
        (row,) = table.rows
        assert (row.cells["ner"].by_seed, row.cells["ner"].run_ids) == ({1: 0.7}, {1: again.id})

    def test_an_undefined_score_decides_nothing(self) -> None:
        """Of two configurations one has undefined scores: with zeros in their place it would be lower."""
        runs, _ = tabled({config(paradigm, seed): 0.5 for paradigm in ("mtl", "mrn") for seed in (1, 2, 3)})
        scores = [
            score(run.id, "ner", 0.9 + run.config.seed / 100 if run.config.paradigm == "mtl" else math.nan)
            for run in runs
        ]
        table = tabulate(runs, scores, "test", TASKS)
        assert [len(row.cells) for row in table.rows] == [1, 0]
        mtl, mrn = table.rows
        assert answers(table, mrn.key, mtl.key) == []
        assert not table.bold
        assert "no score on a common task" in headline(mrn.name, mtl.name, [])
        assert missing_seeds(table.rows, {run.id: run.config for run in runs}) == []
        # With a defined score of one seed in common, that seed alone counts.
        first = next(run for run in runs if run.config.paradigm == "mrn")
        of_one = [s for s in scores if s.run_id != first.id] + [score(first.id, "ner", 0.5)]
        table = tabulate(runs, of_one, "test", TASKS)
        (delta,) = answers(table, mrn.key, mtl.key)
        assert (delta.seeds, delta.is_decided) == (1, False)

    def test_what_auto_stood_for_makes_rows_of_their_own(self) -> None:
        """Runs of one description in two precisions; of a third run it is not known."""
        runs, _ = tabled({config("mtl", seed): 0.5 for seed in (1, 2, 3)})
        scores = [score(run.id, "ner", 0.5 + run.config.seed / 10) for run in runs]
        known = {run.id: Conditions(None, used) for run, used in zip(runs, ("fp32", "bf16"), strict=False)}
        table = tabulate(runs, scores, "test", TASKS, known)
        assert {row.name: row.run_ids for row in table.rows} == {
            "MTL · fp32": (runs[0].id,),
            "MTL · bf16": (runs[1].id,),
            "MTL · precision not recorded": (runs[2].id,),
        }
        assert "fp32 in run" in table.notes[0]
        (row,) = tabulate(runs[:1] + runs[2:], scores, "test", TASKS, known).rows
        assert (row.name, row.seeds, row.conditions.precision) == ("MTL", 2, "fp32")

    def test_other_data_makes_a_table_of_its_own(self) -> None:
        data: dict[str, dict[str, Any]] = {
            "demo, 100% of the data, POS by accuracy": {},
            "demo, 5% of the data": {"fraction": 0.05},
            "mine (/a/mine)": {"corpus": "/a/mine"},
            "mine (/b/mine)": {"corpus": "/b/mine"},
            "demo, 100% of the data, POS by seqeval F1": {"pos_score": "seqeval_f1"},
        }
        runs, _ = tabled({config("mtl", **values): 0.5 for values in data.values()})
        assert [(group.name, len(rows)) for group, rows in group_by_data(runs).items()] == [
            (name, 1) for name in data
        ]

    def test_the_number_of_seeds_stands_where_it_differs(self) -> None:
        table = of(mtl=MTL, mrn=[0.83, 0.841, 0.849])
        sheet = score_sheet(table, "demo")
        assert "over 3 seeds" in sheet.caption
        assert sheet.captioned("*").endswith(f" *: {BEST} {signature(table)}")
        assert "| MTL | 81.00 ± 1.00 |" in markdown(sheet)
        uneven = markdown(score_sheet(of(mtl=[0.80, 0.81], mrn=[0.83]), "demo"))
        assert "| MTL | 80.50 ± 0.71 (2) |" in uneven
        assert "| MRN λ=0.003 | 83.00 (1) |" in uneven


WITHIN = "equivalent within 0.05"


def test_the_first_pair_is_chosen_on_common_dev_seeds() -> None:
    """λ 0.1 is better with each seed that both have; 0.2 lacks the hard ones, and has as many others."""
    made = {config("mtl", seed=seed): 0.5 for seed in (1, 2, 3, 4)}
    made |= {config(lambda_=0.1, seed=seed): value for seed, value in ((1, 0.3), (2, 0.3), (3, 0.8))}
    made |= {config(lambda_=0.2, seed=seed): value for seed, value in ((3, 0.79), (4, 0.79), (5, 0.79))}
    _, table = tabled(made)
    pair = default_pair(table)
    assert pair is not None
    assert table.row(pair[0]).name == "MRN λ=0.1"


class TestAnswers:
    @pytest.mark.parametrize(
        ("mtl", "mrn", "sentence", "summary"),
        [
            (MTL, MRN, "higher, +3.33 [+1.90, +4.77], 3 seeds, p = 0.010",
             "B scores higher than A on ner (+3.33)."),
            (MRN, MTL, "lower, −3.33 [−4.77, −1.90], 3 seeds, p = 0.010",
             "B scores lower than A on ner (−3.33)."),
            ([0.80], [0.83], "undecided, +3.00 (1 seed)", "B against A: undecided on ner."),
            (MTL, [0.80012, 0.81010, 0.82011], f"{WITHIN}, +0.01 [+0.01, +0.01], 3 seeds, p = 0.003",
             f"B against A: {WITHIN} on ner."),
            (MTL, MTL, f"{WITHIN}, 0.00 (the same with each of 3 seeds)", f"B against A: {WITHIN} on ner."),
            # Below 0.05 points in the mean, but as far as the interval goes not for sure.
            (MTL, [0.8005, 0.8099, 0.8206], "undecided, +0.03 [−0.06, +0.13], 3 seeds, p = 0.267",
             "B against A: undecided on ner."),
            # Two seeds may differ by the same by chance alone: few spans make few scores possible.
            ([0.80, 0.81], [0.83, 0.84], "undecided, +3.00 (the same with each of 2 seeds)",
             "B against A: undecided on ner."),
            ([0.80, 0.81], [0.80, 0.81], "undecided, 0.00 (the same with each of 2 seeds)",
             "B against A: undecided on ner."),
        ],
    )  # fmt: skip
    def test_what_the_seeds_allow_to_say(
        self, mtl: list[float], mrn: list[float], sentence: str, summary: str
    ) -> None:
        difference = answer(of(mtl=mtl, mrn=mrn))
        assert difference.sentence == sentence
        assert headline("B", "A", [difference]) == summary

    def test_a_headline_has_each_verdict_and_of_many_tasks_their_number(self) -> None:
        table = of(mtl=MTL, mrn=MRN)
        tasks = [f"{letter} of a longer name" for letter in "abcde"]
        higher = replace(answer(table), task=tasks[0])
        lower, small = (
            replace(higher, task=tasks[1], mean=-higher.mean),
            replace(higher, task=tasks[2], p_within=0.0),
        )
        undecided = [replace(higher, task=task, p=1.0) for task in tasks[3:]]
        deltas = [higher, lower, small, *undecided]
        assert headline("B", "A", deltas[:4]).replace(" of a longer name", "") == (
            "B scores higher than A on a (+3.33) and lower than A on b (−3.33); equivalent within 0.05 on c; "
            "undecided on d."
        )
        assert headline("B", "A", deltas) == (
            f"B scores higher than A on 1 of 5 tasks and lower than A on 1; {WITHIN} on 1; undecided on 2."
        )
        several = replace(table, tasks=tuple(tasks))
        view = forest(deltas, several, table.rows[0].key)
        assert (view.rows, view.targets) == (tuple("abcde"), (table.rows[1].name,))
        assert [mark.row for mark in view.marks] == [0, 1, 2, 3, 4]

    def test_no_seed_in_common(self) -> None:
        table = of(mtl=[0.80], mrn=[0.83])
        first, second = table.rows
        moved = replace(second, cells={"ner": replace(second.cells["ner"], by_seed={9: 0.83})})
        difference = answer(replace(table, rows=(first, moved)))
        assert difference.sentence == "undecided, +3.00 (no seed in common)"

    def test_the_first_comparison_is_of_like_with_like(self) -> None:
        made = [config("mtl"), config("mrn"), config("mrn", encoder_training="full")]
        _, table = tabled(dict(zip(made, (0.6, 0.61, 0.9), strict=True)))
        pair = default_pair(table)
        assert pair is not None
        assert [table.row(key).config.encoder_training for key in pair] == ["frozen", "frozen"]
        assert confounds(made[0], made[1]) == ()
        assert "encoder_training" in confounds(made[0], made[2])

    def test_relations_are_asked_for_where_nothing_is_learned_alone(self) -> None:
        mtl, *mrn = config("mtl"), config("mrn", alignment="exact"), config("mrn", alignment="disjoint")
        for made, baseline in (([mtl, *mrn], "disjoint"), ([config("stl", tasks=("ner",)), mtl, *mrn], None)):
            _, table = tabled(dict(zip(made, (0.6, 0.61, 0.9, 0.8), strict=False)))
            first, second = (table.row(key).config for key in default_pair(table) or ())
            assert (first.paradigm, second.alignment) == ("mrn", baseline)


class TestDifferences:
    def test_every_row_against_the_baseline(self) -> None:
        table = of(stl=STL, mtl=MTL, mrn=MRN)
        base = table.rows[1].key
        shown = differences(table, base)
        assert [row.row.config.paradigm for row in shown] == ["stl", "mrn"]
        assert [row.verdict for row in shown] == ["undecided", "higher"]
        # The family is all pairs of rows on the task, whatever the baseline.
        pairs = itertools.combinations([row.cells["ner"].by_seed for row in table.rows], 2)
        tests = [paired_difference(*pair) for pair in pairs]
        stl_mtl, _, mtl_mrn = holm([test.p for test in tests if test and test.p])
        assert [row.p for row in shown] == [stl_mtl, mtl_mrn]
        # Without a spread there is no interval.
        table_of_two = of(mtl=[0.80, 0.81], mrn=[0.83, 0.84])
        first = table_of_two.rows[0].key
        (mark,) = forest(differences(table_of_two, first), table_of_two, first).marks
        assert (mark.low, mark.high, mark.verdict) == (None, None, "undecided")

    def test_an_interval_above_zero_may_be_undecided_once_corrected(self) -> None:
        """For the three differences among the rows."""
        table = of(stl=STL, mtl=MTL, mrn=[0.83, 0.835, 0.865])
        _, mrn = differences(table, table.rows[1].key)
        assert mrn.interval is not None
        assert mrn.paired is not None
        assert mrn.paired.p is not None
        assert mrn.interval[0] > 0
        assert mrn.p == pytest.approx(3 * mrn.paired.p)
        assert (mrn.verdict, mrn.remark) == ("undecided", "higher before correction")

    def test_tests_over_sentences_find_their_place(self) -> None:
        table = of(stl=[0.78, 0.80], mtl=[0.80, 0.81], mrn=[0.83, 0.84])
        _, base, mrn = table.rows
        shown = differences(table, base.key)
        ids, base_ids = mrn.cells["ner"].run_ids, base.cells["ner"].run_ids
        assert run_pairs(shown[1]) == tuple((ids[seed], base_ids[seed]) for seed in (1, 2))
        tested = with_sentences(shown, ["different sentences", Randomised(0.03, 0.01, 2, 100)])
        assert [row.p_sentences for row in tested] == [None, 0.01]
        assert [row.untested for row in tested] == ["different sentences", ""]
        records = difference_records(tested, table)
        assert [record["p_sentences_holm"] for record in records] == [None, 0.01]
        assert [record["sentences"] for record in records] == [None, 100]
        text = latex(difference_sheet(tested, table, base.key, "demo"))
        assert r"MRN $\lambda$=0.003 & ner & +3.00 & undecided & 2 & -- & -- & 0.010" in text

    def test_only_the_same_sentences_can_be_exchanged(self) -> None:
        gold = [["B-PER", "O"], ["O"]]
        right = counted("f1_conll", gold, gold)
        wrong = counted("f1_conll", gold, [["O", "O"], ["O"]])
        elsewhere = counted("f1_conll", [["B-LOC", "O"], ["O"]], gold)
        assert over_sentences([]) == "no common seed"
        assert over_sentences([(None, right), (right, None)]) == "no predictions stored"
        assert over_sentences([(right, elsewhere)]) == "different sentences"
        test = over_sentences([(right, wrong), (None, right)])
        assert isinstance(test, Randomised)
        assert (test.difference, test.seeds, test.sentences) == (1.0, 1, 2)


class TestSharing:
    def test_over_several_encoders_each_step_is_named_by_its_encoder(self) -> None:
        made = {
            config(paradigm, seed, encoder=encoder): 0.8 + 0.01 * gain + 0.001 * seed * gain
            for encoder in ("minilm", "bert-base-cased")
            for gain, paradigm in enumerate(("mtl", "mrn"))
            for seed in (1, 2, 3)
        }
        _, table = tabled(made, TASKS)
        steps = views.sharing(table)
        view = views.sharing_forest(steps, table.tasks)
        assert [step.shares_nothing for step in views.sharing(of(stl=STL, mtl=MTL, mrn=MRN))] == [
            True,
            False,
            False,
        ]
        assert view.rows == tuple(f"MRN − MTL · {block}" for block in table.blocks)
        assert [(mark.row, mark.target) for mark in view.marks] == [
            (row, task) for row in (0, 1) for task in (*TASKS, MEAN_OF_TASKS)
        ]


def over(*made: tuple[str, str, list[float]], **more: Any) -> ResultTable:
    """A table of runs on both tasks: encoder, paradigm, a score per seed."""
    values: dict[RunConfig, float] = {}
    for encoder, paradigm, numbers in made:
        for seed, value in enumerate(numbers, 1):
            for tasks in TASKS if paradigm == "stl" else [",".join(TASKS)]:
                training = "frozen" if encoder == "minilm" else "full"
                of = {"encoder": encoder, "encoder_training": training, "tasks": tasks, **more}
                values[config(paradigm, seed, **of)] = value
    return tabled(values, TASKS)[1]


class TestWordEncoders:
    def test_they_stand_together_as_in_the_paper(self) -> None:
        table = over(
            ("sc-lstm", "mtl", MTL), ("minilm", "mtl", MTL), ("bilstm", "mrn", MRN), ("lstm-d", "mtl", MTL),
            ("bilstm", "mtl", MTL), ("bilstm", "stl", STL),
        )  # fmt: skip
        assert {block: [row.label for row in rows] for block, rows in table.blocks.items()} == {
            "word vectors": [
                "STL · bilstm", "MTL · bilstm", "MTL · lstm-d", "MTL · sc-lstm", "MRN λ=0.001 · bilstm",
            ],
            "minilm, frozen": ["MTL"],
        }  # fmt: skip
        assert [row.name for row in table.rows][-2:] == ["MRN λ=0.001 · bilstm", "MTL · minilm, frozen"]
        alone = over(("bilstm", "mtl", MTL), ("bilstm", "stl", STL))
        assert set(alone.blocks) == {"bilstm"}
        folders = over(("/a/one/bert", "mtl", MTL), ("/a/two/bert", "mtl", MTL))
        assert set(folders.blocks) == {"one/bert, fine-tuned", "two/bert, fine-tuned"}

    def test_what_sharing_did_is_asked_of_each_against_stl_and_one_stack(self) -> None:
        table = over(
            ("bilstm", "stl", STL), ("bilstm", "mtl", MTL), ("sc-lstm", "mtl", MRN), ("sc-lstm", "mrn", MRN)
        )
        steps = views.sharing(table)
        assert views.sharing_forest(steps, table.tasks).rows == (
            "MTL − STL · bilstm", "MTL sc-lstm − STL bilstm", "MTL sc-lstm − MTL bilstm",
            "MRN − MTL · sc-lstm", "MRN sc-lstm − STL bilstm",
        )  # fmt: skip
        assert [step.confounds for step in steps] == [()] * 5
        # STL of the encoder itself comes before that of another one.
        alone = over(("bilstm", "stl", STL), ("sc-lstm", "stl", STL), ("sc-lstm", "mtl", MRN))
        assert [step.title for step in views.sharing(alone)] == ["MTL − STL"]

    def test_runs_that_differ_in_more_are_not_paired_silently(self) -> None:
        plain = dict.fromkeys((config("stl", encoder="bilstm", encoder_training="full", tasks="ner"),), 0.8)
        crf = config("mtl", encoder="sc-lstm", encoder_training="full", head="crf", clip_norm=5.0)
        _, table = tabled(plain | {crf: 0.85})
        (step,) = views.sharing(table)
        assert step.confounds == ("head", "clip_norm")

    def test_a_transformer_is_asked_for_by_the_best_of_either_kind(self) -> None:
        table = over(
            ("bilstm", "mtl", MTL), ("sc-lstm", "mtl", MRN), ("minilm", "stl", STL),
            ("minilm", "mtl", [0.9, 0.91]),
        )  # fmt: skip
        asked = [step for step in views.sharing(table) if step.asks_transformer]
        assert [(step.a.name, step.b.name) for step in asked] == [("MTL · minilm, frozen", "MTL · sc-lstm")]
        assert [delta.seeds for delta in asked[0].deltas] == [2, 2]
        assert asked[0].confounds == ()


class TestMissingSeeds:
    """By paradigm the seeds that there are → those that are launched."""

    @pytest.mark.parametrize(
        ("there", "missing"),
        [
            ({"mtl": [1, 2, 3], "mrn": [2]}, {"mrn": [1, 3]}),
            ({"mtl": [1], "mrn": [1]}, {"mtl": [2, 3, 4, 5], "mrn": [2, 3, 4, 5]}),
            ({"mtl": [3], "mrn": [3]}, {"mtl": [1, 2, 4, 5], "mrn": [1, 2, 4, 5]}),
            ({"mtl": [1, 2], "mrn": [1, 2]}, {"mtl": [3, 4, 5], "mrn": [3, 4, 5]}),
            ({"mtl": [1], "mrn": [2]}, {"mtl": [2], "mrn": [1]}),
            ({"mtl": [1, 2, 3], "mrn": [1, 2, 3]}, {}),
            (
                {"stl pos": [1, 2], "stl ner": [1], "mtl": [1, 4]},
                {"stl pos": [4], "stl ner": [2, 4], "mtl": [2]},
            ),
        ],
    )
    def test_exactly_those_that_one_lacks(
        self, there: dict[str, list[int]], missing: dict[str, list[int]]
    ) -> None:
        def configs(seeds: dict[str, list[int]]) -> list[RunConfig]:
            return [
                config(name.split()[0], seed, **({"tasks": tuple(name.split()[1:])} if " " in name else {}))
                for name, numbers in seeds.items()
                for seed in numbers
            ]

        runs, table = tabled(dict.fromkeys(configs(there), 0.5), TASKS)
        launched = missing_seeds(table.rows, {run.id: run.config for run in runs})
        assert len(launched) == len(set(launched))
        assert set(launched) == set(configs(missing))

    def test_in_words(self) -> None:
        lists = ([2], [3, 2], [2, 3, 4, 5], [2, 4, 5])
        assert [views.listed_seeds(seeds) for seeds in lists] == [
            "seed 2", "seeds 2 and 3", "seeds 2 to 5", "seeds 2, 4 and 5",
        ]  # fmt: skip


def test_seeds_are_thin_and_their_mean_is_thick() -> None:
    chart = seeds_chart(of(mtl=[0.80, 0.81], mrn=[0.83, 0.85]), "ner", "#009E73")
    assert [line["line"]["width"] for line in chart.data] == [1, 1, 3]
    for line, expected in zip(chart.data, ([80, 83], [81, 85], [80.5, 84]), strict=True):
        assert line["y"] == pytest.approx(expected)


Labels = list[list[str]]
WITHIN = "equivalent within 0.05"
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


@pytest.mark.parametrize(
    ("shares", "tables"), [((0.011, 1.1 / 100), [2]), ((0.1234567, 0.1234568), [2]), ((0.1, 0.2), [1, 1])]
)
def test_runs_on_shares_that_are_written_alike_are_all_in_a_table(
    shares: tuple[float, float], tables: list[int]
) -> None:
    runs, _ = tabled({config("mtl", fraction=share): 0.5 for share in shares})
    assert sorted(map(len, group_by_data(runs).values())) == tables
