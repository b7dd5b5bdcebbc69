"""What researchers add to runs, whatever database the store stands on: archive, notes, tags."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import IllegalMove, MRNLabError
from core.store import ACTIVE, RunState, Store, normal_tag
from tests.making import Clock, claimed, config


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

    def test_the_first_time_counts(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store, RunState.FAILED)
        store.archive([run_id])
        first = store.run(run_id).archived_at
        clock.now += 60
        store.archive([run_id])
        assert store.run(run_id).archived_at == first

    def test_restores(self, store: Store) -> None:
        run_id = claimed(store, RunState.LOST)
        store.archive([run_id])
        store.restore([run_id, 999])
        assert not store.run(run_id).archived
        assert [run.id for run in store.runs()] == [run_id]

    @pytest.mark.parametrize("state", sorted(ACTIVE))
    def test_nothing_that_goes_on_and_then_none(self, store: Store, state: RunState) -> None:
        done = claimed(store, RunState.SUCCEEDED)
        going_on = claimed(store, state, seed=2)
        with pytest.raises(IllegalMove, match=f"Run {going_on} is {state}; only runs that have ended"):
            store.archive([done, going_on])
        assert not store.run(done).archived

    def test_a_run_that_starts_again_is_back_in_the_lists(self, store: Store) -> None:
        run_id = claimed(store, RunState.FAILED)
        store.archive([run_id])
        store.requeue(run_id)
        assert [run.id for run in store.runs()] == [run_id]


class TestTags:
    def test_are_added_and_removed(self, store: Store) -> None:
        one, two = store.add_runs([config(), config(seed=2)])
        store.add_tags([one, two, 999], ["Baseline", "to check"])
        store.add_tags([one], ["baseline", "BEST"])
        assert store.run(one).tags == ("baseline", "best", "to-check")
        assert store.run(two).tags == ("baseline", "to-check")
        store.remove_tags([one, two], ["Baseline", "unheard of"])
        assert [run.tags for run in store.runs()] == [("to-check",), ("best", "to-check")]

    def test_one_bad_tag_changes_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        with pytest.raises(MRNLabError, match="at least one letter"):
            store.add_tags([run_id], ["good", " , "])
        with pytest.raises(MRNLabError, match="longer than 50"):
            store.add_tags([run_id], ["good", "x" * 51])
        assert store.run(run_id).tags == ()

    def test_survive_a_new_start(self, store: Store) -> None:
        run_id = claimed(store, RunState.FAILED)
        store.add_tags([run_id], ["odd"])
        store.requeue(run_id)
        assert store.run(run_id).tags == ("odd",)

    @settings(max_examples=50)
    @given(st.text(max_size=50))
    def test_have_one_spelling(self, text: str) -> None:
        try:
            tag = normal_tag(text)
        except MRNLabError:
            return
        assert normal_tag(tag) == tag
        assert tag == tag.lower()
        assert not set(tag) & set(", \t\n")
