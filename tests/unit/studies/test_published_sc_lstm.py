"""The preset and the study `sc-lstm` beside the paper's values and tables (Lu, Bai and Langlais, 2019)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, permutations
from typing import Any

import pytest
import torch

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.models.encoders import word_inputs
from core.models.word_vectors import GLOVE, read_vectors
from core.studies import load_study
from core.studies.published import LU_TABLE_3, LU_TABLES_4_TO_6, Reported
from core.studies.sc_lstm import CHUNKS, HIDDEN, LAYERS, NER, POS, STUDY
from core.studies.study import DevByRun, SettingRuns, next_runs, planned_runs, with_runs
from core.training.setup import make_optimiser
from tests.unit.published import OF_MRN, assert_published, paper_text, printed_values, published_values

# Set by the researcher, or not mentioned in the paper: the default of any run.
OF_NO_PAPER = {
    *("corpus", "columns", "tasks", "seed", "device", "truecase", "encoder_training", "max_length"),
    *("fraction_draw", "label_inventory", "corpus_order", "dropout_on", "patience", "select_by"),
    *("affinity_every", "window", "shared_dense", "task_dense", "pooling", "pair_encoding", "pair_heads"),
    "heads",
}


def _run(**lists: list[Any]) -> RunConfig:
    (config,) = expand({"corpus": "conll2003", "tasks": "pos,chunk,ner"}, lists, PRESETS["sc-lstm"])
    return config


def test_the_preset_has_the_published_values_that_the_mathematics_page_prints() -> None:
    unset = OF_MRN | {"task_order", "task_embedding"}
    assert_published("sc-lstm", printed_values(_run()), of_no_paper=OF_NO_PAPER, unset=unset)


@pytest.mark.parametrize(("encoder", "layers"), [("bilstm", 3), ("lstm-d", None)])
def test_its_rivals_take_the_same_values(encoder: str, layers: int | None) -> None:
    """Three layers of LSTM-d over three tasks are one for each."""
    rival = _run(encoder=[encoder])
    assert (rival.encoder, rival.lstm_layers) == (encoder, layers)
    assert rival == _run().with_(encoder=encoder, lstm_layers=layers)


def test_what_is_fixed_in_the_paper_is_fixed_here() -> None:
    """Adam's default setting (4.3), the character CNN of Table 2, and the vectors' dimension (4.2)."""
    optimiser, schedule = make_optimiser(torch.nn.ModuleDict({"heads": torch.nn.Linear(2, 2)}), _run(), 100)
    (group,) = optimiser.param_groups
    assert (group["lr"], group["betas"], group["eps"]) == (1e-3, (0.9, 0.999), 1e-8)
    assert [schedule.lr_lambdas[0](step) for step in (0, 50, 100)] == [1.0, 1.0, 1.0]
    cnn = (word_inputs.CHARACTER_SIZE, word_inputs.CHARACTER_FILTERS, word_inputs.CHARACTER_WIDTH)
    assert cnn == (16, 128, 3)
    assert len(word_inputs.CAPITALS) == 8
    assert read_vectors(GLOVE, lambda word: word == "the").dimension == 100


TASKS = (POS, CHUNKS, NER)
SUBSETS = (TASKS, *combinations(TASKS, 2))
NOTHING = DevByRun({})
_MRN = ("prior", "alignment", "lambda", "learn", "update_every", "update_timing", "snapshots")
_PAPER = "002_e3b4f7b22551a56d.txt"


def settings(part: str) -> list[SettingRuns]:
    return [with_runs(STUDY, setting) for setting in STUDY.settings if setting.part == part]


class TestPlan:
    def test_the_parts_and_how_many_runs_each_has(self) -> None:
        assert load_study("sc-lstm").parts() == ("10%", "30%", "all data", "grid search", "demo")
        assert STUDY.seeds == (1, 2, 3, 4, 5)
        runs = {
            part: len(
                {
                    plan.config
                    for setting_runs in settings(part)
                    for plan in planned_runs(setting_runs, NOTHING, ())
                }
            )
            for part in STUDY.parts()
        }
        # Three tasks: 15 of STL, 5 each of LSTM-s and SC-LSTM, of LSTM-d 6 orders with two seeds and 3 more
        # of the chosen one, of each prior 2 λ with two seeds and 3 more. A pair has 2 orders and no new STL.
        whole, pair = 15 + 5 + 5 + (12 + 3) + 2 * (4 + 3), 5 + 5 + (4 + 3)
        priors, cnn_crf = 2 * (4 + 3), 5 + 5
        # 4 hidden sizes × 3 numbers of layers with two seeds; LSTM-d with 2 or 3 layers in 3 or 6 orders. The
        # settings of a main task share the search, and until it is over the first one stands for the chosen.
        sized, sized_orders = 12 * 2 + 3, 4 * (3 + 6) * 2 + 3
        assert runs == {
            "10%": whole + 3 * pair,
            "30%": whole + cnn_crf,
            "all data": whole + cnn_crf + 3 * (pair + priors),
            "grid search": 15 + 2 * sized + sized_orders,
            "demo": whole,
        }

    @pytest.mark.parametrize("part", ["10%", "all data"])
    def test_every_subset_of_the_tasks_and_every_order_of_each(self, part: str) -> None:
        assert [setting_runs.setting.targets for setting_runs in settings(part)] == list(SUBSETS)
        for setting_runs in settings(part):
            tasks = setting_runs.setting.targets
            candidates = [candidate.values["task_order"] for candidate in setting_runs.candidates["lstm-d"]]
            assert Counter(candidates) == Counter(permutations(tasks))
            chosen_by = next(plan.open for plan in planned_runs(setting_runs, NOTHING, ()) if plan.open)
            assert chosen_by == ("task_order",)

    def test_families_of_a_setting_differ_in_nothing_but_what_they_are(self) -> None:
        differing = {
            "stl": {"paradigm", "tasks", "heads", "balancing"},
            "lstm-s": set(),
            "lstm-d": {"encoder", "task_order", "lstm_layers"},
            "sc-lstm": {"encoder"},
            "relational": {"paradigm", *_MRN, "shrinkage", "label_scale", "task_correlation", "heads"},
            "paper": {"paradigm", *_MRN, "heads"},
            "sc-lstm-cnn": {"encoder", "characters"},
            "sc-lstm-cnn-crf": {"encoder", "characters", "head"},
        }
        for setting in STUDY.settings:
            if setting.part == "grid search":
                continue
            setting_runs = with_runs(STUDY, setting)
            shared = setting_runs.candidates["lstm-s"][0].runs[1][0].values()
            bases = {name: method.base for name, method in setting_runs.methods.items() if "cnn" in name}
            assert bases.items() <= {"sc-lstm-cnn": "sc-lstm", "sc-lstm-cnn-crf": "sc-lstm-cnn"}.items()
            for method, candidates in setting_runs.candidates.items():
                for run in (run for candidate in candidates for run in candidate.runs[1]):
                    values = run.values()
                    differs = {name for name in values if values[name] != shared[name]}
                    assert differs == differing[method], (setting.name, method)

    def test_the_grid_search_varies_the_papers_sizes_and_nothing_else_of_all_data(self) -> None:
        (published, *_), (grid, *of_main_task) = settings("all data"), settings("grid search")
        for name, layers in (("lstm-s", {1, 2, 3}), ("lstm-d", {2, 3}), ("sc-lstm", {1, 2, 3})):
            made = [candidate.runs[1][0] for candidate in grid.candidates[f"{name}-sizes"]]
            assert len(set(made)) == len(made)
            assert {run.lstm_layers or len(run.tasks) for run in made} == layers
            assert {run.bilstm_hidden for run in made} == {100, 200, 300, 400}
            best = {run for run in made if (run.bilstm_hidden, run.lstm_layers or 3) == (300, 3)}
            assert best == {candidate.runs[1][0] for candidate in published.candidates[name]}
        assert grid.candidates["stl"] == published.candidates["stl"]
        assert [setting_runs.setting.targets for setting_runs in of_main_task] == [(task,) for task in TASKS]
        for setting_runs in of_main_task:
            for method in ("lstm-s-sizes", "lstm-d-sizes"):
                assert setting_runs.candidates[method] == grid.candidates[method]

    def test_orders_of_lstm_d_with_fewer_layers_are_different_models(self) -> None:
        """Of three tasks over two layers only the last one matters."""
        (setting_runs, *_) = settings("grid search")
        candidates = [
            candidate.values
            for candidate in setting_runs.candidates["lstm-d-sizes"]
            if candidate.values["bilstm_hidden"] == 100
        ]
        assert {candidate["task_order"][-1] for candidate in candidates if candidate["lstm_layers"] == 2} == {
            *TASKS
        }
        assert Counter(candidate["lstm_layers"] for candidate in candidates) == {2: 3, 3: 6}

    def test_all_data_has_the_papers_values(self) -> None:
        """But for what methods are about, and three that the comparison has as all our studies."""
        others = {"encoder", "paradigm", "lstm_layers", "characters", "head"}
        others |= {"head_init", "precision", "batching"}
        fixed = {field: value for field, value in published_values("sc-lstm").items() if field not in others}
        for setting_runs in settings("all data"):
            for run in next_runs(setting_runs, NOTHING, ()):
                assert fixed.items() <= printed_values(run).items()
                assert run.lstm_layers == (None if run.encoder == "lstm-d" else 3)


def cells(rows: tuple[Reported, ...], task: str) -> dict[str, str]:
    """Each model's figure of the task as it is printed, with its mark."""
    return {
        row.model: f"{row.scores[name]:.2f}" + "".join(re.findall(rf"{task}([†♣])", row.source))
        for row in rows
        if (name := {"pos": POS, "chunk": CHUNKS, "ner": NER}[task]) in row.scores
    }


def test_what_is_searched_is_what_the_paper_searched() -> None:
    text = paper_text(_PAPER)
    for words, values in (("the hidden size", HIDDEN), ("the number of layers", LAYERS)):
        (listed,) = re.findall(rf"{words} \[([\d, ]+)\]", text)
        assert [int(value) for value in listed.split(", ")] == [*values]


def test_every_published_figure_is_the_papers() -> None:
    tables: dict[int, dict[str, list[str]]] = {}
    lines: dict[str, list[str]] = {}
    for line in paper_text(_PAPER).splitlines():
        line = re.sub(r"<[^>]+>|\\\[|\\\]|\[|\]\([^)]*\)|\]", "", line).strip()
        if caption := re.match(r"Table (\d):", line):
            tables[int(caption[1])] = lines
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
