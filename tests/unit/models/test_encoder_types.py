"""Any encoder that Transformers has is trained, saved, tags and is exported, in full and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    CONFIG_MAPPING,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from core.encoding.tokenizer import load_tokenizer
from core.errors import EncoderError
from core.models.model_io import load
from core.models.sources import left_to_right_note
from core.store import Store
from jobs.exchange.export import export_run
from jobs.queue.submit import check
from tests.making import facts_of
from tests.tiny_types import tiny_encoder, tiny_tokenizer
from tests.trained import text_config, train_runs

TYPES = (
    "albert", "bert", "big_bird", "camembert", "convbert", "deberta-v2", "distilbert", "electra", "eurobert",
    "gpt2", "llama", "longformer", "mobilebert", "modernbert", "mpnet", "nomic_bert", "qwen3", "rembert",
    "roberta", "roformer", "squeezebert", "t5", "xlm-roberta", "xlnet",
)  # fmt: skip
QUICK = {("bert", "full"), ("qwen3", "full"), ("t5", "full"), ("xlnet", "frozen")}
"""What every test run has: a type of each way to split words, with and without a frame and a decoder."""

LEFT_TO_RIGHT = {"gpt2", "llama", "qwen3"}
WITHOUT_FIRST = {*LEFT_TO_RIGHT, "t5", "xlnet"}
"""Types whose windows do not begin with a subword that reads all others."""

WORDS = ["EU", "lamb", "don't", "."]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path))
    monkeypatch.delenv("MRNLAB_DB", raising=False)
    with closing(Store.open()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("model_type", "training"),
    [
        pytest.param(
            model_type, training, marks=[] if (model_type, training) in QUICK else [pytest.mark.slow]
        )
        for model_type in TYPES
        for training in ("full", "frozen")
    ],
)
def test_a_type_trains_tags_and_is_exported(
    model_type: str, training: str, store: Store, tmp_path: Path
) -> None:
    if model_type not in CONFIG_MAPPING:
        pytest.skip(f"the installed Transformers has no {model_type}")
    encoder = tiny_encoder(tmp_path / "of-type", model_type)
    options = {"lr_encoder": None} if training == "frozen" else {}
    config = text_config(
        tmp_path, encoder=str(encoder), encoder_training=training, epochs=1, device="cpu", **options
    )
    assert (left_to_right_note(str(encoder)) in check([config])) == (model_type in LEFT_TO_RIGHT)
    (run,) = train_runs(store, [config])
    checkpoint = store.run(run).checkpoint
    assert checkpoint is not None
    notes = " ".join(facts_of(store.run(run)).notes)
    assert (left_to_right_note(str(encoder)) in notes) == (model_type in LEFT_TO_RIGHT)
    assert ("the mean over its subwords" in notes) == (model_type in WITHOUT_FIRST)

    tagger = load(Path(checkpoint))
    labels = list(tagger.labels["ner"])
    (tagged,) = tagger.tag([WORDS], top=len(labels))
    assert tagged.tokens == tuple(WORDS)
    rows = [dict(word.alternatives) for word in tagged.tags["ner"]]
    (answers,) = tagger.answer([("EU rejects German call", "British lamb")])
    assert set(answers) == {"mood", "same", "alike"}

    exported = export_run(store, run, tmp_path / "out")
    weights = load_file(exported.folder / "checkpoint" / "encoder" / "model.safetensors")
    assert not [name for name in weights if name.startswith(("decoder.", "lm_head."))]
    (again,) = load(exported.folder / "checkpoint").tag([WORDS], top=len(labels))
    assert again == tagged
    if "mood" in exported.folders:
        (exact,) = load(Path(checkpoint)).answer([("EU a lamb .", None)])
        logits = text_logits(exported.folder / exported.folders["mood"], "EU a lamb .")
        shares = dict(zip(tagger.labels["mood"], logits.softmax(dim=0).tolist(), strict=True))
        assert dict(exact["mood"].probabilities) == pytest.approx(shares, abs=1e-3)
    if "ner" not in exported.folders:
        assert model_type in str(exported.no_folders_because)
        return
    torch.testing.assert_close(
        by_transformers(exported.folder / exported.folders["ner"], WORDS),
        torch.tensor([[row[label] for label in labels] for row in rows]),
        atol=1e-5,
        rtol=0,
    )


@pytest.mark.parametrize("model_type", [*TYPES, "Llama 2"])
def test_words_are_read_as_within_a_text(model_type: str, tmp_path: Path) -> None:
    """Also once the tokenizer is saved and loaded again, as a checkpoint and an export have it."""
    if model_type == "Llama 2":
        inner = prepending()
    elif model_type in CONFIG_MAPPING:
        inner = tiny_tokenizer(model_type)
    else:
        pytest.skip(f"the installed Transformers has no {model_type}")
    inner.save_pretrained(tmp_path / "first")
    words = ["EU", "don't", "lamb", "3.5", "unwanted", "EU-EU", "."]
    start = "" if model_type == "Llama 2" else " "
    within = inner(start + " ".join(words), add_special_tokens=False)["input_ids"]
    first = load_tokenizer(str(tmp_path / "first"))
    assert first.split(words).ids.tolist() == within
    first.inner.save_pretrained(tmp_path / "again")
    again = load_tokenizer(str(tmp_path / "again"))
    assert again.split(words).ids.tolist() == within
    assert (again.fingerprint, again.pad) == (first.fingerprint, first.pad)


def prepending() -> PreTrainedTokenizerFast:
    """Llama 2's kind: a space before every text, spaces as letters of the words behind them."""
    pieces = ["<unk>", "<s>", "</s>", "▁", "E", "U", "a", "▁E", "▁EU", "EU"]
    merges = [("▁", "E"), ("▁E", "U"), ("E", "U")]
    backend = Tokenizer(
        BPE(vocab={piece: at for at, piece in enumerate(pieces)}, merges=merges, unk_token="<unk>")
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def test_a_tokenizer_without_special_subwords_is_refused(tmp_path: Path) -> None:
    backend = Tokenizer(BPE(vocab={letter: at for at, letter in enumerate("EUdont'3.5a")}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match="no special subword to pad with"):
        load_tokenizer(str(tmp_path))


def text_logits(folder: Path, text: str) -> torch.Tensor:
    """A text's logits as Transformers alone computes them."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits: torch.Tensor = model(**tokenizer(text, return_tensors="pt")).logits[0]
    return logits


def by_transformers(folder: Path, words: list[str]) -> torch.Tensor:
    """The words' probabilities as Transformers alone computes them."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        logits: torch.Tensor = model(**inputs).logits[0]
    owners = inputs.word_ids()
    assert json.loads((folder / "config.json").read_text())["mrnlab"]["label_of_word"] == "first subword"
    return logits[[owners.index(word) for word in range(len(words))]].softmax(dim=1)
