"""The training loop on a tiny encoder: what it sends, what it keeps, and what it relates."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus
from core.encoding.batches import SUBWORDS_TO_PREDICT
from core.errors import ConfigError, MRNLabError, NotFinite, TrainingError
from core.events import DevMetrics, Event, Note, RunFacts, Snapshot, SplitResult, best_epoch
from core.metrics import TOTAL, EpochMetrics, StepMetrics
from core.models import model_io as checkpoints
from core.models.device import ALL_THREADS
from core.models.encoders.transformer import Transformer
from core.mrn.relations import Relations, task_groups
from core.registry import MODES, PRIORS
from core.training import trainer
from core.training.setup import set_up, snapshot_steps
from core.training.step_log import StepLog, StepLosses
from core.training.trainer import Outcome, train
from tests.toys import config as toy_config
from tests.toys import corpus as toy_corpus
from tests.toys import sentences
from tests.trained import train_toy


def _config(encoder: str, **changes: Any) -> RunConfig:
    if changes.get("paradigm", "mrn") == "mrn":
        changes.setdefault("update_every", 2)
    return toy_config(encoder, **changes)


@pytest.mark.parametrize("paradigm", ["stl", "mtl", "mrn"])
def test_a_run_tells_its_whole_story(encoder: str, tmp_path: Path, paradigm: str) -> None:
    corpus = toy_corpus()
    if paradigm == "stl":
        corpus = dataclasses.replace(corpus, tasks=corpus.tasks[:1])
    config = _config(encoder, paradigm=paradigm, tasks="pos" if paradigm == "stl" else "pos,ner")
    run = train_toy(config, corpus, tmp_path / "run")
    facts, outcome = run.facts, run.outcome
    assert run.events[0] is facts
    assert (facts.total_steps, facts.steps_per_epoch, facts.features) == (15, 5, 16)
    assert outcome.steps == 15
    assert not outcome.stopped
    steps = [event for event in run.of(StepMetrics) if (TOTAL, "loss") in event.values]
    assert [event.step for event in steps] == list(range(1, 16))
    tasks = [task.name for task in corpus.tasks]
    for event in steps:
        mean = sum(event.values[task, "loss"] for task in tasks) / len(tasks)
        assert event.values[TOTAL, "loss"] == pytest.approx(mean + event.values[TOTAL, "penalty"], rel=1e-5)
    assert steps[-1].values[TOTAL, "loss"] < steps[0].values[TOTAL, "loss"]
    assert [event.epoch for event in run.of(EpochMetrics)] == [1, 2, 3]
    results = {result.split: result for result in run.of(SplitResult)}
    assert set(results) == {"dev", "test"}
    # What is stored of dev is the best epoch's figure, to the last digit.
    assert outcome.best_epoch is not None
    chosen = run.of(EpochMetrics)[outcome.best_epoch - 1]
    for task_score in results["dev"].scores:
        assert chosen.values[task_score.task, "score"] == task_score.score
    snapshots = run.of(Snapshot)
    assert bool(snapshots) == (paradigm == "mrn")
    if paradigm == "mrn":
        assert snapshots[-1].step == 15
        assert facts.alignment == "cooccurrence"
        assert snapshots[-1].relations.label.shape == (8, 8)
        assert abs(snapshots[-1].relations.correlation("task")[0, 1]) > 1e-6
    # Beside each snapshot, what it holds in numbers.
    measured = [event for event in run.of(StepMetrics) if (TOTAL, "label_trace") in event.values]
    for event, snapshot in zip(measured, snapshots, strict=True):
        assert (event.step, event.epoch) == (snapshot.step, snapshot.epoch)
        assert event.values[TOTAL, "label_trace"] == pytest.approx(np.trace(snapshot.relations.label))
        assert math.isfinite(event.values[TOTAL, "objective"])


def test_another_seed_has_other_numbers(encoder: str, tmp_path: Path) -> None:
    """That the same seed has the same ones is what resuming rests on, and is tested there."""
    runs = [
        train_toy(_config(encoder, epochs=1, seed=seed), toy_corpus(), tmp_path / str(seed))
        for seed in (1, 2)
    ]
    first, second = (run.of(StepMetrics)[0] for run in runs)
    assert first.values[TOTAL, "loss"] != second.values[TOTAL, "loss"]


def test_tasks_on_different_sentences_train_together(encoder: str, tmp_path: Path) -> None:
    mixed = sentences(20, 4, ("pos",)) + sentences(20, 5, ("ner",))
    run = train_toy(_config(encoder, batch_size=1, epochs=1), toy_corpus(mixed), tmp_path / "run")
    assert [task.train_sentences for task in run.facts.tasks] == [20, 20]
    assert run.facts.alignment == "disjoint"
    named = [{task for task, name in event.values if name == "loss"} for event in run.of(StepMetrics)]
    assert {"pos", TOTAL} in named
    assert {"ner", TOTAL} in named


def test_a_frozen_encoder_gives_the_features_it_would_compute(encoder: str) -> None:
    """The looked-up states are the encoder's own, and its weights are not trained."""
    corpus = toy_corpus(test=sentences(6, 3, longest=80))
    frozen = set_up(_config(encoder, encoder_training="frozen"), corpus)
    live = set_up(_config(encoder), corpus)
    live.model.eval()
    split = frozen.use_split("test")
    for batch in split.batches.by_length():
        looked_up, computed = frozen.model.encoder(batch), live.model.encoder(batch)
        mask = batch.mask.bool()
        torch.testing.assert_close(looked_up[mask], computed[mask])
        torch.testing.assert_close(frozen.model.encoder.words(batch), looked_up.flatten(0, 1)[batch.rows])
    assert [group["name"] for group in frozen.optimiser.param_groups] == ["heads"]


