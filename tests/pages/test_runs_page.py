"""The Runs page in its states: filtered, grouped, nothing found, chosen runs acted on, failures explained."""

from __future__ import annotations

import contextlib
import math
import statistics

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import load
from core.events import SplitResult
from core.store import ErrorInfo, MetricKey, RunState, Store
from core.tasks import score_task
from dashboard.runs.curves import dev_curves
from dashboard.runs.table import EXAMPLES
from dashboard.shared import resources
from tests.making import OWNER, claimed, config, run_facts
from tests.making import finished as finished_as
from tests.making import fully_recorded as exchanged
from tests.pages.conftest import (
    Open,
    figures,
    labels,
    listed,
    press,
    problems,
    run_tables,
    sent,
    sheets,
    table,
    words,
)
from tests.pages.filled_store import Filled


def every_column(app: AppTest) -> pd.DataFrame:
    """The first table of runs with all its columns."""
    columns = app.multiselect(key="columns")
    columns.set_value(columns.options).run()
    return listed(app)


def bars(app: AppTest) -> list[tuple[str, int]]:
    """What is in progress, each with its percents: on Runs in a table, elsewhere in the sidebar."""
    rows = sent(app, "bars").get("bars", ())
    on_page = [(f"**{row['name']}**: {row['text']}", round(100 * row["share"])) for row in rows]
    return on_page or [(str(bar.proto.text), bar.proto.value) for bar in app.get("progress")]


def test_configurations_with_their_seeds(open_page: Open, finished: Filled) -> None:
    assert "6 configurations, 20 runs." in words(open_page("runs"))
    assert "pos, dev" in listed(open_page("runs", scores="Dev"))
    mtl_runs = [str(run.id) for run in Store.open().runs() if run.config.paradigm == "mtl"]
    several = open_page("run", id=",".join(mtl_runs))  # as the name of that line leads to it
    assert several.title[0].value == "MTL on demo"
    assert [name.rpartition(" · ")[2] for name in listed(several)["Name"]] == ["seed 1", "seed 2", "seed 3"]


def test_filter_and_sort_in_the_link(open_page: Open, finished: Filled) -> None:
    query = {"filter": "paradigm:mrn lambda<=0.01 seed:1,2", "order": "Each run", "sort": "Best on dev, ner"}
    app = open_page("runs", **query)
    dev = list(listed(app)["ner, test"])
    assert len(dev) == 3
    app.text_input(key="filter").set_value("lamda<0.1").run()
    assert "Character 1: there is no field 'lamda'. Did you mean lambda?" in words(app)
    assert "Tasks with scores are chunk, ner, pos." in words(app)
    assert not run_tables(app)
    for example in EXAMPLES:
        app.text_input(key="filter").set_value(example).run()
        assert "Character" not in words(app)
    app.text_input(key="filter").set_value("state:failed").run()
    assert "No run matches this filter." in words(app)
    press(app, "Clear the filter")
    assert len(listed(app)) == 20


def test_a_name_has_what_no_column_shows(open_page: Open) -> None:
    Store.open().add_runs([config(), config(encoder="bilstm")])
    app = open_page("runs")
    assert [name.count(" · ") for name in listed(app)["Name"]] == [1, 1]
    app.multiselect(key="columns").set_value(["State", "Encoder"]).run()
    shown = listed(app)
    assert list(shown["Name"]) == ["MRN λ=0.001", "MRN λ=0.001"]
    assert len(set(shown["Encoder"])) == 2


def test_a_link_to_the_second_page(open_page: Open) -> None:
    Store.open().add_runs([config(**{"lambda": 0.001 + place / 1000}) for place in range(28)])
    app = open_page("runs", table_page="2")
    assert list(every_column(app)["λ"]) == [0.003, 0.002, 0.001]
    app.text_input(key="filter").set_value("lambda<0.003").run()
    assert len(listed(app)) == 2
    assert len(listed(open_page("runs", table_page="99"))) == 3


