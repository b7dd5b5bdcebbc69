"""From the store to views: exact on what they hold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.config import RunConfig, kind_key
from core.mrn.relations import Relations, correlation
from core.mrn.rows import Block
from core.store import Store
from core.store.records import MetricKey, MetricSeries, Run, SnapshotKey, StoredScore
from core.training.events import TOTAL, StepMetrics
from dashboard.published import PUBLISHED, matching
from dashboard.queries import runs as run_views
from dashboard.queries.compare import CompareView, answers, compare, default_pair, per_seed
from dashboard.queries.curves import METRICS, curves, legend, smooth, thin
from dashboard.queries.naming import confounds, differing, kind_name, run_name
from dashboard.queries.relations import RelationsView, pair_line, penalty_vanished, relations
from dashboard.resources import SeriesCache
from tests.making import claimed, run_facts
from tests.pages.filled_store import FEATURES, LABELS, TASKS, Filled

FLOATS = st.floats(-1e6, 1e6) | st.just(math.nan)


def config(paradigm: str = "mrn", seed: int = 1, **more: object) -> RunConfig:
    tasks = more.pop("tasks", ("pos",) if paradigm == "stl" else TASKS)
    return RunConfig.build(corpus="demo", paradigm=paradigm, seed=seed, tasks=tasks, **more)


# Curves


@given(arrays(np.float64, st.integers(0, 5000), elements=FLOATS), st.integers(4, 300))
def test_thin_keeps_first_last_lowest_highest(y: np.ndarray, most: int) -> None:
    x = np.arange(len(y), dtype=float)
    thin_x, thin_y = thin(x, y, most)
    assert len(thin_y) <= max(most, 0) or len(y) <= most
    assert np.array_equal(thin_y, y[thin_x.astype(int)], equal_nan=True)
    assert np.all(np.diff(thin_x) > 0)
    if len(y):
        assert (thin_x[0], thin_x[-1]) == (x[0], x[-1])
    finite = y[np.isfinite(y)]
    if len(finite):
        assert np.nanmin(thin_y) == finite.min()
        assert np.nanmax(thin_y) == finite.max()


def test_smooth_is_a_running_mean_corrected_for_its_start() -> None:
    values = np.array([1.0, 3.0])
    assert smooth(values, 0.0) is values
    assert smooth(values, 0.5) == pytest.approx([1.0, (0.5 * 1 + 3) / 1.5])
    assert smooth(np.full(50, 2.5), 0.9) == pytest.approx(np.full(50, 2.5))


def test_curves_of_runs(finished: Filled) -> None:
    store = Store.open()
    stl = next(run for run in store.runs() if run.config.paradigm == "stl")
    runs = store.runs(ids=[finished.mrn[0], stl.id])
    metric = METRICS["dev-score"]
    series = [
        one
        for task in ("", *TASKS)
        for one in store.metrics([r.id for r in runs], MetricKey(task, "dev", "score"))
    ]
    view = curves(metric, "epoch", 0.5, runs, series, TASKS)
    by_run = {curve.run_id: curve for curve in view.total}
    assert by_run[stl.id].task == stl.config.tasks[0]
    assert by_run[finished.mrn[0]].task == TOTAL
    assert list(by_run[stl.id].x) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert by_run[stl.id].y.max() <= 100
    assert by_run[stl.id].raw_y is not None
    assert set(view.by_task) == set(TASKS)
    assert {run_id for run_id, _, _ in legend(view, runs)} == {run.id for run in runs}


def test_minutes_and_an_empty_view() -> None:
    assert curves(METRICS["loss"], "minutes", 0, [], [], TASKS).empty


# Names


def test_names() -> None:
    assert kind_name(config("mrn", **{"lambda": 0.01})) == "MRN λ 0.01"
    assert kind_name(config("stl", tasks=("ner",))) == "STL ner"
    assert kind_name(config("mtl")) == "MTL"


def test_stl_runs_of_all_tasks_are_one_row() -> None:
    assert kind_key(config("stl", tasks=("ner",))) == kind_key(config("stl", tasks=("pos",), seed=4))
    assert kind_key(config("mtl")) != kind_key(config("mtl", epochs=7))


def test_differing_names_what_differs_and_nothing_else() -> None:
    one, two = config("mrn", **{"lambda": 0.01}), config("mrn", **{"lambda": 0.1})
    assert differing([one, config("mtl")]) == ["MRN λ 0.01", "MTL"]
    assert differing([one, two]) == ["MRN · λ 0.01", "MRN · λ 0.1"]
    assert differing([config("mtl"), config("mtl", fraction=0.05)]) == [
        "MTL · 100% of the data",
        "MTL · 5% of the data",
    ]


# Runs


def test_rows_and_cards(filled: Filled) -> None:
    store = Store.open()
    rows = {row.id: row for row in run_views.rows(store, store.runs())}
    done = rows[filled.finished[0]]
    assert set(done.test) == set(TASKS)
    assert done.dev == pytest.approx(np.mean([s.score for s in store.scores([done.id], "dev")]))
    assert rows[filled.live[0]].done == pytest.approx(260 / 600)
    assert rows[filled.queued[0]].dev is None
    cards = run_views.cards(store)
    assert [card.id for card in cards] == [*filled.live, *filled.queued]
    assert cards[0].eta == "12 s left"  # 340 steps at 0.035 s
    assert len(cards[0].dev_scores) == 3
    assert cards[1].progress == "Waiting for a free worker"


def test_tasks_keep_their_colour_as_runs_are_added(finished: Filled) -> None:
    store = Store.open()
    before = run_views.tasks_in_order(store.runs())
    store.add_runs([config("stl", tasks=("upos",)), config("mtl", tasks=("ner", "upos"))])
    after = run_views.tasks_in_order(store.runs())
    assert before == list(TASKS)
    assert after[: len(before)] == before


def test_by_configuration_keeps_seeds_together(finished: Filled) -> None:
    ordered = run_views.by_configuration(Store.open().runs())
    seen = [run.configuration_id for run in ordered]
    blocks = [name for i, name in enumerate(seen) if i == 0 or seen[i - 1] != name]
    assert len(blocks) == len(set(blocks))
    assert sorted(run.id for run in ordered) == sorted(run.id for run in Store.open().runs())


def test_log_tail_is_the_end(tmp_path: object) -> None:
    path = f"{tmp_path}/log"
    with open(path, "w", encoding="utf-8") as log:
        log.writelines(f"line {i}\n" for i in range(5000))
    tail = run_views.log_tail(path)
    assert tail.endswith("line 4999\n")
    assert tail.startswith("line ")
    assert len(tail) <= 16_384
    assert run_views.log_tail(None) == run_views.log_tail(f"{tmp_path}/none") == ""


# Compare


def score(run_id: int, task: str, value: float, split: str = "test") -> StoredScore:
    return StoredScore(
        run_id, split, 1, task, "f1_conll", value, value, value, value, value, value, None, 10, {}
    )


def compared(finished: Filled, values: dict[str, list[float]]) -> CompareView:
    """Runs of the store with NER scores of our own, by paradigm and seed."""
    store = Store.open()
    runs, scores = [], []
    for paradigm, numbers in values.items():
        for seed, value in enumerate(numbers, 1):
            run = next(
                r
                for r in reversed(store.runs())  # oldest first: those of the first configuration
                if r.config.paradigm == paradigm and r.config.seed == seed and "ner" in r.config.tasks
            )
            runs.append(run)
            scores += [score(run.id, "ner", value), score(run.id, "ner", value, "dev")]
    return compare(runs, scores, "test", ["ner"])


def test_best_is_bold_only_where_the_difference_holds(finished: Filled) -> None:
    clear = compared(finished, {"mtl": [0.80, 0.81, 0.82], "mrn": [0.83, 0.841, 0.849]})
    assert [row.cells["ner"].best for row in clear.rows] == [False, True]
    noisy = compared(finished, {"mtl": [0.80, 0.84, 0.82], "mrn": [0.83, 0.80, 0.85]})
    assert not any(row.cells["ner"].best for row in noisy.rows)


def test_answers_are_honest(finished: Filled) -> None:
    view = compared(finished, {"mtl": [0.80, 0.81, 0.82], "mrn": [0.83, 0.84, 0.86]})
    pair = default_pair(view)
    assert pair is not None
    (answer,) = answers(view, *pair)
    assert answer.holds
    assert answer.sentence == "+3.33 ± 1.43, 3 seeds, p = 0.010"
    one = compared(finished, {"mtl": [0.80], "mrn": [0.83]})
    pair = default_pair(one)
    assert pair is not None
    (answer,) = answers(one, *pair)
    assert not answer.holds
    assert answer.sentence == "+3.00; one seed each, so no interval"


def test_the_first_comparison_is_of_like_with_like() -> None:
    store = Store.open()
    configs = [
        config("mtl", encoder_training="frozen"),
        config("mrn", encoder_training="frozen"),
        config("mrn", encoder_training="full"),
    ]
    ids = store.add_runs(configs)
    scores = [score(run_id, "ner", value) for run_id, value in zip(ids, (0.6, 0.61, 0.9), strict=True)]
    view = compare([store.run(run_id) for run_id in ids], scores, "test", TASKS)
    pair = default_pair(view)
    assert pair is not None
    rows = {row.key: row for row in view.rows}
    assert [rows[key].config.encoder_training for key in pair] == ["frozen", "frozen"]
    assert confounds(configs[0], configs[1]) == ()
    assert confounds(configs[0], configs[2]) == ("encoder training", "lr heads")


def test_no_seed_in_common(finished: Filled) -> None:
    view = compared(finished, {"mtl": [0.80], "mrn": [0.83]})
    rows = view.rows
    moved = replace(rows[1], cells={"ner": replace(rows[1].cells["ner"], by_seed={9: 0.83})})
    (answer,) = answers(replace(view, rows=(rows[0], moved)), moved.key, rows[0].key)
    assert "no seed in common" in answer.sentence
    assert not answer.holds


def test_a_score_that_is_no_number_is_left_out(finished: Filled) -> None:
    run = Store.open().run(finished.mrn[0])
    view = compare([run], [score(run.id, "ner", math.nan), score(run.id, "pos", 0.9)], "test", TASKS)
    assert view.tasks == ("pos",)


def test_per_seed_is_in_percent(finished: Filled) -> None:
    lines = per_seed(compared(finished, {"mtl": [0.80, 0.81]}))
    assert [(line["seed"], line["ner"]) for line in lines] == [(1, pytest.approx(80)), (2, pytest.approx(81))]


# Relations


def view_of(finished: Filled, run_id: int, mode: str) -> tuple[Run, Relations, RelationsView]:
    store = Store.open()
    key, learned = store.relations(run_id)
    return store.run(run_id), learned, relations(store.run(run_id), mode, key, learned)


def test_label_view(finished: Filled) -> None:
    _, learned, view = view_of(finished, finished.mrn[0], "label")
    labels = sum(len(LABELS[task]) for task in TASKS)
    assert view.matrix.shape == (labels, labels)
    assert view.names[0] == "pos:NN"
    assert [owners for _, _, owners in view.stretches] == [("pos",), ("chunk",), ("ner",)]
    values = learned.correlation("label")[np.triu_indices(labels, 1)]
    assert abs(view.pairs[0].value) == pytest.approx(np.abs(values).max())
    assert [abs(p.value) for p in view.pairs] == sorted((abs(p.value) for p in view.pairs), reverse=True)


def test_feature_view_is_a_mean_of_blocks(finished: Filled) -> None:
    _, learned, view = view_of(finished, finished.mrn[0], "feature")
    whole = learned.correlation("feature")
    assert view.block == 2
    assert view.matrix.shape == (FEATURES // 2, FEATURES // 2)
    assert view.matrix[3, 7] == pytest.approx(whole[6:8, 14:16].mean(), abs=1e-6)
    assert len(view.all_names) == FEATURES


def test_rows_of_the_same_tasks_stand_together() -> None:
    """Where tasks share some label names, as the alignment `exact` leaves them."""
    store = Store.open()
    run_id = claimed(store)
    names, both = ("$", "NN", "X", "VB"), ("pos", "ner")
    owners = (("pos",), both, ("pos",), both)
    store.set_facts(run_id, run_facts(alignment="exact", label_names=names, label_owners=owners))
    label = np.eye(4)
    label[1, 2] = label[2, 1] = 0.5
    learned = Relations(np.eye(2), label, np.zeros((3, 0)), 1.0)
    view = relations(store.run(run_id), "label", SnapshotKey(1, 0.1), learned)
    assert view.names == ("$", "X", "NN", "VB")
    assert view.rows == (0, 2, 1, 3)
    assert view.stretches == [(0, 2, ("pos",)), (2, 4, both)]
    assert view.matrix[1, 2] == 0.5
    (pair,) = view.pairs
    assert (pair.first, pair.second, pair.first_name, pair.second_name) == (1, 2, "NN", "X")
    line = pair_line(view.all_names, "label", pair.first, pair.second, [(view.key, learned)])
    assert list(line.values) == [0.5]


def test_impossible_blocks(finished: Filled) -> None:
    _, _, tasks = view_of(finished, finished.disjoint[0], "task")
    assert len(tasks.impossible) == 6
    assert tasks.pairs == ()
    _, _, labels = view_of(finished, finished.disjoint[0], "label")
    pos, chunk = len(LABELS["pos"]), len(LABELS["chunk"])
    assert Block(0, pos, pos, pos + chunk) in labels.impossible
    assert all(p.first_name.split(":")[0] == p.second_name.split(":")[0] for p in labels.pairs)
    _, _, features = view_of(finished, finished.disjoint[0], "feature")
    assert features.impossible == ()


@pytest.mark.parametrize("mode", ["task", "label", "feature"])
def test_pair_line_reads_the_cell(mode: str, finished: Filled) -> None:
    run, learned, view = view_of(finished, finished.mrn[0], mode)
    line = pair_line(view.all_names, mode, 0, 2, [(view.key, learned)])
    assert line.values[0] == pytest.approx(learned.correlation(mode)[0, 2], abs=1e-5)
    assert line.steps[0] == view.key.step
    assert run.id == finished.mrn[0]


def test_pair_line_of_a_zero_feature_is_zero() -> None:
    learned = Relations(np.eye(2), np.eye(2), np.zeros((3, 1)), 0.0)
    line = pair_line(["a", "b", "c"], "feature", 0, 1, [(SnapshotKey(1, 0.1), learned)])
    assert list(line.values) == [0.0]
    assert correlation(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


def series(values: list[float]) -> MetricSeries:
    steps = np.arange(len(values))
    return MetricSeries(
        1, MetricKey(TOTAL, "train", "penalty"), steps, steps / 10, steps / 10, np.array(values, dtype=float)
    )


def test_a_vanished_penalty_is_seen() -> None:
    assert penalty_vanished(series([0.1, 0.05, 1e-14])) == (0.1, 1e-14)
    assert penalty_vanished(series([0.0, 0.05, 0.06])) is None
    assert penalty_vanished(series([0.0, 0.0])) is None
    assert penalty_vanished(series([math.nan])) is None
    assert penalty_vanished(None) is None


# Published figures


def test_published_figures_are_complete() -> None:
    assert len(PUBLISHED) == 8 * 3 + 8 * 2 + 4 * 2
    bert = [
        p
        for p in PUBLISHED
        if (p.table, p.encoder, p.paradigm, p.task) == (1, "bert-base-cased", "mrn", "ner")
    ]
    assert [(p.mean, p.sd) for p in bert] == [(90.82, 0.11)]


def test_published_figures_only_beside_the_same_setting() -> None:
    same = config("mrn", encoder="bert-base-cased", tasks=("pos", "chunk", "ner"))
    assert {p.table for p in matching("conll2003", [same])} == {1}
    assert matching("conll2003", [config("mrn")]) == []
    assert matching("both-pos", [same]) == []
    assert {p.fraction for p in matching("both-pos", [same.with_(fraction=0.05)])} == {0.05}


def test_run_name(finished: Filled) -> None:
    assert run_name(Store.open().run(1)) == "1 · MRN λ 0.01 · demo · seed 1"


# Curves read so far


def test_a_live_curve_is_read_on_and_an_ended_one_never_again(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open()
    cache, key = SeriesCache(), MetricKey(TOTAL, "train", "loss")
    live, done = filled.live[0], filled.finished[0]
    first = {
        series.run_id: len(series.step) for series in cache.get(store, store.runs(ids=[live, done]), key)
    }
    assert first == {live: 260, done: 600}
    step = store.run(live).step
    store.add_metrics(live, [StepMetrics(step + 1, 3.5, 9.0, {(TOTAL, "loss"): 1.25})])
    asked: list[tuple[list[int], int]] = []
    read = store.metrics

    def noted(run_ids: list[int], key: MetricKey, after_step: int = -1) -> list[MetricSeries]:
        asked.append((list(run_ids), after_step))
        return read(run_ids, key, after_step)

    monkeypatch.setattr(store, "metrics", noted)
    again = {series.run_id: series for series in cache.get(store, store.runs(ids=[live, done]), key)}
    assert asked == [([live], step)]
    assert again[live].value[-1] == 1.25
    assert len(again[live].step) == 261
    assert np.array_equal(again[live].step, np.arange(1, 262))


def test_a_second_attempt_is_another_curve(filled: Filled) -> None:
    store = Store.open()
    cache, key = SeriesCache(), MetricKey(TOTAL, "train", "loss")
    failed = filled.failed[0]
    assert len(cache.get(store, store.runs(ids=[failed]), key)[0].step) == 140
    store.requeue(failed)
    assert cache.get(store, store.runs(ids=[failed]), key) == []
