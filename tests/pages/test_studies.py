"""The page Studies: what may be said of them, how it is drawn, and the page itself."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.corpora.types import Planted
from core.events import Usage
from core.figures import MUTED, TEXT
from core.results.figures import Forest, Mark, forest_chart
from core.store import RunState, Store
from core.studies import STUDIES, Method, Study
from core.studies.analysis import MEAN, FinalScores, Result, analyse, joined
from core.studies.answer import answer, from_bases, headline, recorded_runs
from core.studies.dissertation import BASE_SIZE, for_encoder
from core.studies.factors import gains_by_factor, trends
from core.studies.recorded import PAIRS, records_of
from core.studies.study import DevByRun, with_runs
from core.wording import capitalised
from dashboard.studies.charts import factor_charts, settings_chart
from dashboard.studies.views import (
    alone_in_a_setting,
    failures,
    gains_forest,
    has_scores,
    left_out,
    overview,
    settings_forest,
    small_forest,
    study_forest,
)
from dashboard.theme import colours
from jobs.studies.follow import follow
from jobs.studies.progress import settings_with_runs, sweep_name
from tests.making import claimed, refuse_to_read, run_facts
from tests.pages.conftest import (
    Open,
    figures,
    labels,
    sheets,
    words,
)
from tests.studying import METHODS, Workers, finished, score_of, setting, study

TUNED = replace(setting("tuned", encoder_training="full", epochs=1), part="fine-tuned")


def toy(*more: Any) -> Study:
    return study(setting("whole"), replace(setting("half", fraction=0.5), targets=("ner",)), *more)


def result(made: Study, left_out: frozenset[RunConfig] = frozenset()) -> Result:
    setting_runs = with_runs(made, made.settings[0])
    runs = [run for run in setting_runs.runs() if run not in left_out]
    dev, test = (
        {run: dict.fromkeys(run.tasks, score_of(run, split)) for run in runs} for split in ("dev", "test")
    )
    return analyse(setting_runs, DevByRun(dev), FinalScores(test), left_out)


def nothing(made: Study) -> Result:
    return analyse(with_runs(made, made.settings[0]), DevByRun({}), FinalScores({}))


class TestViews:
    def test_the_answer_names_who_helps_and_who_does_not(self) -> None:
        sentence = answer(result(toy()))
        assert sentence.startswith("Against MTL, MRN (+5.20 [")
        assert sentence.endswith("]) scores higher; equivalent for STL. 3 seeds.")
        assert headline(result(toy())) == "One of two methods beats MTL on whole: MRN (+5.2 points)."
        assert from_bases(result(toy())) == "3 seeds."
        assert headline(nothing(toy())) == answer(nothing(toy()))
        assert "One seed each, so no interval." in answer(result(toy().with_seeds(1)))
        assert answer(nothing(toy())) == "No method can be compared with MTL yet."
        assert has_scores(result(toy()))
        assert not has_scores(nothing(toy()))

    def test_the_forest_has_a_mark_per_family_and_target(self) -> None:
        view = study_forest(result(toy()))
        assert (view.rows, view.reference) == (("MRN", "STL"), "MTL")
        assert view.targets == ("pos", "ner", "mean")
        marks = [(mark.row, mark.target) for mark in view.marks]
        assert marks == list(itertools.product((0, 1), view.targets))
        mean = view.marks[2]
        assert mean.points == pytest.approx(5.2)
        assert mean.low is not None
        assert mean.high is not None
        assert mean.low < mean.points < mean.high
        assert mean.hover.startswith("MRN, mean: higher, +5.20 [+4.95, +5.45]")

    def test_a_small_forest_has_a_row_per_method_and_escapes_their_names(self) -> None:
        view = study_forest(result(toy()), ("mean",))
        drawn = small_forest(replace(view, rows=("MRN", "<b>STL</b>")), "<i>F1</i> over MTL")
        assert "<b>" not in drawn
        assert "&lt;i&gt;F1&lt;/i&gt; over MTL" in drawn
        assert re.findall(r'<th scope="row">(.*?)</th>', drawn) == ["MRN", "&lt;b&gt;STL&lt;/b&gt;"]
        assert [" filled" in row for row in drawn.split("<tr ")[1:]] == [True, False]
        assert drawn.count("<td>+5.20</td>") == 1

    def test_a_small_forest_has_the_largest_gains_and_losses_of_many_methods_and_an_axis(self) -> None:
        marks = tuple(Mark(row, MEAN, row - 4.0, row - 4.5, row - 3.5, "", "higher") for row in range(9))
        view = Forest(tuple("abcdefghi"), (MEAN,), "MTL", marks)
        drawn = small_forest(view, "F1")
        assert re.findall(r'<th scope="row">(.*?)</th>', drawn) == ["i", "h", "g", "b", "a"]
        assert re.findall('class="tick"[^>]*>(.*?)<', drawn) == ["−4", "−2", "0", "+2", "+4"]
        assert (left_out(view), left_out(replace(view, marks=marks[:5]))) == (4, 0)
        named = small_forest(view, "F1", ["e"])
        assert re.findall(r'<th scope="row">(.*?)</th>', named) == ["i", "h", "e", "b", "a"]
        assert re.findall('<tr class="(.*?)"', named) == ["other", "other", "lead", "other", "other"]

    def test_settings_stand_under_what_they_share_and_the_largest_gain_of_each_is_bold(self) -> None:
        record = records_of("priors")[0]
        parts = [record.result(each) for each in record.settings if each.part == "pooling"]
        sheet = overview(joined(parts))
        assert [(block.title, len(block.rows)) for block in sheet.blocks] == [
            ("", 2),
            ("NER, 500 words, beside five simulated tasks", 5),
            ("UPOS of LinES, 500 words, beside five simulated tasks", 2),
            ("POS of two corpora", 2),
        ]
        assert {"Ridge", "Paper, tasks"}.isdisjoint(sheet.head)
        rows = [row for block in sheet.blocks for _, row in block.rows]
        bold = [[entry.text for entry in row if entry is not None and entry.bold] for row in rows]
        assert [len(of_row) for of_row in bold] == [1] * len(rows)
        assert bold[2] == ["+15.18"]
        assert alone_in_a_setting(joined(parts)) == (
            "Best of those in one setting alone: MRN with the published prior on NER, 500 words, beside five "
            "simulated tasks, 30 to 95% of labels kept (+16.17)."
        )
        assert {entry.text for row in rows for entry in row if entry is not None and entry.is_number} >= {"–"}

    def test_settings_of_one_method_that_differ_in_two_values_are_a_grid(self) -> None:
        record = records_of("simulator")[0]
        sheet = overview([record.result(each) for each in record.settings if each.part == "balanced"])
        assert sheet.head == ("Setting", *(f"α = {alpha}" for alpha in ("0.2", "0.6", "0.8", "0.93", "1")))
        assert [(block.title, len(block.rows)) for block in sheet.blocks] == [
            (f"NER on {words} words", 4) for words in ("500", "1,000", "2,000")
        ]
        assert next(name for name, _ in sheet.blocks[0].rows) == "1 simulated task"

    def test_the_chart_of_a_part_has_settings_under_heads_and_intervals_of_what_its_answer_is_of(
        self,
    ) -> None:
        record = records_of("priors")[0]
        parts = joined([record.result(each) for each in record.settings if each.part == "pooling"])
        view = settings_forest(parts)
        assert [view.rows[head] for head in sorted(view.heads)] == [
            "NER, 500 words, beside five simulated tasks",
            "UPOS of LinES, 500 words, beside five simulated tasks",
            "POS of two corpora",
        ]
        assert not view.heads & {mark.row for mark in view.marks}
        chart = settings_chart(view, ["Relational, tasks", "Pooled"])
        head = chart.layout["yaxis"]["ticktext"][min(view.heads)]
        assert head == "<b>NER, 500 words, beside<br>five simulated tasks</b>"
        traces = {trace["name"]: trace for trace in chart.data}
        assert [name for name, trace in traces.items() if trace["error_x"]["array"]] == [
            "Relational, tasks", "Pooled", "Fixed task correlation",
        ]  # fmt: skip
        assert len(traces["Pooled"]["x"]) == len(parts)
        assert traces["Fixed task correlation"]["marker"]["color"][0] == MUTED
        assert len(traces) == 3
        assert chart.layout["xaxis"]["title"]["text"] == "Points gained over MTL (hollow: undecided)"

    def test_decided_pairs_are_the_rows_of_a_forest_of_gains(self) -> None:
        gains = records_of("transfer")[0].gains(PAIRS)
        view = gains_forest(gains, STUDIES["transfer"].pairs)
        assert [round(mark.points, 2) for mark in view.marks] == [5.36, 3.38, 0.56, -2.90, -3.86]
        assert view.rows[-1] == "STREUSLE MWEs beside LinES relations"

    def test_values_whose_texts_would_lie_on_each_other_have_a_tick_without_one(self) -> None:
        record = records_of("simulator")[0]
        grid = [record.result(each) for each in record.settings if each.part == "published"]
        axis = factor_charts(gains_by_factor(grid), trends(grid), "F1")["alpha"].layout["xaxis"]
        assert list(axis["ticktext"]) == ["0.2", "0.75", "0.9", "", "1"]
        assert axis["tickvals"][3] == 0.97

    def test_failures_are_counted(self) -> None:
        made = toy()
        lost = next(iter(with_runs(made, made.settings[0]).candidates["mtl"][0].runs_with([1])))
        assert list(failures([result(made), result(made, left_out=frozenset({lost}))])) == [("Whole", 1)]

    def test_a_task_has_its_colour_and_what_holds_is_filled(self) -> None:
        look = colours(["pos", "chunk", "ner"])
        chart = forest_chart(study_forest(result(toy())), look)
        assert [trace["marker"]["color"] for trace in chart.data] == [look["pos"], look["ner"], TEXT]
        assert [list(trace["marker"]["symbol"]) for trace in chart.data] == [["circle", "circle"]] * 3
        assert chart.layout["yaxis"]["range"] == (1.5, -0.5)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, open_page: Open) -> Open:
    """The page, with a registered study of two parts."""
    monkeypatch.setitem(STUDIES, "toy", toy(TUNED))

    def open_(**query: Any) -> AppTest:
        return open_page("studies", study="toy", **query)

    return open_


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A laboratory in which the study's first part was run to its end."""
    home = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        store, made = Store.open(), toy()
        settings = settings_with_runs(made, made.settings)
        follow(store, settings, lambda _: None, engine=Workers(), sleep=lambda _: None)
        store.close()
    return home


