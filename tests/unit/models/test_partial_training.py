"""Last layers over cached states: what they compute, what is cached, what a run saves."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, DistilBertConfig

from core.config import RunConfig
from core.encoding.batches import Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.errors import ConfigError, MRNLabError
from core.models import model_io
from core.models.encoders.frozen import FeatureTables, FrozenFeatures
from core.models.encoders.partial import TopLayers, load_top
from core.models.encoders.transformer import LazyTransformer, Transformer, load_transformer
from core.training.setup import TrainingRun, set_up
from jobs.queue.submit import check
from tests.tiny import tiny_bert
from tests.toys import TEXT_TASKS, config, corpus, sentences, text_corpus
from tests.trained import assert_tags_as_tested, train_toy
from tests.unit.transformers_alone import FAMILY, LENGTHS, Table, assert_alike, batch, gradients, model


@pytest.mark.parametrize(
    ("training", "rates"), [("top:1", (2e-3, 2e-2)), ("top:2", (1e-3, 1e-2)), ("top:10", (2e-4, 2e-3))]
)
def test_rates_follow_from_what_is_trained(training: str, rates: tuple[float, float]) -> None:
    made = RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl", encoder_training=training)
    assert (made.lr_encoder, made.lr_heads) == pytest.approx(rates)


def test_layers_that_an_encoder_lacks_are_refused_before_a_run_is_queued(tmp_path: Path) -> None:
    encoder = str(tiny_bert(tmp_path / "bert"))
    distilbert = DistilBertConfig(
        vocab_size=60, dim=16, hidden_dim=24, n_layers=2, n_heads=2, max_position_embeddings=40
    )
    AutoModel.from_config(distilbert).save_pretrained(tmp_path / "distil")
    for name, training, says in (
        (encoder, "top:2", "needs an encoder of more than 2 layers; use full"),
        ("minilm", "top:6", "needs an encoder of more than 6 layers; use full"),
        (str(tmp_path / "distil"), "top:1", "an encoder of type distilbert does not have"),
    ):
        run = config(name, corpus="demo", paradigm="mtl", encoder_training=training)
        with pytest.raises(ConfigError, match=says):
            check([run])
    with pytest.raises(ConfigError, match="more than 2 layers"):
        set_up(config(encoder, paradigm="mtl", encoder_training="top:3"), corpus())


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("name", ["bert", "roberta", "electra, projected"])
def test_states_and_gradients_are_those_of_the_whole_encoder(name: str, top: int, lengths: str) -> None:
    inner, given = model(FAMILY[name]), batch(LENGTHS[lengths], FAMILY[name].pad_token_id)
    whole, below = Transformer(inner, half=False), Transformer(copy.deepcopy(inner), half=False)
    layers = below.take_top(top)
    with torch.no_grad():
        states = below(given)
    below_layers = Table(*states.shape).requires_grad_(False)
    below_layers.states.copy_(states)
    upper = TopLayers(below_layers, layers, inner.config.num_attention_heads, half=False)
    prefix = len(inner.encoder.layer) - top
    for kind in ("forward", "words"):
        expected, of_upper = getattr(whole, kind)(given), getattr(upper, kind)(given)
        if kind == "forward":
            expected, of_upper = (part.flatten(0, 1)[given.real] for part in (expected, of_upper))
        torch.testing.assert_close(of_upper, expected, rtol=0, atol=1e-5)
        towards = torch.randn_like(expected)
        (expected * towards).sum().backward()
        right = {
            f"layers.{int(number) - prefix}.{rest}": gradient
            for weight, gradient in gradients(inner).items()
            if weight.startswith("encoder.layer.")
            for number, _, rest in [weight.removeprefix("encoder.layer.").partition(".")]
            if int(number) >= prefix
        }
        (of_upper * towards).sum().backward()
        assert_alike(gradients(upper), right)


def made(encoder: str, training: str, **changes: Any) -> TrainingRun:
    values = {"paradigm": "mtl", "encoder_training": training, "dropout": 0.0} | changes
    run = set_up(config(encoder, **values), corpus())
    assert run.compute_features(lambda _: None, lambda: False)
    return run


@torch.no_grad()
def test_with_nothing_trained_a_run_sees_the_states_of_the_frozen_encoder(encoder: str) -> None:
    """But for the rounding of its cache."""
    frozen, top = made(encoder, "frozen"), made(encoder, "top:1")
    words = []
    for run in (frozen, top):
        run.model.eval()
        given = next(run.use_split("dev").batches.by_length())
        words.append(run.model.encoder.words(given))
    torch.testing.assert_close(words[1], words[0], rtol=0, atol=5e-3)
    assert top.facts.parameters == frozen.facts.parameters
    layer = sum(weight.numel() for weight in load_transformer(encoder, half=False).take_top(1).parameters())
    assert top.facts.trained_parameters == layer + (frozen.facts.trained_parameters or 0)


def _lazy(encoder: Path, *, half: bool = False, top: int = 1) -> LazyTransformer:
    return LazyTransformer(str(encoder), half=half, device=torch.device("cpu"), top=top)


def _tables(encoder: Path, home: Path, *, half: bool = False, top: int = 1) -> FeatureTables:
    return FeatureTables(_lazy(encoder, half=half, top=top), 0, home, torch.device("cpu"))


def test_a_table_is_used_for_the_same_weights_layer_precision_and_text_alone(tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    tokenizer = load_tokenizer(str(encoder))
    text, other = (encode([words.split()], tokenizer, 32) for words in ("EU rejects lamb .", "lamb call"))
    first = _tables(encoder, tmp_path)
    assert not first.has(text, "text", for_training=True)
    assert first.compute(text, "text", for_training=True)
    assert first.table(text, "text", for_training=True).dtype == torch.float16
    again = _tables(encoder, tmp_path)
    assert again.has(text, "text", for_training=True)
    assert torch.equal(
        again.table(text, "text", for_training=True), first.table(text, "text", for_training=True)
    )

    exact = again.table(text, "text", for_training=False)
    assert exact.dtype == torch.float32
    half = _tables(encoder, tmp_path, half=True)
    assert half.has(text, "text", for_training=False), "in float32 whatever the precision of the training"
    assert torch.equal(half.table(text, "text", for_training=False), exact)

    assert not again.has(other, "other", for_training=True)
    assert not _tables(encoder, tmp_path).has(other, "text", for_training=True), (
        "a table of another size under the same name"
    )
    assert not _tables(encoder, tmp_path, half=True).has(text, "text", for_training=True)
    assert not _tables(encoder, tmp_path, top=0).has(text, "text", for_training=True), (
        "the states of the last layer"
    )
    weights = load_file(encoder / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"] += 0.01
    save_file(weights, encoder / "model.safetensors", metadata={"format": "pt"})
    assert not _tables(encoder, tmp_path).has(text, "text", for_training=True)
    # Numbers of another type, as a file of another version might hold.
    (file,) = tmp_path.glob("*-below1-text.npy")
    np.save(file, np.load(file).astype(np.float32))
    file.rename(tmp_path / f"{_lazy(encoder).fingerprint}-below1-text.npy")
    assert not _tables(encoder, tmp_path).has(text, "text", for_training=True)


@torch.no_grad()
def test_the_table_holds_the_states_below_the_trained_layers(tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    tokenizer = load_tokenizer(str(encoder))
    text = encode([["EU", "unwanted", "lamb"], ["a"]], tokenizer, 32)
    lookup = FrozenFeatures(16)
    lookup.table = _tables(encoder, tmp_path).table(text, "text", for_training=True)
    given = next(Batches(text, np.zeros((4, 1), dtype=np.int64), 2, tokenizer.pad).by_length())
    inner = AutoModel.from_pretrained(encoder)
    states = inner(given.ids, given.mask, output_hidden_states=True).hidden_states[1]
    real = given.mask.bool()
    torch.testing.assert_close(lookup(given)[real], states[real], rtol=1e-3, atol=1e-3)
    assert lookup(given).dtype == torch.float32


REGIMES = ("frozen", "top:1")


@pytest.mark.parametrize("suffix", ["", "+bilstm"])
@pytest.mark.parametrize("training", ["full", *REGIMES])
def test_a_checkpoint_tags_as_the_run_did_and_has_the_weights_that_were_trained(
    encoder: str, tmp_path: Path, training: str, suffix: str
) -> None:
    """Of sentences longer than a window too. An encoder that is not trained is named, not copied."""
    changes: dict[str, Any] = {"bilstm_hidden": 8} if suffix else {}
    settings = config(encoder + suffix, encoder_training=training, dropout=0.3, update_every=2, **changes)
    data = corpus(test=sentences(8, 6, longest=90))
    run = train_toy(settings, data, tmp_path / "run")
    assert {score.tokens for score in run.test.scores} == {sum(len(made.tokens) for made in data.test)}
    for tag in assert_tags_as_tested(run, data)[0].tags["pos"]:
        assert tag.alternatives[0] == (tag.label, tag.confidence)
        shares = [share for _, share in tag.alternatives]
        assert shares == sorted(shares, reverse=True)
    tagger = model_io.load(run.checkpoint)
    assert tagger.schemes == {"pos": "plain", "ner": "iob2"}
    assert (run.checkpoint / "encoder").exists() == (training == "full")
    if training != "full":
        held = sum(value.numel() for value in load_file(run.checkpoint / "weights.safetensors").values())
        assert held == run.facts.trained_parameters
        assert held < (run.facts.parameters or 0)


@pytest.mark.parametrize("training", REGIMES)
def test_whole_texts_and_pairs_are_read_in_every_regime(encoder: str, tmp_path: Path, training: str) -> None:
    settings = config(
        encoder, paradigm="mrn", encoder_training=training, tasks=TEXT_TASKS, pair_encoding="together",
        update_every=2, pooling="mean",
    )  # fmt: skip
    data = text_corpus(24, settings.tasks)
    run = train_toy(settings, data, tmp_path / "run")
    texts = [sentence for sentence in data.test if "mood" in sentence.labels]
    answers = model_io.load(run.checkpoint).answer([(" ".join(text.tokens), None) for text in texts])
    assert [[answer["mood"].value] for answer in answers] == run.test.predictions["mood"]


def test_two_taggers_share_the_layers_below_and_nothing_else(encoder: str) -> None:
    first, second = load_top(encoder, 1), load_top(encoder, 1)
    assert first.below is second.below
    with torch.no_grad():
        next(first.layers.parameters()).add_(1)
    assert not torch.equal(next(first.layers.parameters()), next(second.layers.parameters()))


def test_weights_of_a_file_do_not_reach_the_shared_layers(encoder: str, tmp_path: Path) -> None:
    """An encoder that is not trained is one for all taggers: a file from elsewhere must not change it."""
    train_toy(config(encoder, paradigm="mtl", encoder_training="top:1"), corpus(), tmp_path / "run")
    file = tmp_path / "run" / "weights.safetensors"
    name = "encoder.below.transformer.inner.embeddings.LayerNorm.bias"
    save_file(load_file(file) | {name: torch.ones(16)}, file)
    with pytest.raises(MRNLabError, match="is damaged"):
        model_io.load(tmp_path / "run")
    below: Any = load_top(encoder, 1).below
    assert not below.transformer.inner.embeddings.LayerNorm.bias.any()


def test_release_forgets_the_encoder(encoder: str, tmp_path: Path) -> None:
    lazy = LazyTransformer(encoder, half=False, device=torch.device("cpu"), top=1)
    layers, heads = lazy.top_layers()
    assert (len(layers), heads) == (1, 2)
    first = lazy.load()
    lazy.release()
    assert lazy.load() is not first
    assert len(lazy.load().inner.encoder.layer) == 1


def test_a_batch_may_hold_any_words(encoder: str) -> None:
    """Words' states do not depend on which other words are asked for."""
    run = made(encoder, "top:1")
    run.model.eval()
    given = next(run.use_split("dev").batches.by_length())
    fewer = dataclasses.replace(given, rows=given.rows[1::2])
    with torch.no_grad():
        words = run.model.encoder.words(given)[1::2]
        torch.testing.assert_close(run.model.encoder.words(fewer), words, rtol=0, atol=1e-5)
