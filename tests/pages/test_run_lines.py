"""The table of runs as lines: grouped, sorted, in pages, with exact means; and what sets runs apart."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from core.store import RunState, Store
from dashboard.runs.views import PAGE, Page, difference_sentence, differences, page_of, sorts
from tests.making import claimed, config, run_facts, split_result
from tests.pages.filled_store import TASKS, Filled


def page(
    store: Store, *, grouped: bool = True, sort: str = "new", number: int = 1, opened: tuple[str, ...] = ()
) -> Page:
    return page_of(store, store.runs(), grouped=grouped, sort=sort, number=number, opened=opened)


def test_a_configuration_is_the_mean_of_its_seeds(filled: Filled) -> None:
    store = Store.open()
    line = next(line for line in page(store).lines if filled.mrn[0] in line.run_ids)
    ended = [run.id for run in store.runs(line.run_ids) if run.state is RunState.SUCCEEDED]
    ner = [score.score for score in store.scores(ended, "test") if score.task == "ner"]
    assert (line.test["ner"].mean, line.test["ner"].sd) == pytest.approx(
        (statistics.fmean(ner), statistics.stdev(ner))
    )
    assert line.test["ner"].n == len(ended) < len(line.run_ids)  # one is live, one waits
    assert line.dev is not None
    assert line.dev.n == len(ended)
    assert dict(line.states)[RunState.SUCCEEDED] == len(ended)
    assert line.run is None


def test_seeds_stand_under_an_open_configuration(filled: Filled) -> None:
    store = Store.open()
    closed = page(store).lines
    assert all(line.run is None for line in closed)
    mtl = store.run(filled.lost[0]).configuration_id
    lines = page(store, opened=(mtl,)).lines
    inside = [line for line in lines if line.run is not None]
    at = next(place for place, line in enumerate(lines) if line.configuration == mtl)
    assert list(lines[at + 1 : at + 1 + len(inside)]) == inside
    assert sorted(line.run_ids[0] for line in inside) == sorted(lines[at].run_ids)
    assert [line.seed for line in inside] == sorted(line.seed or 0 for line in inside)
    live = next(line for line in page(store, grouped=False).lines if line.run == filled.live[0])
    assert live.dev is not None  # its last epoch's
    assert live.done == pytest.approx(260 / 600)
    assert live.test == {}


def test_pages_hold_every_run_once_in_any_order() -> None:
    store = Store.open("sqlite://")
    rates = [0.001 + 0.001 * place for place in range(30)]
    store.add_runs([config(seed=seed, **{"lambda": rate}) for rate in rates for seed in (1, 2)])
    for score in (0.4, 0.8):
        store.add_result(claimed(store, RunState.SUCCEEDED, epochs=9), split_result("dev", score))
    for grouped, sort in itertools.product((True, False), sorts(TASKS)):
        first = page(store, grouped=grouped, sort=sort)
        assert (first.runs, first.configurations, first.pages) == (62, 31, 2)
        assert len(first.lines) == (PAGE if grouped else 2 * PAGE)
        second = page(store, grouped=grouped, sort=sort, number=2)
        listed = [run_id for line in (*first.lines, *second.lines) for run_id in line.run_ids]
        assert sorted(listed) == list(range(1, 63)), (grouped, sort)
    assert page(store, number=99).number == 2
    store.close()


def test_orders(finished: Filled) -> None:
    store = Store.open()
    ids = [line.run for line in page(store, grouped=False).lines]
    assert ids == sorted(ids, key=lambda run: -(run or 0))
    assert [line.run for line in page(store, grouped=False, sort="old").lines] == ids[::-1]
    dev = [line.dev.mean for line in page(store, sort="dev").lines if line.dev is not None]
    assert dev == sorted(dev, reverse=True)
    by_ner = page(store, sort="test-ner").lines
    scored = [line.test["ner"].mean for line in by_ner if "ner" in line.test]
    assert scored == sorted(scored, reverse=True)
    assert all("ner" not in line.test for line in by_ner[len(scored) :])  # those without one come last
    assert by_ner[len(scored) :]
    by_lambda = page(store, sort="lambda").lines
    strengths = [store.run(line.run_ids[0]).config.lambda_ or 9.0 for line in by_lambda]
    assert strengths == sorted(strengths)


def test_names_tell_configurations_apart(finished: Filled) -> None:
    shown = page(Store.open())
    names = {line.name for line in shown.lines}
    assert len(names) == len(shown.lines)
    assert {"STL pos", "STL chunk", "STL ner", "MTL"} <= names
    assert shown.shared == "corpus demo and encoder minilm (frozen)"


def test_only_the_runs_shown_have_their_scores_read(
    finished: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open()
    read_ids: list[int] = []
    read = store.scores

    def noted(ids: Sequence[int], **more: Any) -> Any:
        read_ids.extend(ids)
        return read(ids, **more)

    monkeypatch.setattr(store, "scores", noted)
    page_of(store, store.runs()[:5], grouped=False, sort="dev", number=1)
    assert sorted(read_ids) == sorted(run.id for run in store.runs(limit=5))


class TestDifferences:
    def test_seeds(self, finished: Filled) -> None:
        store = Store.open()
        runs = [run for run in store.runs(finished.mrn) if run.config.lambda_ == 0.1]
        assert difference_sentence(runs) == "These 3 runs are the same in everything but the seed."
        frame = differences(store, [run.id for run in runs])
        assert list(frame.index) == ["seed"]
        assert list(frame.columns) == [*(f"Run {run.id}" for run in runs), "Meaning"]

    def test_only_what_differs_is_there_and_marked(self, finished: Filled) -> None:
        store = Store.open()
        runs = [run for run in store.runs(finished.mrn) if run.config.seed == 2]
        weak, strong = sorted(runs, key=lambda run: run.config.lambda_ or 0)
        assert difference_sentence([weak, strong]) == (
            "These 2 runs are 2 configurations. They differ in λ; the seeds are the same."
        )
        frame = differences(store, [weak.id, strong.id])
        assert list(frame.index) == ["lambda"]
        assert list(frame.iloc[0])[:2] == ["0.01", "≠ 0.1"]
        assert "strength" in frame["Meaning"].iloc[0]

    def test_what_a_paradigm_lacks_is_no_other_difference(self, finished: Filled) -> None:
        store = Store.open()
        mtl = next(run for run in store.runs() if run.config.paradigm == "mtl" and run.config.seed == 1)
        sentence = difference_sentence([store.run(finished.mrn[0]), mtl])
        assert "They differ in paradigm; the seeds are the same." in sentence
        frame = differences(store, [finished.mrn[0], mtl.id])
        assert {"paradigm", "prior", "alignment used"} <= set(frame.index)
        assert frame.loc["prior", f"Run {mtl.id}"] == "≠ –"

    def test_facts_of_the_training(self) -> None:
        store = Store.open("sqlite://")
        ids = [claimed(store, seed=1), claimed(store, seed=1)]
        store.set_facts(ids[0], run_facts(device="cpu", versions={"torch": "2.12.0"}))
        store.set_facts(ids[1], run_facts(device="cuda:0", versions={"torch": "2.13.0"}))
        assert "the same description and the same seed." in difference_sentence(store.runs(ids))
        frame = differences(store, ids).drop(columns="Meaning")
        assert dict(zip(frame.index, map(tuple, frame.to_numpy()), strict=True)) == {
            "device used": ("cpu", "≠ cuda:0"),
            "torch version": ("2.12.0", "≠ 2.13.0"),
        }
        store.close()


def scored(seed: int, score: float, **facts: Any) -> int:
    """A run that succeeded with these dev and test scores."""
    run_id = claimed(Store.open(), RunState.SUCCEEDED, seed=seed)
    store = Store.open()
    store.set_facts(run_id, run_facts(**facts))
    for split in ("dev", "test"):
        store.add_result(run_id, split_result(split, score))
    return run_id


@pytest.mark.usefixtures("laboratory")
class TestSeeds:
    def test_a_seed_that_was_run_again_counts_once(self) -> None:
        """With the same seed twice there is one seed and no spread; the newest that succeeded counts."""
        scored(1, 0.5)
        scored(1, 0.7)
        claimed(Store.open(), RunState.FAILED)
        (line,) = page(Store.open()).lines
        assert (line.seeds, len(line.run_ids)) == (1, 3)
        for score in (line.test["pos"], line.dev):
            assert score is not None
            assert (score.sd, score.n) == (None, 1)
        assert line.test["pos"].mean == pytest.approx(0.7)

    def test_seeds_on_other_text_or_in_another_precision_make_no_mean(self) -> None:
        scored(1, 0.5, text_hash="a")
        scored(2, 0.6, text_hash="b", precision="bf16")
        scored(3, 0.7, text_hash="b")
        scored(4, 0.8)  # of an older version: it may have seen either text
        (line,) = page(Store.open()).lines
        assert line.test["pos"].mean == pytest.approx(0.8)
        scored(5, 0.9, text_hash="b")
        (line,) = page(Store.open()).lines
        assert (line.test["pos"].mean, line.test["pos"].n) == pytest.approx((0.8, 2))  # 0.7 and 0.9
