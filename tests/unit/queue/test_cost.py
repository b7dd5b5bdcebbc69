"""What runs will take, in time and on disk."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path

import pytest

from core.config import RunConfig
from core.events import TaskFacts
from core.metrics import TOTAL, StepMetrics
from core.paths import checkpoint_dir
from core.store import RunState, Store
from core.wording import duration
from dashboard.launch.plan import plan_rows
from jobs.queue.estimates import cost, disk, queue_left
from jobs.reports.parts import Entry
from tests.making import OWNER, Clock, claimed, conll_config, conll_folder, run_facts

_WORDS = 40
"""Of the training split of the corpus below."""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_SLOTS", "1")


def ended(
    store: Store,
    clock: Clock,
    config: RunConfig,
    *,
    start: float,
    per_word: float,
    worker: int = 1,
    done: float = 1.0,
    trains: bool = False,
) -> int:
    """A run of this machine: so many seconds apart from training, so many for each word and epoch. It ended
    after the share `done` of its steps, or `trains` still.
    """
    here = dataclasses.replace(OWNER, host=socket.gethostname(), pid=worker)
    (run_id,) = store.add_runs([config])
    assert store.claim(here) is not None
    words = _WORDS * config.fraction
    facts = tuple(
        TaskFacts(task, "plain", ("X",), "accuracy", train_sentences=int(words / 2), train_tokens=int(words))
        for task in config.tasks
    )
    steps = -(-int(words / 2) // config.batch_size) * config.epochs
    store.set_facts(run_id, run_facts(total_steps=steps, tasks=facts))
    last = round(steps * done)
    trained = per_word * words * config.epochs * done
    store.add_metrics(run_id, [StepMetrics(last, config.epochs * done, trained, {(TOTAL, "loss"): 1.0})])
    clock.now += start + trained
    store.set_progress(run_id, last, config.epochs * done, steps)
    if not trains:
        store.finish(run_id, RunState.SUCCEEDED)
    return run_id


def test_without_a_past_run_there_is_no_estimate(store: Store, corpus: Path, clock: Clock) -> None:
    unknown = cost(store, [conll_config(corpus)])
    assert (unknown.runs, unknown.seconds, unknown.span) == ((None,), None, None)
    assert unknown.basis == "no estimate yet: the first run will measure it"
    assert plan_rows([conll_config(corpus)], [None], unknown) == [
        {"Configuration": "MRN λ=0.001", "Runs": Entry(1, form=","), "Seeds": "1 seed"}
    ]
    ended(store, clock, conll_config(corpus, batch_size=4), start=1, per_word=1)
    some = cost(store, [conll_config(corpus, batch_size=4), conll_config(corpus, encoder_training="frozen")])
    assert some.seconds is None
    assert some.basis.startswith("no estimate for 1 of 2 runs yet: ")
    assert cost(store, []).seconds == 0


def test_of_another_kind_there_is_a_rough_range_from_steps_of_the_encoder(
    store: Store, corpus: Path, clock: Clock
) -> None:
    for seed in range(3):
        ended(store, clock, conll_config(corpus, batch_size=4, seed=seed), start=2, per_word=0.1)
    # 20 sentences in batches of 4 are 5 steps, 40 words in 4 s: 0.8 s a step.
    other = conll_config(conll_folder(corpus.parent / "other"), batch_size=8, epochs=10)
    assert cost(store, [other]).span is None
    rough = cost(store, [other], sentences=lambda _: 80)
    assert (rough.seconds, rough.near) == (None, 3)
    # 10 steps an epoch, each as long as one over half the batch, or twice as long.
    assert rough.span == pytest.approx((0.7 * (2 + 100 * 0.8), 1.5 * (2 + 100 * 1.6)))
    assert rough.span is not None
    assert rough.about is not None
    assert rough.about / rough.span[0] == pytest.approx(rough.span[1] / rough.about)
    assert rough.basis.startswith("from the steps of 3 other runs with this encoder on this machine")
    known = conll_config(corpus, batch_size=4, seed=9)
    both = cost(store, [other, known], sentences=lambda _: 80).rough
    assert both is not None
    assert both[0] == pytest.approx(0.7 * (2 + 100 * 0.8 + 2 + 0.1 * 40 * 5))
    frozen = conll_config(corpus, encoder_training="frozen")
    assert cost(store, [other, frozen], sentences=lambda _: 80).span is None


def test_start_and_pace_are_told_apart(store: Store, corpus: Path, clock: Clock) -> None:
    for seed, epochs in enumerate((2, 4, 8)):
        config = conll_config(corpus, seed=seed, epochs=epochs, batch_size=4)
        ended(store, clock, config, start=30, per_word=0.1)
    estimate = cost(
        store, [conll_config(corpus, epochs=20, batch_size=4), conll_config(corpus, epochs=1, batch_size=4)]
    )
    assert estimate.basis == "from 3 runs of this kind on this machine"
    assert estimate.runs == pytest.approx((30 + 0.1 * 40 * 20, 30 + 0.1 * 40))
    assert estimate.seconds is not None
    assert estimate.span is not None
    assert 0.5 * estimate.seconds < estimate.span[0] < estimate.seconds < estimate.span[1]
    (share,) = cost(store, [conll_config(corpus, epochs=20, batch_size=4, fraction=0.5)]).runs
    assert share == pytest.approx(30 + 0.1 * 20 * 20)


def test_runs_of_the_same_kind_are_asked(store: Store, corpus: Path, clock: Clock) -> None:
    for seed in range(3):
        for paradigm, per_word in (("mrn", 1), ("mtl", 3)):
            config = conll_config(corpus, seed=seed, batch_size=4, paradigm=paradigm)
            ended(store, clock, config, start=1, per_word=per_word, worker=10 * per_word + seed)
    configs = [conll_config(corpus, seed=9, batch_size=4, paradigm=paradigm) for paradigm in ("mrn", "mtl")]
    assert cost(store, configs).runs == pytest.approx((201, 601))
    # Other data of the same kind of run take another time.
    assert cost(store, [conll_config(conll_folder(corpus.parent / "other"), batch_size=4)]).runs == (None,)


def test_a_pace_is_that_of_runs_of_the_same_size_also_where_they_ended_early(
    store: Store, corpus: Path, clock: Clock
) -> None:
    shared = {"encoder": "bilstm", "paradigm": "mtl", "batch_size": 4, "bilstm_hidden": 8}
    for worker, patience in enumerate((None, 2)):
        config = conll_config(corpus, **shared, epochs=8, patience=patience, seed=worker)
        ended(store, clock, config, start=1, per_word=0.1, worker=worker, done=0.5 if patience else 1.0)
    same, larger = cost(
        store, [conll_config(corpus, **{**shared, "bilstm_hidden": size}, epochs=8) for size in (8, 16)]
    ).runs
    assert same == pytest.approx(1 + 0.1 * 40 * 8)
    assert larger is None


def test_slots_train_at_once(
    store: Store, corpus: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        config = conll_config(corpus, seed=seed, batch_size=4)
        ended(store, clock, config, start=10, per_word=0.1)
    configs = [conll_config(corpus, seed=seed, batch_size=4) for seed in range(4)]
    run_s = 10 + 0.1 * 40 * 5
    for slots in (1, 2):
        monkeypatch.setenv("MRNLAB_SLOTS", str(slots))
        estimate = cost(store, configs)
        assert estimate.seconds == pytest.approx(4 * run_s / slots)
        (row,) = plan_rows(configs, [None] * 4, estimate)
        assert (row["Seeds"], row["Time"]) == ("4 seeds", duration(4 * run_s / slots))


def test_the_first_run_of_a_kind_is_measured_while_it_trains(
    store: Store, corpus: Path, clock: Clock
) -> None:
    def queue(*seeds: int, **values: object) -> list[int]:
        return store.add_runs([conll_config(corpus, batch_size=4, seed=seed, **values) for seed in seeds])

    first = ended(
        store, clock, conll_config(corpus, batch_size=4), start=10, per_word=1, done=0.4, trains=True
    )
    assert queue_left(store) == pytest.approx(120)
    launch = [first, *queue(2, 3)]
    assert queue_left(store, launch) == pytest.approx(120 + 2 * 200)
    behind = queue(4)  # which this launch does not wait for
    assert queue_left(store, launch) == pytest.approx(520)
    assert queue_left(store, behind) == queue_left(store) == pytest.approx(720)
    # Of another paradigm as of its model; of another model nothing is known.
    assert queue_left(store, queue(5, paradigm="mtl")) == pytest.approx(920)
    queue(6, encoder_training="frozen")
    assert queue_left(store) is None
    assert queue_left(store, [first]) == pytest.approx(120)


def test_neither_the_first_start_nor_the_first_batches_price_a_launch(
    store: Store, corpus: Path, clock: Clock
) -> None:
    """The first run of a worker loads libraries and computes features; a run's first batches are slow."""
    for seed, start in ((1, 30), (2, 2)):
        config = conll_config(corpus, batch_size=4, seed=seed)
        ended(store, clock, config, start=start, per_word=0.1, worker=seed)
    another = config.with_(seed=3)
    assert cost(store, [another]).seconds == pytest.approx(2 + 0.1 * 40 * 5)
    ended(store, clock, another, start=2, per_word=1, worker=3, done=0.1, trains=True)
    assert queue_left(store) == pytest.approx(0.1 * 40 * 5)


