"""Text is read back as it was written, packed sentences too, and draws are shares of what there is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora import Corpus, load, prepare
from core.corpora.derived.simulated import artificial_labels, relatedness
from core.corpora.readers.conll import named, read_table
from core.corpora.types import Sentence, Sentences
from core.errors import CorpusError
from core.tasks.packed import Packer
from tests.unit.derived import made, on

# Any visible character: no blanks, line ends or control characters, which set columns and lines apart. What
# begins with # may be a comment (tests/unit/corpora/test_outside.py).
fields = st.text(st.characters(exclude_categories=("Z", "C"), exclude_characters="#"), min_size=1, max_size=6)
sentences = st.lists(
    st.lists(st.tuples(fields, fields, fields), min_size=1, max_size=6), min_size=1, max_size=5
)


@given(rows=sentences, apart=st.sampled_from([" ", "  ", "\t"]), line_end=st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=100)
def test_columns_are_read_back(apart: str, line_end: str, rows: list[list[tuple[str, str, str]]]) -> None:
    columns = ("tokens", "a", "b")
    text = (line_end * 2).join(line_end.join(apart.join(row) for row in sentence) for sentence in rows)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.conll"
        path.write_bytes(text.encode())
        table = read_table(path, columns)
    assert table.left_out == ()
    assert list(named(table, columns, path)) == [
        Sentence(tuple(tokens), {"a": tuple(a), "b": tuple(b)})
        for tokens, a, b in (zip(*sentence, strict=True) for sentence in rows)
    ]


_PIECES = [
    "a", "b\u00a0", "x-DOCSTART-", "-DOCSTART-", " ", "  ", "\t", "\n", "\n", "\n\n", "\r\n", "\u2028", "\0",
]  # fmt: skip


@given(
    text=st.lists(st.sampled_from(_PIECES), max_size=20).map("".join),
    columns=st.sampled_from([None, ("tokens",), ("tokens", "a"), ("a", "tokens")]),
)
@example(text="-DOCSTART- \0\na", columns=None)
@example(text="-DOCSTART- \0", columns=None)
@example(text="\nb\xa0a\ta", columns=("tokens",))
@settings(max_examples=200)
def test_a_file_is_read_as_its_lines_say(text: str, columns: tuple[str, ...] | None) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.conll"
        path.write_bytes(text.encode())
        try:
            table = read_table(path, columns)
            sentences = table.first_sentences(len(table.starts))
            read = [list(zip(*sentence, strict=True)) for sentence in sentences]
        except CorpusError as error:
            line = re.search(r", line (\d+):", str(error))
            expected = _by_line(text, columns)
            # A file of another format is refused as a whole.
            assert expected == (int(line[1]) if line else "nothing") or (
                line is None and isinstance(expected, int)
            )
        else:
            assert read == _by_line(text, columns)


def _by_line(text: str, columns: tuple[str, ...] | None) -> list[list[tuple[str, ...]]] | int | str:
    """The rows by sentence; or the number of the first line that is refused, or that there is nothing."""
    if not text.strip():
        return "nothing"
    sentences: list[list[tuple[str, ...]]] = [[]]
    words = [line.rstrip("\r") for line in text.split("\n")]
    words = [line for line in words if not _is_between(line)]
    tabs = _most(["\t" in line.strip(" ") for line in words])
    expected = len(columns or ()) or _most([len(_fields(line, tabs=bool(tabs))) for line in words])
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        if _is_between(line):
            sentences.append([])
            continue
        fields = _fields(line, tabs=bool(tabs))
        if "\0" in line or len(fields) != expected or ("\t" in line and not tabs):
            return number
        sentences[-1].append(tuple(fields))
    return [rows for rows in sentences if rows] or "nothing"


def _is_between(line: str) -> bool:
    """Whether a line ends a sentence: a blank one, or a mark of documents."""
    return not line.strip(" \t") or line.strip(" \t").split(" ")[0].split("\t")[0] == "-DOCSTART-"


def _fields(line: str, *, tabs: bool) -> list[str]:
    if tabs:
        return [field.strip(" ") for field in line.split("\t")]
    return [field for field in line.split(" ") if field]


def _most(values: list[int]) -> int:
    """The value of more than half; if there is none, the first."""
    return next((value for value in values if 2 * values.count(value) > len(values)), (*values, 0)[0])


@given(fraction=st.floats(0.001, 1), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=20)
def test_a_fraction_is_a_share_of_each_part_in_the_corpus_order(fraction: float, seed: int) -> None:
    config = RunConfig.build(
        corpus="demo-both-pos", tasks="pos-a,pos-b", paradigm="mtl", fraction=fraction, seed=seed
    )
    drawn = prepare(config)
    whole = load("demo-both-pos")
    places = {(sentence.part, sentence.tokens): place for place, sentence in enumerate(whole.train)}
    order = [places[sentence.part, sentence.tokens] for sentence in drawn.train]
    assert order == sorted(set(order))
    for part in ("demo-pos-a", "demo-pos-b"):
        number = sum(sentence.part == part for sentence in drawn.train)
        assert number == max(1, round(fraction * 600))
    assert (len(drawn.dev), len(drawn.test)) == (400, 400)


seeds = st.integers(0, 2**31 - 1)


def assert_apart(corpus: Corpus) -> None:
    """Each training sentence has one task and is there no more often than in the base."""
    assert all(len(sentence.labels) == 1 for sentence in corpus.train)
    drawn, base = (Counter(s.tokens for s in each.train) for each in (corpus, load("demo")))
    assert drawn <= base


@given(seed=seeds, alpha=st.floats(0, 1), labels=st.integers(2, 6))
@settings(max_examples=40)
def test_labels_follow_the_matrix(seed: int, alpha: float, labels: int) -> None:
    draw = np.random.default_rng(seed)
    real = draw.integers(0, labels, 30_000)
    drawn = artificial_labels(real, alpha, labels, draw)
    together = np.zeros((labels, labels))
    np.add.at(together, (real, drawn), 1)
    shares = together / together.sum(axis=1, keepdims=True)
    matrix = np.full((labels, labels), (1 - alpha) / (labels - 1))
    np.fill_diagonal(matrix, alpha)
    # Each share is of 4,500 draws at least: five standard errors of it are 0.037 at most.
    assert np.abs(shares - matrix).max() < 0.04


@given(seed=seeds, low=st.floats(0, 1), high=st.floats(0, 1))
@settings(max_examples=20)
def test_a_larger_alpha_keeps_what_a_smaller_keeps(seed: int, low: float, high: float) -> None:
    low, high = sorted((low, high))
    real = np.random.default_rng(seed).integers(0, 5, 500)
    few, many = (artificial_labels(real, alpha, 5, np.random.default_rng(7)) for alpha in (low, high))
    assert np.all(many[few == real] == real[few == real])


@given(seed=seeds, labels=st.integers(2, 9))
@settings(max_examples=10)
def test_relatedness_at_both_ends(seed: int, labels: int) -> None:
    draw = np.random.default_rng(seed)
    real = draw.choice(labels, 10_000, p=draw.dirichlet(np.full(labels, 5.0)))
    columns = [artificial_labels(real, alpha, labels, draw) for alpha in (1.0, 1 / labels)]
    matrix = relatedness([real, *columns])
    assert matrix == pytest.approx(matrix.T)
    assert matrix[0, 1] == pytest.approx(1)
    assert abs(matrix[0, 2]) < 0.01


@given(seed=seeds, few=st.integers(1, 1500), more=st.integers(0, 1500))
@settings(max_examples=15)
def test_apart_is_disjoint_and_a_smaller_budget_a_prefix(seed: int, few: int, more: int) -> None:
    small = made(f"apart:demo?tokens={few},100,{few}", "pos,chunk,ner", seed=seed)
    large = made(f"apart:demo?tokens={few + more},{few},{few}", "ner,pos,chunk", seed=seed)
    assert on(small, "pos") == on(large, "pos")[: len(on(small, "pos"))]
    assert on(small, "ner") == on(large, "ner")
    assert on(made(f"apart:demo?tokens={few}", "ner", seed=seed), "ner") == on(small, "ner")
    assert_apart(large)


@given(seed=seeds, alpha=st.floats(0, 1), tasks=st.integers(1, 4))
@settings(max_examples=10)
def test_simulated_draws_do_not_depend_on_alpha(seed: int, alpha: float, tasks: int) -> None:
    name = f"simulated:demo?task=pos&tasks={tasks}&samples=300&tokens=200&dev=5"
    drawn, otherwise = (made(f"{name}&alpha={value}", "pos,sim-1", seed=seed) for value in (alpha, 0.5))
    assert [sentence.tokens for sentence in drawn.train] == [sentence.tokens for sentence in otherwise.train]
    assert drawn.dev == otherwise.dev
    assert_apart(drawn)
    # Also the real labels: only the artificial ones are drawn anew.
    assert [s for s in drawn.train if "pos" in s.labels] == [s for s in otherwise.train if "pos" in s.labels]


@given(seed=seeds, few=st.integers(1, 300), more=st.integers(0, 300))
@settings(max_examples=15)
def test_a_smaller_sample_is_part_of_a_larger_one(seed: int, few: int, more: int) -> None:
    small, large = (made(f"demo?train={number}", "ner", seed=seed).train for number in (few, few + more))
    assert len(small) == few
    rest = iter(large)
    assert all(sentence in rest for sentence in small)  # in the same order


WORDS = st.lists(st.sampled_from(["a", "b", "c", "é"]), min_size=1, max_size=4).map(tuple)


@st.composite
def any_sentences(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of words, some of them read as a whole too, texts and pairs, of two corpora."""
    made = []
    for tokens in draw(st.lists(WORDS, max_size=8)):
        part = draw(st.sampled_from(["", "other"]))
        labels = {}
        if draw(st.booleans()):
            text = draw(st.fixed_dictionaries({}, optional={"x": st.just(("1",)), "y": st.just(("2",))}))
            made.append(Sentence(tokens, text, part, whole=True, second=draw(st.none() | WORDS)))
            continue
        for task in draw(st.sets(st.sampled_from(["pos", "ner"]))):
            labels[task] = tuple(draw(st.sampled_from(["N", "V", "O"])) for _ in tokens)
        if draw(st.booleans()):
            labels["intent"] = (draw(st.sampled_from(["ask", "book"])),)
        made.append(Sentence(tokens, labels, part, text_tasks=("intent",)))
    return made