def test_frozen_features_are_computed_once_and_again_where_their_file_is_damaged(
    encoder: str, monkeypatch: pytest.MonkeyPatch, laboratory: Path
) -> None:
    def states(seed: int) -> torch.Tensor:
        run = set_up(_config(encoder, encoder_training="frozen", seed=seed), toy_corpus())
        looked_up: torch.Tensor = run.model.encoder(next(run.use_split("dev").batches.by_length()))
        return looked_up

    expected = states(seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(Transformer, "forward", None)  # whoever asks the encoder now fails
        torch.testing.assert_close(states(seed=2), expected)
    (stored,) = (laboratory / "cache" / "features").glob("*.npy")
    stored.write_bytes(stored.read_bytes()[:100])
    torch.testing.assert_close(states(seed=1), expected)


def test_heads_alone_train_on_one_thread_and_the_next_run_has_all_again(encoder: str) -> None:
    frozen = set_up(_config(encoder, encoder_training="frozen"), toy_corpus())
    assert frozen.facts.threads == 1
    assert frozen.compute_features(lambda event: None, lambda: False)
    assert torch.get_num_threads() == 1
    assert set_up(_config(encoder), toy_corpus(), 2).facts.threads == torch.get_num_threads() == 2
    assert set_up(_config(encoder), toy_corpus()).facts.threads == torch.get_num_threads() == ALL_THREADS


def test_a_damaged_or_missing_checkpoint_is_said_in_words(encoder: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for missing in ("file", "checkpoint"):
        with pytest.raises(MRNLabError, match="not there any more"):
            checkpoints.load(tmp_path / missing)
    train_toy(_config(encoder, epochs=1, encoder_training="frozen"), toy_corpus(), tmp_path / "checkpoint")
    weights = tmp_path / "checkpoint" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:50])
    with pytest.raises(MRNLabError, match="is damaged"):
        checkpoints.load(tmp_path / "checkpoint")


def test_a_stop_is_heard_while_features_are_computed(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUBWORDS_TO_PREDICT, "cpu", 70)
    config = _config(encoder, encoder_training="frozen")
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3  # of the five batches that the training sentences make

    events: list[Event] = []
    checkpoint = Checkpoint(tmp_path / "c")
    outcome = train(config, toy_corpus(), sink=events.append, checkpoint=checkpoint, should_stop=should_stop)
    assert outcome == Outcome(stopped=True, best_epoch=None, steps=0)
    assert [event.message for event in events if isinstance(event, Note)] == [
        "Computing the frozen encoder's features of 40 train sentences."
    ]
    assert not list((tmp_path / "laboratory").rglob("features/*"))
    run = train_toy(config, toy_corpus(), tmp_path / "run")
    assert not run.outcome.stopped
    assert [note.message.split(" of ")[1] for note in run.of(Note)] == [
        "40 train sentences.", "10 dev sentences.", "12 test sentences.",
    ]  # fmt: skip
    assert not train_toy(config, toy_corpus(), tmp_path / "again").of(Note)


