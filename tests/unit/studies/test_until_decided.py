"""Seeds until decided: what is trained at each look, what goes on after a stop, what is refused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation.comparison import HIGHER, UNDECIDED
from core.results.plan import Plan, PlanDeclared, PlanState
from core.results.stored import stored_results
from core.store import RunState, Store
from jobs.cli.decide import rows_of
from jobs.queue import control
from jobs.studies import decide as module
from jobs.studies.decide import (
    LookNotTaken,
    PlanOptions,
    check_text,
    declare,
    looks_to_come,
    planned,
    state_of,
)
from tests import deciding
from tests.deciding import score_of, workers
from tests.making import OWNER, Clock, config, conll_config, conll_folder
from tests.patience import PATIENCE_S
from tests.small_training import Ended
from tests.studying import Workers, finished, train
from tests.supervised import owner_of, supervised, wait_for

LAMBDA = {"lambda": 0.5}
LOOKS = (3, 5, 8)
Score = Callable[[RunConfig, str], float]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(laboratory: Path, clock: Clock) -> Iterator[Store]:
    with contextlib.closing(Store.open(clock=clock)) as opened:
        yield opened


def runs(paradigm: str, seed: int = 1, **fields: Any) -> list[RunConfig]:
    """The runs of one seed of a paradigm: of STL one for each task."""
    if paradigm == "stl":
        return [config(paradigm="stl", tasks=(task,), seed=seed) for task in ("pos", "ner")]
    more = LAMBDA if paradigm == "mrn" else {}
    return [config(paradigm=paradigm, seed=seed, **more, **fields)]


def begun(store: Store, *paradigms: str, score: Score = score_of) -> list[int]:
    """A first run of each paradigm."""
    ids = [[finished(store, run, score=score) for run in runs(each)] for each in paradigms]
    return [of[0] for of in ids]


def plan_for(store: Store, *ids: int, **options: Any) -> Plan:
    return planned(store, *rows_of(store, *ids), PlanOptions(**({"looks": LOOKS} | options)))


def decide(store: Store, plan: Plan, lines: list[str] | None = None, **options: Any) -> PlanState:
    given: dict[str, Any] = {"engine": workers(), "sleep": lambda _: None} | options
    return module.decide(store, plan, (lines if lines is not None else []).append, **given)


def seeds_trained(store: Store) -> Counter[str]:
    return Counter(run.config.paradigm for run in store.runs())


def test_seeds_are_added_look_by_look_until_it_is_decided(store: Store) -> None:
    plan = declare(store, plan_for(store, *begun(store, "mrn", "mtl")))
    lines: list[str] = []
    state = decide(store, plan, lines)
    assert state.decided_at == {"pos": 2, "ner": 2}
    assert {at.verdict for at in state.looks.values()} == {HIGHER}
    assert seeds_trained(store) == {"mrn": 5, "mtl": 5}
    assert [line.split(",")[0] for line in lines] == [
        "pos: first of three looks: undecided",
        "ner: first of three looks: undecided",
        "pos: second of three looks: higher",
        "ner: second of three looks: higher",
    ]
    # Asked again, nothing more is trained.
    assert decide(store, plan).looks == state.looks
    assert seeds_trained(store) == {"mrn": 5, "mtl": 5}


def test_no_verdict_is_reported_that_is_not_the_plans(store: Store) -> None:
    """A study would test each look at the whole level."""
    lines: list[str] = []
    decide(store, declare(store, plan_for(store, *begun(store, "mrn", "mtl"))), lines)
    assert all(" looks: " in line for line in lines)


def test_single_task_runs_of_a_decided_task_are_not_trained_any_more(store: Store) -> None:
    def score(run: RunConfig, split: str) -> float:
        if run.paradigm == "stl" and run.tasks == ("pos",):
            return 0.3 + run.seed / 100_000  # decided at once
        return score_of(run, split)

    ids = begun(store, "mrn", "stl", score=score)
    plan = declare(store, plan_for(store, *ids))
    state = decide(store, plan, engine=workers(score))
    assert state.decided_at["pos"] < state.decided_at["ner"]
    of_task = Counter(run.config.tasks for run in store.runs() if run.config.paradigm == "stl")
    assert of_task == {("pos",): LOOKS[state.decided_at["pos"] - 1], ("ner",): 5}


def test_runs_that_are_there_are_reused_in_the_order_of_their_seeds(store: Store) -> None:
    ids = begun(store, "mrn", "mtl")
    for paradigm in ("mrn", "mtl"):
        for seed in (9, 4):
            finished(store, runs(paradigm, seed)[0], score=score_of)
    finished(store, runs("mtl", 30)[0], score=score_of)
    plan = plan_for(store, *ids)
    assert (plan.seeds, plan.seeds_before) == ((1, 4, 9, 30, 2, 3, 5, 6), 3)
    decide(store, declare(store, plan))
    assert {run.config.seed for run in store.runs()} <= set(plan.seeds)
    seeds = Counter((run.config.paradigm, run.config.seed) for run in store.runs())
    assert set(seeds.values()) == {1}


def test_it_ends_undecided_after_the_last_look(store: Store) -> None:
    def level(run: RunConfig, split: str) -> float:
        return score_of(run, split) - (0.02 if run.paradigm == "mrn" else 0)

    plan = declare(store, plan_for(store, *begun(store, "mrn", "mtl", score=level), tasks=("ner",)))
    state = decide(store, plan, engine=workers(level))
    assert (state.has_ended, state.looks["ner"].verdict) == (True, UNDECIDED)
    assert state.sentence("ner").startswith("ended undecided after 8 seeds, ")
    assert seeds_trained(store) == {"mrn": 8, "mtl": 8}


@pytest.mark.parametrize("stopped_at", range(1, 9))
def test_stopped_anywhere_it_goes_on_to_the_same_end(store: Store, stopped_at: int) -> None:
    plan = declare(store, plan_for(store, *begun(store, "mrn", "mtl")))
    sleeps = 0

    def stop(_seconds: float) -> None:
        nonlocal sleeps
        sleeps += 1
        if sleeps == stopped_at:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        decide(store, plan, engine=workers(at_once=1), sleep=stop)
    claimed = store.claim(OWNER)  # and a worker dies with its run
    if claimed is not None:
        store.mark_lost(claimed.id, "Its worker was killed.")
    state = decide(store, Plan.from_json(store.plans()[0].plan), engine=workers(at_once=1))
    assert state.decided_at == {"pos": 2, "ner": 2}
    assert seeds_trained(store) == {"mrn": 5, "mtl": 5}
    assert {run.state for run in store.runs()} == {RunState.SUCCEEDED}


def test_a_plan_is_declared_once(store: Store) -> None:
    ids = begun(store, "mrn", "mtl")
    plan = declare(store, plan_for(store, *ids))
    assert planned(store, *rows_of(store, *ids), PlanOptions()) == plan
    assert plan_for(store, *ids) == plan  # the same looks again
    for other in ({"looks": (4, 6)}, {"matters": 0.01}, {"tasks": ("ner",)}):
        with pytest.raises(PlanDeclared) as refused:
            plan_for(store, *ids, **other)
        assert refused.value.plan == plan
    with pytest.raises(PlanDeclared):
        plan_for(store, *reversed(ids))
    with pytest.raises(PlanDeclared):  # two processes came here at once
        declare(store, replace(plan, matters=0.01))
    assert len(store.plans()) == 1


def test_after_its_time_no_look_is_begun(store: Store, clock: Clock) -> None:
    ids = begun(store, "mrn", "mtl")
    plan, lines = declare(store, plan_for(store, *ids), minutes=1), list[str]()

    def wait(_seconds: float) -> None:
        clock.now += 25

    state = decide(store, plan, lines, engine=workers(at_once=1), sleep=wait)
    assert not state.has_ended
    assert "The time is over" in lines[-1]
    assert store.runs(states={RunState.QUEUED}) == []
    assert not decide(store, plan, lines).has_ended
    assert lines[-1].endswith("The same command with more time goes on.")
    declare(store, plan, minutes=1000)
    assert decide(store, plan).has_ended


def test_a_failed_run_holds_the_plan_up_and_is_named(store: Store) -> None:
    def fail(config: RunConfig, *arguments: Any, **options: Any) -> Ended:
        if config.seed == 3 and config.paradigm == "mtl":
            raise MRNLabError("The loss is not a number.")
        return train(config, *arguments, **options)

    plan, lines = declare(store, plan_for(store, *begun(store, "mrn", "mtl"))), list[str]()
    state = decide(store, plan, lines, engine=Workers(train=fail))
    assert (state.taken, state.has_ended) == (0, False)
    assert "The loss is not a number. `mrnlab retry" in lines[-1]
    control.retry(store, [run.id for run in store.runs(states={RunState.FAILED})])
    assert decide(store, plan).has_ended


def test_finished_runs_that_no_table_counts_are_named(store: Store) -> None:
    plan = declare(store, plan_for(store, *begun(store, "mrn", "mtl")))
    decide(store, plan)
    second = [run.id for run in store.runs() if run.config.seed == 2]
    store.archive(second)
    with pytest.raises(LookNotTaken) as refused:
        decide(store, plan)
    assert refused.value.seeds == (1, 2, 3)


def test_the_plan_with_its_looks_to_come(store: Store) -> None:
    plan = plan_for(store, *begun(store, "mrn", "stl"))
    come = looks_to_come(store, state_of(store, plan))
    assert [(look.seeds, look.runs) for look in come] == [(3, 2 * 3), (5, 2 * 3), (8, 3 * 3)]
    assert [look.level for look in come] == list(plan.levels)
    assert store.plans() == []


def test_tables_say_at_which_look_a_difference_was_decided(store: Store) -> None:
    plan = declare(store, plan_for(store, *begun(store, "mrn", "mtl")))

    def notes(split: str = "test") -> list[str]:
        tables = stored_results(store).tables(split).values()
        return [note for table in tables for note in table.notes if "until decided" in note]

    assert "ner, before the first of three looks: 3 seeds." in notes()[0]
    decide(store, plan)
    (note,) = notes()
    assert f"{plan.names[0]} against {plan.names[1]}: pos, second of three looks: higher, +" in note
    # More seeds change no verdict of the plan.
    for paradigm in ("mrn", "mtl"):
        finished(store, runs(paradigm, 50)[0], score=lambda _run, _split: 0.1)
    assert notes() == [note]
    assert notes("dev") == []


def test_a_corpus_that_has_changed_is_refused(store: Store, tmp_path: Path) -> None:
    folder = conll_folder(tmp_path / "corpus")
    plan = Plan(
        (conll_config(folder, paradigm="mrn"),),
        (conll_config(folder, paradigm="mtl"),),
        ("MRN", "MTL"),
        ("ner",),
        (1, 2, 3),
        (3,),
        text="another",
    )
    with pytest.raises(MRNLabError, match="has changed since these runs were trained"):
        check_text(plan)


def test_an_unreadable_plan_hides_no_table(store: Store) -> None:
    begun(store, "mrn", "mtl")
    store.declare_plan("0" * 40, '{"from": "a later version"}')
    (table,) = stored_results(store).tables("test").values()
    assert len(table.rows) == 2


@pytest.mark.slow
def test_kills_of_the_follower_and_of_workers_lose_nothing(laboratory: Path) -> None:
    """Real processes: SIGKILL to a worker amid a run and to the follower, at each of three moments."""

    def follower() -> subprocess.Popen[bytes]:
        code = "from tests.deciding import follow_plan; follow_plan()"
        return subprocess.Popen([sys.executable, "-c", code])

    with supervised(deciding.__name__) as (store, _engine):
        sides = tuple(config(paradigm=each, seed=0, epochs=1) for each in ("mrn", "mtl"))
        plan = Plan((sides[0],), (sides[1],), ("MRN", "MTL"), ("pos", "ner"), tuple(range(1, 9)), LOOKS)
        declare(store, plan)
        for done in (1, 4, 7):  # in the first look, in the second, and in the second once more
            process = follower()
            wait_for(lambda done=done: len(store.runs(states={RunState.SUCCEEDED})) >= done)  # type: ignore[misc]
            wait_for(lambda: bool(store.runs(states={RunState.RUNNING})))
            with contextlib.suppress(ProcessLookupError, AssertionError):  # it may have ended meanwhile
                os.kill(owner_of(store, store.runs(states={RunState.RUNNING})[0].id).pid, signal.SIGKILL)
            process.kill()
            process.wait()
        last = follower()
        assert last.wait(timeout=PATIENCE_S) == 0
        state = state_of(store, plan)
        assert state.decided_at == {"pos": 2, "ner": 2}
        known = Counter((run.config.paradigm, run.config.seed) for run in store.runs())
        assert known == {(each, seed): 1 for each in ("mrn", "mtl") for seed in range(1, 6)}
        assert {run.state for run in store.runs()} == {RunState.SUCCEEDED}
        assert any(run.attempt > 1 for run in store.runs())
        for looked in state.looks.values():
            assert looked.seeds == 5
