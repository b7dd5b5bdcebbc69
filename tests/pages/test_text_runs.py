"""Launch, Compare and a run's page on tasks of texts and pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.mrn.relations import row_names, task_groups
from core.results.samples import group_by_data
from core.results.table import tabulate
from core.store import Store
from core.tasks import KINDS
from dashboard.compare.mistake_views import Guesses, furthest, guesses, misses
from dashboard.components.sentence import Said
from dashboard.launch.charts import numbers_by_split, spread_chart
from dashboard.launch.draft import Draft, applicable, plan, start_for
from dashboard.runs.tasks import data_sheet, scores_sheet
from dashboard.runs.views import page_of
from jobs.reports.parts import Sheet
from jobs.reports.render import markdown, report_records, report_sheet, score_sheet
from tests.making import relations, run_facts
from tests.pages.compare_runs import in_numbers
from tests.pages.conftest import (
    Open,
    run_tables,
    sheets,
    table,
    words,
)
from tests.pages.launching import own_data
from tests.pages.text_store import text_config, text_folders, text_run

_OF_TEXTS = {"pooling", "pair_encoding", "pair_heads"}


@pytest.fixture
def corpus(laboratory: Path) -> str:
    return text_folders(laboratory / "texts")


def shown(app: AppTest) -> set[str]:
    """The fields for texts that the form asks for."""
    keys = {str(widget.key) for widget in app.get("button_group")}
    return {field for field in _OF_TEXTS | {"task_embedding"} if f"launch_{field}" in keys}


def launch(open_page: Open, corpus: str, **query: str) -> AppTest:
    settings = {"paradigm": "mtl", "encoder": "minilm", "encoder_training": "full"}
    return open_page("launch", corpus=corpus, **settings, **query)


class TestLaunch:
    def test_texts_and_pairs_are_shown_with_what_is_said_of_them(self, open_page: Open, corpus: str) -> None:
        app = launch(open_page, corpus)
        text = words(app)
        assert "120 train and 60 test texts and pairs, " in text
        assert "This is train text 0 of ten good words here ." in text
        assert "And its other half , 0 ." in text
        assert "mood **bad**" in text
        assert "same **0**" in text
        assert "alike **0**" in text
        assert not [field for field in app.text_input if field.label.startswith("Columns")]
        app.session_state["launch_more_data"] = True
        app.run()
        train = [number % 11 / 2 for number in range(40)]
        spread = f"Train: 40 pairs, from 0 to 5, mean {np.mean(train):.2f}, SD {np.std(train):.2f}."
        assert spread in words(app)

    def test_numbers_are_spread_over_ten_ranges(self) -> None:
        numbers = numbers_by_split({"train": {"0": 3, "5": 1}, "test": {"2.5": 2}})
        assert [values.tolist() for values in numbers.values()] == [[0, 0, 0, 5], [2.5, 2.5]]
        figure = spread_chart(numbers, "#0072B2")
        assert [trace["type"] for trace in figure.data] == ["bar", "scatter"]
        assert figure.data[0]["y"].tolist() == [75, *[0] * 8, 25]
        assert figure.data[1]["y"].sum() == 100
        assert figure.data[0]["text"][0] == "0 to 0.5"

    def test_fields_of_texts_are_asked_where_a_task_reads_texts(self, open_page: Open, corpus: str) -> None:
        assert shown(launch(open_page, "demo")) == {"task_embedding"}
        app = launch(open_page, corpus)
        assert shown(app) == {*_OF_TEXTS, "task_embedding"}
        app.pills(key="launch_pair_encoding").set_value(["together"]).run()
        assert shown(app) == {"pooling", "pair_encoding", "task_embedding"}
        app.pills(key=f"launch_tasks_{corpus}").set_value(["mood"]).run()
        assert shown(app) == {"pooling", "task_embedding"}
        app.pills(key="launch_paradigm").set_value(["stl"]).run()
        assert shown(app) == {"pooling"}

    def test_what_texts_cannot_train_is_refused_before_it_is_launched(
        self, open_page: Open, corpus: str
    ) -> None:
        settings = {"paradigm": "mrn", "encoder": "minilm", "encoder_training": "full", "seed": "1"}
        app = open_page("launch", corpus=corpus, **settings)
        assert "pairs that are read apart (same, alike) have others" in words(app)
        assert app.button(key="launch").disabled
        app.pills(key="launch_pair_encoding").set_value(["together"]).run()
        assert not app.button(key="launch").disabled
        app.pills(key="launch_pair_encoding").set_value(["apart"])
        app.pills(key="launch_paradigm").set_value(["stl"])
        app.multiselect(key="launch_encoder_training").set_value(["frozen"]).run()
        assert "Training: a run of alike has nothing to learn over a frozen encoder." in words(app)
        assert app.button(key="launch").disabled
        app.pills(key=f"launch_tasks_{corpus}").set_value(["mood", "same"]).run()
        assert not app.button(key="launch").disabled

    @pytest.mark.parametrize(
        ("schemes", "changed"),
        [
            (["text"], {"paradigm": ("stl",)}),
            (["pair"], {"paradigm": ("stl",)}),
            (["score"], {"paradigm": ("stl",), "encoder_training": ("full",)}),
            (["pair", "score"], {"pair_encoding": ("together",)}),
            (["text", "pair", "score"], {"pair_encoding": ("together",)}),
            (["plain", "iob2"], {}),
        ],
    )
    def test_the_form_begins_with_what_a_corpus_can_train(
        self, schemes: list[str], changed: dict[str, tuple[str, ...]]
    ) -> None:
        assert start_for([KINDS[scheme] for scheme in schemes]) == changed

    def test_what_was_chosen_stays_with_another_corpus(self, open_page: Open, corpus: str) -> None:
        start = {
            "paradigm": ["stl", "mtl", "mrn"],
            "encoder_training": ["frozen"],
            "pair_encoding": ["apart"],
        }

        def held() -> dict[str, list[str]]:
            return {name: app.session_state[f"launch_{name}"] for name in start}

        app = own_data(open_page("launch"), corpus.rpartition("+")[2])  # numbers of pairs
        assert held() == start | {"paradigm": ["stl"], "encoder_training": ["full"]}
        assert not app.button(key="launch").disabled
        app.text_input(key="launch_seed").set_value("5").run()
        app.multiselect(key="launch_encoder_training").set_value(["top:4"]).run()
        app.selectbox(key="launch_corpus").select("demo").run()
        assert held() == start | {"encoder_training": ["top:4"]}
        # The catalogue says what a corpus of the Hub holds before it is read.
        app.multiselect(key="launch_encoder_training").set_value(["frozen"]).run()
        app.selectbox(key="launch_corpus").select("sts").run()
        assert held() == start | {"paradigm": ["stl"], "encoder_training": ["full"]}

    def test_what_no_task_reads_is_no_field_of_its_runs(self) -> None:
        lists: dict[str, Any] = {"paradigm": ("mtl",), "encoder": ("minilm",), "encoder_training": ("full",)}
        lists |= {"pooling": ("mean",), "pair_encoding": ("together",), "epochs": "1", "seed": "1"}
        lists |= {"fraction": "1"}
        draft = Draft("demo", None, ("pos", "ner"), lists=lists, reads=frozenset({"words"}))
        (config,) = plan(draft).configs
        assert (config.pooling, config.pair_encoding) == ("auto", "apart")
        unread = applicable(lists) - applicable(lists, frozenset({"text"}))
        assert unread == {"pair_encoding", "pair_heads", "heads"}


class TestCompare:
    @pytest.fixture
    def runs(self, corpus: str) -> list[int]:
        return [
            text_run(text_config(corpus, pooling=pooling, seed=seed), share)
            for pooling, share in (("mean", 0.9), ("cls", 0.6))
            for seed in (1, 2)
        ]

    def test_every_task_has_its_own_measure(self, open_page: Open, runs: list[int]) -> None:
        app = open_page("compare")
        head = [name.replace("\\", "") for name in sheets(app)[0].columns]
        assert head == ["mood (accuracy)", "same (accuracy)", "alike (Pearson × 100)"]
        tested = in_numbers(app)
        of_tasks = tested[~tested["Task"].str.startswith("mean")]
        assert all(float(p.strip("<\u00a0").replace("\\", "")) <= 1 for p in of_tasks["p sentences"])

    def test_numbers_are_drawn_against_the_annotated_ones(self, open_page: Open, runs: list[int]) -> None:
        app = open_page("compare", closer="Mistakes", task="alike")
        listed = table(app, "Annotated")
        assert list(listed.columns) == ["Text", "Annotated", "A", "B"]
        apart = (listed[["A", "B"]].sub(listed["Annotated"], axis=0)).abs().max(axis=1)
        assert list(apart) == sorted(apart, reverse=True)
        assert "And its other half , " in words(app)
        assert "has no classes" in words(open_page("compare", closer="Per class", task="alike"))

    def test_labels_of_texts_have_a_matrix_and_examples(self, open_page: Open, runs: list[int]) -> None:
        app = open_page("compare", closer="Mistakes", task="mood")
        assert "Click a cell for texts." in words(app)
        app.session_state["shown_mistake"] = ("mood", ("good", "bad"))
        app.run()
        assert "This is test text " in words(app)
        assert "gold **good**" in words(app)
        assert ":orange-badge[**bad**]" in words(app)

    def test_a_seed_tested_on_other_text_is_left_out(self) -> None:
        first = ([["1"], ["3"]], [["2"], ["3.5"]])
        other = ([["1"], ["4"]], [["9"], ["9"]])
        side = guesses([first, other, first])
        assert (side.gold, side.mean.tolist(), side.seeds, side.elsewhere) == ((1, 3), [2, 3.5], 2, 1)
        assert misses(side) == "mean absolute error 0.75, bias +0.75."
        better = Guesses((1, 3), np.array([1.0, 0.0]), 1, 0)
        assert furthest({"A": side, "B": better})["place"].tolist() == [1, 0]


def read(sheet: Sheet) -> dict[str, dict[str, str | None]]:
    """The texts of a table, by row and column."""
    (block,) = sheet.blocks
    return {
        name: {
            head: None if cell is None else cell.text
            for head, cell in zip(sheet.head[1:], cells, strict=True)
        }
        for name, cells in block.rows
    }


class TestOneRun:
    def test_scores_with_what_stands_beside(self, open_page: Open, corpus: str) -> None:
        run_id = text_run(text_config(corpus), 0.8)
        store = Store.open()
        run, scores = store.run(run_id), store.scores([run_id])
        sheet = scores_sheet(run, scores)
        assert sheet.head == ("Task", "Score", "Test", "Macro F1", "Spearman")
        rows = read(sheet)
        assert rows["alike"]["Score"] == "Pearson × 100"
        by_task = {score.task: score for score in scores if score.split == "test"}
        assert rows["alike"]["Spearman"] == f"{100 * (by_task['alike'].figures['spearman']):.2f}"
        assert rows["alike"]["Macro F1"] == rows["mood"]["Spearman"] == "–"
        f1 = [row["f1"] for row in by_task["mood"].report.values()]
        assert rows["mood"]["Macro F1"] == f"{50 * sum(f1):.2f}"
        assert "alike" in words(open_page("run", id=str(run_id)))

    def test_what_training_sees(self, corpus: str) -> None:
        run = Store.open().run(text_run(text_config(corpus), 0.8))
        sheet = data_sheet(run)
        assert sheet.head == ("Task", "Kind", "Labels", "Texts", "Pairs")
        rows = read(sheet)
        assert (rows["mood"]["Texts"], rows["mood"]["Pairs"], rows["same"]["Pairs"]) == ("40", None, "40")
        assert (rows["alike"]["Kind"], rows["alike"]["Labels"]) == ("Number of a pair of texts", None)

    def test_reports_count_texts(self, open_page: Open, corpus: str) -> None:
        run_id = text_run(text_config(corpus), 0.8)
        app = open_page("run", id=str(run_id), run_part="By label", report_task="same")
        assert "over 20 pairs. The micro average is the accuracy here." in words(app)
        run = Store.open().run(run_id)
        score = next(score for score in Store.open().scores([run_id]) if score.task == "mood")
        assert "mood of run" in markdown(report_sheet(run, score))
        assert "test texts" in markdown(report_sheet(run, score))
        assert {record["row"] for record in report_records(run, score)} == {"label", "average"}

    def test_a_run_of_numbers_alone_says_where_they_are_shown(self, open_page: Open, corpus: str) -> None:
        run_id = text_run(text_config(corpus, tasks=("alike",), paradigm="stl"), 0.8)
        app = open_page("run", id=str(run_id), run_part="By label")
        assert "Tasks of numbers have no labels." in words(app)


def test_columns_of_runs_name_the_measure(open_page: Open, corpus: str) -> None:
    text_run(text_config(corpus), 0.8)
    (table,) = page_of(Store.open(), Store.open().runs(), grouped=True, sort="new", page=1).tables
    assert table.measures == {"mood": "accuracy", "same": "accuracy", "alike": "Pearson × 100"}
    (sent,) = run_tables(open_page("runs"))
    heads = {column["name"]: column["head"] for column in sent["columns"]}
    assert heads["alike, test"] == "alike, Pearson × 100"


def test_what_is_said_of_a_text_is_no_markdown() -> None:
    written = Said("**who**", "]:red[x]", differs=True).markdown
    assert written == ":".join(["\\*\\*who\\*\\* ", "orange-badge[**\\]\\", "red\\[x\\]**]"])


def test_sheets_name_the_measure(corpus: str) -> None:
    text_run(text_config(corpus), 0.8)
    store = Store.open()
    ((group, runs),) = group_by_data(store.runs()).items()
    sheet = score_sheet(tabulate(runs, store.scores([run.id for run in runs]), "test"), group.name)
    assert sheet.head == ("Configuration", "mood (accuracy)", "same (accuracy)", "alike (Pearson × 100)")
    assert "test split, in percent" in sheet.caption


def test_relations_are_of_the_tasks_that_the_prior_relates() -> None:
    facts = run_facts(related=("ner",), meet=((True,),), label_names=(), label_owners=())
    assert [task.name for task in facts.tasks] == ["pos", "ner"]
    assert row_names(facts, ("pos", "ner"), "task", 1) == (("ner",), (("ner",),))
    assert task_groups(facts) == (("ner",),)
    assert len(relations(tasks=1).task) == 1