def test_a_loss_that_is_not_a_number_names_step_and_task(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _config(encoder, paradigm="mtl")
    events: list[Event] = []

    def poisoned(config: RunConfig, corpus: Corpus, _threads: int | None) -> Any:
        run = set_up(config, corpus)
        with torch.no_grad():  # the head of ner alone
            run.model.heads.weight[run.model.heads.slices[1]] = math.inf
        return run

    monkeypatch.setattr(trainer, "set_up", poisoned)
    with pytest.raises(NotFinite, match=r"loss of task ner is not a number at step 1 ") as raised:
        train(config, toy_corpus(), sink=events.append, checkpoint=Checkpoint(tmp_path / "c"))
    assert (raised.value.step, raised.value.task, math.isfinite(raised.value.value)) == (1, "ner", False)
    (bad,) = [event for event in events if isinstance(event, StepMetrics)]
    assert not math.isfinite(bad.values["ner", "loss"])
    assert math.isfinite(bad.values["pos", "loss"])


@pytest.mark.parametrize("prior", PRIORS)
def test_every_prior_trains_to_the_end(encoder: str, tmp_path: Path, prior: str) -> None:
    """With its own defaults. A scatter may be singular, its condition then infinite, but nothing is NaN."""
    run = train_toy(_config(encoder, prior=prior, encoder_training="frozen"), toy_corpus(), tmp_path / "run")
    assert run.outcome.best_epoch is not None
    for snapshot in run.of(Snapshot)[-1:]:  # a prior may have no covariances
        assert all(np.isfinite(snapshot.relations.correlation(mode)).all() for mode in MODES)
    numbers = [value for event in run.of(StepMetrics) for value in event.values.items()]
    assert not [name for name, value in numbers if math.isnan(value)]
    assert all(math.isfinite(value) for (_, name), value in numbers if name in ("loss", "penalty"))


@pytest.mark.parametrize("prior", PRIORS)
def test_a_prior_that_learns_nothing_keeps_its_first_covariances(
    encoder: str, tmp_path: Path, prior: str
) -> None:
    config = _config(encoder, prior=prior, learn=("none",), encoder_training="frozen")
    run = train_toy(config, toy_corpus(), tmp_path / "run")
    assert run.outcome.best_epoch is not None
    for snapshot in run.of(Snapshot)[1:]:
        first = run.of(Snapshot)[0].relations
        assert all(
            np.array_equal(snapshot.relations.correlation(mode), first.correlation(mode)) for mode in MODES
        )


def test_a_vanished_penalty_is_noted_once(encoder: str, tmp_path: Path) -> None:
    config = _config(encoder, prior="paper", lr_heads=1e-4, **{"lambda": 0.05}, epochs=4)
    (note,) = train_toy(config, toy_corpus(), tmp_path / "run").of(Note)
    assert "trains as MTL does" in note.message


def test_a_long_window_and_a_task_without_training_words_are_refused(encoder: str) -> None:
    with pytest.raises(ConfigError, match="reads at most 64 subwords at once, not 100"):
        set_up(_config(encoder, max_length=100), toy_corpus())

    with pytest.raises(TrainingError, match="Task ner has nothing labelled to train on"):
        set_up(_config(encoder), toy_corpus(sentences(10, 1, ("pos",))))


# The first corpus annotates parts of speech and entities, the second parts of speech only.
CORPUS = "joined:demo+demo-pos-b?train=40&dev=10&test=10"
TASKS = ("pos@demo", "ner", "pos@demo-pos-b")


def trained(encoder: str, alignment: str, folder: Path) -> tuple[RunFacts, Relations]:
    config = _config(encoder, corpus=CORPUS, tasks=TASKS, alignment=alignment, epochs=2)
    run = train_toy(config, prepare(config), folder / "run")
    return run.facts, run.of(Snapshot)[-1].relations


def test_exact_relates_the_common_task_and_leaves_the_other_apart(encoder: str, tmp_path: Path) -> None:
    facts, relations = trained(encoder, "exact", tmp_path)
    assert facts.impossible == ()
    assert facts.cooccurrence == ()
    groups = task_groups(facts)
    assert groups == (("pos@demo", "pos@demo-pos-b"), ("ner",))
    task = relations.correlation("task")
    assert task[0, 1] == task[1, 2] == 0
    assert abs(task[0, 2]) > 1e-3
    ner = np.array(["ner" in owners for owners in facts.label_owners])
    label = relations.correlation("label")
    assert (label[ner][:, ~ner] == 0).all()
    assert (np.abs(label[~ner][:, ~ner]) > 0).mean() > 0.5


def test_a_mapping_relates_what_it_joins_and_says_what_it_left(encoder: str, tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text(
        "task,label,general\npos@demo,NNP,name\nner,B-PER,name\nner,B-LOC,name\nner,B-NOWHERE,name\n"
    )
    facts, relations = trained(encoder, f"mapping:{file}", tmp_path)
    assert (facts.alignment, facts.cooccurrence) == ("mapping", ())
    assert facts.label_names[0] == "name"
    assert facts.label_owners[0] == ("pos@demo", "ner")
    assert any("B-NOWHERE (row 5)" in note for note in facts.notes)
    assert any("keep general rows of their own" in note for note in facts.notes)
    task = relations.correlation("task")
    assert abs(task[0, 1]) > 1e-4
    assert task[0, 2] == task[1, 2] == 0


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1, 0.2, 0.3], 3),
        ([0.3, 0.2, 0.1], 1),
        ([0.2, 0.2, 0.2], 1),
        ([math.nan, 0.1, math.nan], 2),
        ([math.nan, math.nan], None),
        ([], None),
    ],
)
def test_best_epoch_by_score_and_by_loss(scores: list[float], expected: int | None) -> None:
    metrics = [DevMetrics(epoch, score, -score) for epoch, score in enumerate(scores, start=1)]
    assert best_epoch(metrics, "score", 3) == best_epoch(metrics, "loss", 3) == expected
    assert best_epoch(metrics, "last", 3) == (3 if len(scores) == 3 else None)