def test_the_newest_sweep_leads_to_its_answer(open_page: Open) -> None:
    store = Store.open()
    claimed(store, RunState.SUCCEEDED)
    configs = [config(paradigm="mtl"), config(paradigm="stl", tasks=("pos",)), config()]
    ids = store.add_runs(configs, sweep="Try it, 2026-11-22 15:00:00")
    for run_id in ids[:2]:
        store.claim(OWNER, run_id=run_id)
        store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)
    app = open_page("runs")
    assert bars(app) == [("**Try it**: 2 of 3 done", 67)]
    assert "Newest sweep" not in words(app)
    assert not [button for button in app.button if button.proto.type == "primary"]
    store.claim(OWNER, run_id=ids[2])
    store.finish(ids[2], RunState.FAILED, error=ErrorInfo("TrainingError", "It failed.", ""))
    app = open_page("runs")
    assert bars(app) == []
    assert "Newest sweep (Try it): **2 of 3 done, 1 failed**" in words(app)
    assert f"Run {ids[2]}: what to do" in labels(app, "page_link")
    (primary,) = (button for button in app.button if button.proto.type == "primary")
    assert primary.label == "Compare: does sharing help?"
    primary.click().run()
    assert app.title[0].value == "Compare"
    assert ",".join(map(str, ids)) in app.query_params["run"]


def test_a_sweep_that_ends_on_another_page_leads_to_compare(open_page: Open) -> None:
    store = Store.open()
    ids = store.add_runs([config(paradigm="mtl"), config()], sweep="Try it, 2026-11-22 15:00:00")
    app = open_page("studies")
    assert "ended_compare" not in {button.key for button in app.button}
    for run_id in ids:
        store.claim(OWNER, run_id=run_id)
        store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)
    assert "**Try it**: 2 of 2 done" in words(app.run())
    app.button(key="ended_compare").click().run()
    assert app.title[0].value == "Compare"
    assert app.query_params["run"] == ",".join(map(str, ids))
    assert "ended_compare" not in {button.key for button in app.button}
    assert "ended_compare" not in {button.key for button in open_page("studies").button}, "nothing was seen"


def test_every_launch_that_goes_on_has_a_bar(open_page: Open) -> None:
    """Runs that wait behind a sweep are not in its place."""
    store = Store.open()
    sweep = store.add_runs([config(seed=seed) for seed in range(5)], sweep="λ, 2026-11-22 15:00:00")
    for run_id in sweep[:2]:
        store.claim(OWNER, run_id=run_id)
        store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)
    store.add_runs([config(paradigm="mtl", seed=seed) for seed in range(2)])
    # On Runs they stand on the page, elsewhere in the sidebar.
    for page in ("runs", "studies"):
        app = open_page(page)
        assert bars(app) == [("**Sweep**: 0 of 2 done", 0), ("**λ**: 2 of 5 done", 40)]


def test_a_run_that_trains_by_itself_has_one_bar(open_page: Open, filled: Filled) -> None:
    rows = sent(open_page("runs"), "bars")["bars"]
    assert [(row["run"], row["stops"]) for row in rows] == [(None, False), (filled.live[0], True)]
    assert rows[1]["text"].startswith("Step 260 of 600, epoch 4 of 8")


