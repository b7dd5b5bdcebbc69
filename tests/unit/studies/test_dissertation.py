"""The study `dissertation`: exactly the published tables, beside what was trained as there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.config import PRESETS, RunConfig
from core.evaluation.looks import look_levels
from core.studies import Study
from core.studies.analysis import MEAN, table_view
from core.studies.dissertation import BASE_SIZE, LOOKS, STUDY, for_encoder
from core.studies.published import ABOVE, BELOW, TABLES, WITHIN, Published, matching
from core.studies.study import DevByRun, StudyRun, chosen_candidate, next_runs, planned_runs, with_runs
from jobs.reports.render import markdown
from jobs.studies.report import report
from tests.studying import PRINTED, result

PUBLISHED = [cell for table in TABLES for cell in table.cells]
BY_NAME = {(cell.table, cell.encoder, cell.paradigm, cell.task, cell.fraction): cell for cell in PUBLISHED}
_PAPER = Path(__file__).resolve().parents[4] / "shared" / "spec" / "published-results.md"


def config(paradigm: str = "mrn", **more: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "corpus": "conll2003",
        "tasks": ("pos",) if paradigm == "stl" else ("pos", "chunk", "ner"),
        "encoder": "bert-base-cased",
        "paradigm": paradigm,
        "pos_score": "seqeval_f1",
    }
    if paradigm == "mrn":
        fields["alignment"] = "disjoint"
    return RunConfig.build(**(fields | more))


def cell(table: int, encoder: str, paradigm: str, task: str, fraction: float = 1.0) -> tuple[float, float]:
    published = BY_NAME[table, encoder, paradigm, task, fraction]
    return published.mean, published.sd


def test_the_plan_of_looks_has_the_levels_of_the_code() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/studies/dissertation.md").read_text(encoding="utf-8")
    seeds = re.search(r"^\| seeds \|(.*)\|$", page, re.M)
    levels = re.search(r"^\| two-sided level [^|]*\|(.*)\|$", page, re.M)
    assert seeds
    assert levels
    assert tuple(map(int, seeds[1].split("|"))) == LOOKS
    assert list(map(float, levels[1].split("|"))) == [round(level, 6) for level in look_levels(LOOKS, 0.025)]


def test_until_it_is_decided_table_3_has_the_same_runs_with_more_seeds() -> None:
    study = for_encoder(f"/models/{BASE_SIZE}")
    once, until = (
        with_runs(study, setting)
        for setting in study.settings
        if setting.name in ("table3-5", "table3-5-until-decided")
    )
    for method in ("mtl", "mrn"):
        (first,), (more,) = once.candidates[method], until.candidates[method]
        assert first.runs.items() <= more.runs.items()
        assert tuple(more.runs) == tuple(range(1, LOOKS[-1] + 1))
    (relational,) = once.candidates["relational"]
    searched = {
        candidate.values["lambda"]: candidate for candidate in until.candidates["relational-searched"]
    }
    assert sorted(searched) == [0.0005, 0.005, 0.05]
    assert relational.runs.items() <= searched[0.005].runs.items()
    assert {len(until.search_of("relational-searched", each)) for each in searched.values()} == {2}


def test_the_steadied_runs_differ_from_the_protocol_in_one_field_each() -> None:
    study = for_encoder(f"/models/{BASE_SIZE}")
    steadied = next(
        with_runs(study, setting) for setting in study.settings if setting.part == "table 3 steadied"
    )
    runs = {method: candidates[0].runs for method, candidates in steadied.candidates.items()}
    (protocol,) = runs["mtl"][5]
    for method, fields in (("mtl-clipped", {"clip_norm"}), ("mtl-warm-up", {"lr_schedule"})):
        (run,) = runs[method][5]
        changed = run.model_dump().items() ^ protocol.model_dump().items()
        assert {name for name, _ in changed} == fields


def test_the_tables_are_complete() -> None:
    assert [len(table.cells) for table in TABLES] == [8 * 3, 8 * 2, 4, 4]
    assert cell(1, "bert-base-cased", "mrn", "ner") == (90.82, 0.11)
    assert cell(2, "roberta-base", "mrn", "chunk") == (96.85, 0.04)
    assert cell(3, "bert-base-cased", "mrn", "pos-2000", 0.1) == (96.57, 0.08)
    assert [row.scores["ner"] for row in TABLES[0].reported] == [90.10, 91.80]
    assert [row.scores["chunk"] for row in TABLES[1].reported] == [94.46, 95.92, 96.35, 96.72, 96.81]


def test_every_figure_is_the_one_that_was_noted_from_the_paper() -> None:
    if not _PAPER.is_file():
        pytest.skip("the notes on the published results are not here")
    noted = [
        tuple(map(float, figures))
        for line in _PAPER.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
        for figures in re.findall(r"([\d.]+)±([\d.]+)", line)
    ]
    assert len(BY_NAME) == len(PUBLISHED)
    # Table 3 is noted row by row over both fractions, the others row by row.
    order = sorted(PUBLISHED, key=lambda cell: (cell.table, cell.table == 3 and cell.paradigm == "mrn"))
    assert [(cell.mean, cell.sd) for cell in order] == noted


@pytest.mark.parametrize("paradigm", ["stl", "mtl", "mrn"])
def test_what_was_trained_as_published_has_its_figures(paradigm: str) -> None:
    cells = matching(config(paradigm))
    assert {task: published.mean for task, published in cells.items()} == {
        task: cell(1, "bert-base-cased", paradigm, task)[0] for task in ("ner", "chunk", "pos")
    }
    assert matching(config(paradigm, corpus="/data/conll2003")) == cells


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder_training": "frozen"},
        {"encoder": "minilm"},
        {"encoder": "/models/bert-base-cased"},
        {"corpus": "demo"},
        {"corpus": "joined:/a,/data/conll2003"},
        {"fraction": 0.5},
        {"alignment": "cooccurrence"},
        {"tasks": ("pos", "ner")},
    ],
)
def test_what_was_trained_otherwise_has_none(changes: dict[str, Any]) -> None:
    assert matching(config(**changes)) == {}


def test_pos_by_accuracy_stands_beside_no_f1() -> None:
    assert set(matching(config(pos_score="accuracy"))) == {"ner", "chunk"}
    both = config(corpus="both-pos", tasks=("pos-2003", "pos-2000"), alignment="exact", fraction=0.05)
    fractions = {task: cell.fraction for task, cell in matching(both).items()}
    assert fractions == {"pos-2003": 0.05, "pos-2000": 0.05}
    assert matching(both.with_(pos_score="accuracy")) == {}
    assert matching(both.with_(alignment="disjoint")) == {}


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (0.9167, WITHIN), (0.9170, WITHIN), (0.9164, WITHIN), (0.91704, WITHIN),
        (0.9171, ABOVE), (0.9163, BELOW), (0.917051, ABOVE),
    ],
)  # fmt: skip
def test_the_verdict_compares_figures_as_they_are_printed(score: float, verdict: str) -> None:
    ner: Published = matching(config("stl"))["ner"]
    assert (ner.mean, ner.sd) == (91.67, 0.03)
    assert ner.verdict(score) == verdict


LAMBDAS = (1.0, 0.5, 0.05)
NOTHING = DevByRun({})


def listing(study: Study = STUDY) -> list[StudyRun]:
    return [
        plan
        for setting in study.settings
        for plan in planned_runs(with_runs(study, setting), NOTHING, frozenset())
    ]


class TestPlan:
    def test_it_lists_exactly_tables_1_to_3(self) -> None:
        """Every published cell has five final runs for each of its λ, and there are no others."""
        final = [plan for plan in listing() if "final" in plan.stage]
        # With dev sentences all three are trained on all sentences, else one, yet to be chosen.
        lambdas = {1: LAMBDAS, 2: LAMBDAS[:1], 3: LAMBDAS[:1]}
        counted = Counter((cell, plan.config.lambda_) for plan in final for cell in _cells(plan.config))
        assert counted == Counter(
            {
                (cell, strength): 10 if cell.table == 3 else 5  # both readings of Table 3
                for table in TABLES
                for cell in table.cells
                for strength in (lambdas[cell.table] if cell.paradigm == "mrn" else (None,))
            }
        )
        assert all(_cells(plan.config) for plan in final)
        assert Counter(plan.setting for plan in listing()) == {
            "table1": 35, "table1-bilstm": 20, "table1-roberta": 35,
            "table2": 35, "table2-bilstm": 25, "table2-roberta": 35,
            "table3-5": 25, "table3-10": 25, "table3-5-one-draw": 25, "table3-10-one-draw": 25,
        }  # fmt: skip

    def test_every_run_has_the_presets_values(self) -> None:
        """But for what a table is about, and how λ is chosen where there are no dev sentences."""
        of_the_table = {"encoder", "lambda", "alignment", "fraction", "select_by", "dev_sentences"}
        fixed = {name: value for name, value in PRESETS["dissertation"].items() if name not in of_the_table}
        for plan in listing():
            values = plan.config.values()
            assert {name: values[name] for name in fixed} == {
                name: None if values[name] is None else value for name, value in fixed.items()
            }

    def test_where_there_are_no_dev_sentences_lambda_is_chosen_by_runs_that_hold_some_out(self) -> None:
        for plan in listing():
            held_out = plan.config.corpus != "conll2003" and plan.stage == "search"
            assert plan.config.dev_sentences == (None if held_out else 0)
            table_3 = plan.config.corpus == "both-pos"
            assert plan.config.select_by == ("last" if held_out or table_3 else "loss")
            programs = table_3 and not plan.setting.endswith("one-draw")
            assert plan.config.fraction_draw == ("each_epoch" if programs else "once")
            assert plan.config.corpus_order == ("in_turn" if programs else "mixed")
            assert plan.open == (("lambda",) if plan.stage == "final" and plan.method == "mrn" else ())

    def test_the_chosen_lambda_is_then_trained_on_all_sentences(self) -> None:
        setting_runs = with_runs(
            STUDY, next(setting for setting in STUDY.settings if setting.name == "table2")
        )
        first = next_runs(setting_runs, NOTHING, ())
        mrn = [run for run in first if run.paradigm == "mrn"]
        assert {(run.dev_sentences, run.select_by) for run in mrn} == {(None, "last")}
        assert len(mrn) == 3 * 5
        dev = DevByRun({run: dict.fromkeys(run.tasks, 0.9 + (run.lambda_ == 0.5) / 100) for run in first})
        then = next_runs(setting_runs, dev, ())
        assert {(run.lambda_, run.dev_sentences) for run in then} == {(0.5, 0)}
        assert [run.seed for run in then] == [1, 2, 3, 4, 5]

    def test_final_runs_that_stand_in_the_store_choose_nothing(self) -> None:
        setting_runs = with_runs(
            STUDY, next(setting for setting in STUDY.settings if setting.name == "table3-5")
        )
        final = {
            run: {"pos-2003": 1.0}
            for candidate in setting_runs.candidates["mrn"]
            for run in candidate.runs_with(STUDY.seeds)
        }
        assert chosen_candidate(setting_runs, "mrn", DevByRun(final), ()) is None


def _cells(run: RunConfig) -> list[Any]:
    return [cell for task, cell in matching(run).items() if task in run.tasks]


class TestOtherEncoders:
    def test_another_encoder_takes_berts_place_and_robertas_rows_go(self) -> None:
        made = for_encoder("minilm")
        assert [setting.name for setting in made.settings] == [
            "table1", "table1-bilstm", "table2", "table2-bilstm", "table3-5", "table3-10",
            "table3-5-one-draw", "table3-10-one-draw",
        ]  # fmt: skip
        encoders = {plan.config.encoder for plan in listing(made)}
        assert encoders == {"minilm", "minilm+bilstm"}
        for setting in made.settings:
            candidates = with_runs(made, setting).candidates["mrn"]
            lambdas = [0.05, 0.005] if "-10" in setting.name else [*LAMBDAS, 0.005]
            assert [candidate.values["lambda"] for candidate in candidates] == lambdas
        assert not any(_cells(plan.config) for plan in listing(made))

    def test_over_the_encoder_of_base_size_lambda_is_that_of_minilm(self) -> None:
        made = for_encoder(f"/models/{BASE_SIZE}")
        assert "the claim at base size, with another encoder" in made.protocol
        runs = [plan for plan in listing(made) if plan.setting == "table3-5"]
        assert Counter(plan.method for plan in runs) == {"stl": 10, "mtl": 5, "mrn": 5, "relational": 5}
        assert {(plan.stage, plan.open) for plan in runs} == {("final", ())}
        elsewhere = [plan for plan in listing(made) if not plan.setting.endswith("until-decided")]
        assert {plan.config.lambda_ for plan in elsewhere} == {None, 0.005}

    def test_a_frozen_encoder_has_its_own_rate_and_nothing_published(self) -> None:
        made = for_encoder(encoder_training="frozen")
        for plan in listing(made):
            run = plan.config
            assert (run.encoder_training, run.lr_encoder, run.lr_heads) == ("frozen", None, 0.02)
            assert _cells(plan.config) == []


class TestReport:
    def test_dev_alone_chooses_and_each_figure_has_its_verdict(self) -> None:
        table_1 = result(STUDY, "table1", scores=PRINTED)
        mrn = table_1.outcome("mrn")
        assert mrn.chosen == "λ=0.5"
        assert mrn.scores[MEAN].n == 5
        view = table_view(STUDY, "table 1", [table_1])
        assert view is not None
        assert list(view.rows) == ["BERT (STL)", "BERT (MTL)", "BERT (MRN)"]
        assert {task: view.rows["BERT (MRN)"].verdict(task) for task in view.tasks} == {
            "ner": WITHIN,  # 90.84 beside 90.82 ± 0.11
            "chunk": WITHIN,  # 91.49 beside 91.49 ± 0.06
            "pos": ABOVE,  # 94.00 beside 93.16 ± 0.07
        }
        assert view.rows["BERT (STL)"].verdict("ner") == BELOW
        assert view.summary.startswith("Figures beside a published one: 9. Within its standard deviation: ")
        assert [row.model for row in view.paper.reported] == ["BiLSTM-CRF", "BERT"]

    @pytest.mark.parametrize("made", [for_encoder("minilm"), for_encoder(encoder_training="frozen")])
    def test_another_or_a_frozen_encoder_is_never_held_against_the_paper(self, made: Study) -> None:
        view = table_view(made, "table 1", [result(made, "table1", scores=PRINTED)])
        assert view is not None
        assert not any(outcome.published for outcome in view.rows.values())
        assert view.summary == "No run of yours matches a published row yet."

    def test_markdown_has_the_papers_table(self) -> None:
        text = "\n\n".join(map(markdown, report(STUDY, [result(STUDY, "table1", scores=PRINTED)])))
        lines = text.splitlines()
        assert lines[0] == "## The answer"
        assert "## Table 1: CoNLL-2003" in lines
        (quoted,) = [line for line in lines if line.startswith("| BiLSTM-CRF (Huang")]
        assert "| reported | – | 90.10 |" in quoted
        (mrn,) = [line for line in lines if line.startswith("| BERT (MRN) | λ=0.5 ")]
        assert "| 90.84 ± 0.00 (5) | 90.82 ± 0.11, ours within |" in mrn
        assert "| BERT (STL) | 324.0M | 324.0M | 2.00 GB (cuda) | 3 min |" in lines
        assert STUDY.protocol in text
        assert r"\|our mean − published mean\| ≤ published SD" in text

    def test_the_settings_of_a_table_stand_together_whatever_their_order(self) -> None:
        results = [result(STUDY, name, scores=PRINTED) for name in ("table1", "table2", "table1-roberta")]
        lines = "\n\n".join(map(markdown, report(STUDY, results))).splitlines()
        headings = [line.split(":")[0] for line in lines if line.startswith("## ")]
        assert headings == ["## The answer", "## Table 1", "## Table 2"]
