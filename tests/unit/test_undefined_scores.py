"""Splits that allow no score of a task: what a training notes, and by what it chooses its epoch."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from core.corpora.types import Corpus, Sentence
from core.records import TOTAL, DevMetrics, EpochMetrics, Note, best_epoch
from tests.toys import config as toy_config
from tests.toys import corpus as toy_corpus
from tests.toys import text_corpus
from tests.unit.toy_runs import train_toy


def _without_spans(sentences: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
    """The sentences with an O for each word of `ner`."""
    return tuple(
        dataclasses.replace(each, labels={**each.labels, "ner": ("O",) * len(each.tokens)})
        for each in sentences
    )


def _blind(*splits: str, tasks: tuple[str, ...] = ("ner",)) -> Corpus:
    """The toy corpus with these tasks, and no span in these splits."""
    corpus = toy_corpus()
    kept = tuple(task for task in corpus.tasks if task.name in tasks)
    blind = {split: _without_spans(getattr(corpus, split)) for split in splits}
    return dataclasses.replace(corpus, tasks=kept, **blind)


def test_without_a_dev_score_the_epoch_is_chosen_by_dev_loss(encoder: str, tmp_path: Path) -> None:
    config = toy_config(encoder, tasks="ner", paradigm="stl", epochs=4)
    run = train_toy(config, _blind("dev"), tmp_path / "run")
    assert run.facts.selected_by == "loss"
    assert any("the dev split has no span of this task" in note for note in run.facts.notes)
    assert any("lowest dev loss is chosen" in note for note in run.facts.notes)
    epochs = run.of(EpochMetrics)
    assert [set(epoch.values) for epoch in epochs] == [{("ner", "loss"), (TOTAL, "loss")}] * 4
    losses = [epoch.values[TOTAL, "loss"] for epoch in epochs]
    assert run.outcome.best_epoch == 1 + losses.index(min(losses)) != 1
    (score,) = run.test.scores
    assert score.is_defined


def test_a_task_without_a_dev_score_is_left_out_of_the_mean(encoder: str, tmp_path: Path) -> None:
    run = train_toy(
        toy_config(encoder, paradigm="mtl"), _blind("dev", tasks=("pos", "ner")), tmp_path / "run"
    )
    assert run.facts.selected_by == "score"
    assert any("the tasks other than ner" in note for note in run.facts.notes)
    for epoch in run.of(EpochMetrics):
        assert ("ner", "score") not in epoch.values
        assert epoch.values[TOTAL, "score"] == epoch.values["pos", "score"]


def test_a_test_split_without_spans_is_noted(encoder: str, tmp_path: Path) -> None:
    config = toy_config(encoder, tasks="ner", paradigm="stl", epochs=1)
    run = train_toy(config, _blind("test"), tmp_path / "run")
    assert run.facts.selected_by == "score"
    assert any("the test split has no span of this task" in note for note in run.facts.notes)
    (score,) = run.test.scores
    assert math.isnan(score.score)


def test_constant_predictions_leave_the_choice_to_dev_loss(encoder: str, tmp_path: Path) -> None:
    """Dev numbers differ, so that their score is defined; but a model predicts one number for all pairs."""
    config = toy_config(encoder, tasks="alike", paradigm="stl", epochs=2, lr_encoder=1e-30, lr_heads=1e-30)
    corpus = text_corpus(tasks=("alike",))
    one_pair = tuple(
        dataclasses.replace(corpus.dev[0], labels={"alike": (number,)}) for number in ("1", "2", "4")
    )
    run = train_toy(config, dataclasses.replace(corpus, dev=one_pair), tmp_path / "run")
    assert run.facts.selected_by == "score"
    assert not any((TOTAL, "score") in epoch.values for epoch in run.of(EpochMetrics))
    assert any("lowest dev loss" in note.message for note in run.of(Note))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([math.nan, math.nan], 2), ([math.nan, 0.1], 2), ([0.1, math.nan], 1), ([0.0, math.nan], 1)],
)
def test_the_loss_decides_only_while_no_score_is_defined(scores: list[float], expected: int) -> None:
    history = [DevMetrics(epoch, score, loss=1 / epoch) for epoch, score in enumerate(scores, start=1)]
    assert best_epoch(history, "score", 3) == expected