def test_keywords_and_the_archive(open_page: Open, finished: Filled) -> None:
    store = Store.open()
    app = open_page("runs", run="1,2")
    for keyword in ("x" * 51, "To Check"):
        (keywords,) = (field for field in app.multiselect if field.label == "Keywords of all 2 runs")
        keywords.set_value([keyword]).run()
        assert any("longer than 50" in toast.value for toast in app.toast) == (len(keyword) > 50)
    assert [run.keywords for run in store.runs([1, 2])] == [("to-check",)] * 2
    press(app, "Archive")
    assert [run.id for run in store.runs(archived=True)] == [2, 1]
    assert "2 runs archived." in words(app)
    assert "18 runs" in words(app)
    assert "chosen" not in words(app)
    press(app, "Undo")
    assert store.runs(archived=True) == []
    assert "2 runs chosen" in words(app)
    press(app, "Archive")
    assert "Archived" in words(open_page("run", id="1"))
    app.text_input(key="filter").set_value("archived:yes").run()
    assert "2 runs." in words(app)
    app.query_params["run"] = "1,2"
    app.run()
    press(app, "Restore")
    assert store.runs(archived=True) == []
    store.archive([run.id for run in store.runs()])
    press(app, "Clear the filter")
    assert any("All runs are archived" in info.value for info in app.info)


def test_several_chosen_runs_show_their_differences(
    open_page: Open, finished: Filled, doubled_values: list[str]
) -> None:
    app = open_page("runs", run="1,2")
    assert list(table(app, "MRN λ=0.1").loc["λ"]) == ["0.01", "≠ 0.1"]
    shown = {"Compare", "Curves", "Relations", "Tag", "Clone", "Archive"}
    assert shown <= {*labels(app, "page_link"), *(button.label for button in app.button)}
    assert not {"Stop", "Resume", "Retry", "Restore"} & {button.label for button in app.button}
    assert "Differences" not in words(open_page("runs", run="1"))
    # Seeds of one configuration have no table of differences, only the sentence in the bar.
    seeds = [run.id for run in Store.open().runs_of([Store.open().run(1).configuration_id])]
    alike = open_page("runs", run=",".join(map(str, seeds)))
    assert f"These {len(seeds)} runs differ only in the seed." in words(alike)
    assert "Differences" not in words(alike)
    assert not doubled_values


def test_one_run_has_a_page_of_its_own(open_page: Open, finished: Filled) -> None:
    app = open_page("run", id="2")
    assert app.title[0].value.replace("\\", "") == "Run 2 · MRN λ=0.1 · demo · seed 1"
    assert {"All runs", "All 3 seeds"} <= set(labels(app, "page_link"))
    assert not run_tables(app)
    press(app, "Archive")
    assert Store.open().run(2).archived
    press(app, "Undo")
    assert not Store.open().run(2).archived
    Store.open().delete_runs([8])
    assert "All 2 seeds" in labels(app.run(), "page_link")
    shown = words(app)
    assert "has the best mean dev score over tasks; its weights were kept." in shown
    assert "Strict F1 leaves such spans out" in shown
    seeds = [run.id for run in Store.open().runs_of([Store.open().run(2).configuration_id])]
    of_seeds = [score.score for score in Store.open().scores(seeds, "test") if score.task == "pos"]
    mean, sd = 100 * statistics.fmean(of_seeds), 100 * statistics.stdev(of_seeds)
    assert app.metric[0].delta == f"mean of {len(of_seeds)} seeds: {mean:.2f}\u00a0±\u00a0{sd:.2f}"
    gone = open_page("run", id="999")
    assert [warning.value for warning in gone.warning] == ["There is no run 999 in this store."]


def report_by_label(app: AppTest) -> pd.DataFrame:
    """The report that is shown, in percent."""
    (shown,) = sheets(app)
    frame: pd.DataFrame = shown.map(lambda text: math.nan if text == "–" else float(text.replace("\\", "")))
    return frame.set_axis([name.replace("\u00a0", " ") for name in frame.index])


