"""A saved run tags as its windows do one by one, and its task folders answer by Transformers alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer

from core.config import RunConfig
from core.encoding.batches import Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders.frozen import shared_transformer
from core.models.encoders.transformer import load_transformer
from core.models.saved_tagger import SavedTagger
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger
from core.models.task_folders import save_task_folders
from core.tagging import TaggedSentence, tag_in_parts
from tests.tiny import WORDS, tiny_bert, tiny_roberta
from tests.unit.transformers_alone import MODERN

LABELS = {"pos": ["NN", "VB", "DT"], "ner": ["O", "B-PER"]}
texts = st.lists(st.lists(st.sampled_from([*WORDS, "unwanted", "\u200b"]), max_size=24), max_size=6)


def made_tagger(encoder: str, *, frozen: bool = False, max_length: int = 64) -> SavedTagger:
    """A tagger with random heads over that encoder."""
    torch.manual_seed(3)
    transformer: Any = shared_transformer(encoder) if frozen else load_transformer(encoder, half=False)
    model = MultiTaskTagger(transformer, Heads(transformer.features, [3, 2], init="default", dropout=0.3))
    torch.nn.init.normal_(model.heads.bias)
    config = RunConfig.build(
        corpus="demo", tasks="pos,ner", paradigm="mtl", encoder=encoder, max_length=max_length,
        encoder_training="frozen" if frozen else "full",
    )  # fmt: skip
    schemes = {"pos": "plain", "ner": "iob2"}
    tasks = [{"name": task, "scheme": schemes[task], "labels": labels} for task, labels in LABELS.items()]
    return SavedTagger(config, tasks, model.eval(), load_tokenizer(locate(encoder)))


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> SavedTagger:
    """Over windows of ten subwords."""
    return made_tagger(str(tiny_bert(tmp_path_factory.mktemp("encoder") / "bert")), max_length=10)


def plainly(tagger: SavedTagger, sentences: list[list[str]]) -> list[torch.Tensor]:
    """Each task's probabilities (N, C), window by window and of all subwords."""
    text = encode(sentences, tagger.tokenizer, tagger.config.max_length)
    blank = np.zeros((len(text.firsts), 0), dtype=np.int64)
    logits = torch.zeros(len(text.firsts), 5)
    with torch.no_grad():
        for batch in Batches(text, blank, 1, tagger.tokenizer.pad).by_length():
            states = tagger.model.encoder(batch).flatten(0, 1)
            logits[batch.words] = tagger.model.heads(states[batch.rows])
    return [logits[:, :3].softmax(dim=1), logits[:, 3:].softmax(dim=1)]


@given(texts, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_labels_and_probabilities_are_those_of_single_windows(
    tagger: SavedTagger, sentences: list[list[str]], top: int
) -> None:
    tagged = tagger.tag(sentences, top=top)
    assert [list(sentence.tokens) for sentence in tagged] == sentences
    for task, expected in zip(LABELS, plainly(tagger, sentences), strict=True):
        words = [word for sentence in tagged for word in sentence.tags[task]]
        assert [len(sentence.tags[task]) for sentence in tagged] == list(map(len, sentences))
        for word, shares in zip(words, expected, strict=True):
            order = shares.argsort(descending=True)[:top].tolist()
            assert [label for label, _ in word.alternatives] == [LABELS[task][place] for place in order]
            assert [share for _, share in word.alternatives] == pytest.approx(
                shares[order].tolist(), abs=1e-5
            )
            assert word.alternatives[0] == (word.label, word.confidence)


def test_nothing_has_no_labels(tagger: SavedTagger) -> None:
    assert tagger.tag([]) == []
    assert tagger.tag([[]]) == [TaggedSentence((), {"pos": (), "ner": ()})]
    assert list(tag_in_parts([tagger], [])) == []


def test_parts_are_the_text_in_its_order(tagger: SavedTagger) -> None:
    draw = np.random.default_rng(0)
    sentences = [draw.choice(WORDS, int(size)).tolist() for size in draw.integers(1, 8, 300)]
    parts = list(tag_in_parts([tagger], sentences))
    assert len(parts) > 1
    tagged = [sentence for part in parts for sentence in part]
    assert [list(sentence.tokens) for sentence in tagged] == sentences
    labels = [[word.label for word in sentence.tags["pos"]] for sentence in tagged]
    assert labels == [[word.label for word in sentence.tags["pos"]] for sentence in tagger.tag(sentences)]
    assert all(len(word.alternatives) == 1 for sentence in tagged for word in sentence.tags["ner"])


_SENTENCES = (
    ["EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", "."],
    ["unwanted", "lamb", ",", "EU"],
    ["a"],
)


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
    tagger = made_tagger(str(make(tmp_path / "encoder")), frozen=frozen)
    folders = {task: tmp_path / "out" / task for task in LABELS}
    assert save_task_folders(tagger, folders, {"run": 12}) is None
    for task, folder in folders.items():
        config = json.loads((folder / "config.json").read_text())
        assert config["id2label"] == {str(index): label for index, label in enumerate(LABELS[task])}
        assert config["label2id"] == {label: index for index, label in enumerate(LABELS[task])}
        assert config["mrnlab"] == {
            "run": 12,
            "task": task,
            "scheme": tagger.schemes[task],
            "max_length": 64,
            "truecase": False,
            "label_of_word": "first subword",
        }
        assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 64
        assert {path.suffix for path in folder.iterdir()} <= {".json", ".safetensors", ".txt"}
        for words in _SENTENCES:
            torch.testing.assert_close(
                probabilities(folder, words), ours(tagger, task, words), atol=1e-5, rtol=0
            )


def test_a_class_that_computes_something_else_is_found_out(tmp_path: Path) -> None:
    """ModernBERT's class has a layer more between encoder and classifier."""
    encoder = tiny_bert(tmp_path / "encoder")
    AutoModel.from_config(MODERN).save_pretrained(encoder)
    tagger = made_tagger(str(encoder))
    problem = save_task_folders(tagger, {"ner": tmp_path / "ner"}, {})
    assert problem is not None
    assert "modernbert" in problem
    assert "its classifier is not one linear layer" in problem
    assert not (tmp_path / "ner").exists()
