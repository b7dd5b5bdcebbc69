"""Labels and numbers of whole texts and of pairs: what is read, learned, scored and answered."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora.assembly import SPLITS, describe
from core.corpora.readers.texts import MOST_SCORE
from core.corpora.types import Sentence
from core.encoding.texts import encode_sentences
from core.encoding.tokenizer import load_tokenizer
from core.errors import ConfigError
from core.events import Note, SplitResult
from core.metrics import EpochMetrics
from core.models import build
from core.models.encoders.transformer import Transformer, load_transformer, text_pooling
from core.tagging import load_tagger
from core.tasks import KINDS, score_task
from core.tasks.scores import score_of_counts, sentence_counts
from core.training.setup import set_up
from tests.tiny import tiny_bert, tiny_roberta
from tests.toys import TEXT_TASKS, text_corpus
from tests.toys import config as toy_config
from tests.trained import train_toy


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_roberta(tmp_path_factory.mktemp("roberta")))


def config(encoder: str, **changes: Any) -> RunConfig:
    return toy_config(encoder, **{"tasks": ("pos", *TEXT_TASKS), "paradigm": "mtl"} | changes)


PAIRS = [("EU call", "German lamb ."), ("EU " * 20, "lamb"), ("EU", "call " * 30), ("to " * 18, "a " * 19)]


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_texts_are_read_as_transformers_reads_them(family: str, encoder: str, roberta: str) -> None:
    tokenizer = load_tokenizer(encoder if family == "bert" else roberta)
    sentences = [Sentence(tuple(a.split()), {}, whole=True, second=tuple(b.split())) for a, b in PAIRS]
    together, _ = encode_sentences(sentences, tokenizer, 24, together=True, cache=None)
    apart, _ = encode_sentences(sentences, tokenizer, 24, together=False, cache=None)
    assert together.texts is not None
    assert apart.texts is not None
    for place, (a, b) in enumerate(PAIRS):
        cut = {"truncation": "longest_first", "max_length": 24}
        theirs = tokenizer.inner(a.strip(), b.strip(), **cut)
        start, end = together.offsets[place : place + 2]
        assert together.ids[start:end].tolist() == theirs["input_ids"]
        types = theirs.get("token_type_ids", [0])
        begins = types.index(1) if 1 in types else len(theirs["input_ids"])
        assert begins == together.texts.second[place]
        for window, text in ((2 * place, a), (2 * place + 1, b)):
            start, end = apart.offsets[window : window + 2]
            alone = tokenizer.inner(text.strip(), truncation=True, max_length=24)
            assert apart.ids[start:end].tolist() == alone["input_ids"]
    if family == "bert":
        assert together.texts.shortened.tolist() == [False, False, True, True]
    assert apart.texts.follows.tolist() == [False, True] * len(PAIRS)


def _text_vector(encoder: Transformer, tokenizer: Any, text: tuple[str, ...], by: str) -> torch.Tensor:
    """The vector of one text, from Transformers' own model."""
    with torch.no_grad():
        read = tokenizer(" ".join(text), return_tensors="pt")
        states: torch.Tensor = encoder.inner(**read).last_hidden_state[0]
    return states[0] if by == "cls" else states.mean(dim=0)


@pytest.mark.parametrize("by", ["cls", "mean"])
def test_heads_read_the_vectors_of_texts(encoder: str, by: str) -> None:
    """Labels, shared and own heads of pairs and the cosine, each computed again from one text at a time."""
    run = set_up(config(encoder, pooling=by, head_init="default", dropout=0.0), text_corpus(6))
    model = run.model.eval()
    assert model.pairs is not None
    split = run.splits["test"]
    vector = partial(
        _text_vector, load_transformer(encoder, half=False).eval(), load_tokenizer(encoder).inner
    )
    logits: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for batch in split.batches.by_length():
            parts = model._split(model(batch))
            for row, item in enumerate(batch.words.tolist()):
                logits[item] = torch.cat([part[row] for part in parts])
    starts = split.text.sentences
    sizes = [len(task.labels) for task in run.facts.tasks]
    columns = dict(zip(run.config.tasks, np.cumsum([0, *sizes]), strict=False))
    for place, sentence in enumerate(split.sentences):
        answers = logits[int(starts[place])]
        u = vector(sentence.tokens, by)
        if "mood" in sentence.labels:
            rows = model.heads.slices[model.stacked.index(1)]
            expected = model.heads.weight[rows] @ u + model.heads.bias[rows]
            torch.testing.assert_close(answers[columns["mood"] :][:2], expected)
        if sentence.second is None:
            continue
        v = vector(sentence.second, by)
        if "same" in sentence.labels:
            z = model.pairs.layers[0](torch.cat([u, v, (u - v).abs(), u * v]))
            torch.testing.assert_close(answers[columns["same"] :][:2], torch.cat([torch.zeros(1), z]))
        if "alike" in sentence.labels:
            low, high = run.facts.tasks[3].scale or (0, 0)
            expected = low + (high - low) * torch.relu(torch.cosine_similarity(u, v, dim=0))
            torch.testing.assert_close(answers[columns["alike"]], expected)