@given(any_sentences(), any_sentences(), st.integers(0, 99))
def test_what_is_taken_is_what_was_put_in(first: list[Sentence], other: list[Sentence], seed: int) -> None:
    packed = Sentences.of(first)
    assert packed == first
    assert [packed[number] for number in range(-len(first), len(first))] == first + first
    assert packed[1:] == first[1:]
    assert Sentences.joined([packed, Sentences.of(other)]) == first + other
    order = np.random.default_rng(seed).permutation(len(first))
    assert packed.take(order) == [first[number] for number in order]
    wanted = ["ner", "x"]
    kept = [replace(s, labels={t: s.labels[t] for t in wanted if t in s.labels}) for s in first]
    assert packed.only(wanted) == [sentence for sentence in kept if sentence.labels]
    assert packed.words.tolist() == [sentence.words for sentence in first]
    for task in ("pos", "intent", "x"):
        rows = packed.column(task).rows
        assert rows == [sentence.labels[task] for sentence in first if task in sentence.labels]
        assert packed.is_of_text(task).tolist() == [sentence.is_of_text(task) for sentence in first]


def test_a_word_and_a_label_need_a_few_bytes() -> None:
    packer = Packer()
    for number in range(5000):
        packer.add([f"w{(number * 20 + place) % 300}" for place in range(20)])
    words = packer.packed()
    assert words.numbers.nbytes + words.offsets.nbytes <= 2.5 * len(words.numbers)
    labels = words.mapped(lambda word: word[-1])
    assert labels.numbers.nbytes == len(labels.numbers)
