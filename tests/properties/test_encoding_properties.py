"""Encoding reads each different word once; it must find what a tokenizer finds in the whole sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.encoded import cut, encode
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.models.sources import locate
from tests.tiny import tiny_bert, tiny_roberta

_ODD = [
    *("EU", "call", "unwanted", "Unwanted", "don't", "1,000.5", "-DOCSTART-", "##ed", "[SEP]", "<s>", "Ġ"),
    *("\u200b", "\u00ad", "\ufeff", "\u0301", "e\u0301", "é", "ﬁ", "İ", "ß", "\u00a0", "a\u00a0b", " ", "\t"),
    *("👩\u200d👩\u200d👧", "🏳️\u200d🌈", "\u0000", "\u2028", "ゔ", "東京都", "한국", "ไทย", "نعم", "𝔘"),
    "x" * 120,
]  # fmt: skip
_WORDS = st.one_of(st.sampled_from(_ODD), st.text(st.characters(exclude_categories=["Cs"]), max_size=12))


@pytest.fixture(scope="module", params=["bert", "roberta", "minilm"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SubwordTokenizer:
    if request.param == "minilm":
        return load_tokenizer(locate("minilm"))
    folder: Path = tmp_path_factory.mktemp(request.param)
    return load_tokenizer(str({"bert": tiny_bert, "roberta": tiny_roberta}[request.param](folder)))


@settings(max_examples=60)
@given(st.lists(st.lists(_WORDS, max_size=25), max_size=6), st.sampled_from([8, 13, 40]))
def test_words_read_once_give_the_subwords_of_whole_sentences(
    tokenizer: SubwordTokenizer, sentences: list[list[str]], max_length: int
) -> None:
    text = encode(sentences, tokenizer, max_length)
    windows, firsts = _read_whole(sentences, tokenizer, max_length - tokenizer.frame)
    assert [text.ids[start:end].tolist() for start, end in pairwise(text.offsets)] == windows
    assert [text.firsts[start:end].tolist() for start, end in pairwise(text.words)] == firsts
    assert np.diff(text.sentences).tolist() == [len(words) for words in sentences]


def _read_whole(
    sentences: Sequence[list[str]], tokenizer: SubwordTokenizer, budget: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Windows and places of words, by giving whole sentences to the tokenizer."""
    windows, firsts = [], []
    for words in sentences:
        read = tokenizer.inner([words], is_split_into_words=True, add_special_tokens=False, verbose=False)
        subwords = list(zip(read.word_ids(0), read["input_ids"][0], strict=True))
        each = [
            [piece for of, piece in subwords if of == word] or [tokenizer.unknown]
            for word in range(len(words))
        ]
        for window in cut([len(pieces) for pieces in each], budget):
            body = [piece for pieces in each[window.start : window.stop] for piece in pieces][:budget]
            windows.append([*tokenizer.prefix, *body, *tokenizer.suffix])
            before = [
                sum(map(len, each[window.start : first]))
                for first in range(window.own_start, window.own_stop)
            ]
            firsts.append([len(tokenizer.prefix) + place for place in before])
    return windows, firsts