LEARNED = {"epochs": 6, "lr_encoder": 5e-3, "lr_heads": 5e-2, "dropout": 0.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "apart": {},
    "together": {"pair_encoding": "together", "epochs": 12},
    "shared heads": {"pair_heads": "shared", "pooling": "mean"},
    "a task at a time": {"draw_tasks": "uniform"},
    "told the task": {"task_embedding": "input", "pooling": "mean"},
    "one part after the other": {"corpus_order": "in_turn"},
    "words of vectors": {"encoder": "bilstm", "bilstm_hidden": 16, "lr_encoder": 1e-2, "lr_heads": 1e-2},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_task_is_learned_and_answered(encoder: str, tmp_path: Path, variant: str) -> None:
    corpus = text_corpus(80)
    run = train_toy(config(**{"encoder": encoder} | LEARNED | VARIANTS[variant]), corpus, tmp_path / "run")
    result = run.test
    scores = {score.task: score for score in result.scores}
    assert [scores[task].score_name for task in ("pos", *TEXT_TASKS)] == [
        *("accuracy", "accuracy", "accuracy", "pearson")
    ]
    assert scores["pos"].score > 0.9
    assert scores["mood"].score >= 0.75
    assert scores["alike"].score > 0.5
    assert scores["alike"].secondary("accuracy") is None
    assert scores["alike"].secondary("spearman") is not None
    assert scores["alike"].tokens == 12
    assert all(len(labels) == 12 for labels in result.predictions.values())

    tagger = load_tagger(run.checkpoint)
    test = corpus.split("test")
    for task in TEXT_TASKS:
        asked = [sentence for sentence in test if task in sentence.labels]
        texts = [
            (" ".join(sentence.tokens), " ".join(sentence.second) if sentence.second else None)
            for sentence in asked
        ]
        for answer, (predicted,) in zip(tagger.answer(texts), result.predictions[task], strict=True):
            task_answer = answer[task]
            if KINDS[tagger.schemes[task]].is_number:
                assert task_answer.value == pytest.approx(float(predicted), abs=2e-3)
                assert not task_answer.probabilities
            else:
                assert task_answer.value == predicted == task_answer.probabilities[0][0]
                assert sum(share for _, share in task_answer.probabilities) == pytest.approx(1, abs=1e-5)
    words = [sentence.tokens for sentence in test if "pos" in sentence.labels]
    tagged = tagger.tag(words)
    assert [[tag.label for tag in sentence.tags["pos"]] for sentence in tagged] == result.predictions["pos"]
    assert tagged[0].tags.keys() == {"pos"}
    assert tagger.answer([("EU lamb", None)])[0].keys() == {"mood"}


@pytest.mark.parametrize("pair_encoding", ["apart", "together"])
def test_the_largest_scores_are_learned_as_small_ones_are(
    encoder: str, tmp_path: Path, pair_encoding: str
) -> None:
    small = text_corpus(tasks=("alike",))
    times = MOST_SCORE / 5
    splits = {
        split: tuple(
            replace(pair, labels={"alike": (f"{times * float(pair.labels['alike'][0]):.9g}",)})
            for pair in small.split(split)
        )
        for split in SPLITS
    }
    scores: list[float] = []
    for corpus in (small, describe(small.with_splits(splits))):
        described = config(encoder, tasks="alike", paradigm="stl", pair_encoding=pair_encoding, epochs=2)
        run = train_toy(described, corpus, tmp_path / str(len(scores)))
        scores.append(run.of(SplitResult)[0].scores[0].score)
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    assert scores[0] > 0


@pytest.mark.parametrize("pair_encoding", ["apart", "together"])
def test_an_encoder_without_token_types_reads_pairs(roberta: str, tmp_path: Path, pair_encoding: str) -> None:
    changes = {"tasks": ("same", "alike"), "pair_encoding": pair_encoding, "epochs": 1}
    assert load_transformer(roberta, half=False).inner.config.type_vocab_size == 1
    assert train_toy(config(roberta, **changes), text_corpus(tasks=("same", "alike")), tmp_path / "run").test


def test_numbers_are_scored_as_pandas_scores_them(encoder: str, tmp_path: Path) -> None:
    run = train_toy(config(encoder, **LEARNED), text_corpus(), tmp_path / "run")
    result = run.of(SplitResult)[0]
    (score,) = (score for score in result.scores if score.task == "alike")
    gold, predicted = (
        pd.Series([float(text) for (text,) in labels["alike"]])
        for labels in (result.gold, result.predictions)
    )
    assert score.score == pytest.approx(gold.corr(predicted), abs=1e-5)
    assert score.secondary("spearman") == pytest.approx(gold.corr(predicted, method="spearman"), abs=1e-3)
    losses = [event.values["alike", "loss"] for event in run.of(EpochMetrics)]
    assert losses[result.epoch - 1] == pytest.approx(((gold - predicted) ** 2).mean(), rel=1e-3)


NUMBERS = st.lists(
    st.tuples(st.floats(0, 5).map(lambda x: round(x, 2)), st.floats(-1, 6).map(lambda x: round(x, 2))),
    min_size=2,
    max_size=30,
)


@given(NUMBERS)
def test_correlations(pairs: list[tuple[float, float]]) -> None:
    gold, predicted = ([[str(value)] for value in column] for column in zip(*pairs, strict=True))
    score = score_task("alike", "score", gold, predicted)
    x, y = (pd.Series(column) for column in zip(*pairs, strict=True))
    if x.nunique() < 2 or y.nunique() < 2:
        assert [score.score, score.secondary("spearman")] == pytest.approx([math.nan] * 2, nan_ok=True)
    else:
        assert score.score == pytest.approx(x.corr(y), abs=1e-6)
        assert score.secondary("spearman") == pytest.approx(x.corr(y, method="spearman"), abs=1e-6)
    counts = sentence_counts("pearson", gold, predicted)
    assert score_of_counts(counts.sum(axis=0)) == pytest.approx(score.score, nan_ok=True)


@pytest.mark.parametrize("offset", [0.0, 1e7, -3e9])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_a_correlation_keeps_its_digits_at_any_offset(offset: float, scale: float) -> None:
    random = np.random.default_rng(7)
    x = random.normal(size=200)
    y = 0.6 * x + 0.8 * random.normal(size=200)
    expected = float(np.corrcoef(x, y)[0, 1])
    gold, predicted = ([[repr(float(offset + scale * value))] for value in column] for column in (x, y))
    score = score_task("alike", "score", gold, predicted)
    assert score.score == pytest.approx(expected, abs=1e-3 if scale < 1 else 1e-6)
    counts = sentence_counts("pearson", gold, predicted)
    assert score_of_counts(counts.sum(axis=0)) == pytest.approx(score.score, abs=1e-9)
    half = sentence_counts("pearson", gold[:100], predicted[:100]).sum(axis=0)
    assert score_of_counts(half) == pytest.approx(np.corrcoef(x[:100], y[:100])[0, 1], abs=1e-3)
    constant = [[repr(offset)]] * len(gold)
    assert math.isnan(score_task("alike", "score", gold, constant).score)
    assert math.isnan(float(score_of_counts(sentence_counts("pearson", gold, constant).sum(axis=0))))


def test_systems_are_exchanged_around_one_centre() -> None:
    """Rows of two systems that differ by an offset, mixed, give the correlation of the mixed predictions."""
    random = np.random.default_rng(8)
    x = random.normal(size=100)
    gold = [[repr(float(value))] for value in 5e6 + x]
    one, other = 5e6 + x + random.normal(size=100), 5e6 + 2 + x + random.normal(size=100)
    rows = [
        sentence_counts("pearson", gold, [[repr(float(value))] for value in guess]) for guess in (one, other)
    ]
    coins = random.random(100) < 0.5
    mixed = np.where(coins[:, None], *rows).sum(axis=0)
    assert score_of_counts(mixed) == pytest.approx(
        np.corrcoef(x, np.where(coins, one, other))[0, 1], abs=1e-6
    )


def test_a_prior_leaves_out_pairs_that_are_read_apart(encoder: str, tmp_path: Path) -> None:
    mrn = {"paradigm": "mrn", "update_every": 2, "snapshots": 2}
    facts = train_toy(config(encoder, **mrn), text_corpus(), tmp_path / "1").facts
    assert facts.related == ("pos", "mood")
    assert any("leaves out same, alike" in note for note in facts.notes)
    together = config(encoder, pair_encoding="together", **mrn)
    facts = train_toy(together, text_corpus(), tmp_path / "2").facts
    assert facts.related == ()
    assert "alike:score" in facts.label_names
    with pytest.raises(ConfigError, match="pair_encoding to together"):
        set_up(config(encoder, tasks="mood,same", **mrn), text_corpus(tasks=("mood", "same")))


def test_tasks_of_other_numbers_of_labels_share_no_head(encoder: str) -> None:
    many = text_corpus()
    extra = replace(many.train[-1], labels={"same": ("maybe",)})
    with pytest.raises(ConfigError, match="same has 3"):
        set_up(config(encoder, pair_heads="shared"), describe(replace(many, train=(*many.train, extra))))


def test_long_texts_lose_their_end_and_the_run_says_so(encoder: str) -> None:
    corpus = text_corpus()
    run = set_up(config(encoder, max_length=8), corpus)
    (cut_note,) = (note for note in run.facts.notes if "lost the end" in note)
    assert "max_length" in cut_note
    assert not any("lost the end" in note for note in set_up(config(encoder), corpus).facts.notes)


def test_the_encoder_says_what_stands_for_a_text(encoder: str, tmp_path: Path) -> None:
    assert (text_pooling("minilm"), text_pooling(encoder)) == ("mean", "cls")
    folder = tiny_bert(tmp_path / "sentence")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    assert text_pooling(str(folder)) == "mean"
    run = set_up(config(str(folder)), text_corpus())
    assert run.model.pooled_by == "mean"
    assert set_up(config(str(folder), pooling="cls"), text_corpus()).model.pooled_by == "cls"


def test_an_encoder_of_word_vectors_is_looked_up_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "text_pooling", lambda encoder: pytest.fail(f"{encoder} is looked up"))
    run = set_up(config("bilstm", bilstm_hidden=4), text_corpus())
    assert run.model.pooled_by == "mean"


