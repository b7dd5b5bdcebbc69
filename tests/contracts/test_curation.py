"""What researchers add to runs, whatever database the store stands on: archive, notes, keywords."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.errors import IllegalMove, MRNLabError
from core.paths import checkpoint_dir
from core.store import ACTIVE, RunState, Store, normal_keyword
from jobs.queue import control
from tests.making import Clock, claimed, config, fully_recorded


class TestArchive:
    def test_leaves_lists_but_not_the_store(self, store: Store, clock: Clock) -> None:
        kept, put_away = (claimed(store, RunState.SUCCEEDED, seed=seed) for seed in (1, 2))
        store.archive([put_away, 999])
        assert [run.id for run in store.runs()] == [kept]
        assert [run.id for run in store.runs(archived=True)] == [put_away]
        assert [run.id for run in store.runs(archived=None)] == [put_away, kept]
        assert [run.id for run in store.runs(states={RunState.SUCCEEDED})] == [kept]
        assert [run.id for run in store.runs(ids=[kept, put_away])] == [put_away, kept]
        assert store.run(put_away).archived
        assert store.run(put_away).archived_at == datetime.fromtimestamp(clock.now, UTC)
        assert store.counts()[RunState.SUCCEEDED] == 2
        clock.now += 60
        archived = store.run(put_away)
        store.archive([put_away])
        assert store.run(put_away) == archived  # the first time counts
        store.restore([put_away, 999])
        assert [run.id for run in store.runs()] == [put_away, kept]

    def test_nothing_that_goes_on_and_then_none(self, store: Store) -> None:
        done = claimed(store, RunState.SUCCEEDED)
        for state in ACTIVE:
            going_on = claimed(store, state, seed=2)
            with pytest.raises(IllegalMove, match=f"Run {going_on} is {state}; only runs that have ended"):
                store.archive([done, going_on])
        assert not store.run(done).archived

    def test_a_run_that_starts_again_is_back_in_the_lists_with_its_keywords(self, store: Store) -> None:
        run_id = claimed(store, RunState.FAILED)
        store.add_keywords([run_id], ["odd"])
        store.archive([run_id])
        store.requeue(run_id)
        assert [run.keywords for run in store.runs()] == [("odd",)]


class TestDeletion:
    def test_is_undone_by_a_restore_with_all_records_and_files(self, store: Store, clock: Clock) -> None:
        run_id, other = fully_recorded(store), claimed(store, RunState.QUEUED)
        weights = checkpoint_dir(run_id) / "weights"
        weights.parent.mkdir(parents=True)
        weights.touch()
        before = store.record(run_id)
        assert [answer.done for answer in control.delete(store, [run_id, other])] == [True, True]
        clock.now += control.KEPT_S - 1
        control.remove_deleted(store)
        (answer,) = control.restore(store, [run_id])
        assert (answer.done, answer.message) == (True, f"Run {run_id} is back.")
        assert repr(store.record(run_id)) == repr(before)
        control.delete(store, [run_id])
        clock.now += control.KEPT_S
        control.remove_deleted(store)
        assert not weights.parent.exists()
        assert not any(answer.done for answer in control.restore(store, [run_id, other]))
        assert {table for table, rows in store.rows().items() if rows} == {"metric_keys"}

    def test_a_restored_run_is_never_removed(
        self, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody restores it while deleted runs are removed."""
        run_id, answers = fully_recorded(store), list[control.Answer]()
        control.delete(store, [run_id])
        clock.now += control.KEPT_S
        monkeypatch.setattr(
            control, "forget_run", lambda run_id: answers.extend(control.restore(store, [run_id]))
        )
        control.remove_deleted(store)
        assert [answer.done for answer in answers] == [bool(store.runs())]


class TestTags:
    def test_are_added_and_removed(self, store: Store) -> None:
        first, second = store.add_runs([config(), config(seed=2)])
        store.add_keywords([first, second, 999], ["Baseline", "to check"])
        store.add_keywords([first], ["baseline", "BEST"])
        assert store.run(first).keywords == ("baseline", "best", "to-check")
        assert store.run(second).keywords == ("baseline", "to-check")
        store.remove_keywords([first, second], ["Baseline", "unheard of"])
        assert [run.keywords for run in store.runs()] == [("to-check",), ("best", "to-check")]

    def test_one_bad_tag_changes_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        with pytest.raises(MRNLabError, match="at least one letter"):
            store.add_keywords([run_id], ["good", " , "])
        with pytest.raises(MRNLabError, match="longer than 50"):
            store.add_keywords([run_id], ["good", "x" * 51])
        assert store.run(run_id).keywords == ()


@pytest.mark.parametrize("text", ["Größer als λ", " A,b\t c\n", "--x--y-", "İstanbul", "ΑΣ", "x" * 50])
def test_a_tag_has_one_spelling(text: str) -> None:
    keyword = normal_keyword(text)
    assert normal_keyword(keyword) == keyword
    assert keyword == keyword.lower()
    assert not set(keyword) & set(", \t\n")
