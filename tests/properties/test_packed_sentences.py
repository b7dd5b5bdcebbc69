"""Sentences in flat arrays are the sentences that were put in, whatever is taken of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.types import Sentence, Sentences
from core.tasks.packed import Packer

WORDS = st.lists(st.sampled_from(["a", "b", "c", "é"]), min_size=1, max_size=4).map(tuple)


@st.composite
def sentences(draw: st.DrawFn) -> list[Sentence]:
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


@given(sentences(), sentences(), st.integers(0, 99))
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