def test_frozen_features_give_the_same_vectors(encoder: str) -> None:
    """A frozen encoder's states are looked up; its heads then see what a fine-tuned encoder's heads see."""
    changes = {"tasks": ("mood", "same"), "dropout": 0.0, "head_init": "default", "pooling": "mean"}
    frozen = set_up(
        config(encoder, encoder_training="frozen", lr_heads=0.1, **changes), text_corpus(6, ("mood", "same"))
    )
    assert frozen.compute_features(lambda event: None, lambda: False)
    full = set_up(config(encoder, **changes), text_corpus(6, ("mood", "same")))
    full.model.heads.load_state_dict(frozen.model.heads.state_dict())
    assert frozen.model.pairs is not None
    assert full.model.pairs is not None
    full.model.pairs.load_state_dict(frozen.model.pairs.state_dict())
    with torch.no_grad():
        for ours, theirs in zip(
            frozen.use_split("test").batches.by_length(),
            full.use_split("test").batches.by_length(),
            strict=True,
        ):
            torch.testing.assert_close(frozen.model.eval()(ours), full.model.eval()(theirs))


def test_notes(encoder: str, tmp_path: Path) -> None:
    run = train_toy(config(encoder, pooling="mean"), text_corpus(), tmp_path / "run")
    assert any("the mean over its subwords, as asked for" in note for note in run.facts.notes)
    assert not run.of(Note)
