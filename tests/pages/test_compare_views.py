"""What Compare says: the table, the answers, the differences, the labels, the mistakes. No page is opened."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from core.config import RunConfig
from core.evaluation import Randomised, holm
from core.store import Store
from core.store.records import Run, StoredScore
from dashboard.compare.charts import seeds_chart, sharing_chart
from dashboard.compare.closer_views import counted
from dashboard.compare.closer_views import tested as over_sentences
from dashboard.compare.views import (
    answers,
    corrected,
    default_pair,
    difference_records,
    difference_sheet,
    differences,
    forest,
    headline,
    per_seed,
    run_pairs,
    sharing,
    sharing_sentence,
    with_sentences,
)
from dashboard.shared.charts import forest_chart
from dashboard.theme import MUTED, colours
from jobs.naming import confounds
from jobs.results import ResultTable, tabulate
from jobs.results import settings as by_setting
from jobs.sheets import BEST, latex, markdown, score_records, score_sheet

TASKS = ("pos", "ner")


def config(paradigm: str = "mrn", seed: int = 1, **more: object) -> RunConfig:
    tasks = more.pop("tasks", ("pos",) if paradigm == "stl" else TASKS)
    values = {"corpus": "demo", "encoder_training": "frozen", **more}
    return RunConfig.build(paradigm=paradigm, seed=seed, tasks=tasks, **values)


def score(run_id: int, task: str, value: float, split: str = "test", report: object = None) -> StoredScore:
    name = "f1_conll" if task == "ner" else "accuracy"
    numbers = (value, value, value, value, value, value, None, 10)
    return StoredScore(run_id, split, 1, task, name, *numbers, report or {})


def tabled(
    values: dict[RunConfig, float], tasks: tuple[str, ...] = ("ner",)
) -> tuple[list[Run], ResultTable]:
    """Runs of these configurations, with that score on their tasks."""
    store = Store.open()
    ids = store.add_runs(list(values))
    runs = [store.run(run_id) for run_id in ids]
    scores = [
        score(run.id, task, value, split)
        for run, value in zip(runs, values.values(), strict=True)
        for task in run.config.tasks
        if task in tasks
        for split in ("test", "dev")
    ]
    return runs, tabulate(runs, scores, "test", tasks)


def of(**values: list[float]) -> ResultTable:
    """A table of NER scores, by paradigm and seed."""
    return tabled(
        {
            config(paradigm, seed, **({"tasks": ("ner",)} if paradigm == "stl" else {})): value
            for paradigm, numbers in values.items()
            for seed, value in enumerate(numbers, 1)
        }
    )[1]


class TestTable:
    def test_best_is_bold_only_where_the_difference_holds(self) -> None:
        clear = of(mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.841, 0.849])
        assert [row.cells["ner"].best for row in clear.rows] == [False, True]
        noisy = of(mtl=[0.80, 0.84, 0.82], mrn=[0.83, 0.80, 0.85])
        assert not any(row.cells["ner"].best for row in noisy.rows)

    def test_a_row_that_loses_on_the_common_seeds_is_not_bold(self) -> None:
        """MTL has the higher mean by its two further seeds; on the three common ones MRN is above it."""
        table = of(mtl=[0.80, 0.81, 0.82, 0.95, 0.96], mrn=[0.83, 0.841, 0.849])
        mtl, mrn = (row.cells["ner"] for row in table.rows)
        assert mtl.summary.mean > mrn.summary.mean
        assert (mtl.best, mrn.best) == (False, True)
        sheet = score_sheet(table, "demo")
        assert "**84.00** ± 0.95 (3)" in markdown(sheet)
        assert "**86.80**" not in markdown(sheet)
        assert r"\textbf{86.80}" not in latex(sheet)
        assert [record["best"] for record in score_records(table)] == [False, True]

    def test_the_best_is_above_every_other_row(self) -> None:
        """MRN is above MTL without doubt; with one seed of STL nothing can be said of those two."""
        table = of(stl=[0.70], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.841, 0.849])
        assert not any(row.cells["ner"].best for row in table.rows)

    def test_rows_stand_as_in_the_papers(self) -> None:
        bert, bilstm = "bert-base-cased", "bert-base-cased+bilstm"
        made = [
            config("mrn", encoder=bert),
            config("mtl", encoder="roberta-base"),
            config("mtl", encoder=bilstm),
            config("stl", encoder=bert),
        ]
        _, table = tabled(dict.fromkeys(made, 0.5), TASKS)
        assert [(row.block.partition(",")[0], row.config.paradigm) for row in table.rows] == [
            (bert, "stl"), (bert, "mrn"), (bilstm, "mtl"), ("roberta-base", "mtl"),
        ]  # fmt: skip
        assert [row.label for row in table.rows] == ["STL", "MRN λ 0.003", "MTL", "MTL"]
        assert len({row.name for row in table.rows}) == 4

    def test_a_score_that_is_no_number_is_left_out(self) -> None:
        (run,), _ = tabled({config("mtl"): 0.5})
        table = tabulate([run], [score(run.id, "ner", math.nan), score(run.id, "pos", 0.9)], "test", TASKS)
        assert table.tasks == ("pos",)

    def test_a_seed_trained_twice_counts_once(self) -> None:
        (first, second), _ = tabled({config("mtl"): 0.5, config("mtl", seed=2): 0.5})
        again = replace(second, config=first.config)
        table = tabulate([first, again], [score(first.id, "ner", 0.5), score(again.id, "ner", 0.7)], "test")
        (row,) = table.rows
        assert (row.cells["ner"].by_seed, row.cells["ner"].run_ids) == ({1: 0.7}, {1: again.id})

    def test_other_data_makes_a_table_of_its_own(self) -> None:
        runs, _ = tabled(
            {
                config("mtl"): 0.5,
                config("mtl", fraction=0.05): 0.4,
                config("mtl", corpus="/a/mine"): 0.3,
                config("mtl", corpus="/b/mine"): 0.3,
                config("mtl", pos_score="seqeval_f1"): 0.3,
            }
        )
        assert [(setting.name, len(own)) for setting, own in by_setting(runs).items()] == [
            ("demo, 100% of the data, POS by accuracy", 1),
            ("demo, 5% of the data", 1),
            ("mine (/a/mine)", 1),
            ("mine (/b/mine)", 1),
            ("demo, 100% of the data, POS by seqeval F1", 1),
        ]

    def test_what_is_copied_is_what_is_shown(self) -> None:
        table = of(mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.841, 0.849])
        sheet = score_sheet(table, "demo")
        assert "over 3 seeds" in sheet.caption
        assert sheet.captioned("*").endswith(f" *: {BEST}")
        assert r"\textbf{84.00} $\pm$ 0.95 \\" in latex(sheet)
        assert "| MTL | 81.00 ± 1.00 |" in markdown(sheet)
        uneven = score_sheet(of(mtl=[0.80, 0.81], mrn=[0.83]), "demo")
        assert "| MTL | 80.50 ± 0.71 (2) |" in markdown(uneven)
        assert "| MRN λ 0.003 | 83.00 (1) |" in markdown(uneven)
        assert [(r["mean"], r["n"]) for r in score_records(table)] == [(pytest.approx(0.81), 3), (0.84, 3)]

    def test_per_seed_is_in_percent(self) -> None:
        lines = per_seed(of(mtl=[0.80, 0.81]))
        assert [(line["seed"], line["ner"]) for line in lines] == [
            (1, pytest.approx(80)),
            (2, pytest.approx(81)),
        ]


class TestAnswers:
    def test_a_difference_that_holds(self) -> None:
        table = of(mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        pair = default_pair(table)
        assert pair is not None
        (answer,) = answers(table, *pair)
        assert answer.sentence == "+3.33 ± 1.43, 3 seeds, p 0.010"
        assert headline("MRN", "MTL", [answer]) == "MRN is above MTL on ner (+3.33)."

    def test_one_seed_tells_nothing(self) -> None:
        table = of(mtl=[0.80], mrn=[0.83])
        (answer,) = answers(table, table.rows[1].key, table.rows[0].key)
        assert answer.verdict == "one seed"
        assert answer.sentence == "+3.00; one seed each, so no interval"
        assert headline("A", "B", [answer]) == "One seed cannot tell a difference from chance on ner."

    def test_a_tiny_difference_is_not_made_much_of(self) -> None:
        table = of(mtl=[0.80, 0.81, 0.82], mrn=[0.80012, 0.81010, 0.82011])
        (answer,) = answers(table, table.rows[1].key, table.rows[0].key)
        assert answer.verdict == "tiny"
        assert headline("A", "B", [answer]) == "On ner they differ by less than 0.05 points."

    def test_equal_differences_leave_nothing_to_test(self) -> None:
        """Two seeds may differ by the same by chance alone: few spans make few scores possible."""
        table = of(mtl=[0.80, 0.81], mrn=[0.83, 0.84])
        (answer,) = answers(table, table.rows[1].key, table.rows[0].key)
        assert answer.verdict == "no spread"
        assert answer.sentence == "+3.00 with each of 2 seeds: no spread, so no interval"
        assert not any(row.cells["ner"].best for row in table.rows)
        (mark,) = forest(differences(table, table.rows[0].key), table, table.rows[0].key).marks
        assert (mark.low, mark.high, mark.shown) == (None, None, False)
        same = of(mtl=[0.80, 0.81], mrn=[0.80, 0.81])
        assert answers(same, same.rows[1].key, same.rows[0].key)[0].verdict == "not shown"

    def test_no_seed_in_common(self) -> None:
        table = of(mtl=[0.80], mrn=[0.83])
        rows = table.rows
        moved = replace(rows[1], cells={"ner": replace(rows[1].cells["ner"], by_seed={9: 0.83})})
        (answer,) = answers(replace(table, rows=(rows[0], moved)), moved.key, rows[0].key)
        assert "no seed in common" in answer.sentence
        assert answer.verdict == "no common seed"

    def test_the_first_comparison_is_of_like_with_like(self) -> None:
        made = [config("mtl"), config("mrn"), config("mrn", encoder_training="full")]
        _, table = tabled(dict(zip(made, (0.6, 0.61, 0.9), strict=True)))
        pair = default_pair(table)
        assert pair is not None
        assert [table.row(key).config.encoder_training for key in pair] == ["frozen", "frozen"]
        assert confounds(made[0], made[1]) == ()
        assert "encoder training" in confounds(made[0], made[2])


class TestDifferences:
    def test_every_row_against_the_baseline(self) -> None:
        table = of(stl=[0.78, 0.80, 0.79], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        base = table.rows[1].key
        found = differences(table, base)
        assert [(one.row.config.paradigm, one.verdict) for one in found] == [
            ("stl", "not shown"),
            ("mrn", "above"),
        ]
        raw = [one.paired.p for one in found if one.paired is not None]
        assert [one.p_seeds for one in found] == holm([p for p in raw if p is not None])
        view = forest(found, table, base)
        assert (view.families, view.targets, view.reference) == (("STL", "MRN λ 0.003"), ("ner",), "MTL")
        assert [mark.shown for mark in view.marks] == [False, True]
        drawn = forest_chart(view, {"ner": "#009E73"})
        assert list(drawn.data[0].marker.symbol) == ["circle-open", "circle"]
        assert "MRN λ 0.003, ner: +3.33 [+1.90, +4.77], 3 seeds, p" in view.marks[1].told

    def test_headline_forest_sharing_and_table_say_the_same(self) -> None:
        """MRN's interval lies above zero, but not so once corrected for two differences."""
        table = of(stl=[0.78, 0.80, 0.79], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.835, 0.865])
        _, mtl, mrn = table.rows
        found = differences(table, mtl.key)
        paired = found[1].paired
        assert paired is not None
        assert paired.low is not None
        assert paired.low > 0
        assert paired.p is not None
        assert found[1].p_seeds == pytest.approx(2 * paired.p)
        assert [one.verdict for one in found] == ["not shown", "not shown"]
        assert [mark.shown for mark in forest(found, table, mtl.key).marks] == [False, False]
        told = answers(table, mrn.key, mtl.key)
        assert headline("MRN", "MTL", told) == "No difference between MRN and MTL is shown on ner."
        assert told[0].sentence.endswith(f"p {found[1].p_seeds:.3f}")
        assert sharing_sentence(sharing(table, mtl.key)[0]).endswith("MRN − MTL shows no difference.")
        assert "**" not in markdown(difference_sheet(found, table, mtl.key, "demo"))

    def test_every_difference_on_the_page_is_in_the_family(self) -> None:
        """With STL as the baseline the step from MTL to MRN is no row of the table, but it counts."""
        table = of(stl=[0.78, 0.80, 0.79], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        stl = table.rows[0].key
        assert len(corrected(table, stl)) == 3
        assert len(differences(table, stl)) == 2

    def test_what_loses_is_not_bold_in_the_differences(self) -> None:
        table = of(mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        mtl, mrn = (row.key for row in table.rows)
        above, below = (differences(table, key) for key in (mtl, mrn))
        assert [one.verdict for one in (*above, *below)] == ["above", "below"]
        assert "**" in markdown(difference_sheet(above, table, mtl, "demo"))
        assert "**" not in markdown(difference_sheet(below, table, mrn, "demo"))

    def test_tests_over_sentences_find_their_place(self) -> None:
        table = of(stl=[0.78, 0.80], mtl=[0.80, 0.81], mrn=[0.83, 0.84])
        base = table.rows[1]
        found = differences(table, base.key)
        assert run_pairs(found[1]) == tuple(
            (table.rows[2].cells["ner"].run_ids[seed], base.cells["ner"].run_ids[seed]) for seed in (1, 2)
        )
        tests = {
            (table.rows[0].key, "ner"): "different sentences",
            (table.rows[2].key, "ner"): Randomised(0.03, 0.01, 2, 100),
        }
        told = with_sentences(found, tests)
        assert [(one.p_sentences, one.untested) for one in told] == [
            (None, "different sentences"),
            (0.01, ""),
        ]
        records = difference_records(told, table)
        assert [(one["p_sentences_holm"], one["sentences"]) for one in records] == [(None, None), (0.01, 100)]
        text = latex(difference_sheet(told, table, base.key, "demo"))
        assert r"MRN $\lambda$ 0.003 & ner & +3.00 & 2 & -- & 0.010" in text

    def test_only_the_same_sentences_can_be_exchanged(self) -> None:
        gold = [["B-PER", "O"], ["O"]]
        one = counted("f1_conll", gold, gold)
        other = counted("f1_conll", gold, [["O", "O"], ["O"]])
        elsewhere = counted("f1_conll", [["B-LOC", "O"], ["O"]], gold)
        assert over_sentences([]) == "no common seed"
        assert over_sentences([(None, one), (one, None)]) == "no predictions stored"
        assert over_sentences([(one, elsewhere)]) == "different sentences"
        found = over_sentences([(one, other), (None, one)])
        assert isinstance(found, Randomised)
        assert (found.difference, found.seeds, found.sentences) == (1.0, 1, 2)


class TestSharing:
    def test_each_step_per_task(self) -> None:
        table = of(stl=[0.78, 0.80, 0.79], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        (found,) = sharing(table, table.rows[1].key)
        assert [(step.title, [one.verdict for one in step.deltas]) for step in found.steps] == [
            ("MTL − STL", ["not shown"]),
            ("MRN − MTL", ["above"]),
        ]
        assert found.shares_nothing
        assert sharing_sentence(found) == "MTL − STL shows no difference; MRN − MTL raises ner (+3.33)."

    def test_grey_where_nothing_is_shown(self) -> None:
        table = of(stl=[0.78, 0.80, 0.79], mtl=[0.80, 0.81, 0.82], mrn=[0.83, 0.84, 0.86])
        chart = sharing_chart(sharing(table, table.rows[1].key), table.tasks, colours(["pos", "ner"]))
        assert [(dot.marker.color, dot.marker.symbol, dot.xaxis) for dot in chart.data] == [
            (MUTED, "circle-open", "x"),
            (colours(["pos", "ner"])["ner"], "circle", "x2"),
        ]
        assert chart.layout.xaxis.range == chart.layout.xaxis2.range
        assert chart.layout.xaxis.range[0] <= 0 <= chart.layout.xaxis.range[1]

    def test_each_encoder_stands_above_its_tasks(self) -> None:
        made = {
            config(paradigm, seed, encoder=encoder): 0.8 + 0.01 * gain + 0.001 * seed * gain
            for encoder in ("minilm", "bert-base-cased")
            for gain, paradigm in enumerate(("mtl", "mrn"))
            for seed in (1, 2, 3)
        }
        _, table = tabled(made, TASKS)
        found = sharing(table, table.rows[0].key)
        chart = sharing_chart(found, table.tasks, {})
        assert chart.layout.yaxis.ticktext == ("", "pos", "ner", "", "pos", "ner")
        assert [dot.y for dot in chart.data] == [(1,), (2,), (4,), (5,)]
        names = [one.block for one in found]
        assert [text for note in chart.layout.annotations if (text := note.text) in names] == names

    def test_one_paradigm_shares_nothing_yet(self) -> None:
        table = of(mtl=[0.8, 0.81])
        assert sharing(table, table.rows[0].key) == []


def test_seeds_are_thin_and_their_mean_is_thick() -> None:
    table = of(mtl=[0.80, 0.81], mrn=[0.83, 0.85])
    chart = seeds_chart(table, "ner", "#009E73")
    assert [(line.line.width, list(line.y)) for line in chart.data] == [
        (1, pytest.approx([80, 83])), (1, pytest.approx([81, 85])), (3, pytest.approx([80.5, 84])),
    ]  # fmt: skip