@pytest.fixture
def run(template: Path, laboratory: Path) -> None:
    """The study's first part, run to its end."""
    for path in template.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands left to processes of their own. This process, which lives, stands for each."""
    commands: list[list[str]] = []

    def start(command: Sequence[str], _store_url: str) -> SimpleNamespace:
        commands.append(list(command[command.index("study") :]))
        return SimpleNamespace(pid=os.getpid(), poll=lambda: None)

    monkeypatch.setattr("jobs.studies.followers.start", start)
    return commands


def opened(app: AppTest, menu: str) -> AppTest:
    """The page with that menu open."""
    app.session_state[menu] = True
    return app.run()


class TestLaunch:
    def test_the_table_has_a_row_for_each_study(
        self, open_page: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        open_page("launch")  # a test's app opens this page first, which reads the demo corpus
        refuse_to_read(monkeypatch)
        app = open_page("studies")
        assert [link.strip("*").replace("\\", "") for link in labels(app, "page_link")[-len(STUDIES) :]] == [
            study.title for study in STUDIES.values()
        ]
        forests = [element.proto.body for element in app.main.get("html")]
        recorded = [name for name in STUDIES if records_of(name)]
        rows = [forest.count("<tr ") for forest in forests[-len(STUDIES) + 1 :]]
        marked = dict(zip(recorded, rows, strict=True))
        # The decided pairs of `transfer`, the methods of the first setting of other studies.
        assert marked["transfer"] == 5
        assert marked["priors"] == 5  # the largest gains and losses
        assert min(marked.values()) > 1
        assert not [button for button in app.button if str(button.key).startswith("launch_")]

    def test_what_takes_long_or_unknown_time_is_confirmed(self, open_page: Open) -> None:
        app = opened(open_page("studies"), "study_priors_menu")
        small, whole = (app.button(key=f"launch_priors{suffix}") for suffix in ("_small", ""))
        assert (small.disabled, whole.disabled) == (True, True)
        assert app.checkbox(key="sure_priors_small").label == "Launch 74 runs (duration unknown)"
        commands = {code.value for code in app.code}
        assert commands == {"mrnlab study priors", "mrnlab study priors --setting both-pos-300"}
        app.checkbox(key="sure_priors").check().run()
        assert not app.button(key="launch_priors").disabled

    def test_the_page_of_a_study_opens_with_its_records_and_goes_on_with_them(self, open_page: Open) -> None:
        study = STUDIES["task-embeddings"]
        app = open_page("studies", study=study.name)
        assert app.segmented_control(key="results").value == "published"
        (drawn,) = figures(app, "forest_mtl")
        assert [name.replace("<br>", " ") for name in drawn["layout"]["yaxis"]["ticktext"]] == [
            "A projected embedding",
            "An embedding in the attention",
            "An embedding at the input",
        ]
        assert "All studies" in labels(app, "page_link")
        app.button(key=f"add_{study.name}").click().run()
        (record,) = records_of(study.name)
        assert {run.state for run in Store.open().runs()} == {RunState.SUCCEEDED}
        assert len(Store.open().runs()) == record.runs
        assert not [button for button in app.button if study.name in str(button.key)]  # nothing is left to do
        published = sheets(app)[1]
        app.segmented_control(key="results").set_value("store").run()
        assert sheets(app)[1].equals(published)

    @pytest.mark.parametrize("state", [None, RunState.RUNNING, RunState.FAILED])
    def test_a_row_says_what_this_store_has(
        self, open_page: Open, monkeypatch: pytest.MonkeyPatch, state: RunState | None
    ) -> None:
        monkeypatch.setitem(STUDIES, "toy", toy(TUNED))
        run = with_runs(toy(), toy().settings[0]).candidates["mtl"][0].runs[1][0]
        if state is not None:
            claimed(Store.open(), state, **run.values())
        # An address of an unknown study leads to the table.
        app = open_page("studies", study="nothing")
        said = [text.value for text in app.markdown if "In this store" in text.value]
        wanted = {RunState.RUNNING: "1 queued or in progress", RunState.FAILED: "1 failed"}
        assert len(said) == (state is not None)
        assert all(wanted[state] in text for text in said if state is not None)
        stops = [button.key for button in app.button if str(button.key).startswith("stop_")]
        assert stops == ["stop_toy"] * (state is RunState.RUNNING)

    def test_launch_queues_and_leaves_the_rest_to_the_command(
        self, page: Open, started: list[list[str]]
    ) -> None:
        app = opened(page(), "toy_menu")
        assert "No run of this part has finished in this store." in words(app)
        app.checkbox(key="sure_part").check().run()
        app.button(key="launch_part").click().run()
        assert started == [["study", "toy", "--part", "one"]]
        made = toy(TUNED)
        store = Store.open()
        queued = [run.config for run in store.runs()]
        first = settings_with_runs(made, made.settings)[0]
        assert len(queued) == len(set(queued)) > 0
        assert set(queued) <= set(first.runs())
        assert app.button(key="stop_toy").help.startswith(f"{len(queued)} runs queued")
        # While a process follows the study nothing of it is launched again.
        assert not [button for button in app.button if str(button.key).startswith("launch_toy")]

    def test_stop_ends_the_process_and_what_waits(
        self, page: Open, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        killed: list[int] = []
        monkeypatch.setattr("jobs.studies.followers.kill", lambda owner: killed.append(owner.pid))
        app = opened(page(), "toy_menu")
        app.checkbox(key="sure_toy").check().run()
        app.button(key="launch_toy").click().run()
        assert started == [["study", "toy"]]
        app.button(key="stop_toy").click().run()
        assert killed == [os.getpid()]
        assert {run.state for run in Store.open().runs()} == {RunState.CANCELLED}
        # What was stopped is taken up again; without a process that follows it can be.
        monkeypatch.setattr("dashboard.studies.controls.follower", lambda *_: None)
        opened(app, "toy_menu").checkbox(key="sure_toy").check().run()
        app.button(key="launch_toy").click().run()
        assert {run.state for run in Store.open().runs()} == {RunState.QUEUED}

    def test_what_cannot_be_run_here_is_said_and_nothing_is_started(
        self, open_page: Open, started: list[list[str]]
    ) -> None:
        app = opened(open_page("studies"), "study_priors_menu")
        app.checkbox(key="sure_priors_small").check().run()
        app.button(key="launch_priors_small").click().run()
        assert "both-pos-300 is left out: " in words(app)
        assert (started, Store.open().runs()) == ([], [])


@pytest.mark.usefixtures("run")
class TestPage:
    def test_answers_charts_and_tables(self, page: Open) -> None:
        app = page()
        assert "Does it work?" in words(app)
        assert "MRN beats MTL in both settings." in words(app)
        assert words(app).count("beats MTL on") == 2
        (by_setting,) = figures(app, "by_setting")
        assert [trace["name"] for trace in by_setting["data"]] == ["MRN", "STL"]
        assert "from MTL, mean over tasks; 3 seeds, paired. Bars: 95% intervals. ● decided" in words(app)
        assert app.multiselect(key="setting").value == ["whole", "half"]
        assert [len(chart["data"]) for chart in figures(app, "forest_whole")] == [3]
        overview, whole, half, *_ = sheets(app)
        assert list(overview["MRN"]) == [":red[**+5.20**]"] * 2
        assert list(overview["STL"]) == ["≈ 0.00", "≈ 0.00"]
        assert whole.loc["MTL", "Verdict"] == "reference"
        assert whole.loc["MRN (λ=0.1)", "Points over MTL"].startswith(":red[**+5.20**]")
        assert whole.loc["MRN (λ=0.1)", "Verdict"] == "higher"
        assert list(half)[:2] == ["ner, %", "Points over MTL"]  # of one target there is no mean beside
        assert not app.warning

    def test_methods_of_several_parts_may_have_one_title(
        self, page: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        again = Method("mrn-again", "MRN", METHODS[-1].candidates)
        monkeypatch.setitem(STUDIES, "toy", replace(toy(TUNED), methods=(*METHODS, again)))
        assert list(sheets(page())[0]) == ["STL", "MRN"]

    def test_where_only_failed_runs_are_left_no_menu_opens_with_nothing_in_it(
        self, page: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def menus(app: AppTest) -> list[str]:
            return [block.proto.popover.label for block in app.get("popover")]

        monkeypatch.setitem(STUDIES, "toy", toy())
        store = Store.open()
        (failed, *_) = (run for run in store.runs() if run.config.seed == 3)
        store.delete_runs([failed.id])
        assert "Continue" in menus(page())
        claimed(store, RunState.FAILED, **failed.config.values())
        app = page()
        assert "1 run failed" in words(app)
        assert "Continue" not in menus(app)
        store.close()

    def test_a_link_opens_a_setting_and_other_parts_and_the_runs_are_one_click_away(self, page: Open) -> None:
        app = page(setting="Half")
        assert app.multiselect(key="setting").value == ["half"]
        assert len(sheets(app)) == 2
        app.segmented_control(key="part").set_value("fine-tuned").run()
        assert "No run of this part has finished in this store." in words(app)
        app.segmented_control(key="part").set_value("one").run()
        assert len(sheets(app)) >= 1


def test_published_figures_stand_beside_ours(open_page: Open) -> None:
    """The study of the dissertation's tables, some of its runs finished with given scores."""
    store = Store.open()
    for encoder in (None, "minilm"):
        dissertation = for_encoder(encoder)
        (setting_runs,) = settings_with_runs(dissertation, dissertation.settings[:1])
        usage = Usage(60.0, 2**31, "gpu")
        facts = run_facts(parameters=108_000_000, trained_parameters=108_000_000, usage=usage)
        for run in setting_runs.candidates["mtl"][0].runs_with([1, 2]):
            store.set_facts(finished(store, run, sweep_name(setting_runs), lambda *_: 0.9140), facts)
    app = open_page("studies", study="dissertation")
    table = sheets(app)[0]
    first, second, third, *_ = table.index
    assert first.startswith("BiLSTM-CRF (Huang")
    assert second.startswith("BERT (B. Li")
    assert third == "BERT (STL)"
    assert table.loc[first, "ner published"] == ":gray[90.10]"
    mtl = table.loc["BERT (MTL)"]
    assert mtl["chunk"].startswith("91.40 ± 0.00")
    assert mtl["chunk published"] == ":gray[91.40 ± 0.08, ours within]"
    assert mtl["ner published"].endswith("ours above]")  # 91.40 beside 90.76 ± 0.14
    assert mtl["pos published"].endswith("ours below]")  # 91.40 beside 92.90 ± 0.17
    assert "ours" not in str(table.loc["BERT (STL)", "ner published"])
    assert table.loc["BERT (MRN)", "Chosen"] == "open"
    assert "Within its standard deviation: 1, above: 1, below: 1." in words(app)
    assert "hold out a tenth" in words(app)
    assert sheets(app)[1].loc["BERT (MTL)", "Parameters"] == "108.0M"
    # Another encoder is never held against the paper.
    assert app.selectbox(key="over").options == [
        "As the study has it", f"{BASE_SIZE}, frozen", BASE_SIZE, "minilm, frozen", "minilm",
    ]  # fmt: skip
    app.selectbox(key="over").select("minilm").run()
    app.segmented_control(key="results").set_value("store").run()
    table = sheets(app)[0]
    assert table.loc["minilm (MTL)", "chunk"].startswith("91.40")
    assert table.loc["minilm (MTL)", "chunk published"] == ""
    # A part that was not run shows the published table.
    app.selectbox(key="over").select("As the study has it")
    app.segmented_control(key="part").set_value("table 2").run()
    assert "No run of this part has finished in this store." in words(app)
    commands = [code.value for code in opened(app, "dissertation_menu").code]
    assert "mrnlab study dissertation --part 'table 2'" in commands
    assert "mrnlab study dissertation --setting table1 --encoder minilm --frozen" in commands
    quoted = sheets(app)[0]["chunk published"]
    assert quoted["GCDT with BERT (Li, Liu and Shi 2020, arXiv:2012.05418)"] == ":gray[96.81]"


