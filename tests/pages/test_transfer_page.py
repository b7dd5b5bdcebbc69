"""The Transfer page: gains of pairs, one pair in detail; and what it shows, without it."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.evaluation.mistakes import errors
from core.events import SplitResult
from core.store import RunState, Store
from core.store.types import MetricKey, MetricSeries
from core.studies.recorded import PAIRS, records_of
from core.tasks.confusion import label_confusion
from core.transfer.gains import GAINS, LOSES, measured_gains
from core.transfer.predictors import LEFT_OUT, Judgement, Measure
from core.wording import plural
from dashboard.theme import MUTED
from dashboard.transfer import views
from dashboard.transfer.charts import loss_chart, seeds_chart
from jobs.reports.transfer import pair_groups
from jobs.studies.pairs import answer, headline
from tests.making import claimed, config, finished, run_facts, split_result, task_score
from tests.pages.conftest import (
    Open,
    figures,
    sent,
    sheets,
    words,
)
from tests.pages.filled_store import Filled
from tests.patience import PATIENCE_S

SEEDS = (1, 2, 3)
SCORED_BY = dict.fromkeys("abc", "accuracy")


def run(paradigm: str, seed: int, *tasks: str) -> RunConfig:
    return RunConfig.build(corpus="demo", paradigm=paradigm, tasks=tasks, seed=seed)


def measured(**gains: tuple[float, ...]) -> Any:
    """Gains of `main_aux` pairs by seed, over STL of 0.5."""
    scored = [(run("stl", seed, task), {task: 0.5}) for seed in SEEDS for task in ("a", "b", "c")]
    for pair, values in gains.items():
        main, aux = pair.split("_")
        scored += [
            (run("mtl", seed, main, aux), {main: 0.5 + value})
            for seed, value in zip(SEEDS, values, strict=False)
        ]
    return measured_gains(scored, ("a", "b", "c"))


class TestViews:
    gains = measured(a_b=(0.02, 0.021, 0.022), b_a=(-0.01, 0.01, 0.0), a_c=(-0.03, -0.031, -0.032))

    def test_the_answer_names_the_strongest_effects_and_counts_the_others(self) -> None:
        assert answer(self.gains) == (
            "a loses 3.10 points beside c; a gains 2.10 points beside b. 1 of 3 pairs is undecided."
        )
        assert "a gains 4.20% beside b" in answer(self.gains, relative=True)
        several = measured(a_b=(0.02, 0.021, 0.022), b_a=(0.03, 0.031, 0.032), a_c=(-0.01, 0.01, 0.0))
        assert answer(several) == (
            "b gains 3.10 points beside a, the largest of 2 gains. 1 of 3 pairs is undecided."
        )
        alike = measured(a_b=(0.02, 0.021, 0.022), b_a=(0.02, 0.021, 0.022), b_c=(0.01, 0.011, 0.012))
        assert answer(alike) == "2 pairs gain 2.10 points each, the largest of 3 gains."
        assert "3 seeds" in views.caution(self.gains)
        assert "nothing is decided" in views.caution(measured(a_b=(0.1,)))

    def test_the_answer_says_what_the_family_of_all_pairs_decides(self) -> None:
        # Alone its p is 0.03: decided as the one pair of `c`, not among three pairs.
        gains = measured(a_b=(0.02, -0.02, 0.0), b_a=(-0.02, 0.02, 0.0), c_a=(0.01, 0.013, 0.017))
        assert gains.pairs["c", "a"].is_decided
        assert answer(gains) == (
            "Corrected over all 3 pairs, none is decided. "
            "Corrected for each main task alone, 1 is: c beside a (+1.33 points)."
        )

    def test_a_head_that_learned_nothing_decides_nothing(self) -> None:
        scored = [(run("stl", seed, task), {task: 0.0}) for seed in SEEDS for task in ("a", "b")]
        scored += [(run("mtl", seed, "a", "b"), {"a": 0.0, "b": 0.0}) for seed in SEEDS]
        gains = measured_gains(scored, ("a", "b"))
        gain = gains.pairs["a", "b"]
        assert gain.verdict == "undecided"
        assert gain.remark == "the head learned nothing: 0 with each seed"
        assert "the head learned nothing" in views.gain_sentence(gain, "points", "accuracy")
        cells = [cell for row in views.gains_table(gains, "points", {}).cells for cell in row if cell]
        assert [(cell.text, cell.note) for cell in cells] == [("–", "learned nothing")] * 2
        assert gains.learned_nothing == ["a", "b"]
        assert self.gains.learned_nothing == []

    def test_pairs_that_learned_nothing_are_not_counted_as_undecided(self) -> None:
        scored = [(run("stl", seed, task), {task: 0.5 * (task != "c")}) for seed in SEEDS for task in "abc"]
        for main, aux, of_seeds in (("a", "b", (-0.02, -0.021, -0.022)), ("a", "c", (-0.01, 0.01, 0.0))):
            scored += [
                (
                    run("mtl", seed, main, aux),
                    {main: 0.5 + value, "c": 0.0} if aux == "c" else {main: 0.5 + value},
                )
                for seed, value in zip(SEEDS, of_seeds, strict=True)
            ]
        gains = measured_gains(scored, ("a", "b", "c"))
        loses = "a loses 2.10 points beside b"
        assert answer(gains) == f"{loses}. 1 of 3 pairs is undecided; c learned nothing in the other."
        assert answer(gains, {"c": "NER"}).endswith("NER learned nothing in the other.")
        decided = dataclasses.replace(gains, pairs={p: g for p, g in gains.pairs.items() if p != ("a", "c")})
        assert answer(decided) == f"{loses}. c learned nothing in the other."
        undecided = dataclasses.replace(
            gains, pairs={p: g for p, g in gains.pairs.items() if p != ("a", "b")}
        )
        assert answer(undecided) == (
            "Of 2 pairs none is decided yet (3 seeds): 1 is undecided; c learned nothing in the other."
        )
        assert [(gain.main, gain.aux) for gain in views.strongest_first(gains)] == [("a", "b"), ("a", "c")]
        assert views.best_pair(undecided) == ("a", "c")

    def test_the_pair_of_the_answer_is_shown_first(self) -> None:
        assert views.best_pair(self.gains) == ("a", "b")
        losses = measured(a_b=(-0.03, -0.031, -0.032), b_a=(-0.01, -0.011, -0.012), b_c=(0.01, -0.01, 0.0))
        assert views.best_pair(losses) == ("a", "b")
        assert answer(losses).startswith("a loses 3.10 points beside b, the largest of 2 losses")

    def test_where_nothing_is_decided_no_pair_is_named(self) -> None:
        same = measured(a_b=(0.0, 0.0), b_a=(0.0, 0.0))
        some = measured(a_b=(0.1, -0.1, 0.0), b_a=(0.0, 0.0, 0.0), b_c=(0.0,))
        for gains, sentence in (
            (some, "3 pairs none is decided yet (1 to 3 seeds): 2 are undecided, 1 is equivalent."),
            (measured(a_b=(0.1,)), "1 pair none is decided yet (1 seed)."),
            (same, "2 pairs none differs: each seed has the same score alone and beside the other task."),
        ):  # fmt: skip
            assert answer(gains) == f"Of {sentence}"
        assert views.gain_sentence(same.pairs["a", "b"], "points", "accuracy") == (
            "**a** beside b has the same score as alone on every seed: 50.00 accuracy, 2 seeds."
        )
        assert list(views.pairs_frame(same)["Verdict"]) == ["undecided"] * 2
        # Equal differences have no spread to decide by, and no interval.
        equal = measured(a_b=(0.25, 0.25))
        assert views.gain_sentence(equal.pairs["a", "b"], "points", "accuracy").startswith(
            "**a** beside b is undecided: +25.00 points; 50.00 accuracy alone"
        )
        (cell,) = (cell for cell in views.gains_table(equal, "points", {}, SCORED_BY).cells[0] if cell)
        assert (cell.text, cell.note, cell.grey) == ("+25.00", "", True)

    @given(
        st.dictionaries(
            st.sampled_from(["a_b", "b_a", "a_c", "c_a", "b_c", "c_b"]),
            st.lists(st.sampled_from([-0.03, -0.02, 0.0, 0.02, 0.021, 0.03]), min_size=1, max_size=3),
            min_size=1,
        )
    )
    def test_a_pair_that_is_named_is_decided_and_the_largest(self, drawn: dict[str, list[float]]) -> None:
        gains = measured(**{pair: tuple(values) for pair, values in drawn.items()})
        sentence = answer(gains)
        decided = {pair: 100 * gain.mean for pair, gain in gains.pairs.items() if gain.is_decided}
        for main, aux in re.findall(r"\b([abc]) (?:gains|loses) [\d.]+ points beside ([abc])\b", sentence):
            of_sign = [abs(value) for value in decided.values() if value * decided[main, aux] > 0]
            assert abs(decided[main, aux]) == pytest.approx(max(of_sign), abs=0.01)
            assert len(of_sign) == 1 or max(of_sign) > min(of_sign)
        assert ("none is decided yet" in sentence or "none differs" in sentence) == (not decided)

    def test_cells_are_grey_where_the_interval_includes_zero(self) -> None:
        table = views.gains_table(self.gains, "points", {}, SCORED_BY)
        by_pair = {
            (row.name, table.rows[column].name): (cell.text, cell.note, cell.grey)
            for row, cells in zip(table.rows, table.cells, strict=True)
            for column, cell in enumerate(cells)
            if cell is not None
        }
        assert by_pair == {
            ("a", "b"): ("+2.10", "[+1.85, +2.35]", False),
            ("b", "a"): ("0.00", "[−2.48, +2.48]", True),
            ("a", "c"): ("−3.10", "[−3.35, −2.85]", False),
        }
        gains_of_a = [cell for cell in table.cells[0] if cell]
        assert gains_of_a[0].share > 0 > gains_of_a[1].share
        assert [row.score for row in table.rows] == ["50.00\naccuracy"] * 3
        # The scale ends at whole points, by the decided gains; the title has the p that decides.
        assert (table.low, table.high) == ("loses 3 or more", "gains 3 or more")
        assert gains_of_a[0].share == pytest.approx(0.7)
        assert ", p < 0.001; +4.20% of STL" in gains_of_a[0].title
        undecided = views.gains_table(measured(a_b=(0.1, -0.1, 0.0)), "points", {}, SCORED_BY)
        assert (undecided.low, undecided.high) == ("", "")
        nothing = views.gains_table(self.gains, "points", {}, SCORED_BY, can_transfer=False)
        assert all(cell.grey for cells in nothing.cells for cell in cells if cell)
        assert (nothing.low, nothing.high) == ("", "")
        relative = views.gains_table(self.gains, "relative", {}, SCORED_BY)
        assert [(cell.text, cell.note) for cell in relative.cells[0] if cell] == [
            ("+4.20", ""),
            ("−6.20", ""),
        ]

    def test_a_gain_that_correction_takes_back_has_an_edge(self) -> None:
        """Its interval is without zero, and its cell is grey."""
        gains = measured(a_b=(0.02, 0.03, 0.038), a_c=(0.01, -0.03, 0.02))
        interval = gains.pairs["a", "b"].interval
        assert interval is not None
        assert interval[0] > 0
        table = views.gains_table(gains, "points", {}, SCORED_BY)
        cells = [cell for row in table.cells for cell in row if cell]
        assert [(cell.grey, cell.nearly) for cell in cells] == [(True, True), (True, False)]
        assert table.nearly
        assert not views.gains_table(self.gains, "points", {}, SCORED_BY).nearly

    def test_losses_of_runs_of_other_lengths_compare_by_their_share(self) -> None:
        def curve(run_id: int, steps: int) -> MetricSeries:
            step = np.arange(1, steps + 1)
            values = 1 - step / steps
            return MetricSeries(run_id, MetricKey("a", "train", "loss"), step, values, values, values)

        made = views.course([curve(1, 80), curve(2, 400)], {1: 80, 2: 400})
        assert made is not None
        assert made.seeds.shape == (2, 40)
        assert np.abs(made.seeds[0] - made.seeds[1]).max() < 0.02
        assert made.mean[0] > made.mean[-1]
        assert views.course([], {}) is None
        other = dataclasses.replace(made, mean=made.mean + 0.1)
        assert [views.is_same_course(made, line) for line in (made, other, None)] == [True, False, False]
        drawn = loss_chart({"stl": made, "mtl": other}, "#0072B2")
        means = [line for line in drawn.data if line.name]
        assert [(line.name, line.line.color) for line in means] == [("STL", MUTED), ("MTL", "#0072B2")]
        (alike,) = (line for line in loss_chart({"stl": made}, "#0072B2").data if line.name)
        assert (alike.name, alike.line.color) == ("STL and MTL", "#0072B2")

    def test_the_ticks_of_seeds_with_the_same_gain_do_not_hide_each_other(self) -> None:
        (gain,) = measured(a_b=(0.02, 0.02, -0.01)).pairs.values()
        ticks, _ = seeds_chart([gain], {}).data
        assert len({(x, y) for x, y in zip(ticks.x, ticks.y, strict=True)}) == 3
        assert len(set(ticks.y)) == 2

    def test_changes_count_mistakes_over_seeds(self) -> None:
        gold = [["NN"] * 4 + ["VB"] * 4]
        stl, mtl = (
            errors([label_confusion(gold, predicted)] * 2)
            for predicted in ([["VB"] * 3 + ["NN"] + ["VB"] * 4], [["NN"] * 4 + ["VB"] * 3 + ["NN"]])
        )
        assert stl is not None
        assert mtl is not None
        assert views.changes(stl, mtl).to_numpy().tolist() == [["NN → VB", 6, 0, -6], ["VB → NN", 0, 2, 2]]
        assert views.label_sentence(stl, mtl) == "Correct more often: NN +6. Correct less often: VB −2."


def test_groups_are_runs_alike_in_all_but_tasks_and_seed(pairs: Filled) -> None:
    groups = pair_groups(Store.open())
    assert [len(group.gains.pairs) for group in groups] == [6]
    assert groups[0].alone.keys() == {"pos", "chunk", "ner"}
    assert all(by_seed.keys() == set(SEEDS) for by_seed in groups[0].beside)
    assert views.group_names(groups) == ["6 pairs of 3 tasks · minilm, frozen · demo"]


def test_of_a_pair_trained_again_in_another_order_the_newest_counts(laboratory: Path) -> None:
    store, facts, whole = Store.open(), run_facts(), split_result("test")

    def trained(*tasks: str, score: float, **values: Any) -> int:
        of_run = config(tasks=tasks, paradigm="mtl" if len(tasks) > 1 else "stl", **values)
        kept = tuple(task for task in facts.tasks if task.name in tasks)
        scores = tuple(task_score(task, score) for task in tasks)
        predicted, gold = ({task: of[task] for task in tasks} for of in (whole.predictions, whole.gold))
        result = SplitResult("test", 2, scores, predicted, gold)
        return finished(store, of_run, dataclasses.replace(facts, tasks=kept), result)

    for task in ("pos", "ner"):
        trained(task, score=0.8)
    trained("pos", "ner", score=0.9)
    newest = trained("ner", "pos", score=0.7)
    (group,) = pair_groups(store)
    assert dict(group.of("pos", "ner")) == {1: newest}
    assert group.scored_by == {task: task_score(task, 0.8).score_name for task in ("pos", "ner")}
    assert [gain.mean for gain in group.gains.pairs.values()] == pytest.approx([-0.1, -0.1])
    # Of groups that differ in one setting each name has it.
    for epochs, tasks in itertools.product((3, 4), (("pos",), ("ner",), ("pos", "ner"))):
        trained(*tasks, score=0.8, epochs=epochs)
    groups = pair_groups(store)
    for group, name in zip(groups, views.group_names(groups), strict=True):
        assert name.endswith(f" · demo · {plural(group.config.epochs, 'epoch')} · {group.key}")
    store.close()


def test_a_gain_over_a_negative_score_is_a_dash_in_percent() -> None:
    scored = [
        (run(paradigm, seed, *tasks), dict.fromkeys(tasks, score + seed / 1000))
        for seed in SEEDS
        for paradigm, tasks, score in (("stl", ("a",), -0.1), ("stl", ("b",), 0.5), ("mtl", ("a", "b"), 0.6))
    ]
    gains = measured_gains(scored, ("a", "b"))
    table = views.gains_table(gains, "relative", {}, SCORED_BY)
    cells = {row.name: cell for row, of in zip(table.rows, table.cells, strict=True) for cell in of if cell}
    assert (cells["a"].text, cells["a"].share) == ("–", 0.0)
    assert "%" not in cells["a"].title
    assert cells["b"].text == "+19.92"
    assert views.no_percent_sentence(gains) == "–: STL scores zero or less on a, so there is no percentage."
    assert views.no_percent_sentence(TestViews.gains) == ""


def opened(open_page: Open, **query: str) -> tuple[AppTest, dict[str, Any]]:
    app = open_page("transfer", **query)
    return app, sent(app, "cells")


def test_the_matrix_and_one_pair(open_page: Open, pairs: Filled) -> None:
    app, table = opened(open_page, main="ner", aux="pos")
    assert [row["name"] for row in table["rows"]] == ["pos", "chunk", "ner"]
    assert [[cell is None for cell in row] for row in table["cells"]] == np.eye(3, dtype=bool).tolist()
    assert table["chosen"] == [2, 0]
    (both,) = (table for table in sheets(app) if "Verdict" in table.columns)
    assert list(both.index) == ["ner beside pos", "pos beside ner"]
    changes = [table for table in sheets(app) if "Change" in table.columns]
    assert [len(table) for table in changes][::2] == [5, 5]  # the rest is folded
    app.selectbox(key="aux").set_value("ner").run()
    assert "Choose two different tasks." in words(app)
    points = table["cells"][0][1]["text"]
    app.segmented_control(key="unit").set_value("relative").run()
    assert sent(app, "cells")["cells"][0][1]["text"] != points


def test_pairs_that_score_as_alone_have_no_winner_and_no_empty_table(open_page: Open) -> None:
    """As over a frozen encoder, where MTL shares nothing that is trained."""
    store = Store.open()
    whole, facts = split_result("test"), run_facts()
    for seed, tasks in itertools.product((1, 2), (("pos",), ("ner",), ("pos", "ner"))):
        paradigm = "mtl" if len(tasks) == 2 else "stl"
        of_run = config(tasks=tasks, paradigm=paradigm, encoder_training="frozen", seed=seed)
        of_tasks = tuple(task for task in facts.tasks if task.name in tasks)
        scores = tuple(score for score in whole.scores if score.task in tasks)
        predicted, gold = ({task: of[task] for task in tasks} for of in (whole.predictions, whole.gold))
        result = SplitResult("test", 2, scores, predicted, gold)
        finished(store, of_run, dataclasses.replace(facts, tasks=of_tasks), result)
    app = open_page("transfer")
    text = words(app)
    assert headline(pair_groups(store)[0]) in text.replace("\\", "")
    assert not figures(app, "pair_seeds")
    assert not sheets(app)


def test_the_gains_of_all_pairs_are_drawn_once_beside_the_matrix(open_page: Open) -> None:
    store, facts = Store.open(), run_facts()
    for seed, tasks in itertools.product((1, 2), (("pos",), ("ner",), ("pos", "ner"))):
        paradigm = "mtl" if len(tasks) == 2 else "stl"
        of_run = config(
            tasks=tasks, paradigm=paradigm, encoder="minilm+bilstm", encoder_training="frozen", seed=seed
        )
        of_tasks = tuple(task for task in facts.tasks if task.name in tasks)
        scores = tuple(task_score(task, 0.7 + seed * len(tasks) / 100) for task in tasks)
        finished(
            store, of_run, dataclasses.replace(facts, tasks=of_tasks), SplitResult("test", 2, scores, {}, {})
        )
    app = open_page("transfer")
    (drawn,) = figures(app, "pair_seeds")
    names = [name.replace("<b>", "").replace("</b>", "") for name in drawn["layout"]["yaxis"]["ticktext"]]
    assert sorted(names) == ["ner<br>beside pos", "pos<br>beside ner"]
    app.segmented_control(key="look").set_value("all").run()
    assert [len(frame.value) for frame in app.dataframe if "Verdict" in frame.value.columns] == [2]
    assert len(figures(app, "pair_seeds")) == 1


def test_predictors_without_a_judgement_are_no_table_of_dashes() -> None:
    """Where all pairs gain, or none does, no predictor is right or wrong."""

    def page(known) -> None:  # type: ignore[no-untyped-def]  # the script has this line, but no imports
        from dashboard.transfer.predictors import predictors

        predictors(known)

    apps = []
    for value in (float("nan"), 0.5):
        measure = Measure(value, value)
        judged = Judgement("majority", LEFT_OUT, 6, 3, measure, measure, measure, measure, value, 0.0)
        known = SimpleNamespace(judgements=[judged], coefficients=())
        apps.append(AppTest.from_function(page, args=(known,), default_timeout=PATIENCE_S).run())
        assert not apps[-1].exception
    assert [len(sheets(app)) for app in apps] == [0, 1]


def test_other_addresses_are_answered(open_page: Open, pairs: Filled) -> None:
    _, table = opened(open_page, main="nothing", aux="9", group="x", look="Groups", unit="b")
    assert len(table["rows"]) == 3


@pytest.mark.parametrize("state", [None, RunState.RUNNING])
def test_nothing_yet_leads_to_runs_of_pairs(
    open_page: Open, laboratory: Path, state: RunState | None
) -> None:
    if state is not None:
        claimed(Store.open(), state, tasks=("pos", "ner"), paradigm="mtl")
    app = open_page("transfer")
    assert len(sent(app, "cells")["rows"]) == 12
    addresses = [link.proto.query_string for link in app.main.get("page_link")]
    assert "task_groups=pairs" in addresses[0]
    assert "study=transfer" in addresses[1]


def test_the_packaged_matrix_has_the_decided_pairs_of_the_records(open_page: Open, laboratory: Path) -> None:
    app = open_page("transfer", main="pos@conll2000", aux="supersense")
    gains = records_of("transfer")[0].gains(PAIRS)
    assert [len([gain for gain in gains.pairs.values() if gain.word == word]) for word in (GAINS, LOSES)] == [
        3,
        2,
    ]
    assert answer(gains) in words(app).replace("\\", "").replace("\u2060", "")
    table = sent(app, "cells")
    assert len(table["rows"]) == 12
    assert sum(cell is not None and not cell["grey"] for row in table["cells"] for cell in row) == 5
    assert [table["rows"][place]["name"] for place in table["chosen"]] == ["pos@conll2000", "supersense"]
