"""Word vectors from files, the numbers of word forms, and what an encoder over words reads."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from core.encoding.batches import IGNORED, Batch, Batches
from core.encoding.encoded import encode
from core.encoding.words import WordTokenizer
from core.errors import ConfigError
from core.models.encoders import word_inputs
from core.models.encoders.word_inputs import CAPITALS, CHARACTER_FILTERS, WordInputs, capitals, inventory_of
from core.models.word_vectors import WordVectors, check_vectors, read_vectors

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
        path = file(tmp_path, gzip.compress(content, mtime=0) if packed else content)
        read = read_vectors(path, every)
        assert read.words == ("the", "of")
        assert read.vectors.tolist() == [[0.5, -1.0], [pytest.approx(1e-3), 2.0]]
        assert read_vectors(str(tmp_path), {"of"}.__contains__).words == ("of",)

    @pytest.mark.parametrize(
        "content",
        [
            b"the 1 2\r\nof 3 4\r\n", b"the\t1\t2\nof\t3\t4", b"the\t1 2\nof 3 4 \n", b"the 1 2\n\nof 3 4\n",
            b"\xef\xbb\xbf2 2\nthe 1 2\nof 3 4", b"2 0\nthe 1 2\nof 3 4",
        ],
    )  # fmt: skip
    def test_line_ends_blanks_and_marks_do_not_matter(self, tmp_path: Path, content: bytes) -> None:
        read = read_vectors(file(tmp_path, content), every)
        assert read.words == ("the", "of")
        assert read.vectors.tolist() == [[1, 2], [3, 4]]

    def test_a_single_vector_is_a_file(self, tmp_path: Path) -> None:
        assert read_vectors(file(tmp_path, "the 1 2"), every).vectors.tolist() == [[1, 2]]

    def test_only_the_words_that_are_needed_take_memory(self, tmp_path: Path) -> None:
        """Of 30 MB unpacked, 100 words."""
        line = " ".join(["0.12345"] * 100)
        content = "".join(f"word{number} {line}\n" for number in range(37_000)).encode()
        path = file(tmp_path, gzip.compress(content, 1, mtime=0), "vectors.txt.gz")
        needed = {f"word{number}" for number in range(0, 37_000, 370)}
        tracemalloc.start()
        read = read_vectors(path, needed.__contains__)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(read.words) == 100
        assert len(content) > 29_000_000 > 50 * peak

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
            ("2 3\nb 1 2 3\n", "line 1: says that there are 2 vectors, but the file has 1"),
            ("1 3\nb 1 2 3\nc 1 2 3\n", "line 1: says that there are 1 vectors, but the file has 2"),
            ("1 3\nb 1 2\n", "line 2: has 2 numbers, not 3"),
            ("1 2\nb 1 2 3\n", "line 2: has 3 numbers, not 2"),
            ("a 1  2\n", "line 1: holds something that is not a number"),
            ("a 1e999 2\n", "line 1: holds a number that is not finite"),
            (b"\x00" * (1 << 20), "line 1: is longer than any vector"),
            (b"\x1f\x8bnot gzip", "cannot be read: Unknown compression method"),
            (gzip.compress(b"a 1 2\n" * 999, mtime=0)[:-9], "cannot be read: Compressed file ended"),
            (gzip.compress(b"a 1 2\n" * 999, mtime=0)[:20] + b"\xff" * 99, "cannot be read: Error -3"),
        ],
    )
    def test_a_bad_file_is_named_with_its_line(self, tmp_path: Path, content: str | bytes, says: str) -> None:
        with pytest.raises(ConfigError, match=says) as error:
            read_vectors(file(tmp_path, content), every)
        assert "vectors.txt" in str(error.value)
        assert error.value.field == "vectors"

    def test_packed_vectors_are_unpacked_to_their_end_before_a_run_is_queued(self, tmp_path: Path) -> None:
        """Once for each state of the file: a form is checked after each edit."""
        random = np.random.default_rng(1)
        rows = (f"word{number} {random.random()} {random.random()}" for number in range(20_000))
        whole = gzip.compress("\n".join(rows).encode(), mtime=0)
        check_vectors(file(tmp_path, whole))
        garbled = bytearray(whole)
        garbled[-9_000] ^= 255
        for bad, says in ((whole[:-20_000], "ended before"), (bytes(garbled), "cannot be read: ")):
            with pytest.raises(ConfigError, match=f"{says}.* Copy or download it again.") as error:
                check_vectors(file(tmp_path, bad))
            assert error.value.field == "vectors"
        check_vectors(file(tmp_path, whole))

    def test_a_name_must_be_that_of_one_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="neither glove nor a file or folder"):
            read_vectors("globe", every)
        with pytest.raises(ConfigError, match="has 0 files that can hold word vectors"):
            read_vectors(str(tmp_path), every)
        first, _ = file(tmp_path, "the 1 2"), file(tmp_path, "the 1 2", "more.vec.gz")
        with pytest.raises(ConfigError, match="has 2 files that can hold word vectors"):
            check_vectors(str(tmp_path))
        check_vectors(first)

    @pytest.mark.parametrize("name", ["\0", "a" * 5000, "~nobody-is-called-so/x.txt", "/dev/zero", "."])
    def test_names_that_no_file_has_are_refused(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigError) as error:
            check_vectors(name)
        assert error.value.field == "vectors"

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
    def test_gradients_are_the_same_bits_on_two_threads_each_time(self) -> None:
        """Threads share the words of a large batch; each form's gradient is a sum over its places."""
        words = ["the", "Bank", "of", "Utrecht"]
        inputs, tokenizer = inputs_for(words, characters=True)
        batch = batch_of(tokenizer, [words * 8] * 64)
        weights = [weight for weight in inputs.parameters() if weight.requires_grad]
        towards = torch.randn(inputs(batch).shape, generator=torch.Generator().manual_seed(0))
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(2)
            first, *others = (torch.autograd.grad(inputs(batch), weights, towards) for _ in range(12))
        finally:
            torch.set_num_threads(threads)
        assert len(weights) > 1
        for gradients in others:
            assert all(map(torch.equal, first, gradients))

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
        assert inputs.note is None

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (None, "' is neither glove nor a file or folder."),
            ("scheldt 1 2\n", "gone.txt now has 2 dimensions, not 3."),
            ("scheldt 1 2 x\n", "gone.txt, line 1: holds something that is not a number."),
        ],
    )
    def test_new_words_are_unknown_where_the_vectors_are_gone(
        self, tmp_path: Path, content: str | None, says: str
    ) -> None:
        inputs, tokenizer = inputs_for(["the"])
        inputs.eval()
        inputs.source = str(tmp_path / "gone.txt")
        if content is not None:
            file(tmp_path, content, "gone.txt")
        inputs.words(batch_of(tokenizer, [["the"]]))
        assert inputs.note is None, "words with a vector need no file"
        states = inputs.words(batch_of(tokenizer, [["Scheldt"]]))
        assert torch.equal(states[0, :3], inputs.trained[0])
        assert str(inputs.note).startswith("Words that are not in this run's corpus count as unknown.")
        assert str(inputs.note).endswith(says)

    def test_several_threads_may_bring_new_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both = threading.Barrier(2)

        def slowly(form: str) -> int:
            with suppress(threading.BrokenBarrierError):
                both.wait(0.05)  # until two threads are here, which must not be
            return capitals(form)

        monkeypatch.setattr(word_inputs, "capitals", slowly)
        inputs, tokenizer = inputs_for(["the"], characters=True)
        inputs.eval()
        batches = [batch_of(tokenizer, [[word, "the"]]) for word in ("Rhine", "EU", "7", "meuse")]
        with ThreadPoolExecutor(2) as threads:
            read = list(threads.map(inputs.words, batches))
        assert both.broken
        patterns = [int(states[0, 3 : 3 + len(CAPITALS)].argmax()) for states in read]
        assert [CAPITALS[pattern] for pattern in patterns] == ["initial", "upper", "number", "lower"]

    def test_long_words_and_characters_that_training_lacks_are_read(self) -> None:
        inputs, tokenizer = inputs_for(["of", "x" * 500], ["bank", "日本"], characters=True)
        states = inputs.eval().words(batch_of(tokenizer, [["x" * 500], ["x" * 64], ["日本", "bank"], ["of"]]))
        assert states.isfinite().all()
        assert torch.equal(states[0, -CHARACTER_FILTERS:], states[1, -CHARACTER_FILTERS:])
        nothing, tokenizer = inputs_for([], ["bank"], characters=True)
        assert nothing.inventory.characters == ()
        assert nothing.eval().words(batch_of(tokenizer, [["bank", "?"]])).isfinite().all()

    def test_gradients_are_finite_whatever_is_padded(self) -> None:
        inputs, tokenizer = inputs_for(["of", "the"], characters=True)
        states = inputs.train()(batch_of(tokenizer, [["of"], ["the", "of", "the"]]))
        states.sum().backward()
        for parameter in inputs.parameters():
            assert parameter.grad is not None
            assert parameter.grad.isfinite().all()

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    @pytest.mark.parametrize(
        "words", [["banana"], ["--------"], ["banana", "of", "ananas", "x", "........."]]
    )
    def test_gradients_equal_those_of_a_loop_over_words_that_repeat_trigrams(
        self, words: list[str], sign: float
    ) -> None:
        inputs, tokenizer = inputs_for([*words, "an"], characters=True)
        inputs.double()
        assert inputs.characters is not None
        assert inputs.filters is not None
        upstream = sign * torch.rand(len(words), CHARACTER_FILTERS, dtype=torch.float64)
        parameters = [*inputs.characters.parameters(), *inputs.filters.parameters()]
        features = inputs.words(batch_of(tokenizer, [words]))[:, -CHARACTER_FILTERS:]
        gradients = torch.autograd.grad(features, parameters, upstream)
        place = {character: number for number, character in enumerate(inputs.inventory.characters, 2)}
        each = [torch.tensor([place[character] for character in word]) for word in words]
        pooled = [inputs.filters(inputs.characters(ids).T[None])[0].amax(dim=1) for ids in each]
        expected = torch.autograd.grad(torch.stack(pooled), parameters, upstream)
        for gradient, reference in zip(gradients, expected, strict=True):
            torch.testing.assert_close(gradient, reference, rtol=1e-12, atol=1e-12)


def test_forms_have_the_same_numbers_whatever_their_order() -> None:
    first, second = WordTokenizer(["b", "a", "b"]), WordTokenizer(["a", "b"])
    assert first.forms == second.forms == ["", "a", "b"]
    assert first.fingerprint == second.fingerprint != WordTokenizer(["a"]).fingerprint
    assert first.split(["b", "new", "a", "new"]).ids.tolist() == [2, 3, 1, 3]
