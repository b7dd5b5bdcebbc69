"""Runs over word vectors: trained, stored, loaded, taken along, refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence
from core.encoding.batches import Batch, Batches
from core.encoding.encoded import EncodedText, encode
from core.encoding.words import WordTokenizer, words_read
from core.errors import ConfigError
from core.events import Note, Snapshot
from core.models.encoders import Encoder, at_words
from core.models.encoders.fast_bert import weight_count
from core.models.encoders.lstm import StackedBiLSTM
from core.models.encoders.transformer import load_transformer
from core.models.encoders.word_inputs import WordInputs
from core.models.word_model import word_encoder
from core.recording.resolve import with_absolute_paths
from core.registry import WORD_ENCODERS
from core.tagging import load_tagger
from core.testing.encoders import EncoderContract
from core.training.setup import TrainingRun, set_up
from jobs.queue.submit import check
from tests.toys import WORDS, config, corpus, sentences
from tests.trained import ToyRun, assert_tags_as_tested, train_toy

SMALL: dict[str, Any] = {"bilstm_hidden": 8, "epochs": 12, "lr_encoder": 2e-2, "lr_bilstm": 2e-2}


def small_run(folder: Path, data: Corpus | None = None, **changes: Any) -> ToyRun:
    return train_toy(config(**SMALL | changes), data or corpus(), folder / "checkpoint")


@pytest.mark.parametrize("head", ["linear", "crf", "crf_legal"])
@pytest.mark.parametrize("encoder", WORD_ENCODERS)
def test_a_run_over_words_learns_and_tags_as_it_was_tested(encoder: str, head: str, tmp_path: Path) -> None:
    run = small_run(tmp_path, encoder=encoder, head=head, paradigm="mtl")
    assert all(score.score > 0.8 for score in run.test.scores)
    for answer in assert_tags_as_tested(run, corpus()):
        for tag in (*answer.tags["pos"], *answer.tags["ner"]):
            assert tag.alternatives[0][0] == tag.label
            assert sum(probability for _, probability in tag.alternatives) <= 1 + 1e-5
    # Words that no text of the run has, among them one of the vectors.
    (answer,) = load_tagger(run.checkpoint).tag([["Paris", "qwertz", "!"]])
    assert len(answer.tags["pos"]) == 3


class TestWordEncoders(EncoderContract):
    """What holds of every encoder over words in the table."""

    @pytest.fixture
    def tokenizer(self) -> WordTokenizer:
        return WordTokenizer(WORDS)

    @pytest.fixture(params=WORD_ENCODERS)
    def encoder(self, request: pytest.FixtureRequest, tokenizer: WordTokenizer) -> Encoder:
        run = config(request.param, paradigm="mtl", bilstm_hidden=8, input_dropout=0.3)
        return cast(Encoder, word_encoder(run, tokenizer, WORDS)[0])

    @pytest.fixture
    def text(self, tokenizer: WordTokenizer) -> EncodedText:
        return encode([WORDS[:5], WORDS[:2], WORDS[2:], WORDS[:1]], tokenizer, 32)

    @pytest.fixture
    def pad(self, tokenizer: WordTokenizer) -> int:
        return tokenizer.pad


def test_inputs_are_dropped_once() -> None:
    """The LSTMs drop what they read, word inputs too: these drop nothing of their own."""
    words = [word for sentence in corpus().train for word in sentence.tokens]
    tokenizer = WordTokenizer(words)
    encoder, _ = word_encoder(config("bilstm", input_dropout=0.5), tokenizer, words)
    assert isinstance(encoder, StackedBiLSTM)
    text = encode([sentence.tokens for sentence in corpus().train], tokenizer, 32)
    (batch,) = Batches(text, np.zeros((len(text.firsts), 0), np.int64), 40, tokenizer.pad).by_length()
    inputs = cast(WordInputs, encoder.below)
    assert torch.equal(inputs.train()(batch), inputs.eval()(batch))
    assert encoder.dropout.p == 0.5


@pytest.mark.parametrize(("layers", "made"), [(None, 2), (1, 1), (3, 3)])
def test_lstm_d_has_as_many_layers_as_it_is_told_or_has_tasks(layers: int | None, made: int) -> None:
    words = [word for sentence in corpus().train for word in sentence.tokens]
    run = config("lstm-d", paradigm="mtl", lstm_layers=layers, **SMALL)
    encoder, _ = word_encoder(run, WordTokenizer(words), words)
    assert len(cast(StackedBiLSTM, encoder).lstm) == made


def long_sentences() -> Corpus:
    """Sentences of up to 90 words: longer than the windows of the run's encoder and of its transformer."""
    return corpus(sentences(30, 0, longest=90), sentences(8, 3, longest=90))


def in_words(made: TrainingRun, split: str, states: Callable[[Batch], Tensor]) -> Tensor:
    """What `states` gives for the words of a split's batches, in the order of the words."""
    data = made.use_split(split)
    by_batch = [(batch.words, states(batch)) for batch in data.batches.by_length()]
    return torch.cat([part for _, part in by_batch])[torch.cat([words for words, _ in by_batch]).argsort()]