@pytest.mark.parametrize("slots", [1, 2])
def test_each_worker_pays_its_first_start_once(
    store: Store, corpus: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    """The card of 20 short runs said five times the time that they took, until the second run had ended."""
    monkeypatch.setenv("MRNLAB_SLOTS", str(slots))
    configs = [conll_config(corpus, batch_size=4, seed=seed) for seed in range(20)]
    runs = [
        ended(store, clock, config, start=27, per_word=0.02, worker=worker, done=0.5, trains=True)
        for worker, config in enumerate(configs[:slots])
    ]
    runs += store.add_runs(configs[slots:])
    run_s = 0.02 * 40 * 5
    clock.now += 1
    left = queue_left(store, runs)
    assert left == pytest.approx((20 * run_s - slots * run_s / 2) / slots, rel=0.05)
    # Before a launch its workers' starts are still to come.
    planned = cost(store, [config.with_(seed=99 + config.seed) for config in configs])
    assert planned.seconds == pytest.approx(27 + 20 * run_s / slots, rel=0.1)


def test_a_later_start_is_that_of_runs_of_the_model_in_a_warm_worker(
    store: Store, corpus: Path, clock: Clock
) -> None:
    mrn, mtl = (conll_config(corpus, batch_size=4, paradigm=paradigm) for paradigm in ("mrn", "mtl"))
    ended(store, clock, mrn, start=27, per_word=0.1)
    ended(store, clock, mtl, start=1, per_word=0.1)
    more = [config.with_(seed=seed) for config in (mrn, mtl) for seed in (2, 3)]
    assert cost(store, more).seconds == pytest.approx(4 * (1 + 0.1 * 40 * 5))


def test_the_first_run_on_its_data_says_nothing_of_later_starts(
    store: Store, corpus: Path, clock: Clock
) -> None:
    """It computes the features of all others, also in a worker that has trained other runs."""
    other = conll_config(conll_folder(corpus.parent / "other"), batch_size=4)
    for seed in (1, 2):
        ended(store, clock, other.with_(seed=seed), start=1, per_word=0.1)
    ended(store, clock, conll_config(corpus, batch_size=4), start=27, per_word=0.1)
    more = [conll_config(corpus, batch_size=4, seed=seed) for seed in range(2, 12)]
    assert cost(store, more).seconds == pytest.approx(27 + 10 * 0.1 * 40 * 5)
    assert cost(store, [*more, other.with_(seed=3)]).seconds == pytest.approx(11 * (1 + 0.1 * 40 * 5))


def test_a_run_without_a_batch_has_all_its_time_left(store: Store, corpus: Path, clock: Clock) -> None:
    for seed in (1, 2):
        ended(store, clock, conll_config(corpus, batch_size=4, seed=seed), start=1, per_word=0.1)
    (begun,) = store.add_runs([conll_config(corpus, batch_size=4, seed=3)])
    assert store.claim(dataclasses.replace(OWNER, host=socket.gethostname())) is not None
    assert queue_left(store, [begun]) == pytest.approx(1 + 0.1 * 40 * 5)


def test_runs_of_other_machines_say_nothing_of_this_one(store: Store, corpus: Path) -> None:
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    store.finish(run_id, RunState.SUCCEEDED)
    assert cost(store, [conll_config(corpus)]).unknown == 1


def test_disk_is_what_past_runs_have_left(store: Store, corpus: Path) -> None:
    configs = [conll_config(corpus, seed=seed, batch_size=4) for seed in range(3)]
    unknown = disk(store, configs)
    assert (unknown.needed, unknown.is_short) == (0, False)
    assert unknown.free > 0
    run_id = store.add_runs([conll_config(corpus, seed=9)])[0]
    assert store.claim(OWNER) is not None
    folder = checkpoint_dir(run_id)
    (folder / "encoder").mkdir(parents=True)
    (folder / "encoder" / "weights").write_bytes(b"x" * 1000)
    store.finish(run_id, RunState.SUCCEEDED, checkpoint=str(folder))
    assert disk(store, configs).needed == pytest.approx(3000)
    assert disk(store, [conll_config(corpus, encoder_training="frozen")]).needed == 0


def test_a_short_disk(store: Store, corpus: Path) -> None:
    estimate = disk(store, [conll_config(corpus)])
    assert not dataclasses.replace(estimate, needed=10.0, free=100.0).is_short
    assert dataclasses.replace(estimate, needed=95.0, free=100.0).is_short
