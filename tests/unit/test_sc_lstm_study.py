"""The study `sc-lstm`: its runs, and the published tables beside them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import pytest

from core.studies import load_study
from core.studies.published import LU_TABLE_3, LU_TABLES_4_TO_6, Reported
from core.studies.sc_lstm import CHUNKS, NER, POS, STUDY
from core.studies.study import DevScores, Layout, lay_out, next_runs, planned

TASKS = (POS, CHUNKS, NER)
SUBSETS = (TASKS, *combinations(TASKS, 2))
NOTHING = DevScores({})
_MRN = ("prior", "alignment", "lambda", "learn", "update_every", "update_timing", "snapshots")
_PAPER = Path(__file__).resolve().parents[3] / "shared" / "papers" / "002_e3b4f7b22551a56d.txt"


def layouts(part: str) -> list[Layout]:
    return [lay_out(STUDY, setting) for setting in STUDY.settings if setting.part == part]


class TestPlan:
    def test_the_parts_and_how_many_runs_each_has(self) -> None:
        assert load_study("sc-lstm").parts() == ("10%", "30%", "all data", "demo")
        assert STUDY.seeds == (1, 2, 3, 4, 5)
        runs = {
            part: len({plan.run for layout in layouts(part) for plan in planned(layout, NOTHING, ())})
            for part in STUDY.parts()
        }
        # Three tasks: 15 of STL, 5 each of LSTM-s and SC-LSTM, of LSTM-d 6 orders with two seeds and 3 more
        # of the chosen one, of each prior 2 λ with two seeds and 3 more. A pair has 2 orders and no new STL.
        whole, pair = 15 + 5 + 5 + (12 + 3) + 2 * (4 + 3), 5 + 5 + (4 + 3)
        priors, cnn_crf = 2 * (4 + 3), 5
        assert runs == {
            "10%": whole + 3 * pair,
            "30%": whole,
            "all data": whole + cnn_crf + 3 * (pair + priors),
            "demo": whole,
        }

    @pytest.mark.parametrize("part", ["10%", "all data"])
    def test_every_subset_of_the_tasks_and_every_order_of_each(self, part: str) -> None:
        assert [layout.setting.targets for layout in layouts(part)] == list(SUBSETS)
        for layout in layouts(part):
            tasks = layout.setting.targets
            arms = [arm.values["task_order"] for arm in layout.arms["lstm-d"]]
            assert Counter(arms) == Counter(permutations(tasks))
            chosen_by = next(plan.open for plan in planned(layout, NOTHING, ()) if plan.open)
            assert chosen_by == ("task_order",)

    def test_stl_of_a_task_is_one_run_for_all_subsets(self) -> None:
        stl = {run for layout in layouts("10%") for run in layout.arms["stl"][0].of(STUDY.seeds)}
        assert Counter(run.tasks for run in stl) == {(task,): 5 for task in TASKS}

    def test_families_of_a_setting_differ_in_nothing_but_what_they_are(self) -> None:
        differing = {
            "stl": {"paradigm", "tasks", "heads"},
            "lstm-s": set(),
            "lstm-d": {"encoder", "task_order", "lstm_layers"},
            "sc-lstm": {"encoder"},
            "relational": {"paradigm", *_MRN, "shrinkage", "label_scale", "task_correlation", "heads"},
            "paper": {"paradigm", *_MRN, "heads"},
            "sc-lstm-cnn-crf": {"encoder", "characters", "head"},
        }
        for setting in STUDY.settings:
            layout = lay_out(STUDY, setting)
            shared = layout.arms["lstm-s"][0].runs[1][0].values()
            for family, arms in layout.arms.items():
                for run in (run for arm in arms for run in arm.runs[1]):
                    values = run.values()
                    differs = {name for name in values if values[name] != shared[name]}
                    assert differs == differing[family], (setting.name, family)

    def test_all_data_has_the_papers_values(self) -> None:
        for layout in layouts("all data"):
            for run in next_runs(layout, NOTHING, ()):
                assert (run.fraction, run.dev_sentences, run.bilstm_hidden, run.epochs) == (
                    1.0,
                    1000,
                    300,
                    30,
                )
                assert run.lstm_layers == (None if run.encoder == "lstm-d" else 3)
                assert (run.batch_size, run.clip_norm, run.optimiser, run.lr_encoder) == (
                    10,
                    5.0,
                    "adam",
                    1e-3,
                )
                assert (run.dropout, run.input_dropout, run.vectors) == (0.5, 0.5, "glove")
                assert (run.draw_tasks, run.lr_schedule, run.vectors_training) == (
                    "uniform",
                    "constant",
                    "tuned",
                )


def cells(rows: tuple[Reported, ...], task: str) -> dict[str, str]:
    """Each model's figure of the task as it is printed, with its mark."""
    return {
        row.model: f"{row.scores[name]:.2f}" + "".join(re.findall(rf"{task}([†♣])", row.source))
        for row in rows
        if (name := {"pos": POS, "chunk": CHUNKS, "ner": NER}[task]) in row.scores
    }


def test_every_published_figure_is_the_papers() -> None:
    if not _PAPER.is_file():
        pytest.skip("the text of the paper is not here")
    tables: dict[int, dict[str, list[str]]] = {}
    lines: dict[str, list[str]] = {}
    for line in _PAPER.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"<[^>]+>|\\\[|\\\]|\[|\]\([^)]*\)|\]", "", line).strip()
        if found := re.match(r"Table (\d):", line):
            tables[int(found[1])] = lines
            lines = {}
        elif "\t" in line:
            model, *figures = line.split("\t")
            marked = model.endswith("♣")
            lines[model.removesuffix("♣").strip()] = [figure + "♣" * marked for figure in figures]
    table_3 = {model: row for model, row in tables[3].items() if "LSTM" in model}
    assert {row.model: [f"{score:.2f}" for score in row.scores.values()] for row in LU_TABLE_3} == table_3
    for number, task in ((4, "ner"), (5, "chunk"), (6, "pos")):
        noted = {
            model: re.sub(r"[\s]|(?<=\.\d)(?=\D|$)", "", figure)
            for model, (figure,) in tables[number].items()
            if figure[0].isdigit()
        }
        noted = {model: figure if len(figure) > 4 else f"{figure}0" for model, figure in noted.items()}
        assert cells(LU_TABLES_4_TO_6, task) == noted