def test_the_report_of_one_run_by_label(open_page: Open, finished: Filled) -> None:
    run_id = finished.mrn[0]
    (score,) = (score for score in Store.open().scores([run_id], "test") if score.task == "ner")
    report = report_by_label(open_page("run", id=str(run_id), run_part="By label", report_task="ner"))
    assert list(report.index) == ["micro average", "macro average", "weighted average", *score.report]
    assert report["F1"]["micro average"] == pytest.approx(100 * score.score, abs=0.005)
    assert report["F1"]["macro average"] == pytest.approx(report["F1"][3:].mean(), abs=0.005)
    assert report["Support"]["micro average"] == report["Support"][3:].sum()
    dev = open_page("run", id=str(run_id), run_part="By label", report_task="pos", report_split="dev")
    (accuracy,) = (
        score.secondary("accuracy") for score in Store.open().scores([run_id], "dev") if score.task == "pos"
    )
    assert accuracy is not None
    assert report_by_label(dev)["Precision"]["micro average"] == pytest.approx(100 * accuracy, abs=0.005)


def test_the_report_of_a_run_with_dev_scores_alone(open_page: Open) -> None:
    store = Store.open()
    without = open_page("run", id=str(claimed(store, RunState.LOST)), run_part="By label")
    assert not sheets(without)
    assert not without.metric
    run_id = claimed(store)
    score = score_task("ner", "iob2", [["B-PER", "O"]], [["B-PER", "B-LOC"]])
    store.add_result(run_id, SplitResult("dev", 1, (score,), {}, {}))
    app = open_page("run", id=str(run_id), run_part="By label", report_split="test")
    report = report_by_label(app)
    assert list(report["Precision"])[:3] == [50.0, 100.0, 100.0]
    assert {name: math.isnan(report[name]["LOC"]) for name in report} == {
        **dict.fromkeys(("Precision", "Recall", "F1"), True),
        "Support": False,
    }
    assert "not annotated, so undefined" in words(app)


def test_an_undefined_score_is_a_dash_with_a_reason(open_page: Open) -> None:
    store = Store.open()
    run_id = claimed(store)
    for split in ("dev", "test"):
        blind = score_task("ner", "iob2", [["O", "O"]], [["O", "B-PER"]])
        store.add_result(run_id, SplitResult(split, 1, (blind,), {}, {}))
    app = open_page("run", id=str(run_id))
    assert [metric.value for metric in app.metric] == ["–"]
    assert sheets(app)[0].loc["ner", ["Test", "Dev"]].tolist() == ["–", "–"]
    for split in ("dev", "test"):
        assert f"counts in no mean: the {split} split has no span" in words(app)
    lines = listed(open_page("runs"))
    assert lines["ner, test"].isna().all()


def test_deleting_says_what_goes_and_links_to_it_say_so(open_page: Open, finished: Filled) -> None:
    app = open_page("runs", run="1,2")
    assert "Delete 2 runs" not in [button.label for button in app.button]
    app.session_state["delete_runs"] = True
    app.run()
    assert "12 scores with predictions, 40 relation snapshots and all curves" in words(app)
    press(app, "Delete 2 runs")
    assert Store.open().runs([1, 2]) == []
    press(app, "Undo")
    assert len(Store.open().runs([1, 2])) == 2
    assert app.query_params["run"] in ("1,2", ["1,2"])
    app.session_state["delete_runs"] = True
    press(app.run(), "Delete 2 runs")
    app.query_params["run"] = "1,2"
    app.run()
    assert [warning.value for warning in app.warning] == ["Runs 1 and 2 were deleted."]
    assert "chosen" not in words(app)
    for page in ("curves", "relations", "tag", "compare"):
        assert [warning.value for warning in open_page(page, run="1").warning] == ["Run 1 was deleted."]


def test_names_and_scores_come_first_and_the_reader_chooses_the_rest(open_page: Open, filled: Filled) -> None:
    app = open_page("runs")
    scores = [f"{task}, test" for task in ("pos", "chunk", "ner")]
    assert list(listed(app)) == ["Name", *scores, "State"]
    assert {"λ", "Time", "Queued", "Done"} <= set(every_column(app))
    app.multiselect(key="columns").set_value([]).run()
    assert list(listed(app)) == ["Name", *scores, "State"]
    app = open_page("runs", columns=["ner, test", "Time"])
    assert list(listed(app)) == ["Name", "ner, test", "Time"]
    # What differs stands in the names, and each share of the data has a table of its own.
    Store.open().add_runs([config(paradigm="mtl", encoder="sc-lstm"), config(fraction=0.05)])
    small, whole = run_tables(open_page("runs"))
    assert [small["title"], whole["title"]] == ["demo · 5% of the data", "demo · 100% of the data"]
    assert "5% of the data" not in [words for words, _ in small["about"]]
    assert small["when"] == "just now"
    assert any("sc-lstm" in line["name"] for line in whole["lines"])
    assert [small["blanks"], whole["blanks"]] == [1, 0]  # as many columns in both: states line up


