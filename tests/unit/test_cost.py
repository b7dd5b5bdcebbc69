"""What runs will take, in time and on disk."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import summarise
from core.errors import CorpusError
from core.paths import checkpoint_dir
from core.records import TOTAL, StepMetrics, TaskFacts
from core.store import RunState, Store
from core.wording import duration
from dashboard.launch.plan import plan_rows
from jobs.engines.local import free_slot
from jobs.queue.estimates import cost, disk
from tests.making import OWNER, Clock, claimed, conll_config, conll_folder, run_facts

_WORDS = 40
"""Of the training split of the corpus below."""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_SLOTS", "1")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return conll_folder(tmp_path / "corpus")


def ended(
    store: Store,
    clock: Clock,
    config: RunConfig,
    *,
    start: float,
    per_word: float,
    worker: int = 1,
    done: float = 1.0,
) -> int:
    """A past run of this machine: so many seconds apart from training, so many for each word and epoch. It
    ended after the share `done` of its steps.
    """
    here = dataclasses.replace(OWNER, host=socket.gethostname(), pid=worker)
    (run_id,) = store.add_runs([config])
    assert store.claim(here, 15) is not None
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
    store.finish(run_id, RunState.SUCCEEDED)
    return run_id


def test_without_experience_it_is_a_rough_guess_and_said_so(store: Store, corpus: Path) -> None:
    guess = cost(store, [conll_config(corpus)])
    assert guess.rough
    assert guess.basis.startswith("a rough guess: no run of this kind has ended")
    (run,) = guess.runs
    assert 0 < guess.least < guess.seconds < guess.most
    two = cost(store, [conll_config(corpus, seed=seed) for seed in (1, 2)])
    assert two.runs == (run, run)
    cheaper = [
        cost(store, [conll_config(corpus, encoder_training=training)]).seconds
        for training in ("frozen", "top:1", "top:2", "lora:8")
    ]
    assert sorted([*cheaper, guess.seconds]) == [*cheaper, guess.seconds]
    assert cost(store, []).seconds == 0


def test_start_and_pace_are_told_apart(store: Store, corpus: Path, clock: Clock) -> None:
    for seed, epochs in enumerate((2, 4, 8)):
        config = conll_config(corpus, seed=seed, epochs=epochs, batch_size=4)
        ended(store, clock, config, start=30, per_word=0.1, worker=seed)
    estimate = cost(
        store, [conll_config(corpus, epochs=20, batch_size=4), conll_config(corpus, epochs=1, batch_size=4)]
    )
    assert not estimate.rough
    assert estimate.basis == "from past runs of this kind on this machine"
    assert [run.seconds for run in estimate.runs] == pytest.approx([30 + 0.1 * 40 * 20, 30 + 0.1 * 40])
    assert 0.5 * estimate.seconds < estimate.least < estimate.seconds < estimate.most < 2 * estimate.seconds
    (share,) = cost(store, [conll_config(corpus, epochs=20, batch_size=4, fraction=0.5)]).runs
    assert share.seconds == pytest.approx(30 + 0.1 * 20 * 20)


def test_runs_of_the_same_kind_are_asked(store: Store, corpus: Path, clock: Clock) -> None:
    for seed in range(3):
        for paradigm, per_word in (("mrn", 1), ("mtl", 3)):
            config = conll_config(corpus, seed=seed, batch_size=4, paradigm=paradigm)
            ended(store, clock, config, start=1, per_word=per_word, worker=10 * per_word + seed)
    mrn, mtl = cost(
        store, [conll_config(corpus, seed=9, batch_size=4, paradigm=paradigm) for paradigm in ("mrn", "mtl")]
    ).runs
    assert (mrn.seconds, mtl.seconds) == pytest.approx((201, 601))
    mixed = cost(store, [conll_config(corpus, batch_size=4), conll_config(corpus, encoder_training="frozen")])
    assert mixed.basis == "from past runs on this machine, but for 1 of 2 runs a rough guess"
    assert [run.rough for run in mixed.runs] == [False, True]


# Milliseconds a training word on one core, seen on demo: what a guess is held against.
_SEEN_MS: list[tuple[dict[str, Any], float]] = [
    ({"encoder": "bilstm", "characters": "none", "bilstm_hidden": 64}, 0.05),
    ({"encoder": "bilstm", "characters": "none"}, 0.15),
    ({"encoder": "bilstm"}, 0.22),
    ({"encoder": "sc-lstm", "characters": "none"}, 0.30),
    ({"encoder": "lstm-d", "characters": "none"}, 0.54),
    ({"encoder": "sc-lstm", "characters": "none", "lstm_layers": 3, "bilstm_hidden": 300}, 1.1),
]


@pytest.mark.parametrize(("values", "seen"), _SEEN_MS)
def test_a_first_guess_for_encoders_over_words(store: Store, values: dict[str, Any], seen: float) -> None:
    config = RunConfig.build(corpus="demo", tasks="pos,chunk,ner", paradigm="mtl", epochs=200, **values)
    words = summarise("demo").splits["train"].tokens
    (run,) = cost(store, [config]).runs
    assert run.rough
    assert seen / 2 < 1000 * run.seconds / (200 * words) < 2 * seen
    drawn = config.with_(draw_tasks="uniform")  # each of the three tasks then reads the sentences
    assert cost(store, [drawn]).seconds > 2.5 * cost(store, [config]).seconds
    weights = {"bilstm": 3.7e6, "lstm-d": 16.3e6, "sc-lstm": 6.1e6}[config.encoder]
    if (config.bilstm_hidden, config.characters) == (256, "none"):
        assert 1 < disk(store, [config]).needed / weights < 2


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
    assert same.seconds == pytest.approx(1 + 0.1 * 40 * 8)
    assert (same.rough, larger.rough) == (False, True)


def test_the_first_run_of_a_worker_takes_longer_once(
    store: Store, corpus: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        ended(
            store, clock, conll_config(corpus, seed=seed, batch_size=4), start=10, per_word=0.1, worker=seed
        )
    configs = [conll_config(corpus, seed=seed, batch_size=4) for seed in range(4)]
    run_s = 10 + 0.1 * 40 * 5
    guess = cost(store, configs)
    assert guess.seconds == pytest.approx(guess.first + 4 * run_s)
    assert plan_rows(configs, [None] * 4, guess) == [
        {"Configuration": "MRN λ 0.01", "Runs": "4 seeds", "Time": duration(4 * run_s)},
        {"Configuration": "Start of a worker", "Runs": "", "Time": duration(guess.first)},
    ]
    monkeypatch.setenv("MRNLAB_SLOTS", "2")
    assert cost(store, configs).seconds == pytest.approx(guess.first + 2 * run_s)
    assert plan_rows(configs, [None] * 4, cost(store, configs))[0]["Time"] == duration(2 * run_s)
    with free_slot(store.url):  # by a worker that is there
        assert cost(store, configs).first == 0


def test_runs_of_other_machines_say_nothing_of_this_one(store: Store, corpus: Path) -> None:
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    store.finish(run_id, RunState.SUCCEEDED)
    assert cost(store, [conll_config(corpus)]).rough


def test_a_corpus_that_is_not_there(store: Store) -> None:
    with pytest.raises(CorpusError):
        cost(store, [conll_config(Path("nowhere"))])


def test_disk_is_what_past_runs_have_left(store: Store, corpus: Path) -> None:
    configs = [conll_config(corpus, seed=seed, batch_size=4) for seed in range(3)]
    rough = disk(store, configs)
    assert rough.needed == pytest.approx(3 * 90e6)
    assert rough.free > 0
    run_id = store.add_runs([conll_config(corpus, seed=9)])[0]
    assert store.claim(OWNER, 15) is not None
    folder = checkpoint_dir(run_id)
    (folder / "encoder").mkdir(parents=True)
    (folder / "encoder" / "weights").write_bytes(b"x" * 1000)
    store.finish(run_id, RunState.SUCCEEDED, checkpoint=str(folder))
    assert disk(store, configs).needed == pytest.approx(3000)
    frozen = [conll_config(corpus, seed=seed, encoder_training="frozen") for seed in range(3)]
    # Three seeds read the same features: 384 numbers of four bytes for each of 1.4 subwords a word.
    assert disk(store, frozen).needed == pytest.approx(384 * 4 * 1.4 * _WORDS)
    # Below trained layers two bytes, for each number of layers; these are in each checkpoint.
    top = [conll_config(corpus, seed=seed, encoder_training="top:2") for seed in range(3)]
    assert disk(store, top).needed == pytest.approx(384 * 2 * 1.4 * _WORDS + 3 * 2 * 12 * 384**2 * 4)
    assert disk(store, [conll_config(corpus, encoder_training="lora:8")]).needed == 0


def test_a_short_disk(store: Store, corpus: Path) -> None:
    estimate = disk(store, [conll_config(corpus)])
    assert not dataclasses.replace(estimate, needed=10.0, free=100.0).short
    assert dataclasses.replace(estimate, needed=95.0, free=100.0).short
