"""Any encoder that Transformers has is trained, saved, tags and is exported, in full and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import CONFIG_MAPPING, AutoModelForTokenClassification, AutoTokenizer

from core.models.model_io import load
from core.store import Store
from jobs.exchange.export import export_run
from tests.tiny_types import tiny_encoder
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
    (run,) = train_runs(store, [config])
    checkpoint = store.run(run).checkpoint
    assert checkpoint is not None
    notes = " ".join(store.run(run).facts["notes"])
    assert ("reads left to right" in notes) == (model_type in LEFT_TO_RIGHT)
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
    if "ner" not in exported.folders:
        assert model_type in str(exported.no_folders_because)
        return
    torch.testing.assert_close(
        by_transformers(exported.folder / exported.folders["ner"], WORDS),
        torch.tensor([[row[label] for label in labels] for row in rows]),
        atol=1e-5,
        rtol=0,
    )


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
