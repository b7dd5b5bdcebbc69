"""Relations made ready to be shown: rows, steps, pictures, pairs, gold labels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation.relation_verdicts import relation_verdicts
from core.metrics import TOTAL
from core.mrn.relations import Relations, correlation
from core.store import RunWithFacts, Store
from core.store.types import MetricKey, MetricSeries, Run, SnapshotKey, StoredScore
from dashboard.relations import views
from dashboard.relations.matrices import Picture, arrangement, picture
from tests.making import claimed, facts_of, run_facts
from tests.making import relations as random_relations
from tests.pages.filled_store import FEATURES, LABELS, TASKS, Filled

_PENALTY = MetricKey(TOTAL, "train", "penalty")
NAMES = tuple(f"{task}:{label}" for task in TASKS for label in LABELS[task])


def read(*ids: int) -> list[views.Trajectory]:
    store = Store.open()
    runs = [store.run(run_id) for run_id in ids]
    steps = views.aligned(runs, {run.id: store.snapshots(run.id) for run in runs})
    return [
        views.Trajectory(run, keys, tuple(store.relations(run.id, key.step)[1] for key in keys))
        for run, keys in zip(runs, steps.keys, strict=True)
    ]


def drawn(trajectories: list[views.Trajectory], mode: str, order: str = "task", **more: Any) -> Picture:
    learned = [trajectory.learned[-1] for trajectory in trajectories]
    rows = [views.rows_of(shown.run, mode, last) for shown, last in zip(trajectories, learned, strict=True)]
    shared = views.shared_rows(rows)
    places = arrangement(mode, shared, learned, order)
    group = views.Group("MRN", tuple(trajectory.run for trajectory in trajectories))
    return picture(trajectories, [group], mode, shared, places, **more)


def run_with(run_id: int, total: int | None, **facts: Any) -> Run:
    store = Store.open()
    made = claimed(store)
    store.set_facts(made, run_facts(**facts))
    return dataclasses.replace(store.run(made), id=run_id, total_steps=total)


# One matrix


def series(values: list[float], key: MetricKey = _PENALTY) -> MetricSeries:
    steps = np.arange(len(values))
    return MetricSeries(1, key, steps, steps / 10, steps / 10, np.array(values, dtype=float))


@pytest.mark.parametrize(("step", "score"), [(-1, None), (0, 0.1), (1, 0.2), (9, 0.3)])
def test_a_dev_score_is_that_of_the_last_evaluation_up_to_the_step(step: int, score: float | None) -> None:
    of_ner = series([0.1, 0.2, 0.3], MetricKey("ner", "dev", "score"))
    assert views.dev_scores([of_ner], {1: step}) == ({} if score is None else {"ner": {1: score}})


def test_a_vanished_penalty_is_seen() -> None:
    assert views.penalty_vanished(series([0.1, 0.05, 1e-14])) == (0.1, 1e-14)
    for values in ([0.0, 0.05, 0.06], [0.0]):
        assert views.penalty_vanished(series(values)) is None
    assert views.penalty_vanished(None) is None


def test_the_majority_is_known_of_what_is_scored_by_accuracy() -> None:
    reports = {"sst": {"pos": 60, "neg": 40, "never": 0}, "ner": {"PER": 5}, "sim": {}}
    names = {"sst": "accuracy", "ner": "f1_conll", "sim": "accuracy"}
    stored = [
        StoredScore(
            task, names[task], 0.5, 100, report={label: {"support": n} for label, n in counts.items()},
            run_id=1, split="dev", epoch=1,
        )
        for task, counts in reports.items()
    ]  # fmt: skip
    assert views.majority_shares(stored) == {"sst": 0.6}


# Rows


def test_rows_of_the_same_tasks_stand_together() -> None:
    """Where tasks share some label names, as the alignment `exact` leaves them."""
    both = ("pos", "ner")
    rows = views.Rows(("$", "NN", "X", "VB"), (("pos",), both, ("pos",), both))
    assert views.together(rows).tolist() == [0, 2, 1, 3]
    assert rows.at(views.together(rows)).names == ("$", "X", "NN", "VB")


def test_shared_rows_are_found_by_name() -> None:
    a = views.Rows(("x", "y", "z"), ((), (), ()))
    b = views.Rows(("z", "w", "x"), ((), (), ()))
    shared = views.shared_rows([a, b])
    assert shared.rows.names == ("x", "z")
    assert [places.tolist() for places in shared.places] == [[0, 2], [2, 0]]
    assert shared.left_out == (("y",), ("w",))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(2, 5))
def test_clusters_stand_together(seed: int, groups: int) -> None:
    """Rows of planted groups, shuffled: each group is one stretch of the order."""
    random = np.random.default_rng(seed)
    group = random.permutation(np.repeat(np.arange(groups), 4))
    planted = np.where(group[:, None] == group, 0.8, -0.1) + 0.2 * np.eye(len(group))
    order = views.clustered(planted)
    assert sorted(order.tolist()) == list(range(len(group)))
    assert (np.diff(group[order]) != 0).sum() == groups - 1


def test_nothing_to_cluster_stays_as_it_is() -> None:
    assert views.clustered(np.eye(2)).tolist() == [0, 1]
    broken = np.eye(4)
    broken[0, 1] = np.nan
    assert views.clustered(broken).tolist() == [0, 1, 2, 3]


def test_runs_without_common_rows_are_told_apart(finished: Filled) -> None:
    a, b = (run_with(number, 20, label_names=(name,) * 4) for number, name in ((1, "a"), (2, "b")))
    rows = [views.Rows(("a:1", "a:2"), ((), ())), views.Rows(("b:1", "b:2"), ((), ()))]
    reason = views.not_comparable([a, b], "label", views.shared_rows(rows)) or ""
    assert "fewer than two labels of the same name" in reason
    same_rows = views.shared_rows(rows[:1] * 2)
    other = dataclasses.replace(b, config=b.config.model_copy(update={"encoder": "another"}))
    assert "encoder" in (views.not_comparable([a, other], "feature", same_rows) or "")
    assert views.not_comparable([a, b], "feature", same_rows) is None
    trained = [dataclasses.replace(run, config=run.config.with_(encoder="sc-lstm")) for run in (a, b)]
    assert "start from random weights" in (views.not_comparable(trained, "feature", same_rows) or "")
    assert views.not_comparable(trained, "task", same_rows) is None


# Moments


def keys(*steps: int) -> list[SnapshotKey]:
    return [SnapshotKey(step, step / 10) for step in steps]


@pytest.mark.parametrize(
    ("first", "second", "total", "shown", "beside", "exact", "cut"),
    [
        ((1, 50, 100), (1, 50, 100), 100, (1, 50, 100), [1, 50, 100], True, False),
        ((1, 50, 100), (1, 260, 510, 760, 1000), 1000, (1, 50, 100), [1, 510, 1000], False, False),
        # No run is shown beyond what all have reached.
        ((1, 25, 50, 75, 100), (1, 25, 50), 100, (1, 25, 50), [1, 25, 50], True, True),
    ],
)
def test_runs_are_aligned_by_share_of_training(
    first: tuple[int, ...], second: tuple[int, ...], total: int, shown: tuple[int, ...], beside: list[int],
    exact: bool, cut: bool,
) -> None:  # fmt: skip
    runs = [run_with(1, 100), run_with(2, total)]
    steps = views.aligned(runs, {1: keys(*first), 2: keys(*second)})
    assert (steps.steps, [key.step for key in steps.keys[1]]) == (shown, beside)
    assert (steps.exact, steps.cut) == (exact, cut)
    assert (steps.at(None), steps.at(60)) == (2, 2 if cut else 1)


# Pictures


@pytest.mark.parametrize("order", ["task", "cluster"])
def test_every_label_has_its_cell_and_hatching_follows_the_order(order: str, finished: Filled) -> None:
    (related,), (apart,) = read(finished.mrn[0]), read(finished.disjoint[0])
    shown = drawn([related], "label", order=order)
    names = shown.rows.rows.names
    assert sorted(names) == sorted(NAMES)
    places = [NAMES.index(name) for name in names]
    (panel,) = shown.panels
    assert panel.values.shape[0] == len(related.keys)
    expected = related.learned[-1].correlation("label")[np.ix_(places, places)]
    np.testing.assert_allclose(panel.values[-1], expected)
    shown = drawn([apart], "label", order=order)
    hatched = np.zeros(shown.panels[0].values.shape[1:], dtype=bool)
    for block in shown.panels[0].impossible:
        hatched[block.top : block.bottom, block.left : block.right] = True
    tasks = np.array([name.split(":")[0] for name in shown.rows.rows.names])
    assert np.array_equal(hatched, tasks[:, None] != tasks)
    assert drawn([apart], "feature").panels[0].impossible == ()


def test_blocks_of_features_are_their_means(finished: Filled) -> None:
    (trajectory,) = read(finished.mrn[0])
    shown = drawn([trajectory], "feature")
    assert shown.rows.block == 2
    assert shown.rows.rows.names[3] == "feature 6 … feature 7"
    whole = trajectory.learned[-1].correlation("feature").astype(float)
    means = whole.reshape(FEATURES // 2, 2, FEATURES // 2, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(shown.panels[0].values[-1], means, atol=2e-6)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), size=st.integers(3, 90), top=st.integers(0, 90), left=st.integers(0, 90))
def test_any_part_of_any_order_agrees_with_the_matrix(seed: int, size: int, top: int, left: int) -> None:
    random = np.random.default_rng(seed)
    learned = random_relations(seed % 1000, features=size, rank=int(random.integers(1, 5)))
    rows = views.rows_of(RUN, "feature", learned)
    shared, order = views.shared_rows([rows]), random.permutation(size)
    trajectory = views.Trajectory(RUN, (SnapshotKey(1, 0.1),), (learned,))
    shown = picture([trajectory], [views.Group("a", (RUN,))], "feature", shared, order, (top, left))
    part = [slice(axis.start, axis.stop) for axis in (shown.rows, shown.columns)]
    assert all(0 <= axis.start <= axis.stop <= size for axis in (shown.rows, shown.columns))
    expected = learned.correlation("feature")[np.ix_(order, order)][*part]
    np.testing.assert_allclose(shown.panels[0].values[0], expected, atol=1e-5)


# Pairs


def table_of(trajectories: list[views.Trajectory], among: str = "all", *, seeds: int = 0) -> pd.DataFrame:
    """The strongest pairs of these runs, a matrix each; with verdicts as of so many seeds."""
    runs, learned = [shown.run for shown in trajectories], [shown.learned[-1] for shown in trajectories]
    rows = [views.rows_of(run, "label", last) for run, last in zip(runs, learned, strict=True)]
    shared = views.shared_rows(rows)
    values = dict(
        zip((str(run.id) for run in runs), views.shared_matrices(learned, "label", shared), strict=True)
    )
    possible = views.learnable_pairs(runs, "label", shared.rows, among)
    verdicts = {
        name: relation_verdicts(np.stack([of] * seeds), np.ones(of.shape, dtype=bool)) if seeds else None
        for name, of in values.items()
    }
    pairs = views.strongest(list(values.values()), possible, list(verdicts.values()))
    return views.pair_table(values, pairs, shared.rows.names, verdicts)


def test_pairs_are_the_strongest_within_and_between_tasks_and_of_two_matrices(finished: Filled) -> None:
    trajectories = read(*finished.mrn[:2])
    for among in ("within", "between"):
        table = table_of(trajectories[:1], among)
        first, second = (table[name].str.split(":").str[0] for name in ("First", "Second"))
        assert (len(table), set(first == second)) == (12, {among == "within"})
        values = table.iloc[:, 2].to_numpy(dtype=float)
        assert (np.sign(values) == [1] * 6 + [-1] * 6).all()
        assert [*values] == [*sorted(values[:6], reverse=True), *sorted(values[6:])]
    assert table_of(read(finished.disjoint[0]), "between").empty
    two = table_of(trajectories)
    one, other = (np.abs(np.triu(of.learned[-1].correlation("label"), 1)) for of in trajectories)
    assert two.iloc[:, 2:].abs().max().max() == pytest.approx(np.maximum(one, other).max(), abs=1e-6)
    # Seeds that agree decide: one matrix has an interval, several have marks.
    alone = table_of(trajectories[:1], seeds=3)
    assert list(alone)[3:] == ["95% interval", "Verdict"]
    assert {*alone["Verdict"]} <= {"● related", "× opposed"}
    assert set(table_of(trajectories, seeds=3).iloc[0, 2:].str[-1]) <= {"●", "×"}


@pytest.mark.parametrize("mode", ["task", "label", "feature"])
def test_pair_line_reads_the_cell(mode: str, finished: Filled) -> None:
    (trajectory,) = read(finished.mrn[0])
    (values,) = views.pair_values([trajectory], mode, [np.arange(FEATURES)], 0, 2)
    assert views.training_shares(trajectory.run, trajectory.keys)[-1] == 1
    expected = [learned.correlation(mode)[0, 2] for learned in trajectory.learned]
    np.testing.assert_allclose(values, expected, atol=1e-5)


def test_pair_line_of_a_zero_feature_is_zero() -> None:
    learned = Relations(np.eye(2), np.eye(2), np.zeros((3, 1)), 0.0)
    trajectory = views.Trajectory(RUN, (SnapshotKey(1, 0.1),), (learned,))
    assert views.pair_values([trajectory], "feature", [np.arange(3)], 0, 1).tolist() == [[0.0]]
    assert correlation(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


# Gold labels


def test_agreement_of_learned_and_counted() -> None:
    random = np.random.default_rng(3)
    gold = random.normal(size=(6, 6))
    gold += gold.T
    rows = views.Rows(tuple("abcdef"), (("x",),) * 3 + (("y",),) * 3)
    every, between = np.ones((6, 6), dtype=bool), ~views.same_task(rows)
    assert views.agreement(2 * gold, gold, every) == pytest.approx((1, 15))
    assert views.agreement(-(gold**3), gold, between) == pytest.approx((-1, 9))
    assert views.agreement(np.zeros((6, 6)), gold, every) is None
    # What cannot be learned is not compared.
    assert views.agreement(gold, gold, np.eye(6, dtype=bool)) is None


def test_why_there_are_no_gold_labels(finished: Filled) -> None:
    run = Store.open().run(finished.disjoint[0])
    assert views.gold_labels(run) is None
    assert "not annotated on the same words" in views.why_no_gold(run)
    merged = dataclasses.replace(
        run, facts=dataclasses.replace(facts_of(run), label_owners=(("pos", "ner"),))
    )
    assert "rows of several labels" in views.why_no_gold(merged)
    assert "labels are not recorded yet" in views.why_no_gold(dataclasses.replace(run, facts=None))


def _plain_run() -> RunWithFacts:
    store = Store.open("sqlite://")
    try:
        return store.run(claimed(store))
    finally:
        store.close()


RUN = _plain_run()
