"""Task folders are loaded by Transformers alone and answer as the run does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    ModernBertConfig,
    ModernBertModel,
)

from core.config import RunConfig
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders.bilstm import BiLSTM
from core.models.encoders.frozen import shared_transformer
from core.models.encoders.transformer import load_transformer
from core.models.model_io import SavedTagger, save_task_folders
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger
from tests.tiny import WORDS, tiny_bert, tiny_roberta

_LABELS = {"pos": ["NN", "VB", "DT"], "ner": ["O", "B-PER"]}
_SENTENCES = (
    ["EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", "."],
    ["unwanted", "lamb", ",", "EU"],
    ["a"],
)


def tagger(encoder: str, *, frozen: bool = False, bilstm: int | None = None, **values: Any) -> SavedTagger:
    """A tagger with random heads over that encoder."""
    torch.manual_seed(3)
    shared: Any = shared_transformer(encoder) if frozen else load_transformer(encoder, half=False)
    if bilstm is not None:
        shared = BiLSTM(shared, bilstm)
    model = MultiTaskTagger(shared, Heads(shared.features, [3, 2], init="default", dropout=0.3))
    torch.nn.init.normal_(model.heads.bias)
    config = RunConfig.build(
        corpus="demo",
        tasks="pos,ner",
        paradigm="mtl",
        encoder=encoder + ("+bilstm" if bilstm else ""),
        encoder_training="frozen" if frozen else "full",
        max_length=64,
        **values,
    )
    tasks = [
        {"name": name, "scheme": "plain" if name == "pos" else "iob2", "labels": labels}
        for name, labels in _LABELS.items()
    ]
    return SavedTagger(config, tasks, model.eval(), load_tokenizer(locate(encoder)))


def tiny_modernbert(folder: Path) -> Path:
    tiny_bert(folder)
    config = ModernBertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        **dict.fromkeys(["pad_token_id", "bos_token_id", "cls_token_id"], 0),
        **dict.fromkeys(["eos_token_id", "sep_token_id"], 3),
    )
    ModernBertModel(config).save_pretrained(folder)
    return folder


def probabilities(folder: Path, words: list[str]) -> torch.Tensor:
    """What a stranger with Transformers computes: the words' probabilities at their first subwords."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        logits: torch.Tensor = model(**inputs).logits[0]
    owners = inputs.word_ids()
    return logits[[owners.index(word) for word in range(len(words))]].softmax(dim=1)


def ours(tagger: SavedTagger, task: str, words: list[str]) -> torch.Tensor:
    """The same as `mrnlab tag` says it."""
    labels = list(tagger.labels[task])
    (tagged,) = tagger.tag([words], top=len(labels))
    rows = [dict(word.alternatives) for word in tagged.tags[task]]
    return torch.tensor([[row[label] for label in labels] for row in rows])


@pytest.mark.parametrize("make", [tiny_bert, tiny_roberta])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_task_folder_answers_as_the_run(make: Callable[[Path], Path], frozen: bool, tmp_path: Path) -> None:
    one = tagger(str(make(tmp_path / "encoder")), frozen=frozen)
    folders = {task: tmp_path / "out" / task for task in _LABELS}
    assert save_task_folders(one, folders, {"run": 12}) is None
    for task, folder in folders.items():
        config = json.loads((folder / "config.json").read_text())
        assert config["id2label"] == {str(index): label for index, label in enumerate(_LABELS[task])}
        assert config["label2id"] == {label: index for index, label in enumerate(_LABELS[task])}
        assert config["mrnlab"] == {
            "run": 12,
            "task": task,
            "scheme": one.schemes[task],
            "max_length": 64,
            "truecase": False,
            "label_of_word": "first subword",
        }
        assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 64
        assert {path.suffix for path in folder.iterdir()} <= {".json", ".safetensors", ".txt"}
        for words in _SENTENCES:
            torch.testing.assert_close(
                probabilities(folder, words), ours(one, task, words), atol=1e-5, rtol=0
            )


def test_a_bilstm_has_no_folder(tmp_path: Path) -> None:
    one = tagger(str(tiny_bert(tmp_path / "encoder")), bilstm=4)
    told = save_task_folders(one, {"pos": tmp_path / "pos"}, {})
    assert told is not None
    assert "BiLSTM" in told
    assert not (tmp_path / "pos").exists()


def test_a_class_that_computes_something_else_is_found_out(tmp_path: Path) -> None:
    """ModernBERT's class has a layer more between encoder and classifier."""
    one = tagger(str(tiny_modernbert(tmp_path / "encoder")))
    told = save_task_folders(one, {"ner": tmp_path / "ner"}, {})
    assert told is not None
    assert "modernbert" in told
    assert "its classifier is not one linear layer" in told
    assert not (tmp_path / "ner").exists()