@pytest.mark.parametrize(("first", "expected"), [(math.nan, 2), (0.1, 1), (0.0, 1)])
def test_the_loss_decides_only_while_no_score_is_defined(first: float, expected: int) -> None:
    history = [DevMetrics(1, first, loss=1.0), DevMetrics(2, math.nan, loss=0.5)]
    assert best_epoch(history, "score", 3) == expected


def test_snapshots_are_evenly_spaced_among_updates_and_end_with_the_run() -> None:
    assert snapshot_steps(range(10, 101, 10), 5) == {20, 40, 60, 80, 100}
    assert snapshot_steps((10, 20, 25), 50) == {10, 20, 25}
    assert snapshot_steps((5,), 50) == {5}
    assert max(snapshot_steps(range(10, 1001, 10), 7)) == 1000
    assert len(snapshot_steps(range(10, 1001, 10), 7)) == 7


def test_the_first_step_is_told_at_once_others_by_number_or_by_time() -> None:
    steps: list[int] = []
    moment = 0.0

    def sink(event: Event) -> None:
        if isinstance(event, StepMetrics):
            assert ("b", "loss") not in event.values  # a task without words
            assert event.values["a", "loss"] == 0.5
            steps.append(event.step)

    log = StepLog(sink, ["a", "b"], every=3, clock=lambda: moment)
    for step in range(1, 8):
        moment = 1.0 if step == 7 else 0.0
        losses, counts = torch.tensor([0.5, 0.0]), torch.tensor([7, 0])
        log.add(step, 0.1, 1e-3, StepLosses(losses, counts, torch.tensor(0.0), torch.tensor(0.25)))
        assert steps == list(range(1, (2, 2, 2, 5, 5, 5, 8)[step - 1]))


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        ("linear", [1 - step / 15 for step in range(15)]),
        ("linear_warmup", [0.5, 1, *(1 - step / 13 for step in range(13))]),
        ("constant", [1] * 15),
    ],
)
def test_learning_rates_follow_the_schedule(
    encoder: str, tmp_path: Path, schedule: str, shares: list[float]
) -> None:
    config = _config(encoder, paradigm="mtl", lr_schedule=schedule)
    run = train_toy(config, toy_corpus(), tmp_path / "run")
    rates = [event.values[TOTAL, "lr"] for event in run.of(StepMetrics) if (TOTAL, "lr") in event.values]
    assert config.lr_heads is not None
    assert rates == pytest.approx([share * config.lr_heads for share in shares])