def test_a_record_with_missing_runs_says_so_and_what_it_answers(open_page: Open) -> None:
    record = next(each for each in records_of("dissertation") if BASE_SIZE in str(each.encoder))
    (result_,) = (record.result(each) for each in record.settings if each.part == "table 3")
    app = open_page("studies", study="dissertation", over=BASE_SIZE)
    assert app.segmented_control(key="part").value == "table 3"
    assert recorded_runs(result_) in words(app)
    assert "the claim at base size, with another encoder" in words(app)
    table = next(table for table in sheets(app) if "Verdict" in table)
    for outcome in result_.outcomes:
        if compared := outcome.differences.get(MEAN):
            (name,) = (
                name for name in table.index if name.startswith(capitalised(outcome.method.in_sentence))
            )
            has_n = f"({compared.seeds})" in table.loc[name, "Points over MTL"]
            assert has_n is not result_.is_complete


def test_grids_of_simulated_tasks_are_drawn_by_their_factors(open_page: Open) -> None:
    """Their published records have no AMI: no formula is judged."""
    app = open_page("studies", study="simulator", part="Balanced")
    drawn = figures(app, "gain_by")
    assert [figure["layout"]["xaxis"]["title"]["text"] for figure in drawn] == [
        "words of NER", "simulated tasks", "share of labels kept, α",
    ]  # fmt: skip
    assert app.multiselect(key="setting").value == ["balanced-n500-t6-a1"]  # the largest gain
    assert "NER and each simulated task have the same number of words." in words(app)
    assert "α is the share of labels kept" in words(app)
    record = records_of("simulator")[0]
    balanced = [record.result(each) for each in record.settings if each.part == "balanced"]
    for figure, gains in zip(drawn, gains_by_factor(balanced).values(), strict=True):
        (trace,) = figure["data"]
        assert trace["x"] == list(gains)
        assert trace["y"] == pytest.approx([100 * gain.mean for gain in gains.values()])
        hollow = [colour != trace["line"]["color"] for colour in trace["marker"]["color"]]
        assert hollow == [gain.verdict == "undecided" for gain in gains.values()]
        low, high = drawn[0]["layout"]["yaxis"]["range"]
        assert figure["layout"]["yaxis"]["range"] == [low, high]
        bars = zip(trace["y"], trace["error_y"]["arrayminus"], trace["error_y"]["array"], strict=True)
        assert all(low < y - below < y + above < high for y, below, above in bars)
    assert [figure["data"][0]["line"]["dash"] for figure in drawn] == ["dot", "dot", "solid"]
    assert "**Words of NER: undecided**" in words(app)
    assert "**Share of labels kept, α: gain grows**" in words(app)
    assert "From 20% to 100%: +8.77 [+5.19, +12.35], corrected p = 0." in words(app)
    assert "Published formulas" not in words(app)
    # The list of studies draws what its answer says.
    forests = [html.proto.body for html in open_page("studies").get("html")]
    (drawn_trends,) = [body for body in forests if "Words of NER: 500 to 2,000" in body]
    assert [mark in drawn_trends for mark in ("−26.14", "+12.02", "+8.77")] == [True] * 3


