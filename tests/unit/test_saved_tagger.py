"""A text tagged at once has the labels that its windows have one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.encoding.batches import Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders.transformer import load_transformer
from core.models.model_io import SavedTagger
from core.models.tagger import Heads, MultiTaskTagger
from core.tagging import TaggedSentence, tag_in_parts
from tests.tiny import WORDS, tiny_bert

TASKS: list[dict[str, Any]] = [
    {"name": "pos", "scheme": "plain", "labels": ["NN", "VB", "DT"]},
    {"name": "ner", "scheme": "iob2", "labels": ["O", "B-PER"]},
]
texts = st.lists(st.lists(st.sampled_from([*WORDS, "unwanted", "\u200b"]), max_size=24), max_size=6)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> SavedTagger:
    """Random heads over windows of ten subwords."""
    folder = str(tiny_bert(tmp_path_factory.mktemp("encoder") / "bert"))
    torch.manual_seed(5)
    encoder = load_transformer(folder, half=False)
    heads = Heads(encoder.features, [3, 2], init="default", dropout=0.3)
    config = RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl", encoder=folder, max_length=10)
    return SavedTagger(config, TASKS, MultiTaskTagger(encoder, heads).eval(), load_tokenizer(folder))


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
    assert [list(one.tokens) for one in tagged] == sentences
    for task, expected in zip(TASKS, plainly(tagger, sentences), strict=True):
        words = [word for one in tagged for word in one.tags[task["name"]]]
        assert [len(one.tags[task["name"]]) for one in tagged] == list(map(len, sentences))
        for word, shares in zip(words, expected, strict=True):
            order = shares.argsort(descending=True)[:top].tolist()
            assert [label for label, _ in word.alternatives] == [task["labels"][place] for place in order]
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
    tagged = [one for part in parts for one in part]
    assert [list(one.tokens) for one in tagged] == sentences
    labels = [[word.label for word in one.tags["pos"]] for one in tagged]
    assert labels == [[word.label for word in one.tags["pos"]] for one in tagger.tag(sentences)]
    assert all(len(word.alternatives) == 1 for one in tagged for word in one.tags["ner"])