def test_means_stand_before_their_spread_and_names_are_what_they_are(open_page: Open) -> None:
    """A mean and its spread are apart, so that the spread can be quieter. No name is cut or changed."""
    name = "morphological_feature_of_the_treebank_<b>bold</b>"
    with contextlib.closing(Store.open()) as store:
        for seed, right in ((1, 3), (2, 2)):
            score = score_task(name, "plain", [["A"] * right + ["B"] * (4 - right)], [["A"] * 4])
            described = config(corpus="/<img src=x>", paradigm="stl", tasks=(name,), seed=seed)
            finished_as(store, described, run_facts(), SplitResult("test", 1, (score,), {}, {}))
    (shown,) = run_tables(open_page("runs"))
    scores = shown["columns"][0]
    assert (shown["title"], scores["head"]) == ("<img src=x>", name)
    assert (scores["texts"], scores["notes"]) == (["62.50"], ["± 17.68 (2)"])


def test_ticks_choose_the_runs_of_lines_and_leave_others(open_page: Open, finished: Filled) -> None:
    app = open_page("runs", run="7,1,2")
    before = {line["name"]: (line["runs"], line["chosen"]) for line in run_tables(app)[0]["lines"]}
    weak, strong = before["MRN λ=0.01 · cooccurrence"], before["MRN λ=0.1"]
    assert (weak[1], strong[1]) == (2, 1)

    def ticked() -> None:
        from dashboard.runs import table

        table.apply_ticks(off={2}, on=[1, 7, 13])

    app = AppTest.from_function(ticked)
    app.query_params["run"] = "7,1,2,99"
    assert app.run().query_params["run"] == "7,1,99,13"


def test_states_have_words_and_only_runs_that_go_on_have_progress(open_page: Open, filled: Filled) -> None:
    rows = every_column(open_page("runs", order="Each run"))
    shown = dict(
        zip(rows["Run"], zip((state for (state,) in rows["State"]), rows["Done"], strict=True), strict=True)
    )
    state, done = shown[filled.finished[0]]
    assert (state, math.isnan(done)) == ("✓ Succeeded", True)
    assert shown[filled.live[0]] == ("▶ Running", pytest.approx(100 * 260 / 600))


def test_a_run_in_progress_has_its_loss_and_stop_beside_its_progress(open_page: Open, filled: Filled) -> None:
    run_id = str(filled.live[0])
    app = open_page("run", id=run_id)
    assert len(figures(app, "run_loss")) == 1
    assert [button.label for button in app.button].count("Stop") == 1
    press(app, "Stop")
    assert Store.open().run(filled.live[0]).state is RunState.CANCELLING
    assert "Stop" not in [button.label for button in app.button]
    ended = open_page("run", id=str(filled.finished[0]))
    assert not figures(ended, "run_loss")
    measures = [metric.label.rpartition(", ")[2] for metric in ended.metric]
    assert measures == ["test accuracy", "test F1", "test F1"]


