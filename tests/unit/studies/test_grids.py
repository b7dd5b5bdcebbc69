"""The table and the report of a study of simulated tasks."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from core.store import Store
from core.studies import load_study
from core.studies.simulator import DENSE_LAYERS
from core.studies.study import SettingRuns, Study
from core.transfer import formulas
from core.transfer.formulas import PUBLISHED, Column, Learned, Table, learn
from core.transfer.grid import COLUMNS, PlantedTasks, bands, cells, factors, figure_3
from core.transfer.predictors import rank_correlation
from jobs.exchange.run_table import RunTable
from jobs.reports.render import markdown
from jobs.studies import grids as report
from jobs.studies.grids import GridRuns
from jobs.studies.progress import settings_with_runs
from tests.making import facts_of
from tests.trained import train_runs

SETTINGS = ("planted", "balanced-n500-t1-a1", "balanced-n500-t2-a1", "unbalanced-n500-1500-t1-a0.2")


def on_demo(study: Study) -> Study:
    """The same study on little of the demo corpus: small models, one epoch, one seed or two."""
    smaller = {
        **{"conll2003": "demo", "tokens=500": "tokens=50", "dev=50&test=1000": "dev=5&test=20"},
        **{f"samples={samples}": "samples=60" for samples in (500, 1500, 2000)},
    }
    settings = []
    for setting in study.settings:
        corpus = setting.base["corpus"]
        for before, after in smaller.items():
            corpus = corpus.replace(before, after)
        base = {**setting.base, "corpus": corpus, "epochs": 1, "bilstm_hidden": 4}
        seeds = setting.seeds[: 1 if setting.name == SETTINGS[0] else 2]
        settings.append(replace(setting, base=base, seeds=seeds))
    return replace(study, settings=tuple(setting for setting in settings if setting.name in SETTINGS))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[SettingRuns]]]:
    study = on_demo(load_study("simulator"))
    settings = settings_with_runs(study, study.settings)
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(Store.open("sqlite://")) as store:
        patch.setenv("MRNLAB_HOME", str(tmp_path_factory.mktemp("home")))
        train_runs(
            store, list(dict.fromkeys(run for setting_runs in settings for run in setting_runs.runs()))
        )
        yield store, settings


@pytest.mark.slow
def test_the_table_has_a_row_for_each_run_and_ner_alone_once(
    trained: tuple[Store, list[SettingRuns]],
) -> None:
    store, settings = trained
    runs = GridRuns(store, settings)
    table = runs.table()
    assert len(table) == 3 * 2 + 2 * 2  # MTL in three cells, STL in two parts, two seeds each
    alone = table[table["T"] == 0]
    assert alone["AMI"].isna().all()
    assert alone["n_syn"].isna().all()
    scores = {
        (score.run_id, score.task): score.score
        for score in store.scores([run.id for run in store.runs()], "test")
    }
    for run in store.runs():
        if len(run.config.tasks) == 3:
            row = table[(table["T"] == 2) & (table["seed"] == run.config.seed)].iloc[0]
            assert row["F1"] == pytest.approx(100 * scores[run.id, "ner"])
            assert row["AMI"] == pytest.approx(1.0)
            assert (row["n_ner"], row["n_syn"], row["alpha"]) == (500, 500, 1)
    read = pd.read_csv(io.StringIO(report.table_csv(runs)))
    pd.testing.assert_frame_equal(read, table, check_dtype=False, atol=1e-3)
    assert len(cells(table)) == 5


@pytest.mark.slow
def test_planted_relations_are_read_from_pairs_and_the_joint_run(
    trained: tuple[Store, list[SettingRuns]],
) -> None:
    store, settings = trained
    planted = GridRuns(store, settings).planted()
    assert planted is not None
    assert planted.alphas.tolist() == [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    (mrn,) = (run for run in store.runs() if run.config.paradigm == "mrn" and run.config.seed == 21)
    assert planted.learned is not None
    np.testing.assert_array_equal(planted.learned[0], store.relations(mrn.id)[1].correlation("task")[0, 1:])
    planted_tasks = facts_of(store.run(mrn.id)).planted
    assert planted_tasks is not None
    assert planted.ami[0].tolist() == list(planted_tasks.ami[0][1:])
    scores = {
        run.config.tasks: store.scores([run.id], "test")[0].score
        for run in store.runs()
        if run.config.seed == 21 and run.config.paradigm != "mrn"
    }
    gains = [100 * (scores["ner", f"sim-{number}"] - scores["ner",]) for number in range(1, 10)]
    np.testing.assert_allclose(planted.gains[0], gains)
    (setting_runs,) = (setting_runs for setting_runs in settings if setting_runs.setting.part == "planted")
    pairs = [setting_runs.candidates[name][0].runs[21][0] for name in ("stl", "beside-1")]
    assert len({run.corpus for run in pairs}) == 1  # as pairs of tasks are compared elsewhere


@pytest.mark.slow
def test_runs_from_a_record_have_gains_without_learned_correlations(
    trained: tuple[Store, list[SettingRuns]], tmp_path: Path
) -> None:
    store, settings = trained
    RunTable(tmp_path / "runs.csv").add(store, store.runs())
    with contextlib.closing(Store.open("sqlite://")) as other:
        RunTable(tmp_path / "runs.csv").restore(other)
        restored, original = GridRuns(other, settings), GridRuns(store, settings)
        pd.testing.assert_frame_equal(restored.table(), original.table(), atol=1e-3)
        planted, whole = restored.planted(), original.planted()
        assert planted is not None
        assert whole is not None
        np.testing.assert_allclose(planted.gains, whole.gains, atol=1e-3)
        assert planted.learned is None
        text = "".join(map(markdown, report.grid_report(settings[0].study, restored)))
        assert "measured gains" in text
        assert "learned" not in text
        assert "learned" not in report.grid_document(restored)["planted"]


class Measured:
    """A grid as equation (6) would have it, with planted relations."""

    def table(self) -> pd.DataFrame:
        random = np.random.default_rng(1)
        alone = (np.nan, 0, np.nan, np.nan, "shared")
        rows: list[tuple[Any, ...]] = [
            ("balanced", 1000, *alone, 20.0, 1),
            ("balanced", 2000, *alone, 30.0, 1),
        ]
        for n, tasks, ami, seed in np.ndindex(3, 3, 3, 2):
            at = (1000.0 * (n + 1), 1.0 + tasks, (ami + 1) / 3)
            f1 = float(
                PUBLISHED[3].value(dict(zip(("n", "T", "AMI"), map(np.array, at), strict=True)))
            ) + random.normal(0, 0.5)
            rows.append(("balanced", at[0], at[0], at[1], at[2], 0.2 + 0.4 * ami, "shared", f1, seed))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def planted(self) -> PlantedTasks:
        ami = np.array([[0.0, 0.3, 1.0], [0.1, 0.2, 1.0]])
        return PlantedTasks(np.array([0.2, 0.7, 1.0]), ami, 10 * ami, 1 - ami)


def test_the_report_has_relations_and_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyoperon", reason="formulas are learned with pyoperon")
    for name, value in {"_EVALUATIONS": 20_000, "_KEPT": 3, "_KEPT_PER_LENGTH": 1}.items():
        monkeypatch.setattr(formulas, name, value)
    by_scores: dict[bytes, Learned] = {}

    def learn_once(table: Table, y: Column) -> Learned:
        """Report and document learn the same formulas, which takes seconds."""
        if (key := y.tobytes()) not in by_scores:
            by_scores[key] = learn(table, y, searches=2)
        return by_scores[key]

    monkeypatch.setattr(report, "learn", learn_once)
    runs = cast(GridRuns, Measured())
    text = "\n\n".join(map(markdown, report.grid_report(load_study("simulator"), runs)))
    document = report.grid_document(runs)
    assert "with measured gains: 1.00 (means over 2 seeds" in text
    assert "learned task correlation: -1.00" in text
    assert "| (6) |" in text
    assert "| (11) |" not in text  # of unbalanced data
    learned = document["formulas"]["balanced"]
    assert f"F1 ≈ {learned['chosen']}." in text.replace("\\", "")
    assert min(formula["test_mse"] for formula in learned["front"]) < learned["linear_mse"]
    assert len(document["rows"]) == 56
    assert document["rows"][0]["AMI"] is None
    assert document["planted"]["rank_of_learned"] == pytest.approx(-1)


def test_cells_and_bands() -> None:
    table = Measured().table()
    columns, f1 = factors(table, "balanced")
    assert list(columns) == ["n", "T", "AMI"]
    assert len(f1) == 27
    first = table[(table["n_ner"] == 1000) & (table["T"] == 1) & (table["alpha"] == 0.2)]
    assert f1[0] == pytest.approx(first["F1"].mean())
    by_tasks = bands(table, "balanced", "T")
    assert by_tasks["T"].tolist() == [0, 1, 2, 3]
    assert by_tasks["runs"].tolist() == [2, 18, 18, 18]
    of_two = table[table["T"] == 2]["F1"]
    assert by_tasks["mean"][2] == pytest.approx(of_two.mean())
    assert by_tasks["SD"][2] == pytest.approx(of_two.std())
    assert bands(table, "balanced", "n_ner")["runs"].tolist() == [18, 18, 18]
    assert rank_correlation(np.array([1.0, 2.0, 4.0]), np.array([3.0, 9.0, 10.0])) == pytest.approx(1)


def test_published_errors_need_no_learned_formula() -> None:
    """On few cells, and without pyoperon. The paper's units stand beside percent²."""
    table = Measured().table()
    balanced = table[table["n_ner"] == 1000].assign(F1=np.sqrt(1000) * 0.69 + 10)
    unbalanced = balanced.assign(part="unbalanced", n_syn=4000.0)
    both = pd.concat([balanced, unbalanced])
    errors = {part: dict(report.judged(both, part)) for part in ("balanced", "unbalanced")}
    numbers = {part: [each.equation for each in of_part] for part, of_part in errors.items()}
    assert numbers == {"balanced": [3, 4, 5, 6, 9, 10], "unbalanced": [4, 5, 7, 8, 9, 10, 11]}
    assert errors["balanced"][PUBLISHED[0]] == pytest.approx(100)
    sheet = report.published_sheet(both, "balanced")
    assert sheet is not None
    assert markdown(sheet).splitlines()[2] == r"| (3) | sqrt(n)\*0.69 | 100 | 0.010 | 0.027 | 100 |"
    assert report.published_sheet(table[table["T"] == 0], "balanced") is None


