"""The Compare page in its states: what can be chosen, its scores, what is shown closer and copied."""

from __future__ import annotations

import itertools

import pytest

from core.events import Usage
from core.store import Store
from dashboard.compare import compared_runs, comparison
from tests.making import run_facts
from tests.pages.compare_runs import copied_scores, finished_run, in_numbers, mtl
from tests.pages.conftest import (
    Open,
    figures,
    sheets,
    table,
    words,
)
from tests.pages.filled_store import TASKS, Filled


def test_runs_that_cannot_be_compared_are_counted(open_page: Open, filled: Filled) -> None:
    going_on = [*filled.live, *filled.queued]
    app = open_page("compare", run=",".join(map(str, going_on)))
    assert "**0 of 3 runs done" in words(app)
    assert not sheets(app)
    assert not app.info
    assert "2 queued, 1 running" in [bar.proto.text for bar in app.get("progress")]
    elsewhere = finished_run(mtl(fraction=0.05), 0.5)
    chosen = [*filled.mrn[:2], filled.live[0], elsewhere]
    shown = words(open_page("compare", run=",".join(map(str, chosen))))
    assert "2 of 4 chosen runs; 1 is on other data and 1 has not succeeded." in shown


def test_many_predictions_are_read_only_when_asked_for(
    open_page: Open, finished: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_MANY", 3)
    app = open_page(
        "compare", of="MRN 77", to="nothing", task="srl", closer="Differences"
    )  # an address of rows that are gone
    assert app.selectbox(key="to").value == "MTL"
    assert app.toggle(key="sentences").label.startswith("Test over sentences (")
    assert set(in_numbers(app)["p sentences"]) == {""}
    app.toggle(key="sentences").set_value(True).run()
    shown = in_numbers(app)
    assert "" not in set(shown["p sentences"][shown["Task"].isin(TASKS)])


def test_a_closer_look_by_a_link(open_page: Open, finished: Filled) -> None:
    app = open_page("compare", of="MTL", to="STL", closer="Per seed", task="chunk", on="Dev split")
    assert (app.selectbox(key="of").value, app.selectbox(key="to").value) == ("MTL", "STL")
    assert "chunk, F1, in percent." in words(app)
    seeds = table(app, "seed")
    assert set(seeds["seed"]) == {1, 2, 3}
    assert {"STL", "MTL"} < set(seeds.columns)
    app.segmented_control(key="closer").set_value("per class")
    app.segmented_control(key="task").set_value("ner")
    app.segmented_control(key="on").set_value("test").run()
    classes = table(app, "Annotated")
    assert set(classes["Label"]) == {"PER", "ORG", "LOC", "MISC"}
    assert list(classes["Annotated"]) == sorted(classes["Annotated"], reverse=True)
    store = Store.open()
    runs = [run.id for run in store.runs() if run.config.paradigm == "mtl"]
    f1 = [score.report["MISC"]["f1"] for score in store.scores(runs, "test") if score.task == "ner"]
    row = classes[classes["Label"] == "MISC"].iloc[0]
    assert row["F1 A"] == pytest.approx(100 * sum(f1) / len(f1))
    assert row["Difference"] == pytest.approx(row["F1 A"] - row["F1 B"])
    assert "P A" not in classes
    app.toggle(key="detail").set_value(True).run()
    assert "P A" in table(app, "Annotated")
    # The mistakes and their sentences.
    app.segmented_control(key="closer").set_value("mistakes").run()
    (drawn,) = figures(app, "confusion")
    assert len(drawn["data"][1]["customdata"]) == 5
    listed = table(app, "Mistake")
    app.session_state["mistakes"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    assert f"**{listed['Mistake'][0]}**" in words(app)
    assert "Outlined: not as annotated." in words(app)
    app.session_state["of_whom"] = "STL"
    app.run()


def test_runs_without_predictions_or_on_other_sentences_are_told(open_page: Open) -> None:
    for seed in (1, 2):
        finished_run(mtl(seed), 0.8 + seed / 100)
        finished_run(mtl(seed, paradigm="mrn"), 0.82 + seed / 100)
    assert "Without stored predictions of both" in words(open_page("compare", closer="Differences"))
    assert "its mistakes are unknown" in words(open_page("compare", closer="Mistakes"))
    others = [{"pos": [labels], "ner": [["O", "O"]]} for labels in (["NN", "VB"], ["VB", "NN"])]
    runs = [
        finished_run(mtl(epochs=9, paradigm=p), 0.8, of) for p, of in zip(("mtl", "mrn"), others, strict=True)
    ]
    chosen = open_page("compare", run=",".join(map(str, runs)), closer="Differences")
    assert "Runs tested on different sentences" in words(chosen)


def test_words_are_those_the_run_was_scored_on(finished: Filled) -> None:
    run = Store.open().run(finished.mrn[0])
    gold, _ = Store.open().predictions(run.id, "test", "ner")["ner"]
    sentences = compared_runs.examples(run.config, "test", "ner", gold)
    assert sentences is not None
    assert [len(sentence.tokens) for sentence in sentences] == list(map(len, gold))
    assert compared_runs.examples(run.config, "test", "ner", gold[1:]) is None


def test_other_data_is_not_mixed_in(open_page: Open) -> None:
    finished_run(mtl(fraction=0.05), 0.5)
    finished_run(mtl(), 0.8)
    finished_run(mtl(paradigm="mrn"), 0.9)
    app = open_page("compare")
    assert app.selectbox(key="data").options == ["demo, 100% of the data", "demo, 5% of the data"]
    assert "All 2 runs on demo, 100% of the data." in words(app)
    app.selectbox(key="data").select("demo, 5% of the data").run()
    assert "One configuration only." in app.info[0].value
    assert len(sheets(app)[0]) == 1


def test_encoders_stand_in_blocks_with_published_figures_beside(open_page: Open) -> None:
    # As in the dissertation's table 1, where the encoder is fine-tuned.
    table_1 = {"corpus": "conll2003", "tasks": TASKS, "encoder_training": "full", "pos_score": "seqeval_f1"}
    bert = table_1 | {"encoder": "bert-base-cased"}
    mrn = bert | {"paradigm": "mrn", "alignment": "disjoint", "prior": "paper"}
    for seed in (1, 2):
        for values in (bert, mrn, table_1 | {"encoder": "roberta-base"}):
            finished_run(mtl(seed, **values), 0.9)
    finished_run(mtl(1, **bert | {"encoder_training": "frozen"}), 0.9)
    app = open_page("compare", published="true")
    assert list(sheets(app)[0].index) == [
        "bert-base-cased, fine-tuned",
        "MTL",
        "MRN λ=0.05",
        "MTL, published (table 1)",
        "MRN, published (table 1)",
        "bert-base-cased, frozen",
        "MTL",
        "roberta-base, fine-tuned",
        "MTL",
        "MTL, published (table 1)",
    ]
    figures_of_mrn = r"MRN, published (table 1) & 93.16 $\pm$ 0.07 & 91.49 $\pm$ 0.06 & 90.82 $\pm$ 0.11"
    assert figures_of_mrn in copied_scores(app)


def test_what_a_configuration_costs_stands_beside_on_demand(open_page: Open) -> None:
    measured = finished_run(mtl(1), 0.9)
    finished_run(mtl(1, epochs=7), 0.9)
    usage = Usage(95.0, 3 * 2**29, "gpu")
    facts = run_facts(parameters=108_300_000, trained_parameters=7_800, usage=usage, device="cuda:0")
    Store.open().set_facts(measured, facts)
    app = open_page("compare", published="true", rows="Every row")
    assert [toggle.key for toggle in app.toggle] == ["cost"]  # the dissertation has no figure for these rows
    assert "Parameters" not in sheets(app)[0].columns
    app.toggle(key="cost").set_value(True).run()
    shown = sheets(app)[0][["Parameters", "Trained", "Peak memory", "Time per seed"]]
    shown = shown.replace({"\u00a0": " ", r"\\": ""}, regex=True)
    assert shown.to_numpy().tolist() == [
        ["108.3M", "7,800", "1.50 GB (cuda)", "2 min"],
        ["–"] * 4,
    ]
    assert "summed over tasks" in words(app)
    assert "1.50 GB (cuda)" in copied_scores(app)


def test_many_configurations_are_cut_and_said_to_be(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared_runs, "_MOST_ROWS", 1)
    for epochs in (1, 2):
        finished_run(mtl(epochs=epochs), 0.5)
    app = open_page("compare")
    assert "The newest 1 of 2 configurations on demo" in words(app)
    assert len(sheets(app)[0]) == 1


def test_scores_against_a_number_are_shown_where_configurations_differ_in_it_alone(open_page: Open) -> None:
    for value, scores in ((0.001, (0.80, 0.82)), (0.1, (0.86, 0.88)), (0.01, (0.84, 0.84))):
        for seed, score in enumerate(scores, 1):
            finished_run(mtl(seed, paradigm="mrn", **{"lambda": value}), score)
    first, second, _ = (run.id for run in Store.open().runs() if run.config.seed == 1)
    (drawn,) = figures(app := open_page("compare"), "compare_against")
    assert "One method: dev chose MRN λ=0.1, best of 3 on dev." in words(app)
    assert "They differ in λ." in words(app.segmented_control(key="rows").set_value("every").run())
    assert [trace["y"] for trace in drawn["data"]] == [pytest.approx([81, 84, 87])] * 2
    app.segmented_control(key="lines").set_value("tasks").run()
    assert len(figures(app, "compare_against")[0]["data"]) == 4
    # Without a choice two values are no series.
    store = Store.open()
    of_one = [run.id for run in store.runs() if run.config.lambda_ == 0.1]
    assert figures(open_page("compare", run=f"{first},{second}"), "compare_against")
    assert not figures(open_page("compare", run=",".join(map(str, of_one))), "compare_against")
    store.archive(of_one)
    assert not figures(open_page("compare"), "compare_against")


def test_the_difference_from_a_baseline_is_drawn_paired_by_seed(open_page: Open) -> None:
    """MTL comes first; its line is grey among the scores, and at 0 among the differences."""
    for seed, level in enumerate((0.6, 0.7, 0.8), 1):
        finished_run(mtl(seed), level)
        finished_run(mtl(seed, epochs=9), level - 0.05)
        for gain, value in enumerate((0.001, 0.01, 0.1)):
            finished_run(mtl(seed, paradigm="mrn", lambda_=value), level + gain / 100 + seed / 1000)
    (scores,) = figures(open_page("compare", values="Scores"), "compare_against")
    assert [trace["name"] for trace in scores["data"]] == [
        "MTL · 5 epochs, test",
        "MTL · 5 epochs, dev",
        "MRN, test",
        "MRN, dev",
    ]
    app = open_page("compare")
    (drawn,) = figures(app, "compare_against")
    assert [trace["y"] for trace in drawn["data"]] == [pytest.approx([0.2, 1.2, 2.2])] * 2
    assert max(drawn["data"][0]["error_y"]["array"]) < 0.5 < min(scores["data"][2]["error_y"]["array"])
    assert drawn["data"][0]["x"] != drawn["data"][1]["x"]
    assert "Points over MTL · 5 epochs, paired by seed" in words(app)
    app.selectbox(key="from").select("λ 0.1").run()
    (drawn,) = figures(app, "compare_against")
    assert drawn["data"][0]["y"] == pytest.approx([-2, -1, 0])
    (linked,) = figures(
        open_page("compare", **{"values": "Difference from", "from": "λ 0.1"}), "compare_against"
    )
    assert linked["data"][0]["y"] == pytest.approx([-2, -1, 0])


def test_of_a_sweep_of_two_settings_either_is_shown(open_page: Open) -> None:
    for λ, dropout, seed in itertools.product((0.001, 0.01), (0, 0.1), (1, 2)):
        finished_run(mtl(seed, paradigm="mrn", lambda_=λ, dropout=dropout), 0.7 + seed / 100 + λ + dropout)
    runs = ",".join(str(run.id) for run in Store.open().runs())
    app = open_page("compare", run=runs, rows="Every row")
    settings = app.selectbox(key="against")
    assert len(set(settings.options)) == 4
    for setting in settings.options:
        app.selectbox(key="against").select(setting).run()
        (drawn,) = figures(app, "compare_against")
        assert drawn["layout"]["xaxis"]["title"]["text"] == setting.partition(" · ")[0]
    in_numbers(app)
    assert figures(app, "compare_forest")


def test_scores_against_a_number_are_those_on_the_tables_text(open_page: Open) -> None:
    """The corpus changed before the last was trained; the seed of the first was trained again then too."""
    made = ((0.001, 0.8, "a"), (0.01, 0.81, "a"), (0.1, 0.95, "b"), (0.001, 0.7, "b"))
    ids = [finished_run(mtl(paradigm="mrn", lambda_=λ), score, text=text) for λ, score, text in made]
    app = open_page("compare", run=",".join(map(str, ids)))
    drawn = {}
    for data in ("demo, text a", "demo, text b"):
        app.selectbox(key="data").set_value(data).run()
        (figure,) = figures(app, "compare_against")
        drawn[data] = dict(zip(figure["data"][0]["x"], figure["data"][0]["y"], strict=True))
    assert drawn["demo, text a"] == pytest.approx({0.001: 80, 0.01: 81})
    assert drawn["demo, text b"] == pytest.approx({0.001: 70, 0.1: 95})
