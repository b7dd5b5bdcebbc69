"""The preset `tea` and the study of it beside the values and the table of their paper (Mou, Xu and Yao)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.corpora import prepare
from core.corpora.assembly import SPLITS
from core.corpora.derived import derivation
from core.studies.analysis import FinalScores, analyse, table_view
from core.studies.published import MOU_TABLE_5_4
from core.studies.study import DevByRun, next_runs, with_runs
from core.studies.task_embeddings import STUDY as TAGGERS
from core.studies.tea import BASELINE_DECAY, HEADS, METHODS, RATES, STUDY, TASKS, WEIGHT_DECAYS
from jobs.reports.render import sheet_csv
from jobs.studies.report import paper_sheet, setting_sheet
from tests.unit.published import OF_MRN, assert_published, paper_text, printed_values, published_values

# Set by the researcher, or not mentioned in the paper: the default of any run.
OF_NO_PAPER = {
    *("corpus", "columns", "tasks", "seed", "device", "truecase", "max_length", "fraction_draw"),
    *("label_inventory", "corpus_order", "batching", "draw_tasks", "dropout", "dropout_on", "patience"),
    *("select_by", "affinity_every", "pos_score", "heads"),
}
OF_WORDS = {
    *("vectors", "vectors_training", "capitals", "characters", "context_encoder", "bilstm_hidden"),
    *("lstm_layers", "lr_bilstm", "input_dropout", "task_order", "window", "shared_dense", "task_dense"),
}
NOTHING = DevByRun({})
_PAPER = "003_22819ed984ed4ae2.txt"


def all_runs(part: str) -> list[RunConfig]:
    """The runs of a part with seed 1."""
    study = STUDY.with_seeds(1)
    settings = (setting for setting in study.settings if setting.part == part)
    return [run for setting in settings for run in next_runs(with_runs(study, setting), NOTHING, ())]


def runs(part: str) -> dict[tuple[str, float, str], RunConfig]:
    """Those of the grid, by injection, weight decay and heads."""
    return {
        (str(run.task_embedding), run.weight_decay, run.pair_heads): run
        for run in all_runs(part)
        if run.paradigm == "mtl" and run.lr_encoder not in RATES[part]
    }


def test_the_preset_has_the_published_values_that_the_mathematics_page_prints() -> None:
    (config,) = expand({"corpus": "sst", "tasks": TASKS}, {}, PRESETS["tea"])
    assert_published("tea", printed_values(config), of_no_paper=OF_NO_PAPER, unset=OF_MRN | OF_WORDS)


@pytest.mark.parametrize("part", STUDY.parts())
def test_the_grid_is_the_papers_and_its_runs_differ_in_nothing_else(part: str) -> None:
    assert STUDY.parts() == ("small", "published")
    assert set(METHODS) == {"none", "input", "attention", "projected", "elu", "tanh", "selu"}
    assert set(WEIGHT_DECAYS) == {0.0, 1e-3, 1e-2}
    made = runs(part)
    assert len(made) == 7 * 3 * 2
    first = made["none", 0.0, "own"]
    for (injection, decay, heads), run in made.items():
        assert heads in HEADS
        assert run == first.with_(task_embedding=injection, weight_decay=decay, pair_heads=heads)


@pytest.mark.parametrize("part", STUDY.parts())
def test_the_baseline_of_sst_alone_is_that_of_all_tasks_on_one(part: str) -> None:
    (alone,) = [run for run in all_runs(part) if run.paradigm == "stl"]
    assert alone == runs(part)["none", BASELINE_DECAY, "own"].with_(paradigm="stl", tasks=("sst",))


@pytest.mark.parametrize("part", STUDY.parts())
def test_rates_are_varied_as_in_figure_3_and_nothing_else(part: str) -> None:
    """Task embeddings at the input, beside none; heads learn as much faster than the encoder as elsewhere."""
    first = runs(part)["input", 0.0, "own"]
    assert first.lr_encoder is not None
    assert first.lr_heads is not None
    varied = [run for run in all_runs(part) if run.lr_encoder in RATES[part]]
    for run in varied:
        assert run.lr_encoder is not None
        assert run.lr_heads == pytest.approx(run.lr_encoder * first.lr_heads / first.lr_encoder)
        rates = {"lr_encoder": run.lr_encoder, "lr_heads": run.lr_heads}
        assert run == first.with_(task_embedding=run.task_embedding, **rates)
    factors = [run.lr_encoder / first.lr_encoder for run in varied if run.lr_encoder]
    assert factors == pytest.approx([0.3, 0.3, 3, 3])
    assert [run.task_embedding for run in varied] == ["none", "input"] * 2


def test_the_published_baseline_has_the_papers_values() -> None:
    """4.2, and all else as published for all tasks."""
    (alone,) = [run for run in all_runs("published") if run.paradigm == "stl"]
    others = {"paradigm", "task_embedding", "weight_decay", "pair_heads"}
    fixed = {field: value for field, value in published_values("tea").items() if field not in others}
    assert fixed.items() <= printed_values(alone).items()
    assert (alone.tasks, alone.weight_decay, alone.lr_encoder) == (("sst",), 0.01, 1e-5)
    text = paper_text(_PAPER)
    assert "Using learning rate of $1e^{-5}$, weight decay of 0.01" in text
    assert "Varying Learning Rates ($1e^{-5}$ provides the highest accuracies" in text


def test_the_published_part_is_the_preset_on_the_papers_sizes() -> None:
    run = runs("published")["input", 0.0, "own"]
    recipe = derivation(run.corpus).recipe
    assert recipe.train == (8544, 8490, 3020)  # type: ignore[attr-defined]  # 5.3
    (preset,) = expand({"corpus": run.corpus, "tasks": TASKS}, {}, PRESETS["tea"])
    assert run == preset


@pytest.mark.realdata
def test_the_published_part_trains_on_as_many_texts_as_the_paper(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRNLAB_DATA", str(real_data))
    corpus = prepare(runs("published")["input", 0.0, "own"])
    train = [next(iter(sentence.labels)) for sentence in corpus.train]
    assert [train.count(task) for task in TASKS] == [8544, 8490, 3020]
    test = [next(iter(sentence.labels)) for sentence in corpus.test]
    assert (test.count("sst"), test.count("sts")) == (1101, 863)  # 5.3 has 1,101 and 863 too
    assert not corpus.dev
    (alone,) = [run for run in all_runs("published") if run.paradigm == "stl"]
    assert [len(prepare(alone).split(split)) for split in SPLITS] == [8544, 0, 1101]


def test_reported_rows_are_the_papers_table_and_its_overall_score_is_their_mean() -> None:
    *table, shared = MOU_TABLE_5_4
    for row in table:
        of_tasks = [row.scores[task] for task in TASKS]
        assert row.scores["mean"] == pytest.approx(math.fsum(of_tasks) / 3, abs=0.1), row.model
    assert shared.scores == {"sts": 44.2}
    text = paper_text(_PAPER)
    printed = {}
    for line in text[text.index("\tWeight Decay") :].splitlines()[1:]:
        if line.count("\t") != 5:
            break
        model, *columns = line.split("\t")
        for decay, *figures in zip(*(column.split() for column in columns), strict=True):
            printed[re.sub(r"- ", "-", model), float(decay)] = [float(figure) for figure in figures]
    ours = {
        (row.model, float(row.source.rpartition(" ")[2])): [score / 100 for score in row.scores.values()]
        for row in table
    }
    assert ours.keys() == printed.keys()
    for row_name, scores in ours.items():
        assert scores == pytest.approx(printed[row_name])
    assert "0.442 correlation coefficient" in text


def test_our_rows_stand_beside_the_papers_with_the_mean_over_the_tasks() -> None:
    settings = [with_runs(STUDY, setting) for setting in STUDY.settings if setting.part == "small"]
    run = settings[0].candidates["input"][0].runs[1][0]
    (alone,) = [
        candidate.runs[1][0]
        for setting_runs in settings
        for candidate in setting_runs.candidates.get("sst-alone", ())
    ]
    known = FinalScores({run: dict(zip(TASKS, (0.4, 0.7, 0.85), strict=True)), alone: {"sst": 0.5}})
    view = table_view(STUDY, "small", [analyse(setting_runs, NOTHING, known) for setting_runs in settings])
    assert view is not None
    assert view.tasks == (*TASKS, "mean")
    assert len(view.rows) == 42 + 1 + 4
    assert view.rows["own heads, weight decay 0.01 (SST alone)"].scores.keys() == {"sst"}
    assert view.rows["own heads, weight decay 0 (Input)"].scores["mean"].mean == pytest.approx(0.65)
    assert view.summary == ""


def test_a_correlation_has_no_percent_sign() -> None:
    """Nor has a mean with one in it."""
    setting_runs = with_runs(STUDY, next(setting for setting in STUDY.settings if setting.part == "small"))
    runs = setting_runs.candidates["input"][0].runs_with([1])
    scores = {run: dict(zip(TASKS, (0.4, 0.7, 0.85), strict=True)) for run in runs}
    names = dict(zip(TASKS, ("accuracy", "accuracy", "pearson"), strict=True))
    made = analyse(setting_runs, NOTHING, FinalScores(scores, score_names=names))
    view = table_view(STUDY, "small", [made])
    assert view is not None
    for sheet in (setting_sheet(made), paper_sheet(view)):
        head = sheet_csv(sheet).splitlines()[0].split(",")
        assert {"sst (%)", "quora (%)", "sts", "mean"} <= {*head}


def test_task_embeddings_of_taggers_are_compared_with_none_by_paradigm() -> None:
    for setting in TAGGERS.settings:
        setting_runs = with_runs(TAGGERS, setting)
        assert list(setting_runs.candidates) == ["none", "input", "attention", "projected"]
        (none,) = setting_runs.candidates[TAGGERS.reference]
        for method, (candidate,) in setting_runs.candidates.items():
            for seed in (1, 2, 3, 4, 5):
                (run,) = candidate.runs[seed]
                assert run == none.runs[seed][0].with_(task_embedding=method)
                assert (run.paradigm, run.fraction, run.select_by) == (setting.name, 0.05, "last")
    assert [setting.name for setting in TAGGERS.settings] == ["mtl", "mrn"]
