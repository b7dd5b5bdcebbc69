"""The study of simulated tasks: its grids, and what its runs share."""

from __future__ import annotations

from core.studies import load_study
from core.studies.simulator import (
    ARCHITECTURES,
    BALANCED,
    PLANTED,
    PUBLISHED,
    PUBLISHED_ALPHAS,
    PUBLISHED_TASKS,
    PUBLISHED_UNBALANCED,
    PUBLISHED_WORDS,
    UNBALANCED,
    point_of,
)
from core.studies.study import with_runs

STUDY = load_study("simulator")
# Bettgenhäuser et al. (2020), section 5.1, as printed; the three dots of n go on in steps of 500.
PRINTED_ALPHAS = "0.2,0.6,0.65,0.75,0.8,0.85,0.87,0.9,0.91,0.92,0.93,0.94,0.95,0.96,0.97,0.98,0.99,1"
PRINTED_WORDS = "1000,1500,2000,2500,3000"


def test_the_published_grid_has_the_papers_values() -> None:
    assert tuple(range(1, 16)) == PUBLISHED_TASKS
    assert ",".join(f"{alpha:g}" for alpha in PUBLISHED_ALPHAS) == PRINTED_ALPHAS
    assert ",".join(map(str, PUBLISHED_WORDS[:5])) == PRINTED_WORDS
    assert PUBLISHED_WORDS[-1] == 20_000
    settings = [setting for setting in STUDY.settings if setting.part == PUBLISHED]
    cells = {(point.words, point.tasks, point.alpha) for point in map(point_of, settings) if point}
    assert cells == {(words, 2, alpha) for words in PUBLISHED_WORDS for alpha in PUBLISHED_ALPHAS} | {
        (2_000, tasks, alpha) for tasks in PUBLISHED_TASKS for alpha in PUBLISHED_ALPHAS
    }
    assert len(settings) == len(cells) == 954
    config = with_runs(STUDY, settings[0]).candidates["mtl"][0].runs[5][0]
    assert (config.epochs, config.optimiser, config.lr_bilstm, config.window) == (100, "adam", 1e-3, 3)
    assert {setting.seeds for setting in settings} == {(1, 2, 3, 4, 5)}


def test_the_published_unbalanced_grid_has_the_papers_values() -> None:
    """Section 5.2, as printed: T to 30, n_ner from 1,000 to 2,500, n_syn from 2,000 to 6,000."""
    settings = [setting for setting in STUDY.settings if setting.part == PUBLISHED_UNBALANCED]
    alphas = {0.6, 0.7, 0.85, 0.9, 0.92, 0.95, 0.97, 0.99}
    sizes = {(n, m) for n in (1000, 1500, 2000, 2500) for m in (2000, 3000, 4000, 5000, 6000) if n < m}
    cells = {
        (point.words, point.words_beside, point.tasks, point.alpha)
        for point in map(point_of, settings)
        if point
    }
    assert cells == {(*size, 2, alpha) for size in sizes for alpha in alphas} | {
        (2000, 3000, tasks, alpha) for tasks in range(1, 31) for alpha in alphas
    }
    assert len(settings) == len(cells) == 376
    config = with_runs(STUDY, settings[-1]).candidates["mtl"][0].runs[5][0]
    assert (config.epochs, config.bilstm_hidden, len(config.tasks)) == (100, 100, 31)
    assert "tokens=2000&tasks=30&alpha=0.99&samples=3000&" in config.corpus


def test_architectures_are_cells_of_the_small_grid_with_other_dense_layers() -> None:
    settings = {s.name: with_runs(STUDY, s) for s in STUDY.settings if s.part in (BALANCED, ARCHITECTURES)}
    cell = settings["balanced-n1000-t3-a0.8"]
    kinds = {name: settings[f"architectures-n1000-t3-a0.8-{name}"] for name in ("shared", "none", "own")}
    assert kinds["shared"].runs() == cell.runs()
    for name, dense in {"none": (None, None), "own": (None, 1)}.items():
        for run, other in zip(kinds[name].runs(), cell.runs(), strict=True):
            assert (run.shared_dense, run.task_dense) == dense
            assert run.model_copy(update={"shared_dense": 1, "task_dense": None}) == other


def test_a_cell_trains_what_its_name_says_and_all_cells_of_a_size_share_ner_alone() -> None:
    settings = {setting.name: setting for setting in STUDY.settings}
    setting_runs = with_runs(STUDY, settings["unbalanced-n500-1500-t3-a0.8"])
    (run,) = setting_runs.candidates["mtl"][0].runs[2]
    assert run.tasks == ("ner", "sim-1", "sim-2", "sim-3")
    assert "tokens=500&tasks=3&alpha=0.8&samples=1500&scheme=io" in run.corpus
    small = [setting for setting in STUDY.settings if setting.part in (BALANCED, UNBALANCED)]
    alone = {
        run for s in small for runs in with_runs(STUDY, s).candidates["stl"][0].runs.values() for run in runs
    }
    assert len(alone) == 3 * len({point.words for point in map(point_of, small) if point})
    assert {run.tasks for run in alone} == {("ner",)}


def test_planted_relations_are_measured_on_seeds_of_their_own() -> None:
    (setting,) = (setting for setting in STUDY.settings if setting.part == PLANTED)
    setting_runs = with_runs(STUDY, setting)
    assert setting_runs.seeds == tuple(range(21, 31))
    pairs = [
        candidates[0].runs[21][0]
        for name, candidates in setting_runs.candidates.items()
        if name.startswith("beside-")
    ]
    assert [run.tasks for run in pairs] == [("ner", f"sim-{number}") for number in range(1, 10)]
    (mrn,) = setting_runs.candidates["mrn"][0].runs[21]
    assert (mrn.paradigm, mrn.alignment) == ("mrn", "exact")
    assert (mrn.encoder, mrn.encoder_training) == ("minilm", "frozen")
    assert len(mrn.tasks) == 10
    assert {run.corpus for run in (*pairs, mrn)} == {setting.base["corpus"]}
    fewer = STUDY.with_seeds(2)
    assert with_runs(fewer, next(s for s in fewer.settings if s.part == PLANTED)).seeds == (21, 22)