def test_a_diverged_run_is_cloned_with_the_recommended_rate_or_retried(
    open_page: Open, filled: Filled
) -> None:
    app = open_page("run", id=str(filled.failed[0]))
    rate = f"{(Store.open().run(filled.failed[0]).config.lr_heads or 0) / 3:.2g}"
    (label,) = (button.label for button in app.button if button.label.startswith("Clone with lr_heads"))
    assert label.split()[3] == rate
    press(app, label)
    assert app.title[0].value == "Launch"
    assert app.text_input(key="launch_lr_heads").value == rate
    app = open_page("run", id=str(filled.failed[0]))
    assert "Resume" not in [button.label for button in app.button]
    press(app, "Retry")
    assert Store.open().run(filled.failed[0]).state is RunState.QUEUED


def test_a_file_that_is_no_export_is_refused_and_a_run_without_checkpoint_has_no_download(
    open_page: Open, finished: Filled
) -> None:
    app = open_page("runs")
    app.session_state["import"] = True
    app.run()
    app.file_uploader(key="import_file").upload("run.zip", b"no zip", "application/zip").run()
    press(app, "Import this run")
    assert len(problems(app)) == 1
    app = open_page("run", id=str(finished.finished[0]))
    app.session_state["export"] = True
    app.run()
    assert len(problems(app)) == 1
    assert not app.get("download_button")


def test_predictions_of_another_system_are_imported(open_page: Open, finished: Filled) -> None:
    rows = [(sentence.tokens, sentence.labels["ner"]) for sentence in load("demo").split("test")]
    text = "\n".join("".join(f"{word} {label}\n" for word, label in zip(*row, strict=True)) for row in rows)
    app = open_page("runs")
    app.session_state["import"] = True
    app.session_state["import_kind"] = "Predictions"
    app.run()
    press(app, "Import these predictions")
    assert "Choose a file" in problems(app)[0]
    app.file_uploader(key="predictions_file").upload("ner.conll", text.encode(), "text/plain").run()
    for key, value in {"corpus": "demo", "system": "spaCy", "tasks": "nerd"}.items():
        app.text_input(key=f"predictions_{key}").input(value)
    press(app, "Import these predictions")
    assert "nerd" in problems(app)[0]
    app.text_input(key="predictions_tasks").input("ner")
    press(app, "Import these predictions")
    assert not problems(app)
    run = max(Store.open().runs(), key=lambda run: run.id)
    assert (run.config.system, run.config.tasks, run.state) == ("spaCy", ("ner",), RunState.SUCCEEDED)
    app = open_page("run", id=str(run.id))
    assert "Clone" not in [link.proto.label for link in app.get("page_link")]


def test_run_in_full(open_page: Open, filled: Filled) -> None:
    app = open_page("run", id=str(filled.finished[0]), run_part="Configuration")
    assert "lambda" in list(table(app, "Meaning")["Field"])
    app.segmented_control(key="run_part").set_value("History").run()
    assert "succeeded" in list(table(app, "What")["What"])
    app.segmented_control(key="run_part").set_value("Log").run()
    assert any("read corpus demo" in code.value for code in app.code)


def test_a_runs_dev_scores_stand_beside_its_seeds(open_page: Open, finished: Filled) -> None:
    store, run_id = Store.open(), finished.finished[0]
    run = store.run(run_id)
    seeds = [
        other.id
        for other in store.runs_of([run.configuration_id], {RunState.SUCCEEDED})
        if other.config.seed != run.config.seed
    ]
    series = resources.curve_series(store.runs([run_id, *seeds]), [MetricKey("ner", "dev", "score")])
    (ner,) = dev_curves(run, series)
    ends = {curve.run_id: 100 * curve.value[-1] for curve in series}
    assert len(ends) == len(seeds) + 1 > 2
    assert ner.run.iloc[-1] == pytest.approx(ends[run_id])
    assert ner.mean.iloc[-1] == pytest.approx(np.mean(list(ends.values())))
    assert ner.sd.iloc[-1] == pytest.approx(np.std(list(ends.values()), ddof=1))
    app = open_page("run", id=str(run_id))
    assert f"mean ± SD of its {len(ends)} seeds" in words(app)
    assert run.best_epoch is not None
    assert f"** ◆ {ner.run[run.best_epoch]:.2f}\n" in words(app)
    assert [len(figures(app, f"dev_{task}")) for task in run.config.tasks] == [1] * len(run.config.tasks)


