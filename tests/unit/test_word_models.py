"""Runs over word vectors: trained, stored, loaded, taken along, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.encoding.batches import Batches
from core.encoding.encoded import encode
from core.encoding.words import WordTokenizer
from core.errors import ConfigError
from core.models.encoders.word_inputs import WordInputs
from core.models.word_model import word_encoder
from core.records import Event, Note, RunFacts, Snapshot, SplitResult
from core.registry import WORD_ENCODERS
from core.tagging import load_tagger
from core.training.trainer import train
from jobs.submit import check
from tests.toys import config, corpus

SMALL: dict[str, Any] = {"bilstm_hidden": 8, "epochs": 12, "lr_encoder": 2e-2, "lr_bilstm": 2e-2}


def run(folder: Path, **changes: Any) -> tuple[list[Event], Path]:
    events: list[Event] = []
    checkpoint = Checkpoint(folder / "checkpoint")
    train(config(**SMALL | changes), corpus(), sink=events.append, checkpoint=checkpoint)
    return events, folder / "checkpoint"


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("head", ["linear", "crf", "crf_legal"])
@pytest.mark.parametrize("encoder", WORD_ENCODERS)
def test_a_run_over_words_learns_and_tags_as_it_was_tested(encoder: str, head: str, tmp_path: Path) -> None:
    events, checkpoint = run(tmp_path, encoder=encoder, head=head, paradigm="mtl")
    test = of(events, SplitResult)[-1]
    assert all(score.score > 0.8 for score in test.scores)
    tagger = load_tagger(checkpoint)
    answers = tagger.tag([sentence.tokens for sentence in corpus().test])
    for task in ("pos", "ner"):
        assert [[tag.label for tag in answer.tags[task]] for answer in answers] == test.predictions[task]
        for answer in answers:
            for tag in answer.tags[task]:
                assert tag.alternatives[0][0] == tag.label
                assert sum(probability for _, probability in tag.alternatives) <= 1 + 1e-5
    # Words that no text of the run has, among them one of the vectors.
    (answer,) = tagger.tag([["Paris", "qwertz", "!"]])
    assert len(answer.tags["pos"]) == 3


def test_inputs_are_dropped_once() -> None:
    """The LSTMs drop what they read, word inputs too: these drop nothing of their own."""
    sentences = corpus().train
    tokenizer = WordTokenizer(word for sentence in sentences for word in sentence.tokens)
    encoder, _ = word_encoder(config("bilstm", input_dropout=0.5), tokenizer, sentences)
    text = encode([sentence.tokens for sentence in sentences], tokenizer, 32)
    (batch,) = Batches(text, np.zeros((len(text.firsts), 0), np.int64), 40, tokenizer.pad).by_length()
    inputs = cast(WordInputs, encoder.below)
    assert torch.equal(inputs.train()(batch), inputs.eval()(batch))
    assert encoder.dropout.p == 0.5


def test_mrn_relates_the_heads_over_words(tmp_path: Path) -> None:
    events, _ = run(tmp_path, encoder="sc-lstm", paradigm="mrn", update_every=5, alignment="cooccurrence")
    (facts,) = of(events, RunFacts)
    assert facts.features == 4 * SMALL["bilstm_hidden"]
    assert of(events, Snapshot)[-1].relations.task.shape == (2, 2)


def test_the_words_without_a_vector_are_said(tmp_path: Path) -> None:
    events, _ = run(tmp_path, encoder="bilstm", paradigm="stl", tasks="ner", epochs=1)
    (facts,) = of(events, RunFacts)
    (note,) = [note for note in facts.notes if "vector" in note]
    assert note.startswith("glove has vectors of 100.0% of the training words")


def test_a_training_without_better_epochs_ends(tmp_path: Path) -> None:
    events, _ = run(tmp_path, encoder="bilstm", paradigm="mtl", epochs=40, patience=2)
    assert any("No better epoch for 2 epochs" in note.message for note in of(events, Note))


def test_own_vectors_give_their_dimension(tmp_path: Path) -> None:
    path = tmp_path / "mine.vec"
    path.write_text("2 4\nlamb 1 0 0 0\neu 0 1 0 0\n", encoding="utf-8")
    events, checkpoint = run(tmp_path, encoder="bilstm", paradigm="mtl", vectors=str(path), epochs=1)
    path.unlink()
    assert load_tagger(checkpoint).tag([["EU", "lamb"]])
    assert any("2 4" not in note and "mine.vec" in note for note in of(events, RunFacts)[0].notes)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"encoder_training": "frozen"}, "encoder_training", "vectors_training"),
        ({"task_order": "pos"}, "task_order", "only lstm-d"),
        ({"encoder": "lstm-d", "task_order": "pos"}, "task_order", "name each of pos, ner once, not pos"),
        ({"encoder": "lstm-d", "task_order": "pos,pos"}, "task_order", "listed twice"),
        ({"encoder": "lstm-d", "lstm_layers": 2}, "lstm_layers", "a layer for each task"),
        ({"encoder": "minilm", "vectors": "glove"}, "vectors", "only an encoder that reads words"),
        ({"task_weights": "1"}, "task_weights", "a weight above 0 for each of the 2 tasks"),
        ({"task_weights": "1,x"}, "task_weights", "x"),
        ({"patience": 1, "select_by": "last"}, "patience", "select_by keeps the last epoch"),
        ({"draw_tasks": "uniform", "corpus_order": "in_turn"}, "draw_tasks", "must be 'together'"),
    ],
)
def test_contradictions_are_refused_with_the_field(changes: dict[str, Any], field: str, says: str) -> None:
    values = {"corpus": "demo", "tasks": "pos,ner", "encoder": "bilstm", "paradigm": "mtl"} | changes
    with pytest.raises(ConfigError, match=says) as error:
        RunConfig.build(**values)
    assert error.value.field == field


def test_vectors_that_are_not_there_are_refused_before_a_run_is_queued() -> None:
    lost = RunConfig.build(
        corpus="demo", tasks="pos,ner", encoder="bilstm", paradigm="mtl", vectors="/nowhere.txt"
    )
    with pytest.raises(ConfigError, match="neither glove nor a file or folder"):
        check([lost])
