"""The Transfer page: gains of pairs, one pair in detail, groups of tasks; and what it shows, without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.store import Store
from core.store.records import MetricKey, MetricSeries
from core.tasks.confusion import label_confusion
from core.transfer.gains import measured_gains
from dashboard.compare.closer_views import errors
from dashboard.transfer.pair import changes, label_sentence
from dashboard.transfer.views import answer, caution, course, gains_table, group_names
from jobs.transfer import pair_groups
from tests.pages.conftest import Open, sent, words
from tests.pages.filled_store import Filled, fill_pairs

SEEDS = (1, 2, 3)


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


@pytest.fixture
def pairs(finished: Filled) -> Filled:
    """A store in which every pair of three tasks was trained, with three seeds."""
    fill_pairs(seeds=SEEDS)
    return finished


class TestViews:
    gains = measured(a_b=(0.02, 0.021, 0.022), b_a=(-0.01, 0.01, 0.0), a_c=(-0.03, -0.031, -0.032))

    def test_the_answer_counts_verdicts_and_names_who_helps(self) -> None:
        sentence = answer(self.gains, "points").replace("\\", "")
        assert sentence.startswith("Of 3 pairs, 1 gain, 1 lose, 1 are undecided.")
        assert "b helps most: beside it the others gain +2.10 points on average." in sentence
        assert "b gains most: 0.00 points on average." in sentence
        assert "3 seeds" in caution(self.gains)
        assert "nothing is decided" in caution(measured(a_b=(0.1,)))

    def test_cells_are_grey_where_the_interval_includes_zero(self) -> None:
        table = gains_table(self.gains, "points", {})
        by_pair = {
            (row.name, table.rows[column].name): cell
            for row, cells in zip(table.rows, table.cells, strict=True)
            for column, cell in enumerate(cells)
            if cell is not None
        }
        assert {pair: (cell.text, cell.grey) for pair, cell in by_pair.items()} == {
            ("a", "b"): ("+2.10", False),
            ("b", "a"): ("0.00", True),
            ("a", "c"): ("−3.10", False),
        }
        assert by_pair["a", "b"].share > 0 > by_pair["a", "c"].share
        assert [row.score for row in table.rows] == ["50.00"] * 3
        relative = gains_table(self.gains, "relative", {})
        assert [cell.text for cell in relative.cells[0] if cell] == ["+4.20", "−6.20"]

    def test_losses_of_runs_of_other_lengths_compare_by_their_share(self) -> None:
        def curve(run_id: int, steps: int) -> MetricSeries:
            step = np.arange(1, steps + 1)
            values = 1 - step / steps
            return MetricSeries(run_id, MetricKey("a", "train", "loss"), step, values, values, values)

        made = course([curve(1, 80), curve(2, 400)], {1: 80, 2: 400})
        assert made is not None
        assert made.seeds.shape == (2, 40)
        assert np.abs(made.seeds[0] - made.seeds[1]).max() < 0.02
        assert made.mean[0] > made.mean[-1]
        assert course([], {}) is None

    def test_changes_count_mistakes_over_seeds(self) -> None:
        gold = [["NN"] * 4 + ["VB"] * 4]
        stl, mtl = (
            errors([label_confusion(gold, predicted)] * 2)
            for predicted in ([["VB"] * 3 + ["NN"] + ["VB"] * 4], [["NN"] * 4 + ["VB"] * 3 + ["NN"]])
        )
        assert stl is not None
        assert mtl is not None
        assert changes(stl, mtl).to_numpy().tolist() == [["NN → VB", 6, 0, -6], ["VB → NN", 0, 2, 2]]
        assert label_sentence(stl, mtl) == "Right more often: NN +6. Right less often: VB −2."


def test_groups_are_runs_alike_in_all_but_tasks_and_seed(pairs: Filled) -> None:
    groups = pair_groups(Store.open())
    assert [len(group.gains.pairs) for group in groups] == [6]
    assert groups[0].alone.keys() == {"pos", "chunk", "ner"}
    assert all(by_seed.keys() == set(SEEDS) for by_seed in groups[0].beside.values())
    assert group_names(groups) == ["6 pairs of 3 tasks · minilm, frozen · demo"]


def opened(open_page: Open, **query: str) -> tuple[AppTest, dict[str, Any]]:
    app = open_page("transfer", **query)
    return app, sent(app, "cells")


def test_the_matrix_and_one_pair(open_page: Open, pairs: Filled) -> None:
    app, table = opened(open_page, main="ner", aux="pos")
    assert "Of 6 pairs, " in words(app)
    assert [row["name"] for row in table["rows"]] == ["pos", "chunk", "ner"]
    assert [[cell is None for cell in row] for row in table["cells"]] == np.eye(3, dtype=bool).tolist()
    assert table["chosen"] == [2, 0]
    assert "**ner** beside pos" in words(app)
    assert "**pos** beside ner" in words(app)
    changes = [frame.value for frame in app.dataframe if "Change" in frame.value.columns]
    assert [len(frame) for frame in changes] == [10, 10]
    app.selectbox(key="aux").set_value("ner").run()
    assert "Choose two different tasks." in words(app)
    points = table["cells"][0][1]["text"]
    app.segmented_control(key="unit").set_value("relative").run()
    assert sent(app, "cells")["cells"][0][1]["text"] != points
    assert not app.exception


def test_groups_of_tasks_open_launch(open_page: Open, pairs: Filled) -> None:
    app, _ = opened(open_page, look="Groups", k="2")
    assert "2 models" in words(app) or "1 model" in words(app)
    (link,) = [link for link in app.main.get("page_link") if "Launch" in link.proto.label]
    assert "task_groups=pos" in link.proto.query_string
    assert "paradigm=stl%2Cmtl" in link.proto.query_string
    app.number_input(key="k").set_value(1).run()
    assert "1 model" in words(app)
    assert not app.exception


def test_other_addresses_are_answered(open_page: Open, pairs: Filled) -> None:
    app, _ = opened(open_page, main="nothing", aux="9", group="x", look="?", k="-1", by="a", unit="b")
    assert "Of 6 pairs, " in words(app)


def test_nothing_yet_leads_to_runs_of_pairs(open_page: Open, laboratory: Path) -> None:
    app = open_page("transfer")
    assert "No pair of tasks yet" in words(app)
    addresses = [link.proto.query_string for link in app.main.get("page_link")]
    assert "task_groups=pairs" in addresses[0]
    assert "study=transfer" in addresses[1]
