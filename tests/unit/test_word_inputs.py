"""Word vectors from files, the numbers of word forms, and what an encoder over words reads."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from core.encoding.batches import IGNORED, Batch, Batches
from core.encoding.encoded import encode
from core.encoding.words import WordTokenizer
from core.errors import ConfigError
from core.models.encoders.word_inputs import CAPITALS, WordInputs, capitals, inventory_of
from core.models.word_vectors import WordVectors, read_vectors

VECTORS = WordVectors(("the", "Bank", "bank", "of"), np.arange(12, dtype=np.float32).reshape(4, 3))


def file(tmp_path: Path, text: str | bytes, name: str = "vectors.txt") -> str:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def every(word: str) -> bool:
    del word
    return True


class TestFiles:
    @pytest.mark.parametrize("header", ["", "3 2\n"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_glove_and_word2vec_text_are_read_packed_or_not(
        self, tmp_path: Path, header: str, packed: bool
    ) -> None:
        content = f"{header}the 0.5 -1\nof 1e-3 2 \n\nthe 7 7\n".encode()
        path = file(tmp_path, gzip.compress(content) if packed else content)
        read = read_vectors(path, every)
        assert read.words == ("the", "of")
        assert read.vectors.tolist() == [[0.5, -1.0], [pytest.approx(1e-3), 2.0]]
        assert read_vectors(str(tmp_path), {"of"}.__contains__).words == ("of",)

    def test_a_word_may_hold_spaces(self, tmp_path: Path) -> None:
        assert read_vectors(file(tmp_path, "a 1 2\n. . . 3 4\n"), every).words == ("a", ". . .")

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("a 1 2\nb 1\n", "line 2: has 1 number, not 2"),
            ("a 1 2\nb 1 2 3\n", "line 2: has 3 numbers, not 2"),
            ("a 1 2\nb 1 x\n", "line 2: holds something that is not a number"),
            ("a 1 2\nb 1 nan\n", "line 2: holds a number that is not finite"),
            ("a\n", "line 1: has 0 numbers, not at least 1"),
            ("", "has no vectors"),
            ("2 3\n", "has no vectors"),
            (b"\x1f\x8bnot gzip", "cannot be read"),
        ],
    )
    def test_a_bad_file_is_named_with_its_line(self, tmp_path: Path, content: str | bytes, says: str) -> None:
        with pytest.raises(ConfigError, match=says) as error:
            read_vectors(file(tmp_path, content), every)
        assert "vectors.txt" in str(error.value)
        assert error.value.field == "vectors"

    def test_a_name_must_be_that_of_one_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="neither glove nor a file or folder"):
            read_vectors("globe", every)
        with pytest.raises(ConfigError, match="has 0 files"):
            read_vectors(str(tmp_path), every)

    def test_glove_comes_with_the_installation(self) -> None:
        read = read_vectors("glove", {"london", "the"}.__contains__)
        assert read.words == ("the", "london")
        assert read.dimension == 100


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("bank", "lower"), ("Bank", "initial"), ("A", "initial"), ("EU", "upper"), ("McKay", "mixed"),
        ("1,000", "number"), ("A320", "with digit"), ("...", "punctuation"), ("", "other"),
        ("Ärzte", "initial"), ("jean-Paul", "mixed"), ("日本", "other"),
    ],
)  # fmt: skip
def test_each_form_has_one_of_eight_patterns(form: str, pattern: str) -> None:
    assert CAPITALS[capitals(form)] == pattern


def batch_of(tokenizer: WordTokenizer, sentences: Sequence[Sequence[str]]) -> Batch:
    text = encode(sentences, tokenizer, 256)
    labels = np.full((len(text.firsts), 1), IGNORED)
    (batch,) = Batches(text, labels, len(sentences), tokenizer.pad).by_length()
    return batch


def inputs_for(
    training: Sequence[str], others: Sequence[str] = (), *, characters: bool = False
) -> tuple[WordInputs, WordTokenizer]:
    tokenizer = WordTokenizer([*training, *others])
    inventory = inventory_of(VECTORS, set(training), tokenizer.forms[1:])
    inputs = WordInputs(tokenizer, inventory, 3, tuned=True, with_capitals=True, with_characters=characters)
    inputs.start_from(VECTORS)
    return inputs, tokenizer


class TestInputs:
    def test_a_word_has_the_vector_of_its_form_or_of_its_lower_case(self) -> None:
        inputs, tokenizer = inputs_for(["The", "Bank", "Of", "Utrecht"], ["bank"])
        inputs.eval()
        states = inputs.words(batch_of(tokenizer, [["The", "Bank", "Of", "bank", "Utrecht", "unheard"]]))
        assert states[:4, :3].tolist() == [[0, 1, 2], [3, 4, 5], [9, 10, 11], [6, 7, 8]]
        assert torch.equal(states[4, :3], inputs.trained[0])
        assert torch.equal(states[5, :3], inputs.trained[0])
        assert states[:, 3:].argmax(dim=1).tolist() == [1, 1, 1, 0, 1, 0]

    def test_only_the_vectors_of_training_words_are_trained(self) -> None:
        inputs, tokenizer = inputs_for(["the", "Utrecht"], ["bank"])
        inputs.words(batch_of(tokenizer, [["the", "the", "Utrecht"]])).sum().backward()
        assert inputs.trained.grad is not None
        assert inputs.trained.grad.tolist() == [[1, 1, 1], [2, 2, 2]]
        assert not inputs.fixed.requires_grad

    def test_characters_are_read_as_a_plain_convolution_reads_them(self) -> None:
        inputs, tokenizer = inputs_for(["the", "Bank", "of"], characters=True)
        inputs.eval()
        words = ["of", "Bank", "Band", "x"]
        states = inputs.words(batch_of(tokenizer, [words]))[:, 3 + len(CAPITALS) :]
        assert inputs.characters is not None
        assert inputs.filters is not None
        known = {character: place for place, character in enumerate(inputs.inventory.characters, 2)}
        for word, read in zip(words, states, strict=True):
            spelling = torch.tensor([[known.get(character, 1) for character in word]])
            alone = inputs.filters(inputs.characters(spelling).transpose(1, 2)).amax(dim=2)[0]
            assert torch.allclose(read, alone, atol=1e-6)

    def test_new_words_are_looked_up_where_the_vectors_came_from(self, tmp_path: Path) -> None:
        inputs, tokenizer = inputs_for(["the"])
        inputs.eval()
        inputs.source = file(tmp_path, "rhine 8 8 8\n")
        states = inputs.words(batch_of(tokenizer, [["Rhine", "the", "Meuse"]]))
        assert states[0, :3].tolist() == [8, 8, 8]
        assert torch.equal(states[2, :3], inputs.trained[0])
        inputs.source = str(tmp_path / "gone.txt")
        inputs.words(batch_of(tokenizer, [["Scheldt"]]))


def test_forms_have_the_same_numbers_whatever_their_order() -> None:
    one, other = WordTokenizer(["b", "a", "b"]), WordTokenizer(["a", "b"])
    assert one.forms == other.forms == ["", "a", "b"]
    assert one.fingerprint == other.fingerprint != WordTokenizer(["a"]).fingerprint
    assert one.split(["b", "new", "a", "new"]).ids.tolist() == [2, 3, 1, 3]