def test_figure_3_has_the_papers_panels() -> None:
    points = figure_3(Measured().table())
    lines = points.groupby("panel")["line"].unique().map(list).to_dict()
    by_ami = ["STL", "AMI 0.33", "AMI 0.67", "AMI 1.00"]
    assert lines == {"a": by_ami, "b": ["n = 1,000", "n = 2,000", "n = 3,000"], "c": by_ami}
    table = Measured().table()
    cell = table[(table["n_ner"] == 2000) & (table["T"] == 2) & (table["alpha"] == 1.0)]["F1"]
    for panel, line, x in (("a", "AMI 1.00", 2000), ("b", "n = 2,000", 1.0), ("c", "AMI 1.00", 2)):
        point = points[(points["panel"] == panel) & (points["line"] == line) & (points["x"] == x)].iloc[0]
        assert (point["mean"], point["seeds"]) == (pytest.approx(cell.mean()), 2)
        assert point["low"] < point["mean"] < point["high"]
    alone = points[points["line"] == "STL"]
    assert alone[["panel", "x", "mean"]].values.tolist() == [["a", 1000, 20], ["a", 2000, 30], ["c", 0, 30]]
    assert alone["low"].isna().all()  # of one seed
    many = pd.concat([table.assign(n_ner=table["n_ner"] + more) for more in range(4)])
    assert figure_3(many).query("panel == 'b'")["line"].nunique() == 4
    assert figure_3(table.assign(part="unbalanced")).empty


def test_architectures_are_rows_of_one_table() -> None:
    table = Measured().table().query("T in (0, 3) and n_ner == 1000").assign(part="architectures")
    runs = pd.concat([table, table.assign(dense="own", F1=table["F1"] + 5)])
    lines = [line.split(" | ") for line in markdown(report.architectures_sheet(runs)).splitlines()]
    assert lines[0] == ["| dense layers", "STL", "α = 0.2", "α = 0.6", "α = 1 |"]
    assert [line[0] for line in lines[2:]] == [f"| {title}" for title, _ in DENSE_LAYERS.values()]
    assert [line[1] for line in lines[2:]] == ["20.0 (1)", "–", "25.0 (1)"]
