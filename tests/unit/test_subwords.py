"""Subwords read without torch are those of training."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.encoding.tokenizer import load_subword_reader, load_tokenizer
from core.errors import EncoderError
from core.models.sources import locate, tokenizer_file
from tests.tiny import tiny_bert, tiny_roberta

WORDS = ["The", "CAPTAIN", "of", "EU", "reckons", "unwanted", "Hezbollah", "U.S.", "café", "'", ".", "a"]


def _minilm(folder: Path) -> Path:
    return Path(locate("minilm"))


def _lower(folder: Path) -> Path:
    made = tiny_bert(folder)
    settings = made / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"do_lower_case": True}))
    return made


@pytest.mark.parametrize("make", [_minilm, tiny_bert, _lower, tiny_roberta])
@pytest.mark.parametrize(
    "words", [WORDS, ["\u200b", "EU"], ["EU", "\u200b"], ["a", "\u200b", "\u200b", "EU"], ["\u200b"]]
)
def test_the_same_subwords_as_in_training(
    make: Callable[[Path], Path], words: list[str], tmp_path: Path
) -> None:
    folder = make(tmp_path / "encoder")
    trained_with = load_tokenizer(str(folder))
    pieces = trained_with.split(words)
    read = load_subword_reader(folder / "tokenizer.json").read(words)
    assert [one.id for one in read] == [*trained_with.prefix, *pieces.ids, *trained_with.suffix]
    firsts = [place for place, one in enumerate(read) if one.is_first]
    assert firsts == (pieces.starts + len(trained_with.prefix)).tolist()
    assert [read[place].word for place in firsts] == list(range(len(words)))
    assert all(one.word is not None for one in read[len(trained_with.prefix) : -len(trained_with.suffix)])


def test_neither_torch_nor_transformers_is_loaded() -> None:
    program = (
        "import sys\n"
        "from core.encoding.tokenizer import load_subword_reader\n"
        "from core.models.sources import tokenizer_file\n"
        "assert load_subword_reader(tokenizer_file('minilm')).read(['EU'])\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_where_there_is_no_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="not on this machine"):
        tokenizer_file("nobody/nothing-of-that-name")
    folder = tiny_bert(tmp_path / "mine")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(EncoderError, match="cannot be read"):
        load_subword_reader(tokenizer_file(str(folder)))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderError, match=r"no tokenizer\.json"):
        tokenizer_file(str(folder))