@pytest.mark.parametrize("max_length", [12, 80])
def test_context_is_what_a_frozen_encoder_gives_for_the_words(encoder: str, max_length: int) -> None:
    words = config("bilstm", context_encoder=encoder, max_length=max_length, **SMALL)
    over_words = set_up(words, long_sentences())
    frozen = set_up(
        config(encoder, encoder_training="frozen", max_length=min(max_length, 64)), long_sentences()
    )
    computed: list[Note] = []
    for made in (over_words, frozen):
        assert made.compute_features(lambda note: computed.append(cast(Note, note)), lambda: False)
    assert len(computed) == 3, "the second run finds the states of the first"
    for split in ("train", "dev", "test"):
        context = in_words(over_words, split, lambda batch: at_words(cast(Tensor, batch.context), batch))
        assert torch.equal(context, in_words(frozen, split, frozen.model.encoder.words))
    # Words that a window reads but that do not belong to it have theirs, too.
    data = over_words.splits["train"]
    tokens = [word for sentence in data.sentences for word in sentence.tokens]
    forms = cast(WordTokenizer, over_words.tokenizer).forms
    assert len(data.text.ids) > len(tokens) or max_length > 64
    assert [tokens[place] for place in words_read(data.text)] == [forms[form] for form in data.text.ids]


def test_the_transformer_of_the_context_counts_as_frozen(encoder: str) -> None:
    made = set_up(config("bilstm", context_encoder=encoder, vectors_training="fixed", **SMALL), corpus())
    without = set_up(config("bilstm", vectors_training="fixed", **SMALL), corpus())
    transformer = load_transformer(encoder, half=False)
    in_lstm = 2 * 4 * SMALL["bilstm_hidden"] * transformer.features
    vectors = cast(WordInputs, cast(StackedBiLSTM, made.model.encoder).below).trained
    parameters, trained = cast(int, made.facts.parameters), cast(int, made.facts.trained_parameters)
    assert parameters - cast(int, without.facts.parameters) == weight_count(transformer) + in_lstm
    assert trained - cast(int, without.facts.trained_parameters) == in_lstm
    assert trained == parameters - weight_count(transformer) - vectors.numel()


def test_mrn_relates_the_heads_over_words(tmp_path: Path) -> None:
    run = small_run(tmp_path, encoder="sc-lstm", paradigm="mrn", update_every=5, alignment="cooccurrence")
    assert run.facts.features == 4 * SMALL["bilstm_hidden"]
    assert run.of(Snapshot)[-1].relations.task.shape == (2, 2)


def test_a_training_without_better_epochs_ends(tmp_path: Path) -> None:
    run = small_run(tmp_path, encoder="bilstm", paradigm="mrn", epochs=40, patience=2, snapshots=3)
    (note,) = [note for note in run.of(Note) if "No better epoch for 2 epochs" in note.message]
    assert run.of(Snapshot)[-1].step == note.step


@pytest.mark.parametrize("training", ["fixed", "tuned"])
def test_fixed_vectors_stay_as_they_are(training: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.vec"
    path.write_text("".join(f"{word.lower()} 0.25 {place}\n" for place, word in enumerate(WORDS[:-1])))
    made: dict[str, Any] = {"vectors": str(path), "vectors_training": training, "optimiser": "sgd"}
    checkpoint = small_run(
        tmp_path, encoder="bilstm", paradigm="mtl", epochs=2, weight_decay=0.1, **made
    ).checkpoint
    kept = load_file(checkpoint / "weights.safetensors")["encoder.below.trained"]
    words = json.loads((checkpoint / "words.json").read_text())["trained"]
    start = torch.tensor([[0.25, [word.lower() for word in WORDS].index(word)] for word in words])
    assert torch.equal(kept[1:], start) == (training == "fixed")


def test_words_without_capitals_or_vectors_are_learned_from_their_characters(tmp_path: Path) -> None:
    path = tmp_path / "others.vec"
    path.write_text("elsewhere 1 2\n")
    lowered = [
        [Sentence(tuple(map(str.lower, sentence.tokens)), sentence.labels) for sentence in part]
        for part in (corpus().train, corpus().test)
    ]
    made: dict[str, Any] = {"encoder": "bilstm", "paradigm": "mtl", "vectors": str(path)}
    run = small_run(tmp_path, data=corpus(*lowered), **made)
    assert all(score.score > 0.8 for score in run.test.scores)
    (note,) = [note for note in run.facts.notes if "vector" in note]
    assert "has vectors of 0.0% of the training words" in note


def test_own_vectors_give_their_dimension(tmp_path: Path) -> None:
    path = tmp_path / "mine.vec"
    path.write_text("2 4\nlamb 1 0 0 0\neu 0 1 0 0\n", encoding="utf-8")
    run = small_run(tmp_path, encoder="bilstm", paradigm="mtl", vectors=str(path), epochs=1)
    path.unlink()
    tagger = load_tagger(run.checkpoint)
    assert tagger.tag([["EU", "lamb"]])
    assert not tagger.notes
    assert tagger.tag([["Utrecht"]])
    (note,) = tagger.notes
    assert note.startswith("Words that are not in this run's corpus count as unknown. vectors: ")
    assert note.endswith(" is neither glove nor a file or folder.")
    assert any("2 4" not in note and "mine.vec" in note for note in run.facts.notes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"vectors": "/nowhere.txt"}, "neither glove nor a file or folder"),
        ({"context_encoder": "no-such/encoder"}, "The encoder 'no-such/encoder' is neither"),
    ],
)
def test_what_is_not_there_is_refused_before_a_run_is_queued(changes: dict[str, str], says: str) -> None:
    lost = RunConfig.build(corpus="demo", tasks="pos,ner", encoder="bilstm", paradigm="mtl", **changes)
    with pytest.raises(ConfigError, match=says) as error:
        check([lost])
    assert error.value.field in changes


def test_a_context_encoder_is_kept_by_its_whole_path(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(encoder).parent)
    near = config("bilstm", context_encoder=Path(encoder).name)
    assert with_absolute_paths(near.with_(corpus="demo")).context_encoder == encoder
    known = config("bilstm", context_encoder="minilm", corpus="demo")
    assert with_absolute_paths(known) is known