def test_what_methods_are_stands_where_their_names_do_and_in_a_folded_list(open_page: Open) -> None:
    app = open_page("studies", study="priors")
    (fold,) = [fold for fold in app.expander if fold.label == "What the methods are"]
    assert not fold.proto.expanded
    assert "**MTL**: Multi-task learning: one encoder for all tasks" in words(app)
    tables = [element.proto.body for element in app.main.get("html") if 'class="sheet"' in element.proto.body]
    assert 'title="All tasks share one head: labels of the same name have one row.">One head' in tables[0]
    assert re.search(r'title="MTL whose heads are drawn[^"]*">MRN with the relational prior \(λ', tables[1])


def test_a_part_of_one_setting_is_answered_once(open_page: Open) -> None:
    app = open_page("studies", study="simulator")
    assert words(app).count("methods beat STL") == 1
    assert [list(table)[:2] for table in sheets(app)] == [
        ["ner, %", "F1 over STL"],
        ["Rarer labels, %", "F1 over STL"],
    ]
    assert not app.multiselect  # no other setting can be opened
    first, *_ = sheets(open_page("studies", study="sc-lstm"))
    assert "Verdict" in first  # the published table comes after the answer's own chart and table


def test_simulated_tasks_have_gains_by_factor_and_the_errors_of_published_formulas(open_page: Open) -> None:
    """Four cells of the balanced grid at T = 2, finished with given scores."""
    store, made = Store.open(), STUDIES["simulator"]
    wanted = {f"balanced-n{n}-t2-a{alpha}" for n in (1000, 2000) for alpha in ("0.2", "1")}
    settings = settings_with_runs(made, [setting for setting in made.settings if setting.name in wanted])
    for run in dict.fromkeys(run for setting_runs in settings for run in setting_runs.runs()):
        ami = 1.0 if "alpha=1&" in run.corpus else 0.1
        planted = Planted(run.tasks, (1.0, ami, ami), ((1.0, ami, ami),) * 3) if len(run.tasks) == 3 else None
        store.set_facts(finished(store, run, "study simulator/cell"), run_facts(planted=planted))
    app = open_page("studies", study="simulator", part="Balanced")
    assert [figure["data"][0]["x"] for figure in figures(app, "gain_by")] == [[1000, 2000], [0.2, 1]]
    table = next(table for table in sheets(app) if "MSE printed" in table)
    assert table.loc["(3)", "MSE printed"] == "0.027"
    assert list(table.index) == ["(3)", "(4)", "(5)", "(6)", "(9)", "(10)"]
    app.segmented_control(key="part").set_value("unbalanced").run()
    assert not figures(app, "gain_by")


def test_links_to_compare_of_before_arrive(open_page: Open) -> None:
    app = open_page("compare", what="Studies", study="dissertation")
    assert STUDIES["dissertation"].question in words(app)