def test_chosen_runs_are_carried_to_the_next_page(open_page: Open, finished: Filled) -> None:
    app = open_page("runs", run="3,1")
    app.switch_page("curves/page.py").run()
    assert app.multiselect(key="curves_runs").value == ["3", "1"]


def test_an_imported_run(open_page: Open) -> None:
    """Of another laboratory, which no worker here has trained."""
    with contextlib.closing(Store.open("sqlite://")) as elsewhere, contextlib.closing(Store.open()) as store:
        run = str(store.import_record(elsewhere.record(exchanged(elsewhere)), "Imported."))
    assert "Succeeded" in words(open_page("run", id=run))
    assert "**pos** and **ner** over training" in words(open_page("relations", run=run))


def test_a_link_to_chosen_runs_opens_the_page_that_has_them(open_page: Open) -> None:
    ids = Store.open().add_runs([config(**{"lambda": 0.001 + place / 1000}) for place in range(60)])
    app = open_page("runs", run=f"{ids[2]},{ids[1]}")
    assert "not shown" not in words(app)
    assert app.session_state["table_page"] == 3
    # To other pages one still gets.
    app.session_state["table_page"] = 1
    app.run()
    assert "2 not shown" in words(app)
    assert len(listed(open_page("runs", table_page="2", run=str(ids[2])))) == 25


def test_the_chosen_runs_can_be_shown_alone(open_page: Open, finished: Filled) -> None:
    app = open_page("runs", run="1,2")
    assert len(listed(app)) > 2
    app.toggle(key="only_chosen").set_value(True).run()
    assert "2 configurations, 2 runs." in words(app)
    assert len(listed(open_page("runs", run="1,2", only_chosen="true"))) == 2
    assert len(listed(open_page("runs", only_chosen="true"))) > 2  # nothing is chosen


def test_a_head_that_learned_nothing_is_marked(open_page: Open) -> None:
    """Its training succeeded, and a score of 0 is easily read as one among others."""
    score = score_task("ner", "iob2", [["B-PER"]], [["O"]])
    with contextlib.closing(Store.open()) as store:
        for seed in (1, 2):
            result = SplitResult("test", 1, (score,), {}, {})
            run = finished_as(store, config(paradigm="stl", tasks=("ner",), seed=seed), run_facts(), result)
    app = open_page("runs")
    (states,) = listed(app)["State"]
    assert list(states) == ["✓ 2", "! ner learned nothing"]
    assert "ner has learned nothing (0 with each seed)" in words(app)
    (longer,) = (link.proto for link in app.get("page_link") if "Train again" in link.proto.label)
    assert longer.label == f"Train again for {4 * config().epochs} epochs"
    assert "clone=1%2C2" in longer.query_string
    assert any("ner learned nothing" in text for text in words(open_page("run", id=str(run))).split("\n"))


def test_the_page_of_a_run_without_its_number_is_of_the_chosen_one(open_page: Open) -> None:
    run = claimed(Store.open(), RunState.SUCCEEDED)
    assert f"Run {run}" in open_page("run", run=str(run)).title[0].value
    app = open_page("run")
    assert "No run chosen" in words(app)
    assert "0 runs" not in words(app)


def test_imported_runs_are_no_launch(open_page: Open) -> None:
    store = Store.open()
    record = store.record(claimed(store, RunState.SUCCEEDED))
    store.delete_runs([record.run.id])
    imported = store.import_record(record, "Imported.")
    assert "Newest sweep" not in words(open_page("runs"))
    # They hold scores alone: what they lack did not end early, and cannot be had by a retry.
    for page in ("curves", "relations"):
        shown = words(open_page(page, run=str(imported)))
        assert "hold" in shown
        assert "ended before" not in shown
        assert "retry" not in shown
