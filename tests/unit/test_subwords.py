"""Each word has subwords, whatever the tokenizer makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.encoding.tokenizer import load_tokenizer
from core.models.sources import locate
from tests.tiny import tiny_bert, tiny_roberta


def _minilm(folder: Path) -> Path:
    return Path(locate("minilm"))


@pytest.mark.parametrize("make", [_minilm, tiny_bert, tiny_roberta])
def test_a_word_that_the_tokenizer_drops_is_unknown(make: Callable[[Path], Path], tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(make(tmp_path / "encoder")))
    alone = tokenizer.split(["EU"]).ids.tolist()
    dropped = tokenizer.split(["\u200b"]).ids.tolist()
    for words in (["\u200b", "EU"], ["EU", "\u200b"], ["EU", "\u200b", "\u200b", "EU"]):
        pieces = tokenizer.split(words)
        assert pieces.ids.tolist() == [id_ for word in words for id_ in (alone if word == "EU" else dropped)]
        assert pieces.counts.min() >= 1
