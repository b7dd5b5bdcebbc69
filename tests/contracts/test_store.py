"""What every store must do with runs and their lives, whatever database it stands on."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import IntegrityError

from core.corpora.repeats import Repeat
from core.errors import IllegalMove, NotOwner, RunNotFound
from core.store import ENDED, MOVES, Conditions, ErrorInfo, RunState, Store, schema
from tests.making import (
    OTHER,
    OWNER,
    Clock,
    claimed,
    config,
    facts_of,
    fully_recorded,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
    stopped_halfway,
)
from tests.pins.moves import ALLOWED


class TestRuns:
    def test_keeps_what_was_queued(self, store: Store, clock: Clock) -> None:
        configs = [config(seed=seed) for seed in (3, 1, 2)]
        ids = store.add_runs(configs, sweep="three seeds")
        runs = [store.run(run_id) for run_id in ids]
        assert [run.config for run in runs] == configs
        assert {run.sweep for run in runs} == {"three seeds"}
        assert {run.configuration_id for run in runs} == {configs[0].configuration_id}
        assert {run.state for run in runs} == {RunState.QUEUED}
        assert runs[0].created_at == datetime.fromtimestamp(clock.now, UTC)
        assert runs[0].attempt == 1
        assert runs[0].facts is None

    def test_lists_newest_first(self, store: Store) -> None:
        ids = store.add_runs([config(seed=seed) for seed in range(5)])
        assert [run.id for run in store.runs()] == ids[::-1]
        assert [run.id for run in store.runs(limit=2)] == ids[:-3:-1]
        assert [run.id for run in store.runs(ids=[ids[1], ids[3], 999])] == [ids[3], ids[1]]
        store.request_stop(ids[2])
        assert [run.id for run in store.runs(states={RunState.CANCELLED})] == [ids[2]]
        assert store.runs(ids=[ids[0]], states={RunState.CANCELLED}) == []
        counts = dict.fromkeys(RunState, 0) | {RunState.QUEUED: 4, RunState.CANCELLED: 1}
        assert store.counts() == counts
        assert store.runs(ids=[]) == []
        assert store.add_runs([]) == []

    def test_conditions_are_taken_from_facts(self, store: Store) -> None:
        known, old, running = (claimed(store) for _ in range(3))
        queued = claimed(store, RunState.QUEUED)
        store.set_facts(known, run_facts(text_hash="abc", precision="bf16"))
        store.set_facts(old, run_facts())
        store.set_facts(running, run_facts(text_hash="abc"))
        for run_id in (known, old):
            store.finish(run_id, RunState.SUCCEEDED)
        expected = {
            known: Conditions("abc", "bf16", "cooccurrence"),
            old: Conditions(None, "fp32", "cooccurrence"),
            running: Conditions("abc", "fp32", "cooccurrence"),
        }
        assert store.conditions(store.runs()) == expected
        assert queued not in expected
        store.set_facts(running, run_facts(text_hash="other"))  # resumed elsewhere: not kept while it trains
        assert store.conditions(store.runs())[running] == Conditions("other", "fp32", "cooccurrence")
        assert store.conditions([]) == {}

    def test_conditions_have_repeated_sentences(self, store: Store) -> None:
        repeats = (Repeat("test", "train", 15, 20), Repeat("dev", "test", 1, 9, "pairs"))
        run_id = claimed(store)
        store.set_facts(run_id, run_facts(repeats=repeats, cooccurrence=((math.nan,),)))
        assert store.conditions(store.runs())[run_id].repeats == repeats
        with store.transaction() as connection:
            wrong = update(schema.facts).values(facts='{"repeats": [{"split": 3}]}')
            connection.execute(wrong.where(schema.facts.c.run_id == run_id))
        assert "at repeats" in str(store.conditions(store.runs())[run_id].problem)

    def test_runs_whose_sentences_without_features_were_left_out_saw_other_text(self, store: Store) -> None:
        """The hash of CoNLL-U text is that of before, for runs on other tasks saw the same sentences."""
        dealt = "apart:ud?tasks=feats:Number,pos"
        texts = []
        for facts in (run_facts(text_hash="abc"), run_facts(text_hash="abc", feats_sentences="all")):
            runs = [
                claimed(store, tasks=("feats:Number", "pos")),
                claimed(store, corpus=dealt),
                claimed(store),
            ]
            for run in runs:
                store.set_facts(run, facts)
            conditions = store.conditions(store.runs(ids=runs))
            texts.append([conditions[run].text for run in runs])
        assert texts == [["old-abc", "old-abc", "abc"], ["abc", "abc", "abc"]]

    def test_a_rolled_back_change_is_never_shown(self, store: Store) -> None:
        run_id = claimed(store)

        def change_and_fail() -> None:
            with store.transaction():
                store.set_progress(run_id, step=7, epoch=0.7, total_steps=20)
                assert store.runs()[0].step == 7
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            change_and_fail()
        assert store.runs()[0].step == 0
        store.set_progress(run_id, step=8, epoch=0.8, total_steps=20)
        assert store.runs()[0].step == 8

    def test_runs_of_a_configuration(self, store: Store) -> None:
        mrn, other, mtl = store.add_runs([config(seed=1), config(seed=2), config(paradigm="mtl")])
        wanted = config().configuration_id
        assert [run.id for run in store.runs_of([wanted])] == [other, mrn]
        assert store.claim(OWNER) is not None
        assert [run.id for run in store.runs_of([wanted], {RunState.RUNNING})] == [mrn]
        both = store.runs_of([wanted, config(paradigm="mtl").configuration_id])
        assert [run.id for run in both] == [mtl, other, mrn]
        store.finish(mrn, RunState.SUCCEEDED)
        store.archive([mrn])
        assert [run.id for run in store.runs_of([wanted, "unknown"])] == [other]
        assert store.runs_of([]) == []

    def test_runs_that_were_added_together(self, store: Store, clock: Clock) -> None:
        first = store.add_runs([config(seed=1), config(seed=2)], "sweep")
        clock.now += 1
        second = store.add_runs([config(seed=3), config(seed=4)], "sweep")
        assert [run.id for run in store.added_together(first[:1])] == first[::-1]
        assert [run.id for run in store.added_together([second[1], first[0]])] == [
            *second[::-1],
            *first[::-1],
        ]
        store.claim(OWNER, run_id=first[0])
        store.finish(first[0], RunState.SUCCEEDED)
        store.archive(first[:1])
        assert [run.id for run in store.added_together(first)] == first[1:]
        assert store.added_together([]) == store.added_together([second[1] + 1]) == []

    def test_facts_come_with_runs_that_are_named(self, store: Store) -> None:
        run_id = claimed(store)
        store.set_facts(run_id, run_facts(total_steps=33))
        assert store.run(run_id).facts == run_facts(total_steps=33)
        assert store.run(run_id).total_steps == 33
        assert not hasattr(store.runs()[0], "facts")
        assert store.runs_with_facts()[0].facts == store.run(run_id).facts

    def test_unknown_runs_are_named(self, store: Store) -> None:
        for call in (
            lambda: store.run(12),
            lambda: store.state(12),
            lambda: store.request_stop(12),
            lambda: store.requeue(12),
            lambda: store.heartbeat(12, OWNER),
            lambda: store.finish(12, RunState.LOST),
            lambda: store.add_metrics(12, [step_metrics(1)]),
            lambda: store.add_snapshot(12, snapshot(1)),
            lambda: store.add_result(12, split_result("dev")),
            lambda: store.add_event(12, "note", "Hello."),
            lambda: store.set_saved_step(12, 1),
        ):
            with pytest.raises(RunNotFound, match="There is no run 12") as unknown:
                call()
            assert unknown.value.run_id == 12

    def test_deletes_with_all_that_was_recorded(self, store: Store) -> None:
        kept, gone = fully_recorded(store), fully_recorded(store)
        store.delete_runs([gone, 999])
        assert [run.id for run in store.runs()] == [kept]
        with store.transaction(write=False) as connection:
            for table in ("metrics", "scores", "predictions", "snapshots", "facts", "events"):
                owners = connection.execute(text(f"SELECT DISTINCT run_id FROM {table}")).scalars().all()
                assert owners == [kept], table

    def test_never_deletes_what_is_being_trained(self, store: Store) -> None:
        running = claimed(store)
        queued = store.add_runs([config(seed=2)])[0]
        with pytest.raises(IllegalMove, match=f"Run {running} is being trained") as refused:
            store.delete_runs([queued, running])
        assert (refused.value.run_id, refused.value.state) == (running, RunState.RUNNING)
        assert store.state(queued) is RunState.QUEUED
        store.delete_runs([queued])
        assert store.add_runs([config()])[0] > queued, "an id is used again"

    def test_a_deleted_run_is_found_by_nothing_until_it_is_brought_back(
        self, store: Store, clock: Clock
    ) -> None:
        ended, running = claimed(store, RunState.SUCCEEDED), claimed(store)
        (queued,) = store.add_runs([config(seed=2)])
        store.add_result(ended, split_result("dev"))
        with pytest.raises(IllegalMove):
            store.mark_deleted([queued, running])
        assert len(store.runs()) == 3
        store.mark_deleted([ended, queued])
        assert [run.id for run in store.runs(archived=None)] == [running]
        assert (
            store.runs([ended, queued])
            == store.runs_of([config(seed=2).configuration_id], {RunState.QUEUED})
            == []
        )
        assert store.counts()[RunState.QUEUED] == store.claimable(OTHER.host) == 0
        assert store.claim(OTHER) is None
        with pytest.raises(RunNotFound):
            store.state(ended)
        assert store.remove_marked(clock.now - 1) == []
        assert store.undelete([ended, running]) == {ended}
        assert store.run(ended).state is RunState.SUCCEEDED
        assert store.scores([ended])
        assert store.remove_marked(clock.now) == [queued]
        assert store.undelete([queued]) == set()
        assert store.rows()["runs"] == 2

    def test_one_unreadable_description_hides_no_other_run(self, store: Store) -> None:
        good, old, broken = store.add_runs([config(), config(seed=2), config(seed=3)])
        with store.transaction() as connection:
            set_config = text("UPDATE runs SET config = :config WHERE id = :id")
            stored = config(seed=2).to_json().replace("{", '{"colour":"red",', 1)
            connection.execute(set_config, {"config": stored, "id": old})
            connection.execute(set_config, {"config": "no JSON", "id": broken})
        runs = {run.id: run for run in store.runs()}
        assert runs[good].config_problem is None
        assert runs[good].config == config()
        problem = runs[old].config_problem
        assert problem is not None
        assert "colour" in problem
        assert runs[old].config.tasks == ("pos", "ner")
        assert runs[broken].config_problem == "Damaged in the store: its description is no JSON object."
        assert runs[broken].config.corpus == "unreadable"
        assert runs[broken].stored_config == "no JSON"

    @pytest.mark.parametrize("damage", ['{"device": "cp', "", "[]", "null", "7"])
    def test_facts_that_cannot_be_read_hide_no_others(self, store: Store, damage: str) -> None:
        good, bad, odd = (claimed(store, seed=seed) for seed in (1, 2, 3))
        for run_id in (good, bad, odd):
            store.set_facts(run_id, run_facts(text_hash="abc", cooccurrence=((math.nan,),)))
        with store.transaction() as connection:
            change = text("UPDATE facts SET facts = :facts WHERE run_id = :id")
            connection.execute(change, {"facts": damage, "id": bad})
            known = dataclasses.asdict(run_facts()) | {"tasks": 3}
            connection.execute(change, {"facts": json.dumps(known), "id": odd})
        runs = {run.id: run for run in store.runs_with_facts([good, bad, odd])}
        assert facts_of(runs[good]).text_hash == "abc"
        assert [runs[run_id].facts for run_id in (bad, odd)] == [None, None]
        assert runs[good].problem is None
        assert runs[bad].problem == "Damaged in the store: its facts are no JSON object."
        assert (
            runs[odd].problem == "Made by another version: its facts are not as this one has them, at tasks."
        )
        assert {run.problem for run in store.runs()} == {None}  # facts are not read for lists
        conditions = store.conditions(runs.values())
        assert conditions[good].text == "abc"  # a NaN among facts hides nothing
        assert conditions[good].problem is None
        assert conditions[bad].problem == runs[bad].problem
        store.finish(bad, RunState.FAILED, error=ErrorInfo("E", "m", "", data={"fits": 4}))
        store.delete_runs([bad])


class TestLife:
    @pytest.mark.parametrize("source", list(RunState))
    def test_only_the_moves_of_the_table(self, store: Store, source: RunState) -> None:
        for target in RunState:
            run_id = claimed(store, source)
            moves: dict[RunState, Callable[[int], object]] = {
                RunState.QUEUED: lambda run_id: store.requeue(run_id),
                RunState.RUNNING: lambda run_id: store.claim(OWNER, run_id=run_id),
                RunState.CANCELLING: lambda run_id: store.request_stop(run_id),
            }
            move = moves.get(target, partial(store.finish, state=target))
            expected = target if target in ALLOWED[source] else source
            if target is RunState.RUNNING:
                assert (move(run_id) is not None) == (target in ALLOWED[source])
            elif target is RunState.CANCELLING and source in (RunState.QUEUED, RunState.CANCELLING):
                # A stop asked for twice is one stop, and one of a queued run ends it.
                move(run_id)
                expected = RunState.CANCELLED if source is RunState.QUEUED else source
            elif target in ALLOWED[source]:
                move(run_id)
            else:
                with pytest.raises(IllegalMove):
                    move(run_id)
            assert store.state(run_id) is expected, target
        with pytest.raises(IllegalMove):
            store.finish(run_id, RunState.QUEUED)

    def test_a_claim_takes_the_oldest(self, store: Store, clock: Clock) -> None:
        first, second = store.add_runs([config(), config(seed=2)])
        run = store.claim(OWNER)
        assert run is not None
        assert run.id == first
        assert run.owner == OWNER
        assert run.started_at == datetime.fromtimestamp(clock.now, UTC)
        assert run.log is not None
        assert run.log.endswith(f"run-{first}.log")
        assert run == store.runs(ids=[first])[0]
        other = store.claim(OTHER)
        assert other is not None
        assert other.id == second
        assert store.claim(OTHER) is None

    def test_a_scheduler_is_seen(self, store: Store, clock: Clock) -> None:
        assert store.scheduler_seen("ray") is None
        store.note_scheduler("ray")
        clock.now += 5
        store.note_scheduler("ray")
        assert store.scheduler_seen("ray") == datetime.fromtimestamp(clock.now, UTC)
        assert store.scheduler_seen("slurm") is None
        assert store.drained() == {}

    def test_a_heartbeat_is_recorded(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        clock.now += 5
        assert store.heartbeat(run_id, OWNER) is RunState.RUNNING
        run = store.run(run_id)
        assert run.heartbeat_at == datetime.fromtimestamp(clock.now, UTC)
        assert (run.seconds, run.progress_at) == (5, None)  # also before its first step
        store.heartbeat(run_id, OWNER, moved=True)
        assert store.run(run_id).progress_at == datetime.fromtimestamp(clock.now, UTC)
        store.request_stop(run_id)
        assert store.heartbeat(run_id, OWNER) is RunState.CANCELLING

    def test_a_stranger_changes_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        before = store.run(run_id)
        for call in (
            lambda: store.heartbeat(run_id, OTHER),
            lambda: store.set_progress(run_id, 5, 0.5, 20, owner=OTHER),
            lambda: store.set_saved_step(run_id, 5, owner=OTHER),
            lambda: store.set_facts(run_id, run_facts(), owner=OTHER),
            lambda: store.add_metrics(run_id, [step_metrics(1)], owner=OTHER),
            lambda: store.add_snapshot(run_id, snapshot(1), owner=OTHER),
            lambda: store.add_result(run_id, split_result("dev"), owner=OTHER),
            lambda: store.finish(run_id, RunState.SUCCEEDED, owner=OTHER),
        ):
            with pytest.raises(NotOwner) as disowned:
                call()
            assert (disowned.value.run_id, disowned.value.state) == (run_id, RunState.RUNNING)
        assert store.run(run_id) == before
        assert store.metric_keys([run_id]) == []

    def test_failures_keep_their_cause(self, store: Store, clock: Clock) -> None:
        """Whatever characters it holds; PostgreSQL has no U+0000 in a text."""
        run_id = claimed(store)
        error = ErrorInfo("ValueError", "null \0 byte", "line\0\n'\"\\ \x1b λ 🙂", exit_code=1)
        clock.now += 60
        store.finish(run_id, RunState.FAILED, error=error, owner=OWNER)
        run = store.run(run_id)
        assert run.error is not None
        assert run.error.message in ("null \0 byte", "null � byte")
        assert run.error.traceback.replace("�", "\0") == error.traceback
        assert run.error.exit_code == 1
        assert run.seconds == 60
        assert store.events(run_id)[-1].message == run.error.message

    def test_stop(self, store: Store, clock: Clock) -> None:
        queued = claimed(store, RunState.QUEUED)
        assert store.request_stop(queued) is RunState.CANCELLED
        running = claimed(store)
        assert store.request_stop(running) is RunState.CANCELLING
        first_asked = store.run(running).stop_requested_at
        clock.now += 10
        assert store.request_stop(running) is RunState.CANCELLING
        assert store.run(running).stop_requested_at == first_asked

    def test_requeue_is_a_clean_restart(self, store: Store) -> None:
        """From which states is a matter of the table of moves."""
        run_id = stopped_halfway(store)
        store.requeue(run_id)
        run = store.run(run_id)
        assert (run.state, run.attempt) == (RunState.QUEUED, 2)
        assert (run.step, run.epoch, run.total_steps, run.best_epoch) == (0, 0.0, None, None)
        assert (run.owner, run.error, run.checkpoint, run.started_at) == (None, None, None, None)
        assert (run.stop_requested_at, run.saved_step) == (None, None)
        assert run.facts is None
        assert {table for table, rows in store.rows().items() if rows} == {"runs", "events", "metric_keys"}
        assert "clean restart" in store.events(run_id)[-1].message

    def test_history(self, store: Store) -> None:
        run_id = claimed(store)
        store.add_event(run_id, "note", "The penalty has vanished.")
        store.finish(run_id, RunState.SUCCEEDED)
        events = store.events(run_id)
        assert [event.kind for event in events] == ["running", "note", "succeeded"]
        with pytest.raises(IntegrityError):
            store.add_event(run_id, "gossip", "Not a kind.")


def test_states_cover_the_life() -> None:
    assert set(ALLOWED) == set(RunState)
    assert MOVES == ALLOWED
    assert all(ALLOWED[state] <= {RunState.QUEUED} for state in ENDED)
